"""Whitening of samples whose autocorrelation is known: each is predicted from those before it (Durbin-Levinson).

With the correlation matrix ``C[s, t] = r(|s - t|) = L L^T`` the whitened samples are ``L^-1 x``: row t of ``L^-1`` is
the best linear predictor of x[t] from x[0] ... x[t-1], subtracted from x[t] and divided by its error's standard
deviation sqrt(v[t]). Beyond a given order the predictor no longer changes and whitening is a plain FIR filter.

The recursion of Durbin and Levinson, for m = 1, 2, ..., with a[m, k] the weight of x[t-k]:

``a[m, m] = (r(m) - sum_k a[m-1, k] r(m-k)) / v[m-1]``, ``a[m, k] = a[m-1, k] - a[m, m] a[m-1, m-k]``,
``v[m] = v[m-1] (1 - a[m, m]^2)``, ``v[0] = 1``.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from ..errors import SignalError
from .checks import check_finite, frozen

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

    def log_determinant(self, rows: int) -> float:
        """Return log det of the correlation matrix of ``rows`` rows without a break: sum of log v(t)."""
        logs = np.log(self.variance)
        known = min(rows, len(logs))
        return float(logs[:known].sum() + (rows - known) * logs[-1])

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
