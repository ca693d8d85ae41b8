"""The arm and the channels of a log, as checks need them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ...robot import Robot
from ..record import WRENCH_ROWS

FASTEST = {"revolute": 50.0, "prismatic": 10.0}
"""Speeds no arm reaches [rad/s, m/s], for joints whose limits are not known."""


@dataclass(frozen=True)
class Subject:
    """The arm and the channels of a recording, as checks need them.

    Attributes:
        joints: Names of the rows.
        roles: Role of each channel: ``q``, ``qd``, ``reference``, ``torque``, ``temperature``, ``pose``.
        labels: Name of each channel in findings.
        kinds: Torque kind of each channel, None for others.
        revolute: Which joints turn (n,).
        lower: Lower limits (n,), minus infinity where unknown.
        upper: Upper limits (n,).
        fastest: Speed beyond which a step is a jump (n,): four times the limit.
        speed_limit: Speed limits (n,), infinite where unknown.
        effort: Torque or force limits (n,), infinite where unknown.
        turn: Step of an encoder that wraps round (n,), 0 for sliding joints.
        gears: Motor turns per joint turn (n,), NaN where unknown.
        position_unit: Unit the positions were declared in.
        restarts: Stamps at which the log starts again (logs appended to each other), filled while it is read.
    """

    joints: tuple[str, ...]
    roles: tuple[str, ...]
    labels: tuple[str, ...]
    kinds: tuple[str | None, ...]
    revolute: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    fastest: np.ndarray
    speed_limit: np.ndarray
    effort: np.ndarray
    turn: np.ndarray
    gears: np.ndarray
    position_unit: str = "rad"
    restarts: list[float] = field(default_factory=list)

    def rows(self, number: int) -> tuple[str, ...]:
        """Return the names of the rows of a channel."""
        return WRENCH_ROWS if self.kinds[number] == "wrench" else self.joints

    def row(self, role: str) -> int | None:
        """Return the number of the first channel of a role, None if there is none."""
        return self.roles.index(role) if role in self.roles else None


def subject_of(
    robot: Robot,
    channels: Sequence[tuple[str, str, str | None]],
    turn: np.ndarray | None = None,
    unit: str = "rad",
    restarts: list[float] | None = None,
) -> Subject:
    """Return the subject of checks: a robot and the role, name and torque kind of each channel recorded of it."""
    joints = [body.joint for body in robot.actuated]
    revolute = np.array([joint.kind == "revolute" for joint in joints])
    speeds = [
        4 * joint.limits.velocity if math.isfinite(joint.limits.velocity) else FASTEST[joint.kind] for joint in joints
    ]
    return Subject(
        joints=tuple(joint.name for joint in joints),
        roles=tuple(role for role, _, _ in channels),
        labels=tuple(label for _, label, _ in channels),
        kinds=tuple(kind for _, _, kind in channels),
        revolute=revolute,
        lower=np.array([joint.limits.lower for joint in joints]),
        upper=np.array([joint.limits.upper for joint in joints]),
        fastest=np.array(speeds),
        speed_limit=np.array([joint.limits.velocity for joint in joints]),
        effort=np.array([joint.limits.effort for joint in joints]),
        turn=np.where(revolute, 2 * math.pi, 0.0) if turn is None else turn,
        gears=np.array([joint.gear_ratio or math.nan for joint in joints]),
        position_unit=unit,
        restarts=[] if restarts is None else restarts,
    )
