"""Rows of recordings: ``[W_e y_e]`` of every equation, decimated, block by block, as often as they are needed.

A pass reads a recording in blocks, makes the samples even, filters and differentiates them, evaluates the regressor and
decimates. No more than a few blocks are in memory at a time.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby
from operator import itemgetter

import numpy as np

from ..errors import ObservationError
from ..recording import RecordingStream
from .decimated import DecimatedSegment, Gate, layout_of
from .equations import Equations, measured_torques
from .motion_stream import RawSignals, SegmentMotion, dahl_elements, warm_joints
from .preparation import ResolvedPreparation
from .reading import AnyRecording, EvenStream, Piece, blocks_of, check_joints, gap_advice, hashes_of, template_of
from .runs import MIN_SHARE, BlockCache, RowBlock, RowRun, RunFinder

ROWS = 1024
"""Decimated rows in a block, about."""

LARGEST_NOISE = 6.0
"""Noise alone does not exceed this many standard deviations, however long the recording."""

CORRELATION_LAGS = 160
"""Lags of the decimator's correlation: it has died out long before."""

Gates = Mapping[int, Gate]
"""Which samples of every joint's own equations count, by segment."""

Adjustment = Callable[[RowBlock], RowBlock]
"""Returns rows with another y, for outliers that are not to count in full, or with another W."""


@dataclass
class Tally:
    """What a pass has counted so far.

    Attributes:
        samples: Samples that became rows, before decimation.
        masked: How many of them were near standstill (n,).
        fastest: Highest speed of each joint (n,).
        segments: Number of segments.
        short_segments: How many of them were too short for a single row.
        rows: Decimated rows.
        lone_samples: Samples lost between two gaps.
        resampled: Whether stamps were uneven.
        read: Part of the recording that has been read, 0 to 1.
    """

    samples: int
    masked: np.ndarray
    fastest: np.ndarray
    segments: int = 0
    short_segments: int = 0
    rows: int = 0
    lone_samples: int = 0
    resampled: bool = False
    read: float = 0.0


class RowPass:
    """One pass over a recording; take its parts once, then look at ``tally``.

    Args:
        source: The rows of the recording.
        gates: Which samples count, by segment, instead of those that move at standstill speed or faster.
        values: Values x of the columns by name: every row then has ``-d(W_e x)/dt`` before y.

    Attributes:
        tally: What has been counted so far.
        layout: Where quantities stand in the decimated columns.
    """

    def __init__(self, source: RowSource, gates: Gates | None, values: Mapping[str, float] | None) -> None:
        self._source, self._gates = source, gates
        equations, template, label = source.equations, source.template, source.label
        joints = len(equations.joints)
        self.tally = Tally(0, np.zeros(joints, dtype=np.int64), np.zeros(joints))
        self._compiled = equations.compiled(source.loaded)
        temperatures = 0 if template.temperature is None else joints
        self.layout = layout_of(self._compiled, equations, temperatures, values)
        torques = measured_torques(equations, template, label, partial=source.partial)
        needed = warm_joints(equations.model, template, label)
        self._raw = RawSignals(template, source.resolved.chosen, torques, label, source.delays, needed)

    def parts(self) -> Iterator[tuple[int, int, np.ndarray]]:
        """Yield segment, first row and decimated columns (h, k), about ``ROWS`` rows at a time; see :meth:`block`."""
        tally = self.tally
        for number, group in groupby(self.motion(), itemgetter(0)):
            gate = None if self._gates is None else self._gates[number]
            segment = DecimatedSegment(self._source.resolved, self._compiled, self.layout, gate)
            pieces = chain.from_iterable(segment.push(columns) for _, columns in group if columns is not None)
            emitted, count, waiting = 0, 0, list[np.ndarray]()
            for piece in chain(pieces, segment.flush()):
                waiting.append(piece)
                count += piece.shape[1]
                if count >= ROWS:
                    yield number, emitted, np.concatenate(waiting, axis=1)
                    emitted, count, waiting = emitted + count, 0, []
            if count:
                yield number, emitted, np.concatenate(waiting, axis=1)
            tally.samples += segment.samples
            tally.masked += segment.masked
            np.maximum(tally.fastest, segment.fastest, out=tally.fastest)
            tally.segments += 1
            tally.rows += emitted + count
            tally.short_segments += emitted + count == 0

    def motion(self) -> Iterator[tuple[int, np.ndarray | None]]:
        """Yield the number of a segment, and its columns at the full rate that are ready, if any.

        Columns are ``[inputs of the regressor; y (E); temperature; time]`` (rows, m), filtered and differentiated; y is
        without known torques.
        """
        for number, columns in self._segments():
            yield number, None if columns is None else self._net(columns)

    def _net(self, columns: np.ndarray) -> np.ndarray:
        """Put temperatures, if the regressor depends on them, before y; take known torques of balancers off y."""
        equations, joints = self._source.equations, self.layout.joints
        model = equations.model
        if not model.needs_temperature and not model.robot.balancers:
            return columns
        first = sum(self.layout.inputs) - (joints if model.needs_temperature else 0)
        last = first + len(equations.kinds_joints)
        y = equations.net(columns[first:last], columns[:joints], self._source.label)
        warmer = columns[last : last + joints] - model.friction.temperature if model.needs_temperature else y[:0]
        return np.concatenate([columns[:first], warmer, y, columns[last:]])

    def _segments(self) -> Iterator[tuple[int, np.ndarray | None]]:
        resolved, number, motion = self._source.resolved, -1, None
        inputs = self._source.equations.inputs
        elements = dahl_elements(self._source.equations.model, changes="memory_change" in inputs)
        for piece in self._raw.in_time(self._pieces(), resolved.rate, resolved.trim):
            if motion is None or piece.starts:
                if motion is not None:
                    yield number, motion.flush()
                number, motion = number + 1, SegmentMotion(resolved, elements, jerk="jerk" in inputs)
            yield number, motion.push(np.concatenate([piece.values, piece.time[None]]))
        if motion is not None:
            yield number, motion.flush()

    def _pieces(self) -> Iterator[Piece]:
        even, recording, taken = EvenStream(self._source.resolved), self._source.recording, 0
        for block in blocks_of(recording):
            yield from even.push(block.time, self._raw.of(block))
            taken += block.samples
            if isinstance(recording, RecordingStream):
                self.tally.read = min(1.0, recording.bytes_done / max(1, recording.bytes_total))
            else:
                self.tally.read = taken / max(1, recording.samples)
        yield from even.flush()
        self.tally.lone_samples, self.tally.resampled = even.lone_samples, even.resampled

    def block(self, segment: int, first: int, values: np.ndarray) -> RowBlock:
        """Return rows from decimated columns ``[equations; motion; share (n); temperature; time]`` (h, k)."""
        layout = self.layout
        values[layout.temperature][~self._raw.known_temperature[: layout.temperatures]] = np.nan
        values.setflags(write=False)
        share = values[layout.share][layout.joint_index]
        share.setflags(write=False)
        rows = tuple(self._rows(e, values[part]) for e, part in enumerate(layout.equations))
        temperature = values[layout.temperature] if layout.temperatures else None
        q, qd, qdd = layout.split_motion(values[layout.motion])[:3]
        return RowBlock(segment, first, values[-1], rows, share, q, qd, qdd, temperature)

    def _rows(self, e: int, values: np.ndarray) -> np.ndarray:
        """Return rows (k, c_e + 1) with zeros in the columns that are structurally zero in this recording."""
        added = self.layout.added
        whole = len(self._source.equations.columns[e]) + added
        if len(values) == whole:
            return values.T
        spread = np.zeros((whole, values.shape[1]))
        spread[self._compiled.places[e]] = values[:-added]
        spread[-added:] = values[-added:]
        spread.setflags(write=False)
        return spread.T


