"""Files and arrays as tables, for logs and for measurements: one small reader for each format.

A format is registered once in ``FORMATS``. Logs are read in blocks of numbers by :func:`open_table`, small files as
whole columns of numbers and texts by :func:`read_columns`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from ..errors import TableError
from ..files import cannot_read, check_file
from .columns import LARGEST_FILE, MOST_ROWS, columns_of_blocks, text_columns
from .columns import NamedColumns as NamedColumns
from .npz import npz_columns, open_npz
from .table import Block as Block
from .table import ReadLog as ReadLog
from .table import Table as Table
from .table import TextOptions as TextOptions
from .table import check_names, reshaped
from .table import table_from_arrays as table_from_arrays
from .table import table_from_frame as table_from_frame

Content = TypeVar("Content")


def _open_text(path: Path, options: TextOptions) -> Table:
    from .text import open_text  # imported when used: it needs polars, which takes as long as all other readers

    return open_text(path, options)


def _open_parquet(path: Path, options: TextOptions) -> Table:
    from .parquet import open_parquet  # imported when used, like open_text

    return open_parquet(path, options)


def _parquet_columns(path: Path, options: TextOptions) -> NamedColumns:
    from .parquet import parquet_columns  # imported when used, like open_text

    return parquet_columns(path)


def _open_ros(path: Path, options: TextOptions) -> Table:
    from .ros import open_ros  # imported when used, like open_text

    return open_ros(path, options)


def _open_hdf5(path: Path, options: TextOptions) -> Table:
    from .hdf5 import open_hdf5  # imported when used: few logs are of this kind

    return open_hdf5(path, options)


def _hdf5_columns(path: Path, options: TextOptions) -> NamedColumns:
    from .hdf5 import hdf5_columns  # imported when used, like open_hdf5

    return hdf5_columns(path, options)


def _open_mat(path: Path, options: TextOptions) -> Table:
    from .mat import open_mat  # imported when used, like open_hdf5

    return open_mat(path, options)


def _mat_columns(path: Path, options: TextOptions) -> NamedColumns:
    from .mat import mat_columns  # imported when used, like open_hdf5

    return mat_columns(path, options)


def _open_lerobot(path: Path, options: TextOptions) -> Table:
    from .lerobot import open_lerobot  # imported when used, like open_text

    return open_lerobot(path, options)


@dataclass(frozen=True)
class Format:
    """How a kind of file is read.

    A reader marks rows that are no data in ``Block.bad`` and does not drop them, counts them in ``ReadLog`` and says
    there how many bytes it has read. Names and number of columns are checked for all formats.

    Attributes:
        open: Returns a table that is read in blocks of numbers.
        columns: Returns whole columns of numbers and texts, which measurements have (names of markers); None: the
            numbers of ``open``.
    """

    open: Callable[[Path, TextOptions], Table]
    columns: Callable[[Path, TextOptions], NamedColumns] | None = None


FORMATS: dict[str, Format] = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".dat", ".log", ".asc", ".xyz"), Format(_open_text, text_columns)),
    ".npz": Format(open_npz, npz_columns),
    **dict.fromkeys((".parquet", ".pq"), Format(_open_parquet, _parquet_columns)),
    **dict.fromkeys((".bag", ".db3", ".mcap"), Format(_open_ros)),
    **dict.fromkeys((".h5", ".hdf5"), Format(_open_hdf5, _hdf5_columns)),
    ".mat": Format(_open_mat, _mat_columns),
}


FOLDERS: dict[str, Format] = {"metadata.yaml": Format(_open_ros), "meta/info.json": Format(_open_lerobot)}
"""Formats that are a folder, by the path of a file that tells it from others."""


def open_table(path: Path, options: TextOptions) -> Table:
    """Return a file as a table of numbers; its ending says which reader opens it."""
    table = _read(path, "a recording", None, lambda kind: kind.open(path, options))
    table = reshaped(table, options.reshape) if options.reshape else table
    check_names(table)
    return table


def read_columns(
    path: str | os.PathLike[str], names: Sequence[str] = (), what: str = "measurements", advice: str = ""
) -> NamedColumns:
    """Return the columns of a small file, numbers and texts; its ending says how it is read.

    Args:
        path: A text file; ``.npz`` with an array for each column, or of columns (``q``); or another of ``FORMATS``.
        names: Names of the columns of a text file without a header; c1, c2, ... if not given.
        what: What the file should hold.
        advice: What messages say where a column is missing.
    """
    file, options = Path(path), TextOptions(comment=("#",))
    found = _read(
        file, what, LARGEST_FILE,
        lambda kind: kind.columns(file, options) if kind.columns else columns_of_blocks(kind.open(file, options)),
    )  # fmt: skip
    if not found.rows:
        raise TableError(f"{path}: there are no {what} in it; a row for each is expected")
    if found.rows > MOST_ROWS:
        raise TableError(f"{path}: has {found.rows} rows; at most {MOST_ROWS} are allowed, average or thin them out")
    return replace(found.renamed(names) if names and not found.named else found, advice=advice)


def _read(path: Path, what: str, largest: int | None, read: Callable[[Format], Content]) -> Content:
    try:
        kind = _format_of(path, what, largest)
    except TableError as error:
        raise TableError(f"{path}: {error}") from error
    try:
        return read(kind)
    except OSError as error:
        raise TableError(f"{path}: {cannot_read(error)}") from error


def _format_of(path: Path, what: str, largest: int | None) -> Format:
    """Return how a file, or a folder that is one log, is read."""
    if os.path.isdir(path):  # never raises, whatever the path
        for marker, kind in FOLDERS.items():
            if (path / marker).is_file():
                return kind
        known = f"; folders that are a log have {' or '.join(FOLDERS)} in them" if FOLDERS else ""
        raise TableError(f"is a folder, not a file; name the file of {what}{known}")
    check_file(path, what, TableError, largest)
    kind = FORMATS.get(path.suffix.lower())
    if kind is None:
        raise TableError(f"kind of file '{path.suffix}' is not known; allowed: {', '.join(FORMATS)}")
    if not path.stat().st_size:
        raise TableError(f"the file is empty; expected: {what}")
    return kind
