"""Positions of an encoder that starts again after a turn, made continuous."""

from __future__ import annotations

import numpy as np

TURN = 2 * np.pi


class Unwrapper:
    """Undoes jumps of more than half a turn, block after block.

    Attributes:
        turns: How often each row jumped so far (rows,).
    """

    def __init__(self) -> None:
        self.turns = np.zeros(0, int)
        self._added = np.zeros(0)
        self._last: np.ndarray | None = None

    def take(self, values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the values (n, N) [rad] with whole turns added where ``rows`` (n,) says the row is an angle."""
        if not values.shape[1]:
            return values
        if self._last is None:
            self.turns, self._added = np.zeros(len(values), int), np.zeros(len(values))
            self._last = values[:, 0].copy()
        steps = np.diff(values, axis=1, prepend=self._last[:, None])
        turned = -np.round(steps / TURN) * rows[:, None]
        added = self._added[:, None] + np.cumsum(turned, axis=1)
        self.turns += np.count_nonzero(turned, axis=1)
        self._added, self._last = added[:, -1].copy(), values[:, -1].copy()
        return values + added * TURN
