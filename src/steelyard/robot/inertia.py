"""The ten inertial parameters of a body, about its frame's origin: conversions, changes of frame, checks.

Order, everywhere: ``XX XY XZ YY YZ ZZ MX MY MZ M``: inertia matrix about the frame's origin [kg m^2],
first moments [kg m], mass [kg]. In this (barycentric) form the torques are linear in the ten numbers.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..errors import RobotError
from .parts import Link

INERTIAL_NAMES = ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")

# Eigenvalues of the pseudo-inertia below minus this, relative to the largest, count as negative:
# files give four to six digits, so the last ones can tip a thin body over the edge.
CONSISTENCY_ROUNDING = 1e-6


def skew(v: np.ndarray) -> np.ndarray:
    """Return the matrix whose product with w is the cross product of v and w."""
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


def parameters_from_inertia(inertia: np.ndarray, first_moment: np.ndarray, mass: float) -> np.ndarray:
    """Return the ten parameters from the inertia (3, 3) about the origin, first moment (3,) and mass.

    Example:
        >>> from steelyard.robot import parameters_from_inertia
        >>> parameters_from_inertia(np.diag([0.01, 0.03, 0.04]), np.array([0.2, 0, 0]), 2.0).tolist()
        [0.01, 0.0, 0.0, 0.03, 0.0, 0.04, 0.2, 0.0, 0.0, 2.0]
    """
    return np.array([*inertia[np.triu_indices(3)], *first_moment, mass])


def inertia_from_parameters(parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return inertia about the origin (3, 3), first moment (3,) and mass from the ten parameters.

    Example:
        >>> from steelyard.robot import inertia_from_parameters
        >>> inertia, first_moment, mass = inertia_from_parameters(np.array([0.01, 0, 0, 0.03, 0, 0.04, 0.2, 0, 0, 2.0]))
        >>> np.diag(inertia).tolist(), first_moment.tolist(), float(mass)
        ([0.01, 0.03, 0.04], [0.2, 0.0, 0.0], 2.0)
    """
    xx, xy, xz, yy, yz, zz = parameters[:6]
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return inertia, np.array(parameters[6:9]), float(parameters[9])


def parameters_from_centre(mass: float, centre: np.ndarray, inertia_at_centre: np.ndarray) -> np.ndarray:
    """Return the ten parameters from mass, centre of mass and inertia about the centre (Huygens-Steiner).

    Example:
        >>> from steelyard.robot import parameters_from_centre
        >>> parameters_from_centre(2.0, np.array([0.1, 0, 0]), np.diag([0.01, 0.01, 0.02])).round(3).tolist()
        [0.01, 0.0, 0.0, 0.03, 0.0, 0.04, 0.2, 0.0, 0.0, 2.0]
    """
    s = skew(centre)
    return parameters_from_inertia(inertia_at_centre - mass * s @ s, mass * centre, mass)


def centre_from_parameters(parameters: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Return mass, centre of mass (3,) and inertia about it (3, 3); without mass, the inertia about the origin.

    Raises:
        RobotError: If there is a first moment without a mass: such parameters have no centre.

    Example:
        >>> from steelyard.robot import centre_from_parameters
        >>> mass, centre, inertia = centre_from_parameters(np.array([0.01, 0, 0, 0.03, 0, 0.04, 0.2, 0, 0, 2.0]))
        >>> mass, centre.tolist(), np.diag(inertia).round(3).tolist()
        (2.0, [0.1, 0.0, 0.0], [0.01, 0.01, 0.02])
    """
    inertia, first_moment, mass = inertia_from_parameters(parameters)
    if mass == 0:
        if first_moment.any():
            raise RobotError(
                "a mass of 0 with a first moment has no centre of mass; give ten parameters that a body can have"
            )
        return mass, np.zeros(3), inertia
    centre = first_moment / mass
    s = skew(centre)
    return mass, centre, inertia + mass * s @ s


def moved_parameters(parameters: np.ndarray, rotation: np.ndarray, translation: np.ndarray) -> np.ndarray:
    """Return the ten parameters in a parent frame, given the transform of the body's frame in the parent.

    Example:
        >>> from steelyard.robot import moved_parameters
        >>> point_mass = np.array([0, 0, 0, 0, 0, 0, 0, 0, 0, 2.0])
        >>> moved_parameters(point_mass, np.eye(3), np.array([0.5, 0, 0])).tolist()
        [0.0, 0.0, 0.0, 0.5, 0.0, 0.5, 1.0, 0.0, 0.0, 2.0]
    """
    inertia, first_moment, mass = inertia_from_parameters(parameters)
    moment = rotation @ first_moment
    s_moment, s_shift = skew(moment), skew(translation)
    about_parent = rotation @ inertia @ rotation.T - s_shift @ s_moment - s_moment @ s_shift - mass * s_shift @ s_shift
    return parameters_from_inertia(about_parent, moment + mass * translation, mass)


def pseudo_inertia(parameters: np.ndarray) -> np.ndarray:
    """Return the 4x4 pseudo-inertia, positive semi-definite exactly when a real body can have it.

    Example:
        >>> from steelyard.robot import pseudo_inertia
        >>> pseudo_inertia(np.array([0.01, 0, 0, 0.03, 0, 0.04, 0.2, 0, 0, 2.0])).diagonal().round(3).tolist()
        [0.03, 0.01, 0.0, 2.0]
    """
    inertia, first_moment, mass = inertia_from_parameters(parameters)
    second_moments = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    return np.block([[second_moments, first_moment[:, None]], [first_moment[None, :], np.array([[mass]])]])


def is_consistent(parameters: np.ndarray) -> bool:
    """Return whether a body of positive density could have these ten parameters.

    Example:
        >>> from steelyard.robot import is_consistent
        >>> bool(is_consistent(np.array([0.01, 0, 0, 0.03, 0, 0.04, 0.2, 0, 0, -2.0])))
        False
    """
    pseudo = pseudo_inertia(parameters)
    radius_squared, mass = np.trace(pseudo[:3, :3]), pseudo[3, 3]
    if min(radius_squared, mass) > 1e-30:
        # In units of the body's own mass and size, so that a heavy body's small inertia counts as much as its mass.
        scale = 1 / np.sqrt(np.array([radius_squared, radius_squared, radius_squared, mass]))
        pseudo = pseudo * np.outer(scale, scale)
    eigenvalues = np.linalg.eigvalsh(pseudo)
    return bool(eigenvalues[0] >= -CONSISTENCY_ROUNDING * max(abs(eigenvalues[-1]), 1e-12))


def checked_mass(mass: float, what: str) -> float:
    """Return the mass [kg] if it is not negative."""
    if mass < 0:
        raise RobotError(f"{what} is {mass} kg; a mass must be zero or positive")
    return mass


def inertia_notes(links: Iterable[Link]) -> list[str]:
    """Return a note for each link whose inertia is all zero or that no real body can have."""
    notes = [inertia_note(f"link '{link.name}'", link.inertia) for link in links if link.inertia is not None]
    return [note for note in notes if note]


def inertia_note(what: str, inertia: tuple[float, ...]) -> str:
    """Return what is odd about the ten parameters, or an empty string."""
    parameters = np.array(inertia)
    if not parameters.any():
        return f"{what}: mass and inertia are zero (massless)"
    if is_consistent(parameters):
        return ""
    smallest = np.linalg.eigvalsh(pseudo_inertia(parameters))[0]
    return (
        f"{what}: inertia is not physically possible (smallest eigenvalue of the pseudo-inertia {smallest:.3g}, "
        "a real body has none below 0)"
    )
