"""Averages over periods, with the variance of the mean from the spread between periods (P4.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..distributions import chi2_ppf
from ..errors import SignalError
from .checks import as_rows, check_positive, frozen

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

    def pooled_interval(self, confidence: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Return the chi-square interval of the pooled variance (rows,), (rows,) for white noise."""
        tail = (1 - confidence) / 2
        total = self.pooled_variance * self.pooled_dof
        limits = chi2_ppf([1 - tail, tail], self.pooled_dof)
        return total / limits[0], total / limits[1]


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
    return PeriodAverage(
        mean=frozen(mean),
        variance=frozen(variance),
        variance_of_mean=frozen(variance / periods),
        pooled_variance=frozen(variance.mean(axis=1)),
        dof=periods - 1,
        pooled_dof=(periods - 1) * samples,
        time=frozen(np.arange(samples) * (folded.period / samples)),
        folded=folded,
    )
