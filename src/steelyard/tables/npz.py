"""NumPy's ``.npz`` archives, read in blocks: an array need never be in memory as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import numpy as np

from ..archive import ArchiveError, ArrayHeader, array_headers, opened_archive, read_array, read_arrays
from ..errors import TableError
from .columns import NamedColumns
from .table import (
    Block,
    ReadLog,
    Table,
    TextOptions,
    check_lengths,
    check_width,
    description_from,
    expanded_names,
    sample_count,
    samples_last,
)

BLOCK_ROWS = 65_536
DESCRIPTION = "steelyard"
"""Key of the text that says what is in a file of ours."""
_SKIP_BYTES = 1 << 20


@dataclass(frozen=True)
class _Member:
    """An array in the archive. ``across`` is the number of columns it makes, ``contiguous`` whether each lies alone."""

    key: str
    header: ArrayHeader
    across: int
    contiguous: bool
    samples: int


def open_npz(path: Path, options: TextOptions) -> Table:
    """Return the arrays of an archive as a table; an array of k columns is ``key[1]`` ... ``key[k]``."""
    try:
        with opened_archive(path) as archive:
            headers = array_headers(archive)
            header = headers.get(DESCRIPTION)
            said = header is not None and header.dtype.kind == "U" and not header.shape
            described = description_from(str(read_array(archive, DESCRIPTION, header))) if header and said else {}
    except ArchiveError as error:
        raise TableError(f"{path}: is no readable .npz archive ({error}); write it with numpy.savez") from error
    numeric = {n: h for n, h in headers.items() if h.dtype.kind in "fiub" and len(h.shape) in (1, 2) and min(h.shape)}
    samples = sample_count({name: header.shape for name, header in numeric.items()}, str(path))
    members = [_member(name, header, samples, described) for name, header in numeric.items()]
    check_width(sum(member.across for member in members), str(path))
    names, places = [], []
    for member in members:
        joints = described.get("joints")
        names += [member.key] if len(member.header.shape) == 1 else expanded_names(member.key, member.across, joints)
        places += [(member, column) for column in range(member.across)]

    def read(wanted: Sequence[int], log: ReadLog) -> Iterator[Block]:
        check_lengths({places[k][0].key: places[k][0].samples for k in wanted}, str(path))
        size, done, total = path.stat().st_size, 0, places[wanted[0]][0].samples
        try:
            for block in _blocks(path, [places[k] for k in wanted]):
                done += block.rows
                log.bytes_done = size * done // total
                yield block
        except ArchiveError as error:
            raise TableError(f"{path}: the archive is damaged ({error}); copy it again") from error

    return Table(str(path), tuple(names), True, read, described)


def npz_columns(path: Path, options: TextOptions) -> NamedColumns:
    """Return arrays of numbers and texts as columns: one entry or one row of an array for each row."""
    try:
        arrays = read_arrays(path)
    except ArchiveError as error:
        raise TableError(f"{path}: is no readable .npz of plain arrays ({error}); write it with numpy.savez") from error
    rows = max((len(array) for array in arrays.values() if array.ndim), default=0)
    cells: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        if not array.ndim or len(array) != rows:
            raise TableError(
                f"{path}: '{name}' has shape {array.shape}; one entry or one row is expected for each of {rows} rows"
            )
        flat = array.reshape(rows, -1) if rows else array.reshape(0, 0)
        check_width(flat.shape[1], str(path))
        names = [name] if array.ndim == 1 else expanded_names(name, flat.shape[1])
        cells |= dict(zip(names, flat.T, strict=bool(rows)))
    return NamedColumns(str(path), MappingProxyType(cells), rows, range(1, rows + 1))


def _member(name: str, header: ArrayHeader, samples: int, described: Mapping[str, Any]) -> _Member:
    if len(header.shape) == 1:
        return _Member(name, header, 1, True, header.shape[0])
    last = samples_last(header.shape, samples, described)
    across, along = header.shape if last else header.shape[::-1]
    return _Member(name, header, across, last != header.fortran, along)


def _blocks(path: Path, wanted: Sequence[tuple[_Member, int]]) -> Iterator[Block]:
    with ExitStack() as stack:
        archive = stack.enter_context(opened_archive(path))
        readers: dict[tuple[str, int], Iterator[np.ndarray]] = {}
        for member, column in wanted:
            # Columns that lie side by side in each row share one stream, others have one each.
            start = column if member.contiguous else 0
            if (member.key, start) not in readers:
                file = stack.enter_context(archive.open(f"{member.key}.npy"))
                readers[member.key, start] = _pieces(file, member, start)
        for _ in range(0, wanted[0][0].samples, BLOCK_ROWS):
            pieces = {key: next(reader) for key, reader in readers.items()}
            yield Block(
                tuple(
                    pieces[member.key, column][0] if member.contiguous else pieces[member.key, 0][column]
                    for member, column in wanted
                )
            )


def _pieces(file: IO[bytes], member: _Member, start: int) -> Iterator[np.ndarray]:
    """Yield (rows of the piece, BLOCK_ROWS) arrays of one stream of an archive's array."""
    dtype, size = member.header.dtype, member.header.dtype.itemsize
    _skip(file, member.header.start + start * member.samples * size)
    across = 1 if member.contiguous else member.across
    for first in range(0, member.samples, BLOCK_ROWS):
        rows = min(BLOCK_ROWS, member.samples - first)
        data = file.read(rows * across * size)
        if len(data) != rows * across * size:
            raise ArchiveError("an array ends early")
        with np.errstate(all="ignore"):  # numbers that no double can hold become infinite, and are counted as such
            values = np.frombuffer(data, dtype).reshape(rows, across).T.astype(np.float64)
        yield values


def _skip(file: IO[bytes], count: int) -> None:
    while count > 0:
        got = len(file.read(min(count, _SKIP_BYTES)))
        if not got:
            raise ArchiveError("an array ends early")
        count -= got
