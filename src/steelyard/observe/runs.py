"""Runs of rows: the one way through ``[W_e y_e]`` of all equations, as they are, whitened or weighted.

:meth:`.RowSource.runs` yields the usable rows of a recording, equation by equation, without copying them.
:func:`weighted_runs` selects columns, whitens and weights what comes from there. Everything that sums over rows
restarts where ``starts`` is true and needs no other knowledge of blocks, segments and samples left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from ..errors import RecordingError
from ..recording.cache import CachedColumns
from ..signals import RowWhitener
from .equations import Equations

MIN_SHARE = 0.5
"""Rows of which a smaller part of the decimation window was usable are left out."""

Group = tuple[str, str, str]
"""Recording, torque kind and joint: rows that share one noise variance."""


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Decimated rows of neighbouring samples of one segment.

    Attributes:
        segment: Number of the segment, from 0; rows of two segments are not neighbours in time.
        first: Number of the first row within its segment.
        time: Times of the rows (k,) [s].
        rows: For each equation ``[W_e y_e]`` (k, c_e + 1), columns as ``Equations.columns``, y last; ``-d(W_e x)/dt``
            before y where the source was given values x.
        share: For each equation, the part of the decimation window that was not near standstill (E, k): the sum of
            the squared filter weights there over that of all, which is how white noise counts.
        q: Positions (n, k), decimated alike.
        qd: Velocities (n, k), decimated alike.
        qdd: Accelerations (n, k), decimated alike.
        temperature: Temperatures at these times (n, k) [deg C], NaN where not known; None if none were recorded.
    """

    segment: int
    first: int
    time: np.ndarray
    rows: tuple[np.ndarray, ...]
    share: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    temperature: np.ndarray | None


class BlockCache:
    """Blocks of rows that a pass has made: in memory if they are few, else their columns in a temporary file.

    Args:
        most: Bytes that stay in memory; 0: nothing is kept.
        made: Makes a block of its segment, its first row and its columns (h, k); the same each time.

    Attributes:
        is_whole: Whether all blocks were kept.
    """

    def __init__(self, most: int, made: Callable[[int, int, np.ndarray], RowBlock]) -> None:
        self._most, self._made, self.is_whole = most, made, most > 0
        self._held: list[tuple[np.ndarray, RowBlock]] = []
        self._heads: list[tuple[int, int, int]] = []
        self._size, self._file = 0, None

    def put(self, segment: int, first: int, values: np.ndarray) -> RowBlock:
        """Return the block of these columns, and keep it after those before."""
        values = np.ascontiguousarray(values)
        block = self._made(segment, first, values)
        if self.is_whole:
            self._heads.append((segment, first, values.shape[1]))
            self._held.append((values, block))
            self._size += values.nbytes
            if self._size > self._most:
                self._store()
        return block

    def _store(self) -> None:
        self._file = self._file or CachedColumns(len(self._held[0][0]))
        try:
            while self._held:
                self._file.put(self._held.pop(0)[0])
        except RecordingError:  # no room: the rows can be computed anew
            self.is_whole, self._held, self._file = False, [], None

    def __iter__(self) -> Iterator[RowBlock]:
        """Yield the blocks in their order."""
        if self._file is None:
            yield from (block for _, block in self._held)
            return
        begin = 0
        for segment, first, count in self._heads:
            # In memory as they were: sums in another order would differ in the last bits.
            values = np.ascontiguousarray(self._file.read(begin, begin + count))
            yield self._made(segment, first, values)
            begin += count


@dataclass(frozen=True, eq=False)
class RowRun:
    """Neighbouring usable rows of one equation, within one block.

    Attributes:
        group: Recording, torque kind and joint.
        equation: Number of the equation.
        columns: Names of the columns of W.
        starts: Whether a run begins here; else the rows continue those of the equation's last run.
        rows: ``[W y]`` (k, c + 1), a view of those of the block.
        block: The block: its segment, times and motion.
        places: Where in the block the rows are.
    """

    group: Group
    equation: int
    columns: tuple[str, ...]
    starts: bool
    rows: np.ndarray
    block: RowBlock
    places: slice


