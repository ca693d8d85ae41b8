"""Decisions about torques, currents and other channels of drives: kind, unit, side and signs, and how sure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...robot import Robot
from ...robot.parts import Defaults
from .groups import Group
from .motion import derivative_fit, gears_of
from .motion_channels import MotionGuess
from .prepared import ChannelGuess, Confidence, PreparedColumns, worst
from .torque import (
    SmoothMotion,
    TorqueFit,
    TorqueUnit,
    better_exchanged,
    gains_of_robot,
    likeness_of,
    roughness,
    shifted_motion,
    smooth_motion,
    torque_units,
)  # fmt: skip

LIKE_A_TORQUE = 0.6
"""Mean correlation with model, inertia and friction from which a group without a name is taken for torques."""
TWINS = 0.97
"""Correlation of a measured and a commanded torque, or of a torque and its current."""
BETTER = 0.2
"""Gain in mean squared correlation for which another unit of positions, or another zero, is believed."""
CLOSE = math.log(1.4)
"""Distance of recorded from model torques up to which a unit without a name is sure."""
RIGHT_ANGLES = (-90.0, 90.0, 180.0)
_DRIVES = ("torque", "current", "pwm", "load")
_RATIO = (0.005, 1.5)
"""Recorded torque over the effort limit of a joint: what is usual."""


@dataclass(frozen=True, eq=False)
class DriveGuess:
    """Torques and other channels of drives.

    Attributes:
        channels: The channels.
        q: Positions, with what torques say of their unit, side and zero.
        confirmed: Whether the robot's inertias explain torques with these columns as these joints.
        refused: Groups that are left out, with the reason.
        exchanged: Joints whose torques these inertias explain better exchanged; empty if there are none.
    """

    channels: tuple[ChannelGuess, ...]
    q: ChannelGuess | None
    confirmed: bool
    refused: tuple[tuple[Group, str], ...]
    exchanged: tuple[str, ...] = ()


def guess_drives(columns: PreparedColumns, motion: MotionGuess, used: Sequence[Group]) -> DriveGuess:
    """Return torques, currents, duty cycles and temperatures of a recording."""
    free = [group for group in columns.groups if all(group is not one for one in used)]
    named = [group for group in free if any(group.is_named(quantity) for quantity in _DRIVES)]
    temperatures = [_temperature(group) for group in free if group.is_named("temperature")][:1]
    candidates = named or [group for group in free if group.role is None and not _is_acceleration(group, motion)]
    if motion.q is None or not motion.fits:
        channels = [_channel(columns.robot, group, None, [], None) for group in named]
        return DriveGuess((*_distinct(channels), *temperatures), motion.q, False, ())
    q, smooth, confirmed = _with_torques(columns.robot, motion, candidates)
    refused: list[tuple[Group, str]] = []
    if not named:
        candidates, refused = _like_torques(columns.robot, candidates, smooth)
    channels = []
    for group in candidates:
        units, fit = torque_units(columns.robot, group.values, smooth) if smooth else ([], None)
        channels.append(_channel(columns.robot, group, fit, units, _rough_twin(group, free) if not named else None))
    pairs = [better_exchanged(group.values, smooth) for group in candidates] if smooth else []
    worst = next((pair for pair in pairs if pair is not None), ())
    exchanged = tuple(columns.robot.joint_names[k] for k in worst)
    return DriveGuess((*_distinct(channels), *temperatures), q, confirmed, tuple(refused), exchanged)


def _distinct(channels: Sequence[ChannelGuess]) -> list[ChannelGuess]:
    """Return the channels, one of each kind: two of a kind need names that only the user knows."""
    return [one for k, one in enumerate(channels) if one.channel not in [before.channel for before in channels[:k]]]


def _is_acceleration(group: Group, motion: MotionGuess) -> bool:
    """Return whether a group is the derivative of velocities by the same factor at every joint."""
    if motion.qd is None:
        return False
    fit = derivative_fit(motion.qd.group.values, group.values, motion.time.seconds)
    factors = fit.factor[fit.moving]
    return fit.agrees and factors.size > 0 and float(np.ptp(factors)) < 0.2 * abs(float(np.median(factors)))


def _temperature(group: Group) -> ChannelGuess:
    kelvin = float(np.nanmedian(group.values)) > 200
    level: Confidence = "sure" if kelvin or 5 < float(np.nanmedian(group.values)) < 120 else "unsure"
    text = f"named as temperatures, about {float(np.nanmedian(group.values)):.3g}"
    certainty: dict[str, tuple[Confidence, str]] = {"columns": ("sure", text), "unit": (level, text)}
    return ChannelGuess("temperature", group, "K" if kelvin else "degC", "joint", (1,) * len(group.values), certainty)


def _with_torques(
    robot: Robot, motion: MotionGuess, groups: Sequence[Group]
) -> tuple[ChannelGuess, SmoothMotion | None, bool]:
    """Return positions in the unit, and with the zero, with which the robot's inertias explain a torque best."""
    assert motion.q is not None
    q, seconds = motion.q, motion.time.seconds
    motions = [(fit, smooth_motion(robot, fit.q, seconds)) for fit in motion.fits[:4]]
    scores = [max((_strength(robot, group, smooth) for group in groups), default=0.0) for _, smooth in motions]
    best = int(np.argmax(scores))
    if best and scores[best] > scores[0] + BETTER and q.certainty["unit"][0] != "sure":
        fit = motion.fits[best]
        unit = fit.units[0] if len(set(fit.units)) == 1 else fit.units
        q = replace(q, unit=unit, side=fit.side)
    else:
        best = 0
    chosen, smooth = motions[best]
    confirmed = smooth is not None and any(torque_units_fit(robot, group, smooth).is_confirmed for group in groups)
    if smooth is not None and not confirmed and smooth.model is not None:
        offsets, moved, better = _right_angles(robot, smooth, groups, scores[best])
        if offsets and moved is not None:
            text = "right angles with which the robot's gravity explains the torques; the drawings of the arm must say"
            q = replace(q, offset=offsets).with_certainty("offset", "unsure", text)
            smooth, scores[best] = moved, better
            confirmed = any(torque_units_fit(robot, group, moved).is_confirmed for group in groups)
    rivals = [score for k, score in enumerate(scores) if k != best and motion.fits[k].units != chosen.units]
    rivals += [score for k, score in enumerate(scores) if k != best and motion.fits[k].side != chosen.side]
    if confirmed and all(score < scores[best] - BETTER for score in rivals):
        text = "with it the robot's inertias explain the torques"
        # Radians of motors behind unknown gears look much like degrees, to the model too.
        hidden_gear = gears_of(robot) is None and q.group.unit is None and "rad" not in chosen.units
        for aspect in ("unit", "side"):
            level: Confidence = "likely" if q.offset or hidden_gear else "sure"
            if q.certainty[aspect][0] != "sure":
                q = q.with_certainty(aspect, level, text)
    return q, smooth, confirmed and not q.offset


