"""Stacked equations reduced to one triangle, solved with scaled columns; the rank is decided on the stack."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg

from ..errors import EstimateError
from ..observe import Factor, Observations, merged_triangle
from ..text import short_repr

NoiseGroup = tuple[str, str, str]
"""Recording, torque kind and joint: the equations that share one noise."""

DEPENDENT = 1e-8
"""A column whose distance to those before it, relative to its length, is below this is spanned by them."""


def group_of(factor: Factor) -> NoiseGroup:
    """Return the recording, torque kind and joint of a factor."""
    return factor.recording, factor.kind, factor.joint


@dataclass(frozen=True)
class System:
    """Weighted equations ``y = W x`` of all recordings, as the triangle R of ``[W y]``.

    Attributes:
        columns: Names of the unknowns, c of them.
        triangle: Upper triangular (c + 1, c + 1); ``R^T R = [W y]^T [W y]``.
        rows: Number of equations behind it.
        dropped: Columns left out because those before span them on these data.
    """

    __repr__ = short_repr

    columns: tuple[str, ...]
    triangle: np.ndarray
    rows: int
    dropped: tuple[str, ...] = ()

    @cached_property
    def scale(self) -> np.ndarray:
        """Length of every column (c,)."""
        return np.linalg.norm(self.triangle[:, :-1], axis=0)

    @cached_property
    def _scaled(self) -> np.ndarray:
        return self.triangle[:-1, :-1] / self.scale

    @cached_property
    def values(self) -> np.ndarray:
        """The least-squares solution (c,)."""
        return linalg.solve_triangular(self._scaled, self.triangle[:-1, -1]) / self.scale

    @cached_property
    def inverse_root(self) -> np.ndarray:
        """``R^-1`` (c, c): ``(W^T W)^-1 = R^-1 R^-T``."""
        identity = np.eye(len(self.columns))
        return linalg.solve_triangular(self._scaled, identity) / self.scale[:, None]

    @cached_property
    def inverse(self) -> np.ndarray:
        """``(W^T W)^-1`` (c, c)."""
        return self.inverse_root @ self.inverse_root.T

    @property
    def squares(self) -> float:
        """Sum of squared weighted residuals at the solution."""
        return float(self.triangle[-1, -1] ** 2)

    @property
    def freedom(self) -> int:
        """Equations less unknowns."""
        return self.rows - len(self.columns)

    @cached_property
    def condition(self) -> float:
        """Condition number of W as it is."""
        return condition_number(self.triangle[:-1, :-1])

    @cached_property
    def normalised_condition(self) -> float:
        """Condition number of W with every column at unit length."""
        return condition_number(self._scaled)

    def restricted(self, columns: Sequence[str]) -> System:
        """Return the system with only these unknowns; the others are zero."""
        index = [self.columns.index(name) for name in columns]
        triangle = np.asarray(np.linalg.qr(self.triangle[:, [*index, -1]], mode="r"))
        return System(tuple(columns), _square(triangle), self.rows, self.dropped)

    def with_rows(self, rows: np.ndarray) -> System:
        """Return the system with further weighted equations (k, c + 1) that count as no measurements (a prior)."""
        triangle = np.asarray(np.linalg.qr(np.vstack([self.triangle, rows]), mode="r"))
        return System(self.columns, _square(triangle), self.rows, self.dropped)

    def squares_at(self, values: np.ndarray) -> float:
        """Return the sum of squared weighted residuals at given values (c,)."""
        return float(np.sum((self.triangle @ np.append(-values, 1.0)) ** 2))


def condition_number(matrix: np.ndarray) -> float:
    """Return the largest over the smallest singular value; infinite if the smallest is zero."""
    singular = np.linalg.svd(matrix, compute_uv=False)
    return float(singular[0] / singular[-1]) if singular[-1] > 0 else float("inf")


def stacked_system(
    observations: Observations,
    columns: Sequence[str],
    weights: Mapping[NoiseGroup, float] | None = None,
    chosen: Callable[[Factor], bool] | None = None,
) -> System:
    """Stack the factors of all recordings, joints and blocks into one system of full rank.

    Args:
        observations: The factors.
        columns: The unknowns, in the order in which a dependent column yields to those before it.
        weights: Weight of every noise group's equations, one over their standard deviation; 1 where not given.
        chosen: Which factors to take; all by default.

    Raises:
        EstimateError: If there are fewer equations than unknowns.
    """
    factors = [factor for factor in observations.factors if chosen is None or chosen(factor)]
    weight = None if weights is None else lambda factor: weights[group_of(factor)]
    triangle, rows = merged_triangle(factors, columns, weight)
    triangle.setflags(write=False)
    if rows <= len(columns):
        raise EstimateError(
            f"{rows} rows of equations for {len(columns)} parameters: more rows than parameters are needed; record "
            "longer, decimate less (--decimation), or leave effects out of the model (--effects)"
        )
    return independent(System(tuple(columns), triangle, rows))


def independent(system: System) -> System:
    """Return the system without the columns that are zero or spanned by those before them (rank on the stack)."""
    left = list(system.columns)
    triangle = system.triangle
    while True:
        norms = np.linalg.norm(triangle[:, :-1], axis=0)
        distance = np.abs(np.diag(triangle)[:-1])
        # Absolute first: a column of rounding errors scaled to unit length would look like a parameter.
        bad = np.flatnonzero((norms <= 1e-13 * norms.max(initial=0.0)) | (distance <= DEPENDENT * norms))
        if not len(bad):
            break
        # One at a time: the distances after a zero pivot are no longer those to the columns that are left.
        del left[int(bad[0])]
        if not left:
            raise EstimateError("no parameter has any effect on these recordings: is the arm moving?")
        index = [system.columns.index(name) for name in left]
        triangle = _square(np.asarray(np.linalg.qr(system.triangle[:, [*index, -1]], mode="r")))
    dropped = tuple(name for name in system.columns if name not in left)
    return System(tuple(left), triangle, system.rows, dropped)


def _square(triangle: np.ndarray) -> np.ndarray:
    """Return the triangle with as many rows as columns."""
    missing = triangle.shape[1] - triangle.shape[0]
    square = np.vstack([triangle, np.zeros((missing, triangle.shape[1]))]) if missing > 0 else triangle
    square.setflags(write=False)
    return square
