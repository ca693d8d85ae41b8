"""The base class of motions: immutable functions of time with exact derivatives and exact extrema."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from ..errors import MotionError
from ..text import for_html, html_table, short_repr
from .checks import POSITIVE, checked_scalar, checked_times, row_order
from .figures import plot

Derivatives = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Position, velocity, acceleration and jerk, each (n, N)."""

# More samples than a day at 1 kHz are a mistyped rate, not a motion.
LARGEST_COUNT = 100_000_000

# Times this far outside, relative to the duration, are rounding and count as the end they lie next to.
TIME_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class MotionSamples:
    """A motion at N times; n joints. The arrays are not writeable.

    Attributes:
        time: Times (N,) [s].
        q: Positions (n, N) [rad or m].
        qd: Velocities (n, N) [rad/s or m/s].
        qdd: Accelerations (n, N) [rad/s^2 or m/s^2].
        qddd: Jerks (n, N) [rad/s^3 or m/s^3]; where the jerk jumps, the value after the jump.
        joints: Names of the joints, one for each row.

    Example:
        >>> samples = steelyard.quintic([[0.0, 0.4]], 1.0, ["joint_1"]).sample(rate=2)
        >>> samples.time.tolist(), samples.q.round(3).tolist()
        ([0.0, 0.5, 1.0], [[0.0, 0.2, 0.4]])
    """

    __repr__ = short_repr

    time: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray
    joints: tuple[str, ...]

    def __post_init__(self) -> None:
        freeze(self, "time", "q", "qd", "qdd", "qddd")


@dataclass(frozen=True, eq=False)
class Peak:
    """An extreme value of each joint and when it is reached.

    Attributes:
        value: The extreme value (n,).
        time: A time at which it is reached (n,) [s]; of a jerk that jumps there, from one of the two sides.

    Example:
        >>> peak = steelyard.quintic([[0.0, 0.4]], 1.0, ["joint_1"]).extrema().upper
        >>> peak.value.round(3).tolist(), peak.time.round(3).tolist()
        ([0.4], [1.0])
    """

    value: np.ndarray
    time: np.ndarray

    def __post_init__(self) -> None:
        freeze(self, "value", "time")


@dataclass(frozen=True, eq=False)
class MotionExtrema:
    """The extremes of a motion over its whole duration, from the roots of its derivatives, not from samples.

    Attributes:
        lower: Smallest positions [rad or m].
        upper: Largest positions [rad or m].
        velocity: Largest magnitudes of velocity [rad/s or m/s].
        acceleration: Largest magnitudes of acceleration [rad/s^2 or m/s^2].
        jerk: Largest magnitudes of jerk [rad/s^3 or m/s^3].
        joints: Names of the joints, one for each entry.

    Example:
        >>> extrema = steelyard.quintic([[0.0, 0.4]], 1.0, ["joint_1"]).extrema()
        >>> extrema.velocity.value.round(3).tolist(), extrema.velocity.time.round(3).tolist()
        ([0.75], [0.5])
    """

    __repr__ = short_repr

    lower: Peak
    upper: Peak
    velocity: Peak
    acceleration: Peak
    jerk: Peak
    joints: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Trajectory(ABC):
    """A motion of n joints on the interval from 0 to ``duration``. Subclasses are final.

    Attributes:
        joints: Names of the joints, one for each row.

    Example:
        >>> motion = steelyard.quintic([[0.0, 0.4]], 1.0, ["joint_1"])
        >>> motion.sample(rate=100).q.shape
        (1, 101)
    """

    joints: tuple[str, ...]

    plot = plot

    def _repr_html_(self) -> str:
        """Return duration and extremes of every joint as notebooks show them."""
        found = self.extrema()
        peaks = [getattr(found, name).value.tolist() for name in ("lower", "upper", "velocity", "acceleration", "jerk")]
        columns = ("joint", "from", "to", "largest velocity", "acceleration", "jerk")
        table = html_table(columns, list(zip(self.joints, *peaks, strict=True)))
        return f"<p>{for_html(type(self).__name__)}, {self.duration:.4g} s; rad or m, and seconds</p>{table}"

    @property
    @abstractmethod
    def duration(self) -> float:
        """How long the motion takes [s]."""

    @abstractmethod
    def derivatives(self, time: np.ndarray) -> Derivatives:
        """Return position, velocity, acceleration and jerk (n, N) at times (N,) known to be in the motion."""

    @abstractmethod
    def extrema(self) -> MotionExtrema:
        """Return the exact extremes of the motion."""

    @abstractmethod
    def _with_rows(self, joints: tuple[str, ...], rows: list[int]) -> Self:
        """Return the same motion with its rows taken in another order."""

    @property
    def core_interval(self) -> tuple[float, float]:
        """Start and stop of the motion proper [s], without approach and return."""
        return 0.0, self.duration

    def at(self, time: ArrayLike) -> MotionSamples:
        """Return the motion at given times (N,) [s], in any order.

        Raises:
            MotionError: If a time is not finite or lies outside 0 to ``duration``. A motion says nothing of before
                and after; where it begins and ends at rest, holding the posture there is the caller's choice.
        """
        times = checked_times(time)
        margin = TIME_ROUNDING * self.duration
        outside = (times < -margin) | (times > self.duration + margin)
        if outside.any():
            raise MotionError(
                f"time {times[outside][0]:.9g} s is outside the motion; allowed is 0 to {self.duration:.9g} s"
            )
        return MotionSamples(times, *self.derivatives(np.clip(times, 0.0, self.duration)), self.joints)

    def sample(self, rate: float) -> MotionSamples:
        """Return the motion at times 0, 1/rate, 2/rate, ... up to its end.

        The end is the last sample if it falls on one (to rounding); otherwise the last sample comes before it. A
        periodic motion so repeats its first sample: leave out the last one to have whole periods.

        Args:
            rate: Samples a second [Hz].
        """
        checked_scalar(rate, "rate [Hz]", POSITIVE)
        steps = self.duration * rate * (1 + TIME_ROUNDING)
        if not steps < LARGEST_COUNT:
            raise MotionError(
                f"rate {rate:g} Hz over {self.duration:g} s makes {steps:.3g} samples; at most {LARGEST_COUNT:g} "
                "are allowed: check the unit of the rate (Hz)"
            )
        return self.at(np.arange(int(steps) + 1) / rate)

    def in_order(self, joints: Sequence[str]) -> Self:
        """Return the same motion with its rows in the order of these joint names.

        Raises:
            MotionError: If a joint is missing, unknown or named twice.
        """
        rows = row_order(self.joints, joints)
        return self if rows == list(range(len(rows))) else self._with_rows(tuple(joints), rows)


