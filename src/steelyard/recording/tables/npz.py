"""NumPy's ``.npz`` archives, read in blocks: an array need never be in memory as a whole."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from ...errors import RecordingError
from ..setup import TextOptions
from .memory import check_lengths, expanded_names, sample_count, samples_last
from .table import Block, ReadLog, Table

BLOCK_ROWS = 65_536
DESCRIPTION = "steelyard"
"""Key of the text that says what is in a file of ours."""
_SKIP_BYTES = 1 << 20
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


@dataclass(frozen=True)
class _Member:
    """An array in the archive. ``across`` is the number of columns it makes, ``contiguous`` whether each lies alone."""

    key: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    across: int
    contiguous: bool
    samples: int


def open_npz(path: Path, options: TextOptions) -> Table:
    """Return the arrays of an archive as a table; an array of k columns is ``key[1]`` ... ``key[k]``."""
    try:
        with zipfile.ZipFile(path) as archive:
            headers = {name: _header(archive, name) for name in archive.namelist() if name.endswith(".npy")}
            described = _description(archive) if DESCRIPTION + ".npy" in headers else {}
    except (zipfile.BadZipFile, ValueError, EOFError, OSError, zlib.error, NotImplementedError, RuntimeError) as error:
        raise RecordingError(f"{path}: is no readable .npz archive ({error}); write it with numpy.savez") from error
    numeric = {n: h for n, h in headers.items() if h[2].kind in "fiub" and len(h[0]) in (1, 2) and min(h[0])}
    samples = sample_count({name: header[0] for name, header in numeric.items()}, str(path))
    members = [_member(name, header, samples, described) for name, header in numeric.items()]
    names, places = [], []
    for member in members:
        key = member.key.removesuffix(".npy")
        joints = described.get("joints") if len(member.shape) == 2 else None
        names += [key] if len(member.shape) == 1 else expanded_names(key, member.across, joints)
        places += [(member, column) for column in range(member.across)]

    def read(wanted: Sequence[int], log: ReadLog) -> Iterator[Block]:
        check_lengths({places[k][0].key.removesuffix(".npy"): places[k][0].samples for k in wanted}, str(path))
        size, done, total = path.stat().st_size, 0, places[wanted[0]][0].samples
        try:
            for block in _blocks(path, [places[k] for k in wanted]):
                done += block.rows
                log.bytes_done = size * done // total
                yield block
        except (zipfile.BadZipFile, EOFError, OSError, zlib.error, ValueError) as error:
            raise RecordingError(f"{path}: the archive is damaged ({error}); copy it again") from error

    return Table(str(path), tuple(names), True, read, described)


def _header(archive: zipfile.ZipFile, name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    with archive.open(name) as file:
        return _read_header(file)


def _read_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"array format {version}")
    return _HEADERS[version](file)


def _description(archive: zipfile.ZipFile) -> Mapping[str, Any]:
    """Return what a file of ours says of itself; nothing if the text is not ours."""
    with archive.open(DESCRIPTION + ".npy") as file:
        try:
            text = np.lib.format.read_array(file, allow_pickle=False)
            content = json.loads(str(text))
        except (ValueError, RecursionError):
            return {}
    return content if isinstance(content, dict) else {}


def _member(name: str, header: tuple, samples: int, described: Mapping[str, Any]) -> _Member:
    shape, fortran, dtype = header
    if len(shape) == 1:
        return _Member(name, shape, dtype, 1, True, shape[0])
    last = samples_last(shape, samples, described)
    across, along = (shape[0], shape[1]) if last else (shape[1], shape[0])
    return _Member(name, shape, dtype, across, last != fortran, along)


def _blocks(path: Path, wanted: Sequence[tuple[_Member, int]]) -> Iterator[Block]:
    with ExitStack() as stack:
        archive = stack.enter_context(zipfile.ZipFile(path))
        readers: dict[tuple[str, int], Iterator[np.ndarray]] = {}
        for member, column in wanted:
            # Columns that lie side by side in each row share one stream, others have one each.
            start = column if member.contiguous else 0
            if (member.key, start) not in readers:
                file = stack.enter_context(archive.open(member.key))
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
    _read_header(file)
    size = member.dtype.itemsize
    _skip(file, start * member.samples * size)
    across = 1 if member.contiguous else member.across
    for first in range(0, member.samples, BLOCK_ROWS):
        rows = min(BLOCK_ROWS, member.samples - first)
        data = file.read(rows * across * size)
        if len(data) != rows * across * size:
            raise EOFError("an array ends early")
        yield np.frombuffer(data, member.dtype).reshape(rows, across).T.astype(np.float64)


def _skip(file: IO[bytes], count: int) -> None:
    while count > 0:
        got = len(file.read(min(count, _SKIP_BYTES)))
        if not got:
            raise EOFError("an array ends early")
        count -= got
