"""Resolution of positions and torques, and whether it is too coarse for what was measured.

The step of a signal is the smallest difference of which all differences are multiples. Rounding to steps ``h`` adds
noise of variance ``h^2 / 12``, white as long as a sample moves by more than a step. Through an ideal low-pass at ``fc``
its derivative has ``std = 2 pi h sqrt(fc^3 / (18 rate))``: that is the velocity that `identify` would differentiate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ..record import Finding, Samples, Severity
from .subject import Subject

LEAST_STEPS = 20
"""Small steps needed to detect a grid."""
SMALL = 5.5
"""Steps of up to so many of the smallest are used: rounding of written numbers spoils larger ones."""
OFF_GRID = 0.1
"""Largest distance from a multiple, in steps; nine in ten must be nearer."""
ATTEMPTS = 16
"""Blocks in which a grid is looked for."""
COARSE_TORQUE = 0.02
"""A torque step above this part of the torque's standard deviation is reported: its rounding alone adds 0.6 %, as much
as all noise of a good torque sensor."""
COARSE_VELOCITY = 0.02
"""A position step whose noise in the differentiated velocity exceeds this part of the rms speed is a warning: viscous
friction and, 2 pi fc times larger, inertia get errors of that size."""
TYPICAL_CUTOFF = 10.0
"""Cut-off of the low-pass that is assumed for that [Hz], or the Nyquist frequency if it is lower."""
LEAST_SPEED = 0.01
"""Slower than this (rms) a joint is held: a step has nothing to be compared with [rad/s or m/s]."""
WINDOW = 0.1
"""Time over which speeds are differences of positions [s]: the steps must not make a held joint seem to move."""


class Quantisation:
    """Looks at the first blocks until each row's step is known; adds up speeds and torques."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._channels = [number for number, role in enumerate(subject.roles) if role in ("q", "torque")]
        self._steps: dict[int, list[float | None]] = {n: [None] * len(subject.rows(n)) for n in self._channels}
        self._sums = {number: np.zeros((2, len(subject.rows(number)))) for number in self._channels}
        self._origin: dict[int, np.ndarray] = {}
        self._attempts = self._count = 0
        self._seconds = 0.0

    def take(self, block: Samples, fresh: int) -> None:
        """Find steps that are not known yet, and add up what they are compared with."""
        for number in self._channels:
            values, steps = block.channels[number], self._steps[number]
            if self._attempts < ATTEMPTS and None in steps:
                self._steps[number] = [
                    quantum(row) if step is None else step for row, step in zip(values, steps, strict=True)
                ]
            self._add(number, block, values, fresh)
        self._attempts += 1
        self._count += block.count - fresh
        self._seconds += float(block.time[-1] - block.time[0])

    def _add(self, number: int, block: Samples, values: np.ndarray, fresh: int) -> None:
        if self._subject.roles[number] == "q":
            every = max(1, min(round(WINDOW * (block.count - 1) / max(np.ptp(block.time), 1e-300)), block.count - 1))
            steps, seconds = np.diff(values[:, ::every], axis=1), np.diff(block.time[::every])
            self._sums[number][1] += np.einsum("ij,ij->i", steps, steps / seconds)
            return
        centred = values[:, fresh:] - self._origin.setdefault(number, values[:, :1].copy())
        self._sums[number] += [centred.sum(axis=1), np.einsum("ij,ij->i", centred, centred)]

    def findings(self) -> Iterator[Finding]:
        """Yield the step of each position on a grid, and of each torque whose step is coarse."""
        for number in self._channels:
            judge = self._position if self._subject.roles[number] == "q" else self._torque
            for row, step in enumerate(self._steps[number]):
                if step:
                    yield from judge(number, row, step)

    def _speeds(self) -> np.ndarray:
        """Return the rms speed of every joint (n,)."""
        number = self._subject.row("q")
        if number is None or self._seconds <= 0:
            return np.zeros(len(self._subject.joints))
        return np.sqrt(self._sums[number][1] / self._seconds)

    def _position(self, number: int, row: int, step: float) -> Iterator[Finding]:
        joint, values = self._subject.joints[row], {"step": step}
        text = f"q of {joint} comes in steps of {step:.6g}"
        speed = float(self._speeds()[row])
        if speed < LEAST_SPEED:
            yield Finding("quantisation", "info", text, "q", joint, values=values)
            return
        rate = (self._count - 1) / self._seconds
        cutoff = min(TYPICAL_CUTOFF, rate / 2)
        part = 2 * math.pi * step * math.sqrt(cutoff**3 / (18 * rate)) / speed
        values |= {"part": part, "speed": speed}
        if part <= COARSE_VELOCITY:
            yield Finding("quantisation", "info", text, "q", joint, values=values)
            return
        text += (
            f": below {cutoff:.3g} Hz velocities get noise of {100 * part:.2g} % of the joint's rms speed {speed:.3g}"
        )
        remedy = "record positions with more digits or of the motor's encoder, move the joint faster, or lower --cutoff"
        yield Finding("quantisation", "warning", text, "q", joint, values=values, remedy=remedy)

    def _torque(self, number: int, row: int, step: float) -> Iterator[Finding]:
        speeds = self._speeds()
        total, squares = self._sums[number][:, row] / max(1, self._count)
        deviation = math.sqrt(max(0.0, float(squares - total**2)))
        moves = speeds.max() if self._subject.kinds[number] == "wrench" else speeds[row]
        if step <= COARSE_TORQUE * deviation or deviation == 0 or moves < LEAST_SPEED:
            return
        part = float(step / deviation)
        label, name = self._subject.labels[number], self._subject.rows(number)[row]
        text = f"{label} of {name} comes in steps of {step:.4g}, {100 * part:.2g} % of its standard deviation"
        remedy = "record it with more digits or a finer unit (mA, percent with decimals), or move so that it is larger"
        values = {"step": step, "part": part}
        yield Finding("quantisation", "warning", text, label, name, values=values, remedy=remedy)


