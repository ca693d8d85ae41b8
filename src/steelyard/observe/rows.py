"""Recordings to rows: ``[W_e y_e]`` of every equation, decimated, block by block, as often as they are asked for.

The rows of one recording on their way into factors: runs whitened, blocks of time filled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from ..errors import ObservationError
from .equations import Equations
from .factor import Factor, TimeBlocks
from .preparation import ResolvedPreparation
from .reading import AnyRecording, check_joints, hashes_of, template_of
from .row_pass import DecimatedColumns, Gates, RowPass, Tally

MIN_SHARE = 0.5
"""Rows of which a smaller part of the decimation window was kept are left out."""

LARGEST_NOISE = 6.0
"""Noise alone does not exceed this many standard deviations, however long the recording."""


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Decimated rows of a stretch of time.

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

    def runs(self, e: int, least: float = MIN_SHARE) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (place of the first row, rows (m, c_e + 1)) of every unbroken run of usable rows of equation ``e``.

        Args:
            e: Number of the equation.
            least: Least share of a usable row.
        """
        usable = np.concatenate([[False], self.share[e] >= least, [False]])
        bounds = np.flatnonzero(usable[1:] != usable[:-1])
        for first, last in zip(bounds[::2], bounds[1::2], strict=True):
            yield int(first), self.rows[e][first:last]


