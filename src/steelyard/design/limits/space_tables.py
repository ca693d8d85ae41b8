"""Rules on space from a limits file: ``[[space]]``, ``[[capsule]]`` and ``[[obstacle]]``."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from ...errors import DesignError, nearest_match
from ...robot import Robot
from ..space.capsules import Capsule, CapsulePair
from ..space.fitting import bounding_capsule
from ..space.floor import plane_rules
from ..space.regions import Box, Cylinder, HalfSpace, Region, Sphere, Vector3
from ..space.rules import ArmPoint, Keep, PointRule, SpaceRule
from ..space.self_collision import capsule_names
from .checked_tables import Table, check_keys, number_in, text_in, vector_in, word_in

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
