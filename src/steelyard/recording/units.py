"""Units of logs, their factors to SI, and the factor of every row of a channel."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np

from ..errors import RecordingError, nearest_match
from ..robot import Robot
from .record import WRENCH_ROWS
from .setup import ChannelSetup, PerJoint

_ANGLE = {"rad": 1.0, "mrad": 1e-3, "deg": math.pi / 180, "rev": 2 * math.pi}
_LENGTH = {"m": 1.0, "mm": 1e-3, "cm": 1e-2, "um": 1e-6}
_ANGULAR_SPEED = {"rad/s": 1.0, "mrad/s": 1e-3, "deg/s": math.pi / 180, "rev/s": 2 * math.pi, "rpm": math.pi / 30}
_LINEAR_SPEED = {"m/s": 1.0, "mm/s": 1e-3, "cm/s": 1e-2}

QUANTITIES: dict[str, dict[str, float]] = {
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0},
    "angle": _ANGLE,
    "length": _LENGTH,
    "angular speed": _ANGULAR_SPEED,
    "linear speed": _LINEAR_SPEED,
    "current": {"A": 1.0, "mA": 1e-3},
    "moment": {"Nm": 1.0, "mNm": 1e-3, "Ncm": 1e-2, "kNm": 1e3},
    "force": {"N": 1.0, "mN": 1e-3, "kN": 1e3},
    "duty": {"1": 1.0, "percent": 1e-2, "permille": 1e-3},
    "temperature": {"degC": 1.0, "K": 1.0},
}
RELATIVE = {"percent": 1e-2, "permille": 1e-3}
"""Units that mean a part of a stated rating; for a duty cycle the rating is full scale."""
COUNTED = {"angle": "count", "angular speed": "count/s"}
"""Encoder counts: they need ``counts_per_turn``."""
KELVIN_AT_ZERO_CELSIUS = 273.15

_ALIASES = {
    "radian": "rad", "radians": "rad", "degree": "deg", "degrees": "deg", "°": "deg", "turn": "rev", "turns": "rev",
    "revolutions": "rev", "counts": "count", "ticks": "count", "increments": "count", "counts/s": "count/s",
    "rads": "rad/s", "radps": "rad/s", "°/s": "deg/s", "degps": "deg/s", "rev/min": "rpm", "1/min": "rpm",
    "n m": "Nm", "n*m": "Nm", "n·m": "Nm", "n.m": "Nm", "nm": "Nm", "newton": "N", "amp": "A", "amps": "A",
    "%": "percent", "‰": "permille", "fraction": "1", "sec": "s", "seconds": "s", "msec": "ms", "milliseconds": "ms",
    "usec": "us", "µs": "us", "microseconds": "us", "nanoseconds": "ns", "°c": "degC", "c": "degC", "celsius": "degC",
}  # fmt: skip
_BRACKETED = re.compile(r"^(.*?)\s*(?:\[([^\[\]]*)\]|\(([^()]*)\))\s*$", re.DOTALL)


def normal_unit(unit: str) -> str:
    """Return the unit as this page writes it: ``degrees`` becomes ``deg``."""
    name = unit.strip()
    return _ALIASES.get(name.lower(), name)


def allowed_units(quantity: str, rated: bool = False) -> tuple[str, ...]:
    """Return the units a quantity may be declared in; ``rated`` adds parts of a rating."""
    units = list(QUANTITIES[quantity])
    if quantity in COUNTED:
        units.append(COUNTED[quantity])
    return (*units, *(RELATIVE if rated else ()))


def si_scale(
    unit: str, quantity: str, where: str, rating: float | None = None, counts_per_turn: float | None = None
) -> float:
    """Return what one unit is in SI.

    Args:
        unit: The declared unit.
        quantity: A key of ``QUANTITIES``.
        where: What a message calls this channel.
        rating: What 100 percent is, in SI, for units relative to a rating.
        counts_per_turn: Encoder counts a turn, for counts.
    """
    name = normal_unit(unit)
    if name in QUANTITIES[quantity]:
        return QUANTITIES[quantity][name]
    if name in RELATIVE and quantity in ("current", "moment", "force"):
        if rating is None:
            raise RecordingError(f"{where}: unit '{name}' is a part of a rating; state it with rating = [...]")
        return RELATIVE[name] * rating
    if name == COUNTED.get(quantity):
        if not counts_per_turn:
            raise RecordingError(f"{where}: unit '{name}' needs the encoder's counts_per_turn")
        return 2 * math.pi / counts_per_turn
    units = allowed_units(quantity, quantity in ("current", "moment", "force"))
    raise RecordingError(
        f"{where}: unit '{unit}' is no unit of {quantity}; allowed: {', '.join(units)}{nearest_match(unit, units)}"
    )


def unit_in_name(name: str) -> tuple[str, str | None]:
    """Return a column's name without the unit it ends in (``q1 [deg]``, ``i (mA)``), and that unit or None."""
    match = _BRACKETED.match(name)
    if not match:
        return name, None
    unit = normal_unit(match[2] if match[2] is not None else match[3])
    known = any(unit in units for units in QUANTITIES.values()) or unit in (*RELATIVE, *COUNTED.values())
    # '1' in brackets is a joint's number (q[1]), not the unit of a ratio.
    return (match[1], unit) if known and unit != "1" else (name, None)


