"""Least squares on factors: ordinary, weighted by joint (P1), iterated, and towards a prior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from types import MappingProxyType

import numpy as np

from ..errors import EstimateError
from ..observe import Factor, Observations, merged_triangle
from .evidence import Estimate, Prior, checked_prior
from .system import NoiseGroup, System, group_of, stacked_system

LEAST_FREEDOM = 20
"""With fewer rows to spare a recording's own deviation is poorly known and is pooled with the others'."""


def group_factors(observations: Observations) -> dict[NoiseGroup, tuple[Factor, ...]]:
    """Return the factors of every recording, kind and joint."""
    ordered = sorted(observations.factors, key=group_of)
    return {group: tuple(factors) for group, factors in groupby(ordered, key=group_of)}


def joint_deviations(observations: Observations) -> Mapping[NoiseGroup, float]:
    """Return the standard deviation of the noise on every joint's equations.

    ``sigma_j^2 = min ||rho^j||^2 / (r_j - c_j)`` where the minimum is that of joint j's own equations (P1.2): the
    square of the last diagonal element of the triangle of ``[W^j y^j]``, no solution being computed. ``c_j`` counts
    the columns triangularised: where they are dependent, rounding still removes one direction of y for each of them.
    Columns of zeros are left out before.

    Every recording has its own, unless one has so few rows that those of all recordings are pooled.

    Raises:
        EstimateError: If a joint has no more rows than columns.
    """
    groups = group_factors(observations)
    found: dict[NoiseGroup, float] = {}
    for kind, joint in sorted({group[1:] for group in groups}):
        mine = {group: factors for group, factors in groups.items() if group[1:] == (kind, joint)}
        own = {group: _deviation(factors) for group, factors in mine.items()}
        if all(freedom >= LEAST_FREEDOM for _, freedom in own.values()):
            found.update({group: deviation for group, (deviation, _) in own.items()})
            continue
        pooled, freedom = _deviation(tuple(factor for factors in mine.values() for factor in factors))
        if freedom < 1:
            raise EstimateError(
                f"joint '{joint}' ({kind} torque) has no more rows than non-zero columns: its noise cannot be "
                "estimated; record longer or decimate less"
            )
        found.update(dict.fromkeys(mine, pooled))
    return MappingProxyType(above_zero(found))


def _deviation(factors: tuple[Factor, ...]) -> tuple[float, int]:
    nonzero = (factor.columns[k] for factor in factors for k in np.flatnonzero(factor.triangle[:, :-1].any(axis=0)))
    columns = tuple(dict.fromkeys(nonzero))
    triangle, rows = merged_triangle(factors, columns)
    freedom = rows - len(columns)
    return (abs(float(triangle[-1, -1])) / np.sqrt(freedom) if freedom > 0 else float("nan")), freedom


def fitted_deviations(
    observations: Observations, system: System, weights: Mapping[NoiseGroup, float]
) -> Mapping[NoiseGroup, float]:
    """Return the deviation of every noise group's residuals at the solution of a weighted system.

    ``sigma_e^2 = ||rho_e||^2 / (r_e - tr H_e)``, with ``H_e`` the part of the hat matrix that belongs to the group.
    """
    found = {}
    for group, factors in group_factors(observations).items():
        triangle, rows = merged_triangle(factors, system.columns)
        residual = triangle @ np.append(-system.values, 1.0)
        leverage = weights[group] ** 2 * float(np.sum((triangle[:, :-1] @ system.inverse_root) ** 2))
        found[group] = float(np.linalg.norm(residual)) / np.sqrt(max(rows - leverage, 1.0))
    return MappingProxyType(above_zero(found))


def above_zero(deviations: dict[NoiseGroup, float]) -> dict[NoiseGroup, float]:
    """Keep a noise-free simulation from giving infinite weights."""
    floor = 1e-12 * max(deviations.values(), default=1.0) or 1e-300
    return {group: max(value, floor) for group, value in deviations.items()}


_MOST_ITERATIONS = 50
_CONVERGED = 1e-6


def ordinary(observations: Observations, columns: Sequence[str]) -> Estimate:
    """Return ordinary least squares: every equation counts alike, ``C = s^2 (W^T W)^-1``, ``s^2 = rho^2 / (r - c)``."""
    system = stacked_system(observations, columns)
    variance = system.squares / system.freedom
    deviations = dict.fromkeys(group_factors(observations), float(np.sqrt(variance)))
    return replace(_estimate("ols", system, variance, deviations), unweighted=True)


def weighted(
    observations: Observations, columns: Sequence[str], deviations: Mapping[NoiseGroup, float] | None = None
) -> Estimate:
    """Return least squares with equations weighted by ``1 / sigma_j`` (P1.3): ``C = (W_w^T W_w)^-1``.

    Args:
        observations: The factors.
        columns: Names of the unknowns.
        deviations: Standard deviation of every noise group; P1's per-joint ones if not given.
    """
    used = joint_deviations(observations) if deviations is None else deviations
    return _estimate("wls", stacked_system(observations, columns, _inverse(used)), 1.0, used)


def iterated(observations: Observations, columns: Sequence[str]) -> Estimate:
    """Return weighted least squares whose deviations are those of its own residuals, repeated until they converge."""
    used: Mapping[NoiseGroup, float] = joint_deviations(observations)
    for _ in range(_MOST_ITERATIONS):
        weights = _inverse(used)
        system = stacked_system(observations, columns, weights)
        found = fitted_deviations(observations, system, weights)
        change = max(abs(np.log(found[group] / used[group])) for group in used)
        used = found
        if change < _CONVERGED:
            break
    return _estimate("iterated", stacked_system(observations, columns, _inverse(used)), 1.0, used)


def towards_prior(estimate: Estimate, prior: Prior) -> Estimate:
    """Return the estimate drawn towards prior values (ridge): ``+ sum ((x_i - x0_i) / s_i)^2``.

    Args:
        estimate: A least-squares estimate; its weights stay as they are.
        prior: Value and standard deviation by name. The deviation is the stated weight: small holds, large lets go.

    Raises:
        EstimateError: If a name is not among the estimate's columns, or a deviation is not above 0.
    """
    rows = np.zeros((len(prior), len(estimate.columns) + 1))
    for row, (place, value, deviation) in zip(rows, checked_prior(prior, estimate.columns), strict=True):
        row[place], row[-1] = 1 / deviation, value / deviation
    system = estimate.system.with_rows(rows * estimate.unit)
    drawn = _estimate("ridge", system, estimate.unit**2, estimate.deviations)
    return replace(drawn, freedom=estimate.freedom, unweighted=estimate.unweighted)


def _estimate(method: str, system: System, variance: float, deviations: Mapping[NoiseGroup, float]) -> Estimate:
    freedom = np.full(len(system.columns), float(system.freedom))
    return Estimate(method, system, system.values, variance * system.inverse, "classical", freedom, deviations)


def _inverse(deviations: Mapping[NoiseGroup, float]) -> dict[NoiseGroup, float]:
    return {group: 1 / deviation for group, deviation in deviations.items()}
