"""The samples of a recording, in memory or in a file, in blocks of one size: results do not depend on readers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..errors import ObservationError
from ..recording import AnyRecording as AnyRecording
from ..recording import Recording, RecordingStream
from ..recording.kept import release
from ..recording.samples import Samples, reblocked
from ..recording.stream import recording_from_samples

BLOCK = 8_192
"""Samples in a block: little memory, and long against the memory of most filters."""


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
    optional = {
        name: None if values is None else changed(values)
        for name, values in (
            ("qd", recording.qd),
            ("reference", recording.reference),
            ("temperature", recording.temperature),
        )
    }
    torques = tuple(replace(channel, values=changed(channel.values)) for channel in recording.torques)
    time, q = changed(recording.time), changed(recording.q)
    return replace(recording, time=time, q=q, torques=torques, pose=None, **optional)


def hashes_of(recording: AnyRecording) -> tuple[str, ...]:
    """Return the SHA-256 of every file of a recording, or that of its arrays if it came from none."""
    if isinstance(recording, RecordingStream):
        result = recording.result
        return tuple(source.sha256 for source in result.sources) if result else ()
    known = tuple(source.sha256 for source in recording.sources)
    if known and all(known):
        return known
    digest = hashlib.sha256()
    for array in _arrays(recording):
        digest.update(str(array.shape).encode())
        digest.update(np.ascontiguousarray(array).data)
    return (digest.hexdigest(),)


def _arrays(recording: Recording) -> Sequence[np.ndarray]:
    channels = [channel.values for channel in recording.torques]
    return [recording.time, recording.q, *([] if recording.qd is None else [recording.qd]), *channels]


def check_joints(recording: Recording, joints: tuple[str, ...], label: str) -> None:
    """Raise an ObservationError unless the recording's rows are these joints."""
    if recording.joints != joints:
        raise ObservationError(
            f"recording '{label}' has joints {', '.join(recording.joints)}; the model has {', '.join(joints)}; "
            "is it a recording of another robot?"
        )
