"""A payload as a body: mass, centre and inertia with their sigmas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..estimate import Estimate
from ..robot import INERTIAL_NAMES
from ..text import short_repr

COLUMNS = tuple(f"{name}L" for name in INERTIAL_NAMES)


@dataclass(frozen=True, eq=False)
class PayloadBody:
    """A payload, in the frame of the link that carries it.

    Attributes:
        mass: Mass and its sigma [kg].
        centre: Centre of mass (3,) [m]; None where the mass is not above zero or a moment is not estimated.
        centre_sigma: Its sigmas (3,).
        inertia: XX XY XZ YY YZ ZZ about the frame's origin (6,) [kg m^2]; NaN where not estimated.
        inertia_sigma: Their sigmas (6,).
        inertia_at_centre: The same about the centre of mass (6,).
        inertia_at_centre_sigma: Their sigmas (6,).
        covariance: Covariance of the ten parameters (10, 10), NaN where not estimated.
    """

    __repr__ = short_repr

    mass: tuple[float, float]
    centre: np.ndarray | None
    centre_sigma: np.ndarray | None
    inertia: np.ndarray
    inertia_sigma: np.ndarray
    inertia_at_centre: np.ndarray | None
    inertia_at_centre_sigma: np.ndarray | None
    covariance: np.ndarray


def payload_body(estimate: Estimate) -> PayloadBody | None:
    """Return the payload of an estimate; None if its mass is not among the columns."""
    if "ML" not in estimate.columns:
        return None
    known = [k for k, name in enumerate(COLUMNS) if name in estimate.columns]
    places = [estimate.columns.index(COLUMNS[k]) for k in known]
    values, covariance = np.full(10, np.nan), np.full((10, 10), np.nan)
    values[known] = estimate.values[places]
    covariance[np.ix_(known, known)] = estimate.covariance[np.ix_(places, places)]
    sigma = np.sqrt(np.diag(covariance))
    centre = centre_sigma = inside = inside_sigma = None
    if values[9] > 0:
        centre, slope = _centre(values)
        centre_sigma = _carried(slope, covariance)
        inside, slope = _at_centre(values)
        inside_sigma = _carried(slope, covariance)
    return PayloadBody(
        (float(values[9]), float(sigma[9])), centre, centre_sigma, values[:6], sigma[:6], inside, inside_sigma,
        covariance,
    )  # fmt: skip


def _centre(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``c = m / M`` and its derivative by the ten parameters (3, 10)."""
    centre = values[6:9] / values[9]
    slope = np.zeros((3, 10))
    slope[:, 6:9] = np.eye(3) / values[9]
    slope[:, 9] = -centre / values[9]
    return centre, slope


def _at_centre(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the inertia about the centre of mass, ``I - (m^T m E - m m^T) / M``, and its derivative (6, 10)."""
    moment, mass = values[6:9], values[9]
    pairs = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
    inside, slope = np.zeros(6), np.zeros((6, 10))
    for row, (i, j) in enumerate(pairs):
        steiner = (float(moment @ moment) * (i == j) - moment[i] * moment[j]) / mass
        inside[row] = values[row] - steiner
        slope[row, row] = 1.0
        change = 2 * moment * (i == j)
        change[i] -= moment[j]
        change[j] -= moment[i]
        slope[row, 6:9] = -change / mass
        slope[row, 9] = steiner / mass
    return inside, slope


def _carried(slope: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return the sigmas of a function of the ten parameters; unknown entries count only where the slope is not zero."""
    used = np.any(slope != 0, axis=0)
    part = slope[:, used] @ covariance[np.ix_(used, used)] @ slope[:, used].T
    return np.sqrt(np.diag(part))


def payload_to_json(body: PayloadBody) -> dict[str, Any]:
    """Return mass, centre and inertia with their sigmas."""
    return {
        "mass": body.mass[0],
        "mass_sigma": body.mass[1],
        "centre": body.centre,
        "centre_sigma": body.centre_sigma,
        "inertia": body.inertia,
        "inertia_sigma": body.inertia_sigma,
        "inertia_at_centre": body.inertia_at_centre,
        "inertia_at_centre_sigma": body.inertia_at_centre_sigma,
    }
