"""Capsules, line segments with a radius on links of the arm or fixed in the room, and the distances between them.

Clearances of many pairs at many instants are evaluated together; those far apart are replaced by a cheap lower bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from ...configuration import checked, vector
from ...errors import DesignError
from ...robot import Robot, transform_from_placement
from .regions import Vector3, perpendicular
from .rules import NOT_NEGATIVE, ArmPoint, SpaceRule


class Nearest(NamedTuple):
    """The nearest points of two segments.

    Attributes:
        distance: (N,) [m].
        first: Where on the first segment, 0 at its start, 1 at its end (N,).
        second: Where on the second segment (N,).
        direction: Unit vector from the second segment's nearest point to the first's (3, N).
    """

    distance: np.ndarray
    first: np.ndarray
    second: np.ndarray
    direction: np.ndarray


def nearest_points(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> Nearest:
    """Return the nearest points of the segments from a to b and from c to d, each (3, N) [m].

    The squared distance is a convex quadratic of the two places on the square [0, 1]^2. It is least where the lines
    come nearest if that lies inside. Else the place there, brought into the square, is followed by the nearest place on
    the second segment and then by the nearest to that on the first, which is where the least is found (Ericson,
    Real-Time Collision Detection, 5.1.9). Parallel segments and those of no length need no case of their own.
    """
    along, other, between = b - a, d - c, a - c
    aa, ab, ac = (_dot(along, vectors) for vectors in (along, other, between))
    bb, bc = _dot(other, other), _dot(other, between)
    # A segment of no length has its one point at place 0: all products with it vanish.
    per_aa, per_bb = (1.0 / np.where(squared > 0, squared, 1.0) for squared in (aa, bb))
    second = ((bc + _stationary(along, other, between) * ab) * per_bb).clip(0.0, 1.0)
    first = ((second * ab - ac) * per_aa).clip(0.0, 1.0)
    vector = between + first * along - second * other
    distance = np.sqrt(_dot(vector, vector))
    return Nearest(distance, first, second, _direction(vector, distance, along, other))


def _stationary(along: np.ndarray, other: np.ndarray, between: np.ndarray) -> np.ndarray:
    """Return the place on the first line nearest to the second, brought into [0, 1]; 0 for parallel lines."""
    normal = _cross(along, other)
    squared = _dot(normal, normal)
    # The cross product keeps the digits that the difference of products loses for nearly parallel lines.
    place = _dot(_cross(other, between), normal) / np.where(squared > 0, squared, 1.0)
    return place.clip(0.0, 1.0)


def _direction(vector: np.ndarray, distance: np.ndarray, along: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return unit vectors along ``vector``; where segments cross, one at right angles to both leads apart."""
    touching = distance <= 0
    direction = vector / np.where(touching, 1.0, distance)
    if touching.any():
        direction[:, touching] = _common_normal(along[:, touching], other[:, touching])
    return direction


def _common_normal(along: np.ndarray, other: np.ndarray) -> np.ndarray:
    normal = _cross(along, other)
    longer = np.where(_dot(along, along) >= _dot(other, other), along, other)
    length, reach = np.linalg.norm(normal, axis=0), np.linalg.norm(longer, axis=0)
    unit = np.where(reach > 0, longer / np.where(reach > 0, reach, 1.0), np.array([[1.0], [0.0], [0.0]]))
    return np.where(length > 0, normal / np.where(length > 0, length, 1.0), perpendicular(unit))


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the cross products of columns; the general function of numpy takes several times as long."""
    return a[[1, 2, 0]] * b[[2, 0, 1]] - a[[2, 0, 1]] * b[[1, 2, 0]]


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->j", a, b)


@final
@dataclass(frozen=True)
class Capsule:
    """All points within a radius of a segment; a ball if the segment has no length.

    Attributes:
        link: Link to which it is fixed; None for the base frame.
        start: One end of the segment, in the link's frame [m].
        end: The other end [m].
        radius: [m].
    """

    link: str | None
    start: Vector3
    end: Vector3
    radius: float

    def __post_init__(self) -> None:
        what = "capsule" if self.link is None else f"capsule of link '{self.link}'"
        checked(self.start, vector, f"{what}: start", DesignError)
        checked(self.end, vector, f"{what}: end", DesignError)
        checked(self.radius, NOT_NEGATIVE, f"{what}: radius [m]", DesignError)

    @property
    def points(self) -> tuple[ArmPoint, ...]:
        """The ends as points of the arm; none for a capsule in the base frame."""
        return () if self.link is None else (ArmPoint(self.link, self.start), ArmPoint(self.link, self.end))


@final
@dataclass(frozen=True)
class CapsulePair(SpaceRule):
    """Two capsules keep apart: ``|p - q| - radii - margin``, with the nearest points p and q of the segments.

    By the envelope theorem the gradient is the unit vector from q to p, shared among the ends of each segment in
    proportion to how near to them p and q lie. Each point of a segment moves by no more than the end that moves most,
    so the distance changes by no more than the sum of two such movements.

    Attributes:
        name: What messages call it.
        first: A capsule on a link.
        second: A capsule on another link or in the base frame.
        margin: Distance that is kept besides [m].
    """

    name: str
    first: Capsule
    second: Capsule
    margin: float = 0.0

    def __post_init__(self) -> None:
        if self.first.link is None or self.first.link == self.second.link:
            raise DesignError(
                f"rule '{self.name}': a pair needs a capsule on a link and one on another link or in the room; "
                f"got '{self.first.link}' and '{self.second.link}'"
            )
        checked(self.margin, NOT_NEGATIVE, f"rule '{self.name}': margin [m]", DesignError)

    @property
    def points(self) -> tuple[ArmPoint, ...]:
        """The ends of the first capsule, then those of the second if it is on a link."""
        return self.first.points + self.second.points

    def clearance(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the clearance (N,) and its gradient (k, 3, N), k = 2 for a capsule in the room, else 4."""
        places = np.asarray(places, dtype=float)
        ends = list(places)
        if self.second.link is None:
            ends += [
                np.broadcast_to(np.array(end)[:, None], ends[0].shape) for end in (self.second.start, self.second.end)
            ]
        near = nearest_points(*ends)
        shares = (1.0 - near.first, near.first, near.second - 1.0, -near.second)
        gradient = np.stack([share * near.direction for share in shares[: len(places)]])
        return near.distance - (self.first.radius + self.second.radius + self.margin), gradient

    def slack(self, radii: np.ndarray) -> np.ndarray:
        """Return the larger radius of the first capsule's ends plus that of the second's (N,)."""
        radii = np.asarray(radii, dtype=float)
        return radii[:2].max(axis=0) + (radii[2:].max(axis=0) if len(radii) > 2 else 0.0)


