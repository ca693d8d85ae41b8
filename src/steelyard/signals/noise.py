"""Noise with a stated standard deviation and spectrum, stationary from the first sample."""

from __future__ import annotations

import math

import numpy as np

from ..errors import SignalError
from .checks import check_order
from .lowpass import STREAM_TOLERANCE, low_pass
from .recursive import autoregression_filter, sosfilt

# What the start at rest leaves of the amplitude: the variance of the first sample is then right to 1e-8.
_START_TOLERANCE = 1e-4


def white_noise(samples: int, std: np.ndarray | float, rng: np.random.Generator) -> np.ndarray:
    """Return Gaussian white noise (rows, samples) with the standard deviations ``std`` (rows,) or one number."""
    sizes = _sizes(samples, std)
    return sizes[:, None] * rng.standard_normal((len(sizes), samples))


def band_limited_noise(
    samples: int, rate: float, band: float, std: np.ndarray | float, rng: np.random.Generator, order: int = 2
) -> np.ndarray:
    """Return white noise through a Butterworth low-pass, scaled to the stated standard deviations.

    Args:
        samples: Number of samples.
        rate: Sampling rate [Hz].
        band: Cut-off (-3 dB) of the low-pass [Hz].
        std: Standard deviation of each row (rows,), or one number.
        rng: Source of random numbers.
        order: Order of the low-pass.

    Returns:
        Noise (rows, samples), stationary from the first sample.

    Raises:
        SignalError: If the band is not below the Nyquist frequency, or a standard deviation is negative.
    """
    sizes = _sizes(samples, std)
    filter_ = low_pass(rate, band, order, "forward")
    before = filter_.memory(_START_TOLERANCE)
    impulse = np.eye(1, filter_.memory(STREAM_TOLERANCE) + 1)
    gain = float(np.linalg.norm(sosfilt(filter_.sections, impulse)[0]))
    white = rng.standard_normal((len(sizes), before + samples))
    return sizes[:, None] / gain * sosfilt(filter_.sections, white)[0][:, before:]


def autoregressive_noise(
    samples: int, coefficients: np.ndarray, std: np.ndarray | float, rng: np.random.Generator
) -> np.ndarray:
    """Return noise (rows, samples) of ``x[k] = a1 x[k-1] + a2 x[k-2] + ... + e[k]``, e white.

    Args:
        samples: Number of samples.
        coefficients: a1, a2, ... (p,).
        std: Standard deviation of x in each row (rows,), or one number.
        rng: Source of random numbers.

    Raises:
        SignalError: If the recursion is not stable, or a standard deviation is negative.
    """
    sizes = _sizes(samples, std)
    weights = np.atleast_1d(np.asarray(coefficients, dtype=np.float64))
    if weights.ndim != 1 or not np.isfinite(weights).all():
        raise SignalError(f"autoregressive coefficients: got {coefficients}, allowed is a list of finite numbers")
    check_order(len(weights), highest=64)
    radius = float(np.abs(np.roots(np.concatenate([[1.0], -weights]))).max(initial=0.0))
    if radius >= 1 - 1e-6:
        raise SignalError(
            f"autoregressive coefficients: got a root of size {radius:.6g}, allowed are roots below 1 (stable)"
        )
    before, horizon = (
        50 + int(1.5 * math.log(tolerance) / math.log(max(radius, 1e-3)))
        for tolerance in (_START_TOLERANCE, STREAM_TOLERANCE)
    )
    gain = float(np.linalg.norm(autoregression_filter(weights, np.eye(1, horizon))))
    white = rng.standard_normal((len(sizes), before + samples))
    return sizes[:, None] / gain * autoregression_filter(weights, white)[:, before:]


def _sizes(samples: int, std: np.ndarray | float) -> np.ndarray:
    sizes = np.atleast_1d(np.asarray(std, dtype=np.float64))
    if samples < 1:
        raise SignalError(f"noise: got {samples} samples, needed is at least 1")
    if sizes.ndim != 1 or not (np.isfinite(sizes) & (sizes >= 0)).all():
        raise SignalError(f"noise: got standard deviations {std}, allowed are finite numbers of 0 and above, one a row")
    return sizes