def torque_units_fit(robot: Robot, group: Group, smooth: SmoothMotion) -> TorqueFit:
    """Return the comparison of a group with the model on the side that fits best."""
    units, plain = torque_units(robot, group.values, smooth)
    return max([one.fit for one in units] + [plain], key=lambda fit: fit.strength)


def _strength(robot: Robot, group: Group, smooth: SmoothMotion | None) -> float:
    return 0.0 if smooth is None else torque_units_fit(robot, group, smooth).strength


def _right_angles(
    robot: Robot, motion: SmoothMotion, groups: Sequence[Group], start: float
) -> tuple[Mapping[str, float], SmoothMotion | None, float]:
    """Return right angles to add to single joints that explain torques much better, joint after joint."""
    offsets, best, chosen = np.zeros(len(motion.q)), start, None
    for row, body in enumerate(robot.actuated):
        if body.joint.kind != "revolute":
            continue
        for angle in RIGHT_ANGLES:
            tried = offsets.copy()
            tried[row] = angle
            shifted = shifted_motion(robot, motion, np.radians(tried))
            score = max((_strength(robot, group, shifted) for group in groups), default=0.0)
            if score > best + BETTER / 4:
                offsets, best, chosen = tried, score, shifted
    if best < start + BETTER:
        return {}, None, start
    names = robot.joint_names
    return {names[k]: float(angle) for k, angle in enumerate(offsets) if angle}, chosen, best


