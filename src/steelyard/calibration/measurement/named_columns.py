"""Small files as named columns: text (commas, semicolons, tabs or blanks) and NPZ, words and numbers side by side."""

from __future__ import annotations

import csv
import math
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

import numpy as np

from ...archive import ArchiveError, read_arrays
from ...errors import CalibrationError, nearest_match
from ...files import check_file
from ...text import from_csv

MOST_ROWS = 200_000
"""More rows than this are no measurements of single positions."""
LARGEST_FILE = 200_000_000
MOST_COLUMNS = 10_000
LARGEST_NUMBER = 1e15
"""Beyond this a number is no measurement, not even one of an encoder's counts; squares of sums stay finite."""
SEPARATORS = (",", ";", "\t")
TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".dat", ".xyz", ".asc")


@final
@dataclass(frozen=True, eq=False)
class NamedColumns:
    """Columns of a file by name.

    Attributes:
        path: What messages call the file.
        cells: Columns of equal length: words of a text file, or arrays of numbers or words.
        rows: Length of the columns.
        lines: Line of the file, or number of the entry, of each row.
        decimal_comma: Whether numbers may be written 1,5.
    """

    path: str
    cells: Mapping[str, Sequence[str] | np.ndarray]
    rows: int
    lines: Sequence[int]
    decimal_comma: bool = False

    def words(self, name: str) -> list[str]:
        """Return a column as words without blanks around them; whole numbers without a point."""
        column = self.column(name)
        if isinstance(column, np.ndarray) and column.dtype.kind == "f":
            return ["" if math.isnan(value) else f"{value:.15g}" for value in column]
        return [str(cell).strip() for cell in column]

    def numbers(self, name: str, may_miss: bool = False) -> np.ndarray:
        """Return a column as finite numbers; where they may be missing, an empty cell (NPZ: NaN) is NaN."""
        column = self.column(name)
        if isinstance(column, np.ndarray) and column.dtype.kind in "fiub":
            with np.errstate(all="ignore"):
                numbers = column.astype(float)
            empty = np.isnan(numbers)
        else:
            numbers = np.array([_number(cell, self.decimal_comma) for cell in column])
            empty = np.array([not str(cell).strip() for cell in column], dtype=bool)
        wrong = ~(np.abs(numbers) <= LARGEST_NUMBER) & ~(empty & may_miss)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            hint = "leave it empty where nothing was measured" if may_miss else "correct it or leave the row out"
            raise CalibrationError(
                f"{self.path}: column '{name}' holds '{column[row]}' in line {self.lines[row]}; "
                f"a finite number is expected (at most {LARGEST_NUMBER:g}), {hint}"
            )
        return numbers

    def column(self, name: str) -> Sequence[str] | np.ndarray:
        """Return the cells of a column."""
        if name not in self.cells:
            raise CalibrationError(
                f"{self.path}: there is no column '{name}' (joints may be named otherwise under [joints]); columns: "
                f"{', '.join(self.cells)}"
                f"{nearest_match(name, self.cells)}"
            )
        return self.cells[name]


def open_columns(path: str | os.PathLike[str], names: Sequence[str] = ()) -> NamedColumns:
    """Return the columns of a file; its ending says how it is read.

    Args:
        path: A text file, or NumPy's ``.npz`` with an array for each column, or of columns (``q``).
        names: Names of the columns of a text file without a header; c1, c2, ... if not given.
    """
    file = Path(path)
    reader: Callable[[Path, Sequence[str]], NamedColumns]
    if file.suffix.lower() == ".npz":
        reader = _open_npz
    elif file.suffix.lower() in TEXT_ENDINGS:
        reader = _open_text
    else:
        allowed = ", ".join((*TEXT_ENDINGS, ".npz"))
        raise CalibrationError(f"{path}: kind of file '{file.suffix}' is not known; allowed: {allowed}")
    try:
        check_file(file, "the measurements", CalibrationError, LARGEST_FILE)
    except CalibrationError as error:
        raise CalibrationError(f"{path}: {error}") from error
    try:
        found = reader(file, names)
    except OSError as error:
        raise CalibrationError(f"{path}: cannot be read ({error.strerror or error}); check the path") from error
    if not found.rows:
        raise CalibrationError(f"{path}: there are no measurements in it; a row for each marker and repeat is expected")
    if found.rows > MOST_ROWS:
        raise CalibrationError(
            f"{path}: has {found.rows} rows; at most {MOST_ROWS} are allowed, average or thin them out"
        )
    return found


