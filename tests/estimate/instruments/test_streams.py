"""Torques and splines read behind what comes in, and segments of even stamps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from steelyard.estimate.instruments.references import HeldTorques, SplineStream, segments_of
from steelyard.observe import Preparation, resolve_preparation
from steelyard.observe.reading import is_even
from steelyard.recording import Recording


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
def test_segments_are_even_where_all_their_stamps_together_are(jitter, drift, even):
    time = np.arange(30_000) / 100.0 * (1 + drift)
    time = np.delete(time, np.r_[9000:9100, 9100:9105])
    time = time + np.random.default_rng(5).uniform(-jitter, jitter, time.size) / 100
    recording = Recording(("a",), time, np.sin(time)[None])
    resolved = resolve_preparation(Preparation(10.0, decimation=1, rate=100.0), [recording])
    found = segments_of(recording, resolved)
    assert [(part.samples.start, part.samples.stop) for part in found] == [(0, 9000), (9000, time.size)]
    for part in found:
        assert part.is_even == is_even(time[part.samples], 100.0, resolved.max_gap) == even
        assert (part.start, part.end) == (time[part.samples][0], time[part.samples][-1])
