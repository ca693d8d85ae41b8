"""Sampling of a signal: intervals, jitter, gaps, the quantisation step of its values; resampling to a uniform grid.

Resampling takes whole signals or block by block. Gaps split a signal, none is bridged.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..errors import SignalError
from .checks import RowMemory, as_rows, check_choice, check_finite, check_positive, frozen, joined

GAP_INTERVALS = 3.0
"""By default an interval longer than this many median intervals is a gap."""


@dataclass(frozen=True)
class Gap:
    """Missing samples.

    Attributes:
        index: Number of the last sample before the gap.
        start: Its time [s].
        duration: Time to the next sample [s].
        missing: About how many samples are missing.
    """

    index: int
    start: float
    duration: float
    missing: int


@dataclass(frozen=True)
class Sampling:
    """How evenly a signal was sampled.

    Attributes:
        samples: Number of samples.
        interval: Median interval [s].
        jitter: Largest deviation of an interval from the median, gaps left out, as a fraction of the median.
        jitter_std: Standard deviation of the intervals, gaps left out, as a fraction of the median.
        max_gap: Longest interval that is not a gap [s].
        gaps: The gaps, in order.
    """

    samples: int
    interval: float
    jitter: float
    jitter_std: float
    max_gap: float
    gaps: tuple[Gap, ...]

    @property
    def rate(self) -> float:
        """One over the median interval [Hz]."""
        return 1.0 / self.interval


def check_time(time: np.ndarray, least: int = 2) -> np.ndarray:
    """Return time stamps (N,) as float64, or raise a SignalError if they do not increase strictly."""
    stamps = np.asarray(time, dtype=np.float64)
    if stamps.ndim != 1:
        raise SignalError(f"time stamps: got shape {stamps.shape}, allowed is (samples,)")
    if len(stamps) < least:
        raise SignalError(f"time stamps: got {len(stamps)} samples, needed are at least {least}")
    if not np.isfinite(stamps).all():
        where = int(np.flatnonzero(~np.isfinite(stamps))[0])
        raise SignalError(f"time stamps: got {stamps[where]} at sample {where}, allowed are finite numbers")
    steps = np.diff(stamps)
    if (steps <= 0).any():
        where = int(np.flatnonzero(steps <= 0)[0])
        raise SignalError(
            f"time stamps: got {stamps[where + 1]:.9g} s at sample {where + 1} after {stamps[where]:.9g} s "
            f"({int((steps <= 0).sum())} such steps in all), allowed are strictly increasing times; "
            "drop duplicates and sort first"
        )
    return stamps


def describe_sampling(time: np.ndarray, max_gap: float | None = None) -> Sampling:
    """Describe time stamps (N,) [s]; an interval longer than ``max_gap`` [s] is a gap (default: three median ones)."""
    stamps = check_time(time)
    steps = np.diff(stamps)
    interval = float(np.median(steps))
    longest = GAP_INTERVALS * interval if max_gap is None else float(max_gap)
    if not longest > 0:
        raise SignalError(f"longest gap: got {max_gap} s, allowed are times above 0")
    is_gap = steps > longest
    gaps = tuple(
        Gap(int(k), float(stamps[k]), float(steps[k]), max(0, round(steps[k] / interval) - 1))
        for k in np.flatnonzero(is_gap)
    )
    regular = steps[~is_gap]
    if not len(regular):
        raise SignalError(f"longest gap: got {longest:g} s, every interval (median {interval:g} s) is longer than that")
    jitter = float(np.abs(regular - interval).max()) / interval
    return Sampling(len(stamps), interval, jitter, float(regular.std()) / interval, longest, gaps)


def uniform_rate(time: np.ndarray, tolerance: float = 0.01) -> float:
    """Return the sampling rate [Hz] of evenly spaced stamps (N,) [s].

    Args:
        time: Time stamps.
        tolerance: Largest allowed deviation of an interval from the mean one, as a fraction of it.

    Raises:
        SignalError: If the stamps are not even; the message says the jitter found and where.
    """
    stamps = check_time(time)
    mean = (stamps[-1] - stamps[0]) / (len(stamps) - 1)
    deviation = np.abs(np.diff(stamps) - mean) / mean
    worst = int(np.argmax(deviation))
    # Stamps far from zero carry their own rounding: 1e9 s has a step of 1e-7 s.
    rounding = 4 * np.spacing(np.abs(stamps).max()) / mean
    if deviation[worst] > tolerance + rounding:
        raise SignalError(
            f"time stamps: got an interval of {stamps[worst + 1] - stamps[worst]:.6g} s after sample {worst} where the "
            f"mean is {mean:.6g} s (jitter {100 * deviation[worst]:.3g} %), allowed are {100 * tolerance:.3g} %; "
            "resample to a uniform grid first"
        )
    return float(1.0 / mean)


# Fraction of the differences that must be whole multiples of the step.
_AGREEMENT = 0.99
_LEAST_VALUES = 3


def find_quantum(values: np.ndarray) -> np.ndarray:
    """Return the quantisation step of each row (rows,); 0 where the values are not on a grid.

    The smallest difference between distinct values is a candidate; it counts if nearly all differences are whole
    multiples of it. Fewer than three distinct values show no grid.
    """
    return np.array([_quantum(row) for row in as_rows(values)])


def _quantum(row: np.ndarray) -> float:
    levels = np.unique(row)
    if len(levels) < _LEAST_VALUES:
        return 0.0
    # Equal values may differ by rounding of a unit conversion; a step that small would not matter anyway.
    rounding = max(16 * np.spacing(np.abs(levels).max()), 1e-10 * (levels[-1] - levels[0]))
    steps = np.diff(levels)
    steps = steps[steps > rounding]
    if not len(steps) or len(steps) > 0.9 * len(row):
        return 0.0  # every sample is a value of its own: no grid, or one too fine to matter
    candidate = float(np.median(steps[steps < 1.5 * steps.min()]))
    multiples = np.round(steps / candidate)
    off = np.abs(steps - multiples * candidate)
    near = off <= np.maximum(0.05 * candidate, rounding)
    if near.mean() < _AGREEMENT:
        return 0.0
    return float(steps[near].sum() / multiples[near].sum())


Method = Literal["linear", "cubic", "monotone", "none"]
METHODS = ("linear", "cubic", "monotone", "none")

# A grid point this close (in steps) outside a segment belongs to it: it is there by rounding alone.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Segment:
    """A segment without gaps on the uniform grid.

    Attributes:
        first: Number of its first grid point; grid point k lies at ``start + k / rate``.
        values: Signals (rows, K).
    """

    first: int
    values: np.ndarray


@dataclass(frozen=True)
class Resampled:
    """Signals on a uniform grid.

    Attributes:
        segments: Segments between gaps, in order.
        start: Time of grid point 0 [s].
        rate: Grid points a second [Hz].
        method: ``linear``, ``cubic`` (not-a-knot spline), ``monotone`` (PCHIP) or ``none`` (stamps were even).
        gaps: Gaps that were not bridged.
        lone_samples: Samples lost because they stand alone between two gaps.
        sampling: What the stamps looked like.
    """

    segments: tuple[Segment, ...]
    start: float
    rate: float
    method: Method
    gaps: tuple[Gap, ...]
    lone_samples: int
    sampling: Sampling

    @property
    def values(self) -> np.ndarray:
        """The signals (rows, K) if there is one segment; a SignalError that names the gaps if there are more."""
        if len(self.segments) != 1:
            where = ", ".join(f"{gap.duration:.3g} s at {gap.start:.6g} s" for gap in self.gaps[:3])
            raise SignalError(
                f"resampled signal: got {len(self.segments)} segments, allowed is one here; gaps: {where}"
                f"{' ...' if len(self.gaps) > 3 else ''}; use the segments one by one, or allow a longer gap"
            )
        return self.segments[0].values

    def time(self, segment: int = 0) -> np.ndarray:
        """Return the times (K,) of a segment [s]."""
        part = self.segments[segment]
        return self.start + (part.first + np.arange(part.values.shape[1])) / self.rate


def interpolant(method: str, time: np.ndarray, rows: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function of times (K,) that gives signals (rows, K) between the stamps."""
    if method == "linear":
        return lambda at: np.stack([np.interp(at, time, row) for row in rows]) if len(rows) else np.empty((0, len(at)))
    from scipy import interpolate  # imported when used: it takes a third of a second, and most stamps are even

    kind = interpolate.CubicSpline if method == "cubic" else interpolate.PchipInterpolator
    return kind(time, rows, axis=1)


