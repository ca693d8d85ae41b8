"""Which column belongs to which joint: from names, from numbers, and only then from the robot's order."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..errors import RecordingError, nearest_match
from ..robot import Robot

_LAST_NUMBER = re.compile(r"(\d{1,9})(?!.*\d)", re.DOTALL)


def joint_names(robot: Robot) -> tuple[str, ...]:
    """Return the names of the joints that are the rows of a recording, in order."""
    return tuple(body.joint.name for body in robot.actuated)


def columns_by_joint(
    robot: Robot, names: Sequence[str] | None, declared: Sequence[str] | None, count: int, where: str
) -> tuple[list[int], str]:
    """Return for each actuated joint which of the selected columns is its own, and how that was known.

    Args:
        robot: The arm.
        names: Names of the selected columns, None if the file names none.
        declared: Joint names in the order of the columns, if declared.
        count: Number of selected columns.
        where: What messages call the channel.

    Returns:
        The columns in the robot's joint order, and a note (empty if the order came from joint names).
    """
    if declared is not None:
        if len(declared) != count:
            raise RecordingError(f"{where}: {count} columns for {len(declared)} declared joints; one each is expected")
        return _by_joint(robot, declared, where), ""
    found = [joint_in_name(robot, name) for name in names or []]
    if any(found):
        unnamed = [name for name, joint in zip(names or [], found, strict=True) if joint is None]
        if unnamed:
            raise RecordingError(
                f"{where}: column '{unnamed[0]}' names no joint of robot '{robot.name}' though others do; "
                f"joints: {', '.join(joint_names(robot))}; is this its recording?"
            )
        return _by_joint(robot, [joint or "" for joint in found], where), ""
    return _without_names(robot, names, count, where)


def joint_in_name(robot: Robot, name: str) -> str | None:
    """Return the joint a column's name speaks of: the longest joint name in it that stands alone."""
    inside = re.search(r"\[([^\[\]]+)\]$", name)
    candidates = [joint.name for joint in robot.joints]
    if inside and inside[1] in candidates:
        return inside[1]
    found = [joint for joint in candidates if _stands_in(joint, name)]
    return max(found, key=len, default=None)


def _stands_in(joint: str, name: str) -> bool:
    return bool(re.search(rf"(?<![A-Za-z0-9]){re.escape(joint)}(?![A-Za-z0-9])", name, re.IGNORECASE))


def _by_joint(robot: Robot, order: Sequence[str], where: str) -> list[int]:
    """Return the place of every actuated joint in a list of joint names; joints that do not move may be there too."""
    known = {joint.name for joint in robot.joints}
    wanted = joint_names(robot)
    for joint in order:
        if joint not in known:
            raise RecordingError(
                f"{where}: robot '{robot.name}' has no joint '{joint}'; joints: {', '.join(wanted)}"
                f"{nearest_match(joint, wanted)}"
            )
        if list(order).count(joint) > 1:
            raise RecordingError(f"{where}: joint '{joint}' has two columns; name one column for each joint")
    missing = [joint for joint in wanted if joint not in order]
    if missing:
        raise RecordingError(f"{where}: no column for joint '{missing[0]}' of robot '{robot.name}'; add it")
    return [list(order).index(joint) for joint in wanted]


def _are_places(names: Sequence[str]) -> bool:
    """Return whether the names are only places in one array: ``positions[1]``, ``positions[2]`` ..."""
    group = names[0].rpartition("[")[0]
    return [f"{group}[{place}]" for place in range(1, len(names) + 1)] == list(names)


def _without_names(robot: Robot, names: Sequence[str] | None, count: int, where: str) -> tuple[list[int], str]:
    wanted = joint_names(robot)
    if count != len(wanted):
        raise RecordingError(
            f"{where}: {count} columns, but robot '{robot.name}' has {len(wanted)} joints; select one column for each, "
            "or name them with joints = [...]; is this its recording?"
        )
    if names and _are_places(names):
        names = None
    brackets = [name for name in names or [] if re.search(r"\[[^\[\]\d]+\]$", name)]
    if brackets:
        raise RecordingError(
            f"{where}: column '{brackets[0]}' names no joint of robot '{robot.name}'; joints: {', '.join(wanted)}; "
            "is this its recording?"
        )
    numbers = [int(match[1]) if (match := _LAST_NUMBER.search(name)) else None for name in names or []]
    if not numbers or None in numbers or len(set(numbers)) < count:
        return list(range(count)), f"joint order is not declared; taken as the robot's ({', '.join(wanted)})"
    ordered = sorted(range(count), key=lambda k: numbers[k] or 0)
    if ordered != list(range(count)):
        raise RecordingError(
            f"{where}: columns are numbered {', '.join(map(str, numbers))} but no joint is named; "
            "say which joint each belongs to with joints = [...]"
        )
    return ordered, "joint order taken from the numbers in the column names"
