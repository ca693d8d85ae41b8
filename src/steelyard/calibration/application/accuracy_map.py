"""How accurate the calibrated arm is, and where: the covariance of its unknowns propagated to positions.

A position p(X, q) of the calibrated arm is uncertain by ``Sigma(q) = D C D^T`` with C the covariance of the unknowns X
and D = dp/dX (3, p) at the configuration q: what P3 eq. 8 and eq. 11 give for parameters, carried on to the workspace.
Where the model lacks something in a range of a joint, the errors that the fit left there are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...text import csv_text, short_repr
from ..measurement.measurements import check_rotations
from ..measurement.setup import Load
from ..records import finite
from .calibrated_arm import POINT_AT_LINK, CalibratedArm, configurations_of, point_of

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
