"""Samples on the way through: stamps and channel arrays, cut and joined together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Samples:
    """Stamps (N,) and the arrays (rows, N) of every channel of a plan."""

    time: np.ndarray
    channels: tuple[np.ndarray, ...]

    @property
    def count(self) -> int:
        """Number of samples."""
        return self.time.size

    def part(self, first: int, last: int) -> Samples:
        """Return samples ``first`` to ``last`` (not included), without copying."""
        return Samples(self.time[first:last], tuple(values[:, first:last] for values in self.channels))

    def chosen(self, keep: np.ndarray) -> Samples:
        """Return the samples where ``keep`` is true."""
        return Samples(self.time[keep], tuple(values[:, keep] for values in self.channels))


def joined(parts: Sequence[Samples]) -> Samples:
    """Return samples one after the other."""
    if len(parts) == 1:
        return parts[0]
    channels = zip(*(part.channels for part in parts), strict=True)
    return Samples(np.concatenate([part.time for part in parts]), tuple(np.concatenate(c, axis=1) for c in channels))


class Reblocker:
    """Turns blocks of any size into blocks of one size, each with the last ``overlap`` samples of the one before.

    Checks that see the same blocks whatever the reader's are give the same answer to the last bit.
    """

    def __init__(self, size: int, overlap: int = 0) -> None:
        self._size = size
        self._overlap = overlap
        self._pending: list[Samples] = []
        self._count = 0

    def take(self, samples: Samples) -> Iterator[Samples]:
        """Add samples; yield the blocks that are now full."""
        first = 0
        if self._pending:
            missing = self._size - self._count
            if samples.count < missing:
                self._keep(samples)
                return
            yield joined([*self._pending, samples.part(0, missing)])
            first = missing - self._overlap
            self._pending, self._count = [], 0
        while samples.count - first >= self._size:
            yield samples.part(first, first + self._size)
            first += self._size - self._overlap
        if first < samples.count:
            self._keep(samples.part(first, samples.count))

    def _keep(self, samples: Samples) -> None:
        self._pending.append(_copied(samples))
        self._count += samples.count

    def rest(self) -> Iterator[Samples]:
        """Yield what is left."""
        if self._count:
            yield joined(self._pending)
        self._pending, self._count = [], 0


def _copied(samples: Samples) -> Samples:
    """Return a copy, so that a small rest does not keep a large block alive."""
    return Samples(samples.time.copy(), tuple(values.copy() for values in samples.channels))


def reblocked(stream: Iterable[Samples], size: int) -> Iterator[Samples]:
    """Yield the samples of a stream in blocks of one size; the last may be smaller."""
    blocks = Reblocker(size)
    for samples in stream:
        yield from blocks.take(samples)
    yield from blocks.rest()
