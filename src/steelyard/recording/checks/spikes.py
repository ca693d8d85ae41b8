"""Spikes: one or two samples far off those on both sides, in torques and in positions.

The residual ``r = x - median of five neighbours`` is blind to steps and ramps: Coulomb friction that reverses is a
step, and the middle one of five samples lies on its longer side. A sample is a spike where ``|r|`` exceeds ten standard
deviations of the noise (its 90 % quantile, so that a tenth of the samples may be spikes) and a part of the signal's
own range. Gaussian noise exceeds the first bound once in 1e23 samples. Where a joint reverses or stands
still its torque may really jump to and fro between two samples; there torques are not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...tables.table import FEW
from ..record import Finding, Samples
from .subject import Subject
from .values import LEAST_JUMP

DEVIATIONS = 10.0
"""Residuals beyond this many standard deviations of the noise are no noise."""
PART_OF_RANGE = 0.25
"""Nor do spikes in torque smaller than this part of the signal's range (2 % to 98 %) matter."""
STEPS = 3.0
"""Nor spikes in position smaller than this many of the large steps (90 %) from sample to sample."""
NOTABLE = 0.05
"""Spikes whose rms over the whole log is below this part of the signal's (of its steps, for positions) do no harm."""
LEAST_SAMPLES = 64
_NORMAL_90 = 1.645
_REMEDY = "cut these rows out of the log (a gap is no harm), and look for lost packets and electrical faults"
_REACH = 3
"""Samples either way over which the direction of motion is determined."""
_NEAR = 5
"""Samples either way of a reversal in which torques are not judged."""
_SLOW = 0.05
"""Part of the highest speed below which a joint counts as standing still."""


