"""Files of measurements: read with a row for each marker and repeat or one for several markers, written in SI units."""

from __future__ import annotations

import itertools
import math
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from ...configuration import LARGEST_NUMBER
from ...errors import CalibrationError, nearest_match
from ...files import write_aside
from ...robot import AnyRobot, Robot, load_robot
from ...tables import NamedColumns, read_columns
from ...text import counted, csv_text
from .measurements import EULER, MATRIX, NOT_MEASURED, QUATERNION, Measurements, measured_rotations
from .setup import KINDS, LENGTHS, TURNS, CalibrationSetup, Kind, moving_chain

FIRST_MARKER = "marker_1"
"""Name of the only marker of a file that names none."""


@dataclass(frozen=True, eq=False)
class Observed:
    """Measured values (R) with the row of the file and the names of the markers that they belong to."""

    row: np.ndarray
    marker: tuple[str, ...]
    other: tuple[str, ...]
    kind: tuple[Kind, ...]
    value: np.ndarray
    rotation: np.ndarray

    def taken(self, chosen: np.ndarray) -> Observed:
        """Return those of a mask (R,)."""
        places = np.flatnonzero(chosen)
        marker, other, kind = (tuple(column[k] for k in places) for column in (self.marker, self.other, self.kind))
        return Observed(
            self.row[places], marker, other, cast(tuple[Kind, ...], kind), self.value[places], self.rotation[places]
        )


def column_of(table: NamedColumns, setup: CalibrationSetup, role: str) -> str | None:
    """Return the column that has a role, or None; a declared one must be there."""
    declared = setup.columns.renamed.get(role)
    if declared is not None:
        table.column(declared)
        return declared
    return role if role in table.cells else None


def texts_of(table: NamedColumns, setup: CalibrationSetup, role: str, default: str) -> list[str]:
    """Return the texts of the column that has a role; the default in every row if there is none."""
    column = column_of(table, setup, role)
    return [default] * table.rows if column is None else table.texts(column)


def observed_in_wide(table: NamedColumns, setup: CalibrationSetup) -> Observed:
    """Return what a file with several markers in one row measures; the set-up names their columns."""
    unit, parts = LENGTHS[setup.columns.position], []
    unmeasured = np.full((table.rows, 3, 3), np.nan)
    kind = cast(Kind, setup.columns.kind or "position")
    for name, columns in setup.columns.markers.items():
        coordinates = [
            table.numbers(column, may_miss=True) if column else np.full(table.rows, np.nan) for column in columns
        ]
        parts.append((name, kind, unit * np.stack(coordinates, axis=1), unmeasured))
    if setup.columns.tool:
        x, y, z, *angles = setup.columns.tool
        value = unit * np.stack([table.numbers(column, may_miss=True) for column in (x, y, z)], axis=1)
        parts.append(("", "pose", value, measured_rotations(table, angles, TURNS[setup.columns.angle])))
    rows = table.rows
    # Row by row as in the file, markers in the order of the set-up.
    order = np.arange(rows * len(parts)).reshape(len(parts), rows).T.ravel()
    names, kinds = (tuple(part[field] for part in parts) * rows for field in (0, 1))
    return Observed(
        np.repeat(np.arange(rows), len(parts)), names, ("",) * len(names), kinds,
        np.concatenate([part[2] for part in parts])[order], np.concatenate([part[3] for part in parts])[order],
    )  # fmt: skip


def observed_in_long(table: NamedColumns, setup: CalibrationSetup) -> Observed:
    """Return what a file with a row for each marker and repeat measures."""
    found = [column_of(table, setup, role) for role in ("x", "y", "z", "distance")]
    if not any(found):
        raise CalibrationError(
            f"{table.path}: there is no column x, y, z or distance; columns: {', '.join(table.cells)}; name "
            "those of the markers in the set-up, [markers.NAME] columns = [...]"
        )
    numbers = [np.full(table.rows, np.nan) if name is None else table.numbers(name, may_miss=True) for name in found]
    value, distance = np.column_stack(numbers[:3]), numbers[3]
    rotation = _long_rotations(table, setup)
    oriented = np.isfinite(rotation.reshape(table.rows, 9)).all(axis=1)
    kinds = _kinds(table, setup, np.isfinite(distance), np.asarray(oriented))
    apart = np.array([kind == "distance" for kind in kinds])
    value[apart] = np.column_stack([distance, np.full((table.rows, 2), np.nan)])[apart]
    marker, other = _marker_names(table, setup, kinds), _second_markers(table, setup, kinds)
    scale = LENGTHS[setup.columns.position]
    return Observed(np.arange(table.rows), marker, other, kinds, value * scale, rotation)