def _like_torques(
    robot: Robot, groups: Sequence[Group], smooth: SmoothMotion | None
) -> tuple[list[Group], list[tuple[Group, str]]]:
    """Return the group without a name that is most likely the measured torque, and those that are left out."""
    if smooth is None:
        return [], [(group, "nothing says what it is") for group in groups]
    fits = {group.key: torque_units_fit(robot, group, smooth) for group in groups}
    like = [group for group in groups if fits[group.key].is_confirmed or fits[group.key].likeness > LIKE_A_TORQUE]
    refused = [(group, "nothing says what it is") for group in groups if group not in like]
    if not like:
        return [], refused
    wanted = "current" if robot.defaults.torque == "motor_current" else "torque"

    def order(group: Group) -> tuple[bool, bool, float]:
        units, _ = torque_units(robot, group.values, smooth)
        return not any(one.kind == wanted for one in units), not fits[group.key].is_confirmed, -roughness(group.values)

    first, *others = sorted(like, key=order)
    return [first], refused + [(group, "looks like a torque too: a commanded one, or another kind") for group in others]


def _rough_twin(group: Group, groups: Sequence[Group]) -> Group | None:
    """Return another group that is nearly the same signal, if there is one."""
    others = [one for one in groups if one is not group]
    return next((one for one in others if likeness_of(group.values, one.values) > TWINS), None)


def _channel(
    robot: Robot, group: Group, fit: TorqueFit | None, units: Sequence[TorqueUnit], twin: Group | None
) -> ChannelGuess:
    """Return a torque channel."""
    quantity = group.role.quantity if group.role else (units[0].kind if units else "torque")
    if quantity in ("pwm", "load"):
        return _relative(group, quantity)
    confirmed = bool(units) and units[0].fit.is_confirmed
    kind, kind_level, kind_reason = _kind(robot, group, quantity, units if confirmed else [])
    columns = _columns_certainty(group, fit, confirmed, twin)
    fitting = [one for one in units if (one.kind == "current") == (kind == "motor_current")]
    if kind == "joint_torque":
        fitting = [one for one in fitting if one.side == "joint"]
    best = fitting[0] if fitting else None
    (unit, unit_certainty), (side, side_certainty) = _unit_and_side(robot, group, kind, fitting, fit)
    if kind == "motor_current":
        unit_certainty = worst([unit_certainty[0], kind_level]), unit_certainty[1]
        side_certainty = worst([side_certainty[0], kind_level]), side_certainty[1]
    signs, sign_level, sign_reason = _signs(best.fit if best else fit, len(group.values))
    certainty: dict[str, tuple[Confidence, str]] = {
        "columns": columns, "kind": (kind_level, kind_reason), "unit": unit_certainty, "side": side_certainty,
        "sign": (sign_level, sign_reason),
    }  # fmt: skip
    return ChannelGuess(kind, group, unit, side, signs, certainty)


def _columns_certainty(
    group: Group, fit: TorqueFit | None, confirmed: bool, twin: Group | None
) -> tuple[Confidence, str]:
    if group.role is not None:
        said = f"the {group.source} name says '{group.role.word}'"
        if confirmed:
            return "sure", f"{said}, and the robot's inertias explain it"
        return ("likely", said) if group.source == "column" else ("unsure", said)
    if twin is not None:
        return "unsure", "two groups are nearly the same signal; the rougher one is taken as measured"
    if confirmed:
        return "sure", "the group that the robot's inertias explain"
    return "unsure", "the group that goes best with acceleration and friction"


