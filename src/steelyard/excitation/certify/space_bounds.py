"""Bounds on the clearance of rules on points of the arm within intervals of time.

Within an interval of half width h about its middle m, a point is at ``p(m) + d p'(m)``, ``|d| <= h``, up to h times
the radius of its velocity over the interval: it moves on a straight line up to a known error (:class:`Lines`).

Every rule says how much its clearance changes at most for a given movement (``slack``): clearances at a few places
along the lines are then enough, but the bound converges only in proportion to the step. Rules whose form is known do
better. A point kept inside a convex region is worst at an end of its line. Kept outside, what is missing of its
clearance is concave, so it stays below its tangent. Two capsules stay apart by at least their distance along the
direction in which they are apart at the middle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch

import casadi as ca
import numpy as np

from ...motion import Trajectory
from ...physics import motion_symbols
from ...physics.kinematics import IDENTITY, JointPositions, Transform, joint_positions
from ...robot import Robot
from ..space.capsules import CapsulePair
from ..space.regions import Box, Cylinder, HalfSpace, Sphere
from ..space.rules import ArmPoint, PointRule, SpaceRule
from .enclosure import Enclosure, enclosure_of
from .torque_bounds import Spans, spans

# Places along the line of each interval: odd, so that the middle is one of them.
_PLACES = 5
# Roundings of a rule's own arithmetic, relative to the size of its places.
_ROUNDING = 1e-13
_CONVEX = (HalfSpace, Box, Cylinder, Sphere)


@dataclass(frozen=True, eq=False)
class Lines:
    """Positions of k points during K intervals: ``place + d velocity``, ``|d| <= half``, each within its error of that.

    Attributes:
        place: At the middles (k, 3, K) [m].
        velocity: At the middles (k, 3, K) [m/s].
        half: Half the widths (K,) [s].
        error: How far each point can be off its line (k, K) [m].
    """

    place: np.ndarray
    velocity: np.ndarray
    half: np.ndarray
    error: np.ndarray

    def at(self, parts: np.ndarray) -> np.ndarray:
        """Return places (k, 3, P, K) at P parts of the half widths, from -1 to 1."""
        return self.place[:, :, None] + self.velocity[:, :, None] * (parts[:, None] * self.half)


def missing_bounds(rule: SpaceRule, lines: Lines) -> tuple[np.ndarray, np.ndarray]:
    """Return what is missing of the clearance, ``-clearance`` [m], at the middles and at most, both (K,)."""
    at_middle, along = _along(rule, lines)
    size = 1 + np.abs(lines.place).max(axis=(0, 1), initial=0.0) + np.abs(at_middle)
    return at_middle, along + rule.slack(lines.error) + _ROUNDING * size


@singledispatch
def _along(rule: SpaceRule, lines: Lines) -> tuple[np.ndarray, np.ndarray]:
    """Return ``-clearance`` at the middles and a bound on it for points exactly on their lines."""
    parts = np.linspace(-1, 1, 2 * _PLACES + 1)[1::2]
    missing = _missing(rule, lines.at(parts))
    left = np.linalg.norm(lines.velocity, axis=1) * lines.half / _PLACES
    return missing[_PLACES // 2], missing.max(axis=0) + rule.slack(left)


def _missing(rule: SpaceRule, places: np.ndarray) -> np.ndarray:
    """Return ``-clearance`` (P, K) at places (k, 3, P, K)."""
    flat = places.reshape(*places.shape[:2], -1)
    return -rule.clearance(flat)[0].reshape(places.shape[2:])


@_along.register
def _along_point(rule: PointRule, lines: Lines) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(rule.region, _CONVEX):
        return _along.dispatch(SpaceRule)(rule, lines)
    if rule.keep == "keep_in":
        missing = _missing(rule, lines.at(np.array([-1.0, 0.0, 1.0])))
        return missing[1], missing.max(axis=0)
    clearance, gradient = rule.clearance(lines.place)
    return -clearance, -clearance + lines.half * np.abs((gradient * lines.velocity).sum(axis=(0, 1)))


@_along.register
def _along_pair(rule: CapsulePair, lines: Lines) -> tuple[np.ndarray, np.ndarray]:
    """Take the better of the general bound and the one along the direction in which the capsules are apart."""
    at_middle, general = _along.dispatch(SpaceRule)(rule, lines)
    gradient = rule.clearance(lines.place)[1]
    direction = gradient[0] + gradient[1]  # the shares of a segment's two ends add up to the unit vector
    heights, rates = (np.einsum("xn,kxn->kn", direction, each) for each in (lines.place, lines.velocity))
    if rule.second.link is None:
        fixed = np.array([rule.second.start, rule.second.end]) @ direction
        heights, rates = np.concatenate([heights, fixed]), np.concatenate([rates, np.zeros_like(fixed)])
    gaps = heights[:2, None] - heights[None, 2:] - lines.half * np.abs(rates[:2, None] - rates[None, 2:])
    needed = rule.first.radius + rule.second.radius + rule.margin
    return at_middle, np.minimum(general, needed - gaps.min(axis=(0, 1)))


@dataclass(frozen=True, eq=False)
class SpaceGraph:
    """The points that rules are about, over boxes. Make one with :func:`space_graph`.

    Attributes:
        joints: Names of the joints.
        rules: The rules.
        rows: For each rule, which of the k points it is about.
        places: ``q -> places`` (3 k,), point after point.
        velocities: ``(q, qd) -> velocities`` (3 k,).
    """

    joints: tuple[str, ...]
    rules: tuple[SpaceRule, ...]
    rows: tuple[list[int], ...]
    places: Enclosure
    velocities: Enclosure


def space_graph(robot: Robot, rules: Sequence[SpaceRule]) -> SpaceGraph:
    """Return the points that rules are about, ready to be bounded for any motion.

    Points are given in the base frame. The ends of two capsules of the arm are given in the frame of the last body that
    carries both, so that motion that moves them together does not widen the bounds on their distance.

    Raises:
        RobotError: If a rule names a link that the robot does not have.
    """
    placed = [[(_observer(robot, rule), point) for point in rule.points] for rule in rules]
    distinct = list(dict.fromkeys(pair for pairs in placed for pair in pairs))
    q, qd, _ = motion_symbols(robot)
    positions = joint_positions(robot, q)
    place = ca.vertcat(ca.SX(0, 1), *(_place(robot, positions, observer, point) for observer, point in distinct))
    places = ca.Function("places", [q], [ca.cse(place)])
    velocities = ca.Function("velocities", [q, qd], [ca.cse(ca.densify(ca.jtimes(place, q, qd)))])
    joints = tuple(body.joint.name for body in robot.actuated)
    rows = tuple([distinct.index(pair) for pair in pairs] for pairs in placed)
    return SpaceGraph(joints, tuple(rules), rows, enclosure_of(places), enclosure_of(velocities))


def _carriers(robot: Robot, link: str) -> list[int]:
    """Return the numbers of the bodies that carry a link, from its own to the base (0)."""
    number = robot.frame(link).body
    chain = [number]
    while number:
        number = robot.bodies[number - 1].parent
        chain.append(number)
    return chain


def _observer(robot: Robot, rule: SpaceRule) -> int:
    """Return the body in whose frame a rule's points are given."""
    if not isinstance(rule, CapsulePair) or rule.first.link is None or rule.second.link is None:
        return 0
    others = _carriers(robot, rule.second.link)
    return next(number for number in _carriers(robot, rule.first.link) if number in others)


