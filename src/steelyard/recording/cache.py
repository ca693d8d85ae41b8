"""Columns of numbers that are read several times, cached in memory if few, else in a temporary file."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator
from tempfile import SpooledTemporaryFile
from threading import Lock
from weakref import finalize

import numpy as np

from ..errors import RecordingError

IN_MEMORY = 32_000_000
"""Bytes of columns beyond which they go to a temporary file."""


class CachedColumns:
    """Columns of numbers that are read as often as wanted; memory does not grow with them.

    The temporary file has no name, lies where ``TMPDIR`` says, and is gone with the columns.

    Args:
        rows: Numbers in a column.

    Attributes:
        rows: Numbers in a column.
        count: Number of columns.
    """

    def __init__(self, rows: int) -> None:
        self.rows, self.count = rows, 0
        self._in_memory, self._place = IN_MEMORY, Lock()  # threads read in turn: the file has one place
        # Closed when the columns are gone; no buffer, whose end would fail in a later read where the disk is full.
        self._file = SpooledTemporaryFile(max_size=IN_MEMORY, buffering=0)  # noqa: SIM115
        finalize(self, self._file.close)

    def put(self, columns: np.ndarray) -> None:
        """Add columns (rows, m) at the end.

        Raises:
            RecordingError: If the temporary file cannot hold them.
        """
        try:
            self._file.seek(8 * self.rows * self.count)
            left = np.ascontiguousarray(columns.T, dtype=np.float64).reshape(-1).view(np.uint8).data
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            raise RecordingError(
                f"cannot keep {8e-6 * self.rows * (self.count + columns.shape[1]):.0f} MB in a temporary file: "
                f"{error.strerror}; make room there, or set TMPDIR to a folder with more"
            ) from error
        self.count += columns.shape[1]

    def read(self, first: int, last: int) -> np.ndarray:
        """Return columns ``first`` to ``last`` (not included) (rows, k), those that there are."""
        last = min(last, self.count)
        with self._place:
            self._file.seek(8 * self.rows * first)
            numbers = np.frombuffer(self._file.read(8 * self.rows * max(0, last - first)))
        return numbers.reshape(-1, self.rows).T

    def blocks(self, first: int, last: int, size: int = 8192) -> Iterator[np.ndarray]:
        """Yield columns ``first`` to ``last`` (not included) in blocks (rows, size), the last one smaller."""
        for begin in range(first, last, size):
            yield self.read(begin, min(begin + size, last))

    def whole(self) -> np.ndarray:
        """Return all columns (rows, count), read-only; those in a file are mapped: see :func:`release`."""
        size = 8 * self.rows * self.count
        if size <= self._in_memory:
            return self.read(0, self.count)
        mapped = mmap.mmap(self._file.fileno(), size, access=mmap.ACCESS_READ)
        return np.frombuffer(mapped).reshape(self.count, self.rows).T


def cached_columns(rows: int, blocks: Iterable[np.ndarray]) -> CachedColumns:
    """Cache columns that come in blocks (rows, m)."""
    cache = CachedColumns(rows)
    for block in blocks:
        cache.put(block)
    return cache


def mapping_of(array: np.ndarray) -> mmap.mmap | None:
    """Return the mapped file in which the numbers of an array lie, None if they are in memory."""
    owner = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    if isinstance(owner, memoryview):
        owner = owner.obj
    return owner if isinstance(owner, mmap.mmap) else None


def release(array: np.ndarray) -> None:
    """Give back the memory of numbers that lie in a mapped file; they are read again when they are needed."""
    mapped = mapping_of(array)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):  # without it the system does so when memory is short
        mapped.madvise(mmap.MADV_DONTNEED)
