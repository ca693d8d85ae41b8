"""Whitening of rows: each is predicted from those before it, and the prediction subtracted (Durbin-Levinson).

With the correlation matrix ``C[s, t] = r(|s - t|) = L L^T`` the whitened samples are ``L^-1 x``: row t of ``L^-1`` is
the best linear predictor of x[t] from x[0] ... x[t-1], subtracted from x[t] and divided by its error's standard
deviation sqrt(v[t]). Beyond a given order the predictor no longer changes and whitening is a plain FIR filter.

The recursion of Durbin and Levinson, for m = 1, 2, ..., with a[m, k] the weight of x[t-k]:

``a[m, m] = (r(m) - sum_k a[m-1, k] r(m-k)) / v[m-1]``, ``a[m, k] = a[m-1, k] - a[m, m] a[m-1, m-k]``,
``v[m] = v[m-1] (1 - a[m, m]^2)``, ``v[0] = 1``.

The noise of decimated rows is an autoregression filtered by the decimator. Its spectrum is the product of both, so
their autocorrelations are convolved, and one predictor whitens for both. One after the other is not the same near the
start of a run, where a predictor has few rows to go by: sigmas of offsets would come out up to 15 % low.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cache, lru_cache

import numpy as np
from scipy import linalg

from ..errors import SignalError
from .checks import check_finite, frozen
from .recursive import autoregression_filter

HIGHEST_ORDER = 200
"""Largest order that :func:`default_order` proposes."""


class LevinsonWhitener:
    """Whitens signals that come in blocks of rows, every column alike.

    Row t is predicted from the min(t, order) rows before it. The whitened rows have variance 1 where those given have
    variance 1 and the stated correlation. Without ``order`` the whitening is exact for every row that the correlation
    reaches; see :func:`default_order` for the order that is needed.

    Args:
        correlation: r(0) = 1, r(1), ... (K + 1,); beyond the last lag it is zero.
        order: Rows used at most to predict the next one; K by default.

    Attributes:
        order: As given.
        variance: v(0) = 1, v(1), ... v(order): prediction variance relative to that of the signal (order + 1,).

    Raises:
        SignalError: If the numbers are no autocorrelation, or the order is not a whole number of 0 and above.
    """

    def __init__(self, correlation: np.ndarray, order: int | None = None) -> None:
        lags = check_correlation(correlation)
        self.order = _checked_order(len(lags) - 1 if order is None else order)
        self._start, self.variance = _inverse_factor(_padded(lags, self.order))
        # A banded matrix times many rows: its zeros cost less than a loop over the taps would.
        self._block = max(64, self.order)
        row = np.pad(self._start[-1], (0, self._block - 1))
        self._band = frozen(linalg.toeplitz(np.eye(1, self._block)[0] * row[0], row))
        self.restart()

    @property
    def filter(self) -> np.ndarray:
        """The whitening FIR filter beyond the first ``order`` rows (order + 1,), newest sample first."""
        return self._start[-1][::-1]

    def restart(self) -> None:
        """Forget the rows so far: the next row is the first after a break."""
        self._rows = 0
        self._before: np.ndarray | None = None

    def push(self, rows: np.ndarray) -> np.ndarray:
        """Take the next rows (k, m) and return them whitened (k, m).

        Raises:
            SignalError: If the rows are not (k, m) with the m of the rows before, or a value is not finite.
        """
        block = self._checked(rows)
        before = np.empty((0, block.shape[1])) if self._before is None else self._before
        joined = np.concatenate([before, block])
        result = np.empty_like(block)
        growing = max(0, min(self.order - self._rows, len(block)))
        if growing:
            weights = self._start[self._rows : self._rows + growing, : len(before) + growing]
            result[:growing] = weights @ joined[: len(before) + growing]
        for first in range(growing, len(block), self._block):
            last = min(first + self._block, len(block))
            start = len(before) + first - self.order
            part = joined[start : len(before) + last]
            result[first:last] = self._band[: last - first, : len(part)] @ part
        self._rows += len(block)
        self._before = joined[max(0, len(joined) - self.order) :].copy()
        return result

    def _checked(self, rows: np.ndarray) -> np.ndarray:
        block = np.ascontiguousarray(rows, dtype=np.float64)
        if block.ndim != 2:
            hint = "; give one signal as x[:, None]" if block.ndim == 1 else ""
            raise SignalError(f"rows to whiten: got shape {block.shape}, allowed is (samples, columns){hint}")
        if self._before is not None and block.shape[1] != self._before.shape[1]:
            raise SignalError(
                f"rows to whiten: got {block.shape[1]} columns, the rows before had {self._before.shape[1]}; "
                "call restart() between signals"
            )
        check_finite(block.T, "columns to whiten", self._rows)
        return block


def default_order(correlation: np.ndarray, tolerance: float = 0.02, lags: int | None = None) -> int:
    """Return the smallest order after which whitened samples are white to a tolerance.

    That is: with the predictor of this order no autocorrelation of its errors at lags 1, 2, ... ``lags`` (all lags by
    default) is larger than ``tolerance``. At most ``HIGHEST_ORDER``.

    Raises:
        SignalError: If the numbers are no autocorrelation, or the tolerance is not above 0.
    """
    if not tolerance > 0:
        raise SignalError(f"whiteness tolerance: got {tolerance}, allowed are numbers above 0")
    known = check_correlation(correlation)
    weights, _ = _inverse_factor(_padded(known, HIGHEST_ORDER))
    for order in range(HIGHEST_ORDER):
        left = _error_correlation(weights[order, : order + 1], known)
        if np.abs(left[1 : None if lags is None else lags + 1]).max(initial=0.0) <= tolerance:
            return order
    return HIGHEST_ORDER


def whitened_correlation(correlation: np.ndarray, order: int) -> np.ndarray:
    """Return the autocorrelation that is left after whitening with a predictor of this order: 1, then small numbers."""
    known = check_correlation(correlation)
    order = _checked_order(order)
    weights, _ = _inverse_factor(_padded(known, order))
    return _error_correlation(weights[-1], known)


def check_correlation(correlation: np.ndarray) -> np.ndarray:
    """Return an autocorrelation (K + 1,) as float64, refusing one that does not start with 1 or grows beyond it."""
    lags = np.asarray(correlation, dtype=np.float64)
    if lags.ndim != 1 or lags.size == 0:
        raise SignalError(f"autocorrelation: got shape {lags.shape}, allowed is (lags + 1,)")
    check_finite(lags[None], "autocorrelation")
    if abs(lags[0] - 1) > 1e-9 or np.abs(lags).max() > 1 + 1e-9:
        raise SignalError(
            f"autocorrelation: got {lags[0]:g} at lag 0 and {np.abs(lags).max():g} at most, allowed is 1 at lag 0 and "
            "-1 to 1 elsewhere; divide by the variance"
        )
    return lags


def _padded(lags: np.ndarray, order: int) -> np.ndarray:
    return np.pad(lags[: order + 1], (0, max(0, order + 1 - len(lags))))


def _checked_order(order: int) -> int:
    if int(order) != order or order < 0:
        raise SignalError(f"order of prediction: got {order}, allowed are whole numbers of 0 and above")
    return int(order)


def _inverse_factor(lags: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return L^-1 (m + 1, m + 1), whose last row is the filter, oldest sample first, and the variances (m + 1,)."""
    size = len(lags)
    inverse, variance = np.zeros((size, size)), np.ones(size)
    inverse[0, 0] = 1.0
    oldest_first = np.zeros(0)  # weights of x[0], ..., x[m-1] in the prediction of x[m]
    for m in range(1, size):
        reflection = (lags[m] - oldest_first @ lags[1:m]) / variance[m - 1]
        variance[m] = variance[m - 1] * (1 - reflection**2)
        if variance[m] <= 0:
            raise SignalError(
                f"autocorrelation: got numbers that no signal has (at lag {m} the next sample would be known better "
                "than exactly); give more lags, or add a little to lag 0 and divide by it"
            )
        oldest_first = np.concatenate([[reflection], oldest_first - reflection * oldest_first[::-1]])
        inverse[m, :m], inverse[m, m] = -oldest_first, 1.0
        inverse[m] /= np.sqrt(variance[m])
    return frozen(inverse), frozen(variance)


