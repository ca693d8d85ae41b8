"""Averages of the periods of a recording, block by block: memory grows with the period, not with the log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ...observe import RowSource, raw_samples

# Of a stream, at least so many mean periods of neighbours are looked at to see whether it repeats.
_LEAST_GROUPS = 8


@dataclass(eq=False)
class LongestSegment:
    """The longest segment of a recording without a gap.

    Attributes:
        first: Number of its first sample.
        count: Number of its samples.
        parts: Positions (n, k) at its beginning, block by block: all of it, or as many as were wanted.
        samples: Samples of the whole recording.
    """

    first: int
    count: int = 0
    parts: list[np.ndarray] = field(default_factory=list)
    samples: int = 0

    @property
    def head(self) -> np.ndarray:
        """Positions (n, k) at its beginning."""
        return np.concatenate(self.parts, axis=1)


def longest_segment(source: RowSource, most: int | None) -> LongestSegment:
    """Return the longest segment of a recording: one pass.

    Args:
        source: The recording.
        most: Positions of its beginning that are wanted at most; None: all.
    """
    best, now, taken = LongestSegment(0), LongestSegment(0), 0
    for block in raw_samples(source):
        if block.starts:
            now = LongestSegment(taken)
        if most is None or now.count < most:
            now.parts.append(block.q if most is None else block.q[:, : most - now.count].copy())
        now.count += block.q.shape[1]
        taken += len(block.time)
        if now.count > best.count:
            best = now
    best.samples = taken
    return best


@dataclass(frozen=True, eq=False)
class AveragedPeriods:
    """Whole periods averaged: n joints, E equations, P samples a period.

    Attributes:
        mean: Mean period of positions and torques (n + E, P).
        pooled_variance: Variance of a single sample from the spread between periods (n + E,).
        repeated: Positions (n, k), period after period: all there are, or mean periods of so many neighbours that they
            are few enough.
    """

    mean: np.ndarray
    pooled_variance: np.ndarray
    repeated: np.ndarray


def averaged_periods(
    source: RowSource, segment: LongestSegment, samples: int, periods: int, most: int | None
) -> AveragedPeriods:
    """Average the periods of a recording: one pass, in memory of some periods.

    Args:
        source: The recording.
        segment: Which of its samples are used.
        samples: Samples of a period.
        periods: Whole periods.
        most: Samples of ``repeated``, about, if that is more than a few periods; None: all.
    """
    joints, place = len(source.equations.joints), -segment.first
    sums = _PeriodSums(joints + len(source.equations.kinds_joints), samples, periods)
    groups = _Groups(None if most is None else max(_LEAST_GROUPS, most // (2 * samples)))
    for block in raw_samples(source):
        signals = np.concatenate([block.q, block.y])[:, max(0, -place) : max(0, segment.count - place)]
        place += len(block.time)
        for period in sums.push(signals):
            groups.push(period[:joints])
    tail = [part[:joints] for part in sums.left_over] if groups.each == 1 else []
    variance = sums.squares / (periods - 1)
    return AveragedPeriods(sums.mean, variance.mean(axis=1), np.concatenate([*groups.means, *tail], axis=1))


class _PeriodSums:
    """Mean and spread of periods at every point of the period, updated by one period after the other (Welford)."""

    def __init__(self, rows: int, samples: int, periods: int) -> None:
        self.mean, self.squares = np.zeros((rows, samples)), np.zeros((rows, samples))
        self.left_over: list[np.ndarray] = []
        self._open, self._filled = np.empty((rows, samples)), 0
        self._count, self._periods = 0, periods

    def push(self, signals: np.ndarray) -> Iterator[np.ndarray]:
        """Take signals (rows, m) and yield the periods (rows, P) that are complete."""
        first, count, size = 0, signals.shape[1], self.mean.shape[1]
        while first < count and self._count < self._periods:
            last = min(count, first + size - self._filled)
            self._open[:, self._filled : self._filled + last - first] = signals[:, first:last]
            self._filled, first = self._filled + last - first, last
            if self._filled == size:
                self._close()
                yield self._open.copy()
        if first < count:
            self.left_over.append(signals[:, first:])

    def _close(self) -> None:
        self._filled, self._count = 0, self._count + 1
        off = self._open - self.mean
        self.mean += off / self._count
        self.squares += off * (self._open - self.mean)


class _Groups:
    """Mean periods of neighbours: of one each, then two, four ... so that there are fewer than twice those wanted."""

    def __init__(self, wanted: int | None) -> None:
        self.means: list[np.ndarray] = []
        self.each = 1
        self._wanted, self._sum, self._count = wanted, np.zeros(1), 0

    def push(self, period: np.ndarray) -> None:
        """Take the next period (n, P)."""
        self._sum, self._count = period + (self._sum if self._count else 0.0), self._count + 1
        if self._count == self.each:
            self.means.append(self._sum / self.each)
            self._count = 0
        if self._wanted is not None and len(self.means) == 2 * self._wanted:
            pairs = zip(self.means[::2], self.means[1::2], strict=True)
            self.means = [(early + late) / 2 for early, late in pairs]
            self.each *= 2