def _place(robot: Robot, positions: JointPositions, observer: int, point: ArmPoint) -> ca.SX:
    """Return a point (3,) in the frame of a body that carries it."""
    chain = _carriers(robot, point.link)
    pose: Transform = IDENTITY
    for number in reversed(chain[: chain.index(observer)]):
        pose = pose.then(positions.steps[number - 1])
    pose = pose.then(positions.geometry.frames[point.link])
    return ca.densify(ca.mtimes(pose.rotation, ca.DM(point.offset)) + pose.translation)


class SpaceBounder:
    """Bounds of what is missing of each rule's clearance, ``-clearance <= 0`` (a ``Bounder``).

    Attributes:
        names: Names of the rules.
        limits: Zero for each (g,) [m].
    """

    def __init__(self, graph: SpaceGraph, trajectory: Trajectory) -> None:
        """Take the points and rules, and the motion."""
        self._graph = graph
        self._trajectory = trajectory.in_order(graph.joints)
        self.names = tuple(rule.name for rule in graph.rules)
        self.limits = np.zeros(len(graph.rules))
        self.limits.setflags(write=False)

    def bounds(
        self, begin: np.ndarray, end: np.ndarray, wanted: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return ``-clearance`` [m] at the middles and upper bounds over the intervals, both (g, K).

        Bounds that are not ``wanted`` (g, K) are infinite: near its smallest clearance a rule needs intervals that are
        split much finer than others do.
        """
        span = spans(self._trajectory, begin, end)
        place, velocity, error = self._lines(span)
        at_middle, upper = np.full((2, len(self.names), len(begin)), np.inf)
        for index, (rule, rows) in enumerate(zip(self._graph.rules, self._graph.rows, strict=True)):
            at_middle[index] = -rule.clearance(place[rows])[0]
            own = np.arange(len(begin)) if wanted is None else np.flatnonzero(wanted[index])
            if len(own):
                lines = Lines(place[rows][:, :, own], velocity[rows][:, :, own], span.half[own], error[rows][:, own])
                upper[index, own] = missing_bounds(rule, lines)[1]
        return at_middle, upper

    def _lines(self, span: Spans) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return places and velocities at the middles (k, 3, K), and how far points can be off the line (k, K)."""
        ((place, place_error),) = self._graph.places([span.middles[0]], [span.rounding[0]])
        ((velocity, spread),) = self._graph.velocities(list(span.middles[:2]), list(span.radii[:2]))
        shape = (-1, 3, len(span.half))
        off = (place_error + span.half * spread).reshape(shape)
        return place.reshape(shape), velocity.reshape(shape), np.linalg.norm(off, axis=1)
