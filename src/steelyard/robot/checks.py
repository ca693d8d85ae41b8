"""Checks of robot descriptions, whichever file they come from: limits, names, and one tree of links."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..configuration import LARGEST_NUMBER
from ..errors import RobotError, nearest_match
from .inertia import inertia_notes
from .parts import Joint, JointKind, Limits, Link
from .tree import Robot, leaders

# Joint types of files, and the kinds they mean here.
JOINT_KINDS: dict[str, JointKind] = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
}


def checked_limits(joint: str, given: Mapping[str, float]) -> tuple[Limits, list[str]]:
    """Return the limits of a joint from those its file gives, and notes on those that mean nothing.

    A zero speed, effort, acceleration or jerk limit, a range from 0 to 0, or a number beyond all measure is what
    exporters write where they know nothing: it counts as not given.
    """
    unlimited = {name for name, value in given.items() if (-value if name == "lower" else value) > LARGEST_NUMBER}
    limits = {name: value for name, value in given.items() if name not in unlimited}
    notes: list[str] = []
    for name in ("velocity", "effort", "acceleration", "jerk"):
        if limits.get(name, math.inf) < 0:
            raise RobotError(f"joint '{joint}': {name} limit is {limits[name]}; it must be positive, or left out")
        if limits.get(name) == 0:
            del limits[name]
            notes.append(f"joint '{joint}': {name} limit 0 taken as not given")
    lower, upper = limits.get("lower", -math.inf), limits.get("upper", math.inf)
    if lower > upper:
        raise RobotError(
            f"joint '{joint}': lower limit {lower} is above upper limit {upper}; allowed is lower <= upper, swap them"
        )
    if lower == upper == 0:
        del limits["lower"], limits["upper"]
        notes.append(f"joint '{joint}': range 0 to 0 taken as not given")
    return Limits(**limits), notes


def gravity_vector(value: object) -> tuple[float, float, float]:
    """Return the acceleration of gravity from three numbers, or from a text such as ``0,0,-9.81``.

    Example:
        >>> from steelyard.robot import gravity_vector
        >>> gravity_vector("0,0,-9.81")
        (0.0, 0.0, -9.81)
    """
    parts = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or len(parts) != 3:
        raise RobotError(f"gravity '{value}': three numbers x,y,z are needed, such as 0,0,-9.81")
    x, y, z = (_number_in_text(part, "gravity") for part in parts)
    return x, y, z


def lock_positions(value: object) -> dict[str, float]:
    """Return positions of held joints from a table, or from texts such as ``joint_3=0.5``.

    Example:
        >>> from steelyard.robot import lock_positions
        >>> lock_positions(["joint_2=0.5"])
        {'joint_2': 0.5}
    """
    if isinstance(value, Mapping):
        return {str(joint): _number_in_text(position, f"lock {joint}") for joint, position in value.items()}
    pairs = [str(text).partition("=") for text in (value if isinstance(value, list | tuple) else [value])]
    for joint, equals, position in pairs:
        if not (joint and equals and position):
            raise RobotError(f"lock '{joint}{equals}{position}': write JOINT=POSITION, such as joint_3=0.5")
    return {joint: _number_in_text(position, f"lock {joint}") for joint, _, position in pairs}


def _number_in_text(text: object, what: str) -> float:
    try:
        number = float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise RobotError(f"{what}: '{text}' is not a number; write it like 9.81") from None
    if not abs(number) <= LARGEST_NUMBER:
        raise RobotError(f"{what}: got {text}; a finite number up to {LARGEST_NUMBER:g} is needed")
    return number


# More joints than any arm has; beyond it the file is something else.
MOST_JOINTS = 500
LONGEST_NAME = 200


def assembled_robot(
    name: str, links: Sequence[Link], joints: Sequence[Joint], notes: Sequence[str], **known: Any
) -> Robot:
    """Return the robot if links and joints form one tree with at least one moving joint.

    Args:
        name: Name of the arm.
        links: Links in file order.
        joints: Joints in file order.
        notes: Notes of the reader; those on odd inertias are added.
        **known: Further fields of ``Robot``.
    """
    check_names(links, joints)
    root = checked_root(links, joints)
    check_mimics(joints)
    all_notes = (*notes, *inertia_notes(links))
    robot = Robot(name, tuple(links), tuple(joints), root, notes=all_notes, **known)
    if not robot.bodies:
        raise RobotError("no joint moves; an arm needs at least one revolute, continuous or prismatic joint")
    return robot


def check_names(links: Sequence[Link], joints: Sequence[Joint]) -> None:
    """Refuse empty and repeated names, and more joints than an arm can have."""
    if not links:
        raise RobotError("there is no link; a robot needs at least two links and a joint between them")
    if len(joints) > MOST_JOINTS:
        raise RobotError(f"there are {len(joints)} joints; at most {MOST_JOINTS} are read, is this the right file?")
    for kind, names in (("link", [link.name for link in links]), ("joint", [joint.name for joint in joints])):
        if not all(names):
            raise RobotError(f"a {kind} has no name; give every {kind} a name of its own")
        longest = max(names, key=len, default="")
        if len(longest) > LONGEST_NAME:
            raise RobotError(f"{kind} name '{longest[:20]}...' has {len(longest)} letters; allowed {LONGEST_NAME}")
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            raise RobotError(f"{kind} name {_quoted(repeated)} is used more than once; every {kind} needs its own name")


def checked_root(links: Sequence[Link], joints: Sequence[Joint]) -> str:
    """Return the name of the one link without a parent, from which every link is reached."""
    names = [link.name for link in links]
    _check_ends(names, joints)
    parent_of = {joint.child: joint.parent for joint in joints}
    roots = [name for name in names if name not in parent_of]
    if len(roots) > 1:
        raise RobotError(
            f"the tree has {len(roots)} roots, one is allowed: links {_quoted(roots)} are the child of no joint; "
            "connect them by a joint (type fixed) or delete them"
        )
    in_loop = _links_in_loop(names, parent_of)
    if in_loop:
        raise RobotError(
            f"links {_quoted(in_loop)} form a loop, a tree is allowed; break the loop at one of their joints"
        )
    return roots[0]


def check_mimics(joints: Sequence[Joint]) -> None:
    """Refuse a mimic of an unknown or fixed joint, and mimics that run in a circle."""
    by_name = {joint.name: joint for joint in joints}
    moving = [joint.name for joint in joints if joint.kind != "fixed"]
    for joint in joints:
        if joint.mimic is not None and joint.mimic.leader not in moving:
            others = [name for name in moving if name != joint.name]
            raise RobotError(
                f"joint '{joint.name}' mimics '{joint.mimic.leader}', which is no moving joint; "
                f"allowed: {', '.join(others)}{nearest_match(joint.mimic.leader, others)}"
            )
    for joint in joints:
        list(leaders(joint, by_name))  # refuses a circle


def _check_ends(names: Sequence[str], joints: Sequence[Joint]) -> None:
    """Refuse a joint between links that do not exist, and a link with two parents."""
    known, joint_of_child = set(names), {}
    for joint in joints:
        for end, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in known:
                raise RobotError(
                    f"joint '{joint.name}': {end} link '{link}' does not exist; "
                    f"links: {', '.join(names)}{nearest_match(link, names)}"
                )
        if joint.child in joint_of_child:
            raise RobotError(
                f"link '{joint.child}' has two parents, joints '{joint_of_child[joint.child]}' and '{joint.name}'; "
                "one is allowed (closed chains are out of scope)"
            )
        joint_of_child[joint.child] = joint.name


def _links_in_loop(names: Iterable[str], parent_of: dict[str, str]) -> list[str]:
    """Return the links of one loop, or an empty list."""
    done: set[str] = set()
    for name in names:
        path: list[str] = []
        while name in parent_of and name not in done:
            if name in path:
                return path[path.index(name) :]
            path.append(name)
            name = parent_of[name]
        done.update(path)
    return []


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
