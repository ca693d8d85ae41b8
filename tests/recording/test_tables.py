"""NPZ, Parquet and data in memory: the same recording whatever it came in."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from recording.logs import HEADER
from steelyard.errors import RecordingError
from steelyard.recording import (
    read_recording,
    recording_from_arrays,
    recording_from_frame,
    setup_from_table,
    stream_recording,
)
from steelyard.tables import npz as npz_module
from steelyard.tables import parquet as parquet_module
from steelyard.tables import text as text_module


def assert_same(recording, motion):
    np.testing.assert_array_equal(recording.time, motion.time)
    np.testing.assert_array_equal(recording.q, motion.q)
    np.testing.assert_array_equal(recording.qd, motion.qd)
    np.testing.assert_array_equal(recording.torque("joint_torque").values, motion.tau)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("layout", ["rows", "columns", "fortran", "views"])
def test_npz_is_read_whatever_the_order_of_its_arrays(robot, motion, tmp_path, monkeypatch, save, layout):
    monkeypatch.setattr(npz_module, "BLOCK_ROWS", 300)
    turn = {
        "rows": lambda a: a,
        "columns": lambda a: np.ascontiguousarray(a.T),
        "fortran": lambda a: np.asfortranarray(a.T),
        "views": lambda a: a.T,
    }[layout]
    arrays = {name: turn(values) if values.ndim == 2 else values for name, values in motion.arrays().items()}
    save(tmp_path / "log.npz", **arrays, label=np.array("a text"), table=np.zeros((2, 2, 2)))
    assert_same(read_recording(robot, tmp_path / "log.npz"), motion)


def test_npz_keys_are_declared(robot, motion, tmp_path):
    np.savez(tmp_path / "log.npz", stamp_ms=1e3 * motion.time, angles=np.degrees(motion.q.T).astype(np.float32))
    setup = setup_from_table({"time": {"column": "stamp_ms", "unit": "ms"}, "q": {"columns": "angles", "unit": "deg"}})
    recording = read_recording(robot, setup, files=tmp_path / "log.npz")
    np.testing.assert_allclose(recording.time, motion.time, rtol=1e-12)
    np.testing.assert_allclose(recording.q, motion.q, atol=1e-6)
    assert any("joint order is not declared" in note for note in recording.notes)


def test_npz_refuses_pickles_damage_and_unequal_lengths(robot, motion, tmp_path):
    path = tmp_path / "log.npz"
    np.savez(path, time=motion.time, q=np.array([object()] * motion.time.size, dtype=object))
    with pytest.raises(RecordingError, match="no positions are declared"):
        read_recording(robot, path)
    np.savez(path, time=motion.time[:-1], q=motion.q)
    with pytest.raises(RecordingError, match="numbers of samples differ"):
        read_recording(robot, path)
    np.savez(path, **motion.arrays())
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RecordingError, match=r"no readable \.npz archive"):
        read_recording(robot, path)
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 0xFF
    path.write_bytes(bytes(damaged))
    with pytest.raises(RecordingError, match="the archive is damaged"):
        read_recording(robot, path)


def test_parquet_is_read_in_blocks(robot, motion, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_module, "BLOCK_ROWS", 300)
    pl.DataFrame(motion.table(), schema=HEADER.split(",")).write_parquet(tmp_path / "log.parquet")
    assert_same(read_recording(robot, tmp_path / "log.parquet"), motion)


def test_parquet_columns_of_lists_are_read(robot, motion, tmp_path):
    frame = pl.DataFrame({"time": motion.time, "q": motion.q.T.tolist(), "qd": motion.qd.T.tolist()})
    frame.write_parquet(tmp_path / "log.parquet")
    recording = read_recording(robot, tmp_path / "log.parquet")
    np.testing.assert_array_equal(recording.q, motion.q)
    np.testing.assert_array_equal(recording.qd, motion.qd)


def test_a_parquet_file_that_is_none_is_refused(robot, tmp_path):
    (tmp_path / "log.parquet").write_bytes(b"PAR1 not really PAR1")
    with pytest.raises(RecordingError, match="no readable Parquet file"):
        read_recording(robot, tmp_path / "log.parquet")


def test_arrays_and_frames_in_memory_give_the_same_recording(robot, motion):
    assert_same(recording_from_arrays(robot, motion.arrays()), motion)
    transposed = {name: values.T for name, values in motion.arrays().items()}
    assert_same(recording_from_arrays(robot, transposed), motion)
    names = HEADER.split(",")
    assert_same(recording_from_frame(robot, pd.DataFrame(motion.table(), columns=names)), motion)
    assert_same(recording_from_frame(robot, pl.DataFrame(motion.table(), schema=names)), motion)


def test_dates_are_seconds(robot, motion, tmp_path):
    stamps = np.datetime64("2026-01-01T12:00:00", "us") + np.round(motion.time * 1e6).astype("timedelta64[us]")
    frame = pl.DataFrame({"time": stamps, "q[shoulder]": motion.q[0], "q[elbow]": motion.q[1]})
    frame.write_parquet(tmp_path / "log.parquet")
    for recording in (
        read_recording(robot, tmp_path / "log.parquet"),
        recording_from_frame(robot, frame),
        recording_from_frame(robot, pd.DataFrame({name: frame[name].to_numpy() for name in frame.columns})),
    ):
        np.testing.assert_allclose(recording.time - recording.time[0], motion.time, atol=5e-7)
        assert recording.time[0] == 1767268800.0


@pytest.mark.parametrize("ending", ["npz", "parquet", "csv"])
def test_a_stream_tells_how_far_it_is(robot, motion, tmp_path, monkeypatch, ending):
    monkeypatch.setattr(npz_module, "BLOCK_ROWS", 300)
    monkeypatch.setattr(parquet_module, "BLOCK_ROWS", 300)
    monkeypatch.setattr(text_module, "PIECE_BYTES", 30_000)
    frame = pl.DataFrame(motion.table(), schema=HEADER.split(","))
    write = {
        "npz": lambda path: np.savez(path, **motion.arrays()),
        "parquet": frame.write_parquet,
        "csv": frame.write_csv,
    }
    write[ending](tmp_path / f"log.{ending}")
    stream = stream_recording(robot, tmp_path / f"log.{ending}")
    reported = [stream.bytes_done for _ in stream]
    assert 0 < reported[0] < stream.bytes_total
    assert reported == sorted(reported)
    assert reported[-1] == stream.bytes_done == stream.bytes_total == (tmp_path / f"log.{ending}").stat().st_size


def test_a_recording_does_not_change_with_the_arrays_it_came_from(robot, motion):
    arrays = motion.arrays()
    recording = recording_from_arrays(robot, arrays)
    with pytest.raises(ValueError, match="read-only"):
        recording.q[0, 0] = 1.0
    before = recording.q[0, 5]
    arrays["q"][0, 5] += 1.0
    assert recording.q[0, 5] == before


def test_what_is_no_table_is_refused(robot, motion):
    with pytest.raises(RecordingError, match="pandas or polars DataFrame"):
        recording_from_frame(robot, [1, 2, 3])
    with pytest.raises(RecordingError, match="'q' is not numbers"):
        recording_from_arrays(robot, {"time": motion.time, "q": ["a", "b"]})
    with pytest.raises(RecordingError, match="has shape"):
        recording_from_arrays(robot, {"time": motion.time, "q": np.zeros((2, 3, 4))})


@pytest.mark.parametrize("block_rows", [1, 7, 999, 5000])
def test_blocks_of_a_stream_are_the_recording(robot, motion, tmp_path, block_rows):
    np.savez(tmp_path / "log.npz", **motion.arrays())
    whole = read_recording(robot, tmp_path / "log.npz")
    stream = stream_recording(robot, tmp_path / "log.npz", block_rows=block_rows)
    blocks = list(stream)
    assert {block.samples for block in blocks[:-1]} <= {block_rows}
    np.testing.assert_array_equal(np.concatenate([block.q for block in blocks], axis=1), whole.q)
    np.testing.assert_array_equal(np.concatenate([block.time for block in blocks]), whole.time)
    assert stream.result is not None
    assert stream.result.findings == whole.findings
    assert stream.result.sources == whole.sources
