"""Factors: the triangle R of ``[W y]`` of one equation, one recording and one block of time; merged late, by name.

Rows are compressed by Householder QR (LAPACK), ``R^T R = A^T A`` without ever forming ``A^T A``: the error of each
column of R is small relative to that column of A, however the columns are scaled, and a column of zeros stays one of
zeros to the last bit.

How long a recording is need not be known beforehand. Blocks of time begin small; whenever there are twice as many as
wanted, neighbours merge and the next are twice as long, so that at the end there are between the number wanted and
twice that. A block counts time, not usable rows: all equations of a recording have the same bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.linalg import lapack

from ..errors import ObservationError
from ..text import short_repr
from .rows import RowSource
from .runs import RowBlock, RunFinder, Whitening

CHUNK = 1024
"""Rows reduced at once."""

# Columns that LAPACK works on together; for tall matrices its recursive routine is twice as fast as the usual one.
_PANEL = 16


def reduced(rows: np.ndarray) -> np.ndarray:
    """Return the upper triangle R (c, c) of rows (m, c); the rows may be overwritten."""
    columns = rows.shape[1]
    if len(rows) == columns and not rows[~_upper(columns, columns)].any():
        return rows.copy()  # as LAPACK would leave it: a third of all calls
    triangle = np.zeros((columns, columns))
    top = min(rows.shape)
    if top:
        factored = lapack.dgeqrt(min(_PANEL, top), np.asfortranarray(rows), overwrite_a=1)[0]  # pyright: ignore[reportAttributeAccessIssue]
        np.copyto(triangle[:top], factored[:top], where=_upper(top, columns))
    return triangle


@lru_cache(maxsize=64)
def _upper(rows: int, columns: int) -> np.ndarray:
    """Return where an upper triangle is: making this mask takes longer than all else of a small one."""
    return ~np.tri(rows, columns, -1, dtype=bool)


class RowStack:
    """Rows that come in pieces, held as a triangle and the few rows since. The result does not depend on the pieces.

    Args:
        columns: Number of columns c.

    Attributes:
        count: How many rows came in.
    """

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.count = 0
        self._buffer = np.empty((0, columns), order="F")
        self._filled = 0

    def push(self, rows: np.ndarray) -> None:
        """Take rows (m, c)."""
        self.count += len(rows)
        while len(rows):
            self._make_room(len(rows))
            fitting = min(len(rows), len(self._buffer) - self._filled)
            self._buffer[self._filled : self._filled + fitting] = rows[:fitting]
            self._filled += fitting
            rows = rows[fitting:]

    def _make_room(self, wanted: int) -> None:
        limit = CHUNK + self.columns
        if self._filled == limit:
            self._buffer[: self.columns] = reduced(self._buffer)
            self._filled = self.columns
        elif self._filled + wanted > len(self._buffer) and len(self._buffer) < limit:
            larger = np.empty((min(limit, max(2 * len(self._buffer), self._filled + wanted)), self.columns), order="F")
            larger[: self._filled] = self._buffer[: self._filled]
            self._buffer = larger

    def triangle(self) -> np.ndarray:
        """Return R (c, c) of all rows so far; the stack is empty afterwards but for its count."""
        return reduced(self._emptied())

    def compact(self) -> np.ndarray:
        """Return the fewest rows that are equivalent to all: a triangle, or the rows themselves if they are few."""
        return self.triangle() if self._filled > self.columns else np.ascontiguousarray(self._emptied())

    def _emptied(self) -> np.ndarray:
        rows = self._buffer[: self._filled]
        self._buffer, self._filled = np.empty((0, self.columns), order="F"), 0
        return rows


@dataclass(frozen=True, eq=False)
class Factor:
    """All that least squares needs of the rows of one equation in a block of time.

    Attributes:
        recording: Label of the recording.
        kind: Torque kind of the rows: ``motor``, ``joint`` or ``difference``.
        joint: Joint of the rows.
        block: Number of the block of time, from 0.
        columns: Names of the columns of W (c,).
        triangle: Upper triangular R (c + 1, c + 1) with ``R^T R = [W y]^T [W y]``.
        rows: Number of rows it stands for.
    """

    __repr__ = short_repr

    recording: str
    kind: str
    joint: str
    block: int
    columns: tuple[str, ...]
    triangle: np.ndarray
    rows: int


def merged_triangle(
    factors: Iterable[Factor], columns: Sequence[str], weights: Callable[[Factor], float] | None = None
) -> tuple[np.ndarray, int]:
    """Return one triangle of all factors, their columns aligned by name.

    Args:
        factors: The factors.
        columns: Names of the columns of the result. One that a factor does not have is zero there; one of a factor
            that is not named here is left out, as if its parameter were zero.
        weights: By what the rows of a factor are multiplied, one over their standard deviation; 1 by default.

    Returns:
        The triangle (c + 1, c + 1) of ``[W y]``, y last, and the number of rows that it stands for.

    Raises:
        ObservationError: If a column is named twice, or a weight is not finite or negative.
    """
    place = {name: k for k, name in enumerate(columns)}
    if len(place) != len(columns):
        repeated = next(name for name in columns if list(columns).count(name) > 1)
        raise ObservationError(f"column '{repeated}' is named twice; name each column once")
    stack = RowStack(len(columns) + 1)
    count = 0
    places: dict[tuple[str, ...], tuple[np.ndarray, np.ndarray]] = {}  # many factors have the same columns
    for factor in factors:
        if factor.columns not in places:
            known = [k for k, name in enumerate(factor.columns) if name in place]
            own, common = [*known, -1], [*(place[factor.columns[k]] for k in known), -1]
            places[factor.columns] = np.array(own), np.array(common)
        own, common = places[factor.columns]
        rows = np.zeros((len(factor.triangle), len(columns) + 1))
        rows[:, common] = factor.triangle[:, own] * _weight(factor, weights)
        stack.push(rows)
        count += factor.rows
    return stack.triangle(), count


def _weight(factor: Factor, weights: Callable[[Factor], float] | None) -> float:
    weight = 1.0 if weights is None else float(weights(factor))
    if not (np.isfinite(weight) and weight >= 0):
        raise ObservationError(
            f"weight of factor {factor.recording}, {factor.kind} {factor.joint}: got {weight}, allowed are finite "
            "numbers of 0 and above"
        )
    return weight


SHORTEST = 8
"""Decimated samples of the first blocks."""


TimeBlock = tuple[np.ndarray, int]
"""What is left of a block of time: a few rows (m, c), and how many rows they stand for."""


class TimeBlocks:
    """Collects the rows of one equation in blocks of time.

    Args:
        columns: Number of columns, y included.
        wanted: How many blocks are wanted at least, if there are enough samples.
    """

    def __init__(self, columns: int, wanted: int) -> None:
        self._columns, self._wanted = columns, wanted
        self._length = SHORTEST
        self._blocks: list[TimeBlock] = []
        self._open = RowStack(columns)
        self._elapsed = 0

    @property
    def room(self) -> int:
        """Samples until the open block ends."""
        return self._length - self._elapsed

    def add(self, rows: np.ndarray) -> None:
        """Take rows (m, c) that belong to the open block; time does not pass by this."""
        self._open.push(rows)

    def elapse(self, samples: int) -> None:
        """Let time pass, at most to the end of the open block."""
        self._elapsed += samples
        if self._elapsed == self._length:
            self._close()

    def finish(self) -> list[tuple[np.ndarray, int]]:
        """Return the triangle (c, c) and the number of rows of every block; a short last one joins its neighbour."""
        if self._elapsed:
            elapsed, self._elapsed = self._elapsed, 0
            self._blocks.append(self._closed())
            if 2 * elapsed < self._length and len(self._blocks) > 1:
                last = self._blocks.pop()
                self._blocks[-1] = self._joined(self._blocks[-1], last)
        return [(self._stacked(block).triangle(), block[1]) for block in self._blocks]

    def _closed(self) -> TimeBlock:
        block = self._open.compact(), self._open.count
        self._open = RowStack(self._columns)
        return block

    def _close(self) -> None:
        self._blocks.append(self._closed())
        self._elapsed = 0
        if len(self._blocks) == 2 * self._wanted:
            pairs = zip(self._blocks[::2], self._blocks[1::2], strict=True)
            self._blocks = [self._joined(early, late) for early, late in pairs]
            self._length *= 2

    def _joined(self, early: TimeBlock, late: TimeBlock) -> TimeBlock:
        return self._stacked(early, late).compact(), early[1] + late[1]

    def _stacked(self, *blocks: TimeBlock) -> RowStack:
        stack = RowStack(self._columns)
        for rows, _ in blocks:
            stack.push(rows)
        return stack


def reduced_source(
    source: RowSource,
    whitening: Whitening | None,
    blocks: int,
    pool: ThreadPoolExecutor | None,
    progress: Callable[[], None],
) -> tuple[Factor, ...]:
    """Return the factors of a recording, equation by equation, block by block.

    Args:
        source: Its rows.
        whitening: How rows are whitened; not at all by default.
        blocks: How many blocks of time are wanted.
        pool: Threads that share the equations.
        progress: Called after every block of rows.
    """
    count = len(source.equations.kinds_joints)
    reductions = [_EquationReduction(source, e, whitening, blocks) for e in range(count)]
    for block in source:
        tasks = (pool.map if pool else map)(lambda reduction, block=block: reduction.take(block), reductions)
        for _ in tasks:
            pass
        progress()
    return tuple(factor for reduction in reductions for factor in reduction.factors())


class _EquationReduction:
    """The factors of one equation of one recording."""

    def __init__(self, source: RowSource, e: int, whitening: Whitening | None, blocks: int) -> None:
        self._source, self._e = source, e
        self._finder = RunFinder(source.equations, e, source.label)
        self._whitener = None if whitening is None else whitening.whitener(source.equations.kinds_joints[e])
        nonzero, whole = source.columns[e], source.equations.columns[e]
        # Columns that are zero in all of this recording are left out; merging by name brings them back.
        self._nonzero = None if nonzero == whole else [*(whole.index(name) for name in nonzero), len(whole)]
        self._blocks = TimeBlocks(len(nonzero) + 1, blocks)

    def take(self, block: RowBlock) -> None:
        """Take the usable rows of a block."""
        at = 0
        for run in self._finder.runs(block):
            self._elapse(run.places.start - at)
            if self._whitener is not None and run.starts:
                self._whitener.restart()
            self._add(run.rows)
            at = run.places.stop
        self._elapse(len(block.time) - at)

    def _add(self, rows: np.ndarray) -> None:
        while len(rows):
            part = rows[: self._blocks.room]
            rows = rows[len(part) :]
            ready = part if self._whitener is None else self._whitener.push(part)
            self._blocks.add(ready if self._nonzero is None else ready[:, self._nonzero])
            self._blocks.elapse(len(part))

    def _elapse(self, samples: int) -> None:
        while samples > 0:
            step = min(samples, self._blocks.room)
            self._blocks.elapse(step)
            samples -= step

    def factors(self) -> Iterator[Factor]:
        """Yield the factors; blocks without a row are left out."""
        kind, joint = self._source.equations.kinds_joints[self._e]
        columns = self._source.columns[self._e]
        for block, (triangle, count) in enumerate(self._blocks.finish()):
            if count:
                triangle.setflags(write=False)
                yield Factor(self._source.label, kind, joint, block, columns, triangle, count)
