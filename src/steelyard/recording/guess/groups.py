"""Columns of a recording in groups, one column for each joint: by names or, where these say nothing, by places."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...robot import Robot
from .heads import LogHead
from .names import ColumnName, NamedRole, role_in_words, taken_apart, words_in

Order = Literal["names", "numbers", "robot"]
_NUMBERED_JOINT = re.compile(r"(?i)(joint|jnt|axis|link|j)[\s_.-]*#")
MOST_MISSING = 0.2
"""Columns with more rows than this part without a number are no signal."""


@dataclass(frozen=True, eq=False)
class Group:
    """Columns of one quantity, one for each joint.

    Attributes:
        part: Which of the files side by side.
        columns: Their places in it, in the robot's joint order.
        values: Numbers (n, N).
        role: What names say; None if they say nothing.
        source: ``column`` or ``file``: whose name says it.
        unit: Unit that the names end in.
        order: How the joint of each column is known.
        surplus: Columns with the same name beyond the robot's joints.
    """

    part: int
    columns: tuple[int, ...]
    values: np.ndarray
    role: NamedRole | None
    source: str
    unit: str | None
    order: Order
    surplus: int = 0

    @property
    def key(self) -> tuple[int, tuple[int, ...]]:
        """What tells it from other groups."""
        return self.part, self.columns

    def is_named(self, quantity: str) -> bool:
        """Return whether names say that it is a measurement of this quantity."""
        role = self.role
        return role is not None and role.quantity == quantity and not role.commanded and not role.computed


@dataclass(frozen=True, eq=False)
class SingleColumn:
    """A column that belongs to no group.

    Attributes:
        part: Which of the files side by side.
        column: Its place in it.
        name: Its name.
        values: Numbers (N,).
    """

    part: int
    column: int
    name: str
    values: np.ndarray


def named_groups(heads: Sequence[LogHead], robot: Robot) -> tuple[list[Group], list[SingleColumn]]:
    """Return the groups that names make, and the columns that are left over."""
    groups: list[Group] = []
    rest: list[SingleColumn] = []
    for part, head in enumerate(heads):
        taken: set[int] = set()
        if head.table.named:
            for columns in _by_stem(head, robot).values():
                group = _group(part, head, columns, robot)
                if group is not None:
                    groups.append(group)
                    taken.update(place for place, _ in columns)
        elif len(head.table.names) == len(robot.actuated):
            role = role_in_words(words_in(head.path.stem))
            places = tuple(range(len(head.table.names)))
            if _is_signal(head.values) and (role or len(heads) > 1 or head.reshape):
                groups.append(Group(part, places, head.values, role, "file" if role else "", None, "robot"))
                taken.update(places)
        rest += [
            SingleColumn(part, place, name if head.table.named else _file_name(head), head.values[place])
            for place, name in enumerate(head.table.names)
            if place not in taken
        ]
    return groups, rest


def _file_name(head: LogHead) -> str:
    """Return what a column without a name is called: by its file if that holds nothing else."""
    return head.path.stem if len(head.table.names) == 1 else ""


def _by_stem(head: LogHead, robot: Robot) -> dict[str, list[tuple[int, ColumnName]]]:
    found: dict[str, list[tuple[int, ColumnName]]] = defaultdict(list)
    for place, name in enumerate(head.table.names):
        parts = taken_apart(name, robot)
        if parts.joint is not None or parts.number is not None or len(robot.actuated) == 1:
            found[parts.stem].append((place, parts))
    return found


def _group(part: int, head: LogHead, columns: Sequence[tuple[int, ColumnName]], robot: Robot) -> Group | None:
    """Return the group of columns with one stem; None if they are not one for each joint."""
    order: Order
    count = len(robot.actuated)
    if columns[0][1].joint is not None:
        by_joint = {parts.joint: place for place, parts in columns}
        places = [by_joint[joint] for joint in robot.joint_names if joint in by_joint]
        order = "names"
    else:
        numbers = [parts.number or 0 for _, parts in columns]
        ordered = sorted(columns, key=lambda one: one[1].number or 0)
        places = [place for place, _ in ordered[:count]]
        if len(set(numbers)) < len(numbers) or (count > 1 and min(numbers) > 1):
            return None
        order = "numbers" if columns[0][1].number is not None else "names"
    stem = columns[0][1].stem
    # In joint_1_torque the joint is that of the number, in joint_torque_1 the side of the torque.
    words = words_in(_NUMBERED_JOINT.sub("#", stem))
    role, source = role_in_words(words), "column"
    if role is None and not words:
        role, source = role_in_words(words_in(head.path.stem)), "file"
    if len(places) != count or (count == 1 and role is None) or (role and role.quantity == "time" and count == 1):
        return None
    values = head.values[places]
    if not _is_signal(values):
        return None
    units = {parts.unit for place, parts in columns if place in places}
    unit = units.pop() if len(units) == 1 else None
    return Group(part, tuple(places), values, role, source if role else "", unit, order, len(columns) - count)


def _is_signal(values: np.ndarray) -> bool:
    return bool((np.mean(~np.isfinite(values), axis=1) < MOST_MISSING).all())


def layouts_by_place(rest: Sequence[SingleColumn], joints: int) -> list[list[Group]]:
    """Return the ways in which columns without names can be groups: one after the other, or in turn for each joint."""
    columns = [one for one in rest if _is_signal(one.values[None])]
    count, extra = divmod(len(columns), joints)
    if not count or len({one.part for one in columns}) > 1:
        return []
    starts = range(extra + 1)
    ways = [[columns[start + k * joints : start + (k + 1) * joints] for k in range(count)] for start in starts]
    if count > 1 and joints > 1 and not extra:
        ways.append([columns[k::count] for k in range(count)])
    return [[_placed(group) for group in way] for way in ways]


def _placed(columns: Sequence[SingleColumn]) -> Group:
    values = np.array([one.values for one in columns])
    return Group(columns[0].part, tuple(one.column for one in columns), values, None, "", None, "robot")
