"""References: the commanded motion of a recording, segment by segment, at the controller's instants.

Segments without gaps are found in one pass over the stamps. Between samples the reference is a cubic spline, read in
blocks, which is that of the whole to rounding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from scipy.interpolate import CubicSpline

from ...errors import EstimateError
from ...observe import Preparation, ResolvedPreparation, resolve_preparation
from ...observe.reading import BLOCK, DRIFT, JITTER, AnyRecording, blocks_of, template_of
from ...recording import Recording
from ...recording.cache import CachedColumns
from ...signals import LowPass, LowPassStream, low_pass
from ...simulation import Outline, OutlineStream


@dataclass(frozen=True)
class TimeSegment:
    """A segment of a recording without gaps.

    Attributes:
        samples: Which samples of the recording it is.
        start: Time of its first sample [s].
        end: Time of its last sample [s].
        is_even: Whether its stamps are even at the common rate, as those of rows must be to pass as they are.
    """

    samples: slice
    start: float
    end: float
    is_even: bool

    @property
    def count(self) -> int:
        """Number of samples."""
        return self.samples.stop - self.samples.start

    def grid(self, rate: float) -> int:
        """Return the number of samples that cover it on an even grid of a rate [Hz]."""
        return self.count if self.is_even else int(np.ceil((self.end - self.start) * rate - 1e-9)) + 1


class _Open:
    """A segment that is still being read."""

    def __init__(self, first: int, start: float) -> None:
        self._first, self._start, self._end = first, start, start
        self._count = 1
        self._uneven, self._drift, self._largest = 0.0, 0.0, abs(start)

    def push(self, time: np.ndarray, rate: float) -> None:
        """Take the next stamps (m,)."""
        if len(time):
            excess = np.diff(time, prepend=self._end) * rate - 1
            self._uneven = max(self._uneven, float(np.abs(excess).max()))
            self._drift += float(excess.sum())
            self._largest = max(self._largest, float(np.abs(time).max()))
            self._end, self._count = float(time[-1]), self._count + len(time)

    def closed(self, rate: float) -> TimeSegment:
        """Return the segment; evenness is that of :func:`steelyard.observe.reading.is_even` of all its stamps."""
        allowed = JITTER + 4 * float(np.spacing(self._largest)) * rate
        is_even = self._uneven <= allowed and abs(self._drift) <= allowed + DRIFT * (self._count - 1)
        return TimeSegment(slice(self._first, self._first + self._count), self._start, self._end, is_even)


def segments_of(recording: AnyRecording, resolved: ResolvedPreparation) -> tuple[TimeSegment, ...]:
    """Return the segments of a recording in the order of time: all of its samples."""
    found: list[TimeSegment] = []
    now: _Open | None = None
    before, taken = -np.inf, 0
    for block in blocks_of(recording):
        breaks = set(np.flatnonzero(np.diff(block.time, prepend=before) > resolved.max_gap).tolist())
        for first, last in pairwise([0, *sorted(breaks), block.samples]):
            part = block.time[first:last]
            if len(part) and (now is None or first in breaks):
                found += [] if now is None else [now.closed(resolved.rate)]
                now = _Open(taken + first, float(part[0]))
                part = part[1:]
            if now is not None:
                now.push(part, resolved.rate)
        before, taken = float(block.time[-1]), taken + block.samples
    return (*found, now.closed(resolved.rate)) if now is not None else ()


def parts_of(recording: AnyRecording, segments: tuple[TimeSegment, ...]) -> Iterator[tuple[int, Recording, slice]]:
    """Yield the number of a segment, a block that reaches into it, and which of the block's samples belong to it."""
    number, taken = 0, 0
    for block in blocks_of(recording):
        first = 0
        while first < block.samples:
            last = min(block.samples, segments[number].samples.stop - taken)
            yield number, block, slice(first, last)
            number += taken + last == segments[number].samples.stop
            first = last
        taken += block.samples


REACH = 48
"""Points on either side that a value depends on: a spline's influence falls by 3.7 from point to point."""


class SplineStream:
    """Reads a cubic spline behind the points that come in.

    Args:
        orders: How many derivatives are read, the value itself included.
    """

    def __init__(self, orders: int = 1) -> None:
        self._orders = orders
        self._places = np.empty(0)
        self._values: np.ndarray | None = None
        self._has_ended = False

    @property
    def limit(self) -> float:
        """Place up to which the spline can be read: what comes later does not change it."""
        if self._has_ended:
            return np.inf
        return float(self._places[-1 - REACH]) if len(self._places) > REACH else -np.inf

    @property
    def last(self) -> float:
        """Place of the last point."""
        return float(self._places[-1])

    def push(self, places: np.ndarray, values: np.ndarray) -> None:
        """Take points: places (m,), which increase, and values (rows, m)."""
        self._places = np.concatenate([self._places, places])
        self._values = values if self._values is None else np.concatenate([self._values, values], axis=1)

    def end(self) -> None:
        """Say that no more points come."""
        self._has_ended = True

    def read(self, places: np.ndarray) -> np.ndarray:
        """Return values, first derivatives ... one below the other (orders * rows, k) at places (k,) up to the limit.

        Places increase from call to call; points that later ones do not need are forgotten.
        """
        assert self._values is not None
        curve = CubicSpline(self._places, self._values, axis=1)
        found = np.concatenate([curve(places, order) for order in range(self._orders)])
        done = int(np.searchsorted(self._places, places[-1], side="right")) - 1 - REACH
        if done > 0:
            self._places, self._values = self._places[done:].copy(), self._values[:, done:].copy()
        return found


