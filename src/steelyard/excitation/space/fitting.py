"""Capsules of the links of an arm: fitted around their collision shapes, or assumed where a file has none.

A fitted capsule contains its shape and has nearly the least volume.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.spatial import ConvexHull, QhullError

from ...errors import RobotError
from ...robot import (
    Body,
    BoxShape,
    CylinderShape,
    MeshShape,
    Robot,
    Shape,
    SphereShape,
    shape_points,
    transform_from_placement,
)
from .capsules import Capsule, vector_of, without_contained
from .regions import perpendicular

# Radii are widened by this part so that no vertex sticks out by rounding.
ROUNDING = 1e-9

# The search ends when volumes agree to this part; it never has to be better than a mesh is round.
TOLERANCE = 1e-4


def fitted_capsule(link: str, shape: Shape) -> Capsule:
    """Return a capsule on a link that contains a collision shape.

    A sphere and a capsule are kept; a cylinder gets a half ball on each end; around a box or the vertices of a mesh
    the capsule of (locally) least volume is taken.

    Args:
        link: Name of the link that carries the shape.
        shape: The shape, placed in the link's frame.

    Raises:
        RobotError: If the file of a mesh was not found or cannot be read.
    """
    if isinstance(shape, MeshShape | BoxShape):
        return bounding_capsule(link, shape_points(shape))
    rotation, translation = transform_from_placement(shape.placement)
    half = 0.0 if isinstance(shape, SphereShape) else shape.length / 2
    start, end = (vector_of(translation + side * half * rotation[:, 2]) for side in (-1, 1))
    return Capsule(link, start, end, shape.radius)


def fitted_capsules(
    robot: Robot, *, leave_out: Collection[str | None] = ()
) -> tuple[tuple[Capsule, ...], tuple[str, ...]]:
    """Return capsules around the collision shapes of a robot, and a note on meshes that could not be read.

    A capsule inside another one of the same body is left out.

    Args:
        robot: The arm.
        leave_out: Links whose shapes are not looked at.
    """
    found: list[Capsule] = []
    missing: dict[str, str] = {}
    for link in robot.links:
        for shape in () if link.name in leave_out else link.shapes:
            try:
                found.append(fitted_capsule(link.name, shape))
            except RobotError as error:
                missing.setdefault(link.name, str(error))
    slim = without_contained(found, robot)
    if not missing:
        return slim, ()
    names, reason = ", ".join(f"'{name}'" for name in missing), next(iter(missing.values()))
    return slim, (f"collision meshes of {names} are not used: {reason}; [[capsule]] can stand in",)


def lowest_height(shape: Shape, up: np.ndarray) -> float:
    """Return the least ``up . p`` of a collision shape's points p [m].

    Args:
        shape: The shape, placed in the link's frame.
        up: Unit vector in the link's frame (3,).

    Raises:
        RobotError: If the file of a mesh was not found or cannot be read.
    """
    if isinstance(shape, MeshShape | BoxShape):
        return float((shape_points(shape) @ up).min())
    rotation, translation = transform_from_placement(shape.placement)
    own = up @ rotation
    if isinstance(shape, SphereShape):
        reach = shape.radius
    else:
        around = float(np.hypot(own[0], own[1])) if isinstance(shape, CylinderShape) else 1.0
        reach = abs(float(own[2])) * shape.length / 2 + around * shape.radius
    return float(up @ translation) - reach


def bounding_capsule(link: str | None, points: np.ndarray) -> Capsule:
    """Return a capsule that contains all points (N, 3), of the least volume found from three axes.

    The axes of the points' second moments are starts; the best is turned and shifted (Nelder-Mead) while radius and
    length follow in closed form: for a radius above the largest distance from the axis, each point says how far the
    segment must reach.
    """
    hull = _hull(points)
    middle = (hull.max(axis=0) + hull.min(axis=0)) / 2
    size = float(np.linalg.norm(hull - middle, axis=1).max())
    if size == 0.0:
        return Capsule(link, vector_of(middle), vector_of(middle), 0.0)
    scaled = (hull - middle) / size
    frames = [_frame(axis) for axis in np.linalg.eigh(np.cov(scaled, rowvar=False))[1].T]
    starts = [(frame, np.array([0.0, 0.0, 0.0, 0.0, excess])) for frame in frames for excess in (0.02, 0.3)]
    frame, start = min(starts, key=lambda one: _volume(one[1], scaled @ one[0].T))
    simplex = np.vstack([start, start + np.diag([0.1, 0.1, 0.1, 0.1, 0.1])])
    options = {"xatol": TOLERANCE, "fatol": TOLERANCE, "maxiter": 400, "initial_simplex": simplex}
    turned = scaled @ frame.T
    best = minimize(_volume, start, args=(turned,), method="Nelder-Mead", options=options).x
    start_point, end_point, radius = _tight(best, turned)
    first, last = (vector_of(middle + size * (place @ frame)) for place in (start_point, end_point))
    return Capsule(link, first, last, size * radius * (1 + ROUNDING) + ROUNDING * float(np.abs(middle).max()))


def _frame(axis: np.ndarray) -> np.ndarray:
    """Return a rotation (3, 3) whose last row is the axis."""
    side = perpendicular(axis)
    return np.stack([side, np.cross(axis, side), axis])


def _tight(choice: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the shortest segment and the radius that contain all points.

    Args:
        choice: Tilt of the axis from z (2), shift of the line along x and y (2), and the root of what the squared
            radius has above that of the slimmest cylinder about the line (1).
        points: (N, 3).
    """
    axis = np.array([choice[0], choice[1], 1.0])
    axis = axis / np.sqrt(axis @ axis)
    origin = np.array([choice[2], choice[3], 0.0])
    offset = points - origin
    along = offset @ axis
    squared = np.einsum("ij,ij->i", offset, offset) - along**2
    radius = float(np.sqrt(max(squared.max(), 0.0) + choice[4] ** 2))
    reach = np.sqrt(np.maximum(radius**2 - squared, 0.0))
    low, high = float((along + reach).min()), float((along - reach).max())
    if low > high:  # a ball contains them all
        low = high = (low + high) / 2
    return origin + low * axis, origin + high * axis, radius


def _volume(choice: np.ndarray, points: np.ndarray) -> float:
    """Return the volume of the capsule, over pi."""
    start, end, radius = _tight(choice, points)
    return radius**2 * float(np.linalg.norm(end - start)) + 4 / 3 * radius**3


def _hull(points: np.ndarray) -> np.ndarray:
    """Return the corners of the convex hull; all points where they are too few or lie in a plane."""
    try:
        return points[ConvexHull(points).vertices]
    except (QhullError, ValueError):
        return points


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
    """Return the radius [m], and a text on its origin."""
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
