"""Sampling of a signal: intervals, jitter and gaps of its time stamps, and the quantisation step of its values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import SignalError
from .checks import as_rows

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
