"""Checks of values: constant channels, limits, units of angles, jumps, encoder wraps, spikes.

A spike is one or two samples far off those on both sides. The residual ``r = x - median of five neighbours`` is zero
for steps and ramps: Coulomb friction that reverses is a step, and the middle one of five samples lies on its longer
side. A sample is a spike where ``|r|`` exceeds ten standard deviations of the noise (its 90 % quantile, so that a tenth
of the samples may be spikes) and a part of the signal's own range. Gaussian noise exceeds the first bound once in 1e23
samples. Where a joint reverses or stands still its torque may really jump to and fro between two samples; there torques
are not judged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from ...tables.table import FEW
from ...text import counted
from ..record import Finding, Samples, Severity
from .motion import HARDLY
from .subject import Subject

TOLERANCE = 0.005
"""Limits are often rounded; less than this outside is not reported [rad or m]."""
CHECKED = ("q", "qd", "torque")
STRIDE = 8
"""Samples over which the way of a joint is measured: noise and encoder steps would add to it."""
OTHER_UNIT = 7.5
"""A way that is more than this many times what velocities integrate to is in another unit (57.3: degrees)."""
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
        self._way, self._integrated_way = np.zeros(len(subject.joints)), np.zeros(len(subject.joints))

    def take(self, block: Samples, fresh: int) -> None:
        """Add the values of a block."""
        for number, (role, values) in enumerate(zip(self._subject.roles, block.channels, strict=True)):
            if role in CHECKED and values.shape[1]:
                least, most = values.min(axis=1), values.max(axis=1)
                self._least[number] = np.minimum(self._least.setdefault(number, least), least)
                self._most[number] = np.maximum(self._most.setdefault(number, most), most)
                if role == "q":
                    self._count_outside(block.time, values, least, most, fresh)
        self._add_ways(block)

    def _count_outside(self, time: np.ndarray, q: np.ndarray, least: np.ndarray, most: np.ndarray, fresh: int) -> None:
        lower, upper = self._subject.lower - TOLERANCE, self._subject.upper + TOLERANCE
        for row in np.flatnonzero((least < lower) | (most > upper)):
            outside = np.flatnonzero((q[row, fresh:] < lower[row]) | (q[row, fresh:] > upper[row])) + fresh
            self._outside[row] += outside.size
            places = self._outside_at[row]
            places += [float(stamp) for stamp in time[outside[: FEW - len(places)]]]

    def _add_ways(self, block: Samples) -> None:
        """Add the ways that joints go, by their positions and by their velocities."""
        positions, velocities = self._subject.row("q"), self._subject.row("qd")
        if positions is not None and velocities is not None and block.count > STRIDE:
            seconds = np.diff(block.time[::STRIDE])
            self._way += np.abs(np.diff(block.channels[positions][:, ::STRIDE], axis=1)).sum(axis=1)
            self._integrated_way += np.abs(block.channels[velocities][:, ::STRIDE][:, 1:]) @ seconds

    def findings(self) -> Iterator[Finding]:
        """Yield constant rows, positions outside the limits, and positions whose size says that they are degrees."""
        number = self._subject.row("q")
        yield from self._constant()
        if number is None:
            return
        degrees = self._degrees(self._least[number], self._most[number])
        yield from degrees
        if not degrees:
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
                f"{joint} goes from {least[row]:.4g} to {most[row]:.4g} in "
                f"{counted(self._outside[row], 'sample')} outside its limits {lower:.4g} to {upper:.4g}"
            )
            yield Finding(
                "outside_limits", "warning", text, "q", joint, int(self._outside[row]),
                tuple(self._outside_at[row]), "s", {"min": float(least[row]), "max": float(most[row])},
                "check zero (offset), sign and unit of q in the table [recording] of a file for --config",
            )  # fmt: skip

    def _degrees(self, least: np.ndarray, most: np.ndarray) -> list[Finding]:
        """Return findings if some turning joints go absurdly far and would fit if the numbers were degrees.

        Of single joints if at least as many others move within their limits as radians, else one of all joints.
        """
        subject = self._subject
        bound = np.maximum(np.abs(subject.lower), np.abs(subject.upper))
        limited = np.isfinite(bound)
        bound = np.where(limited, bound, 2 * math.pi)
        size = np.maximum(np.abs(least), np.abs(most))
        absurd = subject.revolute & (size > np.maximum(3 * bound, 10.0))
        if limited.any():
            absurd &= limited  # a joint without limits may well have turned round many times
        reach = 1.05 * np.maximum(bound, 2 * math.pi)
        would_fit = ~subject.revolute | (size * math.pi / 180 <= reach)
        if subject.position_unit != "rad" or not absurd.any() or not would_fit.all():
            return []
        width = np.minimum(subject.upper - subject.lower, 2 * math.pi)
        radians = subject.revolute & (size <= bound + TOLERANCE) & (most - least > HARDLY * width)
        radians &= (self._integrated_way == 0) | self._velocities_agree
        severity = "bad" if limited.any() else "warning"
        if absurd.sum() <= radians.sum():
            return self._single_joints_in_degrees(absurd, size, severity)
        joint = subject.joints[int(np.argmax(absurd))]
        text = f"positions reach {size[absurd].max():.4g} rad at {joint}, far beyond its range; as degrees they fit"
        remedy = "declare q = { columns = ..., unit = 'deg' } in the table [recording] of a file for --config"
        fix = self._degrees_declared(np.flatnonzero(subject.revolute).tolist())
        if (~subject.revolute | (size <= np.abs(subject.gears) * reach)).all():  # no gear ratio is known: false
            text += ", and as those of motors before the gears"
            remedy, fix = remedy.replace("'deg' }", "'deg' }, or side = 'motor',"), {}
        values = {"size": float(size.max())}
        return [
            Finding("degrees", severity, text, "q", joint, int(absurd.sum()), values=values, remedy=remedy, fix=fix)
        ]

    @property
    def _velocities_agree(self) -> np.ndarray:
        """Which velocities (n,) are recorded and in the unit of their positions, a second."""
        return self._way < OTHER_UNIT * self._integrated_way

    def _single_joints_in_degrees(self, absurd: np.ndarray, size: np.ndarray, severity: Severity) -> list[Finding]:
        turning = np.where(absurd, "deg", "rad")
        units = np.where(self._subject.revolute, turning, "m").tolist()
        remedy = f"declare q = {{ columns = ..., unit = {units} }} in the table [recording] of a file for --config"
        found = []
        for row in map(int, np.flatnonzero(absurd)):
            joint = self._subject.joints[row]
            text = (
                f"positions of {joint} reach {size[row]:.4g} rad, far beyond its range; as degrees they fit, while "
                "other joints move within their limits as radians"
            )
            values, fix = {"size": float(size[row])}, self._degrees_declared([row])
            found.append(Finding("degrees", severity, text, "q", joint, 1, values=values, remedy=remedy, fix=fix))
        return found

    def _degrees_declared(self, rows: Sequence[int]) -> dict[str, dict[str, str]]:
        """Return the keys that declare joints in degrees, and velocities that agree with these in degrees a second."""
        joints = self._subject.joints
        fix = {"recording.q.unit": {joints[row]: "deg" for row in rows}}
        velocities = {joints[row]: "deg/s" for row in rows if self._velocities_agree[row]}
        return fix | ({"recording.qd.unit": velocities} if velocities else {})


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
                    text = f"{joint} jumps {counted(count, 'time')} by up to {self._largest[row]:.4g}: {cause}"
                    places = tuple(self._places[kind][row])
                    values = {"largest": float(self._largest[row])}
                    yield Finding(kind, "bad", text, "q", joint, count, places, "s", values, remedy)


DEVIATIONS = 10.0
"""Residuals beyond this many standard deviations of the noise are no noise."""
PART_OF_RANGE = 0.25
"""Nor do spikes in torque smaller than this part of the signal's range (2 % to 98 %) matter."""
STEPS = 3.0
"""Nor spikes in position smaller than this many of the large steps (90 %) from sample to sample."""
NOTABLE = 0.05
"""Spikes whose rms over the whole log is below this part of the signal's (of its steps, for positions) do no harm."""
HARMFUL = 0.1
"""From this part on the fit follows them: one sample of 16 % makes sigmas ten times as large."""
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
                    f"{label} of {rows[row]} has {counted(count, 'spike')} of up to {largest:.4g}: "
                    f"one or two samples far off their neighbours; {100 * part:.2g} % rms of "
                    f"{'its steps from sample to sample' if position else 'the signal'}"
                )
                values = {"largest": largest, "part": part}
                places = tuple(self._places[number, row])
                severity = "bad" if part > HARMFUL else "warning" if part > NOTABLE else "info"
                yield Finding("spikes", severity, text, label, rows[row], count, places, "s", values, _REMEDY)


def _median_of_five(values: np.ndarray) -> np.ndarray:
    """Return the median of every five neighbours (rows, N - 4), by a network of comparisons."""
    a, b, c, d, e = (values[:, k : values.shape[1] - 4 + k] for k in range(5))
    low, high = np.minimum(a, b), np.maximum(a, b)
    other_low, other_high = np.minimum(d, e), np.maximum(d, e)
    # The least and the largest of the four cannot be the median of five.
    first, last = np.maximum(low, other_low), np.minimum(high, other_high)
    return np.maximum(np.minimum(first, last), np.minimum(np.maximum(first, last), c))