def _kind(robot: Robot, group: Group, quantity: str, units: Sequence[TorqueUnit]) -> tuple[str, Confidence, str]:
    """Return the torque kind, how sure it is, and why."""
    shown = units[0] if units else None
    stated = robot.defaults.torque if robot.defaults != Defaults() else None
    if quantity == "current":
        if shown is not None and (shown.kind, shown.unit) == ("torque", "Nm") and gains_of_robot(robot) is None:
            kind = stated if stated in ("motor_torque", "joint_torque") else "motor_torque"
            text = f"the name says current, but the numbers are torques in {shown.unit} on the {shown.side} side"
            return kind, "unsure", text
        level: Confidence = "sure" if group.role and shown and shown.kind == "current" else "likely"
        if level == "likely" and group.role and (group.source == "file" or stated not in (None, "motor_current")):
            return "motor_current", "unsure", f"the {group.source} name says '{group.role.word}', and nothing else does"
        if group.role is None:
            return "motor_current", "likely", "the numbers are torques over the drive gains of the robot's file"
        return "motor_current", level, f"the name says '{group.role.word}'"
    if group.role is None and shown is None:
        return stated or "motor_torque", "unsure", "a torque or a current: the numbers are neither for sure"
    place = group.role.place if group.role else ""
    if shown is not None and shown.side == "motor":
        return "motor_torque", "sure", "the numbers are torques before the gears"
    if place == "motor":
        return "motor_torque", "likely", "the name says motor"
    if place == "joint":
        return "joint_torque", "likely", "the name says joint or sensor"
    if stated in ("motor_torque", "joint_torque"):
        return stated, "likely", f"the robot's file says that {stated} is measured"
    return "motor_torque", "unsure", "motor_torque or joint_torque (of sensors behind the gears): nothing says which"


_Certain = tuple[str, tuple[Confidence, str]]


def _unit_and_side(
    robot: Robot, group: Group, kind: str, fitting: Sequence[TorqueUnit], fit: TorqueFit | None
) -> tuple[_Certain, _Certain]:
    """Return unit and side of torques or currents, with how sure they are and why."""
    allowed = ("A", "mA") if kind == "motor_current" else ("Nm", "mNm", "Ncm", "kNm", "N")
    said = group.unit if group.unit in allowed else None
    if fitting and fitting[0].fit.is_confirmed:
        ordered = sorted(fitting, key=lambda one: said is not None and one.unit != said)
        best, others = ordered[0], [one for one in ordered[1:] if one.distance < math.log(4)]
        text = f"recorded over model torque is that of {best.unit} on the {best.side} side"
        if said is not None and best.unit != said:
            return (said, ("unsure", f"the name says {said}, but {text}")), (best.side, ("unsure", text))
        rivals = [one for one in others if (one.unit, one.side) != (best.unit, best.side)]
        # Currents of drives with a gain of about 1 look like torques where no name says what they are.
        level: Confidence = "unsure" if rivals else "sure" if group.role or best.distance < CLOSE else "likely"
        side = "joint" if kind == "motor_current" else best.side
        return (best.unit, (level, text)), (side, (level, text))
    return _by_range(robot, group, kind, said, fit)


