"""Estimated serial correlation: near the truth, run by run."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg

from steelyard.judge.whiteness import SerialCorrelation, autoregression, correlated
from steelyard.signals import autoregressive_noise, decimate, decimation_filter


def test_burgs_method_finds_the_coefficients_and_the_order():
    x = autoregressive_noise(6000, np.array([1.2, -0.5]), 1.0, np.random.default_rng(0))[0]
    found = autoregression([x[:1000], x[1000:2500], x[2500:]], 12)
    assert len(found) == 2
    np.testing.assert_allclose(found, [1.2, -0.5], atol=0.05)
    assert autoregression([np.random.default_rng(1).standard_normal(3000)], 12).size == 0
    assert autoregression([np.zeros(50)], 3).size == 0


def test_the_correlation_of_an_autoregression_is_found():
    x = autoregressive_noise(8000, np.array([0.8]), 1.0, np.random.default_rng(0))[0]
    lags = SerialCorrelation().estimate([x[:3000], x[3000:]])
    assert lags[0] == 1.0
    np.testing.assert_allclose(lags[:8], 0.8 ** np.arange(8), atol=0.04)


def test_the_decimators_correlation_is_the_starting_point():
    white = np.random.default_rng(2).standard_normal((1, 150_000))
    decimator = decimation_filter(1000.0, 50)
    x = decimate(white, 1000.0, 50).values[0]
    lags = SerialCorrelation(decimator.noise_correlation(60)).estimate([x])
    np.testing.assert_allclose(lags[:15], decimator.noise_correlation(14), atol=0.06)
    # The variance of a mean over many samples, which is what matters for bins.
    expected = 2 * decimator.noise_correlation(60).sum() - 1
    assert 2 * lags.sum() - 1 == pytest.approx(expected, rel=0.15)


def test_the_product_with_the_correlation_matrix_stays_within_runs():
    lags = np.array([1.0, 0.5, -0.2])
    columns = np.random.default_rng(3).standard_normal((30, 2))
    matrix = linalg.toeplitz(np.pad(lags, (0, 27)))
    matrix[:12, 12:] = matrix[12:, :12] = 0.0
    assert correlated(columns, [12, 18], lags) == pytest.approx(matrix @ columns, abs=1e-13)