def _long_rotations(table: NamedColumns, setup: CalibrationSetup) -> np.ndarray:
    for roles in (QUATERNION, EULER, MATRIX):
        columns = [column_of(table, setup, role) for role in roles]
        present = [column for column in columns if column is not None]
        if present and len(present) < len(roles):
            missing = roles[columns.index(None)]
            raise CalibrationError(f"{table.path}: column '{missing}' is missing beside '{present[0]}'; add it")
        if present:
            return measured_rotations(table, present, TURNS[setup.columns.angle])
    return np.full((table.rows, 3, 3), np.nan)


def _kinds(table: NamedColumns, setup: CalibrationSetup, apart: np.ndarray, oriented: np.ndarray) -> tuple[Kind, ...]:
    """Return what each row measures: as it says, as the set-up says, or by what is filled in."""
    said = texts_of(table, setup, "kind", "")
    by_content = np.where(apart, "distance", np.where(oriented, "pose", "position"))
    kinds = [text or setup.columns.kind or str(kind) for text, kind in zip(said, by_content, strict=True)]
    for line, kind in zip(table.lines, kinds, strict=True):
        if kind not in KINDS:
            raise CalibrationError(
                f"{table.path}: line {line} measures '{kind}'; allowed: {', '.join(KINDS)}{nearest_match(kind, KINDS)}"
            )
    return tuple(cast(Kind, kind) for kind in kinds)


def _marker_names(table: NamedColumns, setup: CalibrationSetup, kinds: Sequence[Kind]) -> tuple[str, ...]:
    only = setup.markers[0].name if len(setup.markers) == 1 else FIRST_MARKER
    said = texts_of(table, setup, "marker", only)
    names = tuple("" if kind == "pose" else text or only for text, kind in zip(said, kinds, strict=True))
    declared = [marker.name for marker in setup.markers]
    for line, name in zip(table.lines, names, strict=True):
        if declared and name and name not in declared:
            raise CalibrationError(
                f"{table.path}: line {line} names marker '{name}'; markers of the set-up: {', '.join(declared)}"
                f"{nearest_match(name, declared)}"
            )
    return names


def _second_markers(table: NamedColumns, setup: CalibrationSetup, kinds: Sequence[Kind]) -> tuple[str, ...]:
    said = texts_of(table, setup, "to", "")
    for line, text, kind in zip(table.lines, said, kinds, strict=True):
        if kind == "distance" and not text:
            raise CalibrationError(
                f"{table.path}: line {line} measures a distance; name the second marker in column 'to'"
            )
    return tuple(text if kind == "distance" else "" for text, kind in zip(said, kinds, strict=True))


SAME_POSITION = 1e-9
"""Joint positions that agree this closely [rad or m] are one configuration."""
MOST_SPREAD = 0.02
"""Joint positions of one numbered pose that differ by more [rad or m] are an error in the numbers."""


def read_measurements(path: str | os.PathLike[str], robot: AnyRobot, setup: CalibrationSetup) -> Measurements:
    """Return the measurements of a file in SI units and in the robot's joint order.

    A long file has a row for each marker and repeat, with columns ``pose``, ``marker``, ``repeat``, ``load``, ``kind``,
    the joints, ``x``, ``y``, ``z``, ``qw qx qy qz`` or ``roll pitch yaw``, ``distance`` and ``to``; all but the joints
    and one of the measured are optional. In a wide file the set-up says which columns belong to which marker.
    Rows of equal joint positions are one configuration, whatever a column ``pose`` calls them.

    Args:
        path: Text with or without a header, or another file that logs can be.
        robot: The arm.
        setup: Units, columns, loads; markers it does not name are taken from the file.
    """
    robot = load_robot(robot)
    table = read_columns(path, setup.columns.names, advice="joints may be named otherwise under [joints]")
    q = _joint_positions(table, robot, setup)
    wide = bool(setup.columns.markers or setup.columns.tool)
    observed = observed_in_wide(table, setup) if wide else observed_in_long(table, setup)
    measured = np.asarray(np.isfinite(observed.value).any(axis=1))
    if not measured.any():
        raise CalibrationError(f"{table.path}: no row holds a measured position or distance; fill x, y, z or distance")
    lost = int(np.count_nonzero(~measured))
    observed, q = observed.taken(measured), q[:, observed.row[measured]]
    named, names = _poses(table, setup, q, observed.row)
    pose, poses = _merged(q, named, names)
    notes = [f"no measured number in {counted(lost, 'row')}, left out"] if lost else []
    if len(poses) < len(names):
        notes.append(
            f"{len(names) - len(poses)} of {len(names)} poses have the joint positions of another: they count as its "
            "repeats, not as configurations"
        )
    markers = tuple(dict.fromkeys(name for name in (*observed.marker, *observed.other) if name))
    number = {name: k for k, name in enumerate(markers)} | {"": NOT_MEASURED}
    marker = np.array([number[name] for name in observed.marker])
    load = _loads(table, setup)[observed.row]
    return Measurements(
        joints=tuple(body.joint.name for body in robot.actuated), q=q, kind=observed.kind, pose=pose, marker=marker,
        other=np.array([number[name] for name in observed.other]), load=load, value=observed.value,
        rotation=observed.rotation,
        repeat=_repeats(table, setup, observed.row, np.column_stack([pose, marker, load]), len(poses) < len(names)),
        poses=poses, markers=markers, notes=tuple(notes),
    )  # fmt: skip


