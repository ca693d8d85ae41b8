"""Limits of the joints in an experiment: those of the description, those of a file, and defaults for missing ones.

The table ``[joints]`` of a limits file: one number for all joints, a list in joint order, or a table by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from ...configuration import Kind, Section, checked, in_radians, number, numbers
from ...errors import DesignError, nearest_match
from ...motion import MotionLimits, limits_of, motion_limits
from ...motion.limits import QUANTITIES, RATES
from ...motion.trajectory import freeze
from ...robot import Joint, Robot

ACCELERATION_PER_VELOCITY = 4.0
"""Where no acceleration limit is known: full speed within a quarter of a second [1/s]."""


@final
@dataclass(frozen=True, eq=False)
class JointLimits(MotionLimits):
    """Limits of the motion and of the torques of n joints, infinite where nothing is known.

    Attributes:
        torque: Largest torques (n,) [N m or N].
    """

    torque: np.ndarray

    def __post_init__(self) -> None:
        freeze(self, *QUANTITIES, "torque")

    def motion(self) -> MotionLimits:
        """Return the limits of the motion alone."""
        return motion_limits(self.joints, **{name: getattr(self, name) for name in QUANTITIES})


def described_limits(robot: Robot) -> tuple[JointLimits, list[str]]:
    """Return the limits that a description gives, those of mimicking joints passed on to their leaders.

    Raises:
        DesignError: If the robot is described in motor positions: its limits are those of its joints.
    """
    if robot.coordinates == "motor" and robot.gear_couplings:
        raise DesignError(
            f"robot '{robot.name}' is described in motor positions, but its limits are those of its joints; "
            "design in joint positions"
        )
    motion = limits_of(robot)
    efforts = np.array([body.joint.limits.effort for body in robot.actuated], dtype=float)
    rows = {name: np.array(getattr(motion, name)) for name in QUANTITIES}
    notes: list[str] = []
    coupling, offset = robot.coupling()
    for body, gains, shift in zip(robot.bodies, coupling, offset, strict=True):
        if body.joint.mimic is not None and gains.any():
            row = int(np.abs(gains).argmax())
            notes += _pass_on(rows, row, body.joint, float(gains[row]), float(shift), motion.joints[row])
    return JointLimits(motion.joints, **rows, torque=efforts), notes


def _pass_on(rows: dict[str, np.ndarray], row: int, joint: Joint, gain: float, shift: float, leader: str) -> list[str]:
    """Narrow the leader's limits to those of a joint with ``q = gain * q_leader + shift``; return notes."""
    for name in RATES:
        rows[name][row] = min(rows[name][row], getattr(joint.limits, name) / abs(gain))
    ends = sorted((bound - shift) / gain for bound in (joint.limits.lower, joint.limits.upper))
    lower, upper = max(rows["lower"][row], ends[0]), min(rows["upper"][row], ends[1])
    if not lower < upper:
        return [f"joint '{joint.name}' follows '{leader}' but shares no range with it; its own range is ignored"]
    rows["lower"][row], rows["upper"][row] = lower, upper
    return []


def completed_limits(robot: Robot, given: JointLimits) -> tuple[JointLimits, list[str]]:
    """Return the limits with gaps filled, and a note for each kind of gap.

    A revolute joint without a range may turn half a turn either way; an acceleration limit missing is four times the
    velocity limit a second; jerk and torque stay unlimited.

    Raises:
        DesignError: If a velocity limit or the range of a prismatic joint is missing, or a range is empty.
    """
    lower, upper, notes = _ranges(robot, given)
    unknown = ~np.isfinite(given.velocity)
    if unknown.any():
        raise DesignError(
            f"no velocity limit is known for {_named(given, unknown)}; "
            "write velocity = ... under [joints] in a limits file (--limits FILE)"
        )
    gaps = ~np.isfinite(given.acceleration)
    acceleration = np.where(gaps, ACCELERATION_PER_VELOCITY * given.velocity, given.acceleration)
    if gaps.any():
        notes.append(
            f"no acceleration limit is known for {_named(given, gaps)}: taken as {ACCELERATION_PER_VELOCITY:g} times "
            "the velocity limit a second"
        )
    gaps = ~np.isfinite(given.torque)
    if gaps.any():
        notes.append(f"no torque limit is known for {_named(given, gaps)}: none is kept")
    filled = replace(given, lower=lower, upper=upper, acceleration=acceleration)
    _check(filled)
    return filled, notes