class RowSource:
    """The rows of one recording. Make one with :func:`row_source`.

    Iterating gives :class:`RowBlock` after block, :meth:`runs` their usable rows; every pass gives the same bits.
    ``samples``, ``masked``, ``notes``, ``still_joints`` and the ``sha256`` of a stream are known after one pass and
    empty before.

    Attributes:
        recording: Where the samples come from.
        template: What is known of it before it is read.
        equations: The equations.
        resolved: The preparation.
        label: Name of the recording.
        payload: Name of the payload it carries, None if none.
        loaded: Whether its rows have payload columns.
        columns: For each equation, the columns that can be other than zero in this recording.
        delays: By how much the torque of each equation is taken to be late against the positions (E,) [s].
        partial: Whether torques may be missing.
        adjustment: What is done to every block of rows before it is given away; None: nothing.
        read: Part of the recording that the current pass has read, 0 to 1.
    """

    def __init__(
        self,
        recording: AnyRecording,
        equations: Equations,
        resolved: ResolvedPreparation,
        label: str,
        cache_bytes: int,
        gates: Gates | None = None,
        delays: np.ndarray | None = None,
        values: Mapping[str, float] | None = None,
        partial: bool = False,
    ) -> None:
        self.partial = partial
        self.adjustment: Adjustment | None = None
        self.template = template = template_of(recording)
        check_joints(template, equations.joints, label)
        if resolved.joints != equations.joints:
            raise ObservationError(
                f"preparation of joints {', '.join(resolved.joints)}; the model has {', '.join(equations.joints)}"
            )
        self.recording, self.equations, self.resolved, self.label = recording, equations, resolved, label
        self.payload = template.payload
        self.loaded = equations.is_loaded(template.payload, label)
        self.columns = equations.compiled(self.loaded).columns
        if delays is None:
            own = resolved.chosen.joint_delays
            delays = np.array([resolved.chosen.delay + own.get(joint, 0.0) for _, joint in equations.kinds_joints])
        self.delays = np.asarray(delays, dtype=float)
        self._gates, self._values = gates, values
        self._cache_bytes = cache_bytes
        self._cached: BlockCache | None = None
        self._tally: Tally | None = None
        self.new_pass()  # refuses missing channels and gains before anything is read
        self.read = 0.0

    def new_pass(self) -> RowPass:
        """Return a pass over the recording that has not begun."""
        return RowPass(self, self._gates, self._values)

    def adjusted(self, adjustment: Adjustment | None) -> RowSource:
        """Return the same rows, each block adjusted; rows that were read already are not read again."""
        other = copy.copy(self)
        other.adjustment = adjustment
        return other

    def __iter__(self) -> Iterator[RowBlock]:
        """Yield the blocks of rows, in the order of time."""
        return self._blocks() if self.adjustment is None else map(self.adjustment, self._blocks())

    def _blocks(self) -> Iterator[RowBlock]:
        """Yield the blocks of rows as they were measured."""
        if self._cached is not None:
            yield from self._cached
            return
        passing = self.new_pass()
        cache = BlockCache(self._cache_bytes, passing.block)
        for part in passing.parts():
            block = cache.put(*part)
            self.read = passing.tally.read
            yield block
        if not passing.tally.rows:
            advice = f"{gap_advice(self.recording, self.resolved.max_gap)}record longer, or decimate less"
            raise ObservationError(
                f"recording '{self.label}' gives no row: none of its {passing.tally.segments} segments is long enough "
                f"for the filter and a decimation by {self.resolved.decimation}; {advice}"
            )
        self._tally, self.read = passing.tally, 1.0
        self._cached = cache if cache.is_whole else None

    def runs(self, equations: Iterable[int] | None = None, least: float | np.ndarray = MIN_SHARE) -> Iterator[RowRun]:
        """Yield the usable rows of all equations, block by block; see :meth:`block_runs`."""
        for _, runs in self.block_runs(equations, least):
            yield from runs

    def block_runs(
        self, equations: Iterable[int] | None = None, least: float | np.ndarray = MIN_SHARE
    ) -> Iterator[tuple[RowBlock, list[RowRun]]]:
        """Yield every block with the runs of usable rows in it, one equation after the other.

        Args:
            equations: Numbers of the equations; all by default.
            least: Least share of a usable row: one number, or one for each equation (E,).
        """
        count = len(self.equations.columns)
        least = np.broadcast_to(least, count)
        numbers = range(count) if equations is None else equations
        finders = [RunFinder(self.equations, e, self.label, float(least[e])) for e in numbers]
        for block in self:
            yield block, [run for finder in finders for run in finder.runs(block)]

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
        threshold = np.maximum(self.resolved.standstill, LARGEST_NOISE * self.resolved.velocity_noise)
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
        return hashes_of(self.recording) if self.template is not self.recording else self._array_hash


