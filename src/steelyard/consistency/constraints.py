"""What a user knows of the links: bounds of mass and centre, pinned links, a total mass; as rows of a programme."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ..configuration import checked, choice
from ..errors import EstimateError, RobotError, nearest_match
from ..robot import Robot, shape_points, transform_from_placement
from ..text import short_repr

Bounds = tuple[float, float]
Box = tuple[tuple[float, float, float], tuple[float, float, float]]


@dataclass(frozen=True)
class ConsistencySettings:
    """Prior and bounds of physically consistent parameters; links are named by the link that a joint moves.

    Attributes:
        prior: ``auto``: the robot file's inertias if their source is ``cad`` or ``vendor``; ``none``; or the catalogue
            name or path of a robot whose inertias are the prior.
        kind: ``geometric`` (log-det divergence of pseudo-inertias) or ``euclidean`` (its square near the prior).
        deviation: Relative standard deviation of the prior, 0.2 for 20 %; None: chosen by held-out error.
        mass: Lower and upper bound of the mass by link [kg].
        centre: Lower and upper corner of a box that holds the centre of mass, by link, in its frame [m].
        centre_in_shape: Links whose centre of mass lies within the convex hull of their collision shapes.
        total_mass: Lower and upper bound of the mass of all moving links together [kg].
        pinned: Links that keep the values of the prior, or of the robot file.
        draws: Draws of the parametric bootstrap that gives the sigmas where a constraint is active.
        seed: Of these draws.

    Example:
        >>> from steelyard.consistency import ConsistencySettings
        >>> ConsistencySettings(total_mass=(14.0, 17.0)).kind
        'geometric'
    """

    __repr__ = short_repr

    prior: str = "auto"
    kind: Literal["geometric", "euclidean"] = "geometric"
    deviation: float | None = None
    mass: Mapping[str, Bounds] = field(default_factory=dict)
    centre: Mapping[str, Box] = field(default_factory=dict)
    centre_in_shape: tuple[str, ...] = ()
    total_mass: Bounds | None = None
    pinned: tuple[str, ...] = ()
    draws: int = 50
    seed: int = 0

    def __post_init__(self) -> None:
        checked(self.kind, choice("geometric", "euclidean"), "kind of prior", EstimateError)
        if self.deviation is not None and not 0 < self.deviation < np.inf:
            raise EstimateError(
                f"deviation of the prior: got {self.deviation}, allowed is a relative deviation above 0, such as 0.2"
            )
        for what, bounds in [*((f"mass of '{k}'", v) for k, v in self.mass.items()), ("total mass", self.total_mass)]:
            if bounds is not None and not 0 <= bounds[0] <= bounds[1]:
                raise EstimateError(
                    f"{what}: got {list(bounds)}, allowed is a lower and an upper bound in kg, 0 or more"
                )
        for link, (lower, upper) in self.centre.items():
            if not all(a <= b for a, b in zip(lower, upper, strict=True)):
                raise EstimateError(
                    f"centre of '{link}': got {list(lower)} to {list(upper)}; each lower bound must be below its upper"
                )
        if self.draws < 2:
            raise EstimateError(f"draws: got {self.draws}, allowed is 2 or more")


@dataclass(frozen=True, eq=False)
class LinearBound:
    """Rows ``matrix @ parameters <= limit``, or equal to it, in all standard parameters.

    Attributes:
        text: What it says, for messages: ``mass of 'forearm' in 1 to 2 kg``.
        matrix: (m, p).
        limit: (m,).
        equal: Whether it is an equation.
    """

    text: str
    matrix: np.ndarray
    limit: np.ndarray
    equal: bool = False


def bounds_of(
    settings: ConsistencySettings, robot: Robot, places: Mapping[str, Sequence[int]], count: int, pinned_to: np.ndarray
) -> Iterator[LinearBound]:
    """Yield the bounds that a user gave.

    Args:
        settings: The bounds.
        robot: The arm.
        places: Places of the ten parameters of each moving link among all.
        count: Number of standard parameters p.
        pinned_to: Values (p,) at which pinned links stay.

    Raises:
        EstimateError: If a link is not known.
    """

    def mass(link: str) -> np.ndarray:
        row = np.zeros(count)
        row[_place(link, places)[9]] = 1.0
        return row

    for link, (lower, upper) in settings.mass.items():
        rows = np.array([-mass(link), mass(link)])
        yield LinearBound(f"mass of '{link}' in {lower:g} to {upper:g} kg", rows, np.array([-lower, upper]))
    for link, (low, high) in settings.centre.items():
        sides = np.vstack([-np.eye(3), np.eye(3)])
        text = f"centre of '{link}' between {list(low)} and {list(high)} m"
        yield _inside(text, sides, np.array([*(-v for v in low), *high]), _place(link, places), count)
    for link in settings.centre_in_shape:
        sides, limits = _hull(robot, link)
        yield _inside(f"centre of '{link}' within its collision shapes", sides, limits, _place(link, places), count)
    if settings.total_mass is not None:
        lower, upper = settings.total_mass
        total = sum((mass(link) for link in places if link in {body.link for body in robot.bodies}), np.zeros(count))
        yield LinearBound(
            f"total mass in {lower:g} to {upper:g} kg", np.array([-total, total]), np.array([-lower, upper])
        )
    for link in settings.pinned:
        own = list(_place(link, places))
        if not np.isfinite(pinned_to[own]).all():
            raise EstimateError(
                f"pinned link '{link}' has no mass in the robot file; give its inertia, or do not pin it"
            )
        yield LinearBound(f"link '{link}' pinned", np.eye(count)[own], pinned_to[own], equal=True)


def declared_massless(robot: Robot, settings: ConsistencySettings, prior: Robot | None) -> tuple[str, ...]:
    """Return the links without mass in a robot file that has others with: the link between two joints of one body.

    A link that the user gives bounds for, or that has a mass in the prior, is none of them. Where the file says nothing
    of a link, the prior does.
    """
    said = {body.link: body.inertia for body in (() if prior is None else prior.bodies)}
    said |= {body.link: body.inertia for body in robot.bodies if body.inertia is not None}
    nothing = {link for link, inertia in said.items() if inertia is not None and not any(inertia)}
    if not any(any(inertia or ()) for inertia in said.values()):
        return ()
    known = {body.link for body in (() if prior is None else prior.bodies) if any(body.inertia or ())}
    known |= {*settings.mass, *settings.centre, *settings.centre_in_shape}
    return tuple(body.link for body in robot.bodies if body.link in nothing - known)


def check_prior(robot: Robot, prior: Robot) -> None:
    """Refuse a prior of another arm, or one that lacks the inertia of a link.

    Raises:
        EstimateError: If it is one.
    """
    if [body.link for body in prior.bodies] != [body.link for body in robot.bodies]:
        own, other = (", ".join(body.link for body in one.bodies) for one in (robot, prior))
        raise EstimateError(f"the prior has the moving links {other}, the robot has {own}; give a file of the same arm")
    for mine, theirs in zip(robot.bodies, prior.bodies, strict=True):
        here, there = (np.column_stack(transform_from_placement(body.placement)) for body in (mine, theirs))
        if np.abs(here - there).max() > 1e-4 or np.abs(np.subtract(mine.joint.axis, theirs.joint.axis)).max() > 1e-4:
            raise EstimateError(
                f"link '{mine.link}' has another frame in the prior than in the robot; give a file with the same frames"
            )
        # Two joints in one body have a link between them that is nothing at all.
        if theirs.inertia is None or (theirs.inertia[9] <= 0 and any(theirs.inertia)):
            raise EstimateError(
                f"the prior has no inertia of link '{theirs.link}'; give one in its file, or leave the prior out"
            )


def _place(link: str, places: Mapping[str, Sequence[int]]) -> Sequence[int]:
    if link not in places:
        raise EstimateError(
            f"link '{link}' is not one that a joint moves; these are {', '.join(places)}{nearest_match(link, places)}"
        )
    return places[link]


def _inside(text: str, sides: np.ndarray, limits: np.ndarray, place: Sequence[int], count: int) -> LinearBound:
    """Return ``sides @ c <= limits`` of a centre c, as rows in first moments and mass."""
    rows = np.zeros((len(limits), count))
    rows[:, list(place[6:9])] = sides
    rows[:, place[9]] = -limits
    return LinearBound(text, rows, np.zeros(len(limits)))


def _hull(robot: Robot, link: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the sides of the convex hull of all shapes that a moving link and its fixed links have, in its frame."""
    from scipy.spatial import ConvexHull, QhullError  # only for who asks for it: it takes a while to load

    number = robot.frame(link).body
    shapes = {one.name: one.shapes for one in robot.links}
    points = []
    try:
        for frame in robot.frames.values():
            if frame.body == number:
                rotation, translation = transform_from_placement(frame.placement)
                points += [shape_points(shape) @ rotation.T + translation for shape in shapes[frame.name]]
        sides = ConvexHull(np.vstack(points)).equations
    except (QhullError, ValueError, RobotError) as error:
        raise EstimateError(
            f"centre of '{link}' within its collision shapes: it has {len(points) or 'no'} readable shape(s), which "
            "enclose no volume; give a box with [identify.consistency.centre] instead"
        ) from error
    return sides[:, :3], -sides[:, 3]