class RunFinder:
    """Finds the runs of one equation in the blocks of a recording, which are given in the order of time.

    Args:
        equations: The equations.
        e: Number of the equation.
        label: Name of the recording.
        least: Least share of a usable row.
    """

    def __init__(self, equations: Equations, e: int, label: str, least: float = MIN_SHARE) -> None:
        self._group, self._e, self._columns = (label, *equations.kinds_joints[e]), e, equations.columns[e]
        self._least = least
        self._end = (-1, -1)  # segment and number of the row that would continue the last run

    def runs(self, block: RowBlock) -> Iterator[RowRun]:
        """Yield the runs of a block."""
        usable = np.concatenate([[False], block.share[self._e] >= self._least, [False]])
        bounds = np.flatnonzero(usable[1:] != usable[:-1])
        for first, last in zip(bounds[::2].tolist(), bounds[1::2].tolist(), strict=True):
            starts = self._end != (block.segment, block.first + first)
            self._end = (block.segment, block.first + last)
            rows = block.rows[self._e][first:last]
            yield RowRun(self._group, self._e, self._columns, starts, rows, block, slice(first, last))


@dataclass(frozen=True, eq=False)
class Whitening:
    """How rows are freed of the correlation of their noise.

    Attributes:
        correlation: Autocorrelation of white noise after the decimator (K + 1,).
        coefficients: Autoregressive coefficients (p,) by torque kind and joint; none where an equation is absent.
    """

    correlation: np.ndarray
    coefficients: Mapping[tuple[str, str], np.ndarray] = field(default_factory=lambda: MappingProxyType({}))

    def whitener(self, equation: tuple[str, str]) -> RowWhitener:
        """Return the whitener of an equation, given by torque kind and joint, at the start of a run."""
        return RowWhitener(self.correlation, self.coefficients.get(equation, np.zeros(0)))


@dataclass(frozen=True, eq=False)
class WeightedRun:
    """Rows of a run that were selected, whitened and weighted.

    Attributes:
        run: The rows as they were.
        index: Place of each of their columns among those wanted (c,).
        rows: ``[W y]`` (k, c + 1) of these columns; ``[W, -d(W x)/dt, y]`` where the source was given values x.
    """

    run: RowRun
    index: np.ndarray
    rows: np.ndarray

    def spread(self, size: int) -> np.ndarray:
        """Return the rows (k, size + 1) over all columns wanted, zeros where the equation has none."""
        spread = np.zeros((len(self.rows), size + 1))
        spread[:, self.index] = self.rows[:, :-1]
        spread[:, -1] = self.rows[:, -1]
        return spread


def weighted_runs(
    runs: Iterable[RowRun],
    columns: Sequence[str],
    weights: Mapping[Group, float] | None = None,
    whitening: Whitening | None = None,
) -> Iterator[WeightedRun]:
    """Yield rows of the columns wanted, whitened and weighted.

    Args:
        runs: The rows, of one recording or of several.
        columns: Names of the columns; others are left out, as if their parameters were zero.
        weights: By what rows are multiplied; groups without a weight are left out. None: nothing is weighted.
        whitening: How rows are whitened; not at all by default.
    """
    place = {name: k for k, name in enumerate(columns)}
    selections: dict[Group, tuple[list[int], np.ndarray]] = {}
    whiteners: dict[Group, RowWhitener] = {}
    for run in runs:
        group = run.group
        if weights is not None and group not in weights:
            continue
        if group not in selections:
            selections[group] = _selection(run, place)
        selected, index = selections[group]
        rows = run.rows[:, selected]
        if whitening is not None:
            whitener = whiteners.get(group) or whiteners.setdefault(group, whitening.whitener(group[1:]))
            if run.starts:
                whitener.restart()
            rows = whitener.push(rows)
        yield WeightedRun(run, index, rows if weights is None else rows * weights[group])


def _selection(run: RowRun, place: Mapping[str, int]) -> tuple[list[int], np.ndarray]:
    """Return which columns of a run are wanted, those after W always, and the places of the former."""
    selected = [k for k, name in enumerate(run.columns) if name in place]
    index = np.array([place[run.columns[k]] for k in selected], dtype=np.intp)
    return [*selected, *range(len(run.columns), run.rows.shape[1])], index
