"""The least-squares family on factors: ordinary, weighted by joint (P1), iterated, towards a prior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..errors import EstimateError, nearest_match
from ..observe import Observations
from .deviations import cell_factors, fitted_deviations, joint_deviations
from .record import Estimate
from .system import Cell, System, stacked_system

_MOST_ITERATIONS = 50
_SETTLED = 1e-6


def ordinary(observations: Observations, columns: Sequence[str]) -> Estimate:
    """Return ordinary least squares: every equation counts alike, ``C = s^2 (W^T W)^-1``, ``s^2 = rho^2 / (r - c)``."""
    system = stacked_system(observations, columns)
    variance = system.squares / system.freedom
    deviations = dict.fromkeys(cell_factors(observations), float(np.sqrt(variance)))
    return replace(_estimate("ols", system, variance, deviations), unweighted=True)


def weighted(
    observations: Observations,
    columns: Sequence[str],
    deviations: Mapping[Cell, float] | None = None,
    *,
    per_recording: bool = True,
) -> Estimate:
    """Return least squares with equations weighted by ``1 / sigma_j`` (P1.3): ``C = (W_w^T W_w)^-1``.

    Args:
        observations: The factors.
        columns: Names of the unknowns.
        deviations: Standard deviation of every cell; P1's per-joint ones if not given.
        per_recording: Whether each recording is weighted by its own noise.
    """
    used = joint_deviations(observations, per_recording) if deviations is None else deviations
    return _estimate("wls", stacked_system(observations, columns, _inverse(used)), 1.0, used)


def iterated(observations: Observations, columns: Sequence[str]) -> Estimate:
    """Return weighted least squares whose deviations are those of its own residuals, repeated until they settle."""
    used: Mapping[Cell, float] = joint_deviations(observations)
    for _ in range(_MOST_ITERATIONS):
        weights = _inverse(used)
        system = stacked_system(observations, columns, weights)
        found = fitted_deviations(observations, system, weights)
        change = max(abs(np.log(found[cell] / used[cell])) for cell in used)
        used = found
        if change < _SETTLED:
            break
    return _estimate("iterated", stacked_system(observations, columns, _inverse(used)), 1.0, used)


def towards_prior(estimate: Estimate, prior: Mapping[str, tuple[float, float]]) -> Estimate:
    """Return the estimate drawn towards prior values (ridge): ``+ sum ((x_i - x0_i) / s_i)^2``.

    Args:
        estimate: A least-squares estimate; its weights stay as they are.
        prior: Value and standard deviation by name. The deviation is the stated weight: small holds, large lets go.

    Raises:
        EstimateError: If a name is not among the estimate's columns, or a deviation is not above 0.
    """
    columns = estimate.columns
    rows = np.zeros((len(prior), len(columns) + 1))
    for row, (name, (value, deviation)) in zip(rows, prior.items(), strict=True):
        if name not in columns:
            raise EstimateError(
                f"prior for '{name}', which is not estimated; estimated are {', '.join(columns[:8])} ..."
                f"{nearest_match(name, columns)}"
            )
        if not (np.isfinite(value) and np.isfinite(deviation) and deviation > 0):
            raise EstimateError(f"prior for '{name}': got {value} +- {deviation}, needed is a deviation above 0")
        row[columns.index(name)], row[-1] = 1 / deviation, value / deviation
    system = estimate.system.with_rows(rows * estimate.unit)
    drawn = _estimate("ridge", system, estimate.unit**2, estimate.deviations, estimate.freedom)
    return replace(drawn, unweighted=estimate.unweighted)


def _estimate(
    method: str, system: System, variance: float, deviations: Mapping[Cell, float], freedom: np.ndarray | None = None
) -> Estimate:
    if freedom is None:
        freedom = np.full(len(system.columns), float(system.freedom))
    return Estimate(method, system, system.values, variance * system.inverse, "classical", freedom, deviations)


def _inverse(deviations: Mapping[Cell, float]) -> dict[Cell, float]:
    return {cell: 1 / deviation for cell, deviation in deviations.items()}
