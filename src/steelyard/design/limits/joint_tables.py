"""The table ``[joints]`` of a limits file: one number for all joints, a list in joint order, or a table by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ...errors import DesignError, nearest_match
from ...robot import Robot
from .checked_tables import Table, check_keys, checked_number
from .joint_limits import RATES, JointLimits

ANGLES = ("position", "position_margin", "lower", "upper", *RATES)
SCALES = tuple(f"{name}_scale" for name in (*RATES, "torque"))
JOINT_KEYS = (*ANGLES, *(f"{name}_deg" for name in ANGLES), "torque", "position_scale", *SCALES)
POSITION_SCALE = 0.95
"""Part of the description's position ranges that a motion may use, where the user says nothing else."""


class _Joint(NamedTuple):
    name: str
    turns: bool


def overridden_limits(limits: JointLimits, table: Table, robot: Robot) -> JointLimits:
    """Return the limits with those of ``[joints]`` in their place."""
    check_keys(table, JOINT_KEYS, "[joints]")
    joints = [_Joint(body.joint.name, body.joint.kind != "prismatic") for body in robot.actuated]
    rows = {name: np.array(getattr(limits, name)) for name in ("lower", "upper", *RATES, "torque")}
    _set_positions(rows, table, joints)
    for name in (*RATES, "torque"):
        for row, value in _values(table, name, joints, _positive).items():
            rows[name][row] = value
        for row, value in _values(table, f"{name}_scale", joints, _positive).items():
            rows[name][row] *= value
    return replace(limits, **rows)


def rated_torques(limits: JointLimits, table: Table, robot: Robot) -> np.ndarray:
    """Return what the drives can give (n,): the description's torque limits, the table's where it has none.

    Neither ``torque_scale`` nor a lower limit of the table changes what the arm is, and how noisy its torques are.
    """
    joints = [_Joint(body.joint.name, body.joint.kind != "prismatic") for body in robot.actuated]
    rated = np.array(limits.torque)
    for row, value in _values(table, "torque", joints, _positive).items():
        rated[row] = rated[row] if np.isfinite(rated[row]) else value
    return rated


def narrowed_limits(
    limits: JointLimits, table: Table, robot: Robot, described: np.ndarray, position_scale: float | None
) -> tuple[JointLimits, np.ndarray]:
    """Return the limits with positions narrowed, and the part of its range that each joint may use (n,).

    Ranges of the description are scaled by 0.95 about their middles, unless ``position_scale`` or the table says
    otherwise: a range or a margin of the table is what the user wants. ``position_margin`` is then taken off both ends.

    Args:
        limits: Limits with every gap filled.
        table: ``[joints]`` of a limits file.
        robot: The arm.
        described: Which joints have a range in the description (n,).
        position_scale: Part of every range that may be used; None to leave it to the table.
    """
    joints = [_Joint(body.joint.name, body.joint.kind != "prismatic") for body in robot.actuated]
    lower, upper = np.array(limits.lower), np.array(limits.upper)
    margins = _values(table, "position_margin", joints, _not_negative)
    scales = _position_scales(table, joints, described, margins, position_scale)
    taken = (1 - scales) * (upper - lower) / 2
    lower, upper = lower + taken, upper - taken
    for row, margin in margins.items():
        if not upper[row] - lower[row] > 2 * margin:
            raise DesignError(
                f"[joints]: position_margin {margin:g} leaves nothing of the range {lower[row]:g} to {upper[row]:g} of "
                f"joint '{joints[row].name}'; make it smaller"
            )
        lower[row] += margin
        upper[row] -= margin
    return replace(limits, lower=lower, upper=upper), scales


def _position_scales(
    table: Table, joints: list[_Joint], described: np.ndarray, margins: dict[int, float], given: float | None
) -> np.ndarray:
    """Return the part of each position range that may be used (n,)."""
    if given is not None:
        return np.full(len(joints), _part(given, "position_scale", 1.0))
    scales = np.where(described, POSITION_SCALE, 1.0)
    for name, read in (("position", _pair), ("lower", _finite), ("upper", _finite)):
        scales[list(_values(table, name, joints, read))] = 1.0
    scales[list(margins)] = 1.0
    for row, value in _values(table, "position_scale", joints, _part).items():
        scales[row] = value
    return scales


