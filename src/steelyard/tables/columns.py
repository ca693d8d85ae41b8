"""Small files as whole columns, numbers and texts side by side: measurements of single positions, targets."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

import numpy as np

from ..errors import TableError, nearest_match
from ..text import from_csv
from .dates import joined_dates
from .table import ReadLog, Table, TextOptions
from .text_layout import WHITESPACE, cells_of, read_head, text_encoding, text_layout

MOST_ROWS = 200_000
"""More rows than this are no measurements of single positions."""
LARGEST_FILE = 200_000_000
LARGEST_NUMBER = 1e15
"""Beyond this a number is no measurement, not even one of an encoder's counts; squares of sums stay finite."""


@final
@dataclass(frozen=True, eq=False)
class NamedColumns:
    """Columns of a file by name.

    Attributes:
        path: What messages call the file.
        cells: Columns of equal length: texts of a text file, or arrays of numbers or texts.
        rows: Length of the columns.
        lines: Line of the file, or number of the entry, of each row.
        decimal_comma: Whether numbers in texts may be written 1,5.
        named: Whether the names are the file's own; else they are c1, c2, ...
        advice: What messages say where a column is missing.
    """

    path: str
    cells: Mapping[str, Sequence[str] | np.ndarray]
    rows: int
    lines: Sequence[int]
    decimal_comma: bool = False
    named: bool = True
    advice: str = ""

    def texts(self, name: str) -> list[str]:
        """Return a column as texts without blanks around them; whole numbers without a point."""
        column = self.column(name)
        if isinstance(column, np.ndarray) and column.dtype.kind == "f":
            return ["" if math.isnan(value) else f"{value:.15g}" for value in column]
        return [str(cell).strip() for cell in column]

    def numbers(self, name: str, may_miss: bool = False, largest: float = LARGEST_NUMBER) -> np.ndarray:
        """Return a column as finite numbers; where they may be missing, an empty cell (or NaN) is NaN."""
        column = self.column(name)
        if isinstance(column, np.ndarray) and column.dtype.kind in "fiub":
            with np.errstate(all="ignore"):
                numbers = column.astype(float)
            empty = np.isnan(numbers)
        else:
            numbers = np.array([_number(cell, self.decimal_comma) for cell in column])
            empty = np.array([not str(cell).strip() for cell in column], dtype=bool)
        wrong = ~(np.abs(numbers) <= largest) & ~(empty & may_miss)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            hint = "leave it empty where nothing was measured" if may_miss else "correct it or leave the row out"
            raise TableError(
                f"{self.path}: column '{name}' holds '{column[row]}' in line {self.lines[row]}; "
                f"a finite number is expected (at most {largest:g}), {hint}"
            )
        return numbers

    def column(self, name: str) -> Sequence[str] | np.ndarray:
        """Return the cells of a column."""
        if name not in self.cells:
            raise TableError(
                f"{self.path}: there is no column '{name}'{self.advice and f' ({self.advice})'}; columns: "
                f"{', '.join(self.cells)}{nearest_match(name, self.cells)}"
            )
        return self.cells[name]

    def renamed(self, names: Sequence[str]) -> NamedColumns:
        """Return the columns under other names."""
        if len(names) != len(self.cells):
            raise TableError(
                f"{self.path}: has {len(self.cells)} columns; {len(names)} are expected ({', '.join(names[:8])} ...)"
            )
        return replace(self, cells=MappingProxyType(dict(zip(names, self.cells.values(), strict=True))))


def columns_of_blocks(table: Table) -> NamedColumns:
    """Return the numbers of a table that is read in blocks, for formats without a reader of texts."""
    blocks = list(table.read(range(len(table.names)), ReadLog())) if table.names else []
    columns = [np.concatenate([block.columns[k] for block in blocks]) for k in range(len(table.names) if blocks else 0)]
    rows = len(columns[0]) if columns else 0
    cells = MappingProxyType(dict(zip(table.names, columns, strict=False)))
    return NamedColumns(table.path, cells, rows, range(1, rows + 1), named=table.named)


def text_columns(path: Path, options: TextOptions) -> NamedColumns:
    """Return the columns of a text file: every line is a row, but for a first one with names."""
    head, line_end = read_head(path)
    layout = text_layout(head, options, str(path), every_line=True)
    data = path.read_bytes()
    encoding, mark = text_encoding(data)
    try:
        text = data[mark:].decode(encoding)
    except UnicodeDecodeError as error:
        raise TableError(f"{path}: is no text in {encoding} ({error.reason}); save it as utf-8 or .npz") from error
    if layout.separator == WHITESPACE:
        text = joined_dates(text.encode()).decode()
    separator, fields = layout.separator.decode("latin-1"), []
    for number, line in enumerate(text.replace("\r\n", "\n").split(line_end.decode()), start=1):
        bare = line.strip()
        if number <= layout.skipped or not bare or bare.startswith(options.comment):
            continue
        cells = [from_csv(cell) for cell in cells_of(line, separator)]
        if len(cells) != layout.width:
            names = ", ".join((layout.names or ())[:8])
            raise TableError(f"{path}: line {number} has {len(cells)} cells; {layout.width} are expected ({names} ...)")
        fields.append((number, cells))
    names = [from_csv(name) for name in layout.names or [f"c{k + 1}" for k in range(layout.width)]]
    twice, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise TableError(
            f"{path}: {'two' if count == 2 else count} columns are called '{twice}'; give each its own name"
        )
    columns = list(zip(*(cells for _, cells in fields), strict=True)) if fields else [()] * layout.width
    cells = MappingProxyType(dict(zip(names, columns, strict=True)))
    comma = separator != ","
    return NamedColumns(str(path), cells, len(fields), [k for k, _ in fields], comma, layout.names is not None)


def _number(cell: Any, decimal_comma: bool) -> float:
    text = str(cell).strip()
    try:
        return math.nan if "_" in text else float(text.replace(",", ".") if decimal_comma else text)
    except ValueError:
        return math.nan
