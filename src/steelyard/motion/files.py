"""Motions in files, in TOML that a person can read and edit.

``kind`` and ``joints`` come first, SI units throughout. Each kind has its own keys::

    kind = "quintic"                     # or "trapezoidal"
    joints = ["shoulder", "elbow"]
    durations = [1.0, 1.5]               # one for each move [s], or one number for all
    points = [                           # one row for each via point, one number for each joint
      [0.0, 0.0],
      [0.5, -1.0],
      [0.0, 0.0],
    ]

    kind = "fourier"
    joints = ["shoulder", "elbow"]
    period = 10.0                        # [s]
    periods = 3                          # default 1
    q0 = [0.0, 0.5]                      # one number for each joint
    sin = [[0.3, 0.1], [0.2, 0.0]]       # one row for each joint, one number for each harmonic
    cos = [[0.0, 0.1], [0.1, 0.0]]

    kind = "approach"                    # from rest into another motion and back
    joints = ["shoulder", "elbow"]
    start_posture = [0.0, 0.0]
    end_posture = [0.0, 0.0]             # default: the start posture
    duration_in = 2.0
    duration_out = 2.0
    [core]
    kind = "fourier"                     # with the keys of its kind, without joints

Further keys. ``quintic``: ``via`` (``rest`` or ``smooth``), or ``velocities`` and ``accelerations`` in rows as
``points``; ``trapezoidal``: ``ramp``, ``cruise``. Keys for positions, velocities, accelerations and coefficients may
end in ``_deg`` for degrees, if all joints turn. An unknown key is an error.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import MotionError, require_type
from ..files import toml_document, write_aside
from .document import table_from_trajectory, trajectory_from_table
from .trajectory import Trajectory

LARGEST_FILE = 50_000_000
"""More bytes than this are a recording, not a motion."""


def write_trajectory(trajectory: Trajectory, path: str | os.PathLike[str]) -> None:
    """Write a motion as TOML; read again, it is the same to the last bit.

    The file is written aside and renamed: a kill leaves the old file or the new one. The last bit is that of the same
    machine: ``smooth`` via points are kept as such, and their states are solved for again.

    Raises:
        FileError: If the file cannot be written.
    """
    table = table_from_trajectory(trajectory)
    ordered = {"kind": table.pop("kind"), "joints": list(trajectory.joints), **table}
    write_aside(Path(path), "\n".join(_lines(ordered)) + "\n")


def read_trajectory(path: str | os.PathLike[str], joints: Sequence[str] | None = None) -> Trajectory:
    """Read a motion from TOML; the module's text explains the format.

    Args:
        path: The file.
        joints: Joints in the order wanted; rows are matched by name. The file's own order by default.

    Raises:
        MotionError: If the file cannot be read, holds an unknown key or a wrong value, or moves other joints.
    """
    try:
        trajectory = trajectory_from_table(toml_document(Path(path), "a motion", MotionError, LARGEST_FILE))
        return trajectory if joints is None else trajectory.in_order(joints)
    except MotionError as error:
        raise MotionError(f"{os.fspath(path)}: {error}") from error


def load_trajectory(given: Trajectory | str | os.PathLike[str], joints: Sequence[str]) -> Trajectory:
    """Return a motion, read from its file if a path is given, rows in the order of these joints."""
    if isinstance(given, str | os.PathLike):
        return read_trajectory(given, joints)
    require_type(given, Trajectory, "motion", "a trajectory or the path of its file", MotionError)
    return given


def _lines(table: dict[str, Any]) -> list[str]:
    """Return the lines of a table; a table inside it comes last, under its own heading."""
    inner = {key: value for key, value in table.items() if isinstance(value, dict)}
    lines = [f"{key} = {_text(value)}" for key, value in table.items() if key not in inner]
    for key, value in inner.items():
        lines += ["", f"[{key}]", *_lines(value)]
    return lines


def _text(value: Any) -> str:
    """Return a value in TOML; a float as the shortest digits that read back as the same number."""
    if isinstance(value, np.ndarray) and value.ndim == 2:
        return "[\n" + "".join(f"  {_text(row)},\n" for row in value) + "]"
    if isinstance(value, np.ndarray | list):
        return "[" + ", ".join(_text(entry) for entry in value) + "]"
    if isinstance(value, str):
        # JSON's quoting is TOML's but for the one control character that JSON leaves as it is.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value.item() if isinstance(value, np.generic) else value)
