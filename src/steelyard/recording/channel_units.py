"""What one unit of each row of a channel is in SI, from what was declared and what the header says.

Numbers given per joint: one for all, a list in the robot's joint order, or a table by joint name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..errors import RecordingError, nearest_match
from ..robot import Robot
from .columns import joint_names
from .setup import ChannelSetup, PerJoint
from .units import KELVIN_AT_ZERO_CELSIUS, QUANTITIES, normal_unit, si_scale, unit_in_name


def joint_values(value: PerJoint, robot: Robot, where: str, default: float | None = None) -> np.ndarray:
    """Return one number for each actuated joint (n,).

    Args:
        value: As declared.
        robot: The arm.
        where: What messages call it.
        default: For joints a table leaves out; None if it may leave none out.
    """
    joints = joint_names(robot)
    if isinstance(value, Mapping):
        return _from_table(value, joints, where, default)
    if isinstance(value, tuple):
        if len(value) != len(joints):
            raise RecordingError(f"{where} has {len(value)} numbers for {len(joints)} joints; one each is expected")
        return np.array(value)
    return np.full(len(joints), float(value))


def _from_table(value: Mapping[str, float], joints: tuple[str, ...], where: str, default: float | None) -> np.ndarray:
    for name in value:
        if name not in joints:
            raise RecordingError(
                f"{where}: no joint '{name}'; joints: {', '.join(joints)}{nearest_match(name, joints)}"
            )
    missing = [joint for joint in joints if joint not in value]
    if missing and default is None:
        raise RecordingError(f"{where}: no number for joint '{missing[0]}'; give one for each joint")
    return np.array([value.get(joint, default) for joint in joints], dtype=float)


def gear_matrix(robot: Robot, ratios: PerJoint | None, coupling: tuple[tuple[float, ...], ...] | None) -> np.ndarray:
    """Return R (n, n) with ``q_motor = R q``: gear ratios times the coupling of the motors, declared or the robot's."""
    joints = joint_names(robot)
    if ratios is not None:
        numbers = joint_values(ratios, robot, "gear_ratio")
    else:
        known = [body.joint.gear_ratio for body in robot.actuated]
        unknown = [joint for joint, ratio in zip(joints, known, strict=True) if ratio is None]
        if unknown:
            raise RecordingError(
                f"side = 'motor' needs gear ratios, and robot '{robot.name}' states none for joint '{unknown[0]}'; "
                "give gear_ratio = [...]"
            )
        numbers = np.array(known, dtype=float)
    matrix = robot.motor_coupling() if coupling is None else np.array(coupling)
    if matrix.shape != (len(joints), len(joints)):
        raise RecordingError(f"coupling is {matrix.shape[0]} x {matrix.shape[1]}; the robot has {len(joints)} joints")
    gears = numbers[:, None] * matrix
    if abs(np.linalg.det(gears)) < 1e-12:
        raise RecordingError("gear ratios and coupling cannot be inverted; a ratio of zero, or two equal rows?")
    return gears


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
