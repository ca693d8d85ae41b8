"""P4's arm: three axes of a KUKA IR 361, 21 parameters, its workspace and the noise of its torques and positions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..design import (
    CRITERIA,
    ArmPoint,
    Cylinder,
    DesignLimits,
    DesignSettings,
    HalfSpace,
    PointRule,
    Unknowns,
    known_of,
)
from ..design.assembly import Assembled
from ..design.cramer_rao import cramer_rao_information, fitted_basis
from ..design.figures import exact
from ..model import build_model
from ..motion import FourierSeries, Trajectory, limits_of
from ..robot import load_robot
from .designs import Arm

DURATION, HARMONICS, RATE = 10.0, 5, 150.0
TORQUE_VARIANCE = (25.0, 26.0, 10.0)
"""Of the torque noise [N^2 m^2] (P4.5)."""

POSITION_VARIANCE = (1.1e-9, 8.3e-10, 2.9e-9)
"""Of the position noise [rad^2]; their orders are assumed."""

C1, C2 = "condition_weighted_normalised", "d"
"""P4's criteria: condition number of the weighted matrix with columns at unit length; determinant of the covariance."""

SPRING = ("inertia", "Fvm", "Fcm", "spring", "offm")
"""What is unknown in P4's experiment (P4.6)."""


def p4_arm(effects: tuple[str, ...] | None = None) -> Arm:
    """Return the arm with P4's workspace; effects are the unknown ones."""
    robot = load_robot("kuka_ir361")
    tool = ArmPoint("tool")
    rules = (
        PointRule("height", tool, HalfSpace((0.0, 0.0, 1.0), 0.8)),
        PointRule("distance from axis 1", tool, Cylinder(0.7, upper=1.8), "keep_out"),
    )
    model = build_model(robot, effects)
    # The whole position ranges and the paper's workspace: neither floor nor self-collision besides.
    limits = DesignLimits(limits_of(robot), np.full(3, np.inf), "motor", rules=rules, notes=())
    noise = tuple(float(each) for each in np.sqrt(TORQUE_VARIANCE))
    settings = DesignSettings(duration=DURATION, harmonics=HARMONICS, criterion=C1, noise=noise, rate=RATE)
    return Arm(model, limits, known_of(model, limits)[0], settings)


def first_criterion(ready: Assembled, trajectory: Trajectory) -> float:
    """Return c1 of a motion at the recording's own samples."""
    return CRITERIA[C1].exact(ready.forecast().matrices(trajectory)[1])


def with_joint_scaled(motion: FourierSeries, joint: int, factor: float) -> FourierSeries:
    """Return a motion with one joint moving that much less about its mean."""
    scale = np.ones((len(motion.joints), 1))
    scale[joint] = factor
    return replace(motion, sin=scale * motion.sin, cos=scale * motion.cos)


def noisy_covariance(
    ready: Assembled, trajectory: Trajectory, values: dict[str, float], deviations: np.ndarray
) -> np.ndarray:
    """Return the Cramer-Rao bound (c, c) with noise on torques and positions (P4.2).

    Args:
        ready: The problem whose family the motion is of.
        trajectory: The motion.
        values: Standard parameters by name; those not given are zero.
        deviations: Standard deviation of a sample of each position (n,) [rad].
    """
    unknowns: Unknowns = exact(ready.unknowns)
    count = round(unknowns.rate * trajectory.duration)
    times = (np.arange(count) + 0.5) * (trajectory.duration / count)
    basis = fitted_basis(ready.problem.family, times)
    motion = trajectory.derivatives(times)[:3]
    return np.linalg.inv(cramer_rao_information(unknowns, values, motion, basis, deviations))
