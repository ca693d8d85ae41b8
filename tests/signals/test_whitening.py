"""Whitening by prediction: equal to the Cholesky factor, in one piece or in blocks, and white in fact."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg

from steelyard.errors import SignalError
from steelyard.signals import decimate, decimation_filter
from steelyard.signals.whitening import LevinsonWhitener, default_order, whitened_correlation

DECIMATOR = decimation_filter(1000.0, 50).noise_correlation(400)


def first_order(coefficient: float, lags: int) -> np.ndarray:
    return coefficient ** np.arange(lags + 1.0)


def noise(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, columns))


@pytest.mark.parametrize("correlation", [DECIMATOR, first_order(0.95, 300), first_order(-0.5, 40), np.ones(1)])
def test_whitening_solves_with_the_cholesky_factor_of_the_correlation_matrix(correlation):
    factor = np.linalg.cholesky(linalg.toeplitz(correlation))
    white = noise(len(correlation), 7)
    found = LevinsonWhitener(correlation).push(factor @ white)
    np.testing.assert_allclose(found, white, atol=1e-9)


def test_a_first_order_autoregression_needs_order_one_and_is_continued_beyond_the_lags_given():
    whitener = LevinsonWhitener(first_order(0.8, 5), order=1)
    rows = noise(500, 3)
    found = whitener.push(rows)
    np.testing.assert_allclose(found[0], rows[0], atol=1e-15)
    np.testing.assert_allclose(found[1:], (rows[1:] - 0.8 * rows[:-1]) / 0.6, atol=1e-12)
    np.testing.assert_allclose(whitener.filter, [1 / 0.6, -0.8 / 0.6], atol=1e-14)


@settings(max_examples=40, deadline=None)
@given(order=st.sampled_from([0, 1, 7, 90]), cuts=st.lists(st.integers(0, 400), max_size=20))
def test_blocks_give_the_result_of_the_whole(order, cuts):
    rows = noise(400, 2)
    whitener = LevinsonWhitener(DECIMATOR, order)
    whole = whitener.push(rows)
    whitener.restart()
    parts = [whitener.push(rows[a:b]) for a, b in pairwise([0, *sorted(cuts), 400])]
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=0, atol=1e-12)


def test_after_a_restart_nothing_is_remembered():
    whitener = LevinsonWhitener(DECIMATOR, 30)
    first = whitener.push(noise(100, 2))
    whitener.restart()
    np.testing.assert_array_equal(whitener.push(noise(100, 2)), first)
    whitener.restart()
    assert whitener.push(noise(10, 5)).shape == (10, 5)


def test_white_noise_through_the_decimator_becomes_white_again():
    decimated = decimate(noise(30, 500_000), 1000.0, 50).values.T
    white = LevinsonWhitener(DECIMATOR, default_order(DECIMATOR, 0.01)).push(decimated)
    total = np.sum(white**2)
    for lag in (1, 2, 5, 20):
        # 30 series of nearly 10,000: five standard deviations are 0.009.
        assert abs(np.sum(white[lag:] * white[:-lag]) / total) < 0.012
    gain = decimation_filter(1000.0, 50).noise_gain()
    np.testing.assert_allclose(white.var() / gain, 1.0, rtol=0.02)


def test_the_default_order_is_the_smallest_that_meets_the_tolerance():
    for tolerance, lags, expected in [(0.01, 1, 24), (0.02, None, 74), (0.01, None, 140)]:
        order = default_order(DECIMATOR, tolerance, lags)
        assert order == expected
        assert np.abs(whitened_correlation(DECIMATOR, order)[1:][:lags]).max() <= tolerance
        assert np.abs(whitened_correlation(DECIMATOR, order - 1)[1:][:lags]).max() > tolerance
    assert default_order(np.ones(1)) == 0
    assert default_order(first_order(0.8, 200)) == 1


def test_whitened_correlation_is_that_of_the_filtered_signal():
    left = whitened_correlation(DECIMATOR, 12)
    taps = LevinsonWhitener(DECIMATOR, 12).filter
    matrix = linalg.toeplitz(DECIMATOR[:60])
    shifted = [np.concatenate([np.zeros(k), taps, np.zeros(60 - 13 - k)]) for k in range(10)]
    expected = np.array([shifted[0] @ matrix @ other for other in shifted])
    np.testing.assert_allclose(left[:10], expected / expected[0], atol=1e-12)


def test_numbers_that_are_no_autocorrelation_are_refused():
    with pytest.raises(SignalError, match=r"no signal has .at lag 2.*add a little to lag 0"):
        LevinsonWhitener(np.array([1.0, 0.9, -0.9]))
    with pytest.raises(SignalError, match=r"at lag 2.*give more lags"):
        LevinsonWhitener(first_order(0.9, 1), order=50)
    with pytest.raises(SignalError, match=r"got 2 at lag 0.*divide by the variance"):
        LevinsonWhitener(np.array([2.0, 0.5]))
    with pytest.raises(SignalError, match=r"got shape \(0,\)"):
        LevinsonWhitener(np.zeros(0))
    with pytest.raises(SignalError, match="autocorrelation: got nan"):
        default_order(np.array([1.0, np.nan]))
    with pytest.raises(SignalError, match="order of prediction: got -1"):
        LevinsonWhitener(DECIMATOR, -1)
    with pytest.raises(SignalError, match="tolerance: got 0"):
        default_order(DECIMATOR, 0.0)


def test_rows_that_do_not_fit_are_refused():
    whitener = LevinsonWhitener(DECIMATOR, 5)
    with pytest.raises(SignalError, match=r"got shape \(4,\).*x\[:, None\]"):
        whitener.push(np.zeros(4))
    whitener.push(np.zeros((4, 2)))
    with pytest.raises(SignalError, match="got 3 columns, the rows before had 2; call restart"):
        whitener.push(np.zeros((4, 3)))
    with pytest.raises(SignalError, match="got nan at row 1, sample 5"):
        whitener.push(np.array([[0.0, 0.0], [0.0, np.nan]]))
