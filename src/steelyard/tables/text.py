"""Text files of numbers: cut at line ends into pieces, each parsed by polars or, where that fails, line by line.

Lines that do not parse are counted and keep their place as bad rows.
"""

from __future__ import annotations

import os
from codecs import getincrementaldecoder
from collections.abc import Iterator, Sequence
from io import FileIO
from pathlib import Path

import numpy as np
import polars as pl

from ..errors import TableError
from .dates import AMBIGUOUS, joined_dates, seconds_of
from .table import FEW, Block, ReadLog, Table, TextOptions
from .text_layout import (
    MISSING,
    WHITESPACE,
    TextLayout,
    fields_of,
    read_head,
    text_encoding,
    text_layout,
    unified,
    unique_names,
)

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
        if b'"' in line:
            fields = fields_of(line, layout.separator)
        numbers.append(number)
        widths.append(len(fields))
        rows.append([fields[k] for k in wanted] if len(fields) == layout.width else nothing)
    truncated, garbage = np.array(widths) < layout.width, np.array(widths) > layout.width
    columns = []
    for column, texts in zip(wanted, zip(*rows, strict=True) if rows else [()] * len(wanted), strict=True):
        values, unreadable = _numbers(texts, layout, layout.dates.get(column))
        columns.append(values)
        garbage |= unreadable
    _count(log, np.array(numbers), garbage, truncated)
    bad = garbage | truncated
    for column in columns:
        column[bad] = np.nan
    return Block(tuple(columns), bad)


