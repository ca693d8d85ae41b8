"""MATLAB's MAT-files: version 5 (also compressed, ``-v7``) read here, version 7.3 as HDF5.

Headers are checked against the size of the file before data are read, and arrays stay where they are in the file until
a block of them is wanted: ``scipy.io.loadmat`` trusts headers and holds all in memory.
"""

from __future__ import annotations

import math
import mmap
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from ..archive import ALWAYS_UNPACKED, MOST_UNPACKED
from ..errors import TableError
from .columns import MOST_ROWS, NamedColumns
from .datasets import Dataset, DatasetTree, Place, sampled_columns
from .hdf5 import hdf5_columns, is_hdf5, open_hdf5
from .table import Block, ReadLog, Table, TextOptions

BLOCK_ROWS = 65_536
MOST_VARIABLES = 20_000
"""Arrays, fields of structures and cells that are looked at."""
DEEPEST = 32
MOST_ELEMENTS = 100
"""Of a structure array; more are left out."""
_HEADER = 128
_INT8, _INT32, _UINT32, _MATRIX, _COMPRESSED = 1, 5, 6, 14, 15
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_LETTERS = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}
_CELL, _STRUCT, _CHAR = 1, 2, 4
_NUMERIC = range(6, 16)
_COMPLEX = 0x800


class _DamageError(ValueError):
    """A file that is not as MATLAB writes it; the text says why."""


@dataclass
class _File:
    """What is found in a file.

    Attributes:
        order: Byte order of its numbers.
        room: Bytes that may still be unpacked.
        arrays: Arrays of numbers (rows, columns) by path, views of the file or of what was unpacked.
        texts: Lists of texts by path.
        groups: Paths of the structures.
        skipped: How many variables are left out by reason.
        deep: Shapes of those of three and more dimensions, by path.
        count: Variables seen.
    """

    order: Literal["little", "big"]
    room: int
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    texts: dict[str, list[str]] = field(default_factory=dict)
    groups: list[str] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    deep: dict[str, tuple[int, ...]] = field(default_factory=dict)
    count: int = 0

    def skip(self, why: str) -> None:
        """Count a variable that is left out."""
        self.skipped[why] = self.skipped.get(why, 0) + 1

    def dtype(self, kind: str) -> np.dtype[Any]:
        """Return a kind of number in the byte order of the file."""
        return np.dtype(kind).newbyteorder("<" if self.order == "little" else ">")


def open_mat(path: Path, options: TextOptions) -> Table:
    """Return the numeric arrays of a MAT-file, also those in structures (``run.q``), as a table."""
    if is_hdf5(path):
        return open_hdf5(path, options, matlab=True)
    file = _read(path)
    content = sampled_columns(_tree(path, file), options.group)
    places = list(content.places.values())

    def read(wanted: Sequence[int], log: ReadLog) -> Iterator[Block]:
        if content.remark:
            log.remarks.append(content.remark)
        size = path.stat().st_size
        for first in range(0, content.samples, BLOCK_ROWS):
            last = min(content.samples, first + BLOCK_ROWS)
            log.bytes_done = size * last // content.samples
            yield Block(tuple(_numbers(file, places[k], first, last) for k in wanted))

    return Table(str(path), tuple(content.places), True, read, left_out=content.deep)


def mat_columns(path: Path, options: TextOptions) -> NamedColumns:
    """Return the arrays of a MAT-file as columns of numbers and texts."""
    if is_hdf5(path):
        return hdf5_columns(path, options, matlab=True)
    file = _read(path)
    content = sampled_columns(_tree(path, file), options.group)
    rows = content.samples
    if rows > MOST_ROWS:
        raise TableError(f"{path}: has {rows} rows; at most {MOST_ROWS} are allowed, average or thin them out")
    cells: dict[str, Sequence[str] | np.ndarray] = {
        name: _numbers(file, place, 0, rows) for name, place in content.places.items()
    }
    cells |= {name: file.texts[dataset.path] for name, dataset in content.texts.items()}
    return NamedColumns(str(path), MappingProxyType(cells), rows, range(1, rows + 1))


def _numbers(file: _File, place: Place, first: int, last: int) -> np.ndarray:
    array = file.arrays[place.dataset.path]
    values = array[first:last, place.across] if place.axis == 0 else array[place.across, first:last]
    with np.errstate(all="ignore"):
        return values.astype(np.float64)


