"""HDF5 files and MATLAB's version 7.3: the same recording as from NPZ, and hostile files in one line."""

from __future__ import annotations

import importlib.util
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recording.logs import Motion, arm, one
from steelyard.errors import RecordingError, TableError
from steelyard.recording import read_recording, setup_from_table, stream_recording
from steelyard.tables import ReadLog, TextOptions, open_table, read_columns
from steelyard.tables import hdf5 as hdf5_module

h5py = pytest.importorskip("h5py", reason="HDF5 files are read with h5py, of the extra 'data'")

PACKINGS = {
    "plain": {},
    "chunked": {"chunks": True},
    "gzip": {"chunks": True, "compression": "gzip", "shuffle": True},
    "lzf": {"chunks": True, "compression": "lzf", "fletcher32": True},
}


def assert_same(recording, motion):
    np.testing.assert_array_equal(recording.time, motion.time)
    np.testing.assert_array_equal(recording.q, motion.q)
    np.testing.assert_array_equal(recording.qd, motion.qd)
    np.testing.assert_array_equal(recording.torque("joint_torque").values, motion.tau)


def write(path, arrays, **packing):
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            file.create_dataset(name, data=values, **packing)
    return path


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("ending", ["h5", "hdf5"])
@pytest.mark.parametrize("transposed", [False, True])
def test_datasets_are_columns_however_they_are_packed(
    robot, motion, tmp_path, monkeypatch, packing, ending, transposed
):
    monkeypatch.setattr(hdf5_module, "BLOCK_ROWS", 300)
    arrays = {name: values.T if transposed else values for name, values in motion.arrays().items()}
    path = write(tmp_path / f"log.{ending}", arrays, **PACKINGS[packing])
    assert_same(read_recording(robot, path), motion)


@pytest.mark.parametrize("setup", [None, {"time": "time", "q": "q"}])
@pytest.mark.parametrize("with_time", [True, False])
def test_episodes_stacked_in_three_dimensions_are_named_with_their_shape(robot, motion, tmp_path, setup, with_time):
    arrays = {"time": motion.time} if with_time else {}
    arrays |= {name: np.stack(3 * [values.T]) for name, values in (("q", motion.q), ("tau", motion.tau))}
    path = write(tmp_path / "log.h5", arrays)
    shape = " x ".join(map(str, arrays["q"].shape))
    with pytest.raises((RecordingError, TableError)) as caught:
        read_recording(robot, *([path] if setup is None else [setup_from_table(setup), path]))
    assert f"q ({shape})" in str(caught.value)
    assert "write each to a file of its own" in str(caught.value)


def test_blocks_are_those_of_large_chunks(robot, motion, tmp_path, monkeypatch):
    monkeypatch.setattr(hdf5_module, "BLOCK_ROWS", 100)
    monkeypatch.setattr(hdf5_module, "LARGE_CHUNK", 1000)
    with h5py.File(tmp_path / "log.h5", "w") as file:
        for name, values in motion.arrays().items():
            file.create_dataset(name, data=values.T, chunks=(700, *values.shape[:-1]), compression="gzip")
    stream = stream_recording(robot, tmp_path / "log.h5")
    assert [block.samples for block in stream] == [700, 700, 600]
    assert stream.bytes_done == stream.bytes_total == (tmp_path / "log.h5").stat().st_size


def test_other_lengths_links_and_cycles_are_left_out_with_a_remark(robot, motion, tmp_path):
    (tmp_path / "secret.bin").write_bytes(bytes(8 * motion.time.size))
    path = write(tmp_path / "log.h5", motion.arrays())
    write(tmp_path / "other.h5", {"q": motion.q + 1})
    with h5py.File(path, "a") as file:
        file["calibration/gains"] = np.ones(6)
        file["rate"] = 200.0
        file["images"] = np.zeros((motion.time.size, 2, 2), np.uint8)
        file["label"] = "a text"
        file["calibration/all"] = file["/"]
        file["again"] = file["q"]
        file["soft"] = h5py.SoftLink("/q")
        file["nowhere"] = h5py.SoftLink("/none")
        file["elsewhere"] = h5py.ExternalLink("other.h5", "/q")
        file.create_dataset("outside", (motion.time.size,), "f8", external=[(str(tmp_path / "secret.bin"), 0, 16000)])
        layout = h5py.VirtualLayout((motion.time.size,), "f8")
        layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "q", (2, motion.time.size))[0]
        file.create_virtual_dataset("virtual", layout)
        references = file.create_dataset("references", (motion.time.size,), h5py.ref_dtype)
        references[0] = file["q"].ref
    recording = read_recording(robot, path)
    assert_same(recording, motion)
    text = one(recording.findings, "text").text
    for part in ("1 of other lengths than 2000 (calibration/gains)", "2 that lie in other files", "3 links are not"):
        assert part in text
    names = open_table(path, TextOptions()).names
    assert len(names) == 9  # a second name of a dataset is a column of its own
    assert not {"soft[1]", "elsewhere[1]", "outside", "virtual"} & set(names)


