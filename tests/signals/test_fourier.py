"""The Fourier fit is exact on periodic data and honest about noise."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.errors import SignalError
from steelyard.signals import fit_fourier


def series(time: np.ndarray, period: float, lines=(1, 2, 3, 4, 5), seed: int = 0):
    """A Fourier series of three rows and its derivatives, coefficient by coefficient."""
    rng = np.random.default_rng(seed)
    q, qd, qdd = (np.zeros((3, len(time))) for _ in range(3))
    q += rng.standard_normal((3, 1))
    for line in lines:
        w = 2 * np.pi * line / period
        a, b = rng.standard_normal((2, 3, 1))
        q += a * np.sin(w * time) + b * np.cos(w * time)
        qd += w * (a * np.cos(w * time) - b * np.sin(w * time))
        qdd -= w**2 * (a * np.sin(w * time) + b * np.cos(w * time))
    return q, qd, qdd


@pytest.mark.parametrize("period", [10.0, 10.0037, 7.123])
@pytest.mark.parametrize("lines", [(1, 2, 3, 4, 5), (1, 3, 12)])
def test_noise_free_periodic_data_are_met_with_all_derivatives(period, lines):
    time = np.arange(4000) / 150.0
    motion = series(time, period, lines)
    fit = fit_fourier(motion[0], time, period, lines)
    for got, expected in zip(fit.evaluate(time), motion, strict=True):
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9)
    assert fit.harmonics == lines
    assert fit.residual_variance.max() < 1e-20


def test_uneven_stamps_are_met_too():
    time = np.cumsum(np.random.default_rng(1).uniform(0.001, 0.02, 3000))
    motion = series(time, 5.0)
    fit = fit_fourier(motion[0], time, 5.0)
    np.testing.assert_allclose(fit.evaluate(time)[2], motion[2], rtol=0, atol=1e-9)


def test_residual_variance_and_coefficient_spread_are_those_of_the_noise():
    time = np.arange(1500) / 150.0
    truth = fit_fourier(series(time, 10.0)[0], time, 10.0)
    rng = np.random.default_rng(0)
    offsets, variances, fit = [], [], truth
    for _ in range(300):
        fit = fit_fourier(series(time, 10.0)[0] + 0.1 * rng.standard_normal((3, 1500)), time, 10.0)
        offsets.append((fit.sine - truth.sine) / fit.coefficient_std[:, 1:6])
        variances.append(fit.residual_variance)
    assert fit.dof == 1500 - 11
    assert np.mean(variances) == pytest.approx(0.01, rel=0.01)
    assert np.std(offsets) == pytest.approx(1.0, abs=4 / np.sqrt(2 * 4500))


def test_bad_input_is_refused():
    time = np.arange(100) / 100.0
    with pytest.raises(SignalError, match="harmonics: got 0"):
        fit_fourier(np.zeros((1, 100)), time, 1.0, 0)
    with pytest.raises(SignalError, match="harmonics"):
        fit_fourier(np.zeros((1, 100)), time, 1.0, (1, 1))
    with pytest.raises(SignalError, match="needed are at least 12"):
        fit_fourier(np.zeros((1, 11)), time[:11], 1.0)
    with pytest.raises(SignalError, match="do not resolve"):
        fit_fourier(np.zeros((1, 100)), time, 1.0, (1, 99))
    with pytest.raises(SignalError, match="period: got -1"):
        fit_fourier(np.zeros((1, 100)), time, -1.0)
    with pytest.raises(SignalError, match="99 time stamps for 100 samples"):
        fit_fourier(np.zeros((1, 100)), time[:-1], 1.0)
