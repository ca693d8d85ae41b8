"""Least-squares Fourier series on selected lines with exact derivatives, and averages over periods (P4.1).

``q(t) = q0 + sum_k a_k sin(k w t) + b_k cos(k w t)`` with ``w = 2 pi / period`` is linear in its coefficients;
its derivatives need no differences. Stamps need not be even, nor the period a whole number of samples.

Samples of whole periods can be averaged instead; the variance of the mean follows from the spread between periods.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..errors import SignalError
from .checks import as_rows, check_positive, frozen
from .sampling import check_time


@dataclass(frozen=True)
class FourierFit:
    """A Fourier series fitted to signals.

    Attributes:
        period: Period [s].
        harmonics: The lines fitted, as multiples of 1 / period (K,).
        offset: Constant of each row (rows,).
        sine: Coefficients of the sines (rows, K).
        cosine: Coefficients of the cosines (rows, K).
        residual_variance: Sum of squared residuals over the degrees of freedom (rows,).
        dof: Degrees of freedom: samples less coefficients.
        coefficient_std: Standard deviation of offset, sines and cosines for white noise (rows, 2 K + 1).
    """

    period: float
    harmonics: tuple[int, ...]
    offset: np.ndarray
    sine: np.ndarray
    cosine: np.ndarray
    residual_variance: np.ndarray
    dof: int
    coefficient_std: np.ndarray

    def evaluate(self, time: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the series and its first two derivatives (rows, N) at times (N,) [s]."""
        angular = 2 * np.pi / self.period * np.array(self.harmonics, dtype=float)
        angles = np.multiply.outer(angular, np.asarray(time, dtype=float))
        sines, cosines = np.sin(angles), np.cos(angles)
        rate = angular[:, None]
        q = self.offset[:, None] + self.sine @ sines + self.cosine @ cosines
        qd = self.sine @ (rate * cosines) - self.cosine @ (rate * sines)
        qdd = -self.sine @ (rate**2 * sines) - self.cosine @ (rate**2 * cosines)
        return q, qd, qdd


def fourier_basis(time: np.ndarray, frequency: float, harmonics: Sequence[int]) -> np.ndarray:
    """Return the matrix (N, 2 K + 1) of one, the sines and the cosines at times (N,) [s], frequency in Hz."""
    angles = np.multiply.outer(time, 2 * np.pi * frequency * np.array(harmonics, dtype=float))
    return np.hstack([np.ones((len(time), 1)), np.sin(angles), np.cos(angles)])


def fit_fourier(values: np.ndarray, time: np.ndarray, period: float, harmonics: int | Sequence[int] = 5) -> FourierFit:
    """Fit a Fourier series of a known period by least squares.

    Args:
        values: Signals (rows, N), sampled fast enough for the highest line.
        time: Stamps (N,) [s], even or not.
        period: Period [s].
        harmonics: The lines 1, 2, ..., K for a number K, or a list of lines.

    Raises:
        SignalError: If there are too few samples, or the lines are indistinguishable at these stamps.
    """
    period = check_positive(period, "period", "s")
    lines = _lines(harmonics)
    count = 2 * len(lines) + 1
    rows, stamps = as_rows(values, least=count + 1), check_time(time)
    if len(stamps) != rows.shape[1]:
        raise SignalError(
            f"Fourier fit: got {len(stamps)} time stamps for {rows.shape[1]} samples, allowed is one each"
        )
    q, r = np.linalg.qr(fourier_basis(stamps, 1 / period, lines))
    if np.abs(np.diag(r)).min() < 1e-9 * np.sqrt(len(stamps)):
        raise SignalError(
            f"Fourier fit: got lines up to {lines[-1] / period:.4g} Hz that {len(stamps)} samples over "
            f"{stamps[-1] - stamps[0]:.4g} s do not resolve; choose fewer lines, or record a whole period"
        )
    coefficients = np.linalg.solve(r, q.T @ rows.T).T
    residual = rows - (coefficients @ r.T) @ q.T
    dof = rows.shape[1] - count
    variance = (residual**2).sum(axis=1) / dof
    spread = np.sqrt((np.linalg.inv(r) ** 2).sum(axis=1))
    sine, cosine = coefficients[:, 1 : 1 + len(lines)], coefficients[:, 1 + len(lines) :]
    parts = (coefficients[:, 0], sine, cosine, variance)
    offset, sine, cosine, variance = (frozen(part.copy()) for part in parts)
    std = frozen(np.sqrt(variance)[:, None] * spread)
    return FourierFit(period, lines, offset, sine, cosine, variance, dof, std)


