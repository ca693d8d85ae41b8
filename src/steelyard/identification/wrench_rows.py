"""Rows of a wrist force/torque sensor: where it is, what it measures, and the regressor of its wrench."""

from __future__ import annotations

from typing import Literal, get_args

import casadi as ca
import numpy as np

from ..errors import EstimateError
from ..physics import pose_function
from ..recording import Recording
from ..robot import Robot
from ..signals import apply_low_pass, central_difference, low_pass, trim_ends

WrenchFrame = Literal["sensor", "base"]
FRAMES: tuple[WrenchFrame, ...] = get_args(WrenchFrame)
DEFAULT_CUTOFF = 5.0
"""Low-pass of poses and wrenches of a moving sensor [Hz]; at most a fifth of the sampling rate."""
_DECLARED = "declare the columns of the pose in the order x y z qw qx qy qz"
QUATERNIONS = {
    "last": ((3, 0, 1, 2), (1, 1, 1, 1), "w as the last number of the quaternion", _DECLARED),
    "second": ((1, 2, 3, 0), (1, 1, 1, 1), "w as the second number of the quaternion", _DECLARED),
    "inverse": ((0, 1, 2, 3), (1, -1, -1, -1), "rotations inverted", "declare poses of the sensor in the base"),
}
"""Other meanings of the four numbers of a pose that should be w x y z: order, signs, words and remedy."""


def sensor_poses(recording: Recording, robot: Robot | None, sensor: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rotations (N, 3, 3) and positions (N, 3) of the sensor in the base frame."""
    if robot is not None and robot.bodies:
        function, count = pose_function(robot, sensor), recording.samples
        found = np.array(function.map(count)(ca.DM(recording.q), ca.DM.zeros(0, count)))
        transforms = found.reshape(3, count, 4).transpose(1, 0, 2)
        return transforms[:, :, :3], transforms[:, :, 3]
    if recording.pose is None or len(recording.pose) != 7:
        raise EstimateError(
            "the log has no poses of the sensor, x y z and a quaternion; declare them with pose = ... in its set-up, "
            "or name the robot whose joint positions it holds with --robot"
        )
    lengths = np.linalg.norm(recording.pose[3:], axis=0)
    if not np.abs(lengths - 1).max() < 1e-2:
        raise EstimateError(
            f"quaternions of the pose have lengths from {lengths.min():.3g} to {lengths.max():.3g}, not 1; declare the "
            "columns in the order x y z qw qx qy qz"
        )
    return _rotations(recording.pose[3:] / lengths), recording.pose[:3].T


def other_rotations(recording: Recording, order: str) -> np.ndarray:
    """Return the rotations of the sensor (N, 3, 3) where the numbers of its poses have another meaning."""
    places, signs, *_ = QUATERNIONS[order]
    numbers = np.asarray(recording.pose)[3:]
    return _rotations((numbers / np.linalg.norm(numbers, axis=0))[list(places)] * np.array(signs)[:, None])


def _rotations(quaternions: np.ndarray) -> np.ndarray:
    """Return the rotations (N, 3, 3) of unit quaternions w x y z (4, N)."""
    w, x, y, z = quaternions
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.array(rows).transpose(2, 0, 1)


def sensor_wrench(
    recording: Recording, rotation: np.ndarray, frame: WrenchFrame, reverse: int | None = None
) -> np.ndarray:
    """Return the wrench in the axes of the sensor (6, N), one of its columns reversed if asked for."""
    found = [channel.values for channel in recording.torques if channel.kind == "wrench"]
    if not found:
        raise EstimateError('the log has no wrench; declare its six columns with torque = { kind = "wrench", ... }')
    wrench = found[0]
    if reverse is not None:
        wrench = np.where(np.arange(6)[:, None] == reverse, -1.0, 1.0) * wrench
    if frame == "sensor":
        return wrench
    forces, moments = (np.einsum("nji,jn->in", rotation, part) for part in (wrench[:3], wrench[3:]))
    return np.concatenate([forces, moments])


def static_rows(rotation: np.ndarray, gravity: np.ndarray) -> np.ndarray:
    """Return rows (N, 6, 16) of static poses."""
    still = np.zeros((len(rotation), 3))
    return _rows(-np.einsum("nji,j->ni", rotation, gravity), still, still)


def moving_rows(
    time: np.ndarray,
    rotation: np.ndarray,
    position: np.ndarray,
    wrench: np.ndarray,
    gravity: np.ndarray,
    cutoff: float | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows (K, 6, 16) and wrenches (6, K), both through one low-pass, stamps made even."""
    rate = (len(time) - 1) / float(time[-1] - time[0])
    even = time[0] + np.arange(len(time)) / rate
    signals = np.concatenate([position.T, rotation.reshape(-1, 9).T, wrench])
    signals = np.array([np.interp(even, time, one) for one in signals])
    filter_ = low_pass(rate, min(cutoff or DEFAULT_CUTOFF, rate / 5))
    smooth = trim_ends(filter_, apply_low_pass(filter_, signals))
    place, turned = smooth[:3], smooth[3:12].T.reshape(-1, 3, 3)
    left, _, right = np.linalg.svd(turned)  # the nearest rotations
    turned = left @ right
    acceleration = central_difference(place, rate, "second")[:, 1:-1]
    spin = np.einsum("nji,njk->nik", turned[1:-1], (turned[2:] - turned[:-2]) * (rate / 2))
    omega = np.stack([spin[:, 2, 1] - spin[:, 1, 2], spin[:, 0, 2] - spin[:, 2, 0], spin[:, 1, 0] - spin[:, 0, 1]]) / 2
    alpha = central_difference(omega, rate)
    inner = turned[2:-2]
    d = np.einsum("nji,jn->ni", inner, acceleration - gravity[:, None])
    return _rows(d, omega[:, 1:-1].T, alpha.T), smooth[12:, 2:-2]


def _rows(d: np.ndarray, omega: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Return the regressor of the wrench (N, 6, 16) for ten parameters and six biases."""
    rows = np.zeros((len(d), 6, 16))
    twist = _cross(omega)
    rows[:, :3, 9] = d
    rows[:, :3, 6:9] = _cross(alpha) + twist @ twist
    rows[:, 3:, 6:9] = -_cross(d)
    rows[:, 3:, :6] = _applied(alpha) + twist @ _applied(omega)
    rows[:, :, 10:] = np.eye(6)
    return rows


def _cross(vectors: np.ndarray) -> np.ndarray:
    """Return the matrices of ``v x`` (N, 3, 3)."""
    x, y, z = vectors.T
    zero = np.zeros(len(vectors))
    return np.array([[zero, -z, y], [z, zero, -x], [-y, x, zero]]).transpose(2, 0, 1)


def _applied(vectors: np.ndarray) -> np.ndarray:
    """Return the matrices (N, 3, 6) by which XX XY XZ YY YZ ZZ give ``I v``."""
    x, y, z = vectors.T
    zero = np.zeros(len(vectors))
    return np.array([[x, y, z, zero, zero, zero], [zero, x, zero, y, z, zero], [zero, zero, x, zero, y, z]]).transpose(
        2, 0, 1
    )
