"""A cubic spline through points that come in blocks: that of the whole, to rounding."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline

REACH = 48
"""Points on either side that a value depends on: a spline's influence falls by 3.7 from point to point."""


class SplineStream:
    """Reads a cubic spline behind the points that come in.

    Args:
        orders: How many derivatives are read, the value itself included.
    """

    def __init__(self, orders: int = 1) -> None:
        self._orders = orders
        self._places = np.empty(0)
        self._values: np.ndarray | None = None
        self._has_ended = False

    @property
    def limit(self) -> float:
        """Place up to which the spline can be read: what comes later does not change it."""
        if self._has_ended:
            return np.inf
        return float(self._places[-1 - REACH]) if len(self._places) > REACH else -np.inf

    @property
    def last(self) -> float:
        """Place of the last point."""
        return float(self._places[-1])

    def push(self, places: np.ndarray, values: np.ndarray) -> None:
        """Take points: places (m,), which increase, and values (rows, m)."""
        self._places = np.concatenate([self._places, places])
        self._values = values if self._values is None else np.concatenate([self._values, values], axis=1)

    def end(self) -> None:
        """Say that no more points come."""
        self._has_ended = True

    def read(self, places: np.ndarray) -> np.ndarray:
        """Return values, first derivatives ... one below the other (orders * rows, k) at places (k,) up to the limit.

        Places increase from call to call; points that later ones do not need are forgotten.
        """
        assert self._values is not None
        curve = CubicSpline(self._places, self._values, axis=1)
        found = np.concatenate([curve(places, order) for order in range(self._orders)])
        done = int(np.searchsorted(self._places, places[-1], side="right")) - 1 - REACH
        if done > 0:
            self._places, self._values = self._places[done:].copy(), self._values[:, done:].copy()
        return found
