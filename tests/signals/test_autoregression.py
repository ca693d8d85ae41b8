"""Autoregressive noise: against statsmodels and closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.signals.whitening import (
    LARGEST_REFLECTION,
    autoregressive_correlation,
    correlation_length,
    innovation_share,
    stationary,
)

arima = pytest.importorskip("statsmodels.tsa.arima_process")

CASES = ([0.7], [-0.5], [0.5, 0.3], [1.2, -0.5], [0.4, -0.3, 0.2], [0.3, 0.2, -0.1, 0.4])


def process(coefficients):
    return arima.ArmaProcess.from_coeffs(coefficients)


@pytest.mark.parametrize("coefficients", CASES, ids=str)
@pytest.mark.parametrize("lags", [0, 1, 3, 20])
def test_the_autocorrelation_is_that_of_statsmodels(coefficients, lags):
    expected = process(coefficients).acf(lags + 1)[: lags + 1]
    np.testing.assert_allclose(
        autoregressive_correlation(np.array(coefficients), lags), expected, rtol=1e-9, atol=1e-12
    )


def test_of_first_order_it_is_a_power():
    np.testing.assert_allclose(autoregressive_correlation(np.array([0.8]), 6), 0.8 ** np.arange(7), rtol=1e-13)


def test_white_noise_has_none():
    np.testing.assert_array_equal(autoregressive_correlation(np.zeros(0), 3), [1, 0, 0, 0])
    assert innovation_share(np.zeros(0)) == 1.0


@pytest.mark.parametrize("coefficients", CASES, ids=str)
def test_the_innovation_s_share_is_one_over_the_variance_of_the_process(coefficients):
    variance = process(coefficients).acovf(1)[0]
    np.testing.assert_allclose(innovation_share(np.array(coefficients)), 1 / variance, rtol=1e-9)


@pytest.mark.parametrize("coefficients", CASES, ids=str)
def test_stationary_coefficients_stay_as_they_are(coefficients):
    np.testing.assert_array_equal(stationary(np.array(coefficients)), coefficients)


@pytest.mark.parametrize(
    "coefficients", [[1.0], [-1.3], [0.9, 0.4], [2.0, -0.999], [0.0, 0.0, 0.0, 1.2], [1.0, -1.0, 1.0]]
)
def test_others_are_brought_within_the_bound(coefficients):
    found = stationary(np.array(coefficients))
    assert process(found).isstationary
    share = innovation_share(found)
    assert 0 < share <= 1
    assert share >= (1 - LARGEST_REFLECTION**2) ** len(found) * (1 - 1e-9)


def test_a_random_walk_is_held_at_the_bound():
    np.testing.assert_allclose(stationary(np.array([1.0])), [LARGEST_REFLECTION])


@pytest.mark.parametrize("pole", [0.0, 0.5, 0.97])
def test_the_correlation_length_of_slow_noise_is_the_sum_of_its_autocorrelations(pole):
    assert correlation_length(np.array([pole])) == pytest.approx((1 + pole) / (1 - pole), rel=1e-9)


def test_the_correlation_length_of_a_vibration_is_that_at_its_own_frequency():
    radius, angle = 0.98, 2 * np.pi * 64 / 1024
    coefficients = np.array([2 * radius * np.cos(angle), -(radius**2)])
    acf = autoregressive_correlation(coefficients, 5000)
    density = 1 + 2 * np.sum(acf[1:] * np.cos(angle * np.arange(1, 5001)))
    assert correlation_length(coefficients) == pytest.approx(density, rel=0.01)


@pytest.mark.parametrize("coefficients", [[0.999], [1.9, -0.905], [0.5, 0.2, 0.1, 0.19]], ids=str)
def test_persistence_is_held_to_what_a_run_can_show(coefficients):
    free = stationary(np.array(coefficients))
    held = stationary(np.array(coefficients), 20.0)
    assert correlation_length(free) > 20.0
    assert correlation_length(held) == pytest.approx(20.0, rel=1e-3)
    assert process(held).isstationary
    np.testing.assert_array_equal(stationary(np.array([0.5]), 20.0), [0.5])
