"""Rules on space of an arm: its capsules, the floor, obstacles and self-collision, and what none of them looks at.

Rules on space from a limits file: ``[[space]]``, ``[[capsule]]`` and ``[[obstacle]]``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast, final

import numpy as np

from ...errors import DesignError, nearest_match
from ...robot import Robot
from ..space.capsules import Capsule, CapsulePair
from ..space.fitting import bounding_capsule, fitted_capsules, link_capsules
from ..space.regions import Box, Cylinder, HalfSpace, Region, Sphere, Vector3
from ..space.rules import ArmPoint, Keep, PointRule, SpaceRule, check_rules_can_be_kept
from ..space.self_collision import FLOOR, Floor, capsule_names, floor_rules, plane_rules, self_collision_pairs
from .checked_tables import Table, check_keys, number_in, table_in, tables_in, text_in, vector_in, word_in

ORIGIN: Vector3 = (0.0, 0.0, 0.0)
SPACE_KEYS = ("name", "link", "point", "kind", "keep", "margin")
OBSTACLE_KEYS = ("name", "kind", "margin", "ignore")


def space_rule(table: Table, number: int, robot: Robot) -> PointRule:
    """Return the rule of one ``[[space]]`` table; ``number`` counts them from 1."""
    name = text_in(table, "name", f"[[space]] {number}", f"space {number}")
    where = f"[[space]] '{name}'"
    kind = word_in(table, "kind", REGIONS, where)
    keys, region = REGIONS[kind]
    check_keys(table, (*SPACE_KEYS, *keys), where)
    keep = word_in(table, "keep", ("in", "out"), where, "in" if kind == "half_space" else None)
    link = _link(robot, text_in(table, "link", where, last_link(robot)), where)
    point = ArmPoint(link, vector_in(table, "point", where, ORIGIN))
    return PointRule(
        name, point, region(table, where), cast(Keep, f"keep_{keep}"), number_in(table, "margin", where, 0.0)
    )


def given_capsule(table: Table, number: int, robot: Robot) -> Capsule:
    """Return the capsule of one ``[[capsule]]`` table."""
    where = f"[[capsule]] {number}"
    check_keys(table, ("link", "start", "end", "radius"), where)
    link = _link(robot, text_in(table, "link", where), where)
    start = vector_in(table, "start", where)
    return Capsule(link, start, vector_in(table, "end", where, start), number_in(table, "radius", where))


def obstacle_rules(table: Table, number: int, robot: Robot, capsules: Sequence[Capsule]) -> list[SpaceRule]:
    """Return rules of one ``[[obstacle]]``: one or two for each capsule of the arm that moves."""
    name = text_in(table, "name", f"[[obstacle]] {number}", f"obstacle {number}")
    where = f"[[obstacle]] '{name}'"
    kind = word_in(table, "kind", ("half_space", *OBSTACLES), where)
    margin, ignore = number_in(table, "margin", where, 0.0), _ignored(table, robot, where)
    moving = [capsule for capsule in capsules if robot.frame(str(capsule.link)).body]
    labelled = zip(capsule_names(moving), moving, strict=True)
    named = [(label, capsule) for label, capsule in labelled if capsule.link not in ignore]
    if not named:
        raise DesignError(f"{where}: every moving link is ignored; leave the obstacle out, or ignore fewer links")
    if kind != "half_space":
        keys, obstacle = OBSTACLES[kind]
        check_keys(table, (*OBSTACLE_KEYS, *keys), where)
        fixed = obstacle(table, where)
        return [CapsulePair(f"{name} - {label}", capsule, fixed, margin) for label, capsule in named]
    check_keys(table, (*OBSTACLE_KEYS, *REGIONS[kind][0]), where)
    return [*plane_rules(name, _half_space(table, where), named, margin)]


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


def _link(robot: Robot, name: str, where: str) -> str:
    if name not in robot.frames:
        links = list(robot.frames)
        raise DesignError(f"{where}: link is '{name}'; links: {', '.join(links)}{nearest_match(name, links)}")
    return name


def _ignored(table: Table, robot: Robot, where: str) -> set[str]:
    given = table.get("ignore", [])
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise DesignError(f"{where}: ignore is {given!r}; a list of link names is expected")
    return {_link(robot, name, where) for name in given}


def _half_space(table: Table, where: str) -> HalfSpace:
    return HalfSpace(vector_in(table, "normal", where), number_in(table, "offset", where, 0.0))


def _box(table: Table, where: str) -> Box:
    return Box(vector_in(table, "lower", where), vector_in(table, "upper", where))


def _cylinder(table: Table, where: str) -> Cylinder:
    return Cylinder(
        number_in(table, "radius", where),
        vector_in(table, "centre", where, ORIGIN),
        vector_in(table, "axis", where, (0.0, 0.0, 1.0)),
        number_in(table, "lower", where, -np.inf),
        number_in(table, "upper", where, np.inf),
    )


def _sphere(table: Table, where: str) -> Sphere:
    return Sphere(number_in(table, "radius", where), vector_in(table, "centre", where))


def _fixed_capsule(table: Table, where: str) -> Capsule:
    return Capsule(
        None, vector_in(table, "start", where), vector_in(table, "end", where), number_in(table, "radius", where)
    )


def _ball(table: Table, where: str) -> Capsule:
    sphere = _sphere(table, where)
    return Capsule(None, sphere.centre, sphere.centre, sphere.radius)


def _bounded_box(table: Table, where: str) -> Capsule:
    box = _box(table, where)
    if not np.isfinite([*box.lower, *box.upper]).all():
        raise DesignError(f"{where}: an obstacle's box must be finite; use a half_space for a wall or the floor")
    return bounding_capsule(None, np.array(list(itertools.product(*zip(box.lower, box.upper, strict=True)))))


REGIONS: dict[str, tuple[tuple[str, ...], Callable[[Table, str], Region]]] = {
    "half_space": (("normal", "offset"), _half_space),
    "box": (("lower", "upper"), _box),
    "cylinder": (("centre", "axis", "radius", "lower", "upper"), _cylinder),
    "sphere": (("centre", "radius"), _sphere),
}
OBSTACLES: dict[str, tuple[tuple[str, ...], Callable[[Table, str], Capsule]]] = {
    "capsule": (("start", "end", "radius"), _fixed_capsule),
    "sphere": (("centre", "radius"), _ball),
    "box": (("lower", "upper"), _bounded_box),
}

DEFAULT_MARGIN = 0.01
"""Distance kept between links, and from the floor [m]."""

ALWAYS_UNCHECKED = ("shape of tool and payload", "cables")

Ranges = tuple[np.ndarray, np.ndarray]
"""Lower and upper positions (n,)."""


@final
@dataclass(frozen=True)
class SpaceLimits:
    """Rules on space, and what is to be said of them.

    Attributes:
        rules: The rules.
        capsules: What stands for the links, in words.
        checked: What the rules keep, in words.
        not_checked: What no rule looks at, in words.
        notes: What could not be read.
    """

    rules: tuple[SpaceRule, ...]
    capsules: str
    checked: tuple[str, ...]
    not_checked: tuple[str, ...]
    notes: tuple[str, ...]


def space_limits(robot: Robot, document: Table, floor: Floor, ranges: Ranges, *, self_collision: bool) -> SpaceLimits:
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
    arm = _arm_capsules(robot, tables_in(document, "capsule"))
    parts = [
        _rules_of_file(robot, document, arm.capsules, ranges),
        _floor_part(robot, document, floor, arm.capsules, ranges),
        _self_collision_part(robot, table_in(document, "self_collision"), arm.capsules, ranges, self_collision),
    ]
    obstacles = "obstacles other than those given" if tables_in(document, "obstacle") else "obstacles (none are given)"
    rules = tuple(rule for part in parts for rule in part.rules)
    return SpaceLimits(
        rules,
        arm.words if rules else "",
        tuple(words for part in parts for words in part.checked),
        (*(words for part in parts for words in part.not_checked), *arm.not_checked, obstacles, *ALWAYS_UNCHECKED),
        arm.notes,
    )


@final
@dataclass(frozen=True)
class _Arm:
    """Capsules of an arm, what they are in words, links that have none, and what could not be read."""

    capsules: tuple[Capsule, ...]
    words: str
    not_checked: tuple[str, ...]
    notes: tuple[str, ...]


def _arm_capsules(robot: Robot, tables: Sequence[Table]) -> _Arm:
    """Return capsules of the file, else around a link's shapes, else assumed along a body that has neither."""
    given = [given_capsule(table, number, robot) for number, table in enumerate(tables, start=1)]
    fitted, notes = fitted_capsules(robot, leave_out={capsule.link for capsule in given})
    covered = {robot.frame(str(capsule.link)).body for capsule in (*fitted, *given)}
    missing = [number for number in range(len(robot.bodies) + 1) if number not in covered]
    assumed = link_capsules(robot, missing, balls=not fitted)
    words = [] if not fitted else ["around the collision shapes of the robot's file"]
    words += [] if not given else ["of the limits file"]
    if assumed.capsules:
        links = list(dict.fromkeys(str(capsule.link) for capsule in assumed.capsules))
        where = ", ".join(links) if covered else "all links"
        words.append(f"assumed along {where}, radius {assumed.radius:.3f} m from {assumed.basis}")
    names = [robot.root, *(body.link for body in robot.bodies)]
    bare = [names[number] for number in missing if names[number] not in {capsule.link for capsule in assumed.capsules}]
    without = (f"links without shape or length: {', '.join(bare)}",) if bare else ()
    return _Arm((*fitted, *given, *assumed.capsules), "; ".join(words), without, notes)


