"""What both readers check: numbers, limits and inertias."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from ..errors import RobotError, nearest_match
from .inertia import is_consistent, pseudo_inertia
from .parts import JointKind, Limits, Link

# Words for joint types in files, and what they mean here.
JOINT_KINDS: dict[str, JointKind] = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
}

# No length, mass, inertia, angle or torque of an arm is larger in SI units; sums of products stay finite.
LARGEST_NUMBER = 1e9


def finite_number(value: object, what: str, *, largest: float = LARGEST_NUMBER) -> float:
    """Return the value as a float if it is a number, finite and of a size an arm can have."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RobotError(f"{what} is {value!r}; a number is expected")
    if isinstance(value, float) and not math.isfinite(value):
        raise RobotError(f"{what} is {value}; only finite numbers are allowed, leave it out if it is unknown")
    if abs(value) > largest:
        raise RobotError(f"{what} is {_shown(value)}; allowed are numbers up to {largest:g}, check the unit (SI)")
    return float(value)


def _shown(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) else "a very large whole number"


def finite_numbers(values: object, count: int, what: str) -> tuple[float, ...]:
    """Return ``count`` finite numbers from a list."""
    if not isinstance(values, list | tuple):
        raise RobotError(f"{what} is {values!r}; a list of {count} numbers is expected")
    if len(values) != count:
        raise RobotError(f"{what} has {len(values)} numbers; {count} are expected")
    return tuple(finite_number(value, f"number {index} of {what}") for index, value in enumerate(values, start=1))


def checked_word(got: object, allowed: Iterable[str], what: str) -> str:
    """Return the word if it is one of the allowed ones."""
    words = list(allowed)
    if isinstance(got, str) and got in words:
        return got
    hint = nearest_match(got, words) if isinstance(got, str) else ""
    raise RobotError(f"{what} is {got!r}; allowed: {', '.join(words)}{hint}")


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
    kept = {name: value for name, value in given.items() if name not in unlimited}
    notes: list[str] = []
    for name in ("velocity", "effort", "acceleration", "jerk"):
        if kept.get(name, math.inf) < 0:
            raise RobotError(f"joint '{joint}': {name} limit is {kept[name]}; it must be positive, or left out")
        if kept.get(name) == 0:
            del kept[name]
            notes.append(f"joint '{joint}': {name} limit 0 taken as not given")
    lower, upper = kept.get("lower", -math.inf), kept.get("upper", math.inf)
    if lower > upper:
        raise RobotError(
            f"joint '{joint}': lower limit {lower} is above upper limit {upper}; allowed is lower <= upper, swap them"
        )
    if lower == upper == 0:
        del kept["lower"], kept["upper"]
        notes.append(f"joint '{joint}': range 0 to 0 taken as not given")
    return Limits(**kept), notes


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
    """Return the acceleration of gravity from three numbers, or from a text such as ``0,0,-9.81``."""
    parts = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or len(parts) != 3:
        raise RobotError(f"gravity '{value}': three numbers x,y,z are needed, such as 0,0,-9.81")
    x, y, z = (_number_in_text(part, "gravity") for part in parts)
    return x, y, z


def lock_positions(value: object) -> dict[str, float]:
    """Return positions of held joints from a table, or from texts such as ``joint_3=0.5``."""
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
