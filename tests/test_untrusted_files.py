"""Files from anywhere: what is wrong in them is reported in one short line, at once and in little memory."""

from __future__ import annotations

import io
import os
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from fuzz.kinds import CALIBRATION_SETUPS, COLUMNS, LIMITS, MOTIONS, TABLE, arm, samples
from steelyard.calibration.measurement.files import read_measurements
from steelyard.calibration.measurement.setup_file import read_setup as read_calibration_setup
from steelyard.cli import main
from steelyard.errors import LONGEST_MESSAGE, SteelyardError, nearest_match, one_line
from steelyard.excitation.limits.design_limits import design_limits
from steelyard.motion import read_trajectory
from steelyard.recording import read_recording, read_recordings, read_setup
from steelyard.robot import load_robot
from steelyard.run import read_config

READERS = {
    "arm.toml": load_robot,
    "arm.urdf": load_robot,
    "motion.toml": read_trajectory,
    "log.csv": lambda path: read_recording(arm(), path),
    "log.npz": lambda path: read_recording(arm(), path),
    "log.parquet": lambda path: read_recording(arm(), path),
    "recording.toml": read_setup,
    "config.toml": lambda path: read_config(path, "model", {"torque": str}),
    "limits.toml": lambda path: design_limits(arm(), path),
    "setup.toml": lambda path: read_calibration_setup(path, arm()),
    "points.csv": lambda path: measured(path),
    "points.npz": lambda path: measured(path),
}


def measured(path: Path):
    setup = path.with_name("setup.toml")
    setup.write_bytes(CALIBRATION_SETUPS[0])
    return read_measurements(path, arm(), read_calibration_setup(setup, arm()))


def refusal(name: str, path: Path) -> str:
    """Return the line that a file is refused with."""
    with pytest.raises(SteelyardError) as caught:
        READERS[name](path)
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) <= LONGEST_MESSAGE
    return message


def npy(header: str, body: bytes = b"", size: int | None = None) -> bytes:
    """Return an array file with any header."""
    text = header.encode("latin-1")
    return b"\x93NUMPY\x01\x00" + (len(text) if size is None else size).to_bytes(2, "little") + text + body


def write_archive(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


@pytest.mark.parametrize("name", ["log.npz", "points.npz"])
@pytest.mark.parametrize(
    "shape", ["(60000000, 1)", "(1, 60000000)", "(1000000000000,)", "(60000000, 60000000)", "(-1,)", "(True,)", "None"]
)
def test_a_header_that_claims_more_than_is_there_takes_no_memory(tmp_path, name, shape):
    header = f"{{'descr': '|b1', 'fortran_order': False, 'shape': {shape}, }}\n"
    path = write_archive(tmp_path / name, q=npy(header, b"\0" * 100))
    assert path.stat().st_size < 400
    tracemalloc.start()
    try:
        assert "no readable .npz" in refusal(name, path)
        assert tracemalloc.get_traced_memory()[1] < 10e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["log.npz", "points.npz"])
def test_an_archive_that_unpacks_beyond_all_measure_is_refused(tmp_path, name):
    header = "{'descr': '|b1', 'fortran_order': False, 'shape': (100000000,), }\n"
    path = write_archive(tmp_path / name, q=npy(header, bytes(100_000_000)))
    assert "claim to hold" in refusal(name, path)


def test_an_array_of_more_columns_than_a_log_has_is_refused(tmp_path):
    path = tmp_path / "log.npz"
    np.savez(path, time=np.arange(30_000.0), q=np.zeros((300, 20_000), bool))
    assert "20001 columns" in refusal("log.npz", path)


@pytest.mark.parametrize("name", ["log.npz", "points.npz"])
@pytest.mark.parametrize(
    ("header", "size"),
    [("{'descr': '<f8', 'fortran_order': False, 'sha", None), ("", None), ("{'descr': (((", None), ("{}", 9000)],
)
def test_a_header_that_is_cut_is_told_in_one_line(tmp_path, name, header, size):
    path = write_archive(tmp_path / name, q=npy(header, b"\0" * 80, size))
    assert "no readable .npz" in refusal(name, path)


