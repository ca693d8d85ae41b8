"""The arms, motions and noises on which coverage is counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import optimize, signal

from steelyard.motion import (
    Trajectory,
    limits_of,
    motion_limits,
    quintic,
    quintic_profile,
    random_points,
    trapezoidal,
    trapezoidal_profile,
)
from steelyard.robot import Robot, load_robot
from steelyard.signals import DecimationFilter

LAG_ONE = 0.8
"""Correlation of neighbouring rows in the strongly correlated noise."""

NOISES = ("white", "correlated")


@dataclass(frozen=True)
class Arm:
    """An arm in an experiment.

    Attributes:
        name: Of the case.
        robot: Name in the catalogue.
        measured: Measured torques of the model.
        payloads: Payload of each recording.
        motion: The motion of a robot's k-th recording.
        rate: Sampling rate [Hz].
        factor: Samples for one row.
        noise: Standard deviation of the torque noise by kind of equation (n,) [N m].
    """

    name: str
    robot: str
    measured: str
    payloads: tuple[str | None, ...]
    motion: Callable[[Robot, int], Trajectory]
    rate: float
    factor: int
    noise: dict[str, tuple[float, ...]]

    @property
    def has_payload(self) -> bool:
        """Whether any recording carries one."""
        return any(self.payloads)

    def load(self) -> Robot:
        """Return the robot."""
        return load_robot(self.robot)


def joints_of(robot: Robot) -> list[str]:
    """Return the names of the actuated joints."""
    return [body.joint.name for body in robot.actuated]


def p1_moves(robot: Robot, recording: int) -> Trajectory:
    """Return 30 fifth-order moves of 1 s, as large as P1's."""
    points = np.zeros((2, 31))
    points[:, 1:-1] = np.random.default_rng(recording).uniform(-1, 1, (2, 29)) * [[0.45], [2.6]]
    return quintic(points, 1.0, joints_of(robot))


def p5_moves(robot: Robot, recording: int, moves: int = 45) -> Trajectory:
    """Return P5's trapezoidal moves of 2 s through random points."""
    rng = np.random.default_rng(10 + recording)
    points = random_points(limits_of(robot), moves - 1, 2.0, trapezoidal_profile(), rng)
    return trapezoidal(points, 2.0, joints_of(robot))


def short_p5_moves(robot: Robot, recording: int) -> Trajectory:
    """Return P5's moves for 30 s."""
    return p5_moves(robot, recording, moves=15)


def ur_moves(robot: Robot, recording: int) -> Trajectory:
    """Return 26 fifth-order moves of 1.5 s through random points within half a turn."""
    limits = limits_of(robot)
    half = np.full(len(limits.joints), np.pi)
    narrow = motion_limits(limits.joints, lower=-half, upper=half, velocity=limits.velocity)
    points = random_points(narrow, 25, 1.5, quintic_profile(), np.random.default_rng(20 + recording))
    return quintic(points, 1.5, joints_of(robot))


LWR_MOTOR = (18.6, 30.2, 13.9, 16.2, 9.28, 6.96, 6.96)
LWR_JOINT = (5.7, 11.4, 4.56, 5.7, 1.71, 1.71, 0.684)
UR_MOTOR = (6.0, 6.0, 4.0, 1.5, 1.2, 1.0)

EXACT_ARMS = (
    Arm("SCARA", "scara_2r", "motor", (None,), p1_moves, 100.0, 10, {"motor": (2.0, 0.1)}),
    Arm("LWR4+ A", "kuka_lwr4", "motor", (None, "P5"), p5_moves, 1000.0, 500, {"motor": LWR_MOTOR}),
    Arm(
        "LWR4+ C", "kuka_lwr4", "both", (None, "P5"), p5_moves, 1000.0, 500,
        {"motor": LWR_MOTOR, "joint": LWR_JOINT},
    ),
    Arm("UR10e", "ur10e", "motor", (None,), ur_moves, 100.0, 8, {"motor": UR_MOTOR}),
)  # fmt: skip


def correlated_pole(filter_: DecimationFilter) -> float:
    """Return the pole a of raw noise ``v[t] = a v[t-1] + e[t]`` whose decimated rows have lag-one correlation 0.8."""
    taps = filter_.impulse_response()
    energy = signal.fftconvolve(taps, taps[::-1])
    shift = np.arange(len(energy)) - len(energy) // 2

    def excess(log_rate: float) -> float:
        # Autocovariance after the filter at 0 and at one row: sum_j (h * h)(j) a^|k M - j|.
        at_zero, at_one = (energy @ np.exp(-np.exp(log_rate) * np.abs(shift - lag)) for lag in (0, filter_.factor))
        return float(at_one / at_zero) - LAG_ONE

    found = optimize.root_scalar(excess, bracket=np.log([1e-3 / filter_.factor, 10 / filter_.factor]))
    return float(np.exp(-np.exp(found.root)))
