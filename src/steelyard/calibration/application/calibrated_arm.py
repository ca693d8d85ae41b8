"""The calibrated arm: where its measured link is, how well that is known, and the map of its accuracy.

A position p(X, q) of the calibrated arm is uncertain by ``Sigma(q) = D C D^T`` with C the covariance of the unknowns X
and D = dp/dX (3, p) at the configuration q: P3 eq. 8 and eq. 11 give C, the product carries it to the workspace. Where
the model lacks something in a range of a joint, the errors that the fit left there are added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import CalibrationError
from ...robot import AnyRobot, Robot, load_robot
from ...text import csv_text, short_repr
from ..chain.problem import MeasuredProblem
from ..fit.joint_ranges import JointRange
from ..measurement.measurements import check_rotations
from ..measurement.setup import Load
from ..records import Unknown, finite

HELD_BY_CONTROLLER = ("joint", "compliance")
"""Groups of unknowns that a controller takes as zero: it knows the robot's file and a rigid arm."""

POINT_AT_LINK = (0.0, 0.0, 0.0)


FramePose = Callable[[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None], tuple[np.ndarray, np.ndarray]]
"""Rotation (N, 3, 3) and position (N, 3) [m] of the measured link in the robot's base frame, from values (p,) of the
unknowns, joints (na, N), wrenches (6, N) in base axes and the point (3,) of the measured link where they act."""
FrameDerivatives = Callable[[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None], np.ndarray]
"""Translation and small rotation of the measured link in base axes by every unknown (6, p, N), from the same."""


