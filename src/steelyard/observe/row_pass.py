"""One pass over a recording: raw blocks in, decimated columns out, and a tally of what happened on the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from ..recording import Recording, RecordingStream
from .decimated import DecimatedSegment, Gate, Layout, layout_of
from .equations import Equations, measured_torques
from .motion_stream import RawSignals, SegmentMotion
from .preparation import ResolvedPreparation
from .reading import AnyRecording, EvenStream, Piece, blocks_of

ROWS = 1024
"""Decimated rows in a block, about."""


Gates = Mapping[int, Gate]
"""Which samples of every joint's own equations count, by segment."""


@dataclass
class Tally:
    """What a pass has seen so far.

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


@dataclass(frozen=True, eq=False)
class DecimatedColumns:
    """Decimated columns ``[equations; q; qd; qdd; share (n); temperature; time]`` (rows, k) of a segment.

    Attributes:
        segment: Number of the segment.
        first: Number of the first column within it.
        values: The columns.
        known_temperature: Joints of which a temperature has been seen (n,).
    """

    segment: int
    first: int
    values: np.ndarray
    known_temperature: np.ndarray


@dataclass(eq=False)
class RowPass:
    """One pass over a recording; iterate it once, then look at ``tally``."""

    recording: AnyRecording
    template: Recording
    equations: Equations
    resolved: ResolvedPreparation
    label: str
    loaded: bool
    delays: np.ndarray
    gates: Gates | None = None
    values: Mapping[str, float] | None = None
    tally: Tally = field(init=False)
    layout: Layout = field(init=False)

    def __post_init__(self) -> None:
        joints = len(self.equations.joints)
        self.tally = Tally(0, np.zeros(joints, dtype=np.int64), np.zeros(joints))
        self._compiled = self.equations.compiled(self.loaded)
        temperatures = 0 if self.template.temperature is None else joints
        self.layout = layout_of(self._compiled, self.equations, temperatures, self.values)
        torques = measured_torques(self.equations, self.template, self.label)
        self._raw = RawSignals(self.template, self.resolved.chosen, torques, self.label, self.delays)

    def __iter__(self) -> Iterator[DecimatedColumns]:
        """Yield the decimated columns."""
        segment: _Segment | None = None
        for starts, moved in self.motion():
            if segment is None or starts:
                yield from self._close(segment)
                segment = _Segment(self)
            if moved is not None:
                yield from segment.push(moved)
        yield from self._close(segment)

    def motion(self) -> Iterator[tuple[bool, np.ndarray | None]]:
        """Yield whether a segment begins, and the columns at the full rate that are ready, if any.

        Columns are ``[q; qd; qdd; y (E); temperature; time]`` (rows, m), filtered and differentiated.
        """
        motion: SegmentMotion | None = None
        for piece in self._raw.in_time(self._pieces(), self.resolved.rate, self.resolved.trim):
            starts = motion is None or piece.starts
            if motion is None or starts:
                if motion is not None:
                    yield False, motion.flush()
                motion = SegmentMotion(self.resolved)
            yield starts, motion.push(np.concatenate([piece.values, piece.time[None]]))
        if motion is not None:
            yield False, motion.flush()

    def _pieces(self) -> Iterator[Piece]:
        even = EvenStream(self.resolved)
        taken = 0
        for block in blocks_of(self.recording):
            yield from even.push(block.time, self._raw.of(block))
            taken += block.samples
            self.tally.read = _part_read(self.recording, taken)
        yield from even.flush()
        self.tally.lone_samples, self.tally.resampled = even.lone_samples, even.resampled

    def _close(self, segment: _Segment | None) -> Iterator[DecimatedColumns]:
        if segment is None:
            return
        yield from segment.close()
        tally, rows = self.tally, segment.rows
        tally.samples += rows.samples
        tally.masked += rows.masked
        np.maximum(tally.fastest, rows.fastest, out=tally.fastest)
        tally.segments += 1
        tally.rows += segment.emitted
        tally.short_segments += segment.emitted == 0

    def begin(self) -> DecimatedSegment:
        """Return the decimation of a new segment."""
        gate = None if self.gates is None else self.gates[self.tally.segments]
        return DecimatedSegment(self.resolved, self._compiled, self.layout, gate)

    def columns(self, first: int, parts: list[np.ndarray]) -> DecimatedColumns:
        """Return decimated columns of the segment at hand."""
        values = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        return DecimatedColumns(self.tally.segments, first, values, self._raw.known_temperature.copy())


class _Segment:
    """The decimation of one segment, and the outputs that wait to fill a block."""

    def __init__(self, owner: RowPass) -> None:
        self._owner = owner
        self.rows = owner.begin()
        self._waiting: list[np.ndarray] = []
        self._count = 0
        self.emitted = 0

    def push(self, moved: np.ndarray) -> Iterator[DecimatedColumns]:
        for part in self.rows.push(moved):
            yield from self._put(part)

    def close(self) -> Iterator[DecimatedColumns]:
        for part in self.rows.flush():
            yield from self._put(part)
        yield from self._emit()

    def _put(self, part: np.ndarray) -> Iterator[DecimatedColumns]:
        self._waiting.append(part)
        self._count += part.shape[1]
        if self._count >= ROWS:
            yield from self._emit()

    def _emit(self) -> Iterator[DecimatedColumns]:
        if self._count:
            columns = self._owner.columns(self.emitted, self._waiting)
            self.emitted += self._count
            self._waiting, self._count = [], 0
            yield columns


def _part_read(recording: AnyRecording, taken: int) -> float:
    if isinstance(recording, RecordingStream):
        return min(1.0, recording.bytes_done / max(1, recording.bytes_total))
    return taken / max(1, recording.samples)
