"""What an instrument's data sheet says of each measured position: standard deviations by row and axis."""

from __future__ import annotations

import numpy as np

from ...errors import CalibrationError
from ..records import Equations
from .measurements import Measurements
from .setup import CalibrationSetup, TrackerNoise

TWO_READINGS = np.sqrt(2.0)
"""A difference or a distance is made of two readings, each with the instrument's noise."""


def instrument_sigma(setup: CalibrationSetup, measurements: Measurements) -> np.ndarray | None:
    """Return the standard deviation of every row in x, y and z (R, 3) [m], or None where the set-up declares none.

    A difference or a distance has the noise of two readings. NaN where a coordinate is missing, and with it the
    distance from the tracker.
    """
    if setup.tracker is not None:
        if set(measurements.kind) - {"position", "pose"}:
            raise CalibrationError(
                "the noise of a tracker follows from measured positions; declare sigma instead of tracker in "
                f"[measurement] for rows of kind {', '.join(sorted(set(measurements.kind)))}"
            )
        return tracker_sigma(setup.tracker, measurements.value)
    if setup.sigma is None:
        return None
    sigma = np.tile(np.array(setup.sigma), (measurements.rows, 1))
    sigma[measurements.of_kind("difference") | measurements.of_kind("distance")] *= TWO_READINGS
    return sigma


def declared_sigma(setup: CalibrationSetup, measurements: Measurements, equations: Equations) -> np.ndarray:
    """Return the declared standard deviation of every equation (E,) [m or rad]; NaN for rotations without one.

    A length is no angle: rotations have the set-up's ``sigma_rotation`` or none. A distance has the mean of x, y and z.

    Raises:
        CalibrationError: If the set-up declares neither sigma nor tracker.
    """
    rows = instrument_sigma(setup, measurements)
    if rows is None:
        raise CalibrationError("method 'declared': the set-up declares no sigma and no tracker; write one of them")
    turn = np.nan if setup.sigma_rotation is None else setup.sigma_rotation
    apart = np.sqrt((rows**2).mean(axis=1, keepdims=True))
    # By coordinate, in the order of COORDINATES.
    table = np.hstack([rows, np.full((len(rows), 3), turn), apart])
    return table[equations.row, equations.coordinate]


def tracker_sigma(noise: TrackerNoise, points: np.ndarray) -> np.ndarray:
    """Return standard deviations along x, y and z (R, 3) [m] of points (R, 3) that a tracker measures.

    With u the unit vector from the station to the point at distance r, the covariance is
    ``s_r^2 u u^T + (r s_a)^2 (I - u u^T)``, ``s_r = distance + distance_per_metre r``, and its diagonal is returned.
    """
    sight = points - np.array(noise.station)
    distance = np.linalg.norm(sight, axis=1, keepdims=True)
    along = (sight / np.where(distance > 0, distance, 1.0)) ** 2
    radial = (noise.distance + noise.distance_per_metre * distance) ** 2
    across = (noise.angle * distance) ** 2
    return np.sqrt(radial * along + across * (1 - along))
