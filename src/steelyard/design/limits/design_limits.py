"""What an experiment must keep: limits of the joints, torques, and rules on space, by default and from a file.

Without a file the robot's description gives the limits, and capsules fitted to its collision shapes must keep apart.
A limits file is TOML; every key is optional, SI units, an unknown key is an error::

    torque_side = "joint"                # which torques are limited: "motor" (default) or "joint"

    [joints]                             # instead of the description's limits
    position_deg = [[-170, 170], [-120, 120]]    # or lower and upper; not wider than the arm really allows
    velocity = 1.5                       # one number for all joints, a list in joint order, or a table by joint name
    acceleration = {shoulder = 4.0}
    jerk = [50.0, 80.0]                  # inf: no limit
    torque = [100.0, 60.0]               # inf: no limit
    velocity_scale = 0.8                 # factors on these: velocity, acceleration, jerk, torque
    position_margin = 0.05               # kept from both ends of each range

    [[space]]                            # a rule on one point of the arm
    name = "table"
    link = "tool0"                       # default: the payload's link, or the end of the longest chain
    point = [0, 0, 0.1]                  # in the link's frame, default its origin
    kind = "half_space"                  # normal . p >= offset (the normal is made a unit vector)
    normal = [0, 0, 1]
    offset = 0.1                         # default 0
    keep = "in"                          # or "out"; only a half-space has a default, "in"
    margin = 0.02                        # default 0

    [[space]]
    kind = "cylinder"                    # centre (default the origin), axis (default z), radius, and along the
    radius = 0.7                         # axis from the centre lower and upper (default infinite)
    upper = 1.8
    keep = "out"                         # not (r < 0.7 and z < 1.8)

    [[space]]
    kind = "box"                         # along the base frame's axes; inf is allowed
    lower = [-1, -1, 0]
    upper = [1, 1, 2]
    keep = "in"                          # kind = "sphere": centre, radius

    [[capsule]]                          # on a link; replaces those fitted to that link's shapes
    link = "forearm"
    start = [0, 0, 0]
    end = [0, 0, 0.4]                    # default: start, which makes a ball
    radius = 0.08

    [[obstacle]]                         # fixed in the base frame; every capsule of a moving link keeps clear of it
    name = "pillar"
    kind = "capsule"                     # start, end, radius
    start = [0.8, 0, 0]
    end = [0.8, 0, 1.5]
    radius = 0.1
    margin = 0.02                        # default 0
    ignore = ["upper_arm"]               # links that may come near it

    [[obstacle]]
    name = "floor"
    kind = "half_space"                  # the arm keeps where normal . p >= offset
    normal = [0, 0, 1]

    [self_collision]
    on = true
    margin = 0.01                        # [m], default 0.01
    ignore = [["base", "forearm"]]       # pairs of links that are not looked at

An obstacle may also be a ``sphere`` (``centre``, ``radius``) or a ``box`` (``lower``, ``upper``). In place of a box a
capsule around it is kept clear of: that is on the safe side, and wasteful for a flat one, where a half-space serves
better. Keys of ``[joints]`` for positions, velocities, accelerations and jerks may end in ``_deg``, for joints that
turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, final

import numpy as np

from ...errors import DesignError, one_line
from ...files import toml_document
from ...motion import MotionLimits
from ...robot import Robot
from ..space.capsules import Capsule
from ..space.feasible_rules import check_rules_can_be_kept
from ..space.fitting import fitted_capsules
from ..space.rules import SpaceRule
from ..space.self_collision import self_collision_pairs
from .checked_tables import Table, check_keys, number_in, table_in, tables_in, word_in
from .joint_limits import completed_limits, described_limits
from .joint_tables import narrowed_limits, overridden_limits
from .space_tables import given_capsule, obstacle_rules, space_rule

TorqueSide = Literal["motor", "joint"]
TOP_KEYS = ("torque_side", "joints", "space", "capsule", "obstacle", "self_collision")
DEFAULT_MARGIN = 0.01
LARGEST_FILE = 1_000_000
"""More bytes than this are no limits file."""


@final
@dataclass(frozen=True, eq=False)
class DesignLimits:
    """What a motion must keep at every instant.

    Attributes:
        motion: Limits of position, velocity, acceleration and jerk; all but jerk are finite.
        torque: Largest torques (n,) [N m or N], infinite where there is no limit.
        torque_side: Which torques are limited: those of the motors or those in the joints.
        rules: Rules on space.
        notes: What was assumed or left out.
    """

    motion: MotionLimits
    torque: np.ndarray
    torque_side: TorqueSide
    rules: tuple[SpaceRule, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        torque = np.array(self.torque, dtype=float)
        torque.setflags(write=False)
        object.__setattr__(self, "torque", torque)


def design_limits(robot: Robot, file: Path | None = None, *, self_collision: bool = True) -> DesignLimits:
    """Return what a motion of the robot must keep; the module's text explains the file.

    Args:
        robot: The arm.
        file: A limits file (TOML).
        self_collision: Whether links of the arm must keep apart.

    Raises:
        DesignError: If a limit that a design needs is missing or contradicts another, if the file cannot be read, or
            if no posture keeps a rule on space.
    """
    if file is None:
        return _limits(robot, {}, self_collision)
    try:
        document = toml_document(Path(file), LARGEST_FILE, "the limits", DesignError)
        check_keys(document, TOP_KEYS, "the file")
        return _limits(robot, document, self_collision)
    except DesignError as error:
        raise DesignError(one_line(f"{file}: {error}")) from error


def _limits(robot: Robot, document: dict[str, Any], self_collision: bool) -> DesignLimits:
    described, notes = described_limits(robot)
    joints = table_in(document, "joints")
    filled, more = completed_limits(robot, overridden_limits(described, joints, robot))
    filled = narrowed_limits(filled, joints, robot)
    settings = _self_collision_settings(table_in(document, "self_collision"))
    wanted = self_collision and settings["on"]
    spaces, obstacles, given = (tables_in(document, key) for key in ("space", "obstacle", "capsule"))
    bodies = [given_capsule(table, number, robot) for number, table in enumerate(given, start=1)]
    capsules, unread = _capsules(robot, bodies) if wanted or obstacles else ((), ())
    rules: list[SpaceRule] = [space_rule(table, number, robot) for number, table in enumerate(spaces, start=1)]
    for number, table in enumerate(obstacles, start=1):
        rules += obstacle_rules(table, number, robot, capsules)
    ranges = (filled.lower, filled.upper)
    check_rules_can_be_kept(robot, rules, *ranges)
    pairs, left_out = (), ()
    if wanted:
        pairs, left_out = self_collision_pairs(
            robot, capsules, ranges=ranges, margin=settings["margin"], ignore=settings["ignore"]
        )
    side = cast(TorqueSide, word_in(document, "torque_side", ("motor", "joint"), "the file", "motor"))
    all_notes = (*notes, *more, *unread, *left_out)
    return DesignLimits(filled.motion(), filled.torque, side, (*rules, *pairs), all_notes)


def _capsules(robot: Robot, given: Sequence[Capsule]) -> tuple[tuple[Capsule, ...], tuple[str, ...]]:
    """Return the capsules of the arm: those given, and fitted ones on links for which none is given."""
    replaced = {capsule.link for capsule in given}
    fitted, notes = fitted_capsules(robot, leave_out=replaced)
    return (*fitted, *given), notes


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
