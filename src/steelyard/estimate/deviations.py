"""Standard deviations of the equations of one joint, from its own factor alone (P1.2)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from types import MappingProxyType

import numpy as np

from ..errors import EstimateError
from ..observe import Factor, Observations, merged_triangle
from .system import Cell, System, cell_of

LEAST_FREEDOM = 20
"""With fewer rows to spare a recording's own deviation is poorly known and is pooled with the others'."""


def cell_factors(observations: Observations) -> dict[Cell, tuple[Factor, ...]]:
    """Return the factors of every recording, kind and joint."""
    ordered = sorted(observations.factors, key=cell_of)
    return {cell: tuple(group) for cell, group in groupby(ordered, key=cell_of)}


def joint_deviations(observations: Observations, per_recording: bool = True) -> Mapping[Cell, float]:
    """Return the standard deviation of the noise on every joint's equations.

    ``sigma_j^2 = min ||rho^j||^2 / (r_j - c_j)`` where the minimum is that of joint j's own equations (P1.2): the
    square of the last diagonal element of the triangle of ``[W^j y^j]``, no solution being computed. ``c_j`` counts
    the columns triangularised: where they are dependent, rounding still removes one direction of y for each of them.
    Columns of zeros are left out before.

    Args:
        observations: The factors.
        per_recording: Whether every recording has its own; else one for a joint's equations in all of them.

    Raises:
        EstimateError: If a joint has no more rows than columns.
    """
    cells = cell_factors(observations)
    found: dict[Cell, float] = {}
    for kind, joint in sorted({cell[1:] for cell in cells}):
        mine = {cell: factors for cell, factors in cells.items() if cell[1:] == (kind, joint)}
        own = {cell: _deviation(factors) for cell, factors in mine.items()}
        if per_recording and all(freedom >= LEAST_FREEDOM for _, freedom in own.values()):
            found.update({cell: deviation for cell, (deviation, _) in own.items()})
            continue
        pooled, freedom = _deviation(tuple(factor for factors in mine.values() for factor in factors))
        if freedom < 1:
            raise EstimateError(
                f"joint '{joint}' ({kind} torque) has no more rows than parameters it feels: its noise cannot be "
                "told; record longer or decimate less"
            )
        found.update(dict.fromkeys(mine, pooled))
    return MappingProxyType(_above_zero(found))


def _deviation(factors: tuple[Factor, ...]) -> tuple[float, int]:
    felt = (
        name
        for factor in factors
        for name, is_felt in zip(factor.columns, np.any(factor.triangle[:, :-1], axis=0).tolist(), strict=True)
        if is_felt
    )
    columns = tuple(dict.fromkeys(felt))
    triangle, rows = merged_triangle(factors, columns)
    freedom = rows - len(columns)
    return (abs(float(triangle[-1, -1])) / np.sqrt(freedom) if freedom > 0 else float("nan")), freedom


def fitted_deviations(
    observations: Observations, system: System, weights: Mapping[Cell, float]
) -> Mapping[Cell, float]:
    """Return the deviation of every cell's residuals at the solution of a weighted system.

    ``sigma_e^2 = ||rho_e||^2 / (r_e - tr H_e)``, with ``H_e`` the part of the hat matrix that belongs to the cell.
    """
    found = {}
    for cell, factors in cell_factors(observations).items():
        triangle, rows = merged_triangle(factors, system.columns)
        residual = triangle @ np.append(-system.values, 1.0)
        leverage = weights[cell] ** 2 * float(np.sum((triangle[:, :-1] @ system.inverse_root) ** 2))
        found[cell] = float(np.linalg.norm(residual)) / np.sqrt(max(rows - leverage, 1.0))
    return MappingProxyType(_above_zero(found))


def _above_zero(deviations: dict[Cell, float]) -> dict[Cell, float]:
    """Keep a noise-free simulation from giving infinite weights."""
    floor = 1e-12 * max(deviations.values(), default=1.0) or 1e-300
    return {cell: max(value, floor) for cell, value in deviations.items()}
