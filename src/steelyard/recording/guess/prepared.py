"""The columns of a recording in groups with its time, and records of what is guessed of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from ...robot import Robot
from .groups import Group, SingleColumn, layouts_by_place, named_groups
from .heads import LogHead
from .motion import position_like
from .stamps import TimeGuess, guess_time

Confidence = Literal["sure", "likely", "unsure"]
LEVELS: tuple[Confidence, ...] = ("unsure", "likely", "sure")


def worst(confidences: Iterable[str]) -> Confidence:
    """Return the lowest of several confidences."""
    return LEVELS[min((LEVELS.index(one) for one in confidences), default=2)]  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class ChannelGuess:
    """One channel of a recording as guessed.

    Attributes:
        channel: ``q``, ``qd``, ``reference``, ``temperature`` or a torque kind.
        group: Its columns.
        unit: Its unit, one for all joints or one each; None if there is none to declare.
        side: ``joint`` or ``motor``.
        sign: 1 or -1 for each joint.
        certainty: Confidence and reason of columns, unit, side and sign, as far as they matter.
        offset: Degrees or metres added to positions, by joint.
        to_fill: Keys that only the user knows, with what they mean.
    """

    channel: str
    group: Group
    unit: str | tuple[str, ...] | None
    side: str
    sign: tuple[int, ...]
    certainty: Mapping[str, tuple[Confidence, str]]
    offset: Mapping[str, float] = field(default_factory=dict)
    to_fill: Mapping[str, str] = field(default_factory=dict)

    @property
    def confidence(self) -> Confidence:
        """The lowest confidence of its aspects."""
        return worst(level for level, _ in self.certainty.values())

    def with_certainty(self, aspect: str, level: Confidence, reason: str) -> ChannelGuess:
        """Return it with another confidence in an aspect."""
        return replace(self, certainty={**self.certainty, aspect: (level, reason)})


@dataclass(frozen=True, eq=False)
class PreparedColumns:
    """The columns of a recording in groups, rows without numbers left out, and its time.

    Attributes:
        robot: The arm.
        heads: The files side by side.
        groups: Groups of one column for each joint.
        rest: Columns in no group.
        time: Where the time comes from.
        by_place: Whether the groups are only by place.
    """

    robot: Robot
    heads: tuple[LogHead, ...]
    groups: tuple[Group, ...]
    rest: tuple[SingleColumn, ...]
    time: TimeGuess
    by_place: bool


def prepared(robot: Robot, heads: Sequence[LogHead]) -> PreparedColumns:
    """Return the columns of a recording in groups, and its time."""
    groups, rest = named_groups(heads, robot)
    time = guess_time(rest)
    rest = [one for one in rest if (one.part, one.column) != (time.part, time.column)]
    by_place = not groups
    if by_place:
        groups, rest = _placed_groups(rest, len(robot.actuated), time)
    return _without_gaps(PreparedColumns(robot, tuple(heads), tuple(groups), tuple(rest), time, by_place))


def _placed_groups(
    rest: Sequence[SingleColumn], joints: int, time: TimeGuess
) -> tuple[list[Group], list[SingleColumn]]:
    """Return the layout of columns without names in which one group is the derivative of another best."""
    ways = layouts_by_place(rest, joints)
    if not ways:
        return [], list(rest)
    scores = []
    for way in ways:
        pairs, _ = position_like([_finite(group) for group in way], time.seconds)
        scores.append(pairs[0][2].agreement if pairs else 0.0)
    chosen = ways[int(np.argmax(scores))]
    taken = {column for group in chosen for column in group.columns}
    return chosen, [one for one in rest if one.column not in taken]


def _finite(group: Group) -> Group:
    return group if np.isfinite(group.values).all() else replace(group, values=np.nan_to_num(group.values))


def _without_gaps(columns: PreparedColumns) -> PreparedColumns:
    """Return the columns without rows that lack a number, or whose stamps do not rise."""
    if not columns.groups:
        return columns
    rows = min(group.values.shape[1] for group in columns.groups)
    good = np.all([np.isfinite(group.values[:, :rows]).all(axis=0) for group in columns.groups], axis=0)
    seconds = columns.time.seconds
    if seconds is not None:
        stamps = np.where(np.isfinite(seconds[:rows]), seconds[:rows], -np.inf)
        before = np.concatenate([[-np.inf], np.maximum.accumulate(stamps)[:-1]])
        good &= stamps > before
        columns = replace(columns, time=replace(columns.time, seconds=seconds[:rows][good]))
    groups = tuple(replace(group, values=group.values[:, :rows][:, good]) for group in columns.groups)
    return replace(columns, groups=groups)
