"""Noise has the size and the spectrum stated, from the first sample on."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal
from statsmodels.tsa.arima_process import arma_acf

from steelyard.errors import SignalError
from steelyard.signals import autoregressive_noise, band_limited_noise, white_noise


def test_white_noise_is_white_with_the_size_stated():
    noise = white_noise(20_000, np.array([2.0, 0.1, 0.0]), np.random.default_rng(0))
    np.testing.assert_allclose(noise.std(axis=1), [2.0, 0.1, 0.0], rtol=0.02)
    assert np.corrcoef(noise[0, 1:], noise[0, :-1])[0, 1] == pytest.approx(0.0, abs=4 / np.sqrt(20_000))


@pytest.mark.parametrize(("rate", "band", "order"), [(1000.0, 20.0, 2), (10_000.0, 20.0, 2), (100.0, 40.0, 4)])
def test_band_limited_noise_has_its_size_at_every_sample(rate, band, order):
    # Independent runs, so that the size of single samples can be judged, the first one too.
    noise = band_limited_noise(50, rate, band, np.full(4000, 2.0), np.random.default_rng(1), order)
    assert noise.shape == (4000, 50)
    np.testing.assert_allclose(noise[:, [0, 20, 49]].std(axis=0), 2.0, rtol=5 / np.sqrt(8000))


def test_band_limited_noise_has_its_3_db_point_at_the_band():
    noise = band_limited_noise(400_000, 1000.0, 50.0, 1.0, np.random.default_rng(2))
    frequency, density = signal.welch(noise[0], 1000.0, nperseg=1000)
    low = density[(frequency >= 1) & (frequency <= 15)].mean()
    assert density[(frequency >= 48) & (frequency <= 52)].mean() / low == pytest.approx(0.5, rel=0.1)
    assert density[frequency == 200].mean() / low < 0.01


def test_autoregressive_noise_has_the_correlation_of_its_recursion():
    weights = np.array([1.2, -0.4])
    noise = autoregressive_noise(200_000, weights, 0.7, np.random.default_rng(3))[0]
    expected = arma_acf(np.array([1.0, -1.2, 0.4]), np.array([1.0]), lags=6)
    got = [np.corrcoef(noise[: len(noise) - k], noise[k:])[0, 1] if k else 1.0 for k in range(6)]
    np.testing.assert_allclose(got, expected, atol=0.02)
    assert noise.std() == pytest.approx(0.7, rel=0.02)


@pytest.mark.large
def test_strongly_correlated_noise_has_its_size_from_the_first_sample():
    noise = autoregressive_noise(3, np.array([0.999]), np.full(3000, 1.5), np.random.default_rng(4))
    np.testing.assert_allclose(noise.std(axis=0), 1.5, rtol=5 / np.sqrt(6000))


def test_the_same_seed_gives_the_same_noise():
    first, second = (band_limited_noise(50, 100.0, 10.0, 1.0, np.random.default_rng(9)) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_impossible_noise_is_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(SignalError, match="got 60 Hz, allowed is below the Nyquist frequency 50 Hz"):
        band_limited_noise(10, 100.0, 60.0, 1.0, rng)
    with pytest.raises(SignalError, match="root of size 1"):
        autoregressive_noise(10, np.array([1.0]), 1.0, rng)
    with pytest.raises(SignalError, match="standard deviations"):
        white_noise(10, -1.0, rng)
    with pytest.raises(SignalError, match="got 0 samples"):
        white_noise(0, 1.0, rng)