class RowSource:
    """The rows of one recording. Make one with :func:`row_source`.

    Iterating gives :class:`RowBlock` after block; every pass gives the same bits. ``samples``, ``masked``, ``notes``,
    ``still_joints`` and the ``sha256`` of a stream are known after one pass and empty before.

    Attributes:
        recording: Where the samples come from.
        equations: The equations.
        settled: The preparation.
        label: Name of the recording.
        payload: Name of the payload it carries, None if none.
        loaded: Whether its rows have payload columns.
        columns: For each equation, the columns that can be other than zero in this recording.
        delays: By how much the torque of each equation is taken to be late against the positions (E,) [s].
        read: Part of the recording that the pass at hand has read, 0 to 1.
    """

    def __init__(
        self,
        recording: AnyRecording,
        equations: Equations,
        settled: ResolvedPreparation,
        label: str,
        keep_bytes: int,
        gates: Gates | None = None,
        delays: np.ndarray | None = None,
        values: Mapping[str, float] | None = None,
    ) -> None:
        template = template_of(recording)
        check_joints(template, equations.joints, label)
        if settled.joints != equations.joints:
            raise ObservationError(
                f"preparation of joints {', '.join(settled.joints)}; the model has {', '.join(equations.joints)}"
            )
        self.recording, self.equations, self.settled, self.label = recording, equations, settled, label
        self.payload = template.payload
        self.loaded = equations.is_loaded(template.payload, label)
        self.columns = equations.compiled(self.loaded).columns
        count = len(equations.kinds_joints)
        self.delays = np.full(count, settled.chosen.delay) if delays is None else np.asarray(delays, dtype=float)
        self._template, self._gates, self._values = template, gates, values
        expected = 8 * (template.samples // settled.decimation) * sum(len(c) + 1 for c in equations.columns)
        self._keep_bytes = keep_bytes if expected <= keep_bytes else 0
        self._kept: tuple[RowBlock, ...] | None = None
        self._tally: Tally | None = None
        self._layout = self.new_pass().layout  # refuses missing channels and gains before anything is read
        self.read = 0.0

    def new_pass(self) -> RowPass:
        """Return a pass over the recording that has not begun."""
        return RowPass(
            self.recording, self._template, self.equations, self.settled, self.label, self.loaded, self.delays,
            self._gates, self._values,
        )  # fmt: skip

    def __iter__(self) -> Iterator[RowBlock]:
        """Yield the blocks of rows, in the order of time."""
        if self._kept is not None:
            yield from self._kept
            return
        kept: list[RowBlock] | None = []
        size = 0
        passing = self.new_pass()
        for columns in passing:
            block = self._block(columns)
            size += sum(rows.nbytes for rows in block.rows)
            if kept is not None:
                kept.append(block)
            if size > self._keep_bytes:
                kept = None
            self.read = passing.tally.read
            yield block
        self._check_some(passing.tally)
        self._tally, self.read = passing.tally, 1.0
        self._kept = None if kept is None else tuple(kept)

    @property
    def samples(self) -> int:
        """Samples that became rows, before decimation."""
        return self._tally.samples if self._tally else 0

    @property
    def masked(self) -> np.ndarray:
        """Part of the samples left out near standstill, for each equation (E,)."""
        index = self.equations.joint_index
        return np.zeros(len(index)) if self._tally is None else self._tally.masked[index] / max(1, self.samples)

    @property
    def still_joints(self) -> tuple[str, ...]:
        """Joints that never moved faster than standstill, or than the noise of the velocity."""
        if self._tally is None:
            return ()
        threshold = np.maximum(self.settled.standstill, LARGEST_NOISE * self.settled.velocity_noise)
        still = self._tally.fastest <= threshold
        return tuple(joint for joint, is_still in zip(self.equations.joints, still, strict=True) if is_still)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of how the rows came about, a sentence each."""
        return () if self._tally is None else tuple(_notes(self, self._tally))

    @cached_property
    def _array_hash(self) -> tuple[str, ...]:
        return hashes_of(self.recording)

    @property
    def sha256(self) -> tuple[str, ...]:
        """SHA-256 of every source file, or of the arrays of a recording made in memory."""
        return hashes_of(self.recording) if self._template is not self.recording else self._array_hash

    def _check_some(self, tally: Tally) -> None:
        if not tally.rows:
            raise ObservationError(
                f"recording '{self.label}' gives no row: none of its {tally.segments} segments is long enough for the "
                f"filter and a decimation by {self.settled.decimation}; record longer, or decimate less"
            )

    def _block(self, columns: DecimatedColumns) -> RowBlock:
        layout, values = self._layout, columns.values
        values[layout.temperature][~columns.known_temperature[: layout.temperatures]] = np.nan
        values.setflags(write=False)
        share = values[layout.share][layout.joint_index]
        share.setflags(write=False)
        return RowBlock(
            columns.segment,
            columns.first,
            values[-1],
            tuple(self._rows(e, values[part]) for e, part in enumerate(layout.equations)),
            share,
            *np.split(values[layout.motion], 3),
            temperature=values[layout.temperature] if layout.temperatures else None,
        )

    def _rows(self, e: int, values: np.ndarray) -> np.ndarray:
        """Return rows (k, c_e + 1) with zeros in the columns that this recording does not feel."""
        added = self._layout.added
        whole = len(self.equations.columns[e]) + added
        if len(values) == whole:
            return values.T
        spread = np.zeros((whole, values.shape[1]))
        spread[self.equations.compiled(self.loaded).places[e]] = values[:-added]
        spread[-added:] = values[-added:]
        spread.setflags(write=False)
        return spread.T


def row_source(
    recording: AnyRecording,
    equations: Equations,
    settled: ResolvedPreparation,
    label: str,
    keep_bytes: int = 32_000_000,
    gates: Gates | None = None,
    delays: np.ndarray | None = None,
    values: Mapping[str, float] | None = None,
) -> RowSource:
    """Return the rows of a recording.

    Args:
        recording: A recording, in memory or as a stream of blocks.
        equations: The equations of the model.
        settled: The preparation.
        label: Name of the recording, for factors and messages.
        keep_bytes: Rows smaller than this stay in memory after the first pass; others are computed anew at each pass.
        gates: Which samples count, by segment, where somebody else than the preparation's standstill decides it.
        delays: By how much the torque of each equation is late (E,) [s]; None: the preparation's delay for all.
        values: Values x of the columns by name, absent ones 0: every row then has ``-d(W_e x)/dt`` before y, which is
            how y changes with a delay.

    Raises:
        ObservationError: If a channel or a gain is missing, or the recording is one of other joints.
    """
    return RowSource(recording, equations, settled, label, keep_bytes, gates, delays, values)


def _notes(source: RowSource, tally: Tally) -> Iterator[str]:
    if tally.resampled:
        yield f"stamps are uneven: resampled to {source.settled.rate:g} Hz ({source.settled.chosen.resampling})"
    if tally.segments > 1:
        yield f"gaps split the recording into {tally.segments} segments"
    if tally.short_segments:
        yield f"segments left out, too short for filter and decimation: {tally.short_segments}"
    if tally.lone_samples:
        yield f"samples left out, alone between two gaps: {tally.lone_samples}"
    for joint in source.still_joints:
        yield f"joint '{joint}' never moves faster than the noise of its velocity: its friction cannot be seen here"


class RowTransform(Protocol):
    """A linear transform of neighbouring rows, W and y alike: a noise filter that whitens, say."""

    def restart(self) -> None:
        """Forget the rows before: a new run begins."""
        ...

    def push(self, rows: np.ndarray) -> np.ndarray:
        """Take rows (k, c + 1) and return those that are ready (k', c + 1)."""
        ...


Whitening = Callable[[RowSource, int], RowTransform]
"""Gives the transform for a source and the number of an equation."""


def reduced_source(
    source: RowSource, whiten: Whitening | None, blocks: int, pool: ThreadPoolExecutor | None, tell: Callable[[], None]
) -> tuple[Factor, ...]:
    """Return the factors of a recording, equation by equation, block by block.

    Args:
        source: Its rows.
        whiten: The transform of each equation's rows; none by default.
        blocks: How many blocks of time are wanted.
        pool: Threads that share the equations.
        tell: Called after every block of rows.
    """
    count = len(source.equations.kinds_joints)
    reductions = [_EquationReduction(source, e, whiten, blocks) for e in range(count)]
    for block in source:
        tasks = (pool.map if pool else map)(lambda reduction, block=block: reduction.take(block), reductions)
        for _ in tasks:
            pass
        tell()
    return tuple(factor for reduction in reductions for factor in reduction.factors())


class _EquationReduction:
    """The factors of one equation of one recording."""

    def __init__(self, source: RowSource, e: int, whiten: Whitening | None, blocks: int) -> None:
        self._source, self._e = source, e
        self._transform = None if whiten is None else whiten(source, e)
        nonzero, whole = source.columns[e], source.equations.columns[e]
        # Columns that are zero in all of this recording are left out; merging by name brings them back.
        self._nonzero = None if nonzero == whole else [*(whole.index(name) for name in nonzero), len(whole)]
        self._blocks = TimeBlocks(len(nonzero) + 1, blocks)
        self._runs_to: tuple[int, int] | None = None  # segment and row number at which the last run may go on

    def take(self, block: RowBlock) -> None:
        """Take the usable rows of a block."""
        at, length = 0, len(block.time)
        for first, rows in block.runs(self._e):
            self._elapse(first - at)
            if self._transform is not None and self._runs_to != (block.segment, block.first + first):
                self._transform.restart()
            self._add(rows)
            at = first + len(rows)
            self._runs_to = (block.segment, block.first + at)
        self._elapse(length - at)

    def _add(self, rows: np.ndarray) -> None:
        while len(rows):
            part = rows[: self._blocks.room]
            rows = rows[len(part) :]
            ready = part if self._transform is None else self._transform.push(part)
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
