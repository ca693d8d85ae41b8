"""Files of one value a line whose rows were written one after the other: n values make a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ...errors import RecordingError
from .table import Block, ReadLog, Table, check_width


def reshaped(table: Table, width: int) -> Table:
    """Return a table of ``width`` columns from a table of one."""
    if len(table.names) != 1:
        raise RecordingError(
            f"{table.path}: has {len(table.names)} columns; reshape = {width} is for files of one value a line"
        )
    check_width(width, table.path)

    def read(wanted: Sequence[int], log: ReadLog) -> Iterator[Block]:
        rest = np.empty(0)
        for block in table.read([0], log):
            _refuse_lost_lines(table.path, block, log)
            values = np.concatenate([rest, block.columns[0]])
            rows = values.size // width
            rest = values[rows * width :]
            matrix = values[: rows * width].reshape(rows, width).T
            if rows:
                yield Block(tuple(np.ascontiguousarray(matrix[k]) for k in wanted))
        if rest.size:
            log.truncated += 1
            log.remarks.append(f"the last row has {rest.size} of {width} values and is left out")

    names = tuple(f"{table.names[0]}[{number}]" for number in range(1, width + 1))
    return replace(table, names=names, read=read)


def _refuse_lost_lines(path: str, block: Block, log: ReadLog) -> None:
    if block.bad is not None and block.bad.any():
        line = (log.garbage_lines + log.truncated_lines)[0]
        raise RecordingError(
            f"{path}: line {line} is no number; in a file of one value a line its loss would shift every joint after it"
        )
