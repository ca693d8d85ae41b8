"""Text files of numbers: cut at line ends into pieces, each parsed by polars or, where that fails, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from ...errors import RecordingError
from ..setup import TextOptions
from .table import FEW, Block, ReadLog, Table
from .text_careful import parsed_carefully
from .text_layout import HEAD_BYTES, WHITESPACE, TextLayout, text_layout

PIECE_BYTES = 1 << 24
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
    """Yield the file in pieces of whole lines. One buffer is used again and again: memory stays the same."""
    buffer = bytearray(PIECE_BYTES)
    view = memoryview(buffer)
    kept = 0
    with path.open("rb", buffering=0) as file:
        if file.read(len(_UTF8_MARK)) != _UTF8_MARK:
            file.seek(0)
        while got := file.readinto(view[kept:]):
            log.bytes_done += got
            end = kept + got
            cut = buffer.rfind(line_end, 0, end) + 1
            if not cut and end == PIECE_BYTES:
                raise RecordingError(f"{path}: a line is longer than {PIECE_BYTES >> 20} MB; is this a text log?")
            if cut:
                yield _unified(bytes(view[:cut]), line_end)
            kept = end - cut
            buffer[:kept] = buffer[cut:end]
        if kept:
            yield _unified(bytes(view[:kept]), line_end)


def _unified(piece: bytes, line_end: bytes) -> bytes:
    return piece if line_end == b"\n" else piece.replace(b"\r", b"\n")


def _blocks(path: Path, layout: TextLayout, line_end: bytes, wanted: Sequence[int], log: ReadLog) -> Iterator[Block]:
    log.garbage += len(layout.garbage)
    log.garbage_lines += layout.garbage[:FEW]
    line = 1
    for piece in _pieces(path, line_end, log):
        count = piece.count(b"\n") + (not piece.endswith(b"\n"))
        skip = max(0, min(count, layout.skipped - line + 1))
        body = _without_lines(piece, skip)
        if body:
            columns = _parsed(body, count - skip, layout, wanted)
            block = Block(columns) if columns is not None else parsed_carefully(body, line + skip, layout, wanted, log)
            if block.rows:
                yield block
        line += count
        if not piece.endswith(b"\n"):
            log.remarks.append(f"line {line - 1} is the last and has no line end: its last number may be cut")


def _without_lines(piece: bytes, count: int) -> bytes:
    position = 0
    for _ in range(count):
        position = piece.find(b"\n", position) + 1
        if not position:
            return b""
    return piece[position:] if position else piece


def _parsed(body: bytes, lines: int, layout: TextLayout, wanted: Sequence[int]) -> tuple[np.ndarray, ...] | None:
    """Return the columns, or None if any line is not as it should be."""
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
    if frame.height != lines or any(series.null_count() for series in frame.iter_columns()):
        return None
    return tuple(np.ascontiguousarray(frame[f"{k}"].to_numpy()) for k in wanted)


def _plain(body: bytes, layout: TextLayout) -> bytes:
    """Return the text with one separator between numbers and a point as decimal sign."""
    if layout.decimal_comma:
        body = body.replace(b",", b".")
    if layout.padded:
        return body.translate(None, b" \t" if layout.separator != b"\t" else b" ")
    if layout.separator != WHITESPACE:
        return body
    if b"\t" in body:
        body = body.replace(b"\t", b" ")
    while b"  " in body:
        body = body.replace(b"  ", b" ")
    return body.replace(b"\n ", b"\n").replace(b" \n", b"\n").replace(b" \r\n", b"\n").strip(b" ")
