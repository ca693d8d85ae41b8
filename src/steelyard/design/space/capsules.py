"""Capsules: line segments with a radius, on links of the arm or standing in the room, that must keep apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from ...errors import DesignError
from ...robot import Robot, transform_from_placement
from .regions import Vector3
from .rules import ArmPoint, SpaceRule, check_margin
from .segments import nearest_points


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
        for name, place in (("start", self.start), ("end", self.end)):
            if not (len(place) == 3 and np.isfinite(place).all()):
                raise DesignError(f"{what}: {name} is {place}; three finite numbers are expected")
        if not (np.isfinite(self.radius) and self.radius >= 0):
            raise DesignError(f"{what}: radius is {self.radius:g} m; allowed is 0 or more")

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
        check_margin(self.margin, self.name)

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
    kept: list[Capsule] = []
    for capsule in sorted(capsules, key=lambda one: -one.radius):
        if not any(_contains(other, capsule, robot) for other in kept):
            kept.append(capsule)
    return tuple(capsule for capsule in capsules if any(capsule is other for other in kept))


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
