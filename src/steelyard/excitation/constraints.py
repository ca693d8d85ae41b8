"""Constraints of a motion on a grid of instants: values that must not be above zero, and their adjoints.

Values are parts of their limits (a clearance in parts of ``CLEARANCE_SCALE``), so that one penalty fits all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ..motion import MotionLimits
from ..physics import motion_symbols
from ..robot import Robot
from .rows import Differentiable, Motion, differentiable
from .space.capsules import CapsulePair, PairBatch
from .space.regions import HalfSpace
from .space.rules import PointRule, SpaceRule, stacked_places

CLEARANCE_SCALE = 0.1
"""Clearance [m] that weighs as much as the whole of a joint's limit."""

SPACE_FINER = 4

Samples = np.ndarray
"""Positions, velocities, accelerations and jerks on the grid (4, n, N)."""


def motion_of(samples: Samples) -> Motion:
    """Return positions, velocities and accelerations alone."""
    return samples[0], samples[1], samples[2]


@dataclass(frozen=True, eq=False)
class ConstraintBlock(ABC):
    """Constraints of one kind.

    Attributes:
        finer: How many times finer than that of the criterion its grid is.
        names: Name of each row, as certificates name it.
        units: What counts as 1 in each row's values (k,), in SI units.
    """

    finer: ClassVar[int] = 1
    names: tuple[str, ...]
    units: np.ndarray

    @abstractmethod
    def values(self, samples: Samples) -> np.ndarray:
        """Return values (k, N), kept where they are at most 0."""

    @abstractmethod
    def pull_back(self, samples: Samples, weights: np.ndarray, back: np.ndarray) -> None:
        """Add to ``back`` (4, n, N) the gradient of ``sum weights * values`` by the samples."""


@final
@dataclass(frozen=True, eq=False)
class JointBlock(ConstraintBlock):
    """``A x - b <= 0`` for the positions, velocities, accelerations and jerks x of all joints at an instant.

    Attributes:
        matrix: A (k, 4 n).
        limit: b (k,), in units.
    """

    matrix: np.ndarray
    limit: np.ndarray

    def values(self, samples: Samples) -> np.ndarray:
        """Return the excess over the limits, in units."""
        return self.matrix @ samples.reshape(-1, samples.shape[-1]) - self.limit[:, None]

    def pull_back(self, samples: Samples, weights: np.ndarray, back: np.ndarray) -> None:
        """Add the weights to the quantities that they are about."""
        back += (self.matrix.T @ weights).reshape(back.shape)


@final
@dataclass(frozen=True, eq=False)
class TorqueBlock(ConstraintBlock):
    """``|tau| / limit - 1 <= 0`` for chosen joints.

    Attributes:
        units: Their limits (k,).
        function: The torques.
        rows: Which joints (k,).
    """

    function: Differentiable
    rows: np.ndarray

    def values(self, samples: Samples) -> np.ndarray:
        """Return the excess over the limit."""
        return np.abs(self.function(motion_of(samples))[0][self.rows]) / self.units[:, None] - 1.0

    def pull_back(self, samples: Samples, weights: np.ndarray, back: np.ndarray) -> None:
        """Add the gradient by position, velocity and acceleration."""
        torques = self.function(motion_of(samples))[0]
        seeds = np.zeros_like(torques)
        seeds[self.rows] = weights * np.sign(torques[self.rows]) / self.units[:, None]
        for order, gradient in enumerate(self.function.pull_back(motion_of(samples), [seeds])):
            back[order] += gradient


@final
@dataclass(frozen=True, eq=False)
class PlaneBatch:
    """Points that keep on the same side of a plane: ``normal . p >= offset``.

    Attributes:
        numbers: Number of each point's rule among the names (m,).
        rows: Row of each point among the places (m,).
        normal: Unit normal of the plane (3,).
        offset: Of each point, its margin included (m,).
    """

    numbers: np.ndarray
    rows: np.ndarray
    normal: np.ndarray
    offset: np.ndarray

    def missing(self, places: np.ndarray) -> np.ndarray:
        """Return what is missing of the clearances (m, N) at places (k, 3, N)."""
        return self.offset[:, None] - self.normal @ places[self.rows]

    def push(self, seeds: np.ndarray, weights: np.ndarray) -> None:
        """Add to the gradient by the places (k, 3, N) that of ``sum weights * clearances``, weights (m, N)."""
        for row, weight in zip(self.rows, weights, strict=True):
            seeds[row] += self.normal[:, None] * weight