FAST = 5.0
"""Steps from sample to sample, in the signal's smallest, beyond which a sample that does not change is an old one."""
LONGEST_HELD = 10
"""A signal that does not change over more samples stands still."""
LEAST_FAST = 200
"""Fast steps that a joint needs to be judged."""
SOME_HELD, OFTEN_HELD = 0.002, 0.3
"""Parts of the fast steps in which nothing changes: worth a sentence, and for torques a warning."""
LATE_VELOCITY, USELESS_VELOCITY = 0.01, 0.05
"""Noise that old positions add to velocities, over the speed: a warning, and too much to differentiate."""


class Holding:
    """Counts samples that repeat the one before while positions or torques change fast."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._channels = [number for number, role in enumerate(subject.roles) if role in ("q", "torque")]
        self._fast = {number: np.zeros(len(subject.rows(number))) for number in self._channels}
        self._held = {number: np.zeros(len(subject.rows(number))) for number in self._channels}
        self._first: float | None = None
        self._last, self._count = 0.0, 0

    def take(self, block: Samples, fresh: int) -> None:
        """Add the steps of a block."""
        self._first = float(block.time[0]) if self._first is None else self._first
        self._last, self._count = float(block.time[-1]), self._count + block.count - fresh
        for number in self._channels:
            for row, values in enumerate(block.channels[number]):
                steps = np.diff(values)
                places = np.flatnonzero(steps)
                changes = steps[places]
                size = np.abs(changes)
                fast = size > FAST * size.min(initial=np.inf)
                # Between two fast steps the same way a joint does not stop, as it does where it turns round; torques
                # go to and fro with their noise.
                between, goes_on = np.diff(places) - 1, changes[1:] * changes[:-1] > 0
                goes_on |= self._subject.roles[number] != "q"
                held = fast[1:] & fast[:-1] & goes_on & (between < LONGEST_HELD)
                self._held[number][row] += between[held].sum()
                self._fast[number][row] += np.count_nonzero(fast) + between[held].sum()

    def findings(self) -> Iterator[Finding]:
        """Yield positions and torques that are updated less often than the log has samples."""
        for number in self._channels:
            fast, held = self._fast[number], self._held[number]
            judged = fast >= LEAST_FAST
            if not judged.any():
                continue
            part = float(np.median(held[judged] / fast[judged]))
            if part < SOME_HELD:
                continue
            yield self._finding(number, part, (self._count - 1) / max(self._last - (self._first or 0.0), 1e-300))

    def _finding(self, number: int, part: float, rate: float) -> Finding:
        """Return the finding; positions that are a sample old are off by what the joint moves in one."""
        label, is_position = self._subject.labels[number], self._subject.roles[number] == "q"
        text = (
            f"{label} is the same as in the sample before in {100 * part:.2g} % of the samples while it changes fast: "
            f"new values come at about {rate * (1 - part):.3g} Hz, the log has {rate:.3g} rows a second"
        )
        values = {"part": part, "rate": rate * (1 - part)}
        severity: Severity = "warning" if part > OFTEN_HELD else "info"
        if is_position:
            cutoff = min(TYPICAL_CUTOFF, rate / 2)
            values["noise"] = noise = 2 * math.pi * math.sqrt(12 * part * (cutoff / rate) ** 3 / 18)
            severity = "bad" if noise > USELESS_VELOCITY else "warning" if noise > LATE_VELOCITY else "info"
            text += f"; below {cutoff:.3g} Hz velocities get noise of {100 * noise:.2g} % of the speed"
        remedy = "record at the rate of the driver, or write only the rows in which positions are new"
        return Finding("held", severity, text, label, values=values, remedy="" if severity == "info" else remedy)


def quantum(values: np.ndarray) -> float | None:
    """Return the step of a signal on a grid, None if its small steps are too few or on no grid."""
    steps = np.abs(np.diff(values))
    steps = steps[steps > 0]
    if steps.size < LEAST_STEPS:
        return None
    step = float(steps.min())
    small = steps[steps < SMALL * step]
    if small.size < LEAST_STEPS:
        return None
    multiples = np.round(small / step)
    step = float(small.sum() / multiples.sum())
    near = np.abs(small / step - multiples) < OFF_GRID
    return step if near.mean() > 0.9 else None
