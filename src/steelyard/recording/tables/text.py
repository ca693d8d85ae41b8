"""Text files of numbers: cut at line ends into pieces, each parsed by polars or, where that fails, line by line."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from io import FileIO
from pathlib import Path

import numpy as np
import polars as pl

from ...errors import RecordingError
from ..setup import TextOptions
from .table import FEW, Block, ReadLog, Table
from .text_careful import parsed_carefully
from .text_layout import HEAD_BYTES, WHITESPACE, TextLayout, text_layout

PIECE_BYTES = 1 << 24
_LOOK_BACK = 1 << 14
_BYTE_ORDER_MARKS = ((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"))
_UTF8_MARK = b"\xef\xbb\xbf"


def open_text(path: Path, options: TextOptions) -> Table:
    """Return a text file as a table. Its layout is found from its first lines where it is not declared."""
    head, line_end = _head(path)
    layout = text_layout(head, options, str(path))
    names = layout.names or tuple(f"column_{number}" for number in range(1, layout.width + 1))
    if len(names) != layout.width:
        raise RecordingError(
            f"{path}: the header names {len(names)} columns but the lines have {layout.width}; mend the header, or "
            "leave it out with skip_lines = 1"
        )

    def read(wanted: Sequence[int], log: ReadLog) -> Iterator[Block]:
        return _blocks(path, layout, line_end, wanted, log)

    return Table(str(path), names, layout.names is not None, read, layout.described)


def _head(path: Path) -> tuple[bytes, bytes]:
    """Return the first whole lines, ended by line feeds, and the byte that ends lines in the file."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    for mark, encoding in _BYTE_ORDER_MARKS:
        if head.startswith(mark):
            raise RecordingError(f"{path}: is {encoding} text; save it as UTF-8")
    if head.count(b"\0") * 10 > len(head):
        raise RecordingError(f"{path}: is no text (it has zero bytes); give a text, .npz or .parquet file")
    line_end = b"\r" if b"\r" in head and b"\n" not in head else b"\n"
    if len(head) == HEAD_BYTES:
        head = head[: head.rfind(line_end) + 1]
        if not head:
            raise RecordingError(f"{path}: its first line is longer than {HEAD_BYTES} bytes; is this a text log?")
    return _unified(head.removeprefix(_UTF8_MARK), line_end), line_end


def _pieces(path: Path, line_end: bytes, log: ReadLog) -> Iterator[bytes]:
    """Yield the file in pieces of whole lines. Where to cut is looked up first, so that no byte is copied twice."""
    with path.open("rb", buffering=0) as file:
        first = len(_UTF8_MARK) if file.read(len(_UTF8_MARK)) == _UTF8_MARK else 0
        size = os.fstat(file.fileno()).st_size
        while first < size:
            last = _cut(file, first, min(first + PIECE_BYTES, size), size, line_end)
            if last is None:
                raise RecordingError(f"{path}: a line is longer than {PIECE_BYTES >> 20} MB; is this a text log?")
            file.seek(first)
            piece = file.read(last - first)
            log.bytes_done, first = last, last
            yield _unified(piece, line_end)


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


def _unified(piece: bytes, line_end: bytes) -> bytes:
    return piece if line_end == b"\n" else piece.replace(b"\r", b"\n")


def _blocks(path: Path, layout: TextLayout, line_end: bytes, wanted: Sequence[int], log: ReadLog) -> Iterator[Block]:
    log.garbage += len(layout.garbage)
    log.garbage_lines += layout.garbage[:FEW]
    line, above = 1, layout.skipped
    for piece in _pieces(path, line_end, log):
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
    # The last column tells whether a line is whole, so it is looked at even if nobody asked for it.
    guard = [] if layout.open_end or layout.width - 1 in wanted else [layout.width - 1]
    chosen = sorted({*wanted, *guard})
    schema = {f"{k}": pl.Float64 if k in wanted else pl.String for k in range(layout.width)}
    try:
        frame = pl.read_csv(
            body,
            has_header=False,
            separator=layout.separator.decode("latin-1"),
            schema=schema,
            quote_char=None,
            columns=chosen,
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
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
