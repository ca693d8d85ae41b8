"""What rounds go through again and again, kept for as long as they last: few numbers in memory, many in a file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from tempfile import SpooledTemporaryFile
from weakref import finalize

import numpy as np

from ...errors import EstimateError
from ...observe import row_source
from ...observe.reading import BLOCK, AnyRecording
from ...recording import Recording, RecordingStream
from ...recording.plan import Plan
from ...recording.samples import Samples
from ..evidence import Evidence

IN_MEMORY = 4_000_000
"""Bytes of columns beyond which they go to a temporary file."""


class KeptColumns:
    """Columns of numbers that are read as often as wanted; memory does not grow with them.

    The temporary file has no name, lies where ``TMPDIR`` says, and is gone with the columns.

    Args:
        rows: Numbers in a column.

    Attributes:
        rows: Numbers in a column.
        count: Columns kept.
    """

    def __init__(self, rows: int) -> None:
        self.rows, self.count = rows, 0
        self._file = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115  # closed when the columns are gone
        finalize(self, self._file.close)

    def put(self, columns: np.ndarray) -> None:
        """Add columns (rows, m) at the end.

        Raises:
            EstimateError: If the temporary file cannot hold them.
        """
        try:
            self._file.seek(0, os.SEEK_END)
            self._file.write(np.ascontiguousarray(columns.T).data)
        except OSError as error:
            raise EstimateError(
                f"cannot keep {8e-6 * self.rows * (self.count + columns.shape[1]):.0f} MB in a temporary file: "
                f"{error.strerror}; make room there, or set TMPDIR to a folder with more"
            ) from error
        self.count += columns.shape[1]

    def read(self, first: int, last: int) -> np.ndarray:
        """Return columns ``first`` to ``last`` (not included) (rows, k), those that there are."""
        last = min(last, self.count)
        self._file.seek(8 * self.rows * first)
        numbers = np.frombuffer(self._file.read(8 * self.rows * max(0, last - first)))
        return numbers.reshape(-1, self.rows).T

    def blocks(self, first: int, last: int, size: int = BLOCK) -> Iterator[np.ndarray]:
        """Yield columns ``first`` to ``last`` (not included) in blocks (rows, size), the last one smaller."""
        for begin in range(first, last, size):
            yield self.read(begin, min(begin + size, last))


def kept_columns(rows: int, blocks: Iterable[np.ndarray]) -> KeptColumns:
    """Keep columns that come in blocks (rows, m)."""
    kept = KeptColumns(rows)
    for block in blocks:
        kept.put(block)
    return kept


class KeptStream(RecordingStream):
    """A stream read once and kept as numbers, with another motion in the place of the recorded one if one is given.

    Args:
        plan: How it was read.
        kept: Times and all channels, one below the other.
        motion: Positions, and velocities if there are any, of every sample.
    """

    def __init__(self, plan: Plan, kept: KeptColumns, motion: KeptColumns | None = None) -> None:
        super().__init__(plan, None)
        self.kept, self._motion, self._done = kept, motion, 0.0

    @property
    def bytes_done(self) -> int:
        """How much has been read, as part of the size of the files."""
        return round(self._done * self.bytes_total)

    def samples(self) -> Iterator[Samples]:
        """Yield the blocks as bare samples."""
        roles = [channel.setup.role for channel in self.plan.channels]
        ends = np.cumsum([1, *(len(channel.shift) for channel in self.plan.channels)])
        joints = len(self.plan.joints)
        for first in range(0, self.kept.count, BLOCK):
            time, *channels = np.split(self.kept.read(first, first + BLOCK), ends[:-1])
            if self._motion is not None:
                motion = self._motion.read(first, first + BLOCK)
                moved = {"q": motion[:joints], "qd": motion[joints:]}
                channels = [moved.get(role, channel) for role, channel in zip(roles, channels, strict=True)]
            self._done = (first + len(time[0])) / self.kept.count
            yield Samples(time[0], tuple(channels))

    def moved(self, motion: KeptColumns) -> KeptStream:
        """Return the same samples with another motion."""
        return KeptStream(self.plan, self.kept, motion)


def kept_stream(stream: RecordingStream) -> KeptStream:
    """Read a stream once, for passes that follow."""
    rows = 1 + sum(len(channel.shift) for channel in stream.plan.channels)
    blocks = (np.concatenate([samples.time[None], *samples.channels]) for samples in stream.samples())
    return KeptStream(stream.plan, kept_columns(rows, blocks))


def with_kept_streams(evidence: Evidence) -> Evidence:
    """Return the evidence with every stream kept: text would be parsed in every pass of every round."""
    sources = tuple(
        row_source(kept_stream(source.recording), source.equations, source.settled, source.label)
        if isinstance(source.recording, RecordingStream)
        else source
        for source in evidence.sources
    )
    return replace(evidence, sources=sources)


def with_motion(recording: AnyRecording, motion: KeptColumns) -> AnyRecording:
    """Return a recording in memory, or a kept one, with another motion (n or 2 n rows, N) and no pose or reference."""
    if isinstance(recording, Recording):
        joints, values = len(recording.joints), motion.read(0, motion.count)
        qd = None if recording.qd is None else values[joints:]
        return replace(recording, q=values[:joints], qd=qd, reference=None, pose=None, sources=(), findings=())
    assert isinstance(recording, KeptStream)
    return recording.moved(motion)
