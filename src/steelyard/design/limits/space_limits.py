"""Rules on space of an arm: its capsules, the floor, obstacles and self-collision, and what none of them looks at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ...errors import DesignError
from ...robot import Robot
from ..space.along_links import link_capsules
from ..space.capsules import Capsule
from ..space.feasible_rules import check_rules_can_be_kept
from ..space.fitting import fitted_capsules
from ..space.floor import FLOOR, Floor, floor_rules
from ..space.rules import SpaceRule
from ..space.self_collision import self_collision_pairs
from .checked_tables import Table, check_keys, number_in, table_in, tables_in
from .space_tables import given_capsule, obstacle_rules, space_rule

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