def _error_correlation(filter_: np.ndarray, lags: np.ndarray) -> np.ndarray:
    """Return the autocorrelation of a filter's output for an input with the autocorrelation ``lags``."""
    two_sided = np.concatenate([lags[:0:-1], lags])
    output = np.convolve(np.convolve(filter_, filter_[::-1]), two_sided)
    middle = len(output) // 2
    return output[middle:] / output[middle]


LARGEST_REFLECTION = 0.995
"""Noise more persistent than this is indistinguishable from a drift; it is held there."""

_SHRINKINGS = 30


def stationary(coefficients: np.ndarray, longest: float = np.inf) -> np.ndarray:
    """Return the nearest coefficients (p,) of ``v[t] = sum_k a_k v[t-k] + e[t]`` within bounds.

    Reflection coefficients are at most 0.995: down the Levinson recursion to them, and up again from those held. The
    correlation length (:func:`correlation_length`) is at most ``longest`` rows: poles are drawn towards 0, all by one
    factor, until it is.
    """
    held = _held_reflections(coefficients)
    if len(held) == 0 or correlation_length(held) <= longest:
        return held
    powers, low, high = np.arange(1, len(held) + 1), 0.0, 1.0
    for _ in range(_SHRINKINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if correlation_length(held * middle**powers) <= longest else (low, middle)
    return held * low**powers


def correlation_length(coefficients: np.ndarray) -> float:
    """Return how many rows count as one where the noise is strongest: its largest spectral density over its variance.

    At frequency 0 this is the sum of all autocorrelations, by which the variance of a mean exceeds that of white noise.
    """
    full = np.concatenate([[1.0], -np.asarray(coefficients, dtype=float)])
    smallest = np.min(np.abs(full @ _waves(len(full))) ** 2)
    return innovation_share(coefficients) / max(float(smallest), 1e-300)


@cache
def _waves(count: int) -> np.ndarray:
    """Return ``exp(-i w k)`` (count, frequencies) from frequency 0 to half the rate of rows."""
    return np.exp(-1j * np.outer(np.arange(count), np.linspace(0, np.pi, 513)))


def _held_reflections(coefficients: np.ndarray) -> np.ndarray:
    reflections = _reflections(np.asarray(coefficients, dtype=float))
    held = np.clip(reflections, -LARGEST_REFLECTION, LARGEST_REFLECTION)
    if np.array_equal(held, reflections):
        return np.asarray(coefficients, dtype=float)
    built = np.zeros(0)
    for reflection in held:
        built = np.concatenate([built - reflection * built[::-1], [reflection]])
    return built


def _reflections(coefficients: np.ndarray) -> np.ndarray:
    found, current = [0.0] * len(coefficients), coefficients.tolist()  # few numbers: lists are faster than arrays
    for order in range(len(found), 0, -1):
        last = found[order - 1] = current[-1]
        # Beyond 1 the recursion has no meaning; what is below is judged as if at the bound.
        bounded = min(max(last, -LARGEST_REFLECTION), LARGEST_REFLECTION)
        rest = 1 - bounded**2
        current = [(one + bounded * other) / rest for one, other in zip(current[:-1], current[-2::-1], strict=True)]
    return np.array(found)


def autoregressive_correlation(coefficients: np.ndarray, lags: int) -> np.ndarray:
    """Return the autocorrelation (lags + 1,) of the noise, from the Yule-Walker equations."""
    order = len(coefficients)
    if order == 0:
        return np.eye(1, lags + 1)[0]
    # Unknown r(0..p): r(k) - sum_j a_j r(|k-j|) = variance of e at k = 0, 0 elsewhere.
    system = np.zeros((order + 1, order + 1))
    full = np.concatenate([[1.0], -coefficients])
    for k in range(order + 1):
        for j in range(order + 1):
            system[k, abs(k - j)] += full[j]
    start = np.linalg.solve(system, np.eye(order + 1)[0])
    if lags <= order:
        return start[: lags + 1] / start[0]
    further = autoregression_filter(coefficients, np.zeros((1, lags - order)), start[None, order:0:-1])
    return np.concatenate([start, further[0]]) / start[0]


def innovation_share(coefficients: np.ndarray) -> float:
    """Return the variance of e over that of v: what the past leaves unexplained."""
    return float(np.prod(1 - _reflections(np.asarray(coefficients, dtype=float)) ** 2))


FLOOR = 1e-6
"""Added to the decimator's variance, which is nearly nothing at its Nyquist frequency."""

WHITENING_ORDER = 80
"""Rows from which the next is predicted: enough for a decimator's sharp edge."""

# The covariance of the noise is followed until it has died out to this part, or over so many rows.
_DIED_OUT, _LONGEST = 1e-3, 2000


class RowWhitener:
    """Whitens rows whose noise is an autoregression filtered by the decimator.

    Rows come out with white noise of the standard deviation that the autoregression has before the decimator.

    Args:
        correlation: Autocorrelation of white noise after the decimator (K + 1,).
        coefficients: Autoregressive coefficients (p,).

    Raises:
        SignalError: If rows are all but known from those before them.
    """

    def __init__(self, correlation: np.ndarray, coefficients: np.ndarray) -> None:
        parts = (np.asarray(part, dtype=float).tobytes() for part in (correlation, coefficients))
        designed, self._size = _designed(*parts)
        self._whitener = copy(designed)

    def restart(self) -> None:
        """Forget the rows so far: the next row is the first after a break."""
        self._whitener.restart()

    def push(self, rows: np.ndarray) -> np.ndarray:
        """Take the next rows (k, m) and return them whitened (k, m)."""
        return self._whitener.push(rows) / self._size


@lru_cache(maxsize=64)
def _designed(correlation: bytes, coefficients: bytes) -> tuple[LevinsonWhitener, float]:
    """Return a whitener to be copied, and the size of the noise; the design takes a while and recordings share it."""
    decimator, persistent = np.frombuffer(correlation).copy(), np.frombuffer(coefficients)
    if np.any(np.abs(decimator[1:]) > 1e-12):
        decimator[0] += FLOOR
        order = WHITENING_ORDER
    else:
        decimator, order = np.ones(1), len(persistent)
    lags = noise_autocovariance(decimator / decimator[0], persistent, order)
    return LevinsonWhitener(lags / lags[0], order), float(np.sqrt(lags[0]))


def whitened_series(whitener: LevinsonWhitener | RowWhitener, runs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return runs (n_i,) of one signal whitened, each from its first sample on."""
    found = []
    for run in runs:
        whitener.restart()
        found.append(whitener.push(run[:, None])[:, 0])
    return found


def noise_autocovariance(correlation: np.ndarray, coefficients: np.ndarray, lags: int) -> np.ndarray:
    """Return the autocovariance (lags + 1,) of an autoregression of variance 1 that went through the decimator.

    Args:
        correlation: Autocorrelation of white noise after the decimator (K + 1,).
        coefficients: Autoregressive coefficients (p,).
        lags: Largest lag.
    """
    persistent = autoregressive_correlation(coefficients, lags + len(correlation) - 1)
    both_sides = [np.concatenate([part[:0:-1], part]) for part in (persistent, correlation)]
    total = np.convolve(*both_sides, mode="same")
    middle = len(persistent) - 1
    return total[middle : middle + lags + 1]


def half_kernel(correlation: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Return :func:`noise_autocovariance` until it has died out, half of it at lag 0 (lags + 1,).

    With H the convolution by this kernel, ``W^T (H + H^T) W`` is ``W^T S W`` of rows W with noise of covariance S.
    """
    lags = noise_autocovariance(correlation, coefficients, _LONGEST)
    alive = np.flatnonzero(np.abs(lags) > _DIED_OUT * lags[0])
    kernel = lags[: max(int(alive[-1]) + 1, 2)].copy()
    kernel[0] /= 2
    return kernel
