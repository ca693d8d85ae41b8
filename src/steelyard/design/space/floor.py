"""The floor that an arm stands on: where it is, from what that is known, and which parts of the arm keep above it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from ...errors import DesignError, RobotError
from ...robot import Robot, transform_from_placement
from .capsules import Capsule, vector_of
from .fitting import lowest_height
from .places import ArmPlaces, random_postures
from .regions import HalfSpace
from .rules import PointRule
from .self_collision import capsule_names

FLOOR = "floor"
FloorHeight = float | Literal["none"] | None
"""A height [m], ``none`` for no floor, or None to leave it to the robot's description."""

POSTURES, SEED = 200, 7
HARDLY_LIFTED = 0.1
"""An end whose height changes by no more than this part of its distance to the floor is not lifted by any joint."""


@final
@dataclass(frozen=True)
class Floor:
    """A horizontal plane that the arm keeps above, or why there is none.

    Attributes:
        height: Against gravity from the base frame's origin [m]; None if no floor is checked.
        origin: Where the height is from, or why it is not known.
        is_given: Whether the user gave it.
    """

    height: float | None
    origin: str
    is_given: bool = False


def floor_of(robot: Robot, given: FloorHeight = None) -> Floor:
    """Return the floor: as given, else by the robot's description, else the lowest point of an upright base's shapes.

    Args:
        robot: The arm.
        given: Height [m], ``none`` for no floor, or None if nothing is given.

    Raises:
        DesignError: If a height is given, and without gravity no direction is up.
    """
    if isinstance(given, str):
        return Floor(None, "switched off", is_given=True)
    if robot.up is None:
        if given is not None:
            raise DesignError(f"floor is {given:g}, but gravity is zero: no direction is up; leave the floor out")
        return Floor(None, "without gravity no direction is up")
    if given is not None:
        return Floor(given, "as given", is_given=True)
    if robot.floor is not None:
        return Floor(robot.floor, "by the robot's description")
    if not robot.is_upright:
        return Floor(None, "the arm does not stand upright; give its height by --floor HEIGHT")
    lowest = _lowest_of_base(robot)
    if lowest is None:
        return Floor(None, "its height is unknown; give it by --floor HEIGHT")
    return Floor(lowest, "the lowest point of the base's collision shapes")


def plane_rules(name: str, plane: HalfSpace, capsules: Sequence[tuple[str, Capsule]], margin: float) -> list[PointRule]:
    """Return rules that keep capsules, each with its label, on their side of a plane.

    A capsule keeps on its side if both its ends do, each at its radius: two rules without a kink.
    """
    return [
        PointRule(f"{name} - {label} ({end})", point, plane, "keep_in", margin + capsule.radius)
        for label, capsule in capsules
        for point, end in {point: end for end, point in zip(("start", "end"), capsule.points, strict=True)}.items()
    ]


def floor_rules(
    robot: Robot, floor: Floor, capsules: Sequence[Capsule], margin: float, ranges: tuple[np.ndarray, np.ndarray]
) -> tuple[list[PointRule], list[str]]:
    """Return the rules that keep moving capsules above a floor, and names of ends that are below it by construction.

    An end whose height no joint changes by much and which is nevertheless below the floor shows that its capsule is
    coarse near the base (the upper arm of a UR5): it is left out, unless the user gave the floor.

    Args:
        robot: The arm.
        floor: The floor.
        capsules: Capsules on links.
        margin: Distance kept besides [m].
        ranges: Lower and upper positions (n,).
    """
    if floor.height is None or robot.up is None:
        return [], []
    moving = [capsule for capsule in capsules if robot.frame(str(capsule.link)).body]
    plane = HalfSpace(vector_of(robot.up), floor.height)
    rules = plane_rules(FLOOR, plane, list(zip(capsule_names(moving), moving, strict=True)), margin)
    if floor.is_given or not rules:
        return rules, []
    arm = ArmPlaces(robot, (point for rule in rules for point in rule.points))
    places = arm.at(random_postures(*ranges, POSTURES, SEED))
    kept, left_out = [], []
    for rule in rules:
        clearances = rule.clearance(arm.of(rule, places))[0]
        if clearances.max() < 0 and np.ptp(clearances) < HARDLY_LIFTED * rule.margin:
            left_out.append(rule.name.removeprefix(f"{FLOOR} - "))
        else:
            kept.append(rule)
    return kept, left_out


def _lowest_of_base(robot: Robot) -> float | None:
    """Return the height of the lowest point of the collision shapes that do not move [m]; None without shapes."""
    assert robot.up is not None
    heights = []
    for link in robot.links:
        frame = robot.frame(link.name)
        rotation, translation = transform_from_placement(frame.placement)
        for shape in link.shapes if frame.body == 0 else ():
            try:
                heights.append(lowest_height(shape, rotation.T @ robot.up) + float(robot.up @ translation))
            except RobotError:  # a mesh that cannot be read; a note on the capsules says so
                continue
    return min(heights, default=None)