@final
@dataclass(frozen=True, eq=False)
class SpaceBlock(ConstraintBlock):
    """Clearances of rules about points of the arm.

    Its grid is finer: the arm may jump over an obstacle between instants that are near enough for anything else.

    Attributes:
        places: Positions of all their points (3 k, N).
        points: The rules on one point each: number among the names, row of its point, rule.
        planes: Rules that keep several points on one side of a plane each, as the floor does.
        pairs: Numbers among the names of the pairs of capsules.
        batch: Those pairs.
    """

    finer = SPACE_FINER
    places: Differentiable
    points: tuple[tuple[int, list[int], SpaceRule], ...]
    planes: tuple[PlaneBatch, ...]
    pairs: np.ndarray
    batch: PairBatch

    def values(self, samples: Samples) -> np.ndarray:
        """Return what is missing of each clearance, in parts of the scale."""
        places = self._placed(samples)
        missing = np.empty((len(self.names), places.shape[2]))
        for number, rows, rule in self.points:
            missing[number] = -rule.clearance(places[rows])[0]
        for plane in self.planes:
            missing[plane.numbers] = plane.missing(places)
        missing[self.pairs] = -self.batch.clearances(places)
        return missing / CLEARANCE_SCALE

    def pull_back(self, samples: Samples, weights: np.ndarray, back: np.ndarray) -> None:
        """Add the gradient by position."""
        places = self._placed(samples)
        scaled = -weights / CLEARANCE_SCALE
        seeds = self.batch.pull_back(places, scaled[self.pairs])
        for number, rows, rule in self.points:
            if weights[number].any():
                np.add.at(seeds, rows, rule.clearance(places[rows])[1] * scaled[number])
        for plane in self.planes:
            plane.push(seeds, scaled[plane.numbers])
        back[0] += self.places.pull_back((samples[0],), [seeds.reshape(-1, places.shape[2])])[0]

    def _placed(self, samples: Samples) -> np.ndarray:
        """Return the places (k, 3, N)."""
        places = self.places((samples[0],))[0]
        return places.reshape(-1, 3, places.shape[1])


def joint_block(limits: MotionLimits) -> JointBlock:
    """Return the constraints on positions, velocities, accelerations and jerks; infinite limits are none."""
    count = len(limits.joints)
    span = np.where(np.isfinite(limits.upper - limits.lower), (limits.upper - limits.lower) / 2, 1.0)
    table = [(0, "lower", -1.0, -limits.lower, span), (0, "upper", 1.0, limits.upper, span)]
    for order, what in ((1, "velocity"), (2, "acceleration"), (3, "jerk")):
        limit = getattr(limits, what)
        table += [(order, what, sign, limit, limit) for sign in (1.0, -1.0)]
    names, rows, bounds, scales = [], [], [], []
    for order, what, sign, limit, scale in table:
        for joint in np.flatnonzero(np.isfinite(limit)):
            names.append(f"{what} of {limits.joints[int(joint)]}")
            rows.append(np.zeros(4 * count))
            rows[-1][order * count + joint] = sign / scale[joint]
            bounds.append(limit[joint] / scale[joint])
            scales.append(scale[joint])
    matrix = np.array(rows).reshape(len(rows), 4 * count)
    return JointBlock(tuple(names), np.array(scales), matrix, np.array(bounds))


def torque_block(function: Differentiable, limit: np.ndarray, joints: Sequence[str], ending: str) -> TorqueBlock | None:
    """Return the constraints on torques; None if no torque is limited."""
    rows = np.flatnonzero(np.isfinite(limit))
    if not len(rows):
        return None
    return TorqueBlock(tuple(f"torque of {joints[int(row)]}{ending}" for row in rows), limit[rows], function, rows)


def space_block(robot: Robot, rules: Sequence[SpaceRule]) -> ConstraintBlock | None:
    """Return the constraints on points of the arm; None if there is no rule."""
    if not rules:
        return None
    points = list(dict.fromkeys(point for rule in rules for point in rule.points))
    q, _, _ = motion_symbols(robot)
    places = differentiable("places", [q], [stacked_places(robot, points, q)])
    row_of = {point: row for row, point in enumerate(points)}
    rows = [[row_of[point] for point in rule.points] for rule in rules]
    pairs = [number for number, rule in enumerate(rules) if isinstance(rule, CapsulePair)]
    planes, batched = _planes(rules, rows)
    others = tuple((n, rows[n], rule) for n, rule in enumerate(rules) if n not in {*pairs, *batched})
    batch = PairBatch([rule for rule in rules if isinstance(rule, CapsulePair)], [rows[n] for n in pairs], len(points))
    units = np.full(len(rules), CLEARANCE_SCALE)
    rule_names = tuple(rule.name for rule in rules)
    return SpaceBlock(rule_names, units, places, others, planes, np.array(pairs, dtype=np.intp), batch)


def _planes(rules: Sequence[SpaceRule], rows: Sequence[list[int]]) -> tuple[tuple[PlaneBatch, ...], set[int]]:
    """Return the planes on one side of which several rules keep a point each, and the numbers of those rules."""
    by_plane: dict[HalfSpace, list[int]] = {}
    for number, rule in enumerate(rules):
        if isinstance(rule, PointRule) and isinstance(rule.region, HalfSpace) and rule.keep == "keep_in":
            by_plane.setdefault(rule.region, []).append(number)
    shared = [(plane, numbers) for plane, numbers in by_plane.items() if len(numbers) > 1]
    batches = tuple(
        PlaneBatch(
            np.array(numbers), np.array([rows[number][0] for number in numbers]), np.array(plane.unit),
            plane.offset + np.array([getattr(rules[number], "margin", 0.0) for number in numbers]),
        )
        for plane, numbers in shared
    )  # fmt: skip
    return batches, {number for _, numbers in shared for number in numbers}
