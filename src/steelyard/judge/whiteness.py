"""Are the residuals white, or only as correlated as the decimator makes them (P5.5)?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..distributions import chi2_sf, norm_sf
from ..errors import EstimateError
from ..signals.levinson import HIGHEST_ORDER, LevinsonWhitener, check_correlation, default_order
from .series import checked_runs, lagged_sum, squares_of

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
        runs: Residuals of one equation, a series for each contiguous stretch.
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

    With ``correlation`` the residuals are whitened first (see :class:`steelyard.signals.levinson.LevinsonWhitener`),
    each run from its first sample on. ``Q = n (n + 2) sum_k r(k)^2 / n_k`` where n_k counts the pairs at lag k: n - k
    for one run.

    Args:
        runs: Residuals of one equation, a series for each contiguous stretch.
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
    """Return the runs (n_i,) whitened for a known correlation, to a small part of what n samples can tell.

    The order is that of :func:`steelyard.signals.levinson.default_order` for 0.3 / sqrt(n) at lags up to ``lags``.
    """
    series = checked_runs(runs)
    samples = sum(len(run) for run in series)
    order = default_order(correlation, _LEFT_OVER / np.sqrt(samples), lags)
    whitener = LevinsonWhitener(correlation, min(order, HIGHEST_ORDER))
    result = []
    for run in series:
        whitener.restart()
        result.append(whitener.push(run[:, None])[:, 0])
    return result
