"""The first rows of logs, and which of several logs are files side by side of one recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ...errors import RecordingError
from ...progress import Progress, silent
from ...tables import ReadLog, Table, TextOptions, open_table
from ...tables.table import expanded_names
from ...text import for_terminal
from .names import role_in_words, words_in

MOST_ROWS = 200_000
"""Rows that are read of each log."""
MOST_NUMBERS = 40_000_000
"""Numbers that are read of each log, where it has many columns."""
LEAST_ROWS = 20
SHORTER = 0.01
"""Files side by side may differ in length by this part."""


@dataclass(frozen=True)
class LogHead:
    """The first rows of a log.

    Attributes:
        path: The file.
        table: Its columns.
        values: Numbers (columns, rows); NaN in rows that are no data.
        whole: Whether these are all its rows.
        reshape: Values that make a row, for files of one value a line.
    """

    path: Path
    table: Table
    values: np.ndarray
    whole: bool
    reshape: int | None = None

    @property
    def layout(self) -> tuple[str, ...] | int:
        """The names of the columns, or their number where the file names none."""
        return self.table.names if self.table.named else len(self.table.names)

    @property
    def rows(self) -> int:
        """Rows read."""
        return self.values.shape[1]


def read_head(path: Path, options: TextOptions, progress: Progress = silent) -> LogHead:
    """Return the first rows of a log; options say which of several recordings in it.

    Raises:
        RecordingError: If there are too few to say anything.
    """
    table = open_table(path, options)
    count = len(table.names)
    most = min(10 * MOST_ROWS if count == 1 else MOST_ROWS, max(MOST_NUMBERS // count, LEAST_ROWS))
    pieces: list[np.ndarray] = []
    rows, whole = 0, True
    for block in table.read(range(count), ReadLog()):
        values = np.array(block.columns, dtype=float)
        if block.bad is not None:
            values[:, block.bad] = np.nan
        pieces.append(values[:, : most - rows])
        rows += pieces[-1].shape[1]
        progress(rows, most)
        if rows >= most:
            whole = False
            break
    if rows < LEAST_ROWS:
        raise RecordingError(f"{path}: has {rows} rows of numbers; at least {LEAST_ROWS} are needed to guess")
    return LogHead(path, table, np.concatenate(pieces, axis=1), whole)


def reshaped_head(head: LogHead, width: int) -> LogHead:
    """Return a log of one value a line as one of ``width`` columns."""
    rows = head.rows // width
    values = head.values[0, : rows * width].reshape(rows, width).T
    table = replace(head.table, names=tuple(expanded_names(head.table.names[0], width)), named=False)
    return LogHead(head.path, table, values, head.whole, width)


def recordings_of(heads: Sequence[LogHead], joints: int) -> list[list[LogHead]]:
    """Return the logs as recordings: each log one, or all of them side by side the parts of one.

    Files are side by side if each holds a single group of columns (or stamps alone), they are equally long, and
    names of files or columns give them different roles.

    Raises:
        RecordingError: If they are parts of several recordings.
    """
    if len(heads) == 1:
        return [[_as_group(heads[0], joints, None)]]
    if not all(_is_single_group(head, joints) for head in heads):
        return [[head] for head in heads]
    shortest = min(head.rows for head in heads)
    parts = [_as_group(head, joints, shortest) for head in heads]
    roles = [_role_of(part) for part in parts]
    if len(set(roles)) == len(roles):
        rows = [part.rows for part in parts]
        if all(part.whole for part in parts) and max(rows) - min(rows) > max(1, SHORTER * max(rows)):
            names = ", ".join(f"{for_terminal(part.path.name)} {part.rows}" for part in parts)
            raise RecordingError(f"files side by side have different numbers of rows ({names}); give those of one run")
        return [[replace(part, values=part.values[:, : min(rows)]) for part in parts]]
    if len(set(roles)) == 1:
        return [[part] for part in parts]
    twice = next(role for role in roles if roles.count(role) > 1)
    names = [for_terminal(part.path.name) for part, role in zip(parts, roles, strict=True) if role == twice]
    raise RecordingError(
        f"{' and '.join(names[:2])} both hold '{twice}', and other files something else: these are parts of several "
        "recordings; run init for the files of one of them, with --out for each"
    )


def _is_single_group(head: LogHead, joints: int) -> bool:
    return len(head.table.names) in (1, joints)


def _as_group(head: LogHead, joints: int, rows: int | None) -> LogHead:
    """Return a file of one value a line as columns, if its length is that of as many joints."""
    if len(head.table.names) != 1 or joints == 1 or head.table.named:
        return head
    if rows is None or head.rows >= joints * rows * (1 - SHORTER):
        return reshaped_head(head, joints) if head.rows % joints == 0 or not head.whole else head
    return head


def _role_of(head: LogHead) -> str:
    """Return what the names of a file say that it holds; the file's name itself if they say nothing."""
    column = role_in_words(words_in(head.table.names[0])) if head.table.named else None
    found = column or role_in_words(words_in(head.path.stem))
    return found.text if found else head.path.stem