def _set_positions(rows: dict[str, np.ndarray], table: Table, joints: list[_Joint]) -> None:
    both = [key for key in ("position", "lower", "upper") if key in table or f"{key}_deg" in table]
    if "position" in both and len(both) > 1:
        raise DesignError(f"[joints]: both position and {both[1]} are given; keep one")
    for row, (low, high) in _values(table, "position", joints, _pair).items():
        rows["lower"][row], rows["upper"][row] = low, high
    for name in ("lower", "upper"):
        for row, value in _values(table, name, joints, _finite).items():
            rows[name][row] = value
    for row, joint in enumerate(joints):
        low, high = rows["lower"][row], rows["upper"][row]
        if both and not low < high:
            raise DesignError(
                f"[joints]: joint '{joint.name}' may move from {low:g} to {high:g}; allowed is lower < upper"
            )


def _values(table: Table, key: str, joints: list[_Joint], read: Callable[[Any, str, float], Any]) -> dict[int, Any]:
    """Return what the table says under a key (or in degrees), by row; joints it does not name are left out."""
    in_degrees = f"{key}_deg"
    if key in table and in_degrees in table:
        raise DesignError(f"[joints]: both {key} and {in_degrees} are given; keep one")
    word = in_degrees if in_degrees in table else key
    if word not in table:
        return {}
    found = {}
    for row, given in _spread(table[word], word, joints, read is _pair).items():
        joint = joints[row]
        if word == in_degrees and not joint.turns:
            raise DesignError(
                f"[joints]: {word} for joint '{joint.name}', which slides; give its values in metres: {key}"
            )
        found[row] = read(
            given, f"[joints]: {word} of joint '{joint.name}'", np.pi / 180 if word == in_degrees else 1.0
        )
    return found


def _spread(given: Any, word: str, joints: list[_Joint], pairs: bool) -> dict[int, Any]:
    """Return one entry a joint from a value for all, a list in joint order, or a table by name."""
    names = [joint.name for joint in joints]
    if isinstance(given, dict):
        for name in given:
            if name not in names:
                raise DesignError(
                    f"[joints]: {word} names joint '{name}'; joints: {', '.join(names)}{nearest_match(name, names)}"
                )
        return {names.index(name): value for name, value in given.items()}
    for_all = not isinstance(given, list) or (pairs and not any(isinstance(value, list) for value in given))
    if for_all:
        return dict.fromkeys(range(len(names)), given)
    if len(given) != len(names):
        raise DesignError(
            f"[joints]: {word} has {len(given)} entries; {len(names)} are expected, for {', '.join(names)}"
        )
    return dict(enumerate(given))


def _finite(given: Any, what: str, unit: float) -> float:
    value = checked_number(given, what)
    if not np.isfinite(value):
        raise DesignError(f"{what} is {value:g}; a finite number is expected")
    return value * unit


def _pair(given: Any, what: str, unit: float) -> tuple[float, float]:
    if not isinstance(given, list) or len(given) != 2:
        raise DesignError(f"{what} is {given!r}; a pair [lower, upper] is expected")
    return _finite(given[0], what, unit), _finite(given[1], what, unit)


def _positive(given: Any, what: str, unit: float) -> float:
    value = checked_number(given, what)
    if not value > 0:
        raise DesignError(f"{what} is {value:g}; allowed is above 0")
    return value * unit


def _part(given: Any, what: str, unit: float) -> float:
    value = _positive(given, what, unit)
    if value > 1:
        raise DesignError(f"{what} is {value:g}; allowed is above 0 and at most 1")
    return value


def _not_negative(given: Any, what: str, unit: float) -> float:
    value = _finite(given, what, unit)
    if value < 0:
        raise DesignError(f"{what} is {value:g}; allowed is 0 or more")
    return value