def _tree(path: Path, file: _File) -> DatasetTree:
    datasets = [Dataset(name, array.shape, array.itemsize, False, (), ()) for name, array in file.arrays.items()]
    datasets += [Dataset(name, (len(texts),), 1, True, (), ()) for name, texts in file.texts.items()]
    return DatasetTree(str(path), datasets, file.groups, file.skipped, dotted=True, deep=file.deep)


def _read(path: Path) -> _File:
    """Return the arrays of a file of version 5."""
    size = path.stat().st_size
    try:
        with path.open("rb") as opened:
            view = memoryview(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))
        file = _File(_byte_order(view), max(ALWAYS_UNPACKED, MOST_UNPACKED * size))
        for kind, body in _elements(view[_HEADER:], file.order):
            _variable(file, kind, body)
    except (_DamageError, zlib.error, UnicodeDecodeError) as error:
        raise TableError(f"{path}: is no readable MAT-file ({error}); save it with -v7 or -v7.3") from error
    return file


def _byte_order(view: memoryview) -> Literal["little", "big"]:
    mark = bytes(view[_HEADER - 2 : _HEADER])
    if mark not in (b"IM", b"MI"):
        raise _DamageError("it has not the header of version 5; version 4 is not read")
    order = "little" if mark == b"IM" else "big"
    version = int.from_bytes(view[_HEADER - 4 : _HEADER - 2], order)
    if version != 0x0100:
        raise _DamageError(f"its version is {version:#06x}; 0x0100 is expected")
    return order