def test_texts_that_are_none_are_refused(tmp_path):
    header = "{'descr': '<U1', 'fortran_order': False, 'shape': (2,), }\n"
    path = write_archive(tmp_path / "points.npz", pose=npy(header, b"\xff" * 8))
    assert "letters that do not exist" in refusal("points.npz", path)


@pytest.mark.parametrize(
    "said",
    ['{"joints": 5}', '{"joints": [5, null]}', '{"gain": {"current": [1e999]}}', "[" * 3000, '{"notes": "\\ud800"}'],
)
@pytest.mark.parametrize("ending", ["npz", "csv"])
def test_what_a_file_says_of_itself_is_left_out_where_it_is_wrong(tmp_path, said, ending):
    path = tmp_path / f"log.{ending}"
    arrays = {name: values for name, values in samples().items() if name != "current"}
    if ending == "npz":
        np.savez(path, **arrays, steelyard=np.array(said))  # type: ignore[arg-type]
    else:
        table = np.column_stack([values.T for values in arrays.values()])
        rows = "\n".join(",".join(map(repr, row)) for row in table.tolist())
        path.write_text(f"# steelyard {said}\n{','.join(COLUMNS.split(',')[:5])}\n{rows}\n")
    assert read_recording(arm(), path).time.size == len(samples()["time"])


def parquet(path: Path, **columns) -> Path:
    given = {"time": samples()["time"], "q[shoulder]": samples()["q"][0], "q[elbow]": samples()["q"][1]}
    pl.DataFrame(given | columns).write_parquet(path, compression="uncompressed")
    return path


def test_columns_of_other_kinds_in_a_parquet_file_are_left_out(tmp_path):
    count = len(samples()["time"])
    others = {"pose": [{"x": 1.0}] * count, "raw": [b"\xff"] * count, "nested": [[[1.0]]] * count}
    found = read_recording(arm(), parquet(tmp_path / "log.parquet", **others))
    assert found.time.size == count
    message = refusal("log.parquet", parquet(tmp_path / "log.parquet", **{"q[elbow]": [[[1.0]]] * count}))
    assert "no column for joint 'elbow'" in message


def test_a_panic_of_the_parquet_reader_leaves_nothing_on_stderr(tmp_path, capfd):
    whole = parquet(tmp_path / "whole.parquet").read_bytes()
    reported = 0
    for place in range(len(whole) - 400, len(whole) - 8, 3):
        path = tmp_path / "log.parquet"
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            read_recording(arm(), path)
        except SteelyardError as error:
            reported += len(str(error)) <= LONGEST_MESSAGE
    assert reported > 20
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("setup", "said"),
    [
        ('[[recording.part]]\npath = "log.csv"', "no positions are declared"),
        ('[[recording.part]]\npath = "own.csv"\nq = "q"\n[[recording.part]]\npath = "log.csv"', "none of its columns"),
        ("[recording]\nrate = " + "9" * 400, "whole number"),
        ("[recording]\nrate = 1e308", "up to 1e\\+15"),
        ('[recording]\nfiles = "log.csv"\nreshape = 1000000000000', "columns"),
        ('[recording]\nfiles = "log.csv"\nq = "' + "*" * 60 + 'x"', "no column"),
        ('[recording]\nfiles = "log.csv"\nseparator = "\\n"', "one letter"),
        ('[recording]\nrows = "1:' + "9" * 5000 + '"', "15 digits"),
    ],
)
def test_a_setup_that_cannot_be_meant_is_told_in_one_line(tmp_path, setup, said):
    (tmp_path / "log.csv").write_text("a,b,c\n" + "1,2,3\n" * 5)
    (tmp_path / "own.csv").write_text("time,q[shoulder],q[elbow]\n" + "".join(f"{k},0,{k}\n" for k in range(5)))
    (tmp_path / "steelyard.toml").write_text(setup)
    with pytest.raises(SteelyardError, match=said) as caught:
        read_recordings(arm(), tmp_path / "steelyard.toml")
    assert len(str(caught.value)) <= LONGEST_MESSAGE


