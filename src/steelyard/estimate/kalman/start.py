"""Where the parameters start, and how little that is trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...errors import EstimateError, nearest_match
from ...observe import RowBlock, RowSource
from ...robot import INERTIAL_NAMES
from ..evidence import Evidence
from ..record import Estimate
from .settings import KalmanSettings


@dataclass(frozen=True, eq=False)
class Start:
    """Parameters before the first sample.

    Attributes:
        values: (c,).
        covariance: (c, c).
    """

    values: np.ndarray
    covariance: np.ndarray


def start_of(evidence: Evidence, settings: KalmanSettings, prior: Mapping[str, tuple[float, float]]) -> Start:
    """Return the start that the settings ask for, with the prior's values and deviations where it has them.

    Raises:
        EstimateError: If the prior names a parameter that is not estimated, or has a deviation that is not above 0.
    """
    plain = evidence.plain
    if settings.start == "first":
        values, covariance = _first_rows(evidence, settings)
    elif settings.start == "wls":
        values, covariance = plain.values.copy(), settings.widen**2 * plain.covariance
    elif settings.start == "robot":
        values = robot_values(evidence)
        covariance = np.diag(np.maximum(np.abs(values), settings.widen * plain.sigma) ** 2)
    else:
        values, covariance = np.zeros(len(plain.columns)), np.diag(_sizes(plain) ** 2)
    for name, (value, deviation) in prior.items():
        k = _place(plain.columns, name)
        if not (np.isfinite(value) and np.isfinite(deviation) and deviation > 0):
            raise EstimateError(f"prior for '{name}': got {value} +- {deviation}, needed is a deviation above 0")
        values[k] = value
        covariance[k, :] = covariance[:, k] = 0.0
        covariance[k, k] = deviation**2
    return Start(values, covariance)


def free_columns(columns: tuple[str, ...], locked: tuple[str, ...]) -> list[int]:
    """Return which columns are estimated.

    Raises:
        EstimateError: If a locked name is not a column, or none is left.
    """
    held = {_place(columns, name) for name in locked}
    free = [k for k in range(len(columns)) if k not in held]
    if not free:
        raise EstimateError("ekf locked: every parameter is locked, nothing is left to estimate; leave one free")
    return free


def robot_values(evidence: Evidence) -> np.ndarray:
    """Return the values of the robot's file as base parameters (c,); 0 for what it does not know."""
    equations, robot = evidence.equations, evidence.equations.model.robot
    known = {
        f"{symbol}{body.number}": value
        for body in robot.bodies
        for symbol, value in zip(INERTIAL_NAMES, body.inertia or np.zeros(10), strict=True)
    }
    known |= robot.values
    standard = np.array([known.get(name, 0.0) for name in equations.model.names])
    base = dict(zip(equations.names, equations.base.regrouping @ standard, strict=True))
    return np.array([base[name] for name in evidence.columns])


def _place(columns: tuple[str, ...], name: str) -> int:
    if name not in columns:
        raise EstimateError(
            f"'{name}' is not among the estimated parameters {', '.join(columns[:8])} ...{nearest_match(name, columns)}"
        )
    return columns.index(name)


def _sizes(plain: Estimate) -> np.ndarray:
    """Return for each parameter the value with which its column alone would be as large as the torques (c,)."""
    return np.linalg.norm(plain.system.triangle[:, -1]) / plain.system.scale


def _first_rows(evidence: Evidence, settings: KalmanSettings) -> tuple[np.ndarray, np.ndarray]:
    """Return weighted least squares of the first rows, held by the size of the torques where they do not say."""
    plain = evidence.plain
    count = len(plain.columns)
    system = _first_triangle(evidence, settings.first) / settings.widen
    sizes = np.column_stack([np.diag(1 / _sizes(plain)), np.zeros(count)])
    triangle = np.asarray(np.linalg.qr(np.vstack([system, sizes]), mode="r"))
    root = np.linalg.inv(triangle[:count, :count])
    return root @ triangle[:count, count], root @ root.T


def _first_triangle(evidence: Evidence, part: float) -> np.ndarray:
    """Return the triangle of the weighted rows ``[W y]`` of the first part of the recordings (c + 1, c + 1)."""
    wanted = int(np.ceil(part * evidence.plain.system.rows / len(evidence.equations.kinds_joints)))
    triangle = np.zeros((len(evidence.columns) + 1,) * 2)
    for source in evidence.sources:
        for block in source:
            rows = _weighted(evidence, source, block, wanted)
            triangle = np.asarray(np.linalg.qr(np.vstack([triangle, rows]), mode="r"))
            wanted -= len(block.time)
            if wanted <= 0:
                return triangle
    return triangle


def _weighted(evidence: Evidence, source: RowSource, block: RowBlock, instants: int) -> np.ndarray:
    """Return the weighted rows (k, c + 1) of the first instants of a block."""
    place, weights = {name: k for k, name in enumerate(evidence.columns)}, evidence.plain.weights
    parts = [np.zeros((0, len(place) + 1))]
    for e, equation in enumerate(source.equations.kinds_joints):
        weight = weights.get((source.label, *equation), 0.0)
        names = source.equations.columns[e]
        kept = [k for k, name in enumerate(names) if name in place]
        for first, rows in block.runs(e):
            chosen = rows[: max(0, instants - first)]
            spread_rows = np.zeros((len(chosen), len(place) + 1))
            spread_rows[:, [place[names[k]] for k in kept]] = chosen[:, kept]
            spread_rows[:, -1] = chosen[:, -1]
            parts.append(weight * spread_rows)
    return np.concatenate(parts)
