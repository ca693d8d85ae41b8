"""Numbers given per joint: one for all, a list in the robot's joint order, or a table by joint name."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..errors import RecordingError, nearest_match
from ..robot import Robot
from .joint_order import joint_names
from .setup import PerJoint


def joint_values(value: PerJoint, robot: Robot, where: str, default: float | None = None) -> np.ndarray:
    """Return one number for each actuated joint (n,).

    Args:
        value: As declared.
        robot: The arm.
        where: What messages call it.
        default: For joints a table leaves out; None if it may leave none out.
    """
    joints = joint_names(robot)
    if isinstance(value, Mapping):
        return _from_table(value, joints, where, default)
    if isinstance(value, tuple):
        if len(value) != len(joints):
            raise RecordingError(f"{where} has {len(value)} numbers for {len(joints)} joints; one each is expected")
        return np.array(value)
    return np.full(len(joints), float(value))


def _from_table(value: Mapping[str, float], joints: tuple[str, ...], where: str, default: float | None) -> np.ndarray:
    for name in value:
        if name not in joints:
            raise RecordingError(
                f"{where}: no joint '{name}'; joints: {', '.join(joints)}{nearest_match(name, joints)}"
            )
    missing = [joint for joint in joints if joint not in value]
    if missing and default is None:
        raise RecordingError(f"{where}: no number for joint '{missing[0]}'; give one for each joint")
    return np.array([value.get(joint, default) for joint in joints], dtype=float)


def gear_matrix(robot: Robot, ratios: PerJoint | None, coupling: tuple[tuple[float, ...], ...] | None) -> np.ndarray:
    """Return R (n, n) with ``q_motor = R q``: gear ratios times the coupling of the motors, declared or the robot's."""
    joints = joint_names(robot)
    if ratios is not None:
        numbers = joint_values(ratios, robot, "gear_ratio")
    else:
        known = [body.joint.gear_ratio for body in robot.actuated]
        unknown = [joint for joint, ratio in zip(joints, known, strict=True) if ratio is None]
        if unknown:
            raise RecordingError(
                f"side = 'motor' needs gear ratios, and robot '{robot.name}' states none for joint '{unknown[0]}'; "
                "give gear_ratio = [...]"
            )
        numbers = np.array(known, dtype=float)
    matrix = robot.motor_coupling() if coupling is None else np.array(coupling)
    if matrix.shape != (len(joints), len(joints)):
        raise RecordingError(f"coupling is {matrix.shape[0]} x {matrix.shape[1]}; the robot has {len(joints)} joints")
    gears = numbers[:, None] * matrix
    if abs(np.linalg.det(gears)) < 1e-12:
        raise RecordingError("gear ratios and coupling cannot be inverted; a ratio of zero, or two equal rows?")
    return gears
