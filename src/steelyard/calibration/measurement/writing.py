"""Measurements as a file: a row for each marker and repeat, SI units, all digits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...errors import CalibrationError
from ...files import write_aside
from ...text import csv_text
from .measurements import MATRIX, NOT_MEASURED, Measurements

_POSITION = ("x", "y", "z")
_WORDS = ("kind", "pose", "marker", "to", "load", "repeat")


def write_measurements(path: Path, measurements: Measurements, loads: Sequence[str] = ()) -> None:
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
    titles = [*_WORDS, *measurements.joints, *_POSITION, "distance", *MATRIX]
    _check(measurements, loads, titles)
    apart = measurements.of_kind("distance")
    value = np.where(apart[:, None], np.nan, measurements.value)
    distance = np.where(apart, measurements.value[:, 0], np.nan)
    numbers = np.column_stack([measurements.q.T, value, distance, measurements.rotation.reshape(-1, len(MATRIX))])
    rows = [[*words, *map(_cell, cells)] for words, cells in zip(_words(measurements, loads), numbers, strict=True)]
    # Columns that no row fills are left out; those of joints and positions say what the file is.
    needed = {*measurements.joints, *_POSITION}
    columns = [k for k, title in enumerate(titles) if title in needed or any(row[k] for row in rows)]
    write_aside(path, csv_text([row[k] for k in columns] for row in (titles, *rows)))


def _words(measurements: Measurements, loads: Sequence[str]) -> list[list[str]]:
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


def _cell(number: float) -> str:
    return "" if math.isnan(number) else repr(float(number))


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
