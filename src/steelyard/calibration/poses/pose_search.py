"""The choice of configurations among candidates: criteria of their information matrix, additions and exchanges.

All costs are functions of ``M = sum B^T B``, logarithms that grow as the choice gets worse. ``D``: the volume of the
confidence ellipsoid. ``A``: the sum of the variances. Observability indices of the singular values s of B:
``O1 = (prod s)^(1/p) / sqrt(m)``, ``O2 = smin / smax``, ``O3 = smin``, ``O4 = smin^2 / smax``. ``industrial`` (P3): the
accuracy after compensation at test poses under load, ``trace(A_0 C A_0^T)`` with ``C = M^-1``, the largest of several.

Configurations are added one by one, each the best next one, then exchanged (DETMAX without excursions): all candidates
are tried in the place of one configuration, until no exchange helps. Costs of all candidates follow from the covariance
of the others by low-rank updates.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...errors import CalibrationError, nearest_match

PoseCriterionName = Literal["D", "A", "O1", "O2", "O3", "O4", "industrial"]
POSE_CRITERIA: tuple[PoseCriterionName, ...] = ("D", "A", "O1", "O2", "O3", "O4", "industrial")

SINGULAR = 1e-12
"""Eigenvalues of M with unit diagonal below this part of the largest are zero: an unknown is not identifiable."""

_SHARPNESS = 20.0
"""The largest of several is approximated smoothly, for gradients, by a norm of this order."""
_MOST_NUMBERS = 4_000_000


@dataclass(frozen=True, eq=False)
class PoseCriterion(ABC):
    """A cost of an information matrix (p, p), lower is better."""

    @abstractmethod
    def cost(self, information: np.ndarray) -> float:
        """Return the exact cost of an information matrix that is not singular."""

    @abstractmethod
    def smooth(self, information: np.ndarray) -> tuple[float, np.ndarray]:
        """Return a smooth cost and its gradient by the information matrix (p, p)."""

    @abstractmethod
    def costs_with(self, information: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the cost with each of several blocks of rows B (N, e, p) added: that of ``M + B^T B`` (N,)."""

    @abstractmethod
    def figure(self, cost: float, poses: int) -> float:
        """Return the figure that a cost stands for, as it is usually reported."""