@dataclass(frozen=True, eq=False)
class CalibratedArm:
    """A robot with calibrated unknowns.

    Attributes:
        robot: The robot of the file: nominal geometry, limits.
        link: The measured link.
        parameters: The unknowns (p).
        values: Their values (p,).
        covariance: Their covariance (p, p); zero for what was not estimated.
        frame_pose: Pose of the measured link in the robot's base frame.
        frame_derivatives: Its derivatives by the unknowns.
        ranges: Ranges of joints in which the model lacks something, with the errors there.
        unmodelled: Error elsewhere that the model lacks, rms [m].
    """

    __repr__ = short_repr

    robot: Robot
    link: str
    parameters: tuple[Unknown, ...]
    values: np.ndarray
    covariance: np.ndarray
    frame_pose: FramePose
    frame_derivatives: FrameDerivatives
    ranges: tuple[JointRange, ...] = ()
    unmodelled: float = 0.0

    def __post_init__(self) -> None:
        size = len(self.parameters)
        for name, shape in (("values", (size,)), ("covariance", (size, size))):
            array = finite(getattr(self, name), shape, f"{name} of the calibrated arm").copy()
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the unknowns (p)."""
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def sigma(self) -> np.ndarray:
        """Standard deviations of the unknowns (p,)."""
        return np.sqrt(np.diag(self.covariance))

    def in_group(self, *groups: str) -> np.ndarray:
        """Return which unknowns belong to these groups (p,), as a mask."""
        return np.array([parameter.group in groups for parameter in self.parameters], dtype=bool)

    @property
    def rigid_values(self) -> np.ndarray:
        """Values with stiff springs (p,): calibrated geometry alone."""
        return np.where(self.in_group("compliance"), 0.0, self.values)

    @property
    def controller_values(self) -> np.ndarray:
        """Values by which a controller computes poses (p,): the robot's file, and no spring."""
        return np.where(self.in_group(*HELD_BY_CONTROLLER), 0.0, self.values)

    def pose(
        self, q: np.ndarray, load: Load | None = None, values: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return rotation (N, 3, 3) and position (N, 3) [m] of the measured link in the base frame.

        Args:
            q: Joint positions (na, N).
            load: What pulls at the measured link; nothing if not given.
            values: Values of the unknowns (p,); the calibrated ones if not given.
        """
        used = self.values if values is None else values
        return self.frame_pose(used, q, *_pull(load, q.shape[1]))

    def position_covariance(self, q: np.ndarray, derivatives: np.ndarray) -> np.ndarray:
        """Return the covariance of a position (N, 3, 3) [m^2] at joints (na, N) from its derivatives D (N, 3, p).

        It is ``D C D^T``, plus the square of the error that the model lacks, whose direction is not known, along every
        axis.
        """
        product = (derivatives @ self.covariance) @ derivatives.transpose(0, 2, 1)
        names = [body.joint.name for body in self.robot.actuated]
        error = np.full(q.shape[1], self.unmodelled)
        for each in self.ranges:
            error = np.maximum(error, each.error_at(q[names.index(each.joint)]))
        return (product + product.transpose(0, 2, 1)) / 2 + (error**2)[:, None, None] * np.eye(3)

    def point_derivatives(self, q: np.ndarray, point: np.ndarray, load: Load | None = None) -> np.ndarray:
        """Return how a point (3,) fixed to the measured link moves with every unknown (N, 3, p) [m per unit].

        ``dp = dt + dr x (R point)`` with dt and dr the link's translation and small rotation.
        """
        moved = self.frame_derivatives(self.values, q, *_pull(load, q.shape[1])).transpose(2, 0, 1)
        lever = self.pose(q, load)[0] @ point
        return moved[:, :3] + np.cross(moved[:, 3:], lever[:, :, None], axis=1)


def calibrated_arm(
    problem: MeasuredProblem,
    values: np.ndarray,
    covariance: np.ndarray,
    ranges: Sequence[JointRange] = (),
    unmodelled: float = 0.0,
) -> CalibratedArm:
    """Return the arm of a calibration: its problem with the values (p,) found and their covariance (p, p).

    Args:
        problem: Of the calibration.
        values: Of all unknowns (p,).
        covariance: Theirs (p, p).
        ranges: Ranges of joints in which the model lacks something.
        unmodelled: Error elsewhere that the model lacks, rms [m].
    """
    return CalibratedArm(
        problem.robot, problem.setup.link, tuple(problem.parameters), values, covariance,
        problem.frame_pose, problem.frame_derivatives, tuple(ranges), unmodelled,
    )  # fmt: skip


def _pull(load: Load | None, samples: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return wrench (6, N) and point (3,) of a load."""
    if load is None:
        return None, None
    wrench = finite([*load.force, *load.moment], (6,), f"load '{load.name}', force and moment")
    point = finite(load.point, (3,), f"load '{load.name}', point")
    return np.ascontiguousarray(np.broadcast_to(wrench[:, None], (6, samples))), point


def point_of(point: Sequence[float]) -> np.ndarray:
    """Return a point fixed to the measured link (3,) [m], checked."""
    return finite(point, (3,), "tool point [m] in the frame of the measured link")


def configurations_of(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Return joint positions (na, N), checked against the robot."""
    names = [body.joint.name for body in robot.actuated]
    return finite(q, (len(names), None), f"configurations, a row for each of {', '.join(names)}")


def joint_range(robot: AnyRobot) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and highest positions of the actuated joints (na,); followers' limits count too.

    Raises:
        CalibrationError: If the robot is described in motor positions: its limits are those of its joints.
    """
    robot = load_robot(robot)
    if robot.coordinates == "motor" and robot.gear_couplings:
        raise CalibrationError(
            f"robot '{robot.name}' is described in motor positions, but its limits are those of its joints; "
            "calibrate and correct it in joint positions"
        )
    matrix, offset = robot.coupling()
    lower, upper = (np.array([getattr(body.joint.limits, end) for body in robot.bodies]) for end in ("lower", "upper"))
    lowest, highest = np.full(matrix.shape[1], -np.inf), np.full(matrix.shape[1], np.inf)
    for row, column in np.argwhere(matrix != 0):
        ends = (np.array([lower[row], upper[row]]) - offset[row]) / matrix[row, column]
        lowest[column], highest[column] = max(lowest[column], ends.min()), min(highest[column], ends.max())
    return lowest, highest


def random_configurations(robot: AnyRobot, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return joint positions (na, count), uniform within limits; a turn about zero where a joint has none.

    Raises:
        CalibrationError: If a sliding joint has no limits: nobody can say how far it goes.
    """
    robot = load_robot(robot)
    lowest, highest = joint_range(robot)
    for row, body in enumerate(robot.actuated):
        if not np.isfinite([lowest[row], highest[row]]).all():
            if body.joint.kind == "prismatic":
                raise CalibrationError(
                    f"joint '{body.joint.name}' slides without limits; state them in the robot's file, or give "
                    "configurations"
                )
            if np.isinf(lowest[row]):
                lowest[row] = -np.pi if np.isinf(highest[row]) else highest[row] - 2 * np.pi
            highest[row] = min(highest[row], lowest[row] + 2 * np.pi)
    return rng.uniform(lowest[:, None], highest[:, None], (len(lowest), count))


BASE_UNKNOWNS = ("base_x", "base_y", "base_z", "base_rx", "base_ry", "base_rz")


@dataclass(frozen=True)
class AccuracySummary:
    """Largest semi-axes of the 1-sigma ellipsoids of position, over configurations.

    Attributes:
        median: Half of the configurations are better [m].
        p95: 95 % are better [m].
        worst: The largest [m].
        worst_position: Where it is (3,) [m].
        worst_q: At which joint positions (na,).
    """

    median: float
    p95: float
    worst: float
    worst_position: tuple[float, ...]
    worst_q: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class AccuracyMap:
    """Predicted uncertainty of position.

    Attributes:
        q: Configurations (na, N).
        position: Position there (N, 3) [m], by the calibrated model, in the robot's base frame.
        sigma: Covariance of the position (N, 3, 3) [m^2]; axes of the robot's base, or of the measurement frame where
            the base's own uncertainty is included.
        semi_axis: Largest semi-axis of the 1-sigma ellipsoid (N,) [m].
    """

    __repr__ = short_repr

    q: np.ndarray
    position: np.ndarray
    sigma: np.ndarray
    semi_axis: np.ndarray

    @property
    def deviation(self) -> np.ndarray:
        """Root mean square distance from the predicted position (N,) [m], ``sqrt(trace Sigma)``."""
        return np.sqrt(np.trace(self.sigma, axis1=1, axis2=2))

    def summary(self) -> AccuracySummary:
        """Return median, 95 % and worst, and where the worst is."""
        worst = int(np.argmax(self.semi_axis))
        return AccuracySummary(
            median=float(np.median(self.semi_axis)),
            p95=float(np.quantile(self.semi_axis, 0.95)),
            worst=float(self.semi_axis[worst]),
            worst_position=tuple(float(x) for x in self.position[worst]),
            worst_q=tuple(float(x) for x in self.q[:, worst]),
        )


def map_csv(mapped: AccuracyMap, joints: Sequence[str]) -> str:
    """Return the map as a table: joints, position [m], standard deviations in x, y, z and largest semi-axis [mm]."""
    heading = [*joints, "x", "y", "z", "sigma_x_mm", "sigma_y_mm", "sigma_z_mm", "largest_mm"]
    sigma = 1e3 * np.sqrt(np.diagonal(mapped.sigma, axis1=1, axis2=2))
    numbers = np.column_stack([mapped.q.T, mapped.position, sigma, 1e3 * mapped.semi_axis])
    return csv_text([heading, *([f"{x:.9g}" for x in row] for row in numbers)])


def accuracy_map(
    arm: CalibratedArm,
    q: np.ndarray,
    *,
    point: Sequence[float] = POINT_AT_LINK,
    load: Load | None = None,
    base_rotation: np.ndarray | None = None,
) -> AccuracyMap:
    """Return the predicted uncertainty of a point of the calibrated arm at configurations.

    Args:
        arm: The calibrated arm.
        q: Configurations (na, N); ``random_configurations`` fills the workspace.
        point: The point, in the measured link's frame (3,) [m].
        load: What pulls at the measured link: it bends the arm.
        base_rotation: Start R0 (3, 3) of the base in the measurement frame: then positions are in the measurement
            frame and the base's own unknowns count. Left out: positions relative to the robot's base.
    """
    configurations, place = configurations_of(arm.robot, q), point_of(point)
    rotation, position = arm.pose(configurations, load)
    position = position + rotation @ place
    derivatives = arm.point_derivatives(configurations, place, load)
    if base_rotation is not None:
        derivatives = in_measurement_frame(arm, position, derivatives, base_rotation)
    sigma = arm.position_covariance(configurations, derivatives)
    result = AccuracyMap(configurations.copy(), position, sigma, largest_semi_axis(sigma))
    for array in (result.q, result.position, result.sigma, result.semi_axis):
        array.setflags(write=False)
    return result


def largest_semi_axis(sigma: np.ndarray) -> np.ndarray:
    """Return the largest semi-axis of the 1-sigma ellipsoid (N,) [m] of covariances (N, 3, 3) [m^2]."""
    return np.sqrt(np.maximum(np.linalg.eigvalsh(sigma)[:, -1], 0.0))


def in_measurement_frame(
    arm: CalibratedArm, position: np.ndarray, derivatives: np.ndarray, base_rotation: np.ndarray
) -> np.ndarray:
    """Return derivatives (N, 3, p) of positions in the measurement frame, ``t + R0 Rot_x Rot_y Rot_z p``.

    Args:
        arm: The calibrated arm.
        position: Positions in the base frame (N, 3) [m].
        derivatives: Their derivatives there (N, 3, p).
        base_rotation: R0 (3, 3).
    """
    start = finite(base_rotation, (3, 3), "base_rotation")
    check_rotations(start[None], ["the base"], 1e-6)
    angles = [float(arm.values[arm.names.index(name)]) if name in arm.names else 0.0 for name in BASE_UNKNOWNS[3:]]
    about_x, about_y, about_z = (_turned(axis, angle) for axis, angle in enumerate(angles))
    whole = start @ about_x @ about_y @ about_z
    # Axes about which the three angles turn, in the frame that R0 reaches.
    axes = np.stack([np.eye(3)[0], about_x[:, 1], (about_x @ about_y)[:, 2]])
    result = whole @ derivatives
    turned = position @ (about_x @ about_y @ about_z).T
    for axis in range(3):
        for column, name in enumerate(arm.names):
            if name == BASE_UNKNOWNS[axis]:
                result[:, :, column] = np.eye(3)[axis]
            elif name == BASE_UNKNOWNS[3 + axis]:
                result[:, :, column] = np.cross(axes[axis], turned) @ start.T
    return result


def _turned(axis: int, angle: float) -> np.ndarray:
    cosine, sine = np.cos(angle), np.sin(angle)
    rotation, first, second = np.eye(3), (axis + 1) % 3, (axis + 2) % 3
    rotation[first, first] = rotation[second, second] = cosine
    rotation[first, second], rotation[second, first] = -sine, sine
    return rotation