def _by_range(
    robot: Robot, group: Group, kind: str, said: str | None, fit: TorqueFit | None
) -> tuple[_Certain, _Certain]:
    """Return unit and side of torques by their size alone."""
    size = np.nanquantile(np.abs(group.values), 0.99, axis=1)
    largest = float(size.max())
    if kind == "motor_current":
        unit = said or ("mA" if largest > 100 else "A")
        level: Confidence = "likely" if said or largest < 40 or largest > 400 else "unsure"
        text = f"the name says {said}" if said else f"up to {largest:.3g}"
        return (unit, (level, text)), ("joint", ("likely", "without a gain the side of a current does not matter"))
    efforts = np.array([body.joint.limits.effort for body in robot.actuated])
    ratio = float(np.max(size / efforts)) if np.isfinite(efforts).all() else math.nan
    text = f"up to {largest:.3g}" + ("" if math.isnan(ratio) else f", {ratio:.2g} times the effort limits")
    usual = _RATIO[0] <= ratio <= _RATIO[1] and group.role is not None
    if said is not None:
        return (said, ("likely", f"the name says {said}; {text}")), ("joint", ("unsure", text))
    if not usual and not math.isnan(ratio) and _RATIO[0] <= ratio / 1e3 <= _RATIO[1]:
        return ("mNm", ("unsure", text)), ("joint", ("unsure", text))
    return ("Nm", ("likely" if usual and ratio > 0.05 else "unsure", text)), ("joint", ("unsure", text))


def _signs(fit: TorqueFit | None, joints: int) -> tuple[tuple[int, ...], Confidence, str]:
    """Return the signs of torques: by the model where it speaks, else by own inertia and friction."""
    ones = (1,) * joints
    if fit is None:
        return ones, "unsure", "not checked"
    if fit.speaking.any():
        spoken = np.sign(fit.factor[fit.speaking])
        common = int(spoken[0]) if (spoken == spoken[0]).all() else 1
        signs = tuple(int(np.sign(f)) if s else common for f, s in zip(fit.factor, fit.speaking, strict=True))
        others = fit.power[~fit.speaking] * np.array(signs)[~fit.speaking]
        names = f"the model's at {int(fit.speaking.sum())} of {joints} joints"
        if not fit.is_confirmed:
            return ones, "unsure", f"{names}, weakly"
        if fit.speaking.all():
            return signs, "sure", names
        return (
            signs,
            "likely" if (others > 0).all() else "unsure",
            f"{names}; of others friction " + ("agrees" if (others > 0).all() else "disagrees"),
        )
    if (fit.power > 0).all():
        return ones, "likely", "on average torques drive the motion at every joint"
    return ones, "unsure", "torques brake the motion at some joint: moved from outside, gravity, or the opposite sign"


def _relative(group: Group, quantity: str) -> ChannelGuess:
    """Return a duty cycle, or a load in parts of a rating that only the user knows."""
    largest = float(np.nanquantile(np.abs(group.values), 0.999))
    unit = group.unit if group.unit in ("percent", "permille") else None
    guessed = unit or ("1" if largest <= 1.05 and quantity == "pwm" else "percent" if largest <= 200 else "permille")
    word = group.role.word if group.role else quantity
    text = f"the name says '{word}', up to {largest:.3g}"
    kind = "motor_pwm" if quantity == "pwm" else "motor_torque"
    certainty: dict[str, tuple[Confidence, str]] = {
        "columns": ("likely" if group.source == "column" else "unsure", text),
        "kind": ("likely", text) if quantity == "pwm" else ("unsure", "a load may be of torque or current"),
        "unit": ("likely" if unit else "unsure", text),
        "sign": ("unsure", "not checked"),
    }
    fill = {} if quantity == "pwm" else {"rating": "what 100 percent is, N m of each joint"}
    return ChannelGuess(kind, group, guessed, "joint", (1,) * len(group.values), certainty, to_fill=fill)


def left_out(
    columns: PreparedColumns, used: Sequence[Group], refused: Sequence[tuple[Group, str]]
) -> Iterator[tuple[Group, str]]:
    """Yield the groups that are not used, with the reason."""
    reasons = {group.key: reason for group, reason in refused}
    for group in columns.groups:
        if any(group is one for one in used):
            continue
        role = group.role
        named = f"named as {role.text}" if role else "nothing says what it is"
        yield group, reasons.get(group.key, f"{named}: not needed" if role else named)