# A segment shorter than this gives no rows worth a simulation.
_LEAST_SAMPLES = 8


@dataclass(frozen=True)
class SegmentReference:
    """A segment of a recording with its commanded motion.

    Attributes:
        segment: The segment.
        columns: Where its reference lies among the stored columns: at the control instants of an even grid, or at the
            samples themselves where it is not followed.
        stamps: Where its stamps lie among those stored; nowhere where they are even.
        outline: Outline of the reference; None where the segment is too short to be simulated, so that the reference
            stands for the motion.
    """

    segment: TimeSegment
    columns: slice
    stamps: slice
    outline: Outline | None


@dataclass(frozen=True, eq=False)
class References:
    """All segments of a recording.

    Attributes:
        every: The references, in the order of time.
        reference: q, qd, qdd (3 n rows), segments one after the other.
        stamps: Times since the start of a segment, in samples (1 row), of those with uneven ones.
        recorded: Outline of the recorded positions.
    """

    every: tuple[SegmentReference, ...]
    reference: CachedColumns
    stamps: CachedColumns
    recorded: Outline

    def followed(self, first: int, last: int) -> np.ndarray:
        """Return which of the samples ``first`` to ``last`` (not included) are simulated (k,)."""
        places = np.arange(first, last)
        ends = np.array([part.segment.samples.stop for part in self.every])
        is_followed = np.array([part.outline is not None for part in self.every])
        return is_followed[np.searchsorted(ends, places, side="right")]


def references_of(recording: AnyRecording, resolved: ResolvedPreparation, every: int, label: str) -> References:
    """Return the segments of a recording with their commanded motion.

    The reference is the recorded one, or the measured positions, low-passed, where none was recorded. Between samples
    it is a cubic spline, whose derivatives are its velocities and accelerations.

    Args:
        recording: The recording; two passes are made over it, and memory does not grow with it.
        resolved: Its preparation.
        every: Control periods between two samples.
        label: Name of the recording, for messages.

    Raises:
        EstimateError: If the reference has values that are no numbers.
    """
    segments, joints = segments_of(recording, resolved), len(resolved.joints)
    smooth = None
    if template_of(recording).reference is None:  # measured positions, without delay
        cutoff = resolved.cutoff or resolve_preparation(Preparation(rate=resolved.rate), [recording]).cutoff
        smooth = low_pass(resolved.rate, cutoff, resolved.chosen.order)
    reference, stamps = CachedColumns(3 * joints), CachedColumns(1)
    recorded = OutlineStream(joints, segments[-1].samples.stop if segments else 0)
    found: list[SegmentReference] = []
    writer: _Writer | None = None
    for number, block, part in parts_of(recording, segments):
        if writer is None or number > len(found):
            found += [] if writer is None else [writer.reference()]
            writer = _Writer(segments[number], resolved.rate, every, smooth, (reference, stamps))
        writer.push(block.time[part], _commanded(block, label)[:, part])
        recorded.push(block.q[:, part])
    found += [] if writer is None else [writer.reference()]
    return References(tuple(found), reference, stamps, recorded.outline())


def _commanded(block: Recording, label: str) -> np.ndarray:
    commanded = block.q if block.reference is None else block.reference
    if not np.isfinite(commanded).all():
        joint = block.joints[int(np.flatnonzero(~np.isfinite(commanded).all(axis=1))[0])]
        raise EstimateError(
            f"recording '{label}': the reference of joint '{joint}' has values that are no numbers; cut these samples "
            "out, or leave the reference channel away"
        )
    return commanded


