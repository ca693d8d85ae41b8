"""Columns cached in memory or in a file, and recordings that lie in one."""

from __future__ import annotations

import errno
import gc
import resource

import numpy as np
import pytest

from estimate.instruments.disturbed_scara import quiet_run
from steelyard.errors import RecordingError
from steelyard.identification import identify
from steelyard.observe import busiest_part, part_of
from steelyard.observe.reading import BLOCK, blocks_of
from steelyard.recording import Recording, cache, read_recording, stream_recording, write_recording
from steelyard.recording.cache import CachedColumns, cached_columns, mapping_of
from steelyard.robot import load_robot
from steelyard.simulation import recording_of

NUMBERS = np.random.default_rng(0).normal(size=(3, 1000))


@pytest.mark.parametrize("in_memory", [1, 10_000, 10_000_000])
def test_columns_come_back_as_they_were(monkeypatch, in_memory):
    monkeypatch.setattr(cache, "IN_MEMORY", in_memory)
    columns = cached_columns(3, np.split(NUMBERS, [10, 10, 700], axis=1))
    assert columns.count == 1000
    np.testing.assert_array_equal(columns.read(0, 1000), NUMBERS)
    np.testing.assert_array_equal(columns.read(990, 2000), NUMBERS[:, 990:])
    assert columns.read(1000, 1010).shape == (3, 0)
    whole = columns.whole()
    np.testing.assert_array_equal(whole, NUMBERS)
    assert not whole.flags.writeable
    assert (mapping_of(whole) is None) == (in_memory > 8 * NUMBERS.size)
    columns.put(NUMBERS[:, :5])
    np.testing.assert_array_equal(np.concatenate(list(columns.blocks(600, 1005, 7)), axis=1)[:, -5:], NUMBERS[:, :5])


def test_a_file_that_cannot_grow_is_said_in_a_line_and_none_is_left_open(monkeypatch):
    columns = CachedColumns(3)
    file = columns._file
    with monkeypatch.context() as patched:

        def full(_):
            raise OSError(errno.ENOSPC, "No space left on device")

        patched.setattr(file, "write", full, raising=False)
        with pytest.raises(RecordingError, match=r"cannot keep 0 MB in a temporary file: No space left.*set TMPDIR"):
            columns.put(NUMBERS)
    del columns
    gc.collect()
    assert file.closed


def test_a_disk_that_fills_up_is_said_as_numbers_are_put_and_what_was_there_stays(monkeypatch):
    monkeypatch.setattr(cache, "IN_MEMORY", 1000)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    columns = cached_columns(3, [NUMBERS])
    resource.setrlimit(resource.RLIMIT_FSIZE, (NUMBERS.nbytes + 12, limits[1]))  # room for half a column
    try:
        with pytest.raises(RecordingError, match="cannot keep 0 MB in a temporary file: File too large; make room"):
            columns.put(NUMBERS[:, :1])
        np.testing.assert_array_equal(columns.read(0, 2000), NUMBERS)
        again = cached_columns(3, [NUMBERS])
        with pytest.raises(RecordingError):
            again.put(NUMBERS[:, :1])
        del again
        gc.collect()  # closes its file, which has nothing left to write
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    columns.put(NUMBERS[:, :2])
    np.testing.assert_array_equal(columns.read(1000, 2000), NUMBERS[:, :2])


@pytest.mark.large
def test_a_long_log_lies_in_a_file_and_gives_the_same_numbers(tmp_path, monkeypatch):
    recording = recording_of(quiet_run(12))
    path = write_recording(recording, tmp_path / "log.csv")
    robot = load_robot("scara_2r")
    in_memory = read_recording(robot, path)
    assert mapping_of(in_memory.q) is None
    expected = identify(robot, in_memory)
    monkeypatch.setattr(cache, "IN_MEMORY", 1000)
    for long in (read_recording(robot, path), stream_recording(robot, path).whole()):
        assert mapping_of(long.q) is mapping_of(long.torque().values) is mapping_of(part_of(long, 10, 20).q) is not None
        assert long.findings == in_memory.findings
        assert long.sources == in_memory.sources
        for block, same in zip(blocks_of(long), blocks_of(in_memory), strict=True):
            assert mapping_of(block.q) is None
            np.testing.assert_array_equal(block.q, same.q)
            np.testing.assert_array_equal(block.time, same.time)
            np.testing.assert_array_equal(block.torque().values, same.torque().values)
        found = identify(robot, long)
        np.testing.assert_array_equal(found.fit.estimate.values, expected.fit.estimate.values)
        assert found.verdict == expected.verdict


def test_the_busiest_part_is_the_one_in_which_every_joint_moves():
    time = np.arange(20 * BLOCK) / 1000
    q = np.random.default_rng(0).normal(scale=1e-6, size=(3, time.size))
    q[0] += np.sin(time)
    q[1, 12 * BLOCK :] += np.sin(3 * time[12 * BLOCK :])
    q[2] = 0.5  # never moves: says nothing
    recording = Recording(("a", "b", "c"), time, q)
    part = busiest_part(recording, 6 * BLOCK)
    assert part.samples == 6 * BLOCK
    assert part.time[0] >= time[12 * BLOCK]
    assert busiest_part(part, 6 * BLOCK) is part
    still = Recording(("a",), time, np.zeros((1, time.size)))
    assert busiest_part(still, 100).samples == 100
