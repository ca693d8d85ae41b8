"""Torques that come in blocks, read at the controller's instants."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

Torques = Iterable[tuple[np.ndarray, np.ndarray]]
"""Times (m,) [s], which increase, and torques (n, m), block by block."""


class HeldTorques:
    """Torques between the times at which they are known; none before the first and after the last.

    Args:
        blocks: Times and torques.
    """

    def __init__(self, blocks: Torques) -> None:
        self._blocks = iter(blocks)
        self._times, self._torques = next(self._blocks)
        self._has_ended = False

    def at(self, instants: np.ndarray) -> np.ndarray:
        """Return torques (n, k) at instants (k,) [s], which increase from call to call."""
        while not self._has_ended and self._times[-1] < instants[-1]:
            following = next(self._blocks, None)
            if following is None:
                self._has_ended = True
                break
            self._times = np.concatenate([self._times, following[0]])
            self._torques = np.concatenate([self._torques, following[1]], axis=1)
        found = np.array([np.interp(instants, self._times, torque, left=0.0, right=0.0) for torque in self._torques])
        done = max(0, int(np.searchsorted(self._times, instants[-1], side="right")) - 1)
        self._times, self._torques = self._times[done:].copy(), self._torques[:, done:].copy()
        return found