def position_ranges(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Return finite ranges of the actuated joints, lower and upper (n,), as ``completed_limits`` takes them."""
    return _ranges(robot, described_limits(robot)[0])[:2]


def _ranges(robot: Robot, given: JointLimits) -> tuple[np.ndarray, np.ndarray, list[str]]:
    lower, upper = np.array(given.lower), np.array(given.upper)
    open_ended = ~(np.isfinite(lower) & np.isfinite(upper))
    slides = np.array([body.joint.kind == "prismatic" for body in robot.actuated])
    if (open_ended & slides).any():
        raise DesignError(
            f"no position range is known for {_named(given, open_ended & slides)}, which slides; "
            "write position = [lower, upper] under [joints] in a limits file (--limits FILE)"
        )
    for row in np.flatnonzero(open_ended):
        if np.isfinite(lower[row]):
            upper[row] = lower[row] + 2 * np.pi
        elif np.isfinite(upper[row]):
            lower[row] = upper[row] - 2 * np.pi
        else:
            lower[row], upper[row] = -np.pi, np.pi
    notes = []
    if open_ended.any():
        notes.append(f"no position range is known for {_named(given, open_ended)}: one turn is taken, about 0 if free")
    return lower, upper, notes


def _check(limits: JointLimits) -> None:
    for row, joint in enumerate(limits.joints):
        low, high = limits.lower[row], limits.upper[row]
        if not low < high:
            raise DesignError(
                f"joint '{joint}': position range {low:g} to {high:g} leaves no room to move; "
                "allowed is lower < upper, correct it under [joints] in a limits file (--limits FILE) or lock the joint"
            )
        for name in (*RATES, "torque"):
            value = getattr(limits, name)[row]
            if not value > 0:
                raise DesignError(f"joint '{joint}': {name} limit is {value:g}; allowed is above 0")


def _named(limits: JointLimits, chosen: np.ndarray) -> str:
    if len(chosen) > 1 and chosen.all():
        return "any joint"
    names = [f"'{joint}'" for joint, take in zip(limits.joints, chosen, strict=True) if take]
    return ("joint " if len(names) == 1 else "joints ") + ", ".join(names)


ANGLES = ("position", "position_margin", "lower", "upper", *RATES)
SCALES = tuple(f"{name}_scale" for name in (*RATES, "torque"))
JOINT_KEYS = (*ANGLES, *(f"{name}_deg" for name in ANGLES), "torque", "position_scale", *SCALES)
POSITION_SCALE = 0.95
"""Part of the description's position ranges that a motion may use, where the user says nothing else."""


_FINITE = number()
_POSITIVE = number(above=0, infinite=True)
_PART = number(above=0, most=1)
_NOT_NEGATIVE = number(least=0)
_PAIR = numbers(2, what="a pair [lower, upper]")


def overridden_limits(limits: JointLimits, table: Section, robot: Robot) -> JointLimits:
    """Return the limits with those of ``[joints]`` in their place."""
    table.check_keys(JOINT_KEYS)
    joints = [body.joint for body in robot.actuated]
    rows = {name: np.array(getattr(limits, name)) for name in (*QUANTITIES, "torque")}
    _set_positions(rows, table, joints)
    for name in (*RATES, "torque"):
        for row, value in _values(table, name, joints, _POSITIVE).items():
            rows[name][row] = value
        for row, value in _values(table, f"{name}_scale", joints, _POSITIVE).items():
            rows[name][row] *= value
    return replace(limits, **rows)


def rated_torques(limits: JointLimits, table: Section, robot: Robot) -> np.ndarray:
    """Return what the drives can give (n,): the description's torque limits, the table's where it has none.

    Neither ``torque_scale`` nor a lower limit of the table changes what the arm is, and how noisy its torques are.
    """
    joints = [body.joint for body in robot.actuated]
    rated = np.array(limits.torque)
    for row, value in _values(table, "torque", joints, _POSITIVE).items():
        rated[row] = rated[row] if np.isfinite(rated[row]) else value
    return rated


def narrowed_limits(
    limits: JointLimits, table: Section, robot: Robot, described: np.ndarray, position_scale: float | None
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
    joints = [body.joint for body in robot.actuated]
    lower, upper = np.array(limits.lower), np.array(limits.upper)
    margins = _values(table, "position_margin", joints, _NOT_NEGATIVE)
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
    table: Section, joints: Sequence[Joint], described: np.ndarray, margins: dict[int, float], given: float | None
) -> np.ndarray:
    """Return the part of each position range that may be used (n,)."""
    if given is not None:
        return np.full(len(joints), checked(given, _PART, "position_scale", DesignError))
    scales = np.where(described, POSITION_SCALE, 1.0)
    for name, read in (("position", _PAIR), ("lower", _FINITE), ("upper", _FINITE)):
        scales[list(_values(table, name, joints, read))] = 1.0
    scales[list(margins)] = 1.0
    for row, value in _values(table, "position_scale", joints, _PART).items():
        scales[row] = value
    return scales


def _set_positions(rows: dict[str, np.ndarray], table: Section, joints: Sequence[Joint]) -> None:
    both = [key for key in ("position", "lower", "upper") if key in table or f"{key}_deg" in table]
    if "position" in both and len(both) > 1:
        raise DesignError(f"[joints]: both position and {both[1]} are given; keep one")
    for row, (low, high) in _values(table, "position", joints, _PAIR).items():
        rows["lower"][row], rows["upper"][row] = low, high
    for name in ("lower", "upper"):
        for row, value in _values(table, name, joints, _FINITE).items():
            rows[name][row] = value
    for row, joint in enumerate(joints):
        low, high = rows["lower"][row], rows["upper"][row]
        if both and not low < high:
            raise DesignError(
                f"[joints]: joint '{joint.name}' may move from {low:g} to {high:g}; allowed is lower < upper"
            )


def _values(table: Section, key: str, joints: Sequence[Joint], kind: Kind[Any]) -> dict[int, Any]:
    """Return what the table says under a key (or in degrees), by row; joints it does not name are left out."""
    in_degrees = f"{key}_deg"
    table.refuse_both(key, in_degrees)
    given = in_degrees if in_degrees in table else key
    if given not in table:
        return {}
    found = {}
    for row, value in _spread(table, given, joints, kind is _PAIR).items():
        joint = joints[row]
        if given == in_degrees and joint.kind == "prismatic":
            raise table.failure(f"{given} for joint '{joint.name}', which slides; give its values in metres: {key}")
        own = in_radians(kind) if given == in_degrees else kind
        found[row] = checked(value, own, f"{table.where}: {given} of joint '{joint.name}'", DesignError)
    return found


def _spread(table: Section, key: str, joints: Sequence[Joint], pairs: bool) -> dict[int, Any]:
    """Return one entry a joint from a value for all, a list in joint order, or a table by name."""
    names, given = [joint.name for joint in joints], table.table[key]
    if isinstance(given, dict):
        for name in given:
            if name not in names:
                raise table.failure(
                    f"{key} names joint '{name}'; joints: {', '.join(names)}{nearest_match(name, names)}"
                )
        return {names.index(name): value for name, value in given.items()}
    if not isinstance(given, list) or (pairs and not any(isinstance(value, list) for value in given)):
        return dict.fromkeys(range(len(names)), given)
    if len(given) != len(names):
        raise table.failure(f"{key} has {len(given)} entries; {len(names)} are expected, for {', '.join(names)}")
    return dict(enumerate(given))
