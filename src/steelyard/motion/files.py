"""Reading and writing of motions as TOML files that a person can read and edit.

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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..configuration import ROOT, Kind, Section, anything, choice, list_of, located, numbers
from ..errors import MotionError, require_type
from ..files import toml_document, write_aside
from .approach import ApproachedTrajectory, with_approach
from .checks import checked_joints
from .fourier import FourierSeries, fourier
from .piecewise import PiecewisePolynomial, QuinticMoves, TrapezoidalMoves, quintic, trapezoidal
from .trajectory import Trajectory

Table = dict[str, Any]


class MotionForm(NamedTuple):
    """A kind of motion in a file.

    Attributes:
        build: Returns the motion; its arguments are the keys.
        needed: Keys it must have.
        optional: Keys it may have.
    """

    build: Callable[..., Trajectory]
    needed: tuple[str, ...]
    optional: tuple[str, ...]


FORMS: dict[str, MotionForm] = {
    "quintic": MotionForm(quintic, ("points", "durations"), ("via", "velocities", "accelerations")),
    "trapezoidal": MotionForm(trapezoidal, ("points", "durations"), ("ramp", "cruise")),
    "fourier": MotionForm(fourier, ("q0", "sin", "cos", "period"), ("periods",)),
    "approach": MotionForm(with_approach, ("start_posture", "duration_in", "duration_out", "core"), ("end_posture",)),
}
_VIA_POINTS = ("points", "velocities", "accelerations")


def trajectory_from_table(table: Mapping[str, Any]) -> Trajectory:
    """Return the motion that a TOML document describes."""
    if not isinstance(table.get("joints"), list):
        got = f"joints is {table['joints']!r}" if "joints" in table else "'joints' is missing"
        raise MotionError(f'{got}; allowed is a list of joint names, joints = ["...", "..."]')
    return _trajectory({key: value for key, value in table.items() if key != "joints"}, checked_joints(table["joints"]))


def _trajectory(table: Mapping[str, Any], joints: tuple[str, ...]) -> Trajectory:
    section = Section(table, ROOT, MotionError)
    kind = section.get("kind", choice(*FORMS))
    form = FORMS[kind]
    keys, kinds = (*form.needed, *form.optional), _kinds_of_angles(joints)
    section.check_keys(["kind", *keys, *(f"{key}_deg" for key in keys if key in kinds)])
    found = {key: section.angles(key, kinds.get(key, anything)) for key in keys}
    given = {key: value for key, value in found.items() if value is not None}
    for key in form.needed:
        if key not in given:
            raise MotionError(f"'{key}' is missing; a {kind} motion needs {', '.join(form.needed)}")
    given.update({key: np.array(given[key]).reshape(-1, len(joints)).T for key in _VIA_POINTS if key in given})
    if kind != "approach":
        return form.build(**given, joints=joints)
    given.pop("core")
    with located("[core]", MotionError):
        core = _trajectory(section.section("core").table, joints)
    return form.build(core, **given)


def _kinds_of_angles(joints: tuple[str, ...]) -> dict[str, Kind[Any]]:
    """Return the kind of each key that may end in ``_deg``; other keys are checked when the motion is built."""
    row = numbers(len(joints), what=f"{len(joints)} numbers, one for each joint: {', '.join(joints)}")
    via_points = list_of(row, None, "a list of rows, one for each via point")
    harmonics = list_of(numbers(), None, "a list of rows, one for each joint")
    return {
        "q0": numbers(), "sin": harmonics, "cos": harmonics, "start_posture": numbers(), "end_posture": numbers(),
        **dict.fromkeys(_VIA_POINTS, via_points),
    }  # fmt: skip


def table_from_trajectory(trajectory: Trajectory) -> Table:
    """Return the content of a motion's file, without the joints: ``kind`` first, angles in radians."""
    match trajectory:
        case PiecewisePolynomial(moves=QuinticMoves() as moves):
            return _table_of_quintic(moves)
        case PiecewisePolynomial(moves=TrapezoidalMoves() as moves):
            shape = {"ramp": moves.ramp, "cruise": moves.cruise}
            return {"kind": "trapezoidal", "durations": _short(moves.durations), **shape, "points": moves.points.T}
        case FourierSeries():
            head = {"kind": "fourier", "period": trajectory.period, "periods": trajectory.periods}
            return {**head, "q0": trajectory.q0, "sin": trajectory.sin, "cos": trajectory.cos}
        case ApproachedTrajectory():
            return {
                "kind": "approach",
                "duration_in": trajectory.way_in.duration,
                "duration_out": trajectory.way_out.duration,
                "start_posture": trajectory.start_posture,
                "end_posture": trajectory.end_posture,
                "core": table_from_trajectory(trajectory.core),
            }
    raise MotionError(f"a {type(trajectory).__name__} has no form in a file; allowed: {', '.join(FORMS)}")


def _table_of_quintic(moves: QuinticMoves) -> Table:
    head = {"kind": "quintic", "durations": _short(moves.durations)}
    if moves.via != "given":
        return {**head, "via": moves.via, "points": moves.points.T}
    states = {"velocities": moves.velocities.T, "accelerations": moves.accelerations.T}
    return {**head, "points": moves.points.T, **states}


def _short(durations: np.ndarray) -> float | np.ndarray:
    """Return one number where all are the same."""
    return float(durations[0]) if (durations == durations[0]).all() else durations


LARGEST_FILE = 50_000_000
"""More bytes than this are a recording, not a motion."""


def write_trajectory(trajectory: Trajectory, path: str | os.PathLike[str]) -> None:
    """Write a motion as TOML; read again, it is the same to the last bit.

    The file is written aside and renamed: a kill leaves the old file or the new one. The last bit is that of the same
    machine: ``smooth`` via points are kept as such, and their states are solved for again.

    Raises:
        FileError: If the file cannot be written.

    Example:
        >>> motion = steelyard.quintic([[0.0, 0.4]], 1.0, ["joint_1"])
        >>> steelyard.write_trajectory(motion, "motion.toml")
        >>> steelyard.read_trajectory("motion.toml").joints
        ('joint_1',)
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

    Example:
        >>> steelyard.write_trajectory(steelyard.quintic([[0.0, 0.4]], 1.0, ["joint_1"]), "motion.toml")
        >>> steelyard.read_trajectory("motion.toml").duration
        1.0
    """
    with located(os.fspath(path), MotionError):
        trajectory = trajectory_from_table(toml_document(Path(path), "a motion", MotionError, LARGEST_FILE))
        return trajectory if joints is None else trajectory.in_order(joints)


def load_trajectory(given: Trajectory | str | os.PathLike[str], joints: Sequence[str]) -> Trajectory:
    """Return a motion, read from its file if a path is given, rows in the order of these joints.

    Example:
        >>> from steelyard.motion import load_trajectory
        >>> load_trajectory(steelyard.quintic([[0.0, 0.4]], 1.0, ["joint_1"]), ["joint_1"]).duration
        1.0
    """
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
