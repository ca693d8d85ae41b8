"""The measured side of every equation: which channel it is, on the joint side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import ObservationError
from ..recording import Recording, TorqueChannel
from ..robot import Robot
from .equations import Equations

_MOTOR_KINDS = ("motor_torque", "motor_current")


@dataclass(frozen=True, eq=False)
class MeasuredTorques:
    """How y follows from the channels: ``y = sum_c M_c values_c``. Make one with :func:`measured_torques`.

    Attributes:
        channels: Names of the channels used.
        matrices: For each of them, M (E, n).
    """

    channels: tuple[str, ...]
    matrices: tuple[np.ndarray, ...]

    def of(self, block: Recording) -> np.ndarray:
        """Return y (E, m) of a block of the recording."""
        parts = [m @ block.torque(name).values for name, m in zip(self.channels, self.matrices, strict=True)]
        return sum(parts[1:], parts[0])


def measured_torques(equations: Equations, recording: Recording, label: str) -> MeasuredTorques:
    """Return how the measured side of all equations follows from the channels of a recording.

    A motor current becomes a torque by its gain (the channel's, else the robot's ``drive_gain``) and comes to the
    joint side through the coupling of the motors, ``C^T (gain * current)``; motor torques are there already.

    Args:
        equations: The equations.
        recording: The recording, or its template.
        label: Its label, for messages.

    Raises:
        ObservationError: If a channel or a gain is missing.
    """
    signs = {"motor": {"motor": 1.0}, "joint": {"joint": 1.0}, "difference": {"motor": 1.0, "joint": -1.0}}
    maps: dict[str, np.ndarray] = {}
    size = len(equations.joints)
    for row, ((kind, _), joint) in enumerate(zip(equations.kinds_joints, equations.joint_index, strict=True)):
        for side, sign in signs[kind].items():
            channel = channel_of(recording, side, label)
            to_joint = maps.setdefault(channel.name, np.zeros((len(equations.kinds_joints), size)))
            to_joint[row] += sign * _to_joint_side(equations.model.robot, channel, label)[joint]
    return MeasuredTorques(tuple(maps), tuple(maps.values()))


def channel_of(recording: Recording, side: str, label: str) -> TorqueChannel:
    """Return the channel that rows of kind ``motor`` or ``joint`` are measured by."""
    wanted = _MOTOR_KINDS if side == "motor" else ("joint_torque",)
    for kind in wanted:
        for channel in recording.torques:
            if channel.kind == kind:
                return channel
    there = ", ".join(channel.kind for channel in recording.torques) or "none"
    raise ObservationError(
        f"recording '{label}' has no {' or '.join(wanted)} channel, which rows of kind '{side}' need; "
        f"channels there: {there}; declare the channel, or choose another measured torque"
    )


def _to_joint_side(robot: Robot, channel: TorqueChannel, label: str) -> np.ndarray:
    if channel.kind != "motor_current":
        return np.eye(len(robot.actuated))
    return robot.motor_coupling().T * _gains(robot, channel, label)


def _gains(robot: Robot, channel: TorqueChannel, label: str) -> np.ndarray:
    if channel.gain is not None:
        gains = channel.gain
    else:
        gains = np.array([robot.values.get(f"drive_gain{body.number}", np.nan) for body in robot.actuated])
    for body, gain in zip(robot.actuated, gains, strict=True):
        if not np.isfinite(gain):
            raise ObservationError(
                f"recording '{label}': no gain [N m/A] is known for the motor current of joint '{body.joint.name}'; "
                f"give the channel a gain, or the robot a drive_gain{body.number}"
            )
    return gains
