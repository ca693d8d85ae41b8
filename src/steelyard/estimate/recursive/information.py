"""The square root of the information, updated by orthogonal reduction, with older rows forgotten.

With lambda the forgetting factor, after instant k

    R_k^T R_k = sum_i lambda^(k-i) [W_i y_i]^T [W_i y_i],    R_k = triangle of [sqrt(lambda) R_{k-1}; W_k y_k].

Rows with white noise of unit variance give the estimate ``x = R^-1 z`` the covariance ``P S P``, ``P = (R^T R)^-1`` and
``S = sum_i lambda^(2(k-i)) W_i^T W_i``: a second triangle, with lambda in the place of its root, tracks S. Without
forgetting S is the information itself and ``P S P = P``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

_PANEL = 16
_NOTHING = 1e-150


@dataclass(frozen=True, eq=False)
class Solved:
    """What is known at one instant.

    Attributes:
        triangle: R of ``[W y]`` (c + 1, c + 1).
        spread: Triangle of S (c, c); None without forgetting.
    """

    triangle: np.ndarray
    spread: np.ndarray | None

    @cached_property
    def _scale(self) -> np.ndarray:
        return np.linalg.norm(self.triangle[:-1, :-1], axis=0)

    def dependent(self, limit: float) -> int | None:
        """Return the first column that is zero or nearer to those before it than this part of its length, if any."""
        distance = np.abs(np.diag(self.triangle)[:-1])
        bad = np.flatnonzero(distance <= limit * np.maximum(self._scale, _NOTHING))
        return int(bad[0]) if len(bad) else None

    @cached_property
    def values(self) -> np.ndarray:
        """The estimate (c,)."""
        return self._solved(self.triangle[:-1, -1])

    @cached_property
    def root(self) -> np.ndarray:
        """A square root G (c, c) of the covariance, ``G G^T``."""
        inverse = self._solved(np.eye(len(self._scale)))
        return inverse if self.spread is None else inverse @ (inverse.T @ self.spread.T)

    @property
    def sigma(self) -> np.ndarray:
        """Standard deviations (c,)."""
        return np.linalg.norm(self.root, axis=1)

    def _solved(self, right: np.ndarray) -> np.ndarray:
        scaled = self.triangle[:-1, :-1] / self._scale
        solution = linalg.solve_triangular(scaled, right, check_finite=False)
        return (solution.T / self._scale).T


class Information:
    """The triangles while rows come in.

    Args:
        start: Rows ``[W y]`` known before the first instant (k, c + 1), of unit variance; none: (0, c + 1).
        forgetting: The forgetting factor.

    Attributes:
        rows: Rows that came in after the start.
    """

    def __init__(self, start: np.ndarray, forgetting: float) -> None:
        width = start.shape[1]
        self._forgetting = forgetting
        self._triangle = updated(np.zeros((width, width), order="F"), start)
        self._spread = updated(np.zeros((width - 1, width - 1), order="F"), start[:, :-1]) if forgetting < 1 else None
        self.rows = 0

    def take(self, rows: np.ndarray, bounds: np.ndarray) -> None:
        """Take the rows (m, c + 1) of neighbouring instants; those of instant i are ``bounds[i]`` to ``bounds[i + 1]``.

        One reduction for all of them is the same as one for each: rows of an instant that is followed by j others
        are forgotten j times on the way in.
        """
        self.rows += len(rows)
        if self._spread is None:
            self._triangle = updated(self._triangle, rows)
            return
        instants = len(bounds) - 1
        age = np.repeat(np.arange(instants)[::-1], np.diff(bounds))[:, None]
        self._triangle = updated(
            self._triangle * self._forgetting ** (instants / 2), rows * self._forgetting ** (age / 2)
        )
        self._spread = updated(self._spread * self._forgetting**instants, rows[:, :-1] * self._forgetting**age)

    def solved(self) -> Solved:
        """Return what is known now."""
        return Solved(self._triangle, self._spread)


def updated(triangle: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the triangle of ``[triangle; rows]``: Householder reflections that leave the zeros below it alone."""
    if not len(rows):
        return triangle
    panel = min(_PANEL, len(triangle))
    return lapack.dtpqrt(0, panel, triangle, rows)[0]  # pyright: ignore[reportAttributeAccessIssue]
