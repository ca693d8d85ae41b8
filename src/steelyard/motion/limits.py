"""Limits of joint motion, and the violations of a trajectory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..errors import MotionError
from ..robot import AnyRobot, load_robot
from ..text import short_repr
from .checks import checked_joints, joint_array
from .trajectory import Trajectory, freeze

# A motion made to reach its limit exactly is not refused for the rounding of its last digits.
LIMIT_ROUNDING = 1e-9

RATES = ("velocity", "acceleration", "jerk")
QUANTITIES = ("lower", "upper", *RATES)


@dataclass(frozen=True, eq=False)
class MotionLimits:
    """Limits of the motion of n joints, infinite where there is none. Rates are magnitudes.

    Attributes:
        joints: Names of the joints.
        lower: Smallest positions (n,) [rad or m].
        upper: Largest positions (n,) [rad or m].
        velocity: Largest velocities (n,) [rad/s or m/s].
        acceleration: Largest accelerations (n,) [rad/s^2 or m/s^2].
        jerk: Largest jerks (n,) [rad/s^3 or m/s^3].

    Example:
        >>> from steelyard.motion import limits_of
        >>> limits_of("kuka_lwr4").velocity.shape
        (7,)
    """

    __repr__ = short_repr

    joints: tuple[str, ...]
    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    jerk: np.ndarray

    def __post_init__(self) -> None:
        freeze(self, *QUANTITIES)


class LimitViolation(NamedTuple):
    """A limit that a motion does not keep.

    Attributes:
        joint: Name of the joint.
        quantity: ``lower``, ``upper``, ``velocity``, ``acceleration`` or ``jerk``.
        value: What the motion reaches: a position, or the magnitude of a rate.
        limit: What is allowed.
        time: When it is reached [s].

    Example:
        >>> from steelyard.motion import limit_violations
        >>> motion = steelyard.quintic([[0.0, 9.0], [0.0, 0.5]], 1.0, ["joint_1", "joint_2"])
        >>> violation = limit_violations(motion, "scara_2r")[0]
        >>> violation.joint, violation.quantity, violation.value > violation.limit
        ('joint_1', 'upper', True)
    """

    joint: str
    quantity: str
    value: float
    limit: float
    time: float


def motion_limits(
    joints: Iterable[str],
    *,
    lower: ArrayLike = -np.inf,
    upper: ArrayLike = np.inf,
    velocity: ArrayLike = np.inf,
    acceleration: ArrayLike = np.inf,
    jerk: ArrayLike = np.inf,
) -> MotionLimits:
    """Return limits, each one number for all joints or one for each (n,); SI units.

    Raises:
        MotionError: If a lower limit lies above its upper one, or a rate limit is not above zero.

    Example:
        >>> from steelyard.motion import motion_limits
        >>> motion_limits(["joint_1", "joint_2"], velocity=[1.0, 2.0]).velocity.tolist()
        [1.0, 2.0]
    """
    names = checked_joints(joints)
    given = dict(zip(QUANTITIES, (lower, upper, velocity, acceleration, jerk), strict=True))
    rows = {
        what: joint_array(np.full(len(names), value) if np.ndim(value) == 0 else value, names, what, finite=False)
        for what, value in given.items()
    }
    for row, joint in enumerate(names):
        low, high = rows["lower"][row], rows["upper"][row]
        if low > high:
            raise MotionError(f"joint '{joint}': lower limit {low:g} is above upper limit {high:g}; exchange them")
        for what in RATES:
            if not rows[what][row] > 0:
                raise MotionError(f"joint '{joint}': {what} limit is {rows[what][row]:g}; allowed is above 0")
    return MotionLimits(names, **rows)


def limits_of(robot: AnyRobot) -> MotionLimits:
    """Return the limits of a robot's actuated joints, as its description gives them.

    Example:
        >>> from steelyard.motion import limits_of
        >>> limits_of("scara_2r").joints
        ('joint_1', 'joint_2')
    """
    robot = load_robot(robot)
    joints = [body.joint for body in robot.actuated]
    rows = {what: np.array([getattr(joint.limits, what) for joint in joints], dtype=float) for what in QUANTITIES}
    return motion_limits([joint.name for joint in joints], **rows)


def limit_violations(trajectory: Trajectory, robot: AnyRobot) -> tuple[LimitViolation, ...]:
    """Return every limit of the robot that the motion breaks, from the motion's exact extremes.

    Rows are matched by joint name. A limit counts as kept up to a part in 1e9 of it.

    Raises:
        MotionError: If the motion does not move exactly the robot's actuated joints, or if the robot is described
            in motor positions: its limits are those of its joints.

    Example:
        >>> from steelyard.motion import limit_violations
        >>> motion = steelyard.quintic([[0.0, 9.0], [0.0, 0.5]], 1.0, ["joint_1", "joint_2"])
        >>> sorted({violation.quantity for violation in limit_violations(motion, "scara_2r")})
        ['upper', 'velocity']
    """
    robot = load_robot(robot)
    if robot.coordinates == "motor" and robot.gear_couplings:
        raise MotionError(
            f"robot '{robot.name}' is described in motor positions, but its limits are those of its joints; "
            "check the motion in joint positions"
        )
    limits = limits_of(robot)
    extrema = trajectory.in_order(limits.joints).extrema()
    found = []
    for row, joint in enumerate(limits.joints):
        for quantity in QUANTITIES:
            peak, limit = getattr(extrema, quantity), float(getattr(limits, quantity)[row])
            value = float(peak.value[row])
            excess = limit - value if quantity == "lower" else value - limit
            if excess > LIMIT_ROUNDING * abs(limit):
                found.append(LimitViolation(joint, quantity, value, limit, float(peak.time[row])))
    return tuple(found)
