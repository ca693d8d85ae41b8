"""Checks of values: constant channels, positions outside limits or in degrees, jumps, encoder wraps and resolution.

The resolution of an encoder is the smallest difference of which all differences are multiples.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ...tables.table import FEW
from ..record import Finding, Samples
from .subject import Subject

TOLERANCE = 0.005
"""Limits are often rounded; less than this outside is not reported [rad or m]."""
CHECKED = ("q", "qd", "torque")
_STILL = "it stood still, or the column is dead"
_CONSTANT = {"q": _STILL, "qd": _STILL, "torque": "the column is dead"}


class Ranges:
    """Keeps the least and the largest value of every row."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._least: dict[int, np.ndarray] = {}
        self._most: dict[int, np.ndarray] = {}
        self._outside = np.zeros(len(subject.joints), int)
        self._outside_at: list[list[float]] = [[] for _ in subject.joints]

    def take(self, block: Samples, fresh: int) -> None:
        """Add the values of a block."""
        for number, (role, values) in enumerate(zip(self._subject.roles, block.channels, strict=True)):
            if role in CHECKED and values.shape[1]:
                least, most = values.min(axis=1), values.max(axis=1)
                self._least[number] = np.minimum(self._least.get(number, least), least)
                self._most[number] = np.maximum(self._most.get(number, most), most)
                if role == "q":
                    self._count_outside(block.time, values, least, most, fresh)

    def _count_outside(self, time: np.ndarray, q: np.ndarray, least: np.ndarray, most: np.ndarray, fresh: int) -> None:
        lower, upper = self._subject.lower - TOLERANCE, self._subject.upper + TOLERANCE
        for row in np.flatnonzero((least < lower) | (most > upper)):
            outside = np.flatnonzero((q[row, fresh:] < lower[row]) | (q[row, fresh:] > upper[row])) + fresh
            self._outside[row] += outside.size
            places = self._outside_at[row]
            places += [float(stamp) for stamp in time[outside[: FEW - len(places)]]]

    def findings(self) -> Iterator[Finding]:
        """Yield constant rows, positions outside the limits, and positions whose size says that they are degrees."""
        number = self._subject.row("q")
        yield from self._constant()
        if number is None:
            return
        degrees = self._degrees(self._least[number], self._most[number])
        if degrees:
            yield degrees
        else:
            yield from self._outside_limits(self._least[number], self._most[number])

    def _constant(self) -> Iterator[Finding]:
        for number, least in self._least.items():
            label = self._subject.labels[number]
            rows = self._subject.rows(number)
            for row in np.flatnonzero(least == self._most[number]):
                value = least[row] + 0.0  # no minus zero
                text = f"{label} of {rows[row]} is {value:.6g} throughout: {_CONSTANT[self._subject.roles[number]]}"
                severity = "info" if self._subject.roles[number] != "torque" else "warning"
                remedy = "check the column in the log and its name in the table [recording]"
                values = {"value": float(least[row])}
                yield Finding("constant", severity, text, label, rows[row], values=values, remedy=remedy)

    def _outside_limits(self, least: np.ndarray, most: np.ndarray) -> Iterator[Finding]:
        for row in np.flatnonzero(self._outside):
            lower, upper = self._subject.lower[row], self._subject.upper[row]
            joint = self._subject.joints[row]
            text = (
                f"{joint} goes from {least[row]:.4g} to {most[row]:.4g} in {self._outside[row]} samples outside its "
                f"limits {lower:.4g} to {upper:.4g}"
            )
            yield Finding(
                "outside_limits", "warning", text, "q", joint, int(self._outside[row]),
                tuple(self._outside_at[row]), "s", {"min": float(least[row]), "max": float(most[row])},
                "check zero (offset), sign and unit of q in the table [recording] of a file for --config",
            )  # fmt: skip

    def _degrees(self, least: np.ndarray, most: np.ndarray) -> Finding | None:
        """Return a finding if some turning joint goes absurdly far and all would fit if the numbers were degrees."""
        subject = self._subject
        bound = np.maximum(np.abs(subject.lower), np.abs(subject.upper))
        limited = np.isfinite(bound)
        bound = np.where(limited, bound, 2 * math.pi)
        size = np.maximum(np.abs(least), np.abs(most))
        absurd = subject.revolute & (size > np.maximum(3 * bound, 10.0))
        if limited.any():
            absurd &= limited  # a joint without limits may well have turned round many times
        would_fit = ~subject.revolute | (size * math.pi / 180 <= 1.05 * np.maximum(bound, 2 * math.pi))
        if subject.position_unit != "rad" or not absurd.any() or not would_fit.all():
            return None
        joint = subject.joints[int(np.argmax(absurd))]
        text = f"positions reach {size[absurd].max():.4g} rad at {joint}, far beyond its range; as degrees they fit"
        severity = "bad" if limited.any() else "warning"
        remedy = "declare q = { columns = ..., unit = 'deg' } in the table [recording] of a file for --config"
        values = {"size": float(size.max())}
        return Finding("degrees", severity, text, "q", joint, int(absurd.sum()), values=values, remedy=remedy)


