"""Targets: wanted poses of the measured link, or of a tool point fixed to it, in the robot's base frame.

A file of targets is text with a header, NPZ or Parquet, in units that the caller declares. It has columns of joints (by
their names, or q1, q2, ...), or ``x y z`` with or without ``qw qx qy qz`` or ``roll pitch yaw``, or both. Joints alone
stand for the pose that the nominal arm has there. A column ``name`` may name the targets; lines that begin with # are
comments; the orientation of a row may be blank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...configuration import checked, choice
from ...errors import CalibrationError
from ...robot import Robot
from ...tables import NamedColumns, read_columns
from ..measurement.measurements import EULER, QUATERNION, check_rotations, measured_rotations
from ..measurement.setup import LENGTHS, TURNS
from ..records import finite
from .calibrated_arm import POINT_AT_LINK, CalibratedArm, configurations_of, point_of
from .inverse import Wanted


@dataclass(frozen=True, eq=False)
class Targets:
    """Wanted poses.

    Attributes:
        names: A name for each (N).
        wanted: Positions and orientations of the tool point in the robot's base frame.
        joints: Joint positions that a controller would go to by itself (na, N), or None: to be found.
        point: The tool point, in the measured link's frame (3,) [m].
    """

    names: tuple[str, ...]
    wanted: Wanted
    joints: np.ndarray | None
    point: np.ndarray


def targets_from_joints(
    arm: CalibratedArm, q: np.ndarray, *, names: Sequence[str] = (), point: Sequence[float] = POINT_AT_LINK
) -> Targets:
    """Return as targets the poses that the nominal arm, rigid and as in its file, has at joint positions (na, N)."""
    joints, place = configurations_of(arm.robot, q), point_of(point)
    rotation, position = arm.pose(joints, None, arm.controller_values)
    wanted = Wanted(position + rotation @ place, rotation, np.ones(joints.shape[1], dtype=bool))
    return Targets(_names(names, joints.shape[1]), wanted, joints, place)


def targets_from_poses(
    position: np.ndarray,
    rotation: np.ndarray | None = None,
    *,
    joints: np.ndarray | None = None,
    names: Sequence[str] = (),
    point: Sequence[float] = POINT_AT_LINK,
) -> Targets:
    """Return targets from wanted positions and orientations.

    Args:
        position: Wanted positions of the tool point in the robot's base frame (N, 3) [m].
        rotation: Wanted orientations (N, 3, 3), NaN where free; all free if not given.
        joints: Joint positions that a controller would go to by itself (na, N), if they are known.
        names: A name for each.
        point: The tool point, in the measured link's frame (3,) [m].
    """
    places = finite(position, (None, 3), "wanted positions [m]").copy()
    if joints is not None and np.shape(joints)[-1] != len(places):
        raise CalibrationError(
            f"joints of the targets: got shape {np.shape(joints)}, allowed is one column for each of {len(places)}"
        )
    turns = np.full((len(places), 3, 3), np.nan) if rotation is None else np.array(rotation, dtype=float)
    wanted = Wanted(places, *_orientations(turns, len(places)))
    return Targets(
        _names(names, len(places)), wanted, None if joints is None else np.array(joints, dtype=float), point_of(point)
    )


def _orientations(turns: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rotations (N, 3, 3), the identity where they are free, and whether each counts (N,)."""
    if turns.shape != (count, 3, 3):
        raise CalibrationError(f"wanted orientations: got shape {turns.shape}, allowed is ({count}, 3, 3)")
    check_rotations(turns, [f"target number {number}" for number in range(count)], 1e-6)
    turned = np.asarray(np.isfinite(turns.reshape(count, 9)).all(axis=1))
    return np.where(turned[:, None, None], turns, np.eye(3)), turned


def _names(names: Sequence[str], count: int) -> tuple[str, ...]:
    if names and len(names) != count:
        raise CalibrationError(f"names of the targets: got {len(names)}, allowed is one for each of {count} targets")
    return tuple(names) or tuple(str(number) for number in range(1, count + 1))


_POSITION = ("x", "y", "z")


def read_targets(
    path: Path, arm: CalibratedArm, *, length: str = "m", angle: str = "rad", point: Sequence[float] = POINT_AT_LINK
) -> Targets:
    """Return the targets of a file.

    Args:
        path: The file.
        arm: The calibrated arm: its joints' names, and the nominal arm.
        length: Unit of positions and of sliding joints: ``m``, ``mm``, ``um`` or ``in``.
        angle: Unit of angles: ``rad`` or ``deg``.
        point: The tool point, in the measured link's frame (3,) [m].
    """
    to_metres, to_radians = unit_of(length, LENGTHS, "length"), unit_of(angle, TURNS, "angle")
    needed = "needed are the robot's joints, or x, y and z"
    table = read_columns(path, what="targets", advice=needed)
    if not table.named:
        raise CalibrationError(f"{path}: has no header; name its columns in the first line, {needed}")
    joints = _joint_columns(table, arm.robot)
    q = None
    if joints:
        scale = [to_metres if body.joint.kind == "prismatic" else to_radians for body in arm.robot.actuated]
        q = np.array([table.numbers(name) for name in joints]) * np.array(scale)[:, None]
    names = table.texts("name") if "name" in table.cells else ()
    if q is not None and not any(name in table.cells for name in _POSITION):
        return targets_from_joints(arm, q, names=names, point=point)
    position = np.array([table.numbers(name) for name in _POSITION]).T * to_metres
    return targets_from_poses(position, _turns(table, to_radians), joints=q, names=names, point=point)


def unit_of(name: str, known: Mapping[str, float], what: str) -> float:
    """Return what one unit is in SI."""
    return known[checked(name, choice(*known), f"unit of {what}", CalibrationError)]


def _joint_columns(table: NamedColumns, robot: Robot) -> list[str]:
    """Return the columns of the actuated joints in order, or none."""
    named = [body.joint.name for body in robot.actuated]
    numbered = [f"q{number}" for number in range(1, len(named) + 1)]
    for columns in (named, numbered):
        given = [name for name in columns if name in table.cells]
        if given and len(given) < len(columns):
            missing = next(name for name in columns if name not in table.cells)
            raise CalibrationError(f"{table.path}: has a column '{given[0]}' but none '{missing}'; give all joints")
        if given:
            return columns
    return []


def _turns(table: NamedColumns, to_radians: float) -> np.ndarray | None:
    """Return orientations (N, 3, 3), NaN in rows that leave all their numbers out, or None without such columns."""
    for columns in (QUATERNION, EULER):
        if not any(name in table.cells for name in columns):
            continue
        missing = np.isnan([table.numbers(name, may_miss=True) for name in columns])
        partial = np.flatnonzero(missing.any(axis=0) & ~missing.all(axis=0))
        if len(partial):
            raise CalibrationError(
                f"{table.path}: line {table.lines[partial[0]]} lacks a number; give all of {', '.join(columns)} or none"
            )
        return measured_rotations(table, columns, to_radians)
    return None