def _lines(harmonics: int | Sequence[int]) -> tuple[int, ...]:
    lines = tuple(range(1, harmonics + 1)) if isinstance(harmonics, int) else tuple(int(k) for k in harmonics)
    if not lines or min(lines) < 1 or len(set(lines)) != len(lines):
        raise SignalError(f"harmonics: got {harmonics}, allowed are a number above 0 or a list of different ones")
    return tuple(sorted(lines))


OUT_OF_STEP = 0.01
"""Periods are cut without interpolation if the last one is then out of step by no more than this many samples."""


@dataclass(frozen=True)
class Folded:
    """Signals cut into periods.

    Attributes:
        values: Signals (rows, periods, P), P samples a period.
        period: Period [s].
        method: ``exact``: the samples themselves. ``cubic``: the period is no whole number of samples, so a cubic
            spline was read at P equal steps a period; it passes smooth motion and makes white noise smaller.
        left_over: Samples after the last whole period.
    """

    values: np.ndarray
    period: float
    method: Literal["exact", "cubic"]
    left_over: int


@dataclass(frozen=True)
class PeriodAverage:
    """Signals averaged over periods.

    Attributes:
        mean: Mean period (rows, P).
        variance: Variance of a single sample at each point of the period (rows, P), from the spread between periods.
        variance_of_mean: ``variance / periods`` (rows, P).
        pooled_variance: Variance of a single sample, all points of the period together (rows,).
        dof: Degrees of freedom at each point: periods - 1.
        pooled_dof: Degrees of freedom of the pooled variance.
        time: Time within the period (P,) [s].
        folded: The periods themselves and how they were cut.
    """

    mean: np.ndarray
    variance: np.ndarray
    variance_of_mean: np.ndarray
    pooled_variance: np.ndarray
    dof: int
    pooled_dof: int
    time: np.ndarray
    folded: Folded

    @property
    def periods(self) -> int:
        """Number of periods averaged."""
        return self.dof + 1


def fold(values: np.ndarray, rate: float, period: float, least: int = 2) -> Folded:
    """Cut signals (rows, N) sampled at ``rate`` [Hz] into whole periods of ``period`` [s].

    Raises:
        SignalError: If there are fewer than ``least`` periods, or fewer than four samples a period.
    """
    rows, length = as_rows(values), check_positive(period, "period", "s") * check_positive(rate, "sampling rate")
    samples = round(length)
    periods = int((rows.shape[1] + 1e-6 * length) / length)
    if samples < 4:
        raise SignalError(
            f"period: got {period:g} s, {length:.3g} samples at {rate:g} Hz, needed are at least 4 samples"
        )
    if periods < least:
        raise SignalError(
            f"periodic signal: got {rows.shape[1]} samples, {rows.shape[1] / length:.3g} periods of {period:g} s, "
            f"needed are at least {least} periods"
        )
    left_over = rows.shape[1] - int(np.ceil(periods * length - 1e-6))
    if abs(samples - length) * periods <= OUT_OF_STEP:
        return Folded(frozen(_cut(rows, periods, samples)), float(period), "exact", left_over)
    at = np.add.outer(np.arange(periods) * length, np.arange(samples) * (length / samples)).ravel()
    at = np.minimum(at, rows.shape[1] - 1)
    from scipy import interpolate  # imported when used: it takes a third of a second, and few motions are folded

    smooth = interpolate.CubicSpline(np.arange(rows.shape[1]), rows, axis=1)(at)
    return Folded(frozen(_cut(smooth, periods, samples)), float(period), "cubic", left_over)


def _cut(rows: np.ndarray, periods: int, samples: int) -> np.ndarray:
    return rows[:, : periods * samples].reshape(rows.shape[0], periods, samples).copy()


def average_periods(values: np.ndarray, rate: float, period: float) -> PeriodAverage:
    """Average signals over their periods.

    Args:
        values: Signals (rows, N) with at least two periods.
        rate: Sampling rate [Hz].
        period: Period [s], as commanded or from :func:`find_period`; need not be a whole number of samples.

    Raises:
        SignalError: If there are fewer than two periods.
    """
    folded = fold(values, rate, period)
    periods, samples = folded.values.shape[1:]
    mean = folded.values.mean(axis=1)
    variance = folded.values.var(axis=1, ddof=1)
    arrays = map(frozen, (mean, variance, variance / periods, variance.mean(axis=1)))
    time = frozen(np.arange(samples) * (folded.period / samples))
    return PeriodAverage(*arrays, dof=periods - 1, pooled_dof=(periods - 1) * samples, time=time, folded=folded)