def _open_text(file: Path, names: Sequence[str]) -> NamedColumns:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise CalibrationError(f"{file}: is no text in utf-8 ({error.reason}); save it as utf-8 or .npz") from error
    lines = [
        (k, line) for k, line in enumerate(text.splitlines(), 1) if line.strip() and not line.lstrip().startswith("#")
    ]
    if not lines:
        return NamedColumns(str(file), {}, 0, ())
    separator = next((mark for mark in SEPARATORS if mark in lines[0][1]), None)
    try:
        fields = [(k, _fields(line, separator)) for k, line in lines]
    except csv.Error as error:
        raise CalibrationError(f"{file}: is no table of measurements ({error}); check quotes and separators") from error
    comma = separator != ","
    header = any(not _is_number(cell, comma) and cell.strip() for cell in fields[0][1])
    width = len(fields[0][1])
    titles = (
        [cell.strip() for cell in fields.pop(0)[1]] if header else list(names) or [f"c{k + 1}" for k in range(width)]
    )
    _check_table(file, titles, fields)
    columns = list(zip(*(cells for _, cells in fields), strict=True)) if fields else [()] * width
    cells = dict(zip(titles, columns, strict=True))
    return NamedColumns(str(file), MappingProxyType(cells), len(fields), [k for k, _ in fields], comma)


def _fields(line: str, separator: str | None) -> list[str]:
    if separator is None:
        return line.split()
    return [from_csv(cell) for cell in next(csv.reader([line], delimiter=separator, skipinitialspace=True))]


def _check_table(file: Path, titles: Sequence[str], fields: Sequence[tuple[int, list[str]]]) -> None:
    twice, count = next(iter(Counter(titles).most_common(1)), ("", 0))
    if count > 1:
        many = "two" if count == 2 else f"{count}"
        raise CalibrationError(f"{file}: {many} columns are called '{twice}'; give each its own name")
    for line, cells in fields:
        if len(cells) != len(titles):
            raise CalibrationError(
                f"{file}: line {line} has {len(cells)} cells; {len(titles)} are expected ({', '.join(titles[:8])} ...)"
            )


def _number(cell: Any, decimal_comma: bool) -> float:
    word = str(cell).strip()
    try:
        return math.nan if "_" in word else float(word.replace(",", ".") if decimal_comma else word)
    except ValueError:
        return math.nan


def _is_number(cell: str, decimal_comma: bool) -> bool:
    return not math.isnan(_number(cell, decimal_comma)) or cell.strip().lower() == "nan"


def _open_npz(file: Path, names: Sequence[str]) -> NamedColumns:
    try:
        arrays = read_arrays(file)
    except ArchiveError as error:
        raise CalibrationError(
            f"{file}: is no readable .npz of plain arrays ({error}); write it with numpy.savez"
        ) from error
    rows = max((len(array) for array in arrays.values() if array.ndim), default=0)
    cells: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        if not array.ndim or len(array) != rows:
            raise CalibrationError(
                f"{file}: '{name}' has shape {array.shape}; one entry or one row is expected for each of {rows} rows"
            )
        if rows and array.size // rows > MOST_COLUMNS:
            raise CalibrationError(f"{file}: '{name}' has shape {array.shape}; at most {MOST_COLUMNS} columns are read")
        flat = array.reshape(rows, -1) if rows else array.reshape(0, 0)
        cells |= {name: array} if array.ndim == 1 else {f"{name}[{k + 1}]": flat[:, k] for k in range(flat.shape[1])}
    return NamedColumns(str(file), MappingProxyType(cells), rows, range(1, rows + 1))