def grid_range(first: float, last: float, start: float, rate: float) -> tuple[int, int]:
    """Return the first grid point in [first, last] and the one after the last."""
    begin = int(np.ceil((first - start) * rate - _ROUNDING))
    return begin, max(begin, int(np.floor((last - start) * rate + _ROUNDING)) + 1)


def resample(
    time: np.ndarray,
    values: np.ndarray,
    rate: float | None = None,
    method: Method = "linear",
    max_gap: float | None = None,
    tolerance: float = 0.01,
) -> Resampled:
    """Put signals on a uniform grid that starts at the first stamp.

    Args:
        time: Stamps (N,) [s].
        values: Signals (rows, N).
        rate: Grid points a second [Hz]; one over the median interval by default.
        method: ``linear``, ``cubic``, ``monotone``, or ``none``: the samples as they are, for even stamps only.
        max_gap: Intervals longer than this are not bridged [s]; three median intervals by default.
        tolerance: Jitter allowed for method ``none``, as a fraction of the interval.

    Raises:
        SignalError: If stamps do not increase, do not fit the signals, or are uneven with method ``none``.
    """
    check_choice(method, METHODS, "resampling method")
    stamps, rows = check_time(time), as_rows(values)
    if len(stamps) != rows.shape[1]:
        raise SignalError(
            f"resample: got {len(stamps)} time stamps for {rows.shape[1]} samples, allowed are equally many"
        )
    sampling = describe_sampling(stamps, max_gap)
    if method == "none":
        return _as_it_is(stamps, rows, rate, sampling, tolerance)
    rate = sampling.rate if rate is None else check_positive(rate, "sampling rate")
    bounds = [0, *(gap.index + 1 for gap in sampling.gaps), len(stamps)]
    segments, lone = [], 0
    for begin, end in itertools.pairwise(bounds):
        if end - begin < 2:
            lone += 1
            continue
        part = slice(begin, end)
        first, stop = grid_range(stamps[begin], stamps[end - 1], stamps[0], rate)
        at = np.clip(stamps[0] + np.arange(first, stop) / rate, stamps[begin], stamps[end - 1])
        segments.append(Segment(first, frozen(interpolant(method, stamps[part], rows[:, part])(at))))
    return Resampled(tuple(segments), float(stamps[0]), rate, method, sampling.gaps, lone, sampling)