def test_compound_datasets_have_a_column_for_each_field(robot, motion, tmp_path):
    kind = [("time", "f8"), ("q", "f8", (2,)), ("state", "S4"), ("qd", "f8", (2,)), ("joint_torque", "f8", (2,))]
    rows = np.zeros(motion.time.size, kind)
    for name, values in motion.arrays().items():
        rows[name] = values.T
    path = write(tmp_path / "log.h5", {"run/log": rows})
    assert open_table(path, TextOptions()).names[:2] == ("run/log/time", "run/log/q[1]")
    assert_same(read_recording(robot, setup_from_table({"group": "run/log"}), files=path), motion)


@pytest.mark.parametrize("shorter", [0, 300])
def test_one_of_several_recordings_is_chosen(robot, motion, tmp_path, shorter):
    second = {f"two/{name}": values[..., shorter:] for name, values in motion.arrays().items()}
    first = {f"one/{name}": values for name, values in motion.arrays().items()}
    path = write(tmp_path / "log.h5", {**first, **second, "gravity": np.ones(3)})
    with pytest.raises(TableError, match=rf'one \(2000 samples\), two \({2000 - shorter} samples\).*group = "one"'):
        read_recording(robot, path)
    assert_same(read_recording(robot, setup_from_table({"group": "one"}), files=path), motion)
    chosen = read_recording(robot, setup_from_table({"group": "/two/"}), files=path)
    np.testing.assert_array_equal(chosen.q, motion.q[:, shorter:])
    with pytest.raises(TableError, match="no group 'tow' with datasets; groups: one, two; did you mean 'two'"):
        read_recording(robot, setup_from_table({"group": "tow"}), files=path)
    whole = setup_from_table({"group": "/", "time": "one/time", "q": "one/q"})
    np.testing.assert_array_equal(read_recording(robot, whole, files=path).q, motion.q)


def test_groups_of_parts_that_belong_together_are_one_recording(robot, motion, tmp_path):
    arrays = {"robot/time": motion.time, "robot/q": motion.q, "sensor/time": motion.time, "sensor/torque": motion.tau}
    path = write(tmp_path / "log.h5", arrays)
    torque = {"kind": "joint_torque", "columns": "sensor/torque"}
    setup = setup_from_table({"time": "robot/time", "q": "robot/q", "torque": torque})
    recording = read_recording(robot, setup, files=path)
    np.testing.assert_array_equal(recording.torque().values, motion.tau)


def test_two_groups_side_by_side_are_parts(robot, motion, tmp_path):
    path = write(tmp_path / "log.h5", {"a/time": motion.time, "a/q": motion.q, "b/t": motion.tau, "b/u": motion.tau})
    torque = {"kind": "joint_torque", "columns": "t"}
    parts = [{"path": path.name, "group": "a", "time": "time", "q": "q"},
             {"path": path.name, "group": "b", "torque": torque}]  # fmt: skip
    recording = read_recording(robot, setup_from_table({"part": parts}, tmp_path))
    np.testing.assert_array_equal(recording.q, motion.q)
    np.testing.assert_array_equal(recording.torque().values, motion.tau)


NUMBERS = st.sampled_from(["<f8", ">f8", "<f4", "<i2", ">i4", "u1", "?", "<u8", "<f2"])
SHAPE = st.tuples(st.integers(1, 4), NUMBERS, st.booleans(), st.sampled_from(list(PACKINGS)))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(SHAPE, min_size=1, max_size=5), st.integers(11, 60))
def test_any_structure_comes_back(tmp_path, shapes, samples):
    """Arrays of any kind of number in nested groups, their samples along either axis."""
    rng = np.random.default_rng(samples)
    expected = {}
    with h5py.File(tmp_path / "log.h5", "w") as file:
        for number, (width, kind, across, packing) in enumerate(shapes):
            values = rng.integers(0, 2, (samples, width)).astype(kind)
            name = "/".join([*["root", "deeper", "deepest"][: number % 3], f"d{number}"])
            file.create_dataset(name, data=values.T if across else values, **PACKINGS[packing])
            columns = [f"{name}[{k}]" for k in range(1, width + 1)] if width > 1 else [name]
            expected |= dict(zip(columns, values.T.astype(float), strict=True))
    table = open_table(tmp_path / "log.h5", TextOptions(group="/"))
    assert set(table.names) == set(expected)
    blocks = list(table.read(range(len(table.names)), ReadLog()))
    for k, name in enumerate(table.names):
        np.testing.assert_array_equal(np.concatenate([block.columns[k] for block in blocks]), expected[name])


