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

Motions as TOML tables: what each kind holds, key by key. The format is explained in :mod:`.files`.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import MotionError, nearest_match, require_type
from ..files import toml_document, write_aside
from .approach import ApproachedTrajectory, with_approach
from .checks import checked_joints, number
from .fourier import FourierSeries, fourier
from .piecewise import DEFAULT_RAMP, PiecewisePolynomial, QuinticMoves, TrapezoidalMoves, quintic, trapezoidal
from .trajectory import Trajectory

Table = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """A kind of motion in a file.

    Attributes:
        build: Makes the motion from its table (angles in radians) and its joints.
        needed: Keys it must have.
        optional: Keys it may have.
        in_degrees: Those of its keys that may end in ``_deg`` instead.
    """

    build: Callable[[Mapping[str, Any], tuple[str, ...]], Trajectory]
    needed: tuple[str, ...]
    optional: tuple[str, ...]
    in_degrees: tuple[str, ...]


def _quintic(table: Mapping[str, Any], joints: tuple[str, ...]) -> Trajectory:
    rows = {key: _columns(table[key], joints, key) for key in ("points", "velocities", "accelerations") if key in table}
    return quintic(rows.pop("points"), table["durations"], joints, via=table.get("via", "rest"), **rows)


def _trapezoidal(table: Mapping[str, Any], joints: tuple[str, ...]) -> Trajectory:
    points = _columns(table["points"], joints, "points")
    ramp, cruise = table.get("ramp", DEFAULT_RAMP), table.get("cruise", 0.0)
    return trapezoidal(points, table["durations"], joints, ramp=ramp, cruise=cruise)


def _fourier(table: Mapping[str, Any], joints: tuple[str, ...]) -> Trajectory:
    return fourier(table["q0"], table["sin"], table["cos"], table["period"], joints, table.get("periods", 1))


def _approach(table: Mapping[str, Any], joints: tuple[str, ...]) -> Trajectory:
    if not isinstance(table["core"], dict):
        raise MotionError(f"core is {table['core']!r}; allowed is a table, [core]")
    core = _trajectory(table["core"], joints, "[core]: ")
    lengths = table["duration_in"], table["duration_out"]
    return with_approach(core, table["start_posture"], *lengths, table.get("end_posture"))


_VIA_POINTS = ("points", "velocities", "accelerations")
KINDS: dict[str, Kind] = {
    "quintic": Kind(_quintic, ("points", "durations"), ("via", "velocities", "accelerations"), _VIA_POINTS),
    "trapezoidal": Kind(_trapezoidal, ("points", "durations"), ("ramp", "cruise"), ("points",)),
    "fourier": Kind(_fourier, ("q0", "sin", "cos", "period"), ("periods",), ("q0", "sin", "cos")),
    "approach": Kind(
        _approach,
        ("start_posture", "duration_in", "duration_out", "core"),
        ("end_posture",),
        ("start_posture", "end_posture"),
    ),
}


def trajectory_from_table(table: Mapping[str, Any]) -> Trajectory:
    """Return the motion that a TOML document describes."""
    if "joints" not in table:
        raise MotionError('\'joints\' is missing; add joints = ["...", "..."], the names of the rows')
    if not isinstance(table["joints"], list):
        raise MotionError(f"joints is {table['joints']!r}; allowed is a list of joint names")
    joints = checked_joints(table["joints"])
    return _trajectory({key: value for key, value in table.items() if key != "joints"}, joints, "")


def _trajectory(table: Mapping[str, Any], joints: tuple[str, ...], where: str) -> Trajectory:
    try:
        word = table.get("kind")
        if not isinstance(word, str) or word not in KINDS:
            got = f"kind is {word!r}" if "kind" in table else "'kind' is missing"
            raise MotionError(f"{got}; allowed: {', '.join(KINDS)}{nearest_match(str(word), KINDS)}")
        kind = KINDS[word]
        content = _in_radians({key: value for key, value in table.items() if key != "kind"}, kind, word)
        for key in kind.needed:
            if key not in content:
                raise MotionError(f"'{key}' is missing; a {word} motion needs {', '.join(kind.needed)}")
        return kind.build(content, joints)
    except MotionError as error:
        raise MotionError(f"{where}{error}") from error


def _in_radians(table: Mapping[str, Any], kind: Kind, word: str) -> Table:
    """Return the table with every known key, degrees turned to radians; an unknown key is refused."""
    allowed = [*kind.needed, *kind.optional, *(f"{key}_deg" for key in kind.in_degrees)]
    content: Table = {}
    for key, value in table.items():
        if key not in allowed:
            near = nearest_match(key, allowed)
            raise MotionError(f"unknown key '{key}' of a {word} motion; allowed: {', '.join(allowed)}{near}")
        plain = key.removesuffix("_deg")
        if plain in content:
            raise MotionError(f"both {plain} and {plain}_deg are given; keep one")
        content[plain] = (
            _in_si(value, key, math.pi / 180 if plain != key else 1.0) if plain in kind.in_degrees else value
        )
    return content


def _in_si(value: Any, key: str, unit: float) -> Any:
    """Return nested lists of numbers times their unit."""
    if isinstance(value, list):
        return [_in_si(entry, key, unit) for entry in value]
    return number(value, f"a number of {key}") * unit


def _columns(rows: Any, joints: Sequence[str], key: str) -> np.ndarray:
    """Return via points (n, K) from one row for each point, as files write them."""
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise MotionError(f"{key} is not a list of rows; give one row [..] for each via point")
    for place, row in enumerate(rows, start=1):
        if len(row) != len(joints):
            raise MotionError(
                f"{key}: row {place} has {len(row)} numbers; allowed is {len(joints)}, one for each joint: "
                f"{', '.join(joints)}"
            )
        for value in row:
            number(value, f"a number of {key}")
    return np.array(rows, dtype=float).reshape(-1, len(joints)).T


def table_from_trajectory(trajectory: Trajectory) -> Table:
    """Return what a file holds of a motion, without the joints: ``kind`` first, angles in radians."""
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
    raise MotionError(f"a {type(trajectory).__name__} has no form in a file; allowed: {', '.join(KINDS)}")


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
    try:
        trajectory = trajectory_from_table(toml_document(Path(path), "a motion", MotionError, LARGEST_FILE))
        return trajectory if joints is None else trajectory.in_order(joints)
    except MotionError as error:
        raise MotionError(f"{os.fspath(path)}: {error}") from error


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