def _elements(view: memoryview, order: Literal["little", "big"]) -> Iterator[tuple[int, memoryview]]:
    """Yield kind and content of the elements of a file, or of an array."""
    position = 0
    while position + 8 <= len(view):
        word = int.from_bytes(view[position : position + 4], order)
        if word >> 16:  # up to four bytes stand in the tag itself
            kind, size, start, step = word & 0xFFFF, word >> 16, position + 4, 8
            if size > 4:
                raise _DamageError("a short element is longer than four bytes")
        else:
            kind, size, start = word, int.from_bytes(view[position + 4 : position + 8], order), position + 8
            step = 8 + (size if kind == _COMPRESSED else -(-size // 8) * 8)
        if start + size > len(view):
            raise _DamageError("an element is longer than what holds it; is the file cut?")
        yield kind, view[start : start + size]
        position += step


def _variable(file: _File, kind: int, body: memoryview) -> None:
    if kind == _COMPRESSED:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(body, file.room + 1)
        file.room -= len(data)
        if file.room < 0:
            raise _DamageError(f"it unpacks to more than {MOST_UNPACKED} times its size")
        for inner, content in _elements(memoryview(data), file.order):
            if inner == _MATRIX:
                _matrix(file, content, "", 0)
    elif kind == _MATRIX:
        _matrix(file, body, "", 0)


def _matrix(file: _File, body: memoryview, path: str, depth: int) -> list[str] | None:
    """Take an array, a structure or a cell into the file; return its texts if it is one of letters.

    Args:
        file: Where what is found goes.
        body: Content of the element.
        path: Its path; empty for a variable, which has its name with it.
        depth: How many structures and cells it is in.
    """
    file.count += 1
    if file.count > MOST_VARIABLES:
        raise _DamageError(f"it holds more than {MOST_VARIABLES} arrays")
    if depth > DEEPEST:
        raise _DamageError(f"structures are nested deeper than {DEEPEST}")
    elements = _elements(body, file.order)
    flags = _whole_numbers(file, elements, _UINT32)
    kind = flags[0] & 0xFF if flags else 0
    if kind not in (_CELL, _STRUCT, _CHAR, *_NUMERIC):
        file.skip("of texts, cells or objects" if flags else "of single values, or empty")
        return None
    shape = tuple(_whole_numbers(file, elements, _INT32))
    own = bytes(next(elements, (0, b""))[1]).decode("latin-1")
    path = path or own
    if any(length < 0 for length in shape) or not path:
        raise _DamageError("an array has a length below zero, or no name")
    if kind in _NUMERIC:
        _numeric(file, elements, path, shape, complex_=bool(flags[0] & _COMPLEX))
    elif kind == _STRUCT:
        _structure(file, elements, path, shape, depth)
    elif kind == _CELL:
        _cells(file, elements, path, shape, depth)
    else:
        return _letters(file, elements, path, shape, keep=depth == 0)
    return None


def _whole_numbers(file: _File, elements: Iterator[tuple[int, memoryview]], expected: int) -> list[int]:
    kind, body = next(elements, (expected, memoryview(b"")))
    if kind != expected or len(body) % 4:
        raise _DamageError("the header of an array is damaged")
    return np.frombuffer(body, file.dtype(_NUMBERS[expected])).tolist()


def _numeric(
    file: _File, elements: Iterator[tuple[int, memoryview]], path: str, shape: tuple[int, ...], complex_: bool
) -> None:
    axes = shape if len(shape) < 3 else tuple(length for length in shape if length != 1)
    axes = (*axes, 1, 1)[: max(2, len(axes))]
    if complex_ or len(axes) > 2:
        file.skip("of complex numbers" if complex_ else "of three and more dimensions")
        if len(axes) > 2:
            file.deep[path] = axes
        return
    if math.prod(axes) < 2:
        file.skip("of single values, or empty")
        return
    kind, body = next(elements, (0, memoryview(b"")))
    if kind not in _NUMBERS:
        raise _DamageError(f"numbers of kind {kind} do not exist")
    dtype = file.dtype(_NUMBERS[kind])
    if len(body) != math.prod(axes) * dtype.itemsize:
        raise _DamageError(f"an array of shape {shape[:4]} has {len(body)} bytes")
    file.arrays[path] = np.frombuffer(body, dtype).reshape(axes, order="F")


def _structure(
    file: _File, elements: Iterator[tuple[int, memoryview]], path: str, shape: tuple[int, ...], depth: int
) -> None:
    longest = _whole_numbers(file, elements, _INT32)
    names = bytes(next(elements, (0, b""))[1])
    if len(longest) != 1 or longest[0] < 1:
        raise _DamageError("the names of a structure are damaged")
    width = longest[0]
    fields = [names[k : k + width].split(b"\0")[0].decode("latin-1") for k in range(0, len(names), width)]
    count = math.prod(shape)
    if count > MOST_ELEMENTS:
        file.skip("in structure arrays of many elements")
        return
    for number in range(1, count + 1):
        own = path if count == 1 else f"{path}({number})"
        file.groups.append(own)
        for name in fields:
            kind, body = next(elements, (0, memoryview(b"")))
            if kind != _MATRIX or not name:
                raise _DamageError("a field of a structure is missing")
            _matrix(file, body, f"{own}/{name}", depth + 1)


def _cells(
    file: _File, elements: Iterator[tuple[int, memoryview]], path: str, shape: tuple[int, ...], depth: int
) -> None:
    """Take a list of texts, one in each cell; other cells are left out."""
    count, found = math.prod(shape), []
    if max(shape, default=0) != count or count > MOST_VARIABLES:
        file.skip("of texts, cells or objects")
        return
    for kind, body in elements:
        texts = _text_in_cell(file, kind, body, path, depth)
        if texts is None:
            file.skip("of texts, cells or objects")
            return
        found.append(texts)
    if len(found) != count:
        raise _DamageError("a cell is missing")
    file.texts[path] = found


def _text_in_cell(file: _File, kind: int, body: memoryview, path: str, depth: int) -> str | None:
    """Return the text of a cell, None if it holds something else."""
    elements = _elements(body, file.order)
    flags = _whole_numbers(file, elements, _UINT32) if kind == _MATRIX else []
    if not flags or flags[0] & 0xFF != _CHAR:
        return None
    texts = _matrix(file, body, path, depth + 1)
    return texts[0] if texts else ""


def _letters(
    file: _File, elements: Iterator[tuple[int, memoryview]], path: str, shape: tuple[int, ...], keep: bool
) -> list[str]:
    """Return the rows of an array of letters, without blanks at their ends; ``keep`` puts them into the file."""
    kind, body = next(elements, (2, memoryview(b"")))
    coding = _LETTERS.get(kind)
    if coding is None:
        raise _DamageError(f"letters of kind {kind} do not exist")
    if coding in ("utf-16", "utf-32"):
        coding += "-le" if file.order == "little" else "-be"
    text = bytes(body).decode(coding)
    rows = shape[0] if shape else 0
    if len(shape) != 2 or len(text) != math.prod(shape) or rows > MOST_ROWS:
        return [text] if rows == 1 else []
    texts = ["".join(text[row::rows]).rstrip("\0 ") for row in range(rows)]
    if keep and rows > 1:
        file.texts[path] = texts
    return texts
