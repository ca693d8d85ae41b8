"""How small the clearance of rules on points of the arm can be within intervals of time.

Within an interval of half width h about its middle m, a point is at ``p(m) + d p'(m)``, ``|d| <= h``, up to h times
the radius of its velocity over the interval; :mod:`clearance_bounds` says what that leaves of a rule's clearance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from ...motion import Trajectory
from ...physics import motion_symbols
from ...physics.geometry import IDENTITY, Transform
from ...physics.kinematics import JointPositions, joint_positions
from ...robot import Robot
from ..space.capsules import CapsulePair
from ..space.rules import ArmPoint, SpaceRule
from .clearance_bounds import Lines, missing_bounds
from .enclosure import Enclosure, enclosure_of
from .spans import Spans, spans


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

    Points are seen from the base. Two capsules of the arm see only each other: their ends are told in the frame of the
    last body that carries both, so that what moves them together does not blur their distance.

    Raises:
        RobotError: If a rule names a link that the robot does not have.
    """
    seen = [[(_observer(robot, rule), point) for point in rule.points] for rule in rules]
    distinct = list(dict.fromkeys(pair for pairs in seen for pair in pairs))
    q, qd, _ = motion_symbols(robot)
    positions = joint_positions(robot, q)
    place = ca.vertcat(ca.SX(0, 1), *(_place(robot, positions, observer, point) for observer, point in distinct))
    places = ca.Function("places", [q], [ca.cse(place)])
    velocities = ca.Function("velocities", [q, qd], [ca.cse(ca.densify(ca.jtimes(place, q, qd)))])
    joints = tuple(body.joint.name for body in robot.actuated)
    rows = tuple([distinct.index(pair) for pair in pairs] for pairs in seen)
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
    """Return the body in whose frame a rule's points are told."""
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