LEAST_JUMP = np.array([0.005, 0.02])
"""Steps smaller than this are noise or quantisation, whatever the rate [m, rad]."""
NEAR_A_TURN = 0.1
"""A jump within this part of a turn of a whole turn is a wrap."""


_JUMPS = (
    ("wrap", "the encoder starts again after a turn",
     "declare q = { columns = ..., unwrap = true } in the table [recording] of a file for --config"),
    ("jump", "no drive moves so fast: spikes, lost packets, a reset encoder or a wrong column",
     'cut these samples out of the log, or use what lies before or after with rows = "first:last" in [recording]'),
)  # fmt: skip
"""Kind, cause and remedy."""


class Jumps:
    """Counts steps too fast to be motion: jumps, and among them those by a turn of the encoder."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._least = LEAST_JUMP[subject.revolute.astype(int)]
        self._counts = {"jump": np.zeros(len(subject.joints), int), "wrap": np.zeros(len(subject.joints), int)}
        self._places: dict[str, list[list[float]]] = {kind: [[] for _ in subject.joints] for kind in self._counts}
        self._largest = np.zeros(len(subject.joints))

    def take(self, block: Samples, fresh: int) -> None:
        """Add the steps of a block."""
        number = self._subject.row("q")
        if number is None or block.count < 2:
            return
        steps, seconds = np.diff(block.channels[number], axis=1), np.diff(block.time)
        size = np.maximum(steps.max(axis=1), -steps.min(axis=1))
        suspect = (size > self._least) & (size > self._subject.fastest * seconds.min())
        for row in map(int, np.flatnonzero(suspect)):
            moves = np.abs(steps[row])
            jumps = (moves > self._least[row]) & (moves > self._subject.fastest[row] * seconds)
            self._count(row, moves, jumps, block.time)

    def _count(self, row: int, moves: np.ndarray, jumps: np.ndarray, time: np.ndarray) -> None:
        turn = self._subject.turn[row]
        # A turn smaller than what counts as a jump (a motor's, behind a large gear) cannot be detected.
        wraps = jumps & (np.abs(moves - turn) < NEAR_A_TURN * turn) & (turn > 0)
        for kind, mask in (("wrap", wraps), ("jump", jumps & ~wraps)):
            found = np.flatnonzero(mask)
            self._counts[kind][row] += found.size
            places = self._places[kind][row]
            places += [float(stamp) for stamp in time[found[: FEW - len(places)] + 1]]
        if jumps.any():
            self._largest[row] = max(self._largest[row], float(moves[jumps].max()))

    def findings(self) -> Iterator[Finding]:
        """Yield jumps and wraps of each joint."""
        for row, joint in enumerate(self._subject.joints):
            for kind, cause, remedy in _JUMPS:
                count = int(self._counts[kind][row])
                if count:
                    text = f"{joint} jumps {count} times by up to {self._largest[row]:.4g}: {cause}"
                    places = tuple(self._places[kind][row])
                    values = {"largest": float(self._largest[row])}
                    severity = "bad" if kind == "wrap" else "warning"
                    yield Finding(kind, severity, text, "q", joint, count, places, "s", values, remedy)


LEAST_STEPS = 20
"""Small steps needed to detect a grid."""
SMALL = 5.5
"""Steps of up to so many of the smallest are used: rounding of written numbers spoils larger ones."""
OFF_GRID = 0.1
"""Largest distance from a multiple, in steps; nine in ten must be nearer."""
ATTEMPTS = 16
"""Blocks in which a grid is looked for."""


class Quantisation:
    """Looks at the first blocks until each joint's step is known."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._steps: list[float | None] = [None] * len(subject.joints)
        self._attempts = 0

    def take(self, block: Samples, fresh: int) -> None:
        """Find the step of joints whose step is not known yet."""
        number = self._subject.row("q")
        if number is None or None not in self._steps or self._attempts == ATTEMPTS:
            return
        self._attempts += 1
        for row, known in enumerate(self._steps):
            if known is None:
                self._steps[row] = quantum(block.channels[number][row])

    def findings(self) -> Iterator[Finding]:
        """Yield the step of each joint on a grid."""
        for joint, step in zip(self._subject.joints, self._steps, strict=True):
            if step:
                text = f"q of {joint} comes in steps of {step:.6g}"
                yield Finding("quantisation", "info", text, "q", joint, values={"step": step})


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
