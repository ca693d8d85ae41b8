"""What both readers check of the tree: names, parents, one root, no loop, mimics that lead somewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import RobotError, nearest_match
from .checks import inertia_notes
from .parts import Joint, Link
from .tree import Robot

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
    for joint in joints:
        seen = {joint.name}
        follower = joint
        while follower.mimic is not None:
            leader = by_name.get(follower.mimic.leader)
            if leader is None or leader.kind == "fixed":
                moving = [other.name for other in joints if other.kind != "fixed" and other is not follower]
                raise RobotError(
                    f"joint '{follower.name}' mimics '{follower.mimic.leader}', which is no moving joint; "
                    f"allowed: {', '.join(moving)}{nearest_match(follower.mimic.leader, moving)}"
                )
            if leader.name in seen:
                raise RobotError(f"joint '{joint.name}' mimics itself in a circle ({_quoted(seen)}); free one of them")
            seen.add(leader.name)
            follower = leader


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