def _as_it_is(
    stamps: np.ndarray, rows: np.ndarray, rate: float | None, sampling: Sampling, tolerance: float
) -> Resampled:
    found = uniform_rate(stamps, tolerance)
    if rate is not None and abs(rate - found) > tolerance * found:
        raise SignalError(f"resample: got rate {rate:g} Hz with method 'none', the stamps have {found:g} Hz")
    segment = Segment(0, frozen(rows.copy()))
    return Resampled((segment,), float(stamps[0]), found, "none", (), 0, sampling)


# Stamps on either side that an interpolated value depends on. A spline's influence falls by 3.7 from stamp to stamp:
# 1e-16 after 28; uneven stamps slow that down a little.
_REACH = {"linear": 1, "monotone": 3, "cubic": 48}


class ResampleStream:
    """Puts signals that come in blocks on a uniform grid that starts at the first stamp.

    Args:
        rate: Grid points a second [Hz].
        method: ``linear``, ``cubic`` or ``monotone``.
        max_gap: Intervals longer than this are not bridged [s].

    Attributes:
        start: Time of grid point 0 [s]; None before the first block.
        lone_samples: Samples lost because they stood alone between two gaps.
    """

    def __init__(self, rate: float, max_gap: float, method: Method = "linear") -> None:
        check_choice(method, tuple(_REACH), "resampling method of a stream")
        self._rate = check_positive(rate, "sampling rate")
        self._max_gap = check_positive(max_gap, "longest gap", "s")
        self._method = method
        self.start: float | None = None
        self.lone_samples = 0
        self._rows = RowMemory("block")
        self._time = np.empty(0)
        self._values: np.ndarray | None = None
        self._next = 0

    def push(self, time: np.ndarray, block: np.ndarray) -> tuple[Segment, ...]:
        """Take stamps (m,) and a block (rows, m); return the pieces of the grid that are ready.

        A piece that begins where the one before ended continues it; otherwise a gap lies between.

        Raises:
            SignalError: If stamps do not increase, within the block or from the one before.
        """
        rows = self._rows.check(block)
        check_finite(rows, "block")
        stamps = np.asarray(time, dtype=np.float64)
        if stamps.shape != (rows.shape[1],):
            raise SignalError(
                f"resample: got time stamps {stamps.shape} for {rows.shape[1]} samples, allowed is one each"
            )
        self._time = check_time(np.concatenate([self._time, stamps]), least=0)
        self._values = rows.copy() if self._values is None else joined(self._values, rows)
        if self.start is None and len(self._time):
            self.start = float(self._time[0])
        pieces = []
        while len(gaps := np.flatnonzero(np.diff(self._time) > self._max_gap)):
            pieces += self._finish(int(gaps[0]) + 1)
        pieces += self._ready()
        return tuple(pieces)

    def flush(self) -> tuple[Segment, ...]:
        """End the signal and return the last piece of the grid, if any."""
        return tuple(self._finish(len(self._time)))

    def _finish(self, count: int) -> list[Segment]:
        """Emit what is left of the segment that ends after ``count`` stamps, and forget it."""
        pieces = []
        if count >= 2:
            pieces = self._emit(count, float(self._time[count - 1]))
        elif count == 1:
            self.lone_samples += 1
        self._drop(count)
        return pieces

    def _ready(self) -> list[Segment]:
        """Emit what no later stamp can change, and forget the stamps that nothing later depends on."""
        reach = _REACH[self._method]
        if len(self._time) <= reach + 1:
            return []
        pieces = self._emit(len(self._time), float(self._time[-1 - reach]))
        assert self.start is not None
        done = int(np.searchsorted(self._time, self.start + self._next / self._rate, side="right")) - 1
        self._drop(max(0, min(done, len(self._time) - 1) - reach))
        return pieces

    def _emit(self, count: int, last: float) -> list[Segment]:
        assert self.start is not None
        assert self._values is not None
        first, stop = grid_range(float(self._time[0]), last, self.start, self._rate)
        first = max(first, self._next)
        if stop <= first:
            return []
        at = np.clip(self.start + np.arange(first, stop) / self._rate, self._time[0], self._time[count - 1])
        self._next = stop
        curve = interpolant(self._method, self._time[:count], self._values[:, :count])
        return [Segment(first, frozen(curve(at)))]

    def _drop(self, count: int) -> None:
        assert self._values is not None or count == 0
        self._time = self._time[count:]
        if self._values is not None:
            self._values = self._values[:, count:]
