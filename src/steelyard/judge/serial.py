"""The serial correlation of residuals, estimated: what it does to the mean of a bin of them.

Neighbouring residuals resemble each other, so n of them tell less than n independent ones would. The correlation is
that of an autoregression: the decimator's, if its correlation is given, times one fitted to what that leaves (Burg's
method).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..signals.convolution import convolve_rows
from ..signals.levinson import LevinsonWhitener

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
        series = [self._whitened(run) for run in runs]
        samples = sum(len(run) for run in series)
        highest = min(int(5 * np.log10(samples)), max(len(run) for run in series) // 4)
        whole = np.convolve(self._filter, np.concatenate([[1.0], -autoregression(series, highest)]))
        spectrum = np.abs(np.fft.rfft(whole, 2 * _LONGEST)) ** -2.0
        lags = np.fft.irfft(spectrum, 2 * _LONGEST)[:_LONGEST]
        lags = lags / lags[0]
        return lags[: int(np.flatnonzero(np.abs(lags) > _NEGLIGIBLE)[-1]) + 1]

    def _whitened(self, run: np.ndarray) -> np.ndarray:
        self._whitener.restart()
        return self._whitener.push(run[:, None])[:, 0]


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
