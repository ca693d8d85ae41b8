"""The samples of a recording, in memory or in a file, in blocks of one size: results do not depend on readers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..errors import ObservationError
from ..recording import AnyRecording as AnyRecording
from ..recording import Recording, RecordingStream
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
        yield part_of(recording, first, first + BLOCK)


def part_of(recording: Recording, first: int, last: int) -> Recording:
    """Return samples ``first`` to ``last`` (not included) of a recording; poses are left out."""
    part = slice(first, last)
    optional = {
        name: None if values is None else values[:, part]
        for name, values in (
            ("qd", recording.qd),
            ("reference", recording.reference),
            ("temperature", recording.temperature),
        )
    }
    torques = tuple(replace(channel, values=channel.values[:, part]) for channel in recording.torques)
    return replace(recording, time=recording.time[part], q=recording.q[:, part], torques=torques, pose=None, **optional)


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