def _joint_positions(table: NamedColumns, robot: Robot, setup: CalibrationSetup) -> np.ndarray:
    """Return the positions of the actuated joints (na, rows); joints that do not move the measured link may miss."""
    needed = _moving_joints(robot, setup.link)
    q = np.zeros((len(robot.actuated), table.rows))
    for row, body in enumerate(robot.actuated):
        name, unit = body.joint.name, TURNS[setup.columns.angle]
        if body.joint.kind == "prismatic":
            unit = LENGTHS[setup.columns.slide]
        own = name if name in table.cells else f"q[{row + 1}]" if f"q[{row + 1}]" in table.cells else name
        terms = setup.joint_map.get(name, {own: 1.0})
        if name not in setup.joint_map and own not in table.cells and name not in needed:
            continue
        q[row] = terms.get("", 0.0)
        for column, factor in terms.items():
            if column:
                q[row] += factor * unit * table.numbers(column)
        if not (np.abs(q[row]) <= LARGEST_NUMBER).all():
            raise CalibrationError(
                f"{table.path}: {name} is at {np.abs(q[row]).max():.3g} rad or m; allowed is up to {LARGEST_NUMBER:g}, "
                "check its column and its unit"
            )
    return q


def _moving_joints(robot: Robot, link: str) -> set[str]:
    """Return the names of the actuated joints that move a link, by themselves or through joints that follow them."""
    matrix, _ = robot.coupling()
    chain = [body.number - 1 for body in moving_chain(robot, link)]
    return {robot.actuated[column].joint.name for column in np.flatnonzero(np.any(matrix[chain] != 0, axis=0))}


def _loads(table: NamedColumns, setup: CalibrationSetup) -> np.ndarray:
    """Return the number of the load of every row of the file, -1 for none."""
    numbers = {load.name: k for k, load in enumerate(setup.loads)} | {"": NOT_MEASURED, "none": NOT_MEASURED}
    said = texts_of(table, setup, "load", setup.columns.load)
    for line, name in zip(table.lines, said, strict=True):
        if name not in numbers:
            names = [load.name for load in setup.loads]
            raise CalibrationError(
                f"{table.path}: line {line} names load '{name}'; loads of the set-up: "
                f"{', '.join(names) or 'none, add [loads.' + name + ']'}{nearest_match(name, names)}"
            )
    return np.array([numbers[name] for name in said])


