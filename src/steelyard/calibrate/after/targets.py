"""Wanted poses: where the measured link, or a tool point fixed to it, shall be in the robot's base frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from ...errors import CalibrationError
from .calibrated_arm import POINT_AT_LINK, CalibratedArm, point_of
from .configurations import configurations_of
from .inverse import Wanted


@final
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
    """Return targets.

    Args:
        position: Wanted positions of the tool point in the robot's base frame (N, 3) [m].
        rotation: Wanted orientations (N, 3, 3), NaN where free; all free if not given.
        joints: Joint positions that a controller would go to by itself (na, N), if they are known.
        names: A name for each.
        point: The tool point, in the measured link's frame (3,) [m].
    """
    places = np.array(position, dtype=float)
    if places.ndim != 2 or places.shape[1] != 3 or not len(places) or not np.isfinite(places).all():
        raise CalibrationError(
            f"wanted positions: got shape {places.shape}, allowed are finite numbers (N, 3) [m] with N of at least 1"
        )
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
    if turns.shape != (count, 3, 3):
        raise CalibrationError(f"wanted orientations: got shape {turns.shape}, allowed is ({count}, 3, 3)")
    turned = np.asarray(np.isfinite(turns.reshape(count, 9)).all(axis=1))
    filled = np.where(turned[:, None, None], turns, np.eye(3))
    orthogonal = np.abs(filled @ filled.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2)) < 1e-6
    wrong = np.flatnonzero(~orthogonal | (np.linalg.det(filled) < 0))
    if len(wrong):
        raise CalibrationError(
            f"wanted orientation number {wrong[0]} is no rotation, allowed are right-handed orthogonal matrices; "
            "is it transposed or mirrored?"
        )
    return filled, turned


def _names(names: Sequence[str], count: int) -> tuple[str, ...]:
    if names and len(names) != count:
        raise CalibrationError(f"names of the targets: got {len(names)}, allowed is one for each of {count} targets")
    return tuple(names) or tuple(str(number) for number in range(1, count + 1))
