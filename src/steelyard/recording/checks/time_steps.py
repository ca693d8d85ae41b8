"""Checks of time stamps: jitter, gaps, lost samples, and units other than seconds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...tables.table import FEW
from ...text import counted
from ..record import Finding, Samples
from .subject import Subject

LONGEST_STEP = 0.5
"""A log of an arm with fewer than two samples a second is hardly one [s]."""
SHORTEST_STEP = 2e-6
"""Nor is one with more than half a million samples a second [s]."""
UNEVEN = 0.05
"""Jitter, relative to the median step, from which on a grid must not be assumed."""
GAP = 1.5
"""Steps longer than this many medians have lost samples."""
BRIDGED = 3.0
"""Steps of up to this many medians are bridged by `identify`, longer ones where ``max_gap`` says so."""
LONGEST_BRIDGE = 0.05
"""Longer gaps [s] are not worth bridging: friction that reverses within one is lost. With a gap in every second of a
SCARA's log the unseen error is 0.037 % for bridged 40 ms, as without gaps, and 1.3 % for 100 ms."""

_OCTAVE_BITS = 10
_SHIFT = 52 - _OCTAVE_BITS
_OCTAVES = 96
_FIRST = (1023 - _OCTAVES // 2) << _OCTAVE_BITS
_BINS = _OCTAVES << _OCTAVE_BITS


class TimeSteps:
    """Keeps a histogram of the steps in bins of a thousandth, so that memory does not grow with the log."""

    def __init__(self, subject: Subject) -> None:
        self._restarts = subject.restarts
        self._counts = np.zeros(_BINS)
        self._sums = np.zeros(_BINS)
        self._squares = np.zeros(_BINS)
        self._longest: list[tuple[float, float]] = []
        self._typical = 0.0
        self._shortest = np.inf
        self._gaps = self._lost = 0
        self._gap_seconds = 0.0

    def take(self, block: Samples, fresh: int) -> None:
        """Add the steps of a block."""
        steps, starts = np.diff(block.time), block.time[:-1]
        if self._restarts:
            one_log = ~np.isin(block.time[1:], self._restarts)
            steps, starts = steps[one_log], starts[one_log]
        if not steps.size:
            return
        # The leading bits of a positive float64 are its exponent and first mantissa bits: a logarithmic scale.
        bins = np.clip((steps.view(np.int64) >> _SHIFT) - _FIRST, 0, _BINS - 1)
        low = int(bins.min())
        bins -= low
        for total, weights in ((self._counts, None), (self._sums, steps), (self._squares, steps * steps)):
            part = np.bincount(bins, weights)
            total[low : low + part.size] += part
        self._keep_longest(steps, starts)
        self._shortest = min(self._shortest, float(steps.min()))
        self._typical = self._typical or float(np.median(steps))
        late = steps > GAP * self._typical
        if late.any():
            self._gaps += int(late.sum())
            self._lost += _lost_samples(steps, late, self._typical)
            self._gap_seconds += float(steps[late].sum())

    def _keep_longest(self, steps: np.ndarray, time: np.ndarray) -> None:
        least = self._longest[-1][0] if len(self._longest) == FEW else 0.0
        if steps.max() <= least:
            return
        places = np.argsort(-steps, kind="stable")[:FEW]
        found = self._longest + [(float(steps[k]), float(time[k])) for k in places]
        self._longest = sorted(found, key=lambda entry: (-entry[0], entry[1]))[:FEW]

    def findings(self) -> Iterator[Finding]:
        """Yield jitter, gaps, and stamps whose size says that they are no seconds."""
        used = np.flatnonzero(self._counts)
        counts, means = self._counts[used], self._sums[used] / self._counts[used]
        middle = int(np.searchsorted(np.cumsum(counts), counts.sum() / 2))
        median = float(means[middle])
        yield self._jitter(used, means, median)
        if self._lost:
            yield self._gap_finding(median)
        if median > LONGEST_STEP or median < SHORTEST_STEP:
            yield _odd_unit(median)

    def _jitter(self, used: np.ndarray, means: np.ndarray, median: float) -> Finding:
        even = used[means <= GAP * median]
        count, total, squares = self._counts[even].sum(), self._sums[even].sum(), self._squares[even].sum()
        rms = float(np.sqrt(max(0.0, squares / count - 2 * median * total / count + median**2)))
        values = {"median": median, "min": self._shortest, "max": self._longest[0][0], "rms": rms, "rate": 1 / median}
        uneven = rms > UNEVEN * median
        text = (
            f"steps of {1e3 * median:.4g} ms (median; from {1e3 * values['min']:.4g} to {1e3 * values['max']:.4g} ms, "
            f"{100 * rms / median:.2g} % rms jitter besides gaps)"
        )
        remedy = "identify resamples it; stamps of the controller's own clock are better" if uneven else ""
        return Finding("jitter", "warning" if uneven else "info", text, "time", values=values, remedy=remedy)

    def _gap_finding(self, median: float) -> Finding:
        longest = [entry for entry in self._longest if entry[0] > GAP * self._typical]
        text = (
            f"{counted(self._gaps, 'gap')} in the stamps, about {counted(self._lost, 'sample')} lost; "
            f"the longest is {1e3 * longest[0][0]:.4g} ms"
        )
        values = {"gaps": float(self._gaps), "seconds": self._gap_seconds, "longest": longest[0][0]}
        where = tuple(time for _, time in longest)
        remedy = "" if longest[0][0] <= (1 + UNEVEN) * BRIDGED * median else gap_remedy(longest[0][0])
        return Finding("gap", "warning", text, "time", "", self._lost, where, "s", values, remedy)


def bridging_gap(seconds: float) -> float | None:
    """Return a ``max_gap`` [s] of two digits with which gaps of up to so many seconds are bridged; None: too long.

    Example:
        >>> from steelyard.recording.checks.time_steps import bridging_gap
        >>> bridging_gap(0.04), bridging_gap(0.6)
        (0.044, None)
    """
    return float(f"{1.1 * seconds:.2g}") if seconds <= LONGEST_BRIDGE else None


def gap_remedy(longest: float) -> str:
    """Return what to do about gaps of up to so many seconds that are not bridged by default."""
    bridged = bridging_gap(longest)
    if bridged is None:
        return (
            "too long to be bridged: identify fits the parts between gaps, less the ends of each; where they are many, "
            'use a part without gaps, rows = "first:last" in [recording], or record without losing samples'
        )
    return (
        "identify fits the parts between gaps of over three steps, less the ends of each; to bridge these, set "
        f"max_gap = {bridged:g} under [identify]"
    )


def _lost_samples(steps: np.ndarray, late: np.ndarray, typical: float) -> int:
    """Return how many samples are missing: late stamps count with their neighbours, which may be early instead."""
    near = late.copy()
    near[1:] |= late[:-1]
    near[:-1] |= late[1:]
    edges = np.flatnonzero(np.diff(near.astype(np.int8), prepend=0, append=0)).reshape(-1, 2)
    total = np.concatenate([[0.0], np.cumsum(steps)])
    missing = np.round((total[edges[:, 1]] - total[edges[:, 0]]) / typical) - (edges[:, 1] - edges[:, 0])
    return int(min(np.maximum(missing, 0).sum(), 1e18))


def _odd_unit(median: float) -> Finding:
    slow = median > LONGEST_STEP
    guess = ("ns" if median > 5e4 else "us" if median > 50 else "ms") if slow else "s"
    text = (
        f"the median step is {median:.3g} s; an arm is not recorded so {'slowly' if slow else 'fast'}: are the stamps "
        f"in {guess}?"
    )
    remedy = f"declare time_unit = '{guess}' in the table [recording] of a file for --config"
    return Finding("time_unit", "bad", text, "time", values={"median": median}, remedy=remedy)
