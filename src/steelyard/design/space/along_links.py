"""Capsules assumed along the links of an arm whose file has no collision shapes, and their radius."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from ...robot import Body, Robot, transform_from_placement
from .capsules import Capsule, vector_of

DENSITY = 1200.0
"""Mass of the moving links over the volume of their capsules [kg/m^3]; arms with drives in their joints are near it."""

SLIMMEST, USUAL, STOUTEST = 0.03, 0.06, 0.15
"""Radius over the length of all moving links: least, without masses, and most."""

SMALLEST = 0.05
"""Radius of an arm whose links have no length [m]."""

SHORTEST = 1e-6
"""Below this length [m] a segment counts as a point."""


class LinkCapsules(NamedTuple):
    """Capsules that were assumed.

    Attributes:
        capsules: The capsules, on the links that move and on the root.
        radius: Of all of them [m].
        basis: What the radius was taken from.
    """

    capsules: tuple[Capsule, ...]
    radius: float
    basis: str


def link_capsules(robot: Robot, bodies: Collection[int], *, balls: bool = True) -> LinkCapsules:
    """Return capsules from the joint of each body to the joints that it carries, all of one radius.

    A body that carries no joint reaches to the farthest frame fixed to it. The base of an arm that stands upright
    reaches from the floor of its description up to each joint that it carries, any other base from its origin.

    Args:
        robot: The arm.
        bodies: Numbers of the bodies that get capsules; 0 is the base.
        balls: Whether a body without length gets a ball; else it gets nothing.
    """
    ends = {body.number: _ends(robot, body) for body in robot.bodies}
    radius, basis = _radius(robot, sum(float(np.linalg.norm(end)) for own in ends.values() for end in own))
    segments = [
        (body.link, np.zeros(3), end) for body in robot.bodies if body.number in bodies for end in ends[body.number]
    ]
    if 0 in bodies:
        segments += [(robot.root, _foot(robot, end), end) for end in _carried(robot, 0)]
    capsules = tuple(
        Capsule(link, vector_of(start), vector_of(end), radius)
        for link, start, end in segments
        if balls or np.linalg.norm(end - start) > SHORTEST
    )
    return LinkCapsules(capsules, radius, basis)


def _radius(robot: Robot, length: float) -> tuple[float, str]:
    """Return the radius [m], and what it was taken from."""
    if length <= SHORTEST:
        return SMALLEST, "an arm whose links have no length"
    mass = sum(0.0 if body.inertia is None else body.inertia[9] for body in robot.bodies)
    share = float(np.sqrt(max(mass, 0.0) / (DENSITY * np.pi * length))) / length
    if any(body.inertia is None for body in robot.bodies) or not mass > 0:
        return USUAL * length, f"{100 * USUAL:g} % of the moving links' length {length:.3g} m"
    if SLIMMEST < share < STOUTEST:
        return share * length, f"the moving links' mass {mass:.3g} kg and length {length:.3g} m"
    share = float(np.clip(share, SLIMMEST, STOUTEST))
    return share * length, f"{100 * share:g} % of the moving links' length {length:.3g} m"


def _ends(robot: Robot, body: Body) -> list[np.ndarray]:
    """Return where a body ends (3,), in its own frame: at the joints it carries, or else at its farthest frame."""
    carried = _carried(robot, body.number)
    if carried:
        return carried
    fixed = [frame.placement for frame in robot.frames.values() if frame.body == body.number]
    return [max((transform_from_placement(placement)[1] for placement in fixed), key=lambda end: float(end @ end))]


def _carried(robot: Robot, number: int) -> list[np.ndarray]:
    """Return the origins (3,) of the joints on a body, each place once; those that slide as near to zero as allowed."""
    places: list[np.ndarray] = []
    for child in robot.bodies:
        if child.parent != number:
            continue
        rotation, place = transform_from_placement(child.placement)
        if child.joint.kind == "prismatic":
            slide = float(np.clip(0.0, child.joint.limits.lower, child.joint.limits.upper))
            place = place + slide * rotation @ np.array(child.joint.axis)
        if not any(np.linalg.norm(place - other) <= SHORTEST for other in places):
            places.append(place)
    return places


def _foot(robot: Robot, place: np.ndarray) -> np.ndarray:
    """Return where the base below a joint at a place (3,) begins (3,)."""
    if robot.floor is None or not robot.is_upright:
        return np.zeros(3)
    return np.array([place[0], place[1], min(robot.floor, place[2])])
