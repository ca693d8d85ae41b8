"""How an arm moves: joints that hardly move, joints that move alike, and time in which nothing moves.

Positions are averaged over windows of `WINDOW`; speeds are differences of neighbouring windows. So encoder steps and
noise do not look like motion, and a log of any length leaves a few sums.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ...text import counted
from ..record import Finding, Samples
from .resolution import quantum
from .subject import Subject

WINDOW = 0.2
"""Length of a window [s]: a step of a coarse encoder (0.4 mrad) that flickers makes less than `STILL` of it."""
STILL = np.array([0.001, 0.003])
"""Speed below which a joint stands still [m/s, rad/s]: at 0.003 rad/s a quarter turn takes nine minutes; nobody excites
an arm so slowly, and closed loops hold a position better."""
NOTABLE_STILL = 0.1
"""Part of the time in which nothing moves that is mentioned: less belongs to the start and end of a recording."""
MUCH_STILL, ALL_STILL = 0.5, 0.95
"""Parts of the time from which on standstill is a warning (most samples say nothing), and bad (nearly all)."""
HARDLY = 0.02
"""A joint that moves by less than this part of its range hardly moves: over 2 % of its range gravity changes by a few
per cent, within what friction hides."""
FULL_TURN = 2 * math.pi
"""Range of turning joints whose limits are unknown or wider [rad]; sliding ones without limits are not judged."""
FEW_STEPS = 10
"""A joint that moves by fewer steps of its encoder than this is held by its controller, not moved."""
ALIKE = 0.98
"""Correlation of velocities from which on joints move alike: 4 % of the power of one is not that of the other, too
little to tell the inertias that the two accelerate apart."""
LEAST_WINDOWS = 10
"""Windows with motion that a correlation needs."""
LEAST_SPEED = 0.01
"""Joints slower than this (rms of moving windows) are not compared [rad/s or m/s]."""
_EXCITE = "record a motion in which every joint moves, such as that of `steelyard design`"


class Movement:
    """Keeps products of window speeds, ranges, and the windows in which no joint moves."""

    def __init__(self, subject: Subject) -> None:
        count = len(subject.joints)
        self._subject = subject
        self._still = STILL[subject.revolute.astype(int)]
        self._products = np.zeros((count, count))
        self._least, self._most = np.full(count, np.inf), np.full(count, -np.inf)
        self._steps: list[float | None] = [None] * count
        self._windows = self._still_windows = 0
        self._run_start: float | None = None
        self._longest: tuple[float, float] = (0.0, 0.0)

    def take(self, block: Samples, fresh: int) -> None:
        """Add the windows of a block."""
        number = self._subject.row("q")
        if number is None or block.count < 4:
            return
        q = block.channels[number]
        self._least = np.minimum(self._least, q.min(axis=1))
        self._most = np.maximum(self._most, q.max(axis=1))
        if not self._windows:
            self._steps = [quantum(row) for row in q]
        size = max(1, min(round(WINDOW * (block.count - 1) / max(np.ptp(block.time), 1e-300)), block.count // 3))
        whole = block.count // size * size
        middles = block.time[:whole].reshape(-1, size).mean(axis=1)
        means = q[:, :whole].reshape(len(q), -1, size).mean(axis=2)
        seconds = np.diff(middles)
        speeds = np.diff(means, axis=1) / seconds
        # Over a gap or a restart nothing is known.
        usable = (seconds < 3 * np.median(seconds)) & (np.abs(speeds) < self._subject.fastest[:, None]).all(axis=0)
        still = (np.abs(speeds) < self._still[:, None]).all(axis=0)
        self._add_still(still & usable, middles)
        moving = speeds[:, usable & ~still]
        self._products += moving @ moving.T
        self._windows += int(usable.sum())

    def _add_still(self, still: np.ndarray, middles: np.ndarray) -> None:
        """Add the windows without motion; the longest run of them may go on in the next block."""
        self._still_windows += int(still.sum())
        start, half = None, float(np.median(np.diff(middles))) / 2
        edges = np.flatnonzero(np.diff(still.astype(np.int8), prepend=0, append=0)).reshape(-1, 2)
        for first, last in edges:
            start = float(middles[first] - half)
            if first == 0 and self._run_start is not None:
                start = self._run_start
            end = float(middles[last] + half)
            if end - start > self._longest[1] - self._longest[0]:
                self._longest = (start, end)
        self._run_start = start if still.size and still[-1] else None

    def findings(self) -> Iterator[Finding]:
        """Yield standstill, joints that hardly move, and joints that move alike."""
        if not self._windows:
            return
        share = self._still_windows / self._windows
        if share > NOTABLE_STILL:
            yield self._stands_still(share)
        if share > ALL_STILL:
            return
        hardly = []
        for row in range(len(self._subject.joints)):
            finding = self._hardly_moving(row)
            if finding:
                hardly.append(row)
                yield finding
        yield from self._alike(hardly)

    def _stands_still(self, share: float) -> Finding:
        start, end = self._longest
        severity = "bad" if share > ALL_STILL else "warning" if share > MUCH_STILL else "info"
        text = (
            f"no joint moves in {100 * share:.0f} % of the time, at the longest from {start:.4g} to {end:.4g} s: "
            "these samples say nothing of inertia and friction"
        )
        remedy = f'leave them out with rows = "first:last" in [recording]; {_EXCITE}' if severity != "info" else ""
        values = {"share": share, "start": start, "end": end}
        return Finding("stands_still", severity, text, "q", "", self._still_windows, (start,), "s", values, remedy)

    def _hardly_moving(self, row: int) -> Finding | None:
        subject = self._subject
        moved, joint = float(self._most[row] - self._least[row]), subject.joints[row]
        width = float(subject.upper[row] - subject.lower[row])
        if subject.revolute[row]:
            width = min(width, FULL_TURN)
        if moved == 0 or not math.isfinite(width) or moved >= HARDLY * width:
            return None  # one value in all samples is reported as constant
        values = {"moved": moved, "range": width, "part": moved / width}
        step = self._steps[row]
        if step and moved < (FEW_STEPS + 0.5) * step:
            text = f"{joint} is held: it moves by {counted(round(moved / step), 'step')} of {step:.3g}"
            return Finding("hardly_moving", "info", text, "q", joint, values={**values, "step": step})
        text = f"{joint} hardly moves: by {moved:.3g}, {100 * moved / width:.2g} % of its range of {width:.3g}"
        remedy = f"{_EXCITE}; if the joint was held on purpose, use --lock {joint}={self._least[row] + moved / 2:.4g}"
        return Finding("hardly_moving", "warning", text, "q", joint, values=values, remedy=remedy)

    def _alike(self, hardly: list[int]) -> Iterator[Finding]:
        """Yield the groups of joints whose velocities are proportional."""
        moving_windows = self._windows - self._still_windows
        power = np.diag(self._products)
        if moving_windows < LEAST_WINDOWS:
            return
        rows = [k for k in range(len(power)) if k not in hardly and math.sqrt(power[k] / moving_windows) >= LEAST_SPEED]
        size = np.sqrt(power[rows])
        correlation = self._products[np.ix_(rows, rows)] / np.outer(size, size)
        for group in _groups(np.abs(correlation) > ALIKE):
            names = [self._subject.joints[rows[k]] for k in group]
            least = float(np.abs(correlation[np.ix_(group, group)]).min())
            every = len(group) == len(self._subject.joints)
            who = "all joints" if every else f"{', '.join(names[:-1])} and {names[-1]}"
            text = (
                f"{who} move alike (correlation of velocities at least {least:.3f}): their inertias are hard to tell "
                "apart from this recording alone"
            )
            remedy = "add a recording in which the joints move independently, such as that of `steelyard design`"
            values = {"correlation": least, "joints": float(len(group))}
            yield Finding("alike", "warning", text, "q", "", len(group), values=values, remedy=remedy)


def _groups(linked: np.ndarray) -> Iterator[list[int]]:
    """Yield the connected groups of at least two (indices in order) of a symmetric relation (n, n)."""
    left = set(range(len(linked)))
    while left:
        group, reached = set(), {min(left)}
        while reached:
            group |= reached
            reached = {int(k) for one in reached for k in np.flatnonzero(linked[one])} - group
        left -= group
        if len(group) > 1:
            yield sorted(group)
