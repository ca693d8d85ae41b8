"""Rules on where the arm may be: a clearance for each posture, its gradient, and how fast it can change.

A rule depends on the places of a few points of the arm. Its clearance is zero or more where it is kept. Between
instants it is only known how far each point can have moved: ``slack`` turns those distances into the most by which the
clearance can have changed, so that a certificate can decide an interval from its middle. A rule that no posture keeps
is refused before a search.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, final

import casadi as ca
import numpy as np
from scipy.optimize import minimize

from ...configuration import checked, kind_of, number, vector
from ...errors import DesignError
from ...physics import motion_symbols
from ...physics.kinematics import body_poses, joint_positions
from ...robot import Robot
from .regions import Region, Vector3

Keep = Literal["keep_in", "keep_out"]
NOT_NEGATIVE = number(least=0)


@final
@dataclass(frozen=True)
class ArmPoint:
    """A point fixed to a link.

    Attributes:
        link: Name of the link.
        offset: The point in the link's frame [m].
    """

    link: str
    offset: Vector3 = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        checked(self.offset, vector, f"point on link '{self.link}'", DesignError)


class SpaceRule(ABC):
    """A rule on the places of a few points of the arm.

    Attributes:
        name: What messages call it.
        points: The k points it depends on.
    """

    name: str

    @property
    @abstractmethod
    def points(self) -> tuple[ArmPoint, ...]:
        """The points of the arm on which the rule depends."""

    @abstractmethod
    def clearance(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the clearance [m] (N,), >= 0 where the rule is kept, and its gradient by the places (k, 3, N).

        Where the clearance has a kink, the gradient is that of one of its sides.

        Args:
            places: The points in the base frame (k, 3, N) [m].
        """

    @abstractmethod
    def slack(self, radii: np.ndarray) -> np.ndarray:
        """Return the most by which the clearance changes (N,) if each point moves by at most its radius.

        Args:
            radii: Distances (k, N) [m].
        """


@final
@dataclass(frozen=True)
class PointRule(SpaceRule):
    """One point of the arm stays inside a region, or outside of it.

    With the face functions f of the region, negative inside, the clearance is ``min(-f) - margin`` for ``keep_in`` and
    ``max(f) - margin`` for ``keep_out``.

    Attributes:
        name: What messages call it.
        point: The point of the arm.
        region: Where it must be, or must not be.
        keep: ``keep_in`` or ``keep_out``.
        margin: Distance from the region's boundary that is kept besides [m].
    """

    name: str
    point: ArmPoint
    region: Region
    keep: Keep = "keep_in"
    margin: float = 0.0

    def __post_init__(self) -> None:
        checked(self.keep, kind_of(Keep), f"rule '{self.name}': keep", DesignError)
        checked(self.margin, NOT_NEGATIVE, f"rule '{self.name}': margin [m]", DesignError)

    @property
    def points(self) -> tuple[ArmPoint, ...]:
        """The one point."""
        return (self.point,)

    def clearance(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the clearance (N,) and its gradient (1, 3, N) for places (1, 3, N)."""
        faces, gradients = self.region.faces(np.asarray(places, dtype=float)[0])
        largest = faces.argmax(axis=0)  # the face that decides both ways: min(-f) = -max(f)
        value = np.take_along_axis(faces, largest[None], axis=0)[0]
        gradient = np.take_along_axis(gradients, largest[None, None], axis=0)
        sign = 1.0 if self.keep == "keep_out" else -1.0
        return sign * value - self.margin, sign * gradient

    def slack(self, radii: np.ndarray) -> np.ndarray:
        """Return the point's own radius (N,): face functions change by no more than the point moves."""
        return np.asarray(radii, dtype=float)[0]


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
        """Return the places (k, 3, N) of a rule's points, from those of all points (K, 3, N)."""
        return places[[self._row[point] for point in rule.points]]

    def clearance_and_gradient(self, rule: SpaceRule, q: np.ndarray) -> tuple[float, np.ndarray]:
        """Return a rule's clearance at one posture q (na,), and its gradient by q (na,)."""
        value, gradient = rule.clearance(self.of(rule, self.at(q[:, None])))
        jacobian = np.array(self._jacobian(q)).reshape(len(self.points), 3, len(q))
        rows = [self._row[point] for point in rule.points]
        return float(value[0]), np.einsum("ki,kij->j", gradient[:, :, 0], jacobian[rows])


def clearances_at(robot: Robot, rules: Sequence[SpaceRule], postures: np.ndarray) -> list[np.ndarray]:
    """Return the clearance of each rule (N,) [m] at postures (na, N)."""
    arm = ArmPlaces(robot, (point for rule in rules for point in rule.points))
    places = arm.at(postures)
    return [rule.clearance(arm.of(rule, places))[0] for rule in rules]


def random_postures(lower: np.ndarray, upper: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Return the middle posture, then seeded ones uniform within the ranges (na, 1 + count)."""
    share = np.random.default_rng(seed).random((len(lower), count))
    inside = lower[:, None] + (upper - lower)[:, None] * share
    return np.concatenate([((lower + upper) / 2)[:, None], inside], axis=1)


REMEDY = "move the obstacle or the region, or lower its margin"
POSTURES = 2000
SEED = 6

# From so many of the best random postures a rule is pursued uphill before it is called impossible.
PURSUED = 5


def check_rules_can_be_kept(
    robot: Robot, rules: Sequence[SpaceRule], lower: np.ndarray, upper: np.ndarray, remedy: str = REMEDY
) -> None:
    """Refuse a rule that no posture keeps: neither 2000 random ones nor those of gradient ascent from the best.

    Args:
        robot: The arm.
        rules: The rules, each looked at by itself.
        lower: Smallest positions (n,).
        upper: Largest positions (n,).
        remedy: What to do about a rule that cannot be kept.

    Raises:
        DesignError: It names the rule and by how much the best posture found breaks it.
    """
    if not rules:
        return
    arm = ArmPlaces(robot, (point for rule in rules for point in rule.points))
    postures = random_postures(lower, upper, POSTURES, SEED)
    places = arm.at(postures)
    for rule in rules:
        clearances = rule.clearance(arm.of(rule, places))[0]
        if clearances.max() >= 0:
            continue
        best = postures[:, np.argsort(clearances)[::-1][:PURSUED]].T
        reached = max(_climbed(arm, rule, start, lower, upper) for start in best)
        if reached < 0:
            raise DesignError(
                f"rule '{rule.name}' cannot be kept: it is broken by at least {-reached:.3g} m in every posture within "
                f"the joints' ranges that was tried; {remedy}"
            )


def _climbed(arm: ArmPlaces, rule: SpaceRule, start: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
    """Return the largest clearance found by gradient ascent from a posture (n,)."""
    met = [-np.inf]

    def downhill(q: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = arm.clearance_and_gradient(rule, q)
        met.append(value)
        return -value, -gradient

    bounds = list(zip(lower, upper, strict=True))
    minimize(downhill, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 50})
    return max(met)