class Spikes:
    """Counts spikes of every torque and position, and adds up their energy and the signal's."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        channels = [number for number, role in enumerate(subject.roles) if role in ("q", "torque")]
        self._rows = {number: subject.rows(number) for number in channels}
        self._counts = {number: np.zeros(len(rows), int) for number, rows in self._rows.items()}
        self._largest = {number: np.zeros(len(rows)) for number, rows in self._rows.items()}
        self._energy = {number: np.zeros((2, len(rows))) for number, rows in self._rows.items()}
        self._bounds: dict[int, np.ndarray] = {}
        self._places: dict[tuple[int, int], list[float]] = {}

    def take(self, block: Samples, fresh: int) -> None:
        """Add the spikes of a block; its first and last two samples have too few neighbours."""
        if block.count < LEAST_SAMPLES and not self._bounds:
            return
        motion = self._subject.row("q")
        for number in self._rows:
            values = block.channels[number]
            if block.count < 5:
                continue
            residual = values[:, 2:-2] - _median_of_five(values)
            size = np.abs(residual)
            if block.count >= LEAST_SAMPLES:
                self._bounds[number] = self._bound(number, values, size)
            self._add_signal(number, values, block.time)
            suspect = size > self._bounds[number][:, None]
            for row in map(int, np.flatnonzero(suspect.any(axis=1))):
                found = suspect[row] & self._judged(number, row, block, motion)
                self._add(number, row, size[row], found, block.time)

    def _bound(self, number: int, values: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Return the size beyond which a residual is a spike, for each row."""
        noise = np.quantile(size, 0.9, axis=1) / _NORMAL_90
        if self._subject.roles[number] == "q":
            steps = np.quantile(np.abs(np.diff(values, axis=1)), 0.9, axis=1)
            least = np.maximum(STEPS * steps, LEAST_JUMP[self._subject.revolute.astype(int)] / 10)
        else:
            low, high = np.quantile(values, [0.02, 0.98], axis=1)
            least = PART_OF_RANGE * (high - low)
        return np.maximum(DEVIATIONS * noise, least)

    def _add_signal(self, number: int, values: np.ndarray, time: np.ndarray) -> None:
        """Add the energy of the signal: of a torque about its median, of a position's steps."""
        if self._subject.roles[number] == "q":
            steps = np.diff(values, axis=1)
            calm = np.abs(steps) <= self._bounds[number][:, None]
            self._energy[number][1] += np.sum(np.where(calm, steps, 0.0) ** 2, axis=1)
        else:
            centred = values - np.median(values, axis=1, keepdims=True)
            spread = np.quantile(np.abs(centred), 0.9, axis=1, keepdims=True)
            self._energy[number][1] += np.sum(np.minimum(np.abs(centred), 2 * spread) ** 2, axis=1)

    def _judged(self, number: int, row: int, block: Samples, motion: int | None) -> np.ndarray:
        """Return which inner samples can be judged: torques not where their joint reverses or stands still."""
        inner = slice(2, -2)
        if self._subject.roles[number] == "q":
            jump = np.abs(np.diff(block.channels[number][row]))
            limit = np.maximum(
                self._subject.fastest[row] * np.diff(block.time), LEAST_JUMP[int(self._subject.revolute[row])]
            )
            fast = np.concatenate([[False], jump > limit]) | np.concatenate([jump > limit, [False]])
            return ~fast[inner]  # what is too fast for any drive is reported as a jump
        if motion is None or self._subject.kinds[number] == "wrench":
            return np.ones(block.count - 4, bool)
        q = block.channels[motion][row]
        moved = np.zeros(q.size)
        moved[_REACH:-_REACH] = q[2 * _REACH :] - q[: -2 * _REACH]
        moved[:_REACH], moved[-_REACH:] = moved[_REACH], moved[-_REACH - 1]
        slow = np.abs(moved) <= _SLOW * np.quantile(np.abs(moved), 0.99)
        slow[1:] |= moved[1:] * moved[:-1] <= 0
        near = np.convolve(slow, np.ones(2 * _NEAR + 1), mode="same") > 0
        return ~near[inner]

    def _add(self, number: int, row: int, size: np.ndarray, found: np.ndarray, time: np.ndarray) -> None:
        places = np.flatnonzero(found)
        if not places.size:
            return
        self._counts[number][row] += places.size
        self._largest[number][row] = max(self._largest[number][row], float(size[places].max()))
        self._energy[number][0, row] += float(np.sum(size[places] ** 2))
        stamps = self._places.setdefault((number, row), [])
        stamps += [float(stamp) for stamp in time[places[: FEW - len(stamps)] + 2]]

    def findings(self) -> Iterator[Finding]:
        """Yield the spikes of each torque and position."""
        for number, rows in self._rows.items():
            label, position = self._subject.labels[number], self._subject.roles[number] == "q"
            for row in map(int, np.flatnonzero(self._counts[number])):
                count, largest = int(self._counts[number][row]), float(self._largest[number][row])
                spikes, signal = self._energy[number][:, row]
                part = float(np.sqrt(spikes * (2 if position else 1) / signal)) if signal > 0 else np.inf
                text = (
                    f"{label} of {rows[row]} has {count} spike{'s' if count > 1 else ''} of up to {largest:.4g}: "
                    f"one or two samples far off their neighbours; {100 * part:.2g} % rms of "
                    f"{'its steps from sample to sample' if position else 'the signal'}"
                )
                values = {"largest": largest, "part": part}
                places = tuple(self._places[number, row])
                severity = "warning" if part > NOTABLE else "info"
                yield Finding("spikes", severity, text, label, rows[row], count, places, "s", values, _REMEDY)


def _median_of_five(values: np.ndarray) -> np.ndarray:
    """Return the median of every five neighbours (rows, N - 4), by a network of comparisons."""
    a, b, c, d, e = (values[:, k : values.shape[1] - 4 + k] for k in range(5))
    low, high = np.minimum(a, b), np.maximum(a, b)
    other_low, other_high = np.minimum(d, e), np.maximum(d, e)
    # The least and the largest of the four cannot be the median of five.
    first, last = np.maximum(low, other_low), np.minimum(high, other_high)
    return np.maximum(np.minimum(first, last), np.minimum(np.maximum(first, last), c))
