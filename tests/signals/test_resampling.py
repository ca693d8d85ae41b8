"""Resampling states its method, splits at gaps, and is the same in blocks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import interpolate

from steelyard.errors import SignalError
from steelyard.signals import ResampleStream, resample

METHODS = ("linear", "cubic", "monotone")


def jittered(samples: int = 2000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    time = 3.0 + np.cumsum(np.random.default_rng(seed).uniform(0.5e-3, 1.5e-3, samples))
    return time, np.stack([np.sin(2 * np.pi * 3 * time), np.cos(20 * time)])


@pytest.mark.parametrize("method", METHODS)
def test_values_are_those_of_scipy_at_the_grid(method):
    time, values = jittered()
    result = resample(time, values, 900.0, method)
    assert (result.method, result.rate, result.gaps) == (method, 900.0, ())
    grid = result.time()
    np.testing.assert_allclose(np.diff(grid), 1 / 900.0)
    assert grid[0] == time[0]
    assert time[-1] - 1 / 900.0 < grid[-1] <= time[-1]
    if method == "linear":
        expected = np.stack([np.interp(grid, time, row) for row in values])
    else:
        kind = interpolate.CubicSpline if method == "cubic" else interpolate.PchipInterpolator
        expected = kind(time, values, axis=1)(grid)
    np.testing.assert_allclose(result.values, expected, atol=1e-12)


def test_a_smooth_motion_is_met_better_by_cubic_than_by_linear():
    time, values = jittered()
    errors = {}
    for method in METHODS:
        result = resample(time, values, method=method)
        truth = np.stack([np.sin(2 * np.pi * 3 * result.time()), np.cos(20 * result.time())])
        errors[method] = np.abs(result.values - truth).max()
    assert errors["cubic"] < 1e-6 < errors["linear"] < 2e-4
    assert errors["cubic"] < errors["monotone"]


def test_gaps_are_not_bridged():
    time, values = jittered()
    time = time.copy()
    time[1000:] += 0.2
    result = resample(time, values, 1000.0, "cubic", max_gap=0.01)
    assert len(result.segments) == 2
    (gap,) = result.gaps
    assert gap.index == 999
    assert result.time(0)[-1] <= time[999]
    assert result.time(1)[0] >= time[1000]
    # Both segments lie on one grid.
    assert (result.time(1)[0] - result.start) * 1000 == pytest.approx(result.segments[1].first)
    with pytest.raises(SignalError, match=r"got 2 segments.*gaps: 0.2\d* s at"):
        _ = result.values
    assert len(resample(time, values, 1000.0, max_gap=1.0).segments) == 1


def test_a_sample_alone_between_gaps_is_counted_as_lost():
    time = np.concatenate([np.arange(50) / 100, [2.0], 4 + np.arange(50) / 100])
    result = resample(time, np.zeros((1, 101)), 100.0)
    assert (len(result.segments), result.lone_samples) == (2, 1)


def test_even_stamps_may_stay_as_they_are():
    values = np.random.default_rng(0).standard_normal((2, 100))
    result = resample(np.arange(100) / 50.0, values, method="none")
    assert result.rate == pytest.approx(50.0)
    np.testing.assert_array_equal(result.values, values)


def test_uneven_stamps_may_not_stay_as_they_are():
    with pytest.raises(SignalError, match="jitter"):
        resample(*jittered(), method="none")
    with pytest.raises(SignalError, match="got rate 60 Hz with method 'none', the stamps have 50 Hz"):
        resample(np.arange(100) / 50.0, np.zeros((1, 100)), 60.0, "none")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [1, 7, 100, 3000])
@pytest.mark.parametrize("rate", [400.0, 1000.0, 3000.0])
def test_blocks_give_the_result_of_the_whole(method, size, rate):
    time, values = jittered(1500)
    time = time.copy()
    time[400:] += 0.011
    time[900:] += 0.5
    time[901:] += 0.3
    whole = resample(time, values, rate, method, max_gap=0.02)
    stream = ResampleStream(rate, 0.02, method)
    pieces = []
    for k in range(0, 1500, size):
        pieces += stream.push(time[k : k + size], values[:, k : k + size])
        assert len(stream._time) <= size + 110
    pieces += stream.flush()
    for parts in (pieces, whole.segments):
        assert all(part.values.shape[1] for part in parts)
    places, expected_places = (
        np.concatenate([part.first + np.arange(part.values.shape[1]) for part in parts])
        for parts in (pieces, whole.segments)
    )
    np.testing.assert_array_equal(places, expected_places)
    got, expected = (np.concatenate([part.values for part in parts], axis=1) for parts in (pieces, whole.segments))
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)
    assert stream.lone_samples == whole.lone_samples == 1


def test_bad_input_is_refused():
    time, values = jittered(20)
    with pytest.raises(SignalError, match="got 19 time stamps for 20 samples"):
        resample(time[1:], values)
    with pytest.raises(SignalError, match="did you mean 'linear'"):
        resample(time, values, method="linaer")  # pyright: ignore[reportArgumentType]
    broken = values.copy()
    broken[0, 3] = np.nan
    with pytest.raises(SignalError, match="got nan at row 0, sample 3"):
        resample(time, broken)
    with pytest.raises(SignalError, match="of a stream: got 'none', allowed are linear, monotone, cubic"):
        ResampleStream(100.0, 1.0, "none")
    stream = ResampleStream(100.0, 1.0)
    stream.push(time, values)
    with pytest.raises(SignalError, match="strictly increasing"):
        stream.push(time, values)
