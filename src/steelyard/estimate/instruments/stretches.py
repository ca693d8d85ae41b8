"""The stretches of a recording without gaps, found in one pass over its stamps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ...observe import SettledPreparation
from ...observe.reading import AnyRecording, blocks_of
from ...observe.regular import DRIFT, JITTER
from ...recording import Recording


@dataclass(frozen=True)
class Stretch:
    """A stretch of a recording without gaps.

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
    """A stretch that is still being read."""

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

    def closed(self, rate: float) -> Stretch:
        """Return the stretch; evenness is that of :func:`steelyard.observe.regular.is_even` of all its stamps."""
        allowed = JITTER + 4 * float(np.spacing(self._largest)) * rate
        is_even = self._uneven <= allowed and abs(self._drift) <= allowed + DRIFT * (self._count - 1)
        return Stretch(slice(self._first, self._first + self._count), self._start, self._end, is_even)


def stretches_of(recording: AnyRecording, settled: SettledPreparation) -> tuple[Stretch, ...]:
    """Return the stretches of a recording in the order of time: all of its samples."""
    found: list[Stretch] = []
    now: _Open | None = None
    before, taken = -np.inf, 0
    for block in blocks_of(recording):
        breaks = set(np.flatnonzero(np.diff(block.time, prepend=before) > settled.max_gap).tolist())
        for first, last in pairwise([0, *sorted(breaks), block.samples]):
            part = block.time[first:last]
            if len(part) and (now is None or first in breaks):
                found += [] if now is None else [now.closed(settled.rate)]
                now = _Open(taken + first, float(part[0]))
                part = part[1:]
            if now is not None:
                now.push(part, settled.rate)
        before, taken = float(block.time[-1]), taken + block.samples
    return (*found, now.closed(settled.rate)) if now is not None else ()


def parts_of(recording: AnyRecording, stretches: tuple[Stretch, ...]) -> Iterator[tuple[int, Recording, slice]]:
    """Yield the number of a stretch, a block that reaches into it, and which of the block's samples belong to it."""
    number, taken = 0, 0
    for block in blocks_of(recording):
        first = 0
        while first < block.samples:
            last = min(block.samples, stretches[number].samples.stop - taken)
            yield number, block, slice(first, last)
            number += taken + last == stretches[number].samples.stop
            first = last
        taken += block.samples
