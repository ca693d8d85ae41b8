"""What both readers of robots check: masses, limits and inertias; gravity and locked joints of a caller."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from ..configuration import LARGEST_NUMBER
from ..errors import RobotError
from .inertia import is_consistent, pseudo_inertia
from .parts import JointKind, Limits, Link

# Words for joint types in files, and what they mean here.
JOINT_KINDS: dict[str, JointKind] = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
}


def checked_mass(mass: float, what: str) -> float:
    """Return the mass [kg] if it is not negative."""
    if mass < 0:
        raise RobotError(f"{what} is {mass} kg; a mass must be zero or positive")
    return mass


def checked_limits(joint: str, given: Mapping[str, float]) -> tuple[Limits, list[str]]:
    """Return the limits of a joint from those its file gives, and notes on those that mean nothing.

    A zero speed, effort, acceleration or jerk limit, a range from 0 to 0, or a number beyond all measure is what
    exporters write where they know nothing: it counts as not given.
    """
    unlimited = {name for name, value in given.items() if (-value if name == "lower" else value) > LARGEST_NUMBER}
    limits = {name: value for name, value in given.items() if name not in unlimited}
    notes: list[str] = []
    for name in ("velocity", "effort", "acceleration", "jerk"):
        if limits.get(name, math.inf) < 0:
            raise RobotError(f"joint '{joint}': {name} limit is {limits[name]}; it must be positive, or left out")
        if limits.get(name) == 0:
            del limits[name]
            notes.append(f"joint '{joint}': {name} limit 0 taken as not given")
    lower, upper = limits.get("lower", -math.inf), limits.get("upper", math.inf)
    if lower > upper:
        raise RobotError(
            f"joint '{joint}': lower limit {lower} is above upper limit {upper}; allowed is lower <= upper, swap them"
        )
    if lower == upper == 0:
        del limits["lower"], limits["upper"]
        notes.append(f"joint '{joint}': range 0 to 0 taken as not given")
    return Limits(**limits), notes


def inertia_notes(links: Iterable[Link]) -> list[str]:
    """Return a note for each link whose inertia is all zero or that no real body can have."""
    return [
        note
        for link in links
        if link.inertia is not None
        for note in [inertia_note(f"link '{link.name}'", link.inertia)]
        if note
    ]


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


def gravity_vector(value: object) -> tuple[float, float, float]:
    """Return the acceleration of gravity from three numbers, or from a text such as ``0,0,-9.81``.

    Example:
        >>> from steelyard.robot import gravity_vector
        >>> gravity_vector("0,0,-9.81")
        (0.0, 0.0, -9.81)
    """
    parts = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or len(parts) != 3:
        raise RobotError(f"gravity '{value}': three numbers x,y,z are needed, such as 0,0,-9.81")
    x, y, z = (_number_in_text(part, "gravity") for part in parts)
    return x, y, z


def lock_positions(value: object) -> dict[str, float]:
    """Return positions of held joints from a table, or from texts such as ``joint_3=0.5``.

    Example:
        >>> from steelyard.robot import lock_positions
        >>> lock_positions(["joint_2=0.5"])
        {'joint_2': 0.5}
    """
    if isinstance(value, Mapping):
        return {str(joint): _number_in_text(position, f"lock {joint}") for joint, position in value.items()}
    pairs = [str(text).partition("=") for text in (value if isinstance(value, list | tuple) else [value])]
    for joint, equals, position in pairs:
        if not (joint and equals and position):
            raise RobotError(f"lock '{joint}{equals}{position}': write JOINT=POSITION, such as joint_3=0.5")
    return {joint: _number_in_text(position, f"lock {joint}") for joint, _, position in pairs}


def _number_in_text(text: object, what: str) -> float:
    try:
        number = float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise RobotError(f"{what}: '{text}' is not a number; write it like 9.81") from None
    if not abs(number) <= LARGEST_NUMBER:
        raise RobotError(f"{what}: got {text}; a finite number up to {LARGEST_NUMBER:g} is needed")
    return number
