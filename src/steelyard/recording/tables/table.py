"""A table: named columns of numbers read in blocks, whatever file they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

FEW = 5
"""Places of faults that are kept."""


@dataclass(frozen=True)
class Block:
    """Some rows of a table.

    Attributes:
        columns: The columns asked for, each (rows,).
        bad: Rows that are no data (garbage or cut lines), (rows,); None if there are none. They keep their place, so
            that files side by side stay in step.
    """

    columns: tuple[np.ndarray, ...]
    bad: np.ndarray | None = None

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.columns[0].size if self.columns else 0

    def part(self, first: int, last: int) -> Block:
        """Return rows ``first`` to ``last`` (not included), without copying."""
        bad = None if self.bad is None else self.bad[first:last]
        return Block(tuple(column[first:last] for column in self.columns), bad)


@dataclass
class ReadLog:
    """What happened while a table was read; filled in as it goes.

    Attributes:
        garbage: Lines that do not parse.
        truncated: Lines with too few values.
        garbage_lines: Numbers of the first few, from 1.
        truncated_lines: Numbers of the first few, from 1.
        remarks: Other things worth a finding: a last line without an end.
        bytes_done: How far the reading came.
    """

    garbage: int = 0
    truncated: int = 0
    garbage_lines: list[int] = field(default_factory=list)
    truncated_lines: list[int] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    bytes_done: int = 0


@dataclass(frozen=True)
class Table:
    """Columns of numbers, ready to be read.

    Attributes:
        path: The file, or a word for data in memory.
        names: Names of the columns; ``column_1`` and so on if the file names none.
        named: Whether the names are the file's own.
        read: Given column numbers (from 0) and a log to fill, returns the blocks.
        described: What the file says of itself (see ``write_recording``).
        on_disk: Whether ``path`` is a file with a hash and a size.
    """

    path: str
    names: tuple[str, ...]
    named: bool
    read: Callable[[Sequence[int], ReadLog], Iterator[Block]]
    described: Mapping[str, Any] = field(default_factory=dict)
    on_disk: bool = True