@pytest.mark.parametrize("name", [name for name in READERS if name.endswith(".toml")])
@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 3000,
        "a = " + "{a=" * 3000,
        ".".join("a" * 400_000) + " = 1",
        "a." * 40 + "a = 1",
        "a = " + "9" * 400,
    ],
    ids=["brackets", "tables", "long key", "deep key", "digits"],
)
def test_toml_without_measure_is_told_at_once(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    refusal(name, path)


def test_fields_beyond_the_limit_of_the_csv_reader_are_told(tmp_path):
    long = '"' + "x" * 140_000 + '"'
    for name in ("log.csv", "points.csv"):
        (tmp_path / name).write_text(f"{long},b,c\n1,2,3\n1,2,3\n")
        refusal(name, tmp_path / name)


@pytest.mark.parametrize("number", ["1e308", "-1e308", "inf", "1e20", "9" * 400])
def test_numbers_beyond_all_measure_in_measurements_are_told(tmp_path, number):
    text = "shoulder,elbow,x,y,z\n" + "10,20,300,200,100\n" * 3
    for place in range(5):
        row = ["10", "20", "300", "200", "100"]
        row[place] = number
        (tmp_path / "points.csv").write_text(text + ",".join(row) + "\n")
        message = refusal("points.csv", tmp_path / "points.csv")
        assert "a finite number is expected (at most 1e+15)" in message


def test_joint_positions_beyond_all_measure_are_told(tmp_path):
    (tmp_path / "points.csv").write_text("shoulder,elbow,x,y,z\n10,1e14,300,200,100\n")
    assert "elbow is at 1.75e+12 rad or m" in refusal("points.csv", tmp_path / "points.csv")


def test_set_ups_take_no_numbers_beyond_all_measure(tmp_path):
    path = tmp_path / "setup.toml"
    path.write_bytes(CALIBRATION_SETUPS[0].replace(b"mass = 26", b"mass = 1e308"))
    assert "up to 1e+09" in refusal("setup.toml", path)
    limits = tmp_path / "limits.toml"
    limits.write_bytes(LIMITS.replace(b"offset = -0.1", b"offset = 1e308"))
    refusal("limits.toml", limits)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("name", READERS)
def test_a_pipe_is_refused_before_it_blocks(tmp_path, name, monkeypatch):
    os.mkfifo(tmp_path / name)
    opened = io.open

    def refuse(file, *arguments, **options):
        assert str(file) != str(tmp_path / name), "the pipe is opened, which would block"
        return opened(file, *arguments, **options)

    monkeypatch.setattr(io, "open", refuse)
    assert "not a" in refusal(name, tmp_path / name)


def test_a_pipe_as_a_configuration_ends_with_code_one(tmp_path, capsys):
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    os.mkfifo(tmp_path / "steelyard.toml")
    assert main(["model", "scara_2r", "--config", str(tmp_path / "steelyard.toml")]) == 1
    assert "not a file" in capsys.readouterr().err


def test_a_message_keeps_its_beginning_and_its_end():
    error = SteelyardError(f"log.csv: unknown key '{'x' * 300_000}';\n allowed: a, b\x1b[31m\u202e")
    assert len(str(error)) <= LONGEST_MESSAGE
    assert str(error).startswith("log.csv: unknown key 'xxx")
    assert str(error).endswith(r"xxx'; allowed: a, b\x1b[31m\u202e")
    assert len(one_line("a b " * 5000)) <= LONGEST_MESSAGE
    assert nearest_match("x" * 100_000, ["x" * 99_999]) == ""


def test_valid_files_are_still_read(tmp_path):
    for name, content in {"arm.toml": TABLE, "motion.toml": MOTIONS[0], "limits.toml": LIMITS}.items():
        (tmp_path / name).write_bytes(content)
        READERS[name](tmp_path / name)
