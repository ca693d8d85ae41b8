"""Rows freed of the correlation of their noise: that of an autoregression seen through the decimator.

The spectrum of the noise is that of the autoregression times that of the decimator, so their autocorrelations are
convolved, and one predictor frees rows of both. Freeing them of one after the other is not the same near the start of
a run, where a predictor has few rows to go by: sigmas of offsets would come out up to 15 % low.
"""

from __future__ import annotations

from copy import copy
from functools import lru_cache

import numpy as np

from ..signals import LevinsonWhitener
from .autoregression import autocorrelation

FLOOR = 1e-6
"""Added to the decimator's variance, which is nearly nothing at its Nyquist frequency."""

WHITENING_ORDER = 80
"""Rows from which the next is predicted: enough for a decimator's sharp edge."""


class RowWhitener:
    """Frees rows of the correlation of their noise.

    Rows come out with white noise of the standard deviation that the autoregression has before the decimator.

    Args:
        correlation: Autocorrelation of white noise after the decimator (K + 1,).
        coefficients: Autoregressive coefficients (p,).
    """

    def __init__(self, correlation: np.ndarray, coefficients: np.ndarray) -> None:
        self._whitener, self._size = _whitener_of(correlation, coefficients)

    def restart(self) -> None:
        """Begin a new run."""
        self._whitener.restart()

    def push(self, rows: np.ndarray) -> np.ndarray:
        """Return the next rows (k, m) whitened."""
        return self._whitener.push(rows) / self._size


def decimator_whitener(correlation: np.ndarray) -> LevinsonWhitener:
    """Return a whitener of the decimator's own correlation (K + 1,), at the start of a run."""
    return _whitener_of(correlation, np.zeros(0))[0]


def noise_autocovariance(correlation: np.ndarray, coefficients: np.ndarray, lags: int) -> np.ndarray:
    """Return the autocovariance (lags + 1,) of an autoregression of variance 1 that went through the decimator.

    Args:
        correlation: Autocorrelation of white noise after the decimator (K + 1,).
        coefficients: Autoregressive coefficients (p,).
        lags: Largest lag.
    """
    persistent = autocorrelation(coefficients, lags + len(correlation) - 1)
    both_sides = [np.concatenate([part[:0:-1], part]) for part in (persistent, correlation)]
    total = np.convolve(*both_sides, mode="same")
    middle = len(persistent) - 1
    return total[middle : middle + lags + 1]


def _whitener_of(correlation: np.ndarray, coefficients: np.ndarray) -> tuple[LevinsonWhitener, float]:
    parts = (np.asarray(part, dtype=float).tobytes() for part in (correlation, coefficients))
    fresh, size = _fresh_whitener(*parts)
    whitener = copy(fresh)
    whitener.restart()
    return whitener, size


@lru_cache(maxsize=64)
def _fresh_whitener(correlation: bytes, coefficients: bytes) -> tuple[LevinsonWhitener, float]:
    """Return a whitener that nobody uses, and the size of the noise: recordings share them, and they take a while."""
    decimator, persistent = np.frombuffer(correlation).copy(), np.frombuffer(coefficients)
    if np.any(np.abs(decimator[1:]) > 1e-12):
        decimator[0] += FLOOR
        order = WHITENING_ORDER
    else:
        decimator, order = np.ones(1), len(persistent)
    lags = noise_autocovariance(decimator / decimator[0], persistent, order)
    return LevinsonWhitener(lags / lags[0], order), float(np.sqrt(lags[0]))
