"""Text line by line: what does not parse is counted and keeps its place as a bad row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from .table import FEW, Block, ReadLog
from .text_layout import MISSING, WHITESPACE, TextLayout

LINES_AT_ONCE = 100_000


def parsed_carefully(body: bytes, first_line: int, layout: TextLayout, wanted: Sequence[int], log: ReadLog) -> Block:
    """Return the rows of some lines; comments and empty lines are none, garbage and cut lines are bad ones.

    Args:
        body: Whole lines.
        first_line: Number of the first, from 1.
        layout: How lines are cut into fields.
        wanted: Columns to return, from 0.
        log: Where garbage and cut lines are counted.
    """
    lines = body.split(b"\n")
    if not lines[-1]:
        lines.pop()
    blocks = [
        _some_lines(lines[start : start + LINES_AT_ONCE], first_line + start, layout, wanted, log)
        for start in range(0, len(lines), LINES_AT_ONCE)
    ]
    columns = tuple(np.concatenate([block.columns[k] for block in blocks]) for k in range(len(wanted)))
    masks = [np.zeros(block.rows, bool) if block.bad is None else block.bad for block in blocks]
    return Block(columns, np.concatenate(masks) if masks else None)


def _some_lines(lines: list[bytes], first_line: int, layout: TextLayout, wanted: Sequence[int], log: ReadLog) -> Block:
    rows: list[list[bytes]] = []
    numbers: list[int] = []
    widths: list[int] = []
    nothing = [b""] * len(wanted)
    for number, line in enumerate(lines, first_line):
        bare = line.strip()
        if not bare or bare.startswith(layout.comments):
            continue
        fields = bare.split() if layout.separator == WHITESPACE else line.split(layout.separator)
        numbers.append(number)
        widths.append(len(fields))
        rows.append([fields[k] for k in wanted] if len(fields) == layout.width else nothing)
    truncated, garbage = np.array(widths) < layout.width, np.array(widths) > layout.width
    columns = []
    for words in zip(*rows, strict=True) if rows else [()] * len(wanted):
        values, unreadable = _numbers(words, layout)
        columns.append(values)
        garbage |= unreadable
    _count(log, np.array(numbers), garbage, truncated)
    bad = garbage | truncated
    for column in columns:
        column[bad] = np.nan
    return Block(tuple(columns), bad)


def _numbers(words: Sequence[bytes], layout: TextLayout) -> tuple[np.ndarray, np.ndarray]:
    """Return fields as numbers, NaN where one is missing, and which of them are something else."""
    texts = pl.Series([word.decode("utf-8", "replace") for word in words], dtype=pl.String).str.strip_chars(' \t\r"')
    if layout.decimal_comma:
        texts = texts.str.replace_all(",", ".", literal=True)
    values = texts.cast(pl.Float64, strict=False)
    missing = texts.str.to_lowercase().is_in(list(MISSING))
    return values.fill_null(float("nan")).to_numpy().copy(), (values.is_null() & ~missing).to_numpy()


def _count(log: ReadLog, numbers: np.ndarray, garbage: np.ndarray, truncated: np.ndarray) -> None:
    log.garbage += int(garbage.sum())
    log.truncated += int(truncated.sum())
    log.garbage_lines += [int(n) for n in numbers[garbage][: FEW - len(log.garbage_lines)]]
    log.truncated_lines += [int(n) for n in numbers[truncated][: FEW - len(log.truncated_lines)]]
