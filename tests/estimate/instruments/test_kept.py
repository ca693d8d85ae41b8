"""Columns kept in memory or in a file, streams kept as numbers, torques and splines read behind what comes in."""

from __future__ import annotations

import errno
import gc

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from estimate.instruments.disturbed_scara import quiet_run
from steelyard.errors import EstimateError
from steelyard.estimate.instruments import kept
from steelyard.estimate.instruments.held_torques import HeldTorques
from steelyard.estimate.instruments.kept import KeptColumns, kept_columns, kept_stream, with_motion
from steelyard.estimate.instruments.splines import SplineStream
from steelyard.estimate.instruments.stretches import stretches_of
from steelyard.observe import Preparation, settle
from steelyard.observe.reading import blocks_of
from steelyard.observe.regular import is_even
from steelyard.recording import Recording, stream_recording, write_recording
from steelyard.robot import load_robot
from steelyard.simulate import recording_of

NUMBERS = np.random.default_rng(0).normal(size=(3, 1000))


@pytest.mark.parametrize("in_memory", [1, 10_000, 10_000_000])
def test_columns_come_back_as_they_were(monkeypatch, in_memory):
    monkeypatch.setattr(kept, "IN_MEMORY", in_memory)
    columns = kept_columns(3, np.split(NUMBERS, [10, 10, 700], axis=1))
    assert columns.count == 1000
    np.testing.assert_array_equal(columns.read(0, 1000), NUMBERS)
    np.testing.assert_array_equal(columns.read(990, 2000), NUMBERS[:, 990:])
    assert columns.read(1000, 1010).shape == (3, 0)
    columns.put(NUMBERS[:, :5])
    np.testing.assert_array_equal(np.concatenate(list(columns.blocks(600, 1005, 7)), axis=1)[:, -5:], NUMBERS[:, :5])


def test_a_file_that_cannot_grow_is_said_in_a_line_and_none_is_left_open(monkeypatch):
    columns = KeptColumns(3)
    file = columns._file
    with monkeypatch.context() as patched:

        def full(_):
            raise OSError(errno.ENOSPC, "No space left on device")

        patched.setattr(file, "write", full, raising=False)
        with pytest.raises(EstimateError, match=r"cannot keep 0 MB in a temporary file: No space left.*set TMPDIR"):
            columns.put(NUMBERS)
    del columns
    gc.collect()
    assert file.closed


@pytest.fixture
def stream(tmp_path):
    recording = recording_of(quiet_run(12))
    return recording, stream_recording(load_robot("scara_2r"), write_recording(recording, tmp_path / "log.csv"))


def test_a_kept_stream_gives_the_samples_of_the_stream_and_another_motion_if_wanted(stream):
    recording, read = stream
    once = kept_stream(read)
    (block,) = blocks_of(once)
    np.testing.assert_array_equal(block.q, recording.q)
    np.testing.assert_array_equal(block.time, recording.time)
    np.testing.assert_array_equal(block.torque().values, recording.torque().values)
    assert once.bytes_done == once.bytes_total > 0
    motion = kept_columns(2, [2 * recording.q])
    for moved in (with_motion(once, motion), with_motion(recording, motion)):
        (block,) = blocks_of(moved)
        np.testing.assert_array_equal(block.q, 2 * recording.q)
        np.testing.assert_array_equal(block.torque().values, recording.torque().values)


def test_a_spline_read_behind_its_points_is_that_of_the_whole():
    places = np.cumsum(np.random.default_rng(1).uniform(0.3, 1.7, 3000))
    values = np.random.default_rng(2).normal(size=(2, 3000))
    whole, wanted = CubicSpline(places, values, axis=1), np.linspace(places[0], places[-1], 7001)
    curve, found, done = SplineStream(orders=3), [], 0
    for first in (*range(0, 3000, 170), None):
        if first is None:
            curve.end()
        else:
            curve.push(places[first : first + 170], values[:, first : first + 170])
        ready = wanted[done:][wanted[done:] <= curve.limit]
        if len(ready):
            found.append(curve.read(ready))
            done += len(ready)
    expected = np.concatenate([whole(wanted, order) for order in range(3)])
    np.testing.assert_allclose(np.concatenate(found, axis=1), expected, atol=1e-11 * np.abs(expected).max())


def test_torques_are_read_between_their_times_and_are_none_beyond():
    times = np.sort(np.random.default_rng(3).uniform(0, 10, 400))
    torques = np.random.default_rng(4).normal(size=(2, 400))
    bounds = [50, 51, 300]
    held = HeldTorques(zip(np.split(times, bounds), np.split(torques, bounds, axis=1), strict=True))
    instants = np.linspace(-1, 11, 1000)
    found = np.concatenate([held.at(part) for part in np.split(instants, [100, 101, 600])], axis=1)
    expected = [np.interp(instants, times, row, left=0.0, right=0.0) for row in torques]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("jitter", "drift", "even"), [(0.0, 0.0, True), (0.004, 0.0, True), (0.1, 0, False), (0, 2e-4, False)]
)
def test_stretches_are_even_where_all_their_stamps_together_are(jitter, drift, even):
    time = np.arange(30_000) / 100.0 * (1 + drift)
    time = np.delete(time, np.r_[9000:9100, 9100:9105])
    time = time + np.random.default_rng(5).uniform(-jitter, jitter, time.size) / 100
    recording = Recording(("a",), time, np.sin(time)[None])
    settled = settle(Preparation(10.0, decimation=1, rate=100.0), [recording])
    found = stretches_of(recording, settled)
    assert [(part.samples.start, part.samples.stop) for part in found] == [(0, 9000), (9000, time.size)]
    for part in found:
        assert part.is_even == is_even(time[part.samples], 100.0, settled.max_gap) == even
        assert (part.start, part.end) == (time[part.samples][0], time[part.samples][-1])
