"""Recorded postures, at which parameters must be those of a possible arm."""

from __future__ import annotations

import numpy as np

from ...observe import RowSource, raw_samples
from ..evidence import Evidence
from .engines import Arms
from .possible import possible_move

POSTURES = 200
"""Postures that are looked at, about."""

LEAST_PIVOT = 0.2
"""Least pivot of a possible arm, as a part of the smallest of the start or of least squares at any posture."""

_SWEEPS = 20


class Postures:
    """Postures of the recordings, evenly spread in time, with the inertia matrices of any parameters there.

    Args:
        evidence: The recordings.
        free: Which parameters are estimated.
        held: Whether the direction of friction is held over a step.
    """

    def __init__(self, evidence: Evidence, free: tuple[int, ...], *, held: bool) -> None:
        wanted = max(POSTURES // len(evidence.sources), 1)
        self._parts = []
        for source in evidence.sources:
            q = _spread(source, wanted)
            arms = Arms(evidence.equations, evidence.columns, free, loaded=source.loaded, held=held)
            self._parts.append((arms, np.ascontiguousarray(q)))
        self._free = list(free)

    def pivots(self, values: np.ndarray) -> np.ndarray:
        """Return the pivots of the inertia matrix at all postures (n, P)."""
        with np.errstate(all="ignore"):
            return np.concatenate([arms.inertia().dense(q, values)[1][:, 0] for arms, q in self._parts], axis=1)

    def least_pivots(self, values: np.ndarray, batch: np.ndarray) -> np.ndarray:
        """Return the least pivots that count as a possible arm (n,).

        Args:
            values: Values at the start (c,); if they are no possible arm themselves, all are zero.
            batch: Values of least squares of all rows (c,): they count too where their pivots are positive.
        """
        lowest, others = self.pivots(values).min(axis=1), self.pivots(batch).min(axis=1)
        if not (lowest > 0).all():
            return np.zeros(len(lowest))
        return LEAST_PIVOT * np.where(others > 0, np.minimum(lowest, others), lowest)

    def accelerations(self, values: np.ndarray, torques: np.ndarray) -> np.ndarray:
        """Return the deviations of accelerations (n,) that torques of some deviations (n,) make, the median.

        The inertia matrix of the values must be positive definite at all postures.
        """
        matrices = [np.moveaxis(arms.inertia().dense(q, values)[0], 2, 0) for arms, q in self._parts]
        made = np.linalg.inv(np.concatenate(matrices)) * torques
        return np.sqrt(np.median((made**2).sum(axis=2), axis=0))

    def moved(self, values: np.ndarray, least: np.ndarray, root: np.ndarray) -> np.ndarray | None:
        """Return values that are a possible arm at every posture, by moves as small as can be; None if none are found.

        Args:
            values: All parameters (c,).
            least: Least pivots (n,).
            root: Root of the covariance of the free parameters (f, f).
        """
        values = values.copy()
        for _ in range(_SWEEPS):
            is_bad = ~(self.pivots(values) >= least[:, None]).all(axis=0)
            if not is_bad.any():
                return values
            bad = iter(np.split(is_bad, np.cumsum([q.shape[1] for _, q in self._parts])[:-1]))
            for arms, q in self._parts:
                for k in np.flatnonzero(next(bad)):
                    move = possible_move(arms.graph(), self._free, q[:, k], values, least, root)
                    if move is None:
                        return None
                    values[self._free] += move
        return None


def _spread(source: RowSource, wanted: int) -> np.ndarray:
    """Return about so many postures of a recording (n, P), or all if it has fewer; memory does not grow with it."""
    kept = np.zeros((len(source.equations.joints), 0))
    every, seen = 1, 0
    for block in raw_samples(source):
        kept = np.concatenate([kept, block.q[:, -seen % every :: every]], axis=1)
        seen += block.q.shape[1]
        while kept.shape[1] > 2 * wanted:
            kept, every = kept[:, ::2], 2 * every
    return kept
