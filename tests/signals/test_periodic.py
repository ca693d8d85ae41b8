"""Periods are found, averaged with an honest variance, and tested for really being periods."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from steelyard.errors import SignalError
from steelyard.signals import average_periods, check_periodicity, find_period, fold, significant_lines

RATE = 100.0


def motion(time: np.ndarray, period: float, lines: int = 5) -> np.ndarray:
    rng = np.random.default_rng(7)
    k = np.arange(1, lines + 1)
    angles = 2 * np.pi * np.multiply.outer(k, time) / period
    sine, cosine = rng.standard_normal((2, 3, lines)) / k
    return 0.5 + sine @ np.sin(angles) + cosine @ np.cos(angles)


def times(periods: float, period: float) -> np.ndarray:
    return np.arange(int(periods * period * RATE) + 1) / RATE


@pytest.mark.parametrize("period", [1.0, 4.0, 3.99, 2.71828, 1.23456])
def test_the_period_of_noise_free_motion_is_found_exactly(period):
    found = find_period(motion(times(8.3, period), period), RATE)
    assert found.period == pytest.approx(period, rel=1e-9)
    assert found.periods == 8
    assert found.correlation > 0.99


def test_the_period_is_the_shortest_that_repeats():
    values = motion(times(30, 1.0), 1.0)
    assert find_period(values, RATE).period == pytest.approx(1.0, rel=1e-9)
    assert find_period(values, RATE, shortest=1.5).period == pytest.approx(2.0, rel=1e-9)


@pytest.mark.large
def test_the_spread_of_the_period_is_as_stated():
    time, rng = times(16, 1.0731), np.random.default_rng(0)
    errors = []
    for _ in range(150):
        found = find_period(motion(time, 1.0731) + 0.05 * rng.standard_normal((3, len(time))), RATE, harmonics=5)
        errors.append((found.period - 1.0731) / found.std)
    assert np.std(errors) == pytest.approx(1.0, abs=4 / np.sqrt(300))
    assert abs(np.mean(errors)) < 4 / np.sqrt(150)


def test_constant_rows_do_not_hide_the_period():
    values = motion(times(8, 2.0), 2.0)
    values[1] = 3.0
    assert find_period(values, RATE).period == pytest.approx(2.0, rel=1e-9)


def test_signals_without_a_period_are_refused():
    with pytest.raises(SignalError, match="does not repeat"):
        find_period(np.random.default_rng(0).standard_normal((2, 1000)), RATE)
    with pytest.raises(SignalError, match="does not repeat, or the recording is shorter than two periods"):
        find_period(np.linspace(0, 1, 500)[None], RATE)
    with pytest.raises(SignalError, match="constant signals only"):
        find_period(np.ones((2, 500)), RATE)


def test_averages_have_the_variance_of_the_spread_between_periods():
    time = np.arange(1600) / RATE
    values = motion(time, 1.0) + np.array([[0.1], [0.2], [0.0]]) * np.random.default_rng(0).standard_normal((3, 1600))
    average = average_periods(values, RATE, 1.0)
    cut = values.reshape(3, 16, 100)
    np.testing.assert_allclose(average.mean, cut.mean(axis=1), atol=1e-14)
    np.testing.assert_allclose(average.variance_of_mean, cut.var(axis=1, ddof=1) / 16, atol=1e-16)
    assert (average.periods, average.dof, average.pooled_dof) == (16, 15, 1500)
    assert average.folded.method == "exact"
    assert not average.mean.flags.writeable


def test_the_variance_from_16_periods_lies_in_its_chi_square_interval_as_often_as_it_says():
    rng = np.random.default_rng(3)
    time = np.arange(16 * 50) / 50.0
    clean = motion(time, 1.0)[:1]
    inside, statistics = [], []
    for _ in range(400):
        average = average_periods(clean + 0.3 * rng.standard_normal((1, 800)), 50.0, 1.0)
        low, high = average.pooled_variance * average.pooled_dof / stats.chi2(average.pooled_dof).ppf([0.95, 0.05])
        inside.append(low <= 0.09 <= high)
        statistics += list(average.variance[0] * average.dof / 0.09)
    assert np.mean(inside) == pytest.approx(0.9, abs=4 * np.sqrt(0.09 / 400))
    assert stats.kstest(statistics, stats.chi2(15).cdf).pvalue > 1e-3


def test_the_mean_over_16_periods_spreads_as_its_variance_says():
    rng = np.random.default_rng(4)
    clean = motion(np.arange(800) / 50.0, 1.0)[:1]
    scores = []
    for _ in range(200):
        average = average_periods(clean + 0.3 * rng.standard_normal((1, 800)), 50.0, 1.0)
        scores += list((average.mean - clean[:, :50])[0] / np.sqrt(average.variance_of_mean[0]))
    assert stats.kstest(scores, stats.t(15).cdf).pvalue > 1e-3


def test_a_period_that_is_no_whole_number_of_samples_is_interpolated_and_says_so():
    period = 2.71828
    average = average_periods(motion(times(9, period), period), RATE, period)
    assert average.folded.method == "cubic"
    np.testing.assert_allclose(average.mean, motion(average.time, period), atol=1e-5)
    assert average.mean.shape[1] == 272
    assert average.variance.max() < 1e-9


def test_left_over_samples_are_counted():
    folded = fold(np.zeros((1, 1037)), RATE, 1.0)
    assert folded.values.shape == (1, 10, 100)
    assert folded.left_over == 37


def test_too_few_periods_are_refused():
    with pytest.raises(SignalError, match=r"got 150 samples, 1.5 periods of 1 s, needed are at least 2"):
        average_periods(np.zeros((1, 150)), RATE, 1.0)
    with pytest.raises(SignalError, match="needed are at least 3 periods"):
        check_periodicity(np.zeros((1, 250)), RATE, 1.0)
    with pytest.raises(SignalError, match="needed are at least 4 samples"):
        fold(np.zeros((1, 250)), RATE, 0.02)


@pytest.mark.parametrize("period", [1.0, 1.00371])
def test_p_values_of_repeated_motion_are_uniform_or_larger(period):
    rng, time = np.random.default_rng(5), times(12, period)
    clean = motion(time, period)
    tests = [check_periodicity(clean + 0.2 * rng.standard_normal(clean.shape), RATE, period) for _ in range(150)]
    p_values = np.array([test.p_value for test in tests]).ravel()
    drift = np.array([test.drift_p_value for test in tests]).ravel()
    for values in (p_values, drift):
        assert stats.kstest(values, "uniform", alternative="greater").pvalue > 1e-3
    assert sum(not test.is_periodic for test in tests) <= 0.03 * 2 * 150


def test_noise_free_repetition_is_periodic():
    result = check_periodicity(motion(times(8, 1.0), 1.0), RATE, 1.0)
    assert result.is_periodic
    assert result.aperiodic_share.max() < 1e-9


def test_motion_of_another_period_is_not_periodic():
    values = motion(times(10, 1.0), 1.0) + 0.01 * np.random.default_rng(0).standard_normal((3, 1001))
    result = check_periodicity(values, RATE, 1.03)
    assert not result.is_periodic
    assert result.p_value.max() < 1e-6
    assert result.aperiodic_share.min() > 0.05
    assert "does not repeat" in result.reason


def test_drift_is_found_in_the_row_that_drifts():
    time = times(10, 1.0)
    values = motion(time, 1.0) + 0.05 * np.random.default_rng(0).standard_normal((3, len(time)))
    values[2] += 0.02 * time
    result = check_periodicity(values, RATE, 1.0)
    assert not result.is_periodic
    assert "row 2 drifts" in result.reason
    assert result.drift[2] == pytest.approx(0.02, rel=0.2)
    assert result.drift_p_value[2] < 1e-4 < result.drift_p_value[:2].min()


def test_lines_of_the_motion_stand_out_of_the_noise():
    time, rng = times(16, 1.0), np.random.default_rng(0)
    clean = motion(time, 1.0)
    assert significant_lines(clean, RATE, 1.0) == (1, 2, 3, 4, 5)
    found = [significant_lines(clean + 0.05 * rng.standard_normal(clean.shape), RATE, 1.0) for _ in range(100)]
    assert sum(lines != (1, 2, 3, 4, 5) for lines in found) <= 6
