"""Samples of a recording in blocks of one size, evenly spaced, whether the recording is in memory or in a file.

Even samples pass as they are, others are resampled; gaps split the recording into segments.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ..errors import ObservationError
from ..recording import AnyRecording as AnyRecording
from ..recording import Recording, RecordingStream
from ..recording.cache import release
from ..recording.checks.time_steps import LONGEST_BRIDGE, bridging_gap
from ..recording.record import Samples, reblocked
from ..recording.stream import recording_from_samples
from ..signals import ResampleStream, Segment
from ..signals.sampling import Method, check_time
from .preparation import ResolvedPreparation

BLOCK = 8_192
"""Samples in a block: little memory, and long against the memory of most filters."""

PIECES, PIECE, SAME_POSITION, SAME_TORQUE = 5, 10, 1e-5, 1e-3
"""Pieces of so many samples are compared: positions [rad or m], torques as a part of their spread."""
_BLOCK = 1_000_000


def template_of(recording: AnyRecording) -> Recording:
    """Return what is known of a recording before it is read: joints, channels, payload; a stream's has no samples."""
    if isinstance(recording, Recording):
        return recording
    plan = recording.plan
    nothing = tuple(np.empty((len(channel.shift), 0)) for channel in plan.channels)
    return recording_from_samples(plan, Samples(np.empty(0), nothing))


def blocks_of(recording: AnyRecording) -> Iterator[Recording]:
    """Yield a recording in blocks of ``BLOCK`` samples, the last one smaller."""
    if isinstance(recording, RecordingStream):
        for samples in reblocked(recording.samples(), BLOCK):
            yield recording_from_samples(recording.plan, samples)
        return
    for first in range(0, recording.samples, BLOCK):
        yield _with_arrays(recording, lambda array, first=first: array[..., first : first + BLOCK].copy())
        release(recording.time)


def gap_advice(recording: AnyRecording, max_gap: float) -> str:
    """Return how to bridge the gaps that split a recording, as the beginning of a remedy; empty if none can be."""
    steps, last = [0.0], np.nan
    for block in blocks_of(recording):
        own = np.diff(block.time, prepend=last)
        steps += own[own > max_gap].tolist()
        last = float(block.time[-1])
    longest = max((step for step in steps if step <= LONGEST_BRIDGE), default=0.0)
    bridged = bridging_gap(longest)
    return f"bridge gaps of up to {longest:.3g} s with max_gap = {bridged:g} under [identify], " if longest else ""


def part_of(recording: Recording, first: int, last: int) -> Recording:
    """Return samples ``first`` to ``last`` (not included) of a recording; poses are left out."""
    return _with_arrays(recording, lambda array: array[..., first:last])


