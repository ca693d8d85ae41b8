"""Rules on space of an arm: regions, obstacles and capsules of a limits file, the floor, and self-collision."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, cast, final

import numpy as np

from ...configuration import Section, choice, flag, list_of, names, number, record_from, text, vector
from ...errors import DesignError, nearest_match
from ...robot import Robot
from ...text import counted
from ..space.capsules import Capsule, CapsulePair
from ..space.fitting import bounding_capsule, fitted_capsules, link_capsules
from ..space.regions import Box, Cylinder, HalfSpace, Region, Sphere, Vector3
from ..space.rules import ArmPoint, Keep, PointRule, SpaceRule, check_rules_can_be_kept
from ..space.self_collision import FLOOR, Floor, capsule_names, floor_rules, plane_rules, self_collision_pairs

ORIGIN: Vector3 = (0.0, 0.0, 0.0)
NUMBER = number(infinite=True)
SPACE_KEYS = ("name", "link", "point", "kind", "keep", "margin")
OBSTACLE_KEYS = ("name", "kind", "margin", "ignore")


def _vector(value: Any) -> Vector3:
    return vector(value, NUMBER)


def space_rule(table: Section, place: int, robot: Robot) -> PointRule:
    """Return the rule of one ``[[space]]`` table; ``place`` counts them from 1."""
    name = table.get("name", text, f"space {place}")
    table = table.renamed(f"[[space]] '{name}'")
    kind = table.get("kind", choice(*REGIONS))
    region = _region(table, kind, SPACE_KEYS)
    keep = table.get("keep", choice("in", "out"), "in" if kind == "half_space" else None)
    link = _link(robot, table.get("link", text, last_link(robot)), table)
    point = ArmPoint(link, table.get("point", _vector, ORIGIN))
    return PointRule(name, point, region, cast(Keep, f"keep_{keep}"), table.get("margin", NUMBER, 0.0))


def given_capsule(table: Section, robot: Robot) -> Capsule:
    """Return the capsule of one ``[[capsule]]`` table."""
    table.check_keys(("link", "start", "end", "radius"))
    link = _link(robot, table.get("link", text), table)
    start = table.get("start", _vector)
    return Capsule(link, start, table.get("end", _vector, start), table.get("radius", NUMBER))


def obstacle_rules(table: Section, place: int, robot: Robot, capsules: Sequence[Capsule]) -> list[SpaceRule]:
    """Return rules of one ``[[obstacle]]``: one or two for each capsule of the arm that moves."""
    name = table.get("name", text, f"obstacle {place}")
    table = table.renamed(f"[[obstacle]] '{name}'")
    kind = table.get("kind", choice("half_space", *OBSTACLES))
    margin = table.get("margin", NUMBER, 0.0)
    ignore = {_link(robot, link, table) for link in table.get("ignore", names("link names"), ())}
    moving = [capsule for capsule in capsules if robot.frame(str(capsule.link)).body]
    labelled = zip(capsule_names(moving), moving, strict=True)
    named = [(label, capsule) for label, capsule in labelled if capsule.link not in ignore]
    if not named:
        raise table.failure("every moving link is ignored; leave the obstacle out, or ignore fewer links")
    if kind != "half_space":
        fixed = OBSTACLES[kind](table)
        return [CapsulePair(f"{name} - {label}", capsule, fixed, margin) for label, capsule in named]
    return [*plane_rules(name, cast(HalfSpace, _region(table, kind, OBSTACLE_KEYS)), named, margin)]


def last_link(robot: Robot) -> str:
    """Return the link that carries the payload, or else the end of the longest chain."""
    if robot.payload_link is not None:
        return robot.payload_link
    parent_of = {joint.child: joint.parent for joint in robot.joints}
    moves = {joint.child: joint.moves for joint in robot.joints}

    def depth(link: str) -> tuple[int, int]:
        moving = total = 0
        while link in parent_of:
            moving, total, link = moving + moves[link], total + 1, parent_of[link]
        return moving, total

    return max((link.name for link in robot.links), key=depth)


def _link(robot: Robot, name: str, table: Section) -> str:
    if name not in robot.frames:
        links = list(robot.frames)
        raise table.failure(f"link is '{name}'; links: {', '.join(links)}{nearest_match(name, links)}")
    return name


def _region(table: Section, kind: str, common: Sequence[str]) -> Region:
    """Return the region of a table; its keys are the fields of the record and those common to all kinds."""
    hints = {field.name: field.type for field in fields(REGIONS[kind]) if field.init}
    table.check_keys((*common, *hints))
    if kind == "sphere":
        table.get("centre", _vector)  # where a sphere is must be given
    own = {key: value for key, value in table.table.items() if key in hints}
    kinds = {name: NUMBER if hint == "float" else _vector for name, hint in hints.items()}
    return record_from(REGIONS[kind], replace(table, table=own), kinds)


def _fixed_capsule(table: Section) -> Capsule:
    table.check_keys((*OBSTACLE_KEYS, "start", "end", "radius"))
    return Capsule(None, table.get("start", _vector), table.get("end", _vector), table.get("radius", NUMBER))


def _ball(table: Section) -> Capsule:
    sphere = cast(Sphere, _region(table, "sphere", OBSTACLE_KEYS))
    return Capsule(None, sphere.centre, sphere.centre, sphere.radius)


def _bounded_box(table: Section) -> Capsule:
    box = cast(Box, _region(table, "box", OBSTACLE_KEYS))
    if not np.isfinite([*box.lower, *box.upper]).all():
        raise table.failure("an obstacle's box must be finite; use a half_space for a wall or the floor")
    return bounding_capsule(None, np.array(list(itertools.product(*zip(box.lower, box.upper, strict=True)))))


REGIONS: dict[str, type[HalfSpace | Box | Cylinder | Sphere]] = {
    "half_space": HalfSpace, "box": Box, "cylinder": Cylinder, "sphere": Sphere,
}  # fmt: skip
OBSTACLES: dict[str, Callable[[Section], Capsule]] = {"capsule": _fixed_capsule, "sphere": _ball, "box": _bounded_box}

DEFAULT_MARGIN = 0.01
"""Distance kept between links, and from the floor [m]."""

ALWAYS_UNCHECKED = ("shape of tool and payload", "cables")

Ranges = tuple[np.ndarray, np.ndarray]
"""Lower and upper positions (n,)."""


@final
@dataclass(frozen=True)
class SpaceLimits:
    """Rules on space, and texts that describe them.

    Attributes:
        rules: The rules.
        checked: Texts that say which rules are kept.
        not_checked: Texts that say what is not checked.
        capsules: Description of the capsules that stand for the links.
        notes: What could not be read.
    """

    rules: tuple[SpaceRule, ...] = ()
    checked: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()
    capsules: str = ""
    notes: tuple[str, ...] = ()


def space_limits(robot: Robot, document: Section, floor: Floor, ranges: Ranges, *, self_collision: bool) -> SpaceLimits:
    """Return the rules on space of a limits file, on the floor, and between links.

    Args:
        robot: The arm.
        document: The limits file, empty if there is none.
        floor: The floor; an obstacle of that name in the file replaces it.
        ranges: Where the joints may be.
        self_collision: Whether links must keep apart.

    Raises:
        DesignError: If a table is wrong, or no posture keeps a rule.
    """
    capsules, described, bare, notes = _arm_capsules(robot, document.sections("capsule"))
    parts = [
        _rules_of_file(robot, document, capsules, ranges),
        _floor_part(robot, document, floor, capsules, ranges),
        _self_collision_part(robot, document.section("self_collision"), capsules, ranges, self_collision),
    ]
    obstacles = "obstacles other than those given" if document.sections("obstacle") else "obstacles (none are given)"
    rules = tuple(rule for part in parts for rule in part.rules)
    checked = tuple(text for part in parts for text in part.checked)
    not_checked = (*(text for part in parts for text in part.not_checked), *bare, obstacles, *ALWAYS_UNCHECKED)
    return SpaceLimits(rules, checked, not_checked, described if rules else "", notes)


def _arm_capsules(
    robot: Robot, tables: Sequence[Section]
) -> tuple[tuple[Capsule, ...], str, tuple[str, ...], tuple[str, ...]]:
    """Return capsules of the file, else around a link's shapes, else assumed along a body that has neither.

    Also returns a description of them, a text on links that have none, and notes on what could not be read.
    """
    given = [given_capsule(table, robot) for table in tables]
    fitted, notes = fitted_capsules(robot, leave_out={capsule.link for capsule in given})
    covered = {robot.frame(str(capsule.link)).body for capsule in (*fitted, *given)}
    missing = [number for number in range(len(robot.bodies) + 1) if number not in covered]
    assumed = link_capsules(robot, missing, balls=not fitted)
    described = ["around the collision shapes of the robot's file"] if fitted else []
    described += ["of the limits file"] if given else []
    if assumed.capsules:
        links = list(dict.fromkeys(str(capsule.link) for capsule in assumed.capsules))
        where = ", ".join(links) if covered else "all links"
        described.append(f"assumed along {where}, radius {assumed.radius:.3f} m from {assumed.basis}")
    every = [robot.root, *(body.link for body in robot.bodies)]
    bare = [every[number] for number in missing if every[number] not in {capsule.link for capsule in assumed.capsules}]
    without = (f"links without shape or length: {', '.join(bare)}",) if bare else ()
    return (*fitted, *given, *assumed.capsules), "; ".join(described), without, notes


def _rules_of_file(robot: Robot, document: Section, capsules: Sequence[Capsule], ranges: Ranges) -> SpaceLimits:
    rules: list[SpaceRule] = []
    labels: list[str] = []
    for place, table in enumerate(document.sections("space"), start=1):
        rules.append(space_rule(table, place, robot))
        labels.append(rules[-1].name)
    for place, table in enumerate(document.sections("obstacle"), start=1):
        rules += obstacle_rules(table, place, robot, capsules)
        labels.append(table.get("name", text, f"obstacle {place}"))
    check_rules_can_be_kept(robot, rules, *ranges)
    return SpaceLimits(tuple(rules), (f"rules of the limits file ({', '.join(labels)})",) if labels else ())


def _floor_part(
    robot: Robot, document: Section, floor: Floor, capsules: Sequence[Capsule], ranges: Ranges
) -> SpaceLimits:
    if any(table.table.get("name") == FLOOR for table in document.sections("obstacle")):
        if floor.is_given:
            raise DesignError("both a floor and an [[obstacle]] named 'floor' are given; keep one")
        return SpaceLimits()
    if floor.height is None:
        return SpaceLimits(not_checked=(f"floor ({floor.origin})",))
    rules, below = floor_rules(robot, floor, capsules, DEFAULT_MARGIN, ranges)
    remedy = f"the floor is at {floor.height:g} m ({floor.origin}): give another height by --floor, or --floor none"
    check_rules_can_be_kept(robot, rules, *ranges, remedy)
    left_out = (f"floor below capsule ends that no joint lifts: {', '.join(below)}",) if below else ()
    return SpaceLimits(tuple(rules), (f"floor at {floor.height:g} m ({floor.origin})",) if rules else (), left_out)


def _self_collision_part(
    robot: Robot, table: Section, capsules: Sequence[Capsule], ranges: Ranges, wanted: bool
) -> SpaceLimits:
    kinds = {"on": flag, "margin": NUMBER, "ignore": _pairs}
    settings = {"on": True, "margin": DEFAULT_MARGIN, "ignore": [], **table.values(kinds)}
    if not (wanted and settings["on"]):
        return SpaceLimits(not_checked=("self-collision (switched off)",))
    ignored = settings["ignore"]
    pairs, left_out = self_collision_pairs(robot, capsules, ranges=ranges, margin=settings["margin"], ignore=ignored)
    not_checked = ["neighbouring links", *left_out]
    if ignored:
        not_checked.append(f"links to ignore: {', '.join(' - '.join(pair) for pair in ignored)}")
    count = f"{counted(len(pairs), 'pair')} of links"
    return SpaceLimits(pairs, (f"self-collision ({count})",) if pairs else (), tuple(not_checked))


def _pairs(value: Any) -> list[list[str]]:
    """Pairs of names of links."""
    pairs = list_of(names("two links"), None, 'a list of pairs of links, such as [["a", "b"]]')(value)
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError('a list of pairs of links, such as [["a", "b"]]')
    return value
