"""Logs that cannot be used: one clear line each, whatever is in the file."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recording.logs import HEADER, Motion, arm, write_csv
from steelyard.errors import RecordingError
from steelyard.recording import Recording, read_recording, recording_from_arrays, setup_from_table, stream_recording

SHORT = HEADER + "\n" + "\n".join(f"{k},0.{k},0.{k + 1},1,1,2.5,{k}e-1" for k in range(5)) + "\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("\n\n  \n", "there is no data in it"),
        ("# only\n# comments\n", "there is no data in it"),
        (HEADER + "\n", "there is a header but no row of numbers"),
        (HEADER + "\n0,0,0,0,0,0,0\n", "1 samples are left of 1 rows"),
        (HEADER + "\n" + "0,0\n" * 5, "the header names 7 columns but the lines have 2|no row of numbers"),
        (HEADER + "\n" + "nan,nan,nan,nan,nan,nan,nan\n" * 5, "no finite number in 5 of 5 rows"),
        (HEADER + "\n" + "".join(f"{k},nan,0,0,0,0,0\n" for k in range(5)), "q of shoulder has no finite number"),
        (HEADER + "\n" + "5,0,0,0,0,0,0\n" * 9, "8 stamps are not later"),
        (HEADER + "\n" + "".join(f"{9 - k},0,0,0,0,0,0\n" for k in range(9)), "8 stamps are not later"),
        (HEADER + "\n" + "a,b,c,d,e,f,g\n" * 4, "none of its 4 lines is a row|no finite|0 samples"),
        ("a,b,c\n" + "1,2,3\n" * 5, "no positions are declared; .* columns: a, b, c"),
        ("1,2,3\n" * 5, "no positions are declared"),
        ("q[shoulder],q[elbow]\n" + "1,2\n" * 5, "no time column and no rate"),
        ("time,q[shoulder],q[elbow],q[wrist]\n" + "1,2,3,4\n" * 5, "'q\\[wrist\\]' names no joint"),
        ("time,q[hip],q[knee]\n" + "1,2,3\n" * 5, "names no joint of robot 'two'"),
        ("time,q[shoulder]\n" + "1,2\n" * 5, "no column for joint 'elbow'"),
    ],
)
def test_a_log_without_use_is_refused_in_one_line(robot, tmp_path, content, message):
    path = tmp_path / "log.csv"
    path.write_text(content)
    with pytest.raises(RecordingError, match=message) as caught:
        read_recording(robot, path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_path_that_is_none_is_refused(robot, tmp_path):
    with pytest.raises(RecordingError, match="no such file"):
        read_recording(robot, tmp_path / "none.csv")
    with pytest.raises(RecordingError, match="is a folder"):
        read_recording(robot, tmp_path)
    (tmp_path / "log.foo").write_text("x")
    with pytest.raises(RecordingError, match=r"kind of file '.foo' is not known; allowed: .csv"):
        read_recording(robot, tmp_path / "log.foo")
    with pytest.raises(RecordingError, match="no file is named"):
        read_recording(robot, setup_from_table({"time": 1}))
    with pytest.raises(RecordingError, match="block_rows is 0"):
        stream_recording(robot, tmp_path / "log.foo", block_rows=0)


def test_other_encodings_and_binary_files_are_refused(robot, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(SHORT, encoding="utf-32")
    with pytest.raises(RecordingError, match="is UTF-32 text; save it as UTF-8"):
        read_recording(robot, path)
    path.write_bytes(b"\0\1\2\3" * 1000)
    with pytest.raises(RecordingError, match="is no text"):
        read_recording(robot, path)
    path.write_bytes(b"1" * 300_000)
    with pytest.raises(RecordingError, match="first line is longer"):
        read_recording(robot, path)


def test_rows_that_are_not_there_leave_too_little(robot, motion, tmp_path):
    path = write_csv(tmp_path / "log.csv", motion.table())
    for table in ({"rows": "5000:6000"}, {"seconds": [100, 200]}):
        with pytest.raises(RecordingError, match="0 samples are left of 2000 rows"):
            read_recording(robot, setup_from_table(table), files=path)


def test_memory_without_samples_is_refused(robot):
    with pytest.raises(RecordingError, match="no numbers in it"):
        recording_from_arrays(robot, {})
    with pytest.raises(RecordingError, match="no numbers in it"):
        recording_from_arrays(robot, {"time": np.zeros(0), "q": np.zeros((0, 2))})


def is_recording_or_error(path, setup=None) -> None:
    try:
        recording = read_recording(arm(), setup or path, files=path if setup else None)
    except RecordingError:
        return
    assert isinstance(recording, Recording)
    assert recording.samples >= 2
    assert (np.diff(recording.time) > 0).all()
    assert np.isfinite(recording.q).all()


DECLARED = setup_from_table({"rate": 10, "q": "1:2"})
fuzzed = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@fuzzed
@given(content=st.binary(max_size=300))
def test_random_bytes_are_a_recording_or_an_error(tmp_path, content):
    (tmp_path / "log.csv").write_bytes(content)
    is_recording_or_error(tmp_path / "log.csv")
    is_recording_or_error(tmp_path / "log.csv", DECLARED)


@fuzzed
@given(data=st.data())
def test_a_damaged_log_is_a_recording_or_an_error(tmp_path, data):
    content = bytearray(SHORT.encode())
    for _ in range(data.draw(st.integers(1, 8))):
        place = data.draw(st.integers(0, len(content) - 1))
        length = data.draw(st.integers(0, 12))
        content[place : place + length] = data.draw(
            st.binary(max_size=12) | st.sampled_from([b"\n", b",", b'"', b"1e999"])
        )
        content = content or bytearray(b"\n")
    (tmp_path / "log.csv").write_bytes(bytes(content))
    is_recording_or_error(tmp_path / "log.csv")


NUMBERS = st.floats() | st.sampled_from([0.0, 1e300, -1e300, 1e-320, float("inf"), float("nan")])


@fuzzed
@given(
    table=st.lists(st.lists(NUMBERS, min_size=7, max_size=7), max_size=12),
    separator=st.sampled_from([",", ";", " ", "\t"]),
)
def test_any_numbers_are_a_recording_or_an_error(tmp_path, table, separator):
    lines = [HEADER.replace(",", separator), *(separator.join(map(repr, row)) for row in table)]
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    is_recording_or_error(tmp_path / "log.csv")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_archive_is_a_recording_or_an_error(tmp_path, data):
    np.savez(tmp_path / "log.npz", **Motion(samples=8).arrays())  # type: ignore[arg-type]
    content = bytearray((tmp_path / "log.npz").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    (tmp_path / "log.npz").write_bytes(bytes(content))
    is_recording_or_error(tmp_path / "log.npz")
