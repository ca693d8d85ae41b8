"""Saturation: torques and currents that are clipped, and speeds at their limit.

A clipped signal stays at one extreme value, again and again. The level is the largest value that three samples in a row
reach (a spike does not), and samples within the signal's resolution of it count as at the level. A smooth peak spends
time near its top too: at most 1.4 times as much in the topmost third of a band as in the rest of it (a parabola), 3.2
times if the top is very flat (a fourth power). Clipped ones spend many times as much. Where samples repeat exactly and
the signal is on no grid, that alone tells: noise does not repeat. Samples in which the joint stands still do not count,
as a torque at rest is constant.

At the effort limit of the robot file noise may be on top: there a band of `LIMIT_BAND` on either side is compared with
an equally wide one below it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ...tables.table import FEW
from ..record import Finding, Samples
from .motion import STILL
from .resolution import quantum
from .subject import Subject

LEAST_RUN = 3
"""Samples in a row that make a plateau: noise of two equal samples is chance on a coarse grid."""
LEAST_AT = 20
"""Samples at the level that are needed."""
LEAST_SHARE = 0.001
"""Part of all samples at the level that is needed: less does not change a fit."""
RUNS = 2
"""Plateaus at the same level that are needed, unless one is as long as `LONG_RUN`."""
LONG_RUN = 0.1
"""Length of a plateau that needs no second [s]."""
BAND = 0.02
"""Part of the signal's range below the level with which the time at it is compared; at least four resolutions."""
PILED, PILED_EXACTLY = 4.0, 0.5
"""Times as many samples at the level as in the band below it: on a grid, and where values repeat exactly on no grid."""
LIMIT_BAND = 0.03
"""Distance from the effort limit within which a torque is at it, relative: noise and rounded limits."""
LIMIT_SHARE = 0.005
"""Part of the samples that must be there."""
PILED_AT_LIMIT = 2.5
"""Times as many samples as in the equally wide band below: a parabola that just reaches the limit has 2.4."""
SPEED_BAND = 0.01
"""Distance from the speed limit within which a speed is at it, relative."""
SPEED_SHARE = 0.05
"""Part of the time that must be spent there: a motion designed to touch its limits does for less."""
SPEED_WINDOW = 0.02
"""Time over which speeds are taken [s]."""
REACH = 0.05
"""Time before and after a plateau over which the joint must have moved [s]."""


@dataclass
class _Side:
    """What is known of the upper side of a row (of its negative, for the lower): all since its level was reached."""

    level: float = -math.inf
    at: int = 0
    near: int = 0
    runs: int = 0
    longest: float = 0.0
    places: list[float] = field(default_factory=list)


