"""Measured orientations: quaternions, or roll, pitch and yaw, as rotation matrices, checked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from ...errors import CalibrationError
from .named_columns import NamedColumns

QUATERNION = ("qw", "qx", "qy", "qz")
EULER = ("roll", "pitch", "yaw")
MATRIX = tuple(f"rotation[{number}]" for number in range(1, 10))
"""A rotation matrix row by row, as an array ``rotation`` (rows, 3, 3) of an NPZ file has it."""
UNIT_LENGTH = 1e-2
"""A quaternion may be this far from unit length (it is rounded in files); it is made one."""
ORTHOGONAL = 1e-3
"""Columns of a rotation matrix may be this far from orthonormal."""


def measured_rotations(table: NamedColumns, columns: Sequence[str], unit: float) -> np.ndarray:
    """Return rotation matrices (rows, 3, 3), NaN in rows where the orientation is not filled in.

    Args:
        table: The file.
        columns: Four of a quaternion w, x, y, z; or three of roll, pitch, yaw as in a URDF: Rz(yaw) Ry(pitch) Rx(roll);
            or nine of a rotation matrix, row by row.
        unit: One unit of the angles [rad].
    """
    numbers = np.stack([table.numbers(column, may_miss=True) for column in columns], axis=1)
    there = np.isfinite(numbers).all(axis=1)
    rotations = np.full((table.rows, 3, 3), np.nan)
    if not there.any():
        return rotations
    if len(columns) == len(MATRIX):
        rotations[there] = numbers[there].reshape(-1, 3, 3)
        check_rotations(rotations, [f"line {line} of {table.path}" for line in table.lines])
    elif len(columns) == len(EULER):
        rotations[there] = Rotation.from_euler("xyz", numbers[there] * unit).as_matrix()
    else:
        _check_lengths(table, np.where(there, np.linalg.norm(numbers, axis=1), 1.0))
        rotations[there] = Rotation.from_quat(numbers[there], scalar_first=True).as_matrix()
    return rotations


def _check_lengths(table: NamedColumns, lengths: np.ndarray) -> None:
    wrong = np.flatnonzero(np.abs(lengths - 1) > UNIT_LENGTH)
    if wrong.size:
        row = int(wrong[0])
        raise CalibrationError(
            f"{table.path}: the quaternion in line {table.lines[row]} has length {lengths[row]:.4g}; 1 is expected, "
            "its columns are w, x, y, z"
        )


def check_rotations(rotation: np.ndarray, rows: Sequence[str]) -> None:
    """Refuse matrices (R, 3, 3) that are no rotations: left-handed frames and axes that are not orthonormal.

    Args:
        rotation: The matrices, NaN where not measured.
        rows: What messages call each row, as in ``pose '3'``.
    """
    there = np.flatnonzero(np.isfinite(rotation).all(axis=(1, 2)))
    square = np.einsum("rij,rkj->rik", rotation[there], rotation[there])
    askew = np.abs(square - np.eye(3)).max(axis=(1, 2), initial=0.0)
    for place, row in enumerate(there.tolist()):
        if askew[place] > ORTHOGONAL:
            raise CalibrationError(
                f"the orientation of {rows[row]} is no rotation: its axes are {askew[place]:.2g} from orthonormal; "
                f"at most {ORTHOGONAL:g} is allowed, check the order of its numbers"
            )
        if np.linalg.det(rotation[row]) < 0:
            raise CalibrationError(
                f"the orientation of {rows[row]} is a left-handed frame (determinant -1); frames must be right-handed, "
                "turn one of its axes round"
            )