@final
@dataclass(frozen=True)
class _Part:
    """Rules of one kind, what they keep and what they leave out."""

    rules: tuple[SpaceRule, ...] = ()
    checked: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()


def _rules_of_file(robot: Robot, document: Table, capsules: Sequence[Capsule], ranges: Ranges) -> _Part:
    rules: list[SpaceRule] = []
    names: list[str] = []
    for number, table in enumerate(tables_in(document, "space"), start=1):
        rules.append(space_rule(table, number, robot))
        names.append(rules[-1].name)
    for number, table in enumerate(tables_in(document, "obstacle"), start=1):
        rules += obstacle_rules(table, number, robot, capsules)
        names.append(str(table.get("name", f"obstacle {number}")))
    check_rules_can_be_kept(robot, rules, *ranges)
    return _Part(tuple(rules), (f"rules of the limits file ({', '.join(names)})",) if names else ())


def _floor_part(robot: Robot, document: Table, floor: Floor, capsules: Sequence[Capsule], ranges: Ranges) -> _Part:
    if any(table.get("name") == FLOOR for table in tables_in(document, "obstacle")):
        if floor.is_given:
            raise DesignError("both a floor and an [[obstacle]] named 'floor' are given; keep one")
        return _Part()
    if floor.height is None:
        return _Part(not_checked=(f"floor ({floor.origin})",))
    rules, below = floor_rules(robot, floor, capsules, DEFAULT_MARGIN, ranges)
    remedy = f"the floor is at {floor.height:g} m ({floor.origin}): give another height by --floor, or --floor none"
    check_rules_can_be_kept(robot, rules, *ranges, remedy)
    left_out = (f"floor below capsule ends that no joint lifts: {', '.join(below)}",) if below else ()
    return _Part(tuple(rules), (f"floor at {floor.height:g} m ({floor.origin})",) if rules else (), left_out)


