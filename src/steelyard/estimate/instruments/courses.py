"""What the arm was told to do: the reference of a recording, stretch by stretch, at the controller's instants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from ...errors import EstimateError
from ...observe import Preparation, SettledPreparation, settle
from ...observe.reading import BLOCK, AnyRecording, template_of
from ...recording import Recording
from ...recording.kept import KeptColumns
from ...signals import LowPass, LowPassStream, low_pass
from ...simulate import Outline, OutlineStream
from .splines import SplineStream
from .stretches import Stretch, parts_of, stretches_of

# A stretch shorter than this gives no rows worth a simulation.
_LEAST_SAMPLES = 8


@dataclass(frozen=True)
class Course:
    """A stretch of a recording with what the arm was told to do in it.

    Attributes:
        stretch: The stretch.
        columns: Where its reference lies among the columns kept: at the control instants of an even grid, or at the
            samples themselves where it is not followed.
        stamps: Where its stamps lie among those kept; nowhere where they are even.
        outline: Outline of the reference; None where the stretch is too short to be simulated, so that the reference
            stands for the motion.
    """

    stretch: Stretch
    columns: slice
    stamps: slice
    outline: Outline | None


@dataclass(frozen=True, eq=False)
class Courses:
    """All stretches of a recording.

    Attributes:
        every: The courses, in the order of time.
        reference: q, qd, qdd (3 n rows), courses one after the other.
        stamps: Times since the start of a stretch, in samples (1 row), of those with uneven ones.
        recorded: Outline of the recorded positions.
    """

    every: tuple[Course, ...]
    reference: KeptColumns
    stamps: KeptColumns
    recorded: Outline

    def followed(self, first: int, last: int) -> np.ndarray:
        """Return which of the samples ``first`` to ``last`` (not included) are simulated (k,)."""
        places = np.arange(first, last)
        ends = np.array([course.stretch.samples.stop for course in self.every])
        is_followed = np.array([course.outline is not None for course in self.every])
        return is_followed[np.searchsorted(ends, places, side="right")]


def courses_of(recording: AnyRecording, settled: SettledPreparation, every: int, label: str) -> Courses:
    """Return the stretches of a recording with what the arm was told to do.

    The reference is the recorded one, or the measured positions, low-passed, where none was recorded. Between samples
    it is a cubic spline, whose derivatives are its velocities and accelerations.

    Args:
        recording: The recording; two passes are made over it, and memory does not grow with it.
        settled: Its preparation.
        every: Control periods between two samples.
        label: Name of the recording, for messages.

    Raises:
        EstimateError: If the reference has values that are no numbers.
    """
    stretches, joints = stretches_of(recording, settled), len(settled.joints)
    smooth = None if template_of(recording).reference is not None else _smoothing(recording, settled)
    reference, stamps = KeptColumns(3 * joints), KeptColumns(1)
    recorded = OutlineStream(joints, stretches[-1].samples.stop if stretches else 0)
    found: list[Course] = []
    writer: _Writer | None = None
    for number, block, part in parts_of(recording, stretches):
        if writer is None or number > len(found):
            found += [] if writer is None else [writer.course()]
            writer = _Writer(stretches[number], settled.rate, every, smooth, (reference, stamps))
        writer.push(block.time[part], _commanded(block, label)[:, part])
        recorded.push(block.q[:, part])
    found += [] if writer is None else [writer.course()]
    return Courses(tuple(found), reference, stamps, recorded.outline())


def _commanded(block: Recording, label: str) -> np.ndarray:
    commanded = block.q if block.reference is None else block.reference
    if not np.isfinite(commanded).all():
        joint = block.joints[int(np.flatnonzero(~np.isfinite(commanded).all(axis=1))[0])]
        raise EstimateError(
            f"recording '{label}': the reference of joint '{joint}' has values that are no numbers; cut these samples "
            "out, or leave the reference channel away"
        )
    return commanded


def _smoothing(recording: AnyRecording, settled: SettledPreparation) -> LowPass:
    """Return the low-pass that makes measured positions a reference: the preparation's, without delay."""
    cutoff = settled.cutoff or settle(Preparation(rate=settled.rate), [recording]).cutoff
    return low_pass(settled.rate, cutoff, settled.chosen.order)


