"""P2's arm to be excited: what is unknown, what must be kept, and random points at full speed within it."""

from __future__ import annotations

import numpy as np

from ..design import (
    ArmPoint,
    Certifier,
    Cylinder,
    DesignLimits,
    DesignSettings,
    HalfSpace,
    PointRule,
    known_of,
)
from ..errors import DesignError
from ..model import build_model
from ..motion import MotionLimits, Trajectory, limits_of, trapezoidal, trapezoidal_profile
from ..progress import Progress, silent
from ..robot import load_robot
from .designs import Arm
from .lwr4 import JOINT_NOISE, MOTOR_NOISE, NOISE_BAND, lwr4_equations
from .two_data_sets import essential_49

FLANGE = 0.078
"""Of the arm, along z7 [m]; the workspace rules are about it."""

DURATION, HARMONICS = 20.0, 5
_TRIES = 4000


def p2_arm() -> Arm:
    """Return the arm with P2's payload, limits and 49 unknowns."""
    robot = load_robot("kuka_lwr4")
    model = build_model(robot, measured="both", payload="paired")
    flange = ArmPoint("link_7", (0.0, 0.0, FLANGE))
    rules = (
        PointRule("d_xy", flange, Cylinder(0.3), "keep_out"),
        PointRule("z", flange, HalfSpace((0.0, 0.0, 1.0), -0.2)),
    )
    torque = np.array([body.joint.limits.effort for body in robot.actuated], dtype=float)
    # The whole position ranges and the paper's two workspace rules: neither floor nor self-collision besides.
    limits = DesignLimits(limits_of(robot), torque, "joint", rules=rules, notes=())
    # Noise that is white up to its band is independent from sample to sample at twice that rate.
    settings = DesignSettings(
        duration=DURATION, harmonics=HARMONICS, criterion="condition", rate=2 * NOISE_BAND,
        parameters=tuple(essential_49(lwr4_equations(robot, "C"))), noise=(*MOTOR_NOISE, *JOINT_NOISE),
    )  # fmt: skip
    return Arm(model, limits, known_of(model, limits, "P2")[0], settings)


def random_motions(
    limits: MotionLimits, certifier: Certifier, count: int, move: float = 1.0, progress: Progress = silent
) -> list[Trajectory]:
    """Return motions of 20 s through random points at full speed that keep every limit at every instant.

    Points are drawn within 0.9 of the ranges, each step clipped to the speed limits; one whose move breaks another
    limit is drawn anew.

    Args:
        limits: Limits of the joints.
        certifier: What decides whether a move is allowed.
        count: Number of motions.
        move: Duration of a move [s].
        progress: Told how far it is.
    """
    made = []
    for number in range(count):
        points = _random_points(limits, certifier, move, np.random.default_rng(number))
        made.append(trapezoidal(points, move, limits.joints))
        progress(number + 1, count)
    return made


def _random_points(limits: MotionLimits, certifier: Certifier, move: float, rng: np.random.Generator) -> np.ndarray:
    middle, half = (limits.lower + limits.upper) / 2, 0.9 * (limits.upper - limits.lower) / 2
    step = limits.velocity * move / trapezoidal_profile().velocity
    points: list[np.ndarray] = []
    for _ in range(_TRIES):
        drawn = middle + half * rng.uniform(-1, 1, len(half))
        before = points[-1] if points else drawn
        drawn = np.clip(drawn, before - step, before + step)
        way = trapezoidal(np.column_stack([before, drawn]), move, limits.joints)
        if certifier(way, decide=True).holds:
            points.append(drawn)
        if len(points) > round(DURATION / move):
            return np.column_stack(points)
    raise DesignError(f"no random motion keeps the limits after {_TRIES} points; widen the workspace")
