"""Limits of an experiment: joints, torques and rules on space, by default and from a file.

Without a file the robot's description gives the limits, of positions 95 %. Capsules fitted to its collision shapes, or
assumed along links that have none, keep apart and above the floor on which the arm stands. A limits file is TOML;
every key is optional, SI units, an unknown key is an error::

    torque_side = "joint"                # which torques are limited: "motor" (default) or "joint"
    floor = -0.3                         # height from the base frame's origin against gravity, or "none"

    [joints]                             # instead of the description's limits
    position_deg = [[-170, 170], [-120, 120]]    # or lower and upper; not wider than the arm really allows
    velocity = 1.5                       # one number for all joints, a list in joint order, or a table by joint name
    acceleration = {shoulder = 4.0}
    jerk = [50.0, 80.0]                  # inf: no limit
    torque = [100.0, 60.0]               # inf: no limit
    velocity_scale = 0.8                 # factors on these: velocity, acceleration, jerk, torque
    position_scale = 1.0                 # part of each range; default 0.95 of the description's ranges
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

    [[obstacle]]                         # one that is named "floor" replaces the floor
    name = "ceiling"
    kind = "half_space"                  # the arm keeps where normal . p >= offset
    normal = [0, 0, -1]
    offset = -2.2

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

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, final

import numpy as np

from ...configuration import ROOT, Section, anything, checked, choice, number, toml_file
from ...errors import DesignError
from ...motion import MotionLimits
from ...motion.trajectory import freeze
from ...robot import AnyRobot, Robot, load_robot
from ...text import short_repr
from ..space.rules import SpaceRule
from ..space.self_collision import FloorHeight, floor_of
from .joint_limits import completed_limits, described_limits, narrowed_limits, overridden_limits, rated_torques
from .space_limits import space_limits

TorqueSide = Literal["motor", "joint"]
TOP_KEYS = ("torque_side", "floor", "joints", "space", "capsule", "obstacle", "self_collision")

UNKNOWN = ("collisions beyond the given rules on space",)
"""What is not checked with limits that were put together by hand."""


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
        rated_torque: What the arm's drives can give (n,): torque limits before any derating; ``torque`` if not given.
        position_scale: Part of its range that each joint may use (n,); all of it if not given.
        capsules: Description of the capsules that stand for the links in rules on space.
        checked: Texts that say which rules on space are kept.
        not_checked: Texts that say what is not checked.

    Example:
        >>> from steelyard.excitation import design_limits
        >>> design_limits("scara_2r", self_collision=False, floor="none").torque.shape
        (2,)
    """

    __repr__ = short_repr

    motion: MotionLimits
    torque: np.ndarray
    torque_side: TorqueSide
    rules: tuple[SpaceRule, ...] = ()
    notes: tuple[str, ...] = ()
    rated_torque: np.ndarray | None = None
    position_scale: np.ndarray | None = None
    capsules: str = ""
    checked: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = UNKNOWN

    def __post_init__(self) -> None:
        freeze(
            self, *(name for name in ("torque", "rated_torque", "position_scale") if getattr(self, name) is not None)
        )


def design_limits(
    robot: AnyRobot,
    file: Path | None = None,
    *,
    self_collision: bool = True,
    floor: FloorHeight = None,
    position_scale: float | None = None,
) -> DesignLimits:
    """Return what a motion of the robot must keep; the module's text explains the file.

    Args:
        robot: The arm.
        file: A limits file (TOML).
        self_collision: Whether links of the arm must keep apart.
        floor: Height of the floor against gravity from the base frame's origin [m], or ``none``; by default that of
            the file, of the robot's description, or the lowest point of the collision shapes of an upright base.
        position_scale: Part of each position range that may be used; by default 0.95 of the description's ranges.

    Raises:
        DesignError: If a limit that a design needs is missing or contradicts another, if the file cannot be read, or
            if no posture keeps a rule on space.
    """
    chosen = load_robot(robot), self_collision, _checked_floor(floor), position_scale
    if file is None:
        return _limits(Section({}, ROOT, DesignError), *chosen)
    with toml_file(Path(file), "the limits", DesignError) as document:
        document.check_keys(TOP_KEYS)
        return _limits(document, *chosen)


def _limits(
    document: Section, robot: Robot, self_collision: bool, floor: FloorHeight, position_scale: float | None
) -> DesignLimits:
    described, notes = described_limits(robot)
    joints = document.section("joints")
    rated = rated_torques(described, joints, robot)
    has_range = np.isfinite(described.lower) | np.isfinite(described.upper)
    filled, more = completed_limits(robot, overridden_limits(described, joints, robot))
    filled, scales = narrowed_limits(filled, joints, robot, has_range, position_scale)
    given = _checked_floor(document.optional("floor", anything))
    plane = floor_of(robot, given if floor is None else floor)
    space = space_limits(robot, document, plane, (filled.lower, filled.upper), self_collision=self_collision)
    side = cast(TorqueSide, document.get("torque_side", choice("motor", "joint"), "motor"))
    return DesignLimits(
        filled.motion(), filled.torque, side, space.rules, (*notes, *more, *space.notes), rated, scales,
        space.capsules, space.checked, space.not_checked,
    )  # fmt: skip


def _checked_floor(given: object) -> FloorHeight:
    return None if given is None else checked(given, _floor, "floor", DesignError)


def _floor(value: Any) -> float | Literal["none"]:
    """A height [m], or none."""
    try:
        return "none" if value == "none" else number()(value)
    except ValueError:
        raise ValueError("a height [m], or 'none' for no floor") from None