class _Writer:
    """Keeps the reference of one stretch while its samples pass: made even, low-passed, read at the control instants.

    Args:
        stretch: The stretch.
        rate: Rate of the recording [Hz].
        every: Control periods between two samples.
        smooth: Low-pass of the samples, if there is one.
        kept: Where to keep reference and stamps.
    """

    def __init__(
        self,
        stretch: Stretch,
        rate: float,
        every: int,
        smooth: LowPass | None,
        kept: tuple[KeptColumns, KeptColumns],
    ) -> None:
        self._stretch, self._rate, self._every = stretch, rate, every
        self._reference, self._stamps = kept
        self._first, self._grid = tuple(columns.count for columns in kept), stretch.grid(rate)
        shortest, count = _LEAST_SAMPLES, stretch.count
        if smooth is not None:
            shortest, count = max(shortest, sum(smooth.ends()) + 1, smooth.pad + 1), min(count, self._grid)
        self._is_followed = count >= shortest
        self._even = None if stretch.is_even else SplineStream()
        self._smooth = None if smooth is None else LowPassStream(smooth)
        self._curve, self._taken = SplineStream(orders=3), 0
        self._outline = OutlineStream(self._reference.rows // 3, self._grid * every, every)
        self._gridded = self._read = 0

    def push(self, time: np.ndarray, told: np.ndarray) -> None:
        """Take stamps (m,) [s], and what was told then (n, m)."""
        if not self._is_followed:
            self._reference.put(np.concatenate([told, np.zeros((2 * len(told), told.shape[1]))]))
        elif self._even is None:
            self._take(told)
        else:
            stamps = (time - self._stretch.start) * self._rate
            self._stamps.put(stamps[None])
            self._even.push(stamps, told)
            self._take_grid(int(max(np.floor(self._even.limit) + 1, 0)))

    def course(self) -> Course:
        """End the stretch and return its course."""
        outline = None
        if self._is_followed:
            if self._even is not None:
                self._even.end()
                self._take_grid(self._grid)
            if self._smooth is not None:
                self._keep(self._smooth.flush())
            self._curve.end()
            self._write(self._taken)
            outline = self._outline.outline()
        columns, stamps = map(slice, self._first, (self._reference.count, self._stamps.count))
        return Course(self._stretch, columns, stamps, outline)

    def _take_grid(self, stop: int) -> None:
        if self._even is not None and stop > self._gridded:
            places = np.arange(self._gridded, stop, dtype=float)
            self._gridded = stop
            self._take(self._even.read(np.minimum(places, self._even.last)))

    def _take(self, told: np.ndarray) -> None:
        self._keep(told if self._smooth is None else self._smooth.push(told))

    def _keep(self, told: np.ndarray) -> None:
        if told.shape[1]:
            self._curve.push(np.arange(self._taken, self._taken + told.shape[1], dtype=float), told)
            self._taken += told.shape[1]
            self._write(int(max(self._curve.limit, 0.0)))

    def _write(self, stop: int) -> None:
        """Keep the reference from the sample where it ended to another."""
        if stop <= self._read:
            return
        instants = np.arange(self._read * self._every, stop * self._every) / self._every
        columns = self._curve.read(np.minimum(instants, self._taken - 1))
        size = len(columns) // 3
        columns *= np.repeat(self._rate ** np.arange(3.0), size)[:, None]
        self._outline.push(columns[:size])
        self._reference.put(columns)
        self._read = stop


def at_stamps(course: Course, stamps: KeptColumns, grid: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield signals (rows, m) of the even grid, which come in blocks, at the samples of a course."""
    if course.stretch.is_even:
        yield from grid
        return
    curve, taken, done = SplineStream(), 0, course.stamps.start
    for block in chain(grid, [None]):
        if block is None:
            curve.end()
        else:
            curve.push(np.arange(taken, taken + block.shape[1], dtype=float), block)
            taken += block.shape[1]
        while done < course.stamps.stop:
            places = stamps.read(done, min(done + BLOCK, course.stamps.stop))[0]
            places = places[places <= curve.limit]
            if not len(places):
                break
            yield curve.read(places)
            done += len(places)
