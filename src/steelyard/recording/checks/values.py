"""Ranges: channels that never change, positions outside the limits, degrees taken for radians."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ..record import WRENCH_ROWS, Finding
from ..samples import Samples
from ..tables.table import FEW
from .subject import Subject

TOLERANCE = 0.005
"""Limits are often rounded; less than this outside is not worth a word [rad or m]."""
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
                seen = number in self._least
                self._least[number] = np.minimum(self._least[number], least) if seen else least
                self._most[number] = np.maximum(self._most[number], most) if seen else most
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
            rows = WRENCH_ROWS if self._subject.kinds[number] == "wrench" else self._subject.joints
            for row in np.flatnonzero(least == self._most[number]):
                value = least[row] + 0.0  # no minus zero
                text = f"{label} of {rows[row]} is {value:.6g} throughout: {_CONSTANT[self._subject.roles[number]]}"
                severity = "info" if self._subject.roles[number] != "torque" else "warning"
                remedy = "check the column in the log and its name in the table [recording]"
                yield Finding(
                    "constant", severity, text, label, rows[row], values={"value": float(least[row])}, remedy=remedy
                )

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
        return Finding(
            "degrees", severity, text, "q", joint, int(absurd.sum()), values={"size": float(size.max())}, remedy=remedy
        )
