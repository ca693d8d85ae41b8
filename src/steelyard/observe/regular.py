"""Stamps made even: even samples pass as they are, others are resampled, gaps split the recording into segments."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..signals import ResampleStream, Segment
from ..signals.resampling import Method
from ..signals.sampling import check_time
from .preparation import SettledPreparation

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
        settled: The preparation; its rate, longest gap and method of resampling are used.

    Attributes:
        resampled: Whether any of it was resampled.
    """

    def __init__(self, settled: SettledPreparation) -> None:
        self._rate, self._max_gap = settled.rate, settled.max_gap
        self._method: Method = settled.chosen.resampling
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
    pieces = []
    for first, last in pairwise(bounds):
        pieces.append(Piece(starts, time[first:last], values[:, first:last]))
        starts = True
    return pieces
