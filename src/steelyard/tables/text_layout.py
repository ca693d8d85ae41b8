"""The layout of a text file (separator, decimal sign, header, width), found in its first lines."""

from __future__ import annotations

import contextlib
import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import TableError
from .dates import date_order, is_date, joined_dates
from .table import TextOptions, check_width, description_from

HEAD_BYTES = 1 << 18
SAMPLE_LINES = 200
WHITESPACE = b" "
"""As a separator it stands for any run of blanks."""
MISSING = (
    "", "nan", "na", "n/a", "null", "none", "-", "-nan", "+nan", "nan(ind)", "-nan(ind)", "1.#qnan", "-1.#ind",
    "1.#ind",
)  # fmt: skip
"""Texts that stand for a missing number, in small letters."""
DESCRIPTION = "steelyard "
"""A comment that starts so says what is in a file of ours."""
_NAMES = {"tab": b"\t", "\t": b"\t", "whitespace": WHITESPACE, "space": WHITESPACE, " ": WHITESPACE}


UTF8_MARK = b"\xef\xbb\xbf"
_UTF32_MARKS = (b"\xff\xfe\0\0", b"\0\0\xfe\xff")
_MARKS = {UTF8_MARK: "utf-8", b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


@dataclass(frozen=True)
class TextLayout:
    """How to cut a text file into numbers.

    Attributes:
        separator: One byte; a blank stands for any run of blanks.
        decimal_comma: Whether numbers are written 1,5.
        width: Number of columns.
        names: Names of the columns, None if the file has no header.
        skipped: Lines at the top that are no data: header, comments, and ``skip_lines``.
        garbage: Numbers of lines among them that are neither.
        padded: Whether blanks stand beside the separators, or at the ends of lines.
        open_end: Whether the last column may be empty.
        comments: What comment lines start with.
        described: What the file says of itself.
        dates: Columns of dates, from 0, and which part of a date comes first (``date_order``).
    """

    separator: bytes
    decimal_comma: bool
    width: int
    names: tuple[str, ...] | None
    skipped: int
    garbage: tuple[int, ...]
    padded: bool
    open_end: bool
    comments: tuple[bytes, ...]
    described: Mapping[str, Any] = field(default_factory=dict)
    dates: Mapping[int, str] = field(default_factory=dict)


def is_number(cell: bytes, decimal_comma: bool = False) -> bool:
    """Return whether a cell is a number or a date, or stands for a missing one."""
    try:
        float(cell.replace(b",", b".") if decimal_comma else cell)
    except ValueError:
        return is_date(cell) or cell.strip().lower().decode("ascii", "replace") in MISSING
    return b"_" not in cell


def read_head(path: Path) -> tuple[bytes, bytes]:
    """Return the first whole lines in UTF-8, ended by line feeds, and the byte that ends lines in the file."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    full = len(head) == HEAD_BYTES
    if head.startswith(_UTF32_MARKS):
        raise TableError(f"{path}: is UTF-32 text; save it as UTF-8")
    encoding, mark = text_encoding(head)
    head = head[mark:] if encoding == "utf-8" else head[mark:].decode(encoding, "replace").encode()
    if head.count(b"\0") * 10 > len(head):
        raise TableError(f"{path}: is no text (it has zero bytes); give a text, .npz or .parquet file")
    line_end = b"\r" if b"\r" in head and b"\n" not in head else b"\n"
    if full:
        head = head[: head.rfind(line_end) + 1]
        if not head:
            raise TableError(f"{path}: its first line is longer than {HEAD_BYTES} bytes; is this a text log?")
    return joined_dates(unified(head, line_end)), line_end


def text_encoding(head: bytes) -> tuple[str, int]:
    """Return the encoding of a text from the byte order mark it begins with, and the length of the mark."""
    return next(((name, len(mark)) for mark, name in _MARKS.items() if head.startswith(mark)), ("utf-8", 0))


def unified(piece: bytes, line_end: bytes) -> bytes:
    """Return text whose lines end in line feeds."""
    return piece if line_end == b"\n" else piece.replace(b"\r", b"\n")


def fields_of(line: bytes, separator: bytes) -> list[bytes]:
    """Return the fields of a line, without quotes and blanks around them."""
    if b'"' in line:
        cells = cells_of(line.decode("utf-8", "surrogateescape"), separator.decode("latin-1"))
        return [cell.encode("utf-8", "surrogateescape") for cell in cells]
    return [part.strip() for part in (line.split() if separator == WHITESPACE else line.split(separator))]


def cells_of(line: str, separator: str) -> list[str]:
    """Return the cells of a line, without blanks around them; a quoted one may hold the separator."""
    cells = line.split() if separator == " " else line.split(separator)
    if '"' in line and separator != " ":
        # A quote without an end, or a cell beyond the reader's limit, leaves the plain cut.
        with contextlib.suppress(csv.Error):
            cells = next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])
    return [cell.strip().strip('"').strip() for cell in cells]


def text_layout(head: bytes, options: TextOptions, path: str, *, every_line: bool = False) -> TextLayout:
    """Return the layout of a file from its first lines.

    Args:
        head: The first whole lines of the file.
        options: What was declared of it.
        path: What messages call it.
        every_line: Whether every line is a row, but for the first if it holds a text: texts may stand in any row.
    """
    comments = tuple(mark.encode() for mark in options.comment)
    lines = head.split(b"\n")
    data = [k for k, line in enumerate(lines) if k >= options.skip_lines and _is_data(line, comments)]
    if not data:
        raise TableError(f"{path}: there is no data in it, only empty lines or comments")
    sample = [lines[k] for k in data[:SAMPLE_LINES]]
    separator, comma = _separator(sample, options, every_line)
    widths = [len(fields_of(line, separator)) for line in sample]
    width = widths[0] if every_line else Counter(widths[1:] or widths).most_common(1)[0][0]
    check_width(width, path)
    if every_line and options.header is None:
        first = int(not all(is_number(cell, comma) for cell in fields_of(sample[0], separator)))
    else:
        first = _first_data_line(sample, widths, width, comma, separator, options)
    header = _header_line(sample, widths, width, first, options)
    if header is None and first and separator != WHITESPACE and widths[first - 1] > 1:
        raise TableError(
            f"{path}: the header names {widths[first - 1]} columns but the lines have {width}; mend the header, or "
            f"leave it out with skip_lines = {data[first - 1] + 1}"
        )
    skipped = data[first] if first < len(sample) else len(lines)
    # A header may also stand in the last comment above the data, as numpy.savetxt writes it.
    above = [line for line in lines[options.skip_lines : skipped] if line.strip().startswith(comments)]
    commented = None if every_line else _commented_names(above, separator, width)
    names = _names(sample[header], separator) if header is not None else commented
    rows = [
        fields_of(line, separator) for line, count in zip(sample[first:], widths[first:], strict=True) if count == width
    ]
    return TextLayout(
        separator=separator,
        decimal_comma=comma,
        width=width,
        names=names,
        skipped=skipped,
        garbage=tuple(data[k] + 1 for k in range(first) if k != header),
        padded=any(_is_padded(line, separator) for line in sample[first:]),
        open_end=any(not row[-1] for row in rows),
        comments=comments,
        described=_description(above, comments),
        dates={} if every_line else _dates(rows, width),
    )


def _dates(rows: Sequence[Sequence[bytes]], width: int) -> dict[int, str]:
    if not any(map(is_date, rows[0] if rows else ())) and not any(is_date(cell) for row in rows[1:3] for cell in row):
        return {}
    orders = {column: date_order([row[column] for row in rows]) for column in range(width)}
    return {column: order for column, order in orders.items() if order is not None}


def _is_data(line: bytes, comments: tuple[bytes, ...]) -> bool:
    bare = line.strip()
    return bool(bare) and not bare.startswith(comments)


def _is_padded(line: bytes, separator: bytes) -> bool:
    inside = line.rstrip(b"\r")
    if separator == WHITESPACE:
        return inside != inside.strip() or b"  " in inside or b"\t" in inside
    return b" " in inside or (b"\t" in inside and separator != b"\t")


def _separator(sample: Sequence[bytes], options: TextOptions, every_line: bool) -> tuple[bytes, bool]:
    """Return the separator that cuts most lines into equally many numbers, and whether decimals are commas."""
    given = options.separator
    candidates = [_NAMES.get(given, given.encode())] if given else [b"\t", b";", b",", WHITESPACE]
    if every_line and not given:
        candidates = [mark for mark in candidates[:-1] if mark in sample[0]] or [WHITESPACE]
    if len(candidates[0]) != 1:
        raise TableError(f"separator '{given}' has {len(candidates[0])} bytes; allowed: one, or 'whitespace'")
    commas = [options.decimal == ","] if options.decimal else [False, True]
    best, found = -1.0, (candidates[0], commas[0])
    for separator in candidates:
        for comma in commas:
            if comma and separator == b",":
                continue
            score = _score(sample, separator, comma)
            if score > best:
                best, found = score, (separator, comma)
    return found


def _score(sample: Sequence[bytes], separator: bytes, comma: bool) -> float:
    rows = [fields_of(line, separator) for line in sample]
    width, share = Counter(map(len, rows)).most_common(1)[0]
    fitting = [cell for row in rows if len(row) == width for cell in row]
    numeric = sum(is_number(cell, comma) for cell in fitting) / len(fitting)
    # One column fits any separator; it counts only if nothing cuts the lines into numbers, or at least into fields.
    return (numeric + 0.01) * share / len(rows) * (1.0 if width > 1 else 0.5)


def _first_data_line(
    sample: Sequence[bytes], widths: Sequence[int], width: int, comma: bool, separator: bytes, options: TextOptions
) -> int:
    if options.header is not None:
        return 1 if options.header else 0
    for k, line in enumerate(sample):
        fields = fields_of(line, separator)
        numeric = sum(is_number(cell, comma) for cell in fields)
        if k == 0 and _are_places(fields):
            continue
        if widths[k] == width and numeric * 2 > len(fields):
            return k
    return 0 if all(count != width for count in widths) else min(1, len(sample))


def _are_places(fields: Sequence[bytes]) -> bool:
    """Return whether a line only counts its columns, as pandas does for columns without names: 0,1,2 or ,0,1,2."""
    counted = fields[1:] if fields and not fields[0] else fields
    return len(counted) > 2 and list(counted) == [str(place).encode() for place in range(len(counted))]


def _header_line(
    sample: Sequence[bytes], widths: Sequence[int], width: int, first: int, options: TextOptions
) -> int | None:
    """Return which line names the columns: the last one above the data that is as wide."""
    if options.header is not None:
        return 0 if options.header else None
    return next((k for k in reversed(range(first)) if widths[k] == width), None)


def _names(line: bytes, separator: bytes) -> tuple[str, ...]:
    return tuple(cells_of(line.decode("utf-8", "replace").strip("\ufeff"), separator.decode("latin-1")))


def unique_names(given: Sequence[str]) -> tuple[str, ...]:
    """Return the names, with a number behind those that are empty or come again."""
    counts: Counter[str] = Counter()
    names = []
    for number, own in enumerate(given, 1):
        name = own or f"column_{number}"
        counts[name] += 1
        names.append(name if counts[name] == 1 else f"{name}.{counts[name]}")
    return tuple(names)


def _commented_names(above: Sequence[bytes], separator: bytes, width: int) -> tuple[str, ...] | None:
    if not above:
        return None
    line = above[-1].strip().lstrip(b"#%/ ")
    fields = fields_of(line, separator)
    if len(fields) != width or width < 2 or any(is_number(cell) for cell in fields):
        return None
    return _names(line, separator)


def _description(above: Sequence[bytes], comments: tuple[bytes, ...]) -> Mapping[str, Any]:
    """Return what a file of ours says of itself in a comment; nothing if the text is not ours."""
    for line in above:
        text = line.strip().lstrip(b"#").strip().decode("utf-8", "replace")
        if text.startswith(DESCRIPTION):
            return description_from(text.removeprefix(DESCRIPTION))
    return {}