@dataclass(frozen=True, eq=False)
class Volume(PoseCriterion):
    """``-log det M / p``; its figure is the geometric mean sigma, or O1."""

    index: bool = False

    def cost(self, information: np.ndarray) -> float:
        """Return ``-log det M / p``."""
        return -float(np.linalg.slogdet(information)[1]) / len(information)

    def smooth(self, information: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the cost, which is smooth, and its gradient ``-M^-1 / p``."""
        return self.cost(information), -np.linalg.inv(information) / len(information)

    def costs_with(self, information: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return costs by ``det(M + B^T B) = det M det(I + B C B^T)``."""
        grown = np.eye(rows.shape[1]) + (rows @ np.linalg.inv(information)) @ rows.transpose(0, 2, 1)
        return self.cost(information) - np.linalg.slogdet(grown)[1] / len(information)

    def figure(self, cost: float, poses: int) -> float:
        """Return ``det(C)^(1/2p)``, or ``O1 = (prod s)^(1/p) / sqrt(m)``."""
        return float(np.exp(-cost / 2) / np.sqrt(poses) if self.index else np.exp(cost / 2))


@dataclass(frozen=True, eq=False)
class Variance(PoseCriterion):
    """``log max_t trace(A_t C A_t^T)`` over test matrices A_t (T, r, p); one identity makes it A-optimality."""

    tests: np.ndarray

    def cost(self, information: np.ndarray) -> float:
        """Return the log of the largest trace."""
        return float(np.log(self._traces(np.linalg.inv(information)).max()))

    def smooth(self, information: np.ndarray) -> tuple[float, np.ndarray]:
        """Return ``log (sum x^s)^(1/s)`` of the traces x, and its gradient."""
        inverse = np.linalg.inv(information)
        logs = np.log(self._traces(inverse))
        parts = np.exp(_SHARPNESS * (logs - logs.max()))
        products = self.tests @ inverse
        weight = parts / parts.sum() / np.exp(logs)
        return (
            float(logs.max() + np.log(parts.sum()) / _SHARPNESS),
            -np.einsum("t,trp,trs->ps", weight, products, products),
        )

    def costs_with(self, information: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return costs by ``C' = C - C B^T (I + B C B^T)^-1 B C``."""
        inverse = np.linalg.inv(information)
        through = rows @ inverse
        grown = np.eye(rows.shape[1]) + through @ rows.transpose(0, 2, 1)
        before = self._traces(inverse)
        after = np.empty((len(rows), len(self.tests)))
        for number, test in enumerate(self.tests):
            products = through @ test.T
            after[:, number] = before[number] - (products * np.linalg.solve(grown, products)).sum(axis=(1, 2))
        return np.log(np.maximum(after.max(axis=1), np.finfo(float).tiny))

    def figure(self, cost: float, poses: int) -> float:
        """Return the largest trace itself."""
        return float(np.exp(cost))

    def _traces(self, inverse: np.ndarray) -> np.ndarray:
        return np.einsum("trp,ps,trs->t", self.tests, inverse, self.tests, optimize=True)


@dataclass(frozen=True, eq=False)
class Extremes(PoseCriterion):
    """``high log lmax - low log lmin`` of the eigenvalues l = s^2 of M: O2, O3 and O4 are its exponentials."""

    high: float
    low: float

    def cost(self, information: np.ndarray) -> float:
        """Return the cost."""
        return float(self._of(np.linalg.eigvalsh(information)))

    def smooth(self, information: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the cost with smooth extremes, and its gradient."""
        values, vectors = np.linalg.eigh(information)
        logs = np.log(values)
        up, down = np.exp(_SHARPNESS * (logs - logs[-1])), np.exp(_SHARPNESS * (logs[0] - logs))
        value = self.high * (logs[-1] + np.log(up.sum()) / _SHARPNESS)
        value -= self.low * (logs[0] - np.log(down.sum()) / _SHARPNESS)
        slope = (self.high * up / up.sum() - self.low * down / down.sum()) / values
        return float(value), (vectors * slope) @ vectors.T

    def costs_with(self, information: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return costs from the eigenvalues of every sum."""
        piece = max(1, _MOST_NUMBERS // information.size)
        parts = [rows[k : k + piece] for k in range(0, len(rows), piece)]
        sums = (information + part.transpose(0, 2, 1) @ part for part in parts)
        return np.concatenate([self._of(np.linalg.eigvalsh(matrices)) for matrices in sums])

    def figure(self, cost: float, poses: int) -> float:
        """Return the observability index."""
        return float(np.exp(-cost))

    def _of(self, values: np.ndarray) -> np.ndarray:
        lowest = np.maximum(values[..., 0], np.finfo(float).tiny)
        return self.high * np.log(values[..., -1]) - self.low * np.log(lowest)


def pose_criterion(name: str, unknowns: int, tests: np.ndarray | None = None) -> PoseCriterion:
    """Return the criterion of that name.

    Args:
        name: One of ``POSE_CRITERIA``.
        unknowns: Number of unknowns p.
        tests: For ``industrial``: matrices A_0 (T, r, p) of the test poses under their loads.
    """
    if name not in POSE_CRITERIA:
        raise CalibrationError(
            f"criterion: got '{name}', allowed are {', '.join(POSE_CRITERIA)}{nearest_match(name, POSE_CRITERIA)}"
        )
    if (tests is not None) != (name == "industrial"):
        raise CalibrationError(
            f"criterion '{name}': test poses are {'missing' if tests is None else 'given'}, but needed for "
            "'industrial' alone"
        )
    extremes = {"O2": (0.5, 0.5), "O3": (0.0, 0.5), "O4": (0.5, 1.0)}
    if name in extremes:
        return Extremes(*extremes[name])
    if name in ("D", "O1"):
        return Volume(index=name == "O1")
    return Variance(np.eye(unknowns)[None] if tests is None else tests)


def is_singular(information: np.ndarray) -> bool:
    """Return whether some unknown, or a combination of them, is not identifiable."""
    return unidentifiable_direction(information) is not None


def unidentifiable_direction(information: np.ndarray) -> np.ndarray | None:
    """Return a combination of unknowns (p,), at unit diagonal, that is not identifiable, or None."""
    scale = np.sqrt(np.diag(information))
    if not (scale > 0).all():
        return (scale == 0).astype(float)
    values, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    return vectors[:, 0] if values[0] <= SINGULAR * values[-1] else None


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
        """Return the cost of scaled rows; infinite if an unknown is not identifiable."""
        information = self.information(blocks)
        return np.inf if is_singular(information) else self.criterion.cost(information)

    def figure(self, blocks: np.ndarray) -> float:
        """Return the figure of scaled rows."""
        return self.criterion.figure(self.cost(blocks), len(blocks))

    def added(self) -> np.ndarray:
        """Return K candidates, each the best next one: by volume while M is singular, then by the criterion."""
        chosen: list[int] = []
        for _ in range(self.count):
            information = self.information(self.blocks[chosen])
            singular = is_singular(information)
            costs = self._costs(Volume() if singular else self.criterion, information, chosen)
            chosen.append(int(np.argmin(costs)))
        return np.array(chosen)

    def exchanged(self, chosen: np.ndarray) -> tuple[np.ndarray, int]:
        """Return the choice after exchanges that no further exchange improves, and the number of sweeps."""
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
        # The best by the update may leave an unknown unidentifiable, which only the exact cost shows.
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
    _check_identifiable(search, names)
    return search


def _checked(tests: np.ndarray, unknowns: int) -> np.ndarray:
    matrices = np.asarray(tests, dtype=float)
    if matrices.ndim != 3 or matrices.shape[2] != unknowns or not np.isfinite(matrices).all() or not matrices.any():
        raise CalibrationError(
            f"test poses: got matrices of shape {matrices.shape}, allowed are finite numbers (T, r, {unknowns}), not "
            "all zero"
        )
    return matrices


def _check_identifiable(search: PoseSearch, names: Sequence[str]) -> None:
    """Refuse unknowns that no choice of candidates makes identifiable."""
    equations, unknowns = search.count * search.blocks.shape[1], search.blocks.shape[2]
    if equations < unknowns:
        raise CalibrationError(
            f"pose design: {search.count} configurations give {equations} equations for {unknowns} unknowns; "
            f"at least {-(-unknowns // search.blocks.shape[1])} configurations are needed"
        )
    direction = unidentifiable_direction(search.information(search.blocks))
    if direction is not None:
        worst = int(np.argmax(np.abs(direction)))
        which = f"'{names[worst]}'" if names else f"number {worst}"
        raise CalibrationError(
            f"pose design: no candidate shows unknown {which}, alone or apart from others; leave it out, or change "
            "markers, loads or candidates"
        )
