"""Measurements from files: a row for each marker and repeat, or several markers in one row."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from ...errors import CalibrationError, nearest_match
from ...robot import AnyRobot, Robot, load_robot
from ...robot.checks import LARGEST_NUMBER
from .measurements import NOT_MEASURED, Measurements
from .named_columns import NamedColumns, open_columns
from .seen import column_of, seen_in_long, seen_in_wide
from .setup import LENGTHS, TURNS, CalibrationSetup, moving_chain

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
        path: Text with or without a header, or ``.npz``.
        robot: The arm.
        setup: Units, columns, loads; markers it does not name are taken from the file.
    """
    robot = load_robot(robot)
    table = open_columns(path, setup.columns.names)
    return measurements_from_columns(table, robot, setup)


def measurements_from_columns(table: NamedColumns, robot: Robot, setup: CalibrationSetup) -> Measurements:
    """Return the measurements in the columns of a file, see ``read_measurements``."""
    q = _joint_positions(table, robot, setup)
    wide = bool(setup.columns.markers or setup.columns.tool)
    seen = seen_in_wide(table, setup) if wide else seen_in_long(table, setup)
    measured = np.asarray(np.isfinite(seen.value).any(axis=1))
    if not measured.any():
        raise CalibrationError(f"{table.path}: no row holds a measured position or distance; fill x, y, z or distance")
    lost = int(np.count_nonzero(~measured))
    seen, q = seen.taken(measured), q[:, seen.row[measured]]
    named, names = _poses(table, setup, q, seen.row)
    pose, poses = _merged(q, named, names)
    notes = [f"{lost} rows without a measured number are left out"] if lost else []
    if len(poses) < len(names):
        notes.append(
            f"{len(names) - len(poses)} of {len(names)} poses have the joint positions of another: they count as its "
            "repeats, not as configurations"
        )
    markers = tuple(dict.fromkeys(name for name in (*seen.marker, *seen.other) if name))
    number = {name: k for k, name in enumerate(markers)} | {"": NOT_MEASURED}
    marker = np.array([number[name] for name in seen.marker])
    load = _loads(table, setup)[seen.row]
    return Measurements(
        joints=tuple(body.joint.name for body in robot.actuated), q=q, kind=seen.kind, pose=pose, marker=marker,
        other=np.array([number[name] for name in seen.other]), load=load, value=seen.value, rotation=seen.rotation,
        repeat=_repeats(table, setup, seen.row, np.column_stack([pose, marker, load]), len(poses) < len(names)),
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
    chain = [number - 1 for number in moving_chain(robot, link)]
    return {robot.actuated[column].joint.name for column in np.flatnonzero(np.any(matrix[chain] != 0, axis=0))}


def _loads(table: NamedColumns, setup: CalibrationSetup) -> np.ndarray:
    """Return the number of the load of every row of the file, -1 for none."""
    column = column_of(table, setup, "load")
    numbers = {load.name: k for k, load in enumerate(setup.loads)} | {"": NOT_MEASURED, "none": NOT_MEASURED}
    said = table.words(column) if column is not None else [setup.columns.load] * table.rows
    for line, word in zip(table.lines, said, strict=True):
        if word not in numbers:
            names = [load.name for load in setup.loads]
            raise CalibrationError(
                f"{table.path}: line {line} names load '{word}'; loads of the set-up: "
                f"{', '.join(names) or 'none, add [loads.' + word + ']'}{nearest_match(word, names)}"
            )
    return np.array([numbers[word] for word in said])


def _poses(
    table: NamedColumns, setup: CalibrationSetup, q: np.ndarray, row: np.ndarray
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the number of every measurement's configuration, and their names, in the order of the file."""
    column = column_of(table, setup, "pose")
    if column is None:
        keys: list = [tuple(values) for values in np.round(q.T / SAME_POSITION).astype(np.int64)]
        first = dict.fromkeys(keys)
        names = tuple(str(number) for number in range(1, len(first) + 1))
    else:
        keys = [table.words(column)[k] for k in row]
        first = dict.fromkeys(keys)
        names = tuple(first)
    number = {key: k for k, key in enumerate(first)}
    pose = np.array([number[key] for key in keys])
    _check_pose_names(table, q, pose, names)
    return pose, names


def _merged(q: np.ndarray, pose: np.ndarray, names: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return numbers and names of configurations, those of equal joint positions under the first of their names."""
    first = q[:, np.unique(pose, return_index=True)[1]]
    keys = [tuple(values) for values in np.round(first.T / SAME_POSITION).astype(np.int64)]
    number = {key: k for k, key in enumerate(dict.fromkeys(keys))}
    kept = {number[key]: name for key, name in zip(reversed(keys), reversed(names), strict=True)}
    return np.array([number[key] for key in keys])[pose], tuple(kept[k] for k in range(len(number)))


def _check_pose_names(table: NamedColumns, q: np.ndarray, pose: np.ndarray, names: Sequence[str]) -> None:
    first = q[:, np.unique(pose, return_index=True)[1]]
    apart = np.abs(q - first[:, pose]).max(axis=0, initial=0.0)
    worst = int(np.argmax(apart))
    if apart[worst] > MOST_SPREAD:
        raise CalibrationError(
            f"{table.path}: pose '{names[pose[worst]]}' has joint positions {apart[worst]:.3g} rad or m apart; give "
            " each configuration a name of its own, or leave the column out"
        )


def _repeats(
    table: NamedColumns, setup: CalibrationSetup, row: np.ndarray, groups: np.ndarray, counted: bool
) -> np.ndarray:
    """Return the numbers of the repeats: as given, or counted among rows of the same pose, marker and load."""
    column = column_of(table, setup, "repeat")
    if column is not None and not counted:
        return table.numbers(column)[row].astype(int)
    count: dict[tuple[int, ...], int] = {}
    repeats = []
    for key in map(tuple, groups):
        repeats.append(count.get(key, 0))
        count[key] = repeats[-1] + 1
    return np.array(repeats)
