"""Files and arrays as tables of numbers, one small reader each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ...errors import RecordingError
from ...files import check_file
from ..setup import TextOptions
from .memory import table_from_arrays as table_from_arrays
from .memory import table_from_frame as table_from_frame
from .npz import open_npz
from .table import Block as Block
from .table import ReadLog as ReadLog
from .table import Table as Table
from .table import check_names, reshaped


def _open_text(path: Path, options: TextOptions) -> Table:
    from .text import open_text  # imported when used: it needs polars, which takes as long as all other readers

    return open_text(path, options)


def _open_parquet(path: Path, options: TextOptions) -> Table:
    from .parquet import open_parquet  # imported when used, like open_text

    return open_parquet(path, options)


READERS: dict[str, Callable[[Path, TextOptions], Table]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".dat", ".log", ".asc"), _open_text),
    ".npz": open_npz,
    **dict.fromkeys((".parquet", ".pq"), _open_parquet),
}


def open_table(path: Path, options: TextOptions) -> Table:
    """Return a file as a table; its ending says which reader opens it."""
    reader = READERS.get(path.suffix.lower())
    try:
        check_file(path, "a recording", RecordingError)
        if reader is None:
            raise RecordingError(f"kind of file '{path.suffix}' is not known; allowed: {', '.join(READERS)}")
        if not path.stat().st_size:
            raise RecordingError("the file is empty; a recording was expected")
    except RecordingError as error:
        raise RecordingError(f"{path}: {error}") from error
    try:
        table = reader(path, options)
    except PermissionError as error:
        raise RecordingError(f"{path}: permission denied; make the file readable for this user") from error
    table = reshaped(table, options.reshape) if options.reshape else table
    check_names(table)
    return table
