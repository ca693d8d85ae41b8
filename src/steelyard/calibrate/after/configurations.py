"""Configurations of an arm: joint positions that fit it, and its limits."""

from __future__ import annotations

import numpy as np

from ...errors import CalibrationError
from ...robot import AnyRobot, Robot, load_robot


def configurations_of(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Return joint positions (na, N), checked against the robot."""
    array = np.asarray(q, dtype=float)
    size = len(robot.actuated)
    if array.ndim != 2 or array.shape[0] != size or array.shape[1] == 0:
        raise CalibrationError(
            f"configurations: got shape {array.shape}, allowed is ({size}, N) with N of at least 1: a row for each of "
            f"{', '.join(body.joint.name for body in robot.actuated)}"
        )
    if not np.isfinite(array).all():
        row, column = (int(k) for k in np.argwhere(~np.isfinite(array))[0])
        raise CalibrationError(
            f"configurations: got {array[row, column]} for joint '{robot.actuated[row].joint.name}' at number "
            f"{column}, allowed are finite numbers"
        )
    return array


def joint_range(robot: AnyRobot) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and highest positions of the actuated joints (na,); followers' limits count too.

    Raises:
        CalibrationError: If the robot is told in motor positions: its limits are those of its joints.
    """
    robot = load_robot(robot)
    if robot.coordinates == "motor" and robot.gear_couplings:
        raise CalibrationError(
            f"robot '{robot.name}' is told in motor positions, but its limits are those of its joints; "
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
            lowest[row], highest[row] = _turn(lowest[row], highest[row])
    return rng.uniform(lowest[:, None], highest[:, None], (len(lowest), count))


def _turn(lower: float, upper: float) -> tuple[float, float]:
    if np.isfinite(lower):
        return lower, lower + 2 * np.pi
    return (upper - 2 * np.pi, upper) if np.isfinite(upper) else (-np.pi, np.pi)
