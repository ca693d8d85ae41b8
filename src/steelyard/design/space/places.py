"""Places of points of the arm at given postures, as expressions and as numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import casadi as ca
import numpy as np

from ...physics import motion_symbols
from ...physics.kinematics import body_poses, joint_positions
from ...robot import Robot
from .rules import ArmPoint, SpaceRule


def stacked_places(robot: Robot, points: Sequence[ArmPoint], q: ca.SX) -> ca.SX:
    """Return the places (3 k,) of points in the base frame, point after point."""
    positions = joint_positions(robot, q)
    poses = body_poses(robot, positions)
    places = []
    for point in points:
        pose = poses[robot.frame(point.link).body].then(positions.geometry.frames[point.link])
        places.append(ca.densify(pose.translation + ca.mtimes(pose.rotation, ca.DM(point.offset))))
    return ca.vertcat(ca.SX(0, 1), *places)


class ArmPlaces:
    """Points of an arm, each once, and where they are.

    Attributes:
        points: The distinct points.
    """

    def __init__(self, robot: Robot, points: Iterable[ArmPoint]) -> None:
        self.points = tuple(dict.fromkeys(points))
        self._row = {point: row for row, point in enumerate(self.points)}
        q = motion_symbols(robot)[0]
        stacked = stacked_places(robot, self.points, q)
        self._places = ca.Function("places", [q], [ca.cse(stacked)])
        self._jacobian = ca.Function("jacobian", [q], [ca.cse(ca.densify(ca.jacobian(stacked, q)))])

    def at(self, q: np.ndarray) -> np.ndarray:
        """Return the places (K, 3, N) [m] in the base frame at postures q (na, N)."""
        return np.array(self._places(q)).reshape(len(self.points), 3, q.shape[1])

    def of(self, rule: SpaceRule, places: np.ndarray) -> np.ndarray:
        """Return the places (k, 3, N) that a rule sees, from those of all points (K, 3, N)."""
        return places[[self._row[point] for point in rule.points]]

    def clearance_and_gradient(self, rule: SpaceRule, q: np.ndarray) -> tuple[float, np.ndarray]:
        """Return a rule's clearance at one posture q (na,), and its gradient by q (na,)."""
        value, gradient = rule.clearance(self.of(rule, self.at(q[:, None])))
        jacobian = np.array(self._jacobian(q)).reshape(len(self.points), 3, len(q))
        rows = [self._row[point] for point in rule.points]
        return float(value[0]), np.einsum("ki,kij->j", gradient[:, :, 0], jacobian[rows])


def random_postures(lower: np.ndarray, upper: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Return the middle posture, then seeded ones uniform within the ranges (na, 1 + count)."""
    share = np.random.default_rng(seed).random((len(lower), count))
    inside = lower[:, None] + (upper - lower)[:, None] * share
    return np.concatenate([((lower + upper) / 2)[:, None], inside], axis=1)