def _self_collision_part(
    robot: Robot, table: Table, capsules: Sequence[Capsule], ranges: Ranges, wanted: bool
) -> _Part:
    settings = _self_collision_settings(table)
    if not (wanted and settings["on"]):
        return _Part(not_checked=("self-collision (switched off)",))
    ignored = settings["ignore"]
    pairs, left_out = self_collision_pairs(robot, capsules, ranges=ranges, margin=settings["margin"], ignore=ignored)
    not_checked = ["neighbouring links", *left_out]
    if ignored:
        not_checked.append(f"links to ignore: {', '.join(' - '.join(pair) for pair in ignored)}")
    count = f"{len(pairs)} pair{'' if len(pairs) == 1 else 's'} of links"
    return _Part(pairs, (f"self-collision ({count})",) if pairs else (), tuple(not_checked))


def _self_collision_settings(table: Table) -> dict[str, Any]:
    where = "[self_collision]"
    check_keys(table, ("on", "margin", "ignore"), where)
    on, ignore = table.get("on", True), table.get("ignore", [])
    if not isinstance(on, bool):
        raise DesignError(f"{where}: on is {on!r}; true or false is expected")
    if not isinstance(ignore, list) or not all(_is_pair(pair) for pair in ignore):
        raise DesignError(f'{where}: ignore is {ignore!r}; a list of pairs of links is expected, such as [["a", "b"]]')
    return {"on": on, "margin": number_in(table, "margin", where, DEFAULT_MARGIN), "ignore": ignore}


def _is_pair(pair: object) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and all(isinstance(name, str) for name in pair)