def test_measurements_have_texts(tmp_path):
    with h5py.File(tmp_path / "points.h5", "w") as file:
        file["marker"] = ["nose", "ear", "nose", "ear"]
        file["fixed"] = np.array([b"a", b"bc"] * 2)
        file["xyz"] = np.arange(12.0).reshape(4, 3)
    columns = read_columns(tmp_path / "points.h5")
    assert columns.texts("marker") == ["nose", "ear", "nose", "ear"]
    assert columns.texts("fixed") == ["a", "bc", "a", "bc"]
    assert columns.numbers("xyz[3]").tolist() == [2.0, 5.0, 8.0, 11.0]


def as_matlab(path, arrays):
    """Write arrays as MATLAB does with -v7.3: axes reversed, structures as groups, behind a header of 512 bytes."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, values in arrays.items():
            file[name] = np.atleast_2d(values.T if values.ndim == 2 else values)
            file[name].attrs["MATLAB_class"] = np.bytes_("double")
        file["label"] = np.array([[77]], np.uint16)
        file["label"].attrs["MATLAB_class"] = np.bytes_("char")
        file["#refs#/long"] = np.arange(5000.0)
    content = path.read_bytes()
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + content[128:])
    return path


@pytest.mark.parametrize("within", ["", "run/"])
def test_version_7_3_is_read(robot, motion, tmp_path, within):
    path = as_matlab(tmp_path / "log.mat", {within + name: values.T for name, values in motion.arrays().items()})
    setup = setup_from_table({"group": "run"} if within else {})
    assert_same(read_recording(robot, setup, files=path), motion)
    assert (f"{within}time".replace("/", ".")) in open_table(path, TextOptions()).names
    assert not any("refs" in name for name in open_table(path, TextOptions()).names)


def test_claims_beyond_the_size_of_the_file_are_refused(robot, tmp_path):
    path = tmp_path / "log.h5"
    for more in ({}, {"chunks": (1 << 20,)}):
        with h5py.File(path, "w") as file:
            file.create_dataset("q", (10**12,), "f8", **more)
        assert path.stat().st_size < 5000
        with pytest.raises(TableError, match="bytes claim to hold 8000000000000"):
            read_recording(robot, path)
    with h5py.File(path, "w") as file:
        file.create_dataset("q", data=np.zeros(30_000_000), chunks=(30_000_000,), compression="gzip")
    with pytest.raises(TableError, match="more than 100 times as many"):
        read_recording(robot, path)


def test_a_crash_of_the_library_is_an_error_and_the_next_file_is_read(robot, motion, tmp_path, monkeypatch):
    path = write(tmp_path / "log.h5", motion.arrays())

    def killed(process, request):
        process.kill()
        process.wait()
        return exchange(process, request)

    exchange = hdf5_module._exchange
    monkeypatch.setattr(hdf5_module, "_exchange", killed)
    with pytest.raises(TableError, match="the HDF5 library fails in reading it, or takes too long"):
        read_recording(robot, path)
    monkeypatch.undo()
    assert_same(read_recording(robot, path), motion)


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_a_cut_file_is_refused(robot, motion, tmp_path, part):
    path = write(tmp_path / "log.h5", motion.arrays())
    path.write_bytes(path.read_bytes()[: int(part * path.stat().st_size)])
    with pytest.raises(RecordingError, match="is no readable HDF5 file"):
        read_recording(robot, path)


def test_without_h5py_the_command_to_install_it_is_named(robot, motion, tmp_path, monkeypatch):
    path = write(tmp_path / "log.h5", motion.arrays())
    hdf5_module._end()
    monkeypatch.setattr(hdf5_module, "find_spec", lambda name: None)
    with pytest.raises(TableError, match=r"pip install 'steelyard\[data\]'"):
        read_recording(robot, path)
    assert importlib.util.find_spec("h5py") is not None


def test_a_recording_given_up_leaves_no_file_open(tmp_path):
    motion = Motion(70_000)
    path = write(tmp_path / "log.h5", motion.arrays())
    stream = iter(stream_recording(arm(), path).samples())
    next(stream)
    del stream
    read_recording(arm(), write(tmp_path / "other.h5", Motion().arrays()))
    running = hdf5_module._RUNNING[os.getpid()]
    if os.path.isdir(f"/proc/{running.pid}/fd"):
        opened = [os.readlink(f"/proc/{running.pid}/fd/{one}") for one in os.listdir(f"/proc/{running.pid}/fd")]
        assert not [name for name in opened if name.endswith(".h5")]