def _numbers(fields: Sequence[bytes], layout: TextLayout, order: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Return fields as numbers, NaN where one is missing, and which of them are something else."""
    decoded = [field.decode("utf-8", "replace") for field in fields]
    texts = pl.Series(decoded, dtype=pl.String).str.strip_chars(' \t\r"')
    if layout.decimal_comma:
        texts = texts.str.replace_all(",", ".", literal=True)
    values = seconds_of(texts, order) if order else texts.cast(pl.Float64, strict=False)
    missing = texts.str.to_lowercase().is_in(list(MISSING))
    return values.fill_null(float("nan")).to_numpy().copy(), (values.is_null() & ~missing).to_numpy()


def _count(log: ReadLog, numbers: np.ndarray, garbage: np.ndarray, truncated: np.ndarray) -> None:
    log.garbage += int(garbage.sum())
    log.truncated += int(truncated.sum())
    log.garbage_lines += [int(n) for n in numbers[garbage][: FEW - len(log.garbage_lines)]]
    log.truncated_lines += [int(n) for n in numbers[truncated][: FEW - len(log.truncated_lines)]]


PIECE_BYTES = 1 << 24
_LOOK_BACK = 1 << 14


def open_text(path: Path, options: TextOptions) -> Table:
    """Return a text file as a table. Its layout is found from its first lines where it is not declared."""
    head, line_end = read_head(path)
    layout = text_layout(head, options, str(path))
    names = unique_names(layout.names or [""] * layout.width)
    if len(names) != layout.width:
        raise TableError(
            f"{path}: the header names {len(names)} columns but the lines have {layout.width}; mend the header, or "
            "leave it out with skip_lines = 1"
        )

    def read(wanted: Sequence[int], log: ReadLog) -> Iterator[Block]:
        for column in wanted:
            if layout.dates.get(column) == AMBIGUOUS:
                raise TableError(
                    f"{path}: the dates of column '{names[column]}' may have the day or the month first; write them as "
                    "2024-05-01 12:00:00.123, or leave the column out and give a rate"
                )
        return _blocks(path, layout, line_end, wanted, log)

    return Table(str(path), names, layout.names is not None, read, layout.described)


def _pieces(path: Path, line_end: bytes, log: ReadLog) -> Iterator[bytes]:
    """Yield the file in pieces of whole lines. Where to cut is looked up first, so that no byte is copied twice."""
    with path.open("rb", buffering=0) as file:
        encoding, first = text_encoding(file.read(4))
        size = os.fstat(file.fileno()).st_size
        if encoding != "utf-8":
            yield from _recoded_pieces(path, file, encoding, line_end, log)
            return
        while first < size:
            last = _cut(file, first, min(first + PIECE_BYTES, size), size, line_end)
            if last is None:
                raise TableError(_long_line(path))
            file.seek(first)
            piece = file.read(last - first)
            log.bytes_done, first = last, last
            yield unified(piece, line_end)


def _recoded_pieces(path: Path, file: FileIO, encoding: str, line_end: bytes, log: ReadLog) -> Iterator[bytes]:
    """Yield a file in another encoding than UTF-8 in pieces of whole lines in UTF-8."""
    decoder = getincrementaldecoder(encoding)("replace")
    file.seek(2)  # behind the byte order mark
    rest, data = b"", b"-"
    while data:
        data = file.read(PIECE_BYTES)
        rest += decoder.decode(data, final=not data).encode()
        cut = rest.rfind(line_end) + 1 if data else len(rest)
        if not cut and len(rest) > PIECE_BYTES:
            raise TableError(_long_line(path))
        log.bytes_done = file.tell()
        if cut:
            yield unified(rest[:cut], line_end)
        rest = rest[cut:]


def _long_line(path: Path) -> str:
    return f"{path}: a line is longer than {PIECE_BYTES >> 20} MB; is this a text log?"


def _cut(file: FileIO, first: int, last: int, size: int, line_end: bytes) -> int | None:
    """Return where the last whole line before ``last`` ends, None if none ends after ``first``."""
    if last == size:
        return size
    reach = _LOOK_BACK
    while True:
        start = max(first, last - reach)
        file.seek(start)
        place = file.read(last - start).rfind(line_end)
        if place >= 0:
            return start + place + 1
        if start == first:
            return None
        reach *= 4


def _blocks(path: Path, layout: TextLayout, line_end: bytes, wanted: Sequence[int], log: ReadLog) -> Iterator[Block]:
    log.garbage += len(layout.garbage)
    log.garbage_lines += layout.garbage[:FEW]
    line, above = 1, layout.skipped
    for piece in _pieces(path, line_end, log):
        piece = joined_dates(piece) if layout.dates else piece
        body, skipped = _without_lines(piece, above)
        line, above = line + skipped, above - skipped
        if not body:
            continue
        columns = _parsed(body, layout, wanted)
        if columns is not None:
            yield Block(columns)
            line += columns[0].size
        else:
            block = parsed_carefully(body, line, layout, wanted, log)
            if block.rows:
                yield block
            line += body.count(b"\n") + (not body.endswith(b"\n"))
        if not piece.endswith(b"\n"):
            log.remarks.append(f"line {line - 1} is the last and has no line end: its last number may be cut")


def _without_lines(piece: bytes, count: int) -> tuple[bytes, int]:
    """Return the piece without its first lines, and how many of them there were."""
    position = 0
    for done in range(count):
        place = piece.find(b"\n", position)
        if place < 0:
            return b"", done + (position < len(piece))
        position = place + 1
    return (piece[position:] if position else piece), count


def _parsed(body: bytes, layout: TextLayout, wanted: Sequence[int]) -> tuple[np.ndarray, ...] | None:
    """Return the columns, a row for every line, or None if any line is not as it should be (empty ones too)."""
    body = _plain(body, layout)
    # The last column shows whether a line is complete, so it is read even if it is not wanted.
    guard = [] if layout.open_end or layout.width - 1 in wanted else [layout.width - 1]
    chosen = sorted({*wanted, *guard})
    numeric = set(wanted) - set(layout.dates)
    schema = {f"{k}": pl.Float64 if k in numeric else pl.String for k in range(layout.width)}
    try:
        separator = layout.separator.decode("latin-1")
        frame = pl.read_csv(body, has_header=False, separator=separator, schema=schema, quote_char=None, columns=chosen)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    frame = frame.with_columns(
        seconds_of(frame[f"{k}"], order).alias(f"{k}") for k, order in layout.dates.items() if k in wanted
    )
    if not frame.height or any(series.null_count() for series in frame.iter_columns()):
        return None
    return tuple(np.ascontiguousarray(frame[f"{k}"].to_numpy()) for k in wanted)


def _plain(body: bytes, layout: TextLayout) -> bytes:
    """Return the text with one separator between numbers and a point as decimal sign."""
    if layout.decimal_comma:
        body = body.replace(b",", b".")
    if not layout.padded:
        return body
    if layout.separator != WHITESPACE:
        return body.translate(None, b" \t" if layout.separator != b"\t" else b" ")
    body = body.replace(b"\t", b" ")
    while b"  " in body:
        body = body.replace(b"  ", b" ")
    return body.replace(b"\n ", b"\n").replace(b" \n", b"\n").replace(b" \r\n", b"\n").strip(b" ")
