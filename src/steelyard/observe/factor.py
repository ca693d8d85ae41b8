"""Factors: the triangle of ``[W y]`` of one equation, one recording and one block of time; merged late, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import ObservationError
from ..text import short_repr
from .triangle import RowStack


@dataclass(frozen=True, eq=False)
class Factor:
    """All that least squares needs of a stretch of rows.

    Attributes:
        recording: Label of the recording.
        kind: Torque kind of the rows: ``motor``, ``joint`` or ``difference``.
        joint: Joint of the rows.
        block: Number of the block of time, from 0.
        columns: Names of the columns of W (c,).
        triangle: Upper triangular R (c + 1, c + 1) with ``R^T R = [W y]^T [W y]``.
        rows: Number of rows it stands for.
    """

    __repr__ = short_repr

    recording: str
    kind: str
    joint: str
    block: int
    columns: tuple[str, ...]
    triangle: np.ndarray
    rows: int


def merged_triangle(
    factors: Iterable[Factor], columns: Sequence[str], weights: Callable[[Factor], float] | None = None
) -> tuple[np.ndarray, int]:
    """Return one triangle of all factors, their columns aligned by name.

    Args:
        factors: The factors.
        columns: Names of the columns of the result. One that a factor does not have is zero there; one of a factor
            that is not named here is left out, as if its parameter were zero.
        weights: By what the rows of a factor are multiplied, one over their standard deviation; 1 by default.

    Returns:
        The triangle (c + 1, c + 1) of ``[W y]``, y last, and the number of rows that it stands for.

    Raises:
        ObservationError: If a column is named twice, or a weight is not finite or negative.
    """
    place = {name: k for k, name in enumerate(columns)}
    if len(place) != len(columns):
        repeated = next(name for name in columns if list(columns).count(name) > 1)
        raise ObservationError(f"column '{repeated}' is named twice; name each column once")
    stack = RowStack(len(columns) + 1)
    count = 0
    for factor in factors:
        stack.push(_aligned(factor, place) * _weight(factor, weights))
        count += factor.rows
    return stack.triangle(), count


def _aligned(factor: Factor, place: dict[str, int]) -> np.ndarray:
    rows = np.zeros((len(factor.triangle), len(place) + 1))
    known = [k for k, name in enumerate(factor.columns) if name in place]
    rows[:, [place[factor.columns[k]] for k in known]] = factor.triangle[:, known]
    rows[:, -1] = factor.triangle[:, -1]
    return rows


def _weight(factor: Factor, weights: Callable[[Factor], float] | None) -> float:
    weight = 1.0 if weights is None else float(weights(factor))
    if not (np.isfinite(weight) and weight >= 0):
        raise ObservationError(
            f"weight of factor {factor.recording}, {factor.kind} {factor.joint}: got {weight}, allowed are finite "
            "numbers of 0 and above"
        )
    return weight
