"""What one unit of each row of a channel is in SI, from what was declared and what the header says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import RecordingError
from ..robot import Robot
from .joint_order import joint_names
from .joint_values import joint_values
from .setup import ChannelSetup, PerJoint
from .units import KELVIN_AT_ZERO_CELSIUS, QUANTITIES, normal_unit, si_scale, unit_in_name

_QUANTITY = {
    "q": ("angle", "length"),
    "qd": ("angular speed", "linear speed"),
    "reference": ("angle", "length"),
    "motor_torque": ("moment", "force"),
    "joint_torque": ("moment", "force"),
    "motor_current": ("current", "current"),
    "motor_pwm": ("duty", "duty"),
    "temperature": ("temperature", "temperature"),
}


def row_quantities(robot: Robot, channel: ChannelSetup, rows: int) -> list[str]:
    """Return the quantity of each row of a channel: an angle or, for a sliding joint, a length, and so on."""
    if channel.kind == "wrench":
        return ["force"] * 3 + ["moment"] * 3
    if channel.role == "pose":
        return ["length"] * 3 + ["duty"] * (rows - 3)
    turning, sliding = _QUANTITY[channel.kind or channel.role]
    return [sliding if body.joint.kind == "prismatic" else turning for body in robot.actuated]


def channel_scale(
    robot: Robot, channel: ChannelSetup, names: Sequence[str] | None, rows: int, where: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return factor and shift (rows,) that bring a channel's numbers to SI, signs included.

    Args:
        robot: The arm.
        channel: What was declared.
        names: Column names in row order, None if the file names none.
        rows: Number of rows.
        where: What messages call the channel.
    """
    quantities = row_quantities(robot, channel, rows)
    units = _units(robot, channel, names, quantities, where)
    rating = _optional(robot, channel.rating, f"{where} rating", rows)
    counts = _optional(robot, channel.counts_per_turn, f"{where} counts_per_turn", rows)
    scale = np.array(
        [si_scale(u, k, where, r, c) for u, k, r, c in zip(units, quantities, rating, counts, strict=True)]
    )
    shift = np.array([-KELVIN_AT_ZERO_CELSIUS if unit == "K" else 0.0 for unit in units])
    if rows == len(joint_names(robot)) and channel.kind != "wrench" and channel.role != "pose":
        scale = scale * joint_values(channel.sign, robot, f"{where} sign", default=1.0)
    return scale, shift


def _optional(robot: Robot, value: PerJoint | None, where: str, rows: int) -> list[float | None]:
    if value is None:
        return [None] * rows
    return [float(entry) for entry in joint_values(value, robot, where)]


def _units(
    robot: Robot, channel: ChannelSetup, names: Sequence[str] | None, quantities: list[str], where: str
) -> list[str]:
    """Return the unit of each row; two that disagree are an error."""
    declared = _declared_units(channel, quantities, where)
    joints = joint_names(robot)
    written = [_header_unit(name, joints) for name in names] if names else [None] * len(quantities)
    units = []
    for row, (own, header) in enumerate(zip(declared, written, strict=True)):
        if own and header and own != header:
            name = names[row] if names else ""
            raise RecordingError(
                f"{where}: mixed units, declared in '{own}' but column '{name}' says '{header}'; mend one of them"
            )
        units.append(own or header or next(iter(QUANTITIES[quantities[row]])))
    for quantity in set(quantities):
        found = sorted({unit for unit, kind in zip(units, quantities, strict=True) if kind == quantity})
        if len(found) > 1 and not isinstance(channel.unit, tuple):
            raise RecordingError(
                f"{where}: mixed units {' and '.join(found)} in the header; declare unit = [...], one a joint"
            )
    return units


def _declared_units(channel: ChannelSetup, quantities: list[str], where: str) -> list[str | None]:
    if channel.unit is None:
        return [None] * len(quantities)
    if isinstance(channel.unit, str):
        only = normal_unit(channel.unit)
        # One unit for an arm with sliding joints can only mean the kind it fits; the others stay SI.
        fits = [only in QUANTITIES[quantity] for quantity in quantities]
        mixed = any(fits) and not all(fits) and len(set(quantities)) > 1
        return [only if fit or not mixed else None for fit in fits]
    if channel.kind == "wrench" and len(channel.unit) == 2:
        return [normal_unit(channel.unit[row // 3]) for row in range(6)]
    if len(channel.unit) != len(quantities):
        raise RecordingError(
            f"{where}: {len(channel.unit)} units for {len(quantities)} rows; give one, or one for each"
        )
    return [normal_unit(unit) for unit in channel.unit]


def _header_unit(name: str, joints: Sequence[str]) -> str | None:
    if any(name.endswith(f"[{joint}]") for joint in joints):
        return None
    return unit_in_name(name)[1]
