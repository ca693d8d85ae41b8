"""What the joints may do in an experiment: the description's limits, those of a file, and what stands in for gaps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from ...errors import DesignError
from ...motion import MotionLimits, limits_of, motion_limits
from ...robot import Joint, Robot

ACCELERATION_PER_VELOCITY = 4.0
"""Where no acceleration limit is known: full speed within a quarter of a second [1/s]."""

RATES = ("velocity", "acceleration", "jerk")
ROWS = ("lower", "upper", *RATES, "torque")


@final
@dataclass(frozen=True, eq=False)
class JointLimits:
    """Limits of the n actuated joints, infinite where nothing is known; arrays are (n,), SI units.

    Attributes:
        joints: Names of the joints.
        lower: Smallest positions.
        upper: Largest positions.
        velocity: Largest velocities.
        acceleration: Largest accelerations.
        jerk: Largest jerks.
        torque: Largest torques.
    """

    joints: tuple[str, ...]
    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    jerk: np.ndarray
    torque: np.ndarray

    def __post_init__(self) -> None:
        for name in ROWS:
            array = np.array(getattr(self, name), dtype=float)
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def motion(self) -> MotionLimits:
        """Return the limits of the motion."""
        return motion_limits(self.joints, **{name: getattr(self, name) for name in ("lower", "upper", *RATES)})


def described_limits(robot: Robot) -> tuple[JointLimits, list[str]]:
    """Return the limits that a description gives, those of mimicking joints passed on to their leaders.

    Raises:
        DesignError: If the robot is told in motor positions: its limits are those of its joints.
    """
    if robot.coordinates == "motor" and robot.gear_couplings:
        raise DesignError(
            f"robot '{robot.name}' is told in motor positions, but its limits are those of its joints; "
            "design in joint positions"
        )
    motion = limits_of(robot)
    efforts = np.array([body.joint.limits.effort for body in robot.actuated], dtype=float)
    rows = {name: np.array(getattr(motion, name)) for name in ("lower", "upper", *RATES)}
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
    acceleration = given.acceleration
    gaps = ~np.isfinite(acceleration)
    if gaps.any():
        acceleration = np.where(gaps, ACCELERATION_PER_VELOCITY * given.velocity, acceleration)
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
