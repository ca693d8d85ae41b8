"""Selection of columns by name, pattern, number or range (from 1), and their assignment to joints.

The joint of a column is found from names, from numbers, and only then from the robot's order.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

from ..errors import RecordingError, nearest_match
from ..robot import Robot
from ..tables.table import MOST_COLUMNS
from ..verdict import first_named
from .setup import Columns
from .units import unit_in_name

_RANGE = re.compile(r"^\s*(\d{1,9})\s*:\s*(\d{1,9})\s*$")
_BRACES = re.compile(r"\{([^{}]*)\}")
_STEPS = re.compile(r"^(\d{1,9})\.\.(\d{1,9})$")
LONGEST_LIST = 12
"""Column names shown in a message."""


def selected_columns(selector: Columns, names: Sequence[str], where: str) -> list[int]:
    """Return the columns a selector means, from 0, in the order it names them.

    Args:
        selector: ``"q1"``, ``"q{1..7}"``, ``"actual_q_*"``, ``"2:8"``, ``3``, or several of these. A name also stands
            for the group ``name[...]``. Units at the end of a column's name (``q1 [deg]``) may be left out.
        names: The file's columns.
        where: What messages call the channel.
    """
    selectors = selector if isinstance(selector, tuple) else (selector,)
    found = [column for one in selectors for column in _selected(one, names, where)]
    repeated = {column for column in found if found.count(column) > 1}
    if repeated:
        raise RecordingError(f"{where}: column '{names[min(repeated)]}' is selected twice; name each column once")
    return found


def names_text(names: Sequence[str]) -> str:
    """Return a list of column names short enough for a message."""
    return first_named(names, most=LONGEST_LIST)


def _selected(selector: str | int, names: Sequence[str], where: str) -> list[int]:
    if isinstance(selector, int):
        return _numbered(selector, selector, len(names), where)
    if selector in names:
        return [names.index(selector)]
    numbers = _RANGE.match(selector)
    if numbers:
        return _numbered(int(numbers[1]), int(numbers[2]), len(names), where)
    bare = [unit_in_name(name)[0] for name in names]
    return [column for name in _expanded(selector, where) for column in _matching(name, names, bare, where)]


def _numbered(first: int, last: int, width: int, where: str) -> list[int]:
    if not 1 <= first <= last <= width:
        wanted = f"column {first}" if first == last else f"columns {first} to {last}"
        raise RecordingError(f"{where}: {wanted} requested, but the file has {width}; columns are counted from 1")
    return list(range(first - 1, last))


def _matching(name: str, names: Sequence[str], bare: Sequence[str], where: str) -> list[int]:
    group = group_columns(name, names)
    if name in names:
        return [names.index(name)]
    if name in bare and len(group) < 2:  # of several columns q[...], what looks like a unit is a joint
        return [bare.index(name)]
    if "*" in name:
        # Only the star is special here; the translation never backtracks, however many stars there are.
        pattern = re.compile(fnmatch.translate(re.sub(r"([?\[])", r"[\1]", name)))
        found = [k for k, both in enumerate(zip(names, bare, strict=True)) if any(map(pattern.fullmatch, both))]
    else:
        found = group
    if not found:
        raise RecordingError(
            f"{where}: no column '{name}'; the file has {names_text(names)}{nearest_match(name, names)}"
        )
    return found


def group_columns(group: str, names: Sequence[str]) -> list[int]:
    """Return the columns named ``group[...]``."""
    return [k for k, name in enumerate(names) if name.startswith(group + "[") and name.endswith("]")]


def _expanded(selector: str, where: str) -> list[str]:
    """Return the names a selector with braces stands for: ``q{1..3}`` is q1, q2, q3; ``{x,y}`` is x, y."""
    expanded = [""]
    position = 0
    for braces in _BRACES.finditer(selector):
        steps = _STEPS.match(braces[1])
        choices = _counted(steps[1], steps[2]) if steps else braces[1].split(",")
        between = selector[position : braces.start()]
        if len(expanded) * len(choices) > MOST_COLUMNS:
            raise RecordingError(f"{where}: '{selector}' stands for more than {MOST_COLUMNS} columns; check its braces")
        expanded = [name + between + choice.strip() for name in expanded for choice in choices]
        position = braces.end()
    return [name + selector[position:] for name in expanded]


def _counted(first: str, last: str) -> list[str]:
    start, stop = int(first), int(last)
    step = 1 if stop >= start else -1
    # One more than allowed is enough to be refused; a range of millions is never made.
    stop = start + step * min(abs(stop - start), MOST_COLUMNS)
    width = len(first) if first.startswith("0") and len(first) > 1 else 0
    return [f"{number:0{width}d}" for number in range(start, stop + step, step)]


_LAST_NUMBER = re.compile(r"(\d{1,9})(?!.*\d)", re.DOTALL)


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
                f"joints: {', '.join(robot.joint_names)}; is this its recording?"
            )
        return _by_joint(robot, [joint or "" for joint in found], where), ""
    return _without_names(robot, names, count, where)


def columns_of_some_joints(
    robot: Robot, names: Sequence[str] | None, declared: Sequence[str] | None, count: int, where: str
) -> list[int | None]:
    """Return for each actuated joint which of fewer columns than joints is its own, None if none is.

    Arguments are those of :func:`columns_by_joint`; every column's joint has to be declared or in its name.
    """
    found = list(declared) if declared is not None else [joint_in_name(robot, name) for name in names or []]
    wanted = robot.joint_names
    unknown = [joint for joint in found if joint is not None and joint not in wanted]
    if unknown:
        raise RecordingError(
            f"{where}: robot '{robot.name}' has no joint '{unknown[0]}' that moves on its own; joints: "
            f"{', '.join(wanted)}{nearest_match(unknown[0], wanted)}"
        )
    if len(found) != count or None in found or len(set(found)) != count:
        raise RecordingError(
            f"{where}: {count} columns, robot '{robot.name}' has {len(wanted)} joints; say which joint each column is "
            f"of with joints = [...], as many as columns"
        )
    return [found.index(joint) if joint in found else None for joint in wanted]


def joint_in_name(robot: Robot, name: str) -> str | None:
    """Return the joint a column's name speaks of: the longest joint name in it that stands alone."""
    inside = re.search(r"\[([^\[\]]+)\]$", name)
    candidates = [joint.name for joint in robot.joints]
    if inside and inside[1] in candidates:
        return inside[1]
    found = [
        joint
        for joint in candidates
        if re.search(rf"(?<![A-Za-z0-9]){re.escape(joint)}(?![A-Za-z0-9])", name, re.IGNORECASE)
    ]
    return max(found, key=len, default=None)


def _by_joint(robot: Robot, order: Sequence[str], where: str) -> list[int]:
    """Return the place of every actuated joint in a list of joint names; joints that do not move may be there too."""
    known = {joint.name for joint in robot.joints}
    wanted = robot.joint_names
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
    wanted = robot.joint_names
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
