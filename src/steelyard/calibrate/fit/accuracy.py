"""Errors of measured points and orientations in four numbers each: mean, rms, 95 % and largest [mm, deg]."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...errors import CalibrationError
from ..records import COORDINATES, Equations

_ROTATIONS = (COORDINATES.index("rx"), COORDINATES.index("ry"), COORDINATES.index("rz"))


@dataclass(frozen=True)
class Accuracy:
    """How far predicted points and orientations lie from measured ones.

    Attributes:
        mean_mm: Mean of the distances [mm].
        rms_mm: Root of the mean of their squares [mm].
        p95_mm: The distance that 95 % of the points keep [mm].
        max_mm: The largest [mm].
        points: How many points.
        rotation_mean_deg: Mean angle between measured and predicted orientations [deg]; None if none is measured.
        rotation_rms_deg: Root of the mean of their squares [deg].
        rotation_p95_deg: The angle that 95 % of the orientations keep [deg].
        rotation_max_deg: The largest [deg].
        rotations: How many orientations.
    """

    mean_mm: float
    rms_mm: float
    p95_mm: float
    max_mm: float
    points: int
    rotation_mean_deg: float | None = None
    rotation_rms_deg: float | None = None
    rotation_p95_deg: float | None = None
    rotation_max_deg: float | None = None
    rotations: int = 0


def point_distances(equations: Equations, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that have a position or a distance (n,), and how far each lies off (n,) [m].

    Off is the norm over the coordinates that were measured; rotations do not count.
    """
    placed = ~np.isin(equations.coordinate, _ROTATIONS)
    rows, number = np.unique(equations.row[placed], return_inverse=True)
    return rows, np.sqrt(np.bincount(number, residual[placed] ** 2, minlength=len(rows)))


def accuracy_of(equations: Equations, residual: np.ndarray) -> Accuracy:
    """Return the statistics of the points that some equations measure.

    Raises:
        CalibrationError: If no position and no distance is among them.
    """
    distances = point_distances(equations, residual)[1] * 1e3
    if not len(distances):
        raise CalibrationError("accuracy: none of the equations measures a position or a distance")
    angles = np.degrees(turn_angles(equations, residual))
    placed = Accuracy(*_four_numbers(distances), len(distances))
    if not len(angles):
        return placed
    mean, rms, p95, largest = _four_numbers(angles)
    return replace(
        placed, rotation_mean_deg=mean, rotation_rms_deg=rms, rotation_p95_deg=p95, rotation_max_deg=largest,
        rotations=len(angles),
    )  # fmt: skip


def turn_angles(equations: Equations, residual: np.ndarray) -> np.ndarray:
    """Return the angle between measured and predicted orientation of each row that has one (n,) [rad]."""
    turned = np.isin(equations.coordinate, _ROTATIONS)
    rows, number = np.unique(equations.row[turned], return_inverse=True)
    return np.sqrt(np.bincount(number, residual[turned] ** 2, minlength=len(rows)))


def _four_numbers(errors: np.ndarray) -> tuple[float, float, float, float]:
    root = float(np.sqrt(np.mean(errors**2)))
    return float(errors.mean()), root, float(np.quantile(errors, 0.95)), float(errors.max())