def _poses(
    table: NamedColumns, setup: CalibrationSetup, q: np.ndarray, row: np.ndarray
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the number of every measurement's configuration, and their names, in the order of the file."""
    column = column_of(table, setup, "pose")
    texts = [] if column is None else table.texts(column)
    keys: list = _rounded(q) if column is None else [texts[k] for k in row]
    number = {key: k for k, key in enumerate(dict.fromkeys(keys))}
    names = tuple(str(k + 1) if column is None else key for key, k in number.items())
    pose = np.array([number[key] for key in keys])
    _check_pose_names(table, q, pose, names)
    return pose, names


def _merged(q: np.ndarray, pose: np.ndarray, names: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return numbers and names of configurations, those of equal joint positions under the first of their names."""
    keys = _rounded(q[:, np.unique(pose, return_index=True)[1]])
    number = {key: k for k, key in enumerate(dict.fromkeys(keys))}
    first = dict(zip(reversed(keys), reversed(names), strict=True))
    return np.array([number[key] for key in keys])[pose], tuple(first[key] for key in number)


def _rounded(q: np.ndarray) -> list[tuple[int, ...]]:
    """Return configurations (na, N) as keys that are equal where joint positions agree."""
    return [tuple(values) for values in np.round(q.T / SAME_POSITION).astype(np.int64)]


def _check_pose_names(table: NamedColumns, q: np.ndarray, pose: np.ndarray, names: Sequence[str]) -> None:
    first = q[:, np.unique(pose, return_index=True)[1]]
    apart = np.abs(q - first[:, pose]).max(axis=0, initial=0.0)
    worst = int(np.argmax(apart))
    if apart[worst] > MOST_SPREAD:
        raise CalibrationError(
            f"{table.path}: pose '{names[pose[worst]]}' has joint positions {apart[worst]:.3g} rad or m apart; give "
            "each configuration a name of its own, or leave the column out"
        )


def _repeats(
    table: NamedColumns, setup: CalibrationSetup, row: np.ndarray, groups: np.ndarray, counted: bool
) -> np.ndarray:
    """Return the numbers of the repeats: as given, or counted among rows of the same pose, marker and load."""
    column = column_of(table, setup, "repeat")
    if column is not None and not counted:
        return table.numbers(column)[row].astype(int)
    count: defaultdict[tuple[int, ...], Iterator[int]] = defaultdict(itertools.count)
    return np.array([next(count[tuple(key)]) for key in groups])


_POSITION = ("x", "y", "z")
_TEXTS = ("kind", "pose", "marker", "to", "load", "repeat")


def write_measurements(path: str | os.PathLike[str], measurements: Measurements, loads: Sequence[str] = ()) -> None:
    """Write measurements as a long CSV file; a reader sees the old file or the new, never a part.

    ``read_measurements`` with a set-up in metres and radians, without ``[joints]`` and ``columns``, gives the same
    numbers to the last bit; configurations and markers are then numbered in the order in which they appear. What was
    not measured is an empty cell; rows in which nothing was measured are not read back.

    Args:
        path: The file, with an ending such as ``.csv``.
        measurements: What was measured.
        loads: Names of the loads of the set-up, in its order; needed where a row has a load.

    Raises:
        CalibrationError: If a load has no name, or a name cannot be written so that it is read back.
    """
    titles = [*_TEXTS, *measurements.joints, *_POSITION, "distance", *MATRIX]
    _check(measurements, loads, titles)
    apart = measurements.of_kind("distance")
    value = np.where(apart[:, None], np.nan, measurements.value)
    distance = np.where(apart, measurements.value[:, 0], np.nan)
    numbers = np.column_stack([measurements.q.T, value, distance, measurements.rotation.reshape(-1, len(MATRIX))])
    cells = [["" if math.isnan(number) else repr(float(number)) for number in row] for row in numbers]
    rows = [[*texts, *own] for texts, own in zip(_texts(measurements, loads), cells, strict=True)]
    # Columns that no row fills are left out; those of joints and positions say what the file is.
    needed = {*measurements.joints, *_POSITION}
    columns = [k for k, title in enumerate(titles) if title in needed or any(row[k] for row in rows)]
    write_aside(Path(path), csv_text([row[k] for k in columns] for row in (titles, *rows)))


def _texts(measurements: Measurements, loads: Sequence[str]) -> list[list[str]]:
    """Return kind, configuration, markers, load and repeat of every row."""
    return [
        [
            kind,
            measurements.poses[measurements.pose[row]],
            _named(measurements.markers, measurements.marker[row]),
            _named(measurements.markers, measurements.other[row]),
            _named(loads, measurements.load[row]),
            str(measurements.repeat[row]),
        ]
        for row, kind in enumerate(measurements.kind)
    ]


def _named(names: Sequence[str], number: int) -> str:
    return "" if number == NOT_MEASURED else names[number]


def _check(measurements: Measurements, loads: Sequence[str], titles: Sequence[str]) -> None:
    for title in measurements.joints:
        if titles.count(title) > 1:
            raise CalibrationError(f"joint '{title}' has the name of another column of the file; rename it")
    for name in (*measurements.poses, *measurements.markers, *measurements.joints, *loads):
        if not name or name != name.strip() or not name.isprintable():
            raise CalibrationError(
                f"name {name!r} of a configuration, marker, joint or load cannot be read back from a file; allowed is "
                "printable text without blanks around it"
            )
    highest = int(measurements.load.max(initial=NOT_MEASURED))
    if highest >= len(loads):
        raise CalibrationError(
            f"rows have loads up to number {highest}, but {len(loads)} names of loads are given; give those of the "
            "set-up in its order"
        )
