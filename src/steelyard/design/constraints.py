"""What a motion must keep, on a grid of instants: values that must not be above zero, and the way back from them.

Values are parts of their limits (a clearance in parts of ``CLEARANCE_SCALE``), so that one penalty fits all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from ..motion import MotionLimits
from ..physics import motion_symbols
from ..robot import Robot
from .rows import Differentiable, differentiable
from .space.places import stacked_places
from .space.rules import SpaceRule

CLEARANCE_SCALE = 0.1
"""Clearance [m] that weighs as much as the whole of a joint's limit."""

Samples = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Positions, velocities, accelerations and jerks on the grid, each (n, N)."""


@dataclass(frozen=True, eq=False)
class Block(ABC):
    """Constraints of one kind.

    Attributes:
        names: Name of each row, as certificates name it.
    """

    names: tuple[str, ...]

    @property
    @abstractmethod
    def units(self) -> np.ndarray:
        """What counts as 1 in each row's values (k,), in SI units."""

    @abstractmethod
    def values(self, samples: Samples) -> np.ndarray:
        """Return values (k, N), kept where they are at most 0."""

    @abstractmethod
    def pull_back(self, samples: Samples, weights: np.ndarray) -> dict[int, np.ndarray]:
        """Return the gradient (n, N) of ``sum weights * values`` by each order of derivative it depends on."""


@final
@dataclass(frozen=True, eq=False)
class JointBlock(Block):
    """``sign * x - limit <= 0`` for one order of derivative of chosen joints, as parts of a scale.

    Attributes:
        order: 0 position, 1 velocity, 2 acceleration, 3 jerk.
        rows: Which joints (k,).
        sign: +1 for an upper limit, -1 for a lower one.
        limit: The limit times sign (k,).
        scale: What counts as 1 (k,).
    """

    order: int
    rows: np.ndarray
    sign: float
    limit: np.ndarray
    scale: np.ndarray

    @property
    def units(self) -> np.ndarray:
        """The scale (k,)."""
        return self.scale

    def values(self, samples: Samples) -> np.ndarray:
        """Return the excess over the limit, in parts of the scale."""
        return (self.sign * samples[self.order][self.rows] - self.limit[:, None]) / self.scale[:, None]

    def pull_back(self, samples: Samples, weights: np.ndarray) -> dict[int, np.ndarray]:
        """Return the weights as a gradient by that order."""
        back = np.zeros_like(samples[self.order])
        back[self.rows] = self.sign * weights / self.scale[:, None]
        return {self.order: back}


@final
@dataclass(frozen=True, eq=False)
class TorqueBlock(Block):
    """``|tau| / limit - 1 <= 0`` for chosen joints.

    Attributes:
        function: The torques.
        rows: Which joints (k,).
        limit: Their limits (k,).
    """

    function: Differentiable
    rows: np.ndarray
    limit: np.ndarray

    @property
    def units(self) -> np.ndarray:
        """The limits (k,)."""
        return self.limit

    def values(self, samples: Samples) -> np.ndarray:
        """Return the excess over the limit."""
        return np.abs(self.function(samples[:3])[0][self.rows]) / self.limit[:, None] - 1.0

    def pull_back(self, samples: Samples, weights: np.ndarray) -> dict[int, np.ndarray]:
        """Return the gradient by position, velocity and acceleration."""
        torques = self.function(samples[:3])[0]
        seeds = np.zeros_like(torques)
        seeds[self.rows] = weights * np.sign(torques[self.rows]) / self.limit[:, None]
        return dict(enumerate(self.function.pull_back(samples[:3], [seeds])))


@final
@dataclass(frozen=True, eq=False)
class SpaceBlock(Block):
    """Clearances of rules about points of the arm.

    Attributes:
        rules: The rules.
        places: Positions of all their points (3 k, N).
        rows: Which points each rule is about.
    """

    rules: tuple[SpaceRule, ...]
    places: Differentiable
    rows: tuple[list[int], ...]

    @property
    def units(self) -> np.ndarray:
        """The clearance that counts as 1 (k,)."""
        return np.full(len(self.rules), CLEARANCE_SCALE)

    def values(self, samples: Samples) -> np.ndarray:
        """Return what is missing of each clearance, in parts of the scale."""
        return np.array([-clearance / CLEARANCE_SCALE for clearance, _ in self._clearances(samples)])

    def pull_back(self, samples: Samples, weights: np.ndarray) -> dict[int, np.ndarray]:
        """Return the gradient by position."""
        count = samples[0].shape[1]
        seeds = np.zeros((1 + max(max(rows) for rows in self.rows), 3, count))
        for (_, gradient), rows, weight in zip(self._clearances(samples), self.rows, weights, strict=True):
            np.add.at(seeds, rows, gradient * (-weight / CLEARANCE_SCALE))
        return {0: self.places.pull_back((samples[0],), [seeds.reshape(-1, count)])[0]}

    def _clearances(self, samples: Samples) -> list[tuple[np.ndarray, np.ndarray]]:
        places = self.places((samples[0],))[0]
        places = places.reshape(-1, 3, places.shape[1])
        return [rule.clearance(places[rows]) for rule, rows in zip(self.rules, self.rows, strict=True)]


def joint_blocks(limits: MotionLimits) -> list[Block]:
    """Return the constraints on positions, velocities, accelerations and jerks; infinite limits are none."""
    span = np.where(np.isfinite(limits.upper - limits.lower), (limits.upper - limits.lower) / 2, 1.0)
    table = [(0, "lower", -1.0, -limits.lower, span), (0, "upper", 1.0, limits.upper, span)]
    for order, what in ((1, "velocity"), (2, "acceleration"), (3, "jerk")):
        limit = getattr(limits, what)
        table += [(order, what, sign, limit, limit) for sign in (1.0, -1.0)]
    blocks: list[Block] = []
    for order, what, sign, limit, scale in table:
        rows = np.flatnonzero(np.isfinite(limit))
        if len(rows):
            names = tuple(f"{what} of {limits.joints[int(row)]}" for row in rows)
            blocks.append(JointBlock(names, order, rows, sign, limit[rows], scale[rows]))
    return blocks


def torque_block(function: Differentiable, limit: np.ndarray, joints: Sequence[str], ending: str) -> TorqueBlock | None:
    """Return the constraints on torques; None if no torque is limited."""
    rows = np.flatnonzero(np.isfinite(limit))
    if not len(rows):
        return None
    return TorqueBlock(tuple(f"torque of {joints[int(row)]}{ending}" for row in rows), function, rows, limit[rows])


def space_block(robot: Robot, rules: Sequence[SpaceRule]) -> Block | None:
    """Return the constraints on points of the arm; None if there is no rule."""
    if not rules:
        return None
    points = list(dict.fromkeys(point for rule in rules for point in rule.points))
    q, _, _ = motion_symbols(robot)
    places = differentiable("places", [q], [stacked_places(robot, points, q)])
    rows = tuple([points.index(point) for point in rule.points] for rule in rules)
    return SpaceBlock(tuple(rule.name for rule in rules), tuple(rules), places, rows)
