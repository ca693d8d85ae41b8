"""The choice among candidates: configurations are added one by one, then exchanged until no exchange helps.

Each addition is the best next one; each exchange (DETMAX without excursions) tries all candidates in the place of one
configuration. Costs of all candidates follow from the covariance of the others by low-rank updates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import CalibrationError
from .pose_criteria import (
    PoseCriterion,
    PoseCriterionName,
    Volume,
    is_singular,
    pose_criterion,
    unseen_direction,
)

Rows = Callable[[np.ndarray], np.ndarray]
"""From configurations (na, N) to rows of equations B (N, e, p), divided by the noise; markers are rows of one block."""

_RIDGE = 1e-9
_HELPS = 1e-9
_MOST_SWEEPS = 30
_TRIED = 8


@dataclass(frozen=True, eq=False)
class PoseSearch:
    """Candidates' rows with columns at unit size, and the criterion in those units.

    Attributes:
        raw_rows: Rows of equations of configurations.
        blocks: Those of the candidates (M, e, p), scaled.
        scale: What columns are multiplied with (p,).
        count: Configurations to choose, K.
        repeats: How often each is measured.
        criterion: The cost.
    """

    raw_rows: Rows
    blocks: np.ndarray
    scale: np.ndarray
    count: int
    repeats: int
    criterion: PoseCriterion

    def rows(self, q: np.ndarray) -> np.ndarray:
        """Return scaled rows (N, e, p) of configurations (na, N)."""
        return self.raw_rows(q) * self.scale

    def information(self, blocks: np.ndarray) -> np.ndarray:
        """Return the information matrix (p, p) of scaled rows (K, e, p), repeats counted."""
        flat = blocks.reshape(-1, blocks.shape[2])
        return self.repeats * flat.T @ flat

    def cost(self, blocks: np.ndarray) -> float:
        """Return the cost of scaled rows; infinite if an unknown is not seen."""
        information = self.information(blocks)
        return np.inf if is_singular(information) else self.criterion.cost(information)

    def figure(self, blocks: np.ndarray) -> float:
        """Return the figure of scaled rows."""
        return self.criterion.figure(self.cost(blocks), len(blocks))

    def added(self) -> np.ndarray:
        """Return K candidates, each the best next one: by volume until all unknowns are seen, then by the criterion."""
        chosen: list[int] = []
        for _ in range(self.count):
            information = self.information(self.blocks[chosen])
            blind = is_singular(information)
            costs = self._costs(Volume() if blind else self.criterion, information, chosen)
            chosen.append(int(np.argmin(costs)))
        return np.array(chosen)

    def exchanged(self, chosen: np.ndarray) -> tuple[np.ndarray, int]:
        """Return the choice after exchanges that no further exchange improves, and the number of rounds."""
        chosen, cost = chosen.copy(), self.cost(self.blocks[chosen])
        for sweep in range(1, _MOST_SWEEPS + 1):
            before = cost
            for place in range(len(chosen)):
                cost = self._exchanged_at(chosen, place, cost)
            if not cost < before - _HELPS:
                return chosen, sweep
        return chosen, _MOST_SWEEPS

    def _exchanged_at(self, chosen: np.ndarray, place: int, cost: float) -> float:
        """Put the best candidate at a place, if it is better than what is there; return the cost."""
        others = np.delete(chosen, place)
        costs = self._costs(self.criterion, self.information(self.blocks[others]), [*others, chosen[place]])
        # The best by the update may leave an unknown unseen, which only the exact cost tells.
        for candidate in np.argsort(costs)[:_TRIED]:
            trial = self.cost(self.blocks[np.append(others, candidate)])
            if trial < cost - _HELPS:
                chosen[place] = candidate
                return trial
        return cost

    def _costs(self, criterion: PoseCriterion, information: np.ndarray, taken: Sequence[int]) -> np.ndarray:
        """Return the cost with each candidate added; infinite for those that are taken."""
        size = len(information)
        padded = information + _RIDGE * max(np.trace(information) / size, 1.0) * np.eye(size)
        costs = criterion.costs_with(padded, np.sqrt(self.repeats) * self.blocks)
        costs[list(taken)] = np.inf
        return costs


def pose_search(
    rows: Rows,
    candidates: np.ndarray,
    count: int,
    criterion: PoseCriterionName,
    tests: np.ndarray | None,
    repeats: int,
    names: Sequence[str],
) -> PoseSearch:
    """Return the checked problem of choosing, in units in which every column has unit size."""
    q = np.asarray(candidates, dtype=float)
    if q.ndim != 2 or not 1 <= count <= q.shape[1] or repeats < 1:
        raise CalibrationError(
            f"pose design: got {count} configurations out of candidates {q.shape}, {repeats} times each; allowed are "
            "candidates (na, M), from 1 to M configurations and at least 1 repeat"
        )
    blocks = np.asarray(rows(q), dtype=float)
    if blocks.ndim != 3 or len(blocks) != q.shape[1] or not np.isfinite(blocks).all():
        raise CalibrationError(
            f"pose design: rows of the candidates have shape {blocks.shape}, allowed are finite numbers "
            f"({q.shape[1]}, e, p)"
        )
    unknowns = blocks.shape[2]
    size = np.sqrt((blocks**2).sum(axis=1).mean(axis=0))
    scale = 1.0 / np.where(size > 0, size, 1.0)
    scaled_tests = None if tests is None else _checked(tests, unknowns) * scale
    judge = pose_criterion(criterion, unknowns, scaled_tests)
    search = PoseSearch(rows, blocks * scale, scale, count, repeats, judge)
    _check_sight(search, names)
    return search


def _checked(tests: np.ndarray, unknowns: int) -> np.ndarray:
    matrices = np.asarray(tests, dtype=float)
    if matrices.ndim != 3 or matrices.shape[2] != unknowns or not np.isfinite(matrices).all() or not matrices.any():
        raise CalibrationError(
            f"test poses: got matrices of shape {matrices.shape}, allowed are finite numbers (T, r, {unknowns}), not "
            "all zero"
        )
    return matrices


def _check_sight(search: PoseSearch, names: Sequence[str]) -> None:
    """Refuse unknowns that no choice of the candidates can show."""
    equations, unknowns = search.count * search.blocks.shape[1], search.blocks.shape[2]
    if equations < unknowns:
        raise CalibrationError(
            f"pose design: {search.count} configurations give {equations} equations for {unknowns} unknowns; "
            f"at least {-(-unknowns // search.blocks.shape[1])} configurations are needed"
        )
    unseen = unseen_direction(search.information(search.blocks))
    if unseen is not None:
        worst = int(np.argmax(np.abs(unseen)))
        which = f"'{names[worst]}'" if names else f"number {worst}"
        raise CalibrationError(
            f"pose design: no candidate shows unknown {which}, alone or apart from others; leave it out, or change "
            "markers, loads or candidates"
        )
