"""Pairs of capsules of an arm that must keep apart, and the floor that its moving capsules must keep above.

Neighbouring links, and capsules that overlap in nearly all postures, are not paired.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from ...errors import DesignError, RobotError
from ...robot import Robot, transform_from_placement
from ..limits.joint_limits import position_ranges
from .capsules import Capsule, CapsulePair, in_base_frame, vector_of
from .fitting import lowest_height
from .regions import HalfSpace
from .rules import PointRule, clearances_at, random_postures

POSTURES = 2000
SEED = 5

# Bodies whose capsules overlap in more than this part of all postures are fitted too fat, or built touching.
ALWAYS = 0.95


def self_collision_pairs(
    robot: Robot,
    capsules: Sequence[Capsule],
    *,
    ranges: tuple[np.ndarray, np.ndarray] | None = None,
    margin: float = 0.01,
    ignore: Iterable[tuple[str, str]] = (),
) -> tuple[tuple[CapsulePair, ...], tuple[str, ...]]:
    """Return a rule for each pair of capsules on different bodies, and a note on those left out.

    Neighbours (bodies with one joint between them) touch by design and are not paired. Pairs that overlap in 95 % of
    2000 random postures, or in the posture in the middle of all ranges, are left out and named: a motion
    that starts from there could not keep them apart.

    Args:
        robot: The arm.
        capsules: Capsules on its links; several on one link are allowed.
        ranges: Lower and upper positions (n,); by default the description's, one turn where it gives none.
        margin: Distance kept besides [m].
        ignore: Pairs of link names that are not looked at.

    Raises:
        DesignError: If a capsule's link does not exist, or a pair to ignore names none that carries a capsule.
    """
    ignored = {frozenset(pair) for pair in ignore}
    _check_ignored(ignored, {capsule.link for capsule in capsules})
    pairs = [
        CapsulePair(f"{names[0]} - {names[1]}", *_moving_first(robot, first, second), margin)
        for names, first, second in _candidates(robot, capsules)
        if frozenset((str(first.link), str(second.link))) not in ignored
    ]
    if not pairs:
        return (), ()
    postures = random_postures(*(ranges or position_ranges(robot)), POSTURES, SEED)
    checked: list[CapsulePair] = []
    left_out: list[str] = []
    for pair, clearances in zip(pairs, clearances_at(robot, pairs, postures), strict=True):
        overlaps = clearances < 0
        if overlaps[0] or overlaps.mean() > ALWAYS:
            left_out.append(f"{pair.name} ({100 * overlaps.mean():.0f} %)")
        else:
            checked.append(pair)
    return tuple(checked), _note(left_out)


def _note(left_out: list[str]) -> tuple[str, ...]:
    if not left_out:
        return ()
    return (
        f"links whose capsules overlap in the middle posture or nearly all (share of postures): {', '.join(left_out)}; "
        "give slimmer ones by [[capsule]] in a limits file",
    )


def _candidates(robot: Robot, capsules: Sequence[Capsule]) -> Iterator[tuple[tuple[str, str], Capsule, Capsule]]:
    """Yield pairs of capsules on different bodies that are not neighbours, with their names."""
    body_of = [robot.frame(str(capsule.link)).body for capsule in capsules]
    parent_of = {body.number: body.parent for body in robot.bodies}
    names = capsule_names(capsules)
    for a, b in itertools.combinations(range(len(capsules)), 2):
        one, other = body_of[a], body_of[b]
        if one != other and parent_of.get(one) != other and parent_of.get(other) != one:
            yield (names[a], names[b]), capsules[a], capsules[b]


def capsule_names(capsules: Sequence[Capsule]) -> list[str]:
    """Return the link's name for each capsule, numbered where a link has several."""
    count, used, names = Counter(capsule.link for capsule in capsules), Counter(), []
    for capsule in capsules:
        used[capsule.link] += 1
        names.append(f"{capsule.link} {used[capsule.link]}" if count[capsule.link] > 1 else str(capsule.link))
    return names


def _moving_first(robot: Robot, first: Capsule, second: Capsule) -> tuple[Capsule, Capsule]:
    """Return the pair with a capsule that does not move second and in the base frame: it then has no moving points."""
    first, second = in_base_frame(first, robot), in_base_frame(second, robot)
    return (second, first) if first.link is None else (first, second)


def _check_ignored(ignored: set[frozenset[str]], links: set[str | None]) -> None:
    unknown = sorted(set().union(*ignored) - {link for link in links if link}) if ignored else []
    if unknown:
        raise DesignError(
            f"[self_collision]: ignore names link '{unknown[0]}', which carries no capsule; "
            f"links that do: {', '.join(sorted(link for link in links if link))}"
        )


FLOOR = "floor"
FloorHeight = float | Literal["none"] | None
"""A height [m], ``none`` for no floor, or None to leave it to the robot's description."""

FLOOR_POSTURES, FLOOR_SEED = 200, 7
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
    postures = random_postures(*ranges, FLOOR_POSTURES, FLOOR_SEED)
    checked, left_out = [], []
    for rule, clearances in zip(rules, clearances_at(robot, rules, postures), strict=True):
        if clearances.max() < 0 and np.ptp(clearances) < HARDLY_LIFTED * rule.margin:
            left_out.append(rule.name.removeprefix(f"{FLOOR} - "))
        else:
            checked.append(rule)
    return checked, left_out


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