def joint_values(value: PerJoint, robot: Robot, where: str, default: float | None = None) -> np.ndarray:
    """Return one number for each actuated joint (n,).

    Args:
        value: As declared.
        robot: The arm.
        where: What messages call it.
        default: For joints a table leaves out; None if it may leave none out.
    """
    return _row_values(value, robot.joint_names, "joint", where, default)


def _row_values(value: PerJoint, rows: tuple[str, ...], what: str, where: str, default: float | None) -> np.ndarray:
    """Return one number for each named row, joints or components of a wrench."""
    if isinstance(value, Mapping):
        return _from_table(value, rows, what, where, default)
    if isinstance(value, tuple):
        if len(value) != len(rows):
            raise RecordingError(f"{where} has {len(value)} numbers for {len(rows)} {what}s; one each is expected")
        return np.array(value)
    return np.full(len(rows), float(value))


def _from_table(
    value: Mapping[str, float], rows: tuple[str, ...], what: str, where: str, default: float | None
) -> np.ndarray:
    for name in value:
        if name not in rows:
            raise RecordingError(f"{where}: no {what} '{name}'; {what}s: {', '.join(rows)}{nearest_match(name, rows)}")
    missing = [row for row in rows if row not in value]
    if missing and default is None:
        raise RecordingError(f"{where}: no number for {what} '{missing[0]}'; give one for each {what}")
    return np.array([value.get(row, default) for row in rows], dtype=float)


def gear_matrix(robot: Robot, ratios: PerJoint | None, coupling: tuple[tuple[float, ...], ...] | None) -> np.ndarray:
    """Return R (n, n) with ``q_motor = R q``: gear ratios times the coupling of the motors, declared or the robot's."""
    joints = robot.joint_names
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
    "known_torque": ("moment", "force"),
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
    named = (WRENCH_ROWS, "component") if channel.kind == "wrench" else (robot.joint_names, "joint")
    rating = _optional(channel.rating, named, f"{where} rating", rows)
    counts = _optional(channel.counts_per_turn, named, f"{where} counts_per_turn", rows)
    scale = np.array(
        [si_scale(u, k, where, r, c) for u, k, r, c in zip(units, quantities, rating, counts, strict=True)]
    )
    shift = np.array([-KELVIN_AT_ZERO_CELSIUS if unit == "K" else 0.0 for unit in units])
    if channel.role != "pose":
        scale = scale * _row_values(channel.sign, *named, f"{where} sign", default=1.0)
    return scale, shift


def _optional(value: PerJoint | None, named: tuple[tuple[str, ...], str], where: str, rows: int) -> list[float | None]:
    if value is None:
        return [None] * rows
    return [float(entry) for entry in _row_values(value, *named, where, None)]


def _units(
    robot: Robot, channel: ChannelSetup, names: Sequence[str] | None, quantities: list[str], where: str
) -> list[str]:
    """Return the unit of each row; two that disagree are an error."""
    declared = _declared_units(channel, quantities, where)
    joints = robot.joint_names
    units = []
    for own, name, quantity in zip(declared, names or [""] * len(quantities), quantities, strict=True):
        header = _header_unit(name, joints)
        if own and header and own != header:
            raise RecordingError(
                f"{where}: mixed units, declared in '{own}' but column '{name}' says '{header}'; mend one of them"
            )
        units.append(own or header or next(iter(QUANTITIES[quantity])))
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
        return [only if fit or not any(fits) else None for fit in fits]
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