class _Writer:
    """Stores the reference of one segment while its samples pass: made even, low-passed, read at the control instants.

    Args:
        segment: The segment.
        rate: Rate of the recording [Hz].
        every: Control periods between two samples.
        smooth: Low-pass of the samples, if there is one.
        stores: Where reference and stamps are stored.
    """

    def __init__(
        self, segment: TimeSegment, rate: float, every: int, smooth: LowPass | None, stores: tuple[CachedColumns, ...]
    ) -> None:
        self._segment, self._rate, self._every = segment, rate, every
        self._reference, self._stamps = stores
        self._first, self._grid = tuple(columns.count for columns in stores), segment.grid(rate)
        shortest, count = _LEAST_SAMPLES, segment.count
        if smooth is not None:
            shortest, count = max(shortest, sum(smooth.ends()) + 1, smooth.pad + 1), min(count, self._grid)
        self._is_followed = count >= shortest
        self._even = None if segment.is_even else SplineStream()
        self._smooth = None if smooth is None else LowPassStream(smooth)
        self._curve, self._taken = SplineStream(orders=3), 0
        self._outline = OutlineStream(self._reference.rows // 3, self._grid * every, every)
        self._gridded = self._read = 0

    def push(self, time: np.ndarray, commanded: np.ndarray) -> None:
        """Take stamps (m,) [s], and the positions commanded then (n, m)."""
        if not self._is_followed:
            self._reference.put(np.concatenate([commanded, np.zeros((2 * len(commanded), commanded.shape[1]))]))
        elif self._even is None:
            self._take(commanded)
        else:
            stamps = (time - self._segment.start) * self._rate
            self._stamps.put(stamps[None])
            self._even.push(stamps, commanded)
            self._take_grid(int(max(np.floor(self._even.limit) + 1, 0)))

    def reference(self) -> SegmentReference:
        """End the segment and return its reference."""
        outline = None
        if self._is_followed:
            if self._even is not None:
                self._even.end()
                self._take_grid(self._grid)
            if self._smooth is not None:
                self._put(self._smooth.flush())
            self._curve.end()
            self._write(self._taken)
            outline = self._outline.outline()
        columns, stamps = map(slice, self._first, (self._reference.count, self._stamps.count))
        return SegmentReference(self._segment, columns, stamps, outline)

    def _take_grid(self, stop: int) -> None:
        if self._even is not None and stop > self._gridded:
            places = np.arange(self._gridded, stop, dtype=float)
            self._gridded = stop
            self._take(self._even.read(np.minimum(places, self._even.last)))

    def _take(self, commanded: np.ndarray) -> None:
        self._put(commanded if self._smooth is None else self._smooth.push(commanded))

    def _put(self, smooth: np.ndarray) -> None:
        if smooth.shape[1]:
            self._curve.push(np.arange(self._taken, self._taken + smooth.shape[1], dtype=float), smooth)
            self._taken += smooth.shape[1]
            self._write(int(max(self._curve.limit, 0.0)))

    def _write(self, stop: int) -> None:
        """Store the reference from the sample where it ended to another."""
        if stop <= self._read:
            return
        instants = np.arange(self._read * self._every, stop * self._every) / self._every
        columns = self._curve.read(np.minimum(instants, self._taken - 1))
        size = len(columns) // 3
        columns *= np.repeat(self._rate ** np.arange(3.0), size)[:, None]
        self._outline.push(columns[:size])
        self._reference.put(columns)
        self._read = stop


def at_stamps(part: SegmentReference, stamps: CachedColumns, grid: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield signals (rows, m) of the even grid, which come in blocks, at the samples of a segment."""
    if part.segment.is_even:
        yield from grid
        return
    curve, taken, done = SplineStream(), 0, part.stamps.start
    for block in chain(grid, [None]):
        if block is None:
            curve.end()
        else:
            curve.push(np.arange(taken, taken + block.shape[1], dtype=float), block)
            taken += block.shape[1]
        while done < part.stamps.stop:
            places = stamps.read(done, min(done + BLOCK, part.stamps.stop))[0]
            places = places[places <= curve.limit]
            if not len(places):
                break
            yield curve.read(places)
            done += len(places)


Torques = Iterable[tuple[np.ndarray, np.ndarray]]
"""Times (m,) [s], which increase, and torques (n, m), block by block."""


class HeldTorques:
    """Torques between the times at which they are known; none before the first and after the last.

    Args:
        blocks: Times and torques.
    """

    def __init__(self, blocks: Torques) -> None:
        self._blocks = iter(blocks)
        self._times, self._torques = next(self._blocks)
        self._has_ended = False

    def at(self, instants: np.ndarray) -> np.ndarray:
        """Return torques (n, k) at instants (k,) [s], which increase from call to call."""
        while not self._has_ended and self._times[-1] < instants[-1]:
            following = next(self._blocks, None)
            if following is None:
                self._has_ended = True
                break
            self._times = np.concatenate([self._times, following[0]])
            self._torques = np.concatenate([self._torques, following[1]], axis=1)
        found = np.array([np.interp(instants, self._times, torque, left=0.0, right=0.0) for torque in self._torques])
        done = max(0, int(np.searchsorted(self._times, instants[-1], side="right")) - 1)
        self._times, self._torques = self._times[done:].copy(), self._torques[:, done:].copy()
        return found
