"""Position errors of measured points in four numbers: mean, rms, 95 % and largest [mm]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import CalibrationError
from ..records import COORDINATES, Equations

_ROTATIONS = (COORDINATES.index("rx"), COORDINATES.index("ry"), COORDINATES.index("rz"))


@dataclass(frozen=True)
class Accuracy:
    """How far predicted points lie from measured ones.

    Attributes:
        mean_mm: Mean of the distances [mm].
        rms_mm: Root of the mean of their squares [mm].
        p95_mm: The distance that 95 % of the points keep [mm].
        max_mm: The largest [mm].
        points: How many points.
    """

    mean_mm: float
    rms_mm: float
    p95_mm: float
    max_mm: float
    points: int


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
    return Accuracy(
        float(distances.mean()),
        float(np.sqrt(np.mean(distances**2))),
        float(np.quantile(distances, 0.95)),
        float(distances.max()),
        len(distances),
    )
