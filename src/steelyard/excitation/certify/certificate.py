"""Certificates: bounds on the worst values of a motion over continuous time, compared with its limits.

Joint positions and rates have their extremes in closed form. Everything else is bounded on intervals of time
(:class:`Bounder`) and the intervals that could still hold the largest value are split: branch and bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ...motion import MotionLimits, Trajectory
from ...motion.limits import QUANTITIES
from ...text import short_repr
from .space_bounds import SpaceBounder, SpaceGraph
from .torque_bounds import TorqueBounder, breaks
from .torque_graph import TorqueGraph

# A limit reached exactly is not refused for the rounding of its last digits, relative to its size.
_EXACT = 1e-12
# Intervals at the start, over all sections, and at least so many in each.
_FIRST_INTERVALS, _FEWEST_IN_SECTION = 400, 4
# Intervals evaluated together for little more than the price of one; the rest are split into as many parts as fill it.
_BATCH, _MOST_PARTS = 256, 8
# Narrower intervals, relative to the last break, say nothing new: their bounds are all rounding.
_NARROWEST = 1e-13
# A distance from a limit of zero, a clearance, need not be known better than to this part of it.
_OF_A_DISTANCE = 1e-3
DEFAULT_TOLERANCE = 1e-6
MOST_INTERVALS = 40_000


class Bounder(Protocol):
    """Bounds of g scalar functions of time that must not exceed their limits."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the functions in messages."""
        ...

    @property
    def limits(self) -> np.ndarray:
        """Their limits (g,), infinite where there is none."""
        ...

    def bounds(
        self, begin: np.ndarray, end: np.ndarray, wanted: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return values at the middles of K intervals, and upper bounds on all of each, both (g, K).

        Bounds that are not ``wanted`` (g, K) may be infinite.
        """
        ...


@dataclass(frozen=True)
class LimitFinding:
    """One limit and the worst value that a motion reaches.

    Attributes:
        name: What is limited.
        worst: A bound on the worst value over continuous time.
        limit: What is allowed; infinite where nothing is forbidden.
        instant: When a value close to the worst is reached [s].
        violation: By how much the worst is beyond the limit; 0 where the limit holds.
    """

    name: str
    worst: float
    limit: float
    instant: float
    violation: float


@dataclass(frozen=True)
class Certificate:
    """The findings of all limits.

    Attributes:
        findings: One for each limit.
    """

    __repr__ = short_repr

    findings: tuple[LimitFinding, ...]

    @property
    def holds(self) -> bool:
        """True if every limit holds at every instant."""
        return all(finding.violation == 0 for finding in self.findings)

    @property
    def worst_violation(self) -> LimitFinding | None:
        """The finding whose violation is largest relative to its limit, if there is one."""
        broken = [finding for finding in self.findings if finding.violation > 0]
        return max(broken, key=lambda finding: finding.violation / _size(finding.limit), default=None)

    def __add__(self, other: Certificate) -> Certificate:
        """Return the findings of both."""
        return Certificate(self.findings + other.findings)


def _size(limit: float) -> float:
    return abs(limit) if 0 < abs(limit) < np.inf else 1.0


def joint_findings(trajectory: Trajectory, limits: MotionLimits) -> tuple[LimitFinding, ...]:
    """Return the findings of the finite limits of position, velocity, acceleration and jerk, from exact extremes.

    Of a lower limit, ``worst`` is the smallest position, and the violation is how far it lies below.
    """
    extrema = trajectory.in_order(limits.joints).extrema()
    found = []
    for quantity in QUANTITIES:
        peak, allowed = getattr(extrema, quantity), getattr(limits, quantity)
        for row, joint in enumerate(limits.joints):
            worst, limit = float(peak.value[row]), float(allowed[row])
            if np.isfinite(limit):
                beyond = limit - worst if quantity == "lower" else worst - limit
                violation = beyond if beyond > _EXACT * max(abs(limit), 1.0) else 0.0
                found.append(LimitFinding(f"{quantity} of {joint}", worst, limit, float(peak.time[row]), violation))
    return tuple(found)


def certify(
    bounders: Iterable[Bounder],
    breaks: np.ndarray,
    *,
    tolerance: float = DEFAULT_TOLERANCE,
    decide: bool = False,
    most_intervals: int = MOST_INTERVALS,
) -> Certificate:
    """Return a bound on the largest value of every function over continuous time.

    ``worst`` is never below a value that the motion takes. It is within ``tolerance`` times the limit's size of a value
    that is taken at ``instant``, unless ``most_intervals`` ran out first. For a limit of zero, where the value is a
    clearance with its sign changed, the size is 1, and a thousandth of the value is close enough.

    Args:
        bounders: The functions.
        breaks: Increasing instants (s,) [s] at which intervals must be split, both ends included
            (:func:`~steelyard.excitation.certify.torque_bounds.breaks`).
        tolerance: How close the bound must come, relative to the limit's size.
        decide: Ask only whether limits hold, which is much cheaper. ``worst`` is then, where the limit holds, some
            bound that does not exceed it; where it is broken, some value beyond it that is taken. A value within the
            tolerance below its limit may remain undecided; its bound, which may exceed the limit by as much, is
            reported.
        most_intervals: Intervals spent on each bounder.
    """
    findings = []
    for bounder in bounders:
        findings += _Refinement(bounder, tolerance, decide).run(breaks, most_intervals)
    return Certificate(tuple(findings))


def first_intervals(breaks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return begins and ends (K,) of a first division of the time between breaks, finer where sections are long."""
    lengths = np.diff(breaks)
    counts = np.maximum(np.ceil(_FIRST_INTERVALS * lengths / lengths.sum()).astype(int), _FEWEST_IN_SECTION)
    return _split(breaks[:-1], breaks[1:], counts)


def _split(begin: np.ndarray, end: np.ndarray, parts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cut every interval into its number of parts; neighbours share their ends exactly."""
    number = np.concatenate([np.arange(count) for count in parts])
    low, high, count = (np.repeat(array, parts) for array in (begin, end, parts))

    def cut(step: np.ndarray) -> np.ndarray:
        return np.where(step == count, high, low + (high - low) * (step / count))

    return cut(number), cut(number + 1)


@dataclass
class _Refinement:
    """Branch and bound for the functions of one bounder."""

    bounder: Bounder
    tolerance: float
    decide: bool
    best: np.ndarray = field(init=False)
    instant: np.ndarray = field(init=False)
    ceiling: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.limits = np.asarray(self.bounder.limits, dtype=float)
        self.best = np.full(len(self.limits), -np.inf)
        self.instant = np.zeros(len(self.limits))
        self.ceiling = np.full(len(self.limits), -np.inf)  # over all time that is not searched further

    def run(self, breaks: np.ndarray, most_intervals: int) -> list[LimitFinding]:
        begin, end = first_intervals(breaks)
        inherited = np.full((len(self.limits), len(begin)), np.inf)
        wanted = np.ones(inherited.shape, dtype=bool)
        narrowest = _NARROWEST * max(abs(breaks[0]), abs(breaks[-1]))
        spent = 0
        while len(begin):
            spent += len(begin)
            upper = np.minimum(self._evaluated(begin, end, wanted), inherited)
            is_open = self._open(upper) & (end - begin > narrowest)
            if spent + 2 * int(is_open.any(axis=0).sum()) > most_intervals:
                is_open[:] = False
            going = is_open.any(axis=0)
            self._close(upper[:, ~going])
            parts = np.clip(_BATCH // max(int(going.sum()), 1), 2, _MOST_PARTS)
            counts = np.full(int(going.sum()), parts)
            begin, end = _split(begin[going], end[going], counts) if going.any() else (begin[:0], end[:0])
            inherited, wanted = (np.repeat(rows[:, going], counts, axis=1) for rows in (upper, is_open))
        return self._findings()

    def _evaluated(self, begin: np.ndarray, end: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """Evaluate intervals, remember the best values found, return the upper bounds (g, K)."""
        values, upper = self.bounder.bounds(begin, end, wanted)
        largest = np.argmax(values, axis=1)
        rows = np.arange(len(values))
        better = values[rows, largest] > self.best
        self.best = np.where(better, values[rows, largest], self.best)
        self.instant = np.where(better, 0.5 * (begin + end)[largest], self.instant)
        return np.maximum(upper, values)

    def _open(self, upper: np.ndarray) -> np.ndarray:
        """Return which intervals (g, K) could still change the answer for each function."""
        is_open = upper > (self.best + self._resolution())[:, None]
        if self.decide:
            undecided = (self.best <= self.limits)[:, None] & (upper > self.limits[:, None])
            is_open &= undecided
        return is_open

    def _resolution(self) -> np.ndarray:
        """Return how close to the best value found each bound must come (g,)."""
        reached = np.abs(self.best)
        size = np.where(np.isfinite(self.limits), np.abs(self.limits), np.maximum(reached, 1e-9))
        plain = self.tolerance * size
        return np.where(self.limits == 0, np.maximum(self.tolerance, _OF_A_DISTANCE * reached), plain)

    def _close(self, upper: np.ndarray) -> None:
        self.ceiling = np.maximum(self.ceiling, upper.max(axis=1, initial=-np.inf))

    def _findings(self) -> list[LimitFinding]:
        worst = np.maximum(self.best, self.ceiling)
        if self.decide:
            worst = np.where(self.best > self.limits, self.best, worst)
        violation = np.where(worst > self.limits, worst - self.limits, 0.0)
        rows = zip(self.bounder.names, worst, self.limits, self.instant, violation, strict=True)
        return [LimitFinding(name, *(float(number) for number in numbers)) for name, *numbers in rows]


@dataclass(frozen=True, eq=False)
class Certifier:
    """Certifies one motion after another: limits and the functions that bound them over continuous time.

    Attributes:
        limits: Limits of the joints.
        torques: Torques of each run of the motion, and what is added to their names.
        torque_limits: Limits of the torques (n,), infinite where there is none.
        space: The rules about points of the arm; None if there are none.
    """

    __repr__ = short_repr

    limits: MotionLimits
    torques: tuple[tuple[TorqueGraph, str], ...]
    torque_limits: np.ndarray
    space: SpaceGraph | None

    def __call__(self, trajectory: Trajectory, *, decide: bool = False) -> Certificate:
        """Return the worst values of a motion; with ``decide`` only whether they are allowed, which is cheaper."""
        bounders: list[Bounder] = [
            TorqueBounder(graph, trajectory, self.torque_limits, ending) for graph, ending in self.torques
        ]
        if self.space is not None:
            bounders.append(SpaceBounder(self.space, trajectory))
        joints = Certificate(joint_findings(trajectory, self.limits))
        return joints + certify(bounders, breaks(trajectory), decide=decide)
