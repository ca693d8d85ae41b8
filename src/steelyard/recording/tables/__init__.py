"""Files and arrays as tables of numbers, one small reader each."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ...errors import RecordingError
from ..setup import TextOptions
from .memory import table_from_arrays as table_from_arrays
from .memory import table_from_frame as table_from_frame
from .npz import open_npz
from .one_value import reshaped
from .parquet import open_parquet
from .table import Block as Block
from .table import ReadLog as ReadLog
from .table import Table as Table
from .text import open_text

READERS: dict[str, Callable[[Path, TextOptions], Table]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".dat", ".log", ".asc"), open_text),
    ".npz": open_npz,
    **dict.fromkeys((".parquet", ".pq"), open_parquet),
}


def open_table(path: Path, options: TextOptions) -> Table:
    """Return a file as a table; its ending says which reader opens it."""
    try:
        if path.is_dir():
            raise RecordingError(f"{path}: is a folder; name a file in it")
        size = os.stat(path).st_size
    except FileNotFoundError as error:
        raise RecordingError(f"{path}: no such file; check the path and its spelling") from error
    except (OSError, ValueError) as error:
        raise RecordingError(f"{path}: cannot be read ({error}); check the path") from error
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise RecordingError(f"{path}: kind of file '{path.suffix}' is not known; allowed: {', '.join(READERS)}")
    if not size:
        raise RecordingError(f"{path}: the file is empty; a recording was expected")
    try:
        table = reader(path, options)
    except PermissionError as error:
        raise RecordingError(f"{path}: permission denied; make the file readable for this user") from error
    return reshaped(table, options.reshape) if options.reshape else table