class Saturation:
    """Counts samples at the extremes of every torque, at effort limits and at speed limits."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._channels = [number for number, role in enumerate(subject.roles) if role == "torque"]
        sizes = {number: len(subject.rows(number)) for number in self._channels}
        self._sides = {number: [[_Side(), _Side()] for _ in range(size)] for number, size in sizes.items()}
        self._quanta: dict[int, list[float | None]] = {}
        self._holds: dict[int, list[float]] = {}
        self._least = {number: np.full(size, np.inf) for number, size in sizes.items()}
        self._most = {number: np.full(size, -np.inf) for number, size in sizes.items()}
        self._limit = {number: np.zeros((3, size), int) for number, size in sizes.items()}
        self._count = 0
        self._speed = np.zeros((2, len(subject.joints)), int)
        self._windows = 0

    def take(self, block: Samples, fresh: int) -> None:
        """Add a block."""
        if block.count < 8:
            return
        self._count += block.count - fresh
        self._add_speeds(block)
        for number in self._channels:
            values = block.channels[number]
            if number not in self._quanta:
                self._quanta[number] = [quantum(row) for row in values]
                self._holds[number] = [_held(row) for row in values]
            highest = np.minimum(np.minimum(values[:, :-2], values[:, 1:-1]), values[:, 2:]).max(axis=1)
            lowest = np.maximum(np.maximum(values[:, :-2], values[:, 1:-1]), values[:, 2:]).min(axis=1)
            self._least[number] = np.minimum(self._least[number], lowest)
            self._most[number] = np.maximum(self._most[number], highest)
            for row in range(len(values)):
                self._add_side(block, number, row, 1, float(highest[row]), fresh)
                self._add_side(block, number, row, -1, -float(lowest[row]), fresh)
            if self._subject.kinds[number] in ("motor_torque", "joint_torque"):
                self._add_limits(block, number, np.maximum(highest, -lowest), fresh)

    def _tolerance(self, number: int, row: int) -> tuple[float, float]:
        """Return the resolution within which values are equal, and the width of the band below a level."""
        width = float(self._most[number][row] - self._least[number][row])
        step = self._quanta[number][row]
        tolerance = 1.01 * step if step else 1e-9 * width
        return tolerance, max(BAND * width, 4 * tolerance)

    def _add_side(self, block: Samples, number: int, row: int, sign: int, highest: float, fresh: int) -> None:
        sides, which = self._sides[number][row], int(sign < 0)
        tolerance, band = self._tolerance(number, row)
        if highest > sides[which].level + tolerance:
            sides[which] = _Side(highest)
        side = sides[which]
        if highest < side.level - tolerance - band or side.level <= 0 or tolerance == 0:
            return
        values = sign * block.channels[number][row]
        at = np.abs(values - side.level) <= tolerance
        near = (values < side.level - tolerance) & (values >= side.level - tolerance - band)
        side.near += int(near[fresh:].sum())
        edges = np.flatnonzero(np.diff(at.astype(np.int8), prepend=0, append=0)).reshape(-1, 2)
        edges = edges[edges[:, 1] - edges[:, 0] >= LEAST_RUN * self._holds[number][row]]
        edges = edges[self._moving(block, number, row, edges)]
        if not len(edges):
            return
        lengths = edges[:, 1] - edges[:, 0]
        side.at += int(lengths.sum())
        side.runs += len(edges)
        side.longest = max(side.longest, float((block.time[edges[:, 1] - 1] - block.time[edges[:, 0]]).max()))
        side.places += [float(stamp) for stamp in block.time[edges[: FEW - len(side.places), 0]]]

    def _moving(self, block: Samples, number: int, row: int, edges: np.ndarray) -> np.ndarray:
        """Return in which runs of samples (K, 2) the joint moves, any joint for a wrench."""
        positions = self._subject.row("q")
        if positions is None or not len(edges):
            return np.ones(len(edges), bool)
        reach = max(1, round(REACH * (block.count - 1) / max(float(np.ptp(block.time)), 1e-300)))
        # What was before and after a long run says nothing of it.
        more = np.where(edges[:, 1] - edges[:, 0] > 2 * reach, 0, reach)
        first, last = np.maximum(edges[:, 0] - more, 0), np.minimum(edges[:, 1] - 1 + more, block.count - 1)
        rows = slice(None) if self._subject.kinds[number] == "wrench" else slice(row, row + 1)
        q, middle = block.channels[positions][rows], (first + last) // 2
        moved = np.maximum(np.abs(q[:, last] - q[:, middle]), np.abs(q[:, middle] - q[:, first]))
        seconds = (block.time[last] - block.time[first]) / 2
        still = STILL[self._subject.revolute[rows].astype(int)][:, None]
        return np.asarray((moved > still * seconds).any(axis=0))

    def _add_limits(self, block: Samples, number: int, size: np.ndarray, fresh: int) -> None:
        """Add the samples at, below and beyond the effort limit, of rows that come near it while they move."""
        low, high = 1 - LIMIT_BAND, 1 + LIMIT_BAND
        for row in map(int, np.flatnonzero(size > (low - 2 * LIMIT_BAND) * self._subject.effort)):
            part = np.abs(block.channels[number][row, fresh:]) / self._subject.effort[row]
            places = np.arange(fresh, block.count)
            near = np.flatnonzero(part > low - 2 * LIMIT_BAND)
            moving = self._moving(block, number, row, np.stack([places[near], places[near] + 1], axis=1))
            part = part[near][moving]
            at = (part > low) & (part <= high)
            self._limit[number][:, row] += [int(at.sum()), int((part <= low).sum()), int((part > high).sum())]

    def _add_speeds(self, block: Samples) -> None:
        number = self._subject.row("q")
        if number is None:
            return
        size = max(
            1, min(round(SPEED_WINDOW * (block.count - 1) / max(float(np.ptp(block.time)), 1e-300)), block.count - 1)
        )
        part = np.abs(np.diff(block.channels[number][:, ::size], axis=1)) / np.diff(block.time[::size])
        part /= self._subject.speed_limit[:, None]
        self._speed[0] += np.count_nonzero(np.abs(part - 1) <= SPEED_BAND, axis=1)
        self._speed[1] += np.count_nonzero((part < 1 - SPEED_BAND) & (part >= 1 - 5 * SPEED_BAND), axis=1)
        self._windows += part.shape[1]

    def findings(self) -> Iterator[Finding]:
        """Yield clipped torques and currents, and joints that run at their speed limit."""
        for number in self._channels:
            for row, name in enumerate(self._subject.rows(number)):
                finding = self._clipped(number, row, name) or self._at_limit(number, row, name)
                if finding:
                    yield finding
        yield from self._fast()

    def _clipped(self, number: int, row: int, name: str) -> Finding | None:
        if number not in self._quanta:
            return None
        sides = [side if self._is_clipped(side, number, row) else None for side in self._sides[number][row]]
        found = [(sign * side.level, side) for sign, side in zip((1, -1), sides, strict=True) if side]
        if not found:
            return None
        label = self._subject.labels[number]
        levels = " and ".join(f"{level:.4g}" for level, _ in found)
        values = {("upper" if level > 0 else "lower"): level for level, _ in found}
        count = sum(side.at for _, side in found)
        where = tuple(sorted(stamp for _, side in found for stamp in side.places)[:FEW])
        return self._finding(label, name, levels, count, where, values, "stays at the same extreme value")

    def _is_clipped(self, side: _Side, number: int, row: int) -> bool:
        hold = self._holds[number][row]
        if side.at < max(LEAST_AT * hold, LEAST_SHARE * self._count):
            return False
        if side.runs < RUNS and side.longest < LONG_RUN * hold:
            return False
        return side.at >= (PILED if self._quanta[number][row] or hold > 1 else PILED_EXACTLY) * side.near

    def _at_limit(self, number: int, row: int, name: str) -> Finding | None:
        at, near, beyond = self._limit[number][:, row]
        if at < max(LEAST_AT, LIMIT_SHARE * self._count, PILED_AT_LIMIT * near) or beyond > 0.1 * at:
            return None
        limit = float(self._subject.effort[row])
        text = "is at the effort limit of the robot file"
        return self._finding(self._subject.labels[number], name, f"{limit:.4g}", int(at), (), {"limit": limit}, text)

    def _finding(
        self, label: str, name: str, levels: str, count: int, where: tuple[float, ...], values: dict[str, float],
        what: str,
    ) -> Finding:  # fmt: skip
        share = count / max(1, self._count)
        text = f"{label} of {name} {what}, {levels}, in {100 * share:.2g} % of the samples: it is clipped"
        remedy = "repeat the recording with a slower motion or less payload, or widen the range of what is logged"
        return Finding(
            "saturated", "warning", text, label, name, count, where, "s" if where else "", {**values, "share": share},
            remedy,
        )  # fmt: skip

    def _fast(self) -> Iterator[Finding]:
        for row, joint in enumerate(self._subject.joints):
            at, near = self._speed[:, row]
            share = float(at / max(1, self._windows))
            if at >= LEAST_AT and share >= SPEED_SHARE and at >= PILED * near:
                limit = float(self._subject.speed_limit[row])
                text = f"{joint} runs at its speed limit, {limit:.4g}, in {100 * share:.2g} % of the time"
                values = {"limit": limit, "share": share}
                yield Finding("saturated", "info", text, "qd", joint, int(at), values=values)


def _held(row: np.ndarray) -> float:
    """Return how many samples in a row typically have the same value: more than 1 if a slower signal is repeated."""
    changes = np.flatnonzero(np.diff(row))
    return float(np.median(np.diff(changes))) if changes.size > LEAST_AT else 1.0
