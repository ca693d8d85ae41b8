"""What the rows of a file measure: a marker's position, a pose, a distance; long and wide files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast, final

import numpy as np

from ...errors import CalibrationError, nearest_match
from .named_columns import NamedColumns
from .orientation import EULER, MATRIX, QUATERNION, measured_rotations
from .setup import KINDS, LENGTHS, TURNS, CalibrationSetup, Kind

FIRST_MARKER = "marker_1"
"""Name of the only marker of a file that names none."""


@final
@dataclass(frozen=True, eq=False)
class Seen:
    """What was seen (R): row of the file, names of the markers, and what was measured."""

    row: np.ndarray
    marker: tuple[str, ...]
    other: tuple[str, ...]
    kind: tuple[Kind, ...]
    value: np.ndarray
    rotation: np.ndarray

    def taken(self, chosen: np.ndarray) -> Seen:
        """Return those of a mask (R,)."""
        places = np.flatnonzero(chosen)
        marker, other, kind = (tuple(words[k] for k in places) for words in (self.marker, self.other, self.kind))
        return Seen(
            self.row[places], marker, other, cast(tuple[Kind, ...], kind), self.value[places], self.rotation[places]
        )


def column_of(table: NamedColumns, setup: CalibrationSetup, role: str) -> str | None:
    """Return the column that has a role, or None; a declared one must be there."""
    declared = setup.columns.renamed.get(role)
    if declared is not None:
        table.column(declared)
        return declared
    return role if role in table.cells else None


def seen_in_wide(table: NamedColumns, setup: CalibrationSetup) -> Seen:
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
    return Seen(
        np.repeat(np.arange(rows), len(parts)), names, ("",) * len(names), kinds,
        np.concatenate([part[2] for part in parts])[order], np.concatenate([part[3] for part in parts])[order],
    )  # fmt: skip


def seen_in_long(table: NamedColumns, setup: CalibrationSetup) -> Seen:
    """Return what a file with a row for each marker and repeat measures."""
    found = {role: column_of(table, setup, role) for role in ("x", "y", "z", "distance", "to", "marker", "kind")}
    if not any(found[role] for role in ("x", "y", "z", "distance")):
        raise CalibrationError(
            f"{table.path}: there is no column x, y, z or distance; columns: {', '.join(table.cells)}; name "
            "those of the markers in the set-up, [markers.NAME] columns = [...]"
        )
    value = np.full((table.rows, 3), np.nan)
    for axis, role in enumerate(("x", "y", "z")):
        if (column := found[role]) is not None:
            value[:, axis] = table.numbers(column, may_miss=True)
    distance = np.full(table.rows, np.nan) if found["distance"] is None else table.numbers(found["distance"], True)
    rotation = _long_rotations(table, setup)
    oriented = np.isfinite(rotation.reshape(table.rows, 9)).all(axis=1)
    kinds = _kinds(table, setup, found["kind"], np.isfinite(distance), np.asarray(oriented))
    apart = np.array([kind == "distance" for kind in kinds])
    value[apart] = np.column_stack([distance, np.full((table.rows, 2), np.nan)])[apart]
    marker = _marker_names(table, setup, found["marker"], kinds)
    other = _second_markers(table, found["to"], kinds)
    scale = LENGTHS[setup.columns.position]
    return Seen(np.arange(table.rows), marker, other, kinds, value * scale, rotation)


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


def _kinds(
    table: NamedColumns, setup: CalibrationSetup, column: str | None, apart: np.ndarray, oriented: np.ndarray
) -> tuple[Kind, ...]:
    """Return what each row measures: as it says, as the set-up says, or by what is filled in."""
    said = table.words(column) if column is not None else [""] * table.rows
    by_content = np.where(apart, "distance", np.where(oriented, "pose", "position"))
    kinds = [word or setup.columns.kind or str(kind) for word, kind in zip(said, by_content, strict=True)]
    for line, kind in zip(table.lines, kinds, strict=True):
        if kind not in KINDS:
            raise CalibrationError(
                f"{table.path}: line {line} measures '{kind}'; allowed: {', '.join(KINDS)}{nearest_match(kind, KINDS)}"
            )
    return tuple(cast(Kind, kind) for kind in kinds)


def _marker_names(
    table: NamedColumns, setup: CalibrationSetup, column: str | None, kinds: Sequence[Kind]
) -> tuple[str, ...]:
    only = setup.markers[0].name if len(setup.markers) == 1 else FIRST_MARKER
    said = table.words(column) if column is not None else [only] * table.rows
    names = tuple("" if kind == "pose" else word or only for word, kind in zip(said, kinds, strict=True))
    declared = [marker.name for marker in setup.markers]
    for line, name in zip(table.lines, names, strict=True):
        if declared and name and name not in declared:
            raise CalibrationError(
                f"{table.path}: line {line} names marker '{name}'; markers of the set-up: {', '.join(declared)}"
                f"{nearest_match(name, declared)}"
            )
    return names


def _second_markers(table: NamedColumns, column: str | None, kinds: Sequence[Kind]) -> tuple[str, ...]:
    said = table.words(column) if column is not None else [""] * table.rows
    for line, word, kind in zip(table.lines, said, kinds, strict=True):
        if kind == "distance" and not word:
            raise CalibrationError(
                f"{table.path}: line {line} measures a distance; name the second marker in column 'to'"
            )
    return tuple(word if kind == "distance" else "" for word, kind in zip(said, kinds, strict=True))