def row_source(
    recording: AnyRecording,
    equations: Equations,
    resolved: ResolvedPreparation,
    label: str,
    cache_bytes: int = 32_000_000,
    gates: Gates | None = None,
    delays: np.ndarray | None = None,
    values: Mapping[str, float] | None = None,
    partial: bool = False,
) -> RowSource:
    """Return the rows of a recording.

    Args:
        recording: A recording, in memory or as a stream of blocks.
        equations: The equations of the model.
        resolved: The preparation.
        label: Name of the recording, for factors and messages.
        cache_bytes: Rows smaller than this stay in memory after the first pass, others in a temporary file; 0: they are
            computed anew at each pass, as where that file has no room.
        gates: Which samples count, by segment, where it is not decided by the preparation's standstill.
        delays: By how much the torque of each equation is late (E,) [s]; None: the preparation's delay for all.
        values: Values x of the columns by name, absent ones 0: every row then has ``-d(W_e x)/dt`` before y, which is
            how y changes with a delay.
        partial: Whether torques may be missing, for predictions: y is then zero in their equations.

    Raises:
        ObservationError: If a channel or a gain is missing, or the recording is one of other joints.
    """
    return RowSource(recording, equations, resolved, label, cache_bytes, gates, delays, values, partial)


def decimator_correlation(source: RowSource) -> np.ndarray:
    """Return the autocorrelation (K + 1,) that the decimator gives to white noise."""
    return source.resolved.decimation_filter.noise_correlation(CORRELATION_LAGS)


def _notes(source: RowSource, tally: Tally) -> Iterator[str]:
    if tally.resampled:
        yield f"stamps are uneven: resampled to {source.resolved.rate:.4g} Hz ({source.resolved.chosen.resampling})"
    if tally.segments > 1:
        yield f"gaps split the recording into {tally.segments} segments"
    if tally.short_segments:
        yield f"segments left out, too short for filter and decimation: {tally.short_segments}"
    if tally.lone_samples:
        yield f"samples left out, alone between two gaps: {tally.lone_samples}"
    for joint in source.still_joints:
        yield f"joint '{joint}' never moves faster than the noise of its velocity: its friction is not identifiable"