def in_base_frame(capsule: Capsule, robot: Robot) -> Capsule:
    """Return a capsule whose link does not move as one in the base frame, any other as it is."""
    if capsule.link is None or robot.frame(capsule.link).body:
        return capsule
    start, end = (vector_of(place) for place in ends_in_body(capsule, robot))
    return Capsule(None, start, end, capsule.radius)


def without_contained(capsules: Sequence[Capsule], robot: Robot) -> tuple[Capsule, ...]:
    """Return the capsules but for those inside another one on the same body: they add nothing to any rule."""
    outer: list[Capsule] = []
    for capsule in sorted(capsules, key=lambda one: -one.radius):
        if not any(_contains(other, capsule, robot) for other in outer):
            outer.append(capsule)
    return tuple(capsule for capsule in capsules if any(capsule is other for other in outer))


def _contains(outer: Capsule, inner: Capsule, robot: Robot) -> bool:
    """Return whether both ends of a capsule lie so deep in another that their balls do too."""
    if robot.frame(str(outer.link)).body != robot.frame(str(inner.link)).body:
        return False
    start, end = ends_in_body(outer, robot)
    points = np.stack(ends_in_body(inner, robot), axis=1)
    lines = [np.broadcast_to(place[:, None], points.shape) for place in (start, end)]
    return bool((nearest_points(points, points, *lines).distance + inner.radius <= outer.radius).all())


def ends_in_body(capsule: Capsule, robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends (3,) of a link's capsule in the frame of the body that carries the link."""
    rotation, translation = transform_from_placement(robot.frame(str(capsule.link)).placement)
    return rotation @ np.array(capsule.start) + translation, rotation @ np.array(capsule.end) + translation


def vector_of(place: np.ndarray) -> Vector3:
    """Return three numbers from an array (3,)."""
    x, y, z = (float(value) for value in place)
    return x, y, z


NEAR = 0.03
"""Clearance [m] above which only a lower bound is computed: a search does not depend on pairs farther apart."""


class PairBatch:
    """Pairs of capsules whose ends are among given places of the arm."""

    def __init__(self, pairs: Sequence[CapsulePair], rows: Sequence[Sequence[int]], points: int) -> None:
        """Take the pairs, where the ends of each stand among the places, and how many places there are."""
        self._points = points
        room: list[tuple[float, float, float]] = []
        ends = []
        for pair, own in zip(pairs, rows, strict=True):
            four = list(own)
            if pair.second.link is None:
                four += [points + len(room), points + len(room) + 1]
                room += [pair.second.start, pair.second.end]
            ends.append(four)
        self._room = np.array(room).reshape(-1, 3, 1)
        self._ends = np.array(ends, dtype=np.intp).reshape(-1, 4)
        self._radii = np.array([pair.first.radius + pair.second.radius + pair.margin for pair in pairs])
        self._halves = np.array([_half(pair.first) + _half(pair.second) for pair in pairs])

    def clearances(self, places: np.ndarray) -> np.ndarray:
        """Return clearances (pairs, N) [m] for places (k, 3, N), of pairs that are far apart a lower bound."""
        places = self._with_room(places)
        middles = [0.5 * (places[self._ends[:, i]] + places[self._ends[:, i + 1]]) for i in (0, 2)]
        values = np.linalg.norm(middles[0] - middles[1], axis=1) - (self._halves + self._radii)[:, None]
        pair, instant = np.nonzero(values < NEAR)
        if len(pair):
            values[pair, instant] = self._nearest(places, pair, instant).distance - self._radii[pair]
        return values

    def pull_back(self, places: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the gradient (k, 3, N) by the places of ``sum weights * clearances``, weights (pairs, N)."""
        pair, instant = np.nonzero(weights)
        near = self._nearest(self._with_room(places), pair, instant)
        pushed = near.direction * weights[pair, instant]
        shares = (1.0 - near.first, near.first, near.second - 1.0, -near.second)
        gradient = np.zeros((places.shape[2], self._points + len(self._room), 3))
        for end, share in enumerate(shares):
            np.add.at(gradient, (instant, self._ends[pair, end]), (share * pushed).T)  # type: ignore[arg-type]
        return gradient[:, : self._points].transpose(1, 2, 0)

    def _nearest(self, places: np.ndarray, pair: np.ndarray, instant: np.ndarray) -> Nearest:
        return nearest_points(*(places[self._ends[pair, end], :, instant].T for end in range(4)))

    def _with_room(self, places: np.ndarray) -> np.ndarray:
        if not len(self._room):
            return places
        fixed = np.broadcast_to(self._room, (len(self._room), 3, places.shape[2]))
        return np.concatenate([places, fixed])


def _half(capsule: Capsule) -> float:
    return 0.5 * float(np.linalg.norm(np.subtract(capsule.end, capsule.start)))
