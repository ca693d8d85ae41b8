"""The step of Gauss and Newton: the motions of all recordings eliminated, the parameters solved, the motions after.

Each recording's triangle ``[R_dd R_dt z_d; 0 R_tt z_t]`` shows what it tells of the parameters when its own motion is
free: ``R_tt``. These are stacked; the inverse of ``R_tt^T R_tt`` of the stack is the parameters' part of the inverse
Fisher information, the Cramer-Rao bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ...errors import EstimateError
from ...observe.triangle import reduced
from ..system import DEPENDENT, System


@dataclass(frozen=True, eq=False)
class Step:
    """A step of all unknowns.

    Attributes:
        theta: Of the parameters (c,).
        motions: Of every recording's coefficients (size,).
        system: What is told of the parameters' step when all motions are free.
        gain: By how much the linearised cost falls with the whole step: the squared length of the gradient in
            standard deviations.
    """

    theta: np.ndarray
    motions: tuple[np.ndarray, ...]
    system: System
    gain: float


def eliminated(triangles: Sequence[np.ndarray], columns: tuple[str, ...], damping: float = 0.0) -> Step:
    """Return the step that minimises the linearised cost, damped by Levenberg and Marquardt's diagonal.

    Args:
        triangles: Of every recording, columns delta, theta, residual.
        columns: Names of theta.
        damping: mu of ``(J^T J + mu diag(J^T J)) step = J^T r``; 0: Gauss and Newton's.

    Raises:
        EstimateError: If the recordings do not tell all parameters apart.
    """
    unknowns = len(columns) + 1
    heads: list[np.ndarray] = []
    tails: list[np.ndarray] = []
    for triangle in triangles:
        size = len(triangle) - unknowns
        whole = reduced(np.vstack([triangle, _damping(triangle, size, damping)])) if damping else triangle
        heads.append(whole[:size])
        tails.append(whole[size:, size:])
    stack = np.vstack(tails)
    if damping:
        own = np.sqrt(sum(np.sum(triangle[:, -unknowns:-1] ** 2, axis=0) for triangle in triangles))
        stack = np.vstack([stack, np.column_stack([np.diag(np.sqrt(damping) * own), np.zeros(len(columns))])])
    merged = reduced(stack)
    _check_told_apart(merged, columns)
    system = System(columns, merged, len(stack))
    theta = system.values
    motions = tuple(_solved(head, theta) for head in heads)
    gain = float(np.sum(merged[:-1, -1] ** 2)) + sum(float(np.sum(head[:, -1] ** 2)) for head in heads)
    return Step(theta, motions, system, gain)


def _damping(triangle: np.ndarray, size: int, damping: float) -> np.ndarray:
    """Return the rows that hold a motion's coefficients back, the first ``size`` columns."""
    lengths = np.linalg.norm(triangle[:, :size], axis=0)
    return np.eye(size, triangle.shape[1]) * (np.sqrt(damping) * lengths[:, None])


def _solved(head: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Return the coefficients' step from the head ``[R_dd R_dt z_d]`` of a triangle and the parameters' step."""
    size = len(head)
    right = head[:, -1] - head[:, size:-1] @ theta
    return linalg.solve_triangular(head[:, :size], right) if size else right


def _check_told_apart(triangle: np.ndarray, columns: tuple[str, ...]) -> None:
    lengths = np.linalg.norm(triangle[:, :-1], axis=0)
    bad = np.flatnonzero(np.abs(np.diag(triangle)[:-1]) <= DEPENDENT * np.maximum(lengths, 1e-150))
    if len(bad):
        raise EstimateError(
            f"ml: with noise on torques and positions, '{columns[int(bad[0])]}' cannot be told from the parameters "
            "before it; record a more exciting motion, give a smaller position_noise, or use gls"
        )
