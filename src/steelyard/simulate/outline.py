"""What a loop must know of a motion before it follows it, found while the motion passes by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import SimulationError

# Postures of a motion at which the inertia matrix is looked at.
_POSTURES = 50


@dataclass(frozen=True, eq=False)
class Outline:
    """A motion of any length in a few numbers; n joints.

    Attributes:
        postures: Positions at some instants, from the first to the last (n, P).
        middle: Mean position (n,).
        span: Range of the positions (n,).
    """

    postures: np.ndarray
    middle: np.ndarray
    span: np.ndarray


def posture_places(samples: int) -> np.ndarray:
    """Return which of so many samples stand for all postures of a motion (P,)."""
    return np.unique(np.linspace(0, samples - 1, _POSTURES).astype(int))


class OutlineStream:
    """Finds the outline of a motion that comes in blocks.

    Args:
        joints: Number of joints n.
        samples: Number of columns that will come.
        every: The range is that of every so-many-th column, those at which the motion is recorded.
    """

    def __init__(self, joints: int, samples: int, every: int = 1) -> None:
        self._places, self._samples, self._every = posture_places(samples), samples, every
        self._postures: list[np.ndarray] = []
        self._sum = np.zeros(joints)
        self._least, self._most = np.full(joints, np.inf), np.full(joints, -np.inf)
        self._taken = 0

    def push(self, q: np.ndarray) -> None:
        """Take the next positions (n, m)."""
        first, last = self._taken, self._taken + q.shape[1]
        self._postures.append(q[:, self._places[(self._places >= first) & (self._places < last)] - first])
        self._sum += q.sum(axis=1)
        recorded = q[:, -first % self._every :: self._every]
        self._least = np.minimum(self._least, recorded.min(axis=1, initial=np.inf))
        self._most = np.maximum(self._most, recorded.max(axis=1, initial=-np.inf))
        self._taken = last

    def outline(self) -> Outline:
        """Return the outline of all that came.

        Raises:
            SimulationError: If other than the announced number of columns came.
        """
        if self._taken != self._samples or not self._taken:
            raise SimulationError(f"motion: got {self._taken} columns, announced were {self._samples}, at least 1")
        found = Outline(np.concatenate(self._postures, axis=1), self._sum / self._taken, self._most - self._least)
        for array in (found.postures, found.middle, found.span):
            array.setflags(write=False)
        return found
