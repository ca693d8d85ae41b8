"""Tests of whiteness: are residuals white, or only as correlated as the decimator makes them (P5.5)?

Residuals come as contiguous runs at one rate, between which nothing is known. Their serial correlation is estimated as
that of an autoregression: the decimator's, if its correlation is given, times one fitted to what that leaves (Burg's
method). Neighbouring residuals resemble each other, so that the mean of n of them is known less well than that of n
independent ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..distributions import chi2_sf, norm_sf
from ..errors import EstimateError
from ..signals import LevinsonWhitener, whitened_series
from ..signals.recursive import convolve_rows
from ..signals.whitening import HIGHEST_ORDER, check_correlation, default_order


def checked_runs(runs: Sequence[np.ndarray], what: str = "residuals", least: int = 3) -> list[np.ndarray]:
    """Return the runs that hold samples as finite float64 arrays (n_i,), at least ``least`` samples together.

    Raises:
        EstimateError: If a run is not one-dimensional, holds a value that is not finite, or there are too few samples.
    """
    if isinstance(runs, np.ndarray) and runs.ndim == 1:
        raise EstimateError(f"{what}: got one array, allowed is a list of runs; give a single run as [x]")
    arrays = [np.asarray(run, dtype=np.float64) for run in runs]
    for number, run in enumerate(arrays):
        if run.ndim != 1:
            raise EstimateError(f"{what}: got shape {run.shape} in run {number}, allowed is (samples,)")
        if not np.isfinite(run).all():
            sample = int(np.flatnonzero(~np.isfinite(run))[0])
            raise EstimateError(
                f"{what}: got {run[sample]} in run {number}, sample {sample}, allowed are finite numbers; "
                "leave these rows out before judging"
            )
    total = sum(len(run) for run in arrays)
    if total < least:
        raise EstimateError(f"{what}: got {total} samples, needed are at least {least}")
    return [run for run in arrays if len(run)]


def checked_residuals(residuals: np.ndarray, least: int) -> np.ndarray:
    """Return residuals (r,) that are finite, at least ``least`` of them and not all alike.

    Raises:
        EstimateError: If they are not.
    """
    (values,) = checked_runs([residuals], least=least)
    if np.ptp(values) == 0:
        raise EstimateError(f"residuals: got {len(values)} times {values[0]:g}, allowed are values that differ")
    return values


def squares_of(runs: Sequence[np.ndarray]) -> float:
    """Return the sum of squares over all runs, refusing zero."""
    total = float(sum(run @ run for run in runs))
    if total == 0:
        raise EstimateError("residuals: all are zero, so there is nothing to judge; is this a recording without noise?")
    return total


def lagged_sum(runs: Sequence[np.ndarray], lag: int) -> float:
    """Return the sum of x[t] x[t - lag] over all runs; no product crosses a break."""
    return float(sum(run[lag:] @ run[: len(run) - lag] for run in runs if len(run) > lag))


# What whitening may leave, in standard deviations of an estimated autocorrelation: its share of the statistic is small.
_LEFT_OVER = 0.3


@dataclass(frozen=True)
class DurbinWatson:
    """Durbin-Watson statistic with the value that white noise before the decimator gives.

    Attributes:
        statistic: ``sum (e[t] - e[t-1])^2 / sum e[t]^2``.
        expected: Its value for white noise after the decimator; 2 for long series without one.
        z: The difference in standard deviations; negative for residuals that are more correlated than the decimator's.
        p: Probability of a difference as large in either direction.
    """

    statistic: float
    expected: float
    z: float
    p: float


@dataclass(frozen=True)
class LjungBox:
    """Ljung-Box statistic: all autocorrelations up to a lag at once.

    Attributes:
        statistic: ``Q = n (n + 2) sum_k r(k)^2 / (n - k)``.
        p: Probability of a larger Q for white noise, from chi-square with ``lags - fitted`` degrees of freedom.
        lags: Largest lag.
    """

    statistic: float
    p: float
    lags: int


def autocorrelation(runs: Sequence[np.ndarray], max_lag: int, *, centre: bool = True) -> np.ndarray:
    """Return the autocorrelation (max_lag + 1,) of a series in runs; no product crosses a break.

    ``r(k) = sum x[t] x[t-k] / sum x[t]^2`` with x the series less its mean over all runs (as it is without ``centre``).

    Raises:
        EstimateError: If no run is longer than ``max_lag``, or the series is constant.
    """
    series = checked_runs(runs)
    longest = max(len(run) for run in series)
    if not 0 <= max_lag < longest:
        raise EstimateError(
            f"autocorrelation: got a largest lag of {max_lag}, allowed are 0 to {longest - 1} (the longest run has "
            f"{longest} samples)"
        )
    if centre:
        mean = float(np.concatenate(series).mean())
        series = [run - mean for run in series]
    total = squares_of(series)
    result = np.array([lagged_sum(series, lag) for lag in range(max_lag + 1)]) / total
    result.setflags(write=False)
    return result


def durbin_watson(runs: Sequence[np.ndarray], correlation: np.ndarray | None = None) -> DurbinWatson:
    """Compare the Durbin-Watson statistic with what the decimator alone would give.

    With R runs and n samples in all, ``E[d] = 2 (1 - r(1)) (n - R) / n``. As ``d`` is nearly ``2 (1 - r(1))`` of the
    estimated r(1), its variance follows from Bartlett's formula:

    ``var d = 4 / (n - R) sum_i [r(i)^2 + r(i+1) r(i-1) - 4 r(1) r(i) r(i-1) + 2 r(1)^2 r(i)^2]``, i from -inf to inf;
    4 / (n - R) for white noise.

    Args:
        runs: Residuals of one equation, a series for each contiguous segment.
        correlation: The decimator's r(0) = 1, r(1), ...; zero beyond. None: no decimator.

    Raises:
        EstimateError: If there are too few samples or they are not finite.
    """
    series = checked_runs(runs)
    samples, pairs = sum(len(run) for run in series), sum(len(run) - 1 for run in series)
    if pairs == 0:
        raise EstimateError("residuals: got runs of one sample each, needed are neighbours to compare")
    total = squares_of(series)
    lags = np.ones(1) if correlation is None else check_correlation(correlation)
    statistic = float(sum(np.sum(np.diff(run) ** 2) for run in series)) / total
    first = float(lags[1]) if len(lags) > 1 else 0.0
    expected = 2 * (1 - first) * pairs / samples
    z = (statistic - expected) / (2 * np.sqrt(_bartlett(lags, 1) / pairs))
    return DurbinWatson(statistic, expected, float(z), float(2 * norm_sf(abs(z))))


def _bartlett(lags: np.ndarray, k: int) -> float:
    """Return n times the variance of the estimated autocorrelation at lag k."""
    reach = len(lags) + 2 * k
    half = np.pad(lags, (0, reach + k - len(lags)))
    both = np.concatenate([half[:0:-1], half])
    inner = slice(k, len(both) - k)
    r, after, before, at_k = both[inner], both[2 * k :], both[: len(both) - 2 * k], half[k]
    return float(np.sum(r**2 + after * before - 4 * at_k * r * before + 2 * at_k**2 * r**2))


def ljung_box(
    runs: Sequence[np.ndarray], lags: int, correlation: np.ndarray | None = None, fitted: int = 0
) -> LjungBox:
    """Test all autocorrelations up to ``lags`` at once, after the decimator's own correlation is taken out.

    With ``correlation`` the residuals are whitened first (see :class:`steelyard.signals.whitening.LevinsonWhitener`),
    each run from its first sample on. ``Q = n (n + 2) sum_k r(k)^2 / n_k`` where n_k counts the pairs at lag k: n - k
    for one run.

    Args:
        runs: Residuals of one equation, a series for each contiguous segment.
        lags: Largest lag.
        correlation: The decimator's r(0) = 1, r(1), ...; zero beyond. None: no decimator.
        fitted: Parameters of a noise model already fitted to these residuals (p of an autoregression).

    Raises:
        EstimateError: If the lags do not fit the samples, or the residuals are not finite.
    """
    if not fitted < lags:
        raise EstimateError(f"Ljung-Box: got {lags} lags, needed are more than the {fitted} fitted noise parameters")
    series = checked_runs(runs)
    if correlation is not None:
        series = whitened_runs(series, correlation, lags)
    estimated = autocorrelation(series, lags)
    samples = sum(len(run) for run in series)
    pairs = np.array([sum(max(0, len(run) - lag) for run in series) for lag in range(1, lags + 1)])
    statistic = samples * (samples + 2) * float(np.sum(estimated[1:] ** 2 / pairs))
    return LjungBox(statistic, float(chi2_sf(statistic, lags - fitted)), lags)


def whitened_runs(runs: Sequence[np.ndarray], correlation: np.ndarray, lags: int | None = None) -> list[np.ndarray]:
    """Return the runs (n_i,) whitened for a known correlation, to a small part of what n samples can resolve.

    The order is that of :func:`steelyard.signals.whitening.default_order` for 0.3 / sqrt(n) at lags up to ``lags``.
    """
    series = checked_runs(runs)
    samples = sum(len(run) for run in series)
    order = default_order(correlation, _LEFT_OVER / np.sqrt(samples), lags)
    return whitened_series(LevinsonWhitener(correlation, min(order, HIGHEST_ORDER)), series)


# Lags that are smaller than this are left out of the correlation.
_NEGLIGIBLE = 1e-3
_LONGEST = 2048
# Rows that are convolved at once: larger arrays leave the cache.
_MOST_ROWS = 16384
# Lower orders leave so much that the autoregression is busy with it; higher ones amplify what the decimator has taken
# away.
_DECIMATOR_ORDER = 20


class SerialCorrelation:
    """Estimates the autocorrelation of residuals in runs.

    Args:
        correlation: The decimator's own r(0) = 1, r(1), ..., with which the estimate starts; None: white.
    """

    def __init__(self, correlation: np.ndarray | None = None) -> None:
        order = 0 if correlation is None else _DECIMATOR_ORDER
        self._whitener = LevinsonWhitener(np.ones(1) if correlation is None else correlation, order)
        self._filter = self._whitener.filter

    def estimate(self, runs: Sequence[np.ndarray]) -> np.ndarray:
        """Return r(0) = 1, r(1), ... of the residuals in runs (n_i,), until it is negligible."""
        series = whitened_series(self._whitener, runs)
        samples = sum(len(run) for run in series)
        highest = min(int(5 * np.log10(samples)), max(len(run) for run in series) // 4)
        whole = np.convolve(self._filter, np.concatenate([[1.0], -autoregression(series, highest)]))
        spectrum = np.abs(np.fft.rfft(whole, 2 * _LONGEST)) ** -2.0
        lags = np.fft.irfft(spectrum, 2 * _LONGEST)[:_LONGEST]
        lags = lags / lags[0]
        return lags[: int(np.flatnonzero(np.abs(lags) > _NEGLIGIBLE)[-1]) + 1]


def autoregression(runs: Sequence[np.ndarray], highest: int) -> np.ndarray:
    """Fit ``x[t] = a1 x[t-1] + ... + e[t]`` to runs by Burg's method; the order (0 to ``highest``) by BIC.

    Burg's recursion keeps every order stable and works on runs alike: forward and backward errors never cross a break.
    """
    lengths = np.array([len(run) for run in runs])
    forward = backward = np.concatenate(runs)
    samples = len(forward)
    variance = float(forward @ forward) / samples
    weights = best = np.zeros(0)
    lowest = np.log(variance) if variance > 0 else -np.inf
    for order in range(1, highest + 1):
        # Errors of neighbours face each other: the first forward and the last backward one of every run have none.
        ends = np.cumsum(lengths)[lengths > 0]
        lengths = lengths[lengths > 0] - 1
        if len(ends) == 1:  # views: most residuals are one run, and copies would take most of the time
            forward, backward = forward[1:], backward[:-1]
        else:
            forward, backward = np.delete(forward, ends - lengths - 1), np.delete(backward, ends - 1)
        power = float(forward @ forward + backward @ backward)
        if power <= 0:
            break
        reflection = 2 * float(forward @ backward) / power
        weights = np.concatenate([weights - reflection * weights[::-1], [reflection]])
        variance *= 1 - reflection**2
        forward, backward = forward - reflection * backward, backward - reflection * forward
        if variance <= 0:
            break
        criterion = np.log(variance) + np.log(samples) * order / samples
        if criterion < lowest:
            lowest, best = criterion, weights
    return best


def correlated(columns: np.ndarray, lengths: Sequence[int], lags: np.ndarray) -> np.ndarray:
    """Return the correlation matrix times columns (n, m), run by run: ``sum_s r(|t - s|) columns[s]``."""
    kernel = np.concatenate([lags[:0:-1], lags])
    reach = len(lags) - 1
    # Zeros between runs, as many as the correlation reaches, keep them apart: one convolution for many runs.
    result, begin = np.empty_like(columns), 0
    for part in _together(lengths, reach):
        rows = np.concatenate([np.arange(first, first + length) for first, length in part])
        count = sum(length for _, length in part)
        apart = np.zeros((part[-1][0] + part[-1][1], columns.shape[1]))
        apart[rows] = columns[begin : begin + count]
        result[begin : begin + count] = convolve_rows(apart, kernel)[reach + rows]
        begin += count
    return result


def _together(lengths: Sequence[int], reach: int) -> Iterator[list[tuple[int, int]]]:
    """Yield groups of runs as (first row, length), a gap of ``reach`` rows after each; bounded in size."""
    group: list[tuple[int, int]] = []
    first = 0
    for length in lengths:
        group.append((first, length))
        first += length + reach
        if first > _MOST_ROWS:
            yield group
            group, first = [], 0
    if group:
        yield group


@dataclass(frozen=True)
class ResidualCorrelation:
    """Correlation of one equation's residuals.

    Attributes:
        kind: Torque kind.
        joint: Name of the joint.
        lag_one: Lag-one correlation of the fitted noise beyond the decimator's.
        largest: Largest ``|r(1)| ... |r(10)|`` of the whitened residuals.
        p: Ljung-Box probability of as much by chance, the noise model's order taken off.
    """

    kind: str
    joint: str
    lag_one: float
    largest: float
    p: float