def freeze(record: object, *names: str) -> None:
    """Make arrays of a frozen record float64, contiguous and not writeable; the caller's own stay as they are."""
    for name in names:
        array = np.ascontiguousarray(getattr(record, name), dtype=float).view()
        array.setflags(write=False)
        object.__setattr__(record, name, array)


# Candidates this close, relative to their size, are one extreme reached twice: rounding shall not choose between them.
TIE = 1e-12

Candidates = tuple[np.ndarray, np.ndarray]
"""Times (c,) at which a joint can be extreme, and its values (c,) there."""


def extrema_from_candidates(candidates: Sequence[Sequence[Candidates]], joints: tuple[str, ...]) -> MotionExtrema:
    """Return the extremes among candidates, given for each order of derivative (0 to 3) and each joint."""
    position = candidates[0]
    rates = [[(times, np.abs(values)) for times, values in rows] for rows in candidates[1:]]
    return MotionExtrema(_smallest(position), *map(_largest, (position, *rates)), joints=joints)


def extrema_of_parts(parts: Sequence[tuple[float, MotionExtrema]]) -> MotionExtrema:
    """Return the extremes of a motion made of parts, each given with the time [s] at which it begins."""

    def gathered(name: str) -> list[Candidates]:
        peaks = [(begin, getattr(extrema, name)) for begin, extrema in parts]
        times = np.array([begin + peak.time for begin, peak in peaks])
        values = np.array([peak.value for _, peak in peaks])
        return list(zip(times.T, values.T, strict=True))

    largest = [_largest(gathered(name)) for name in ("upper", "velocity", "acceleration", "jerk")]
    return MotionExtrema(_smallest(gathered("lower")), *largest, joints=parts[0][1].joints)


def _largest(rows: Sequence[Candidates]) -> Peak:
    """Return the largest value of each joint, and the earliest of the times that reach it to rounding."""
    best = []
    for times, values in rows:
        largest = values.max()
        best.append((largest, times[values >= largest - TIE * np.abs(values).max()].min()))
    values, times = np.array(best).T
    return Peak(values, times)


def _smallest(rows: Sequence[Candidates]) -> Peak:
    largest = _largest([(times, -values) for times, values in rows])
    return Peak(-largest.value, largest.time)