def busiest_part(recording: Recording, samples: int) -> Recording:
    """Return about so many samples of a longer recording: those in which all joints move most.

    Args:
        recording: The recording.
        samples: How many samples are wanted; a recording that has no more is returned as it is.
    """
    if recording.samples <= samples:
        return recording
    ways = np.array([np.abs(np.diff(block.q)).sum(axis=1) for block in blocks_of(recording)])
    ways = ways[:, ways.any(axis=0)] / np.maximum(ways.sum(axis=0)[ways.any(axis=0)], np.finfo(float).tiny)
    sums = np.cumsum(np.vstack([np.zeros_like(ways[:1]), ways]), axis=0)
    width = max(1, min(samples // BLOCK, len(ways)))
    # The product of the shares: one joint that stands still counts more than another that moves twice as far.
    together = (sums[width:] - sums[:-width]).prod(axis=1)
    first = min(BLOCK * int(np.argmax(together)), recording.samples - samples)
    return part_of(recording, first, first + samples)


def _with_arrays(recording: Recording, changed: Callable[[np.ndarray], np.ndarray]) -> Recording:
    """Return a recording with changed arrays of samples and without poses."""
    names = ("time", "q", "qd", "reference", "temperature", "known_torque")
    arrays = {name: None if (values := getattr(recording, name)) is None else changed(values) for name in names}
    torques = tuple(replace(channel, values=changed(channel.values)) for channel in recording.torques)
    return replace(recording, torques=torques, pose=None, **arrays)


def hashes_of(recording: AnyRecording) -> tuple[str, ...]:
    """Return the SHA-256 of every file of a recording, or that of its arrays if it came from none."""
    if isinstance(recording, RecordingStream):
        result = recording.result
        return tuple(source.sha256 for source in result.sources) if result else ()
    known = tuple(source.sha256 for source in recording.sources)
    if known and all(known):
        return known
    digest = hashlib.sha256()
    further = [array for array in (recording.qd, recording.known_torque) if array is not None]
    channels = [channel.values for channel in recording.torques]
    for array in [recording.time, recording.q, *further, *channels]:
        digest.update(str(array.shape).encode())
        digest.update(np.ascontiguousarray(array).data)
    return (digest.hexdigest(),)


def shares_samples(one: Recording, other: Recording) -> bool:
    """Return whether some samples of a recording, positions and torques, stand in another one but for rounding.

    Compared are pieces of the second in which the joints move most: no two runs of a motion agree in their noise.
    """
    channels = {channel.name: channel.values for channel in one.torques}
    pairs = [(channels[own.name], own.values) for own in other.torques if own.name in channels]
    if one.joints != other.joints or not pairs or min(one.samples, other.samples) < PIECE:
        return False
    row = int(np.argmax(np.ptp(other.q, axis=1)))
    for part in np.array_split(np.arange(other.samples - PIECE + 1), PIECES):
        if not len(part):
            continue
        start = int(part[np.argmax(np.abs(other.q[row, part + PIECE - 1] - other.q[row, part]))])
        if np.abs(other.q[row, start + PIECE - 1] - other.q[row, start]) < 10 * SAME_POSITION:
            continue  # arms often rest at the same place, with the same torque
        piece, torques = slice(start, start + PIECE), [values[:, start : start + PIECE] for _, values in pairs]
        for first in range(0, one.samples - PIECE + 1, _BLOCK):
            here = one.q[row, first : min(first + _BLOCK, one.samples - PIECE + 1)]
            for k in first + np.flatnonzero(np.abs(here - other.q[row, start]) < SAME_POSITION):
                same = np.abs(one.q[:, k : k + PIECE] - other.q[:, piece]).max() < SAME_POSITION
                if same and all(
                    np.abs(theirs[:, k : k + PIECE] - own).max() <= SAME_TORQUE * values.std()
                    for (theirs, values), own in zip(pairs, torques, strict=True)
                ):
                    return True
    return False


def check_joints(recording: Recording, joints: tuple[str, ...], label: str) -> None:
    """Raise an ObservationError unless the recording's rows are these joints."""
    if recording.joints != joints:
        raise ObservationError(
            f"recording '{label}' has joints {', '.join(recording.joints)}; the model has {', '.join(joints)}; "
            "is it a recording of another robot?"
        )


JITTER = 0.01
"""An interval that differs by more than this part from the common one is uneven."""

DRIFT = 1e-4
"""So is a block whose mean interval differs by more than this: speeds would be wrong by as much."""


@dataclass(frozen=True)
class Piece:
    """Evenly sampled signals.

    Attributes:
        starts: Whether it begins a new segment; else it continues the one before.
        time: Times (m,) [s].
        values: Signals (rows, m).
    """

    starts: bool
    time: np.ndarray
    values: np.ndarray


class EvenStream:
    """Turns stamped blocks into even pieces.

    Blocks pass as they are while their stamps are even at the common rate; from the first block on that is not, the
    rest is resampled, as a new segment.

    Args:
        resolved: The preparation; its rate, longest gap and method of resampling are used.

    Attributes:
        resampled: Whether any of it was resampled.
    """

    def __init__(self, resolved: ResolvedPreparation) -> None:
        self._rate, self._max_gap = resolved.rate, resolved.max_gap
        self._method: Method = resolved.chosen.resampling
        self._last: float | None = None
        self._resampler: ResampleStream | None = None
        self._next: int | None = None

    @property
    def resampled(self) -> bool:
        """Whether any of the signal was resampled."""
        return self._resampler is not None

    @property
    def lone_samples(self) -> int:
        """Samples lost because they stood alone between two gaps."""
        return self._resampler.lone_samples if self._resampler else 0

    def push(self, time: np.ndarray, values: np.ndarray) -> list[Piece]:
        """Take stamps (m,) and signals (rows, m); return the even pieces that are ready."""
        before = [] if self._last is None else [self._last]
        stamps = check_time(np.concatenate([before, time]), least=0)
        if not len(time):
            return []
        if self._resampler is None and not is_even(stamps, self._rate, self._max_gap):
            self._resampler = ResampleStream(self._rate, self._max_gap, self._method)
        is_first, self._last = self._last is None, float(time[-1])
        if self._resampler is not None:
            return self._pieces(self._resampler, self._resampler.push(time, values))
        gaps = np.flatnonzero(np.diff(stamps) > self._max_gap) + (1 if is_first else 0)
        return _split(time, values, gaps, is_first)

    def flush(self) -> list[Piece]:
        """End the signal and return what is left."""
        return self._pieces(self._resampler, self._resampler.flush()) if self._resampler else []

    def _pieces(self, resampler: ResampleStream, segments: tuple[Segment, ...]) -> list[Piece]:
        pieces = []
        for segment in segments:
            count = segment.values.shape[1]
            assert resampler.start is not None
            time = resampler.start + (segment.first + np.arange(count)) / self._rate
            pieces.append(Piece(segment.first != self._next, time, segment.values))
            self._next = segment.first + count
        return pieces


def is_even(stamps: np.ndarray, rate: float, max_gap: float) -> bool:
    """Return whether stamps (m,) [s] are even at a rate [Hz], gaps left out."""
    steps = np.diff(stamps)
    steps = steps[steps <= max_gap] * rate
    # Stamps far from zero carry their own rounding: 1e9 s has a step of 1e-7 s.
    rounding = 4 * np.spacing(np.abs(stamps).max()) * rate
    if (np.abs(steps - 1) > JITTER + rounding).any():
        return False
    return bool(abs(steps.sum() - len(steps)) <= JITTER + rounding + DRIFT * len(steps))


def _split(time: np.ndarray, values: np.ndarray, gaps: np.ndarray, is_first: bool) -> list[Piece]:
    """Cut a block before the samples ``gaps``; the first piece starts a segment if the recording begins with it."""
    bounds = [0, *(int(k) for k in gaps if k > 0), len(time)]
    starts = is_first or bool((gaps == 0).any())
    return [Piece(starts or a > 0, time[a:b], values[:, a:b]) for a, b in pairwise(bounds)]
