"""Whitening: the inverse Cholesky factor of the noise's covariance, whatever the pieces."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg

from estimate.synthetic import resolved_for
from steelyard.signals.whitening import FLOOR, RowWhitener, autoregressive_correlation, noise_autocovariance

WHITE = np.eye(1, 20)[0]


def decimator_whitener(correlation):
    return RowWhitener(correlation, np.zeros(0))


def cholesky_whitened(lags, rows):
    return linalg.solve_triangular(np.linalg.cholesky(linalg.toeplitz(lags)), rows, lower=True)


def padded(lags, count):
    return np.pad(lags, (0, max(0, count - len(lags))))[:count]


def decimator_lags(factor, count):
    lags = resolved_for(factor).decimation_filter.noise_correlation(160).copy()
    lags[0] += FLOOR
    return padded(lags / lags[0], count)


@pytest.mark.parametrize("coefficients", [[0.8], [1.1, -0.3], [0.3, 0.2, -0.1, 0.4]], ids=str)
def test_an_autoregression_is_whitened_as_by_its_covariance(coefficients):
    rows = np.random.default_rng(0).standard_normal((70, 3))
    expected = cholesky_whitened(autoregressive_correlation(np.array(coefficients), 69), rows)
    np.testing.assert_allclose(RowWhitener(WHITE, np.array(coefficients)).push(rows), expected, atol=1e-10)


@pytest.mark.parametrize("factor", [2, 10])
def test_the_decimator_s_correlation_is_whitened_as_by_its_covariance(factor):
    rows = np.random.default_rng(1).standard_normal((80, 2))
    expected = cholesky_whitened(decimator_lags(factor, 80), rows)
    np.testing.assert_allclose(
        decimator_whitener(resolved_for(factor).decimation_filter.noise_correlation(160)).push(rows),
        expected,
        atol=1e-7,
    )


@pytest.mark.parametrize("coefficients", [[0.7, -0.2], [0.95]], ids=str)
def test_both_together_are_whitened_as_by_their_covariance(coefficients):
    rows = np.random.default_rng(2).standard_normal((60, 2))
    decimator, persistent = decimator_lags(10, 161), autoregressive_correlation(np.array(coefficients), 300)
    lags = [
        sum(decimator[abs(j)] * persistent[abs(k - j)] for j in range(-160, 161)) for k in range(60)
    ]  # fmt: skip
    whitener = RowWhitener(resolved_for(10).decimation_filter.noise_correlation(160), np.array(coefficients))
    np.testing.assert_allclose(whitener.push(rows), cholesky_whitened(lags, rows), atol=1e-6)


def test_a_decimated_autoregression_comes_out_white_from_the_first_row_on():
    """Of 4000 runs of 40 rows: variance 1 and no correlation, at the start as later."""
    coefficients, filter_ = np.array([0.8]), resolved_for(10).decimation_filter
    lags = noise_autocovariance(filter_.noise_correlation(160), coefficients, 39)
    root = np.linalg.cholesky(linalg.toeplitz(lags) + 1e-9 * np.eye(40))
    noise = root @ np.random.default_rng(7).standard_normal((40, 4000))
    white = RowWhitener(filter_.noise_correlation(160), coefficients).push(noise)
    covariance = white @ white.T / 4000
    np.testing.assert_allclose(np.diag(covariance), 1, atol=5 * np.sqrt(2 / 4000))
    assert np.abs(covariance - np.diag(np.diag(covariance))).max() < 5 / np.sqrt(4000)


def test_pieces_give_the_whole_and_a_restart_begins_anew():
    rows = np.random.default_rng(3).standard_normal((300, 2))
    correlation = resolved_for(10).decimation_filter.noise_correlation(160)
    whole = RowWhitener(correlation, np.array([0.5, 0.1])).push(rows)
    whitener = RowWhitener(correlation, np.array([0.5, 0.1]))
    pieces = [whitener.push(part) for part in np.split(rows, [1, 2, 7, 90, 91, 200])]
    np.testing.assert_allclose(np.concatenate(pieces), whole, atol=1e-12)
    whitener.restart()
    np.testing.assert_allclose(whitener.push(rows[:5]), whole[:5], atol=1e-12)


def test_whiteners_of_one_decimator_do_not_disturb_each_other():
    rows = np.random.default_rng(4).standard_normal((100, 1))
    correlation = resolved_for(10).decimation_filter.noise_correlation(160)
    first, second = decimator_whitener(correlation), decimator_whitener(correlation)
    expected = decimator_whitener(correlation).push(rows)
    halves = [first.push(rows[:50])]
    second.push(rows[::-1])
    np.testing.assert_allclose(np.concatenate([*halves, first.push(rows[50:])]), expected, atol=1e-13)


def test_decimated_white_noise_comes_out_white():
    """What is left is what the floor leaves of the decimator's edge: 4 % at most."""
    filter_ = resolved_for(10).decimation_filter
    raw = np.random.default_rng(5).standard_normal(205_000)
    noise = np.convolve(raw, filter_.impulse_response(), "valid")[::10][:20_000] / np.sqrt(filter_.noise_gain())
    white = decimator_whitener(filter_.noise_correlation(160)).push(noise[:, None])[200:, 0]
    found = np.array([white[k:] @ white[: len(white) - k] for k in range(31)]) / len(white)
    assert abs(found[0] - 1) < 0.05
    assert np.abs(found[1:]).max() < 0.04


def test_without_correlation_rows_stay_as_they_are():
    rows = np.random.default_rng(6).standard_normal((9, 2))
    np.testing.assert_array_equal(RowWhitener(WHITE, np.zeros(0)).push(rows), rows)
