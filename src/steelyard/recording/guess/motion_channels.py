"""Decisions about positions, velocities and commanded positions: columns, units, sides and signs, and how sure.

``sure`` needs a name and a physical test that agree, or a physical test that leaves one possibility; ``likely`` has one
of them, or leaves an unusual alternative; ``unsure`` has none, or a contradiction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...robot import Robot
from .groups import Group
from .motion import (
    CLEARLY_SMALL,
    DerivativeFit,
    UnitFit,
    derivative_fit,
    gears_of,
    is_sliding,
    position_like,
    scale_of,
    unit_fits,
    velocity_units,
)  # fmt: skip
from .prepared import ChannelGuess, Confidence, PreparedColumns, worst
from .stamps import TimeGuess, nearest_rate

SAME = 0.95
"""Correlation from which a commanded position is that of the measured one."""
WIDEST_LIMIT = 1e3


@dataclass(frozen=True, eq=False)
class MotionGuess:
    """Positions and velocities of a recording.

    Attributes:
        q: The positions; None if there are none.
        qd: The velocities; None if there are none.
        fits: Units and sides that the positions may have, the chosen one first.
        time: Where the time comes from, confirmed or found by the velocities.
    """

    q: ChannelGuess | None
    qd: ChannelGuess | None
    fits: tuple[UnitFit, ...]
    time: TimeGuess


def guess_motion(columns: PreparedColumns) -> MotionGuess:
    """Return positions and velocities of a recording."""
    time = columns.time
    group, partner, level, reason = _positions(columns)
    if group is None:
        return MotionGuess(None, None, (), time)
    fits = unit_fits(columns.robot, group.values, time.seconds)
    if time.seconds is None and time.rate is not None:
        time = replace(time, seconds=np.arange(group.values.shape[1]) / time.rate)
    if time.seconds is None and partner is not None:
        time = _time_by_velocity(columns.robot, fits, partner, time)
    q, fits = _position_channel(columns.robot, group, fits, time, (level, reason))
    qd = None
    if partner is not None:
        qd = _velocity_channel(columns.robot, q, fits, partner, time)
        if group.role is None and qd.certainty["unit"][0] == "unsure":
            q = q.with_certainty("columns", "unsure", f"{reason}, but not in a usual unit")
    return MotionGuess(q, qd, tuple(fits), time)


def _positions(columns: PreparedColumns) -> tuple[Group | None, Group | None, Confidence, str]:
    """Return positions and velocities, with how sure the choice is and why."""
    seconds = columns.time.seconds
    named = [group for group in columns.groups if group.is_named("position")]
    speeds = [group for group in columns.groups if group.is_named("velocity")]
    if not named:
        return _positions_by_physics(columns, seconds, speeds)
    fits = {(p.key, v.key): derivative_fit(p.values, v.values, seconds) for p in named for v in speeds}
    best = max(fits, key=lambda key: fits[key].agreement, default=None)
    chosen = named[0]
    if best is not None and fits[best].agrees:
        chosen = next(group for group in named if group.key == best[0])
    partner = next((group for group in speeds if best is not None and group.key == best[1]), None)
    word = chosen.role.word if chosen.role else ""
    said = f"the {chosen.source} name says '{word}'"
    if len(named) > 1:
        return chosen, partner, "unsure", f"{said}, but {len(named)} groups are positions"
    if best is not None and fits[best].agrees:
        return chosen, partner, "sure", f"{said}, and velocities are its derivative"
    if unit_fits(columns.robot, chosen.values, seconds):
        level: Confidence = "sure" if chosen.source == "column" else "likely"
        return chosen, partner, level, f"{said}, and its range fits the joint limits"
    return chosen, partner, "unsure", f"{said}, but its range fits the joint limits in no unit"


def _positions_by_physics(
    columns: PreparedColumns, seconds: np.ndarray | None, speeds: Sequence[Group]
) -> tuple[Group | None, Group | None, Confidence, str]:
    """Return the group whose derivative is another group and that stays inside the limits."""
    free = [group for group in columns.groups if group.role is None or group in speeds]
    pairs, beyond_doubt = position_like(free, seconds)
    fitting = [pair for pair in pairs if unit_fits(columns.robot, pair[0].values, seconds)]
    if fitting:
        position, partner, _ = fitting[0]
        rivals = {pair[0].key for pair in fitting}
        if len(rivals) > 1:
            return position, partner, "unsure", f"{len(rivals)} groups have a derivative among the others"
        level: Confidence = "sure" if beyond_doubt else "unsure"
        return position, partner, level, "the only group whose derivative is another group"
    inside = [group for group in free if unit_fits(columns.robot, group.values, seconds)]
    if not inside:
        return None, None, "unsure", "no group can be positions"
    smoothest = min(inside, key=lambda group: _jaggedness(group.values))
    return smoothest, None, "unsure", "the smoothest group whose range fits the joint limits; nothing else says so"


def _jaggedness(values: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        found = np.std(np.diff(values, axis=1), axis=1) / np.std(values, axis=1)
    return float(np.nanmax(found)) if np.isfinite(found).any() else np.inf


def _time_by_velocity(robot: Robot, fits: Sequence[UnitFit], speeds: Group, time: TimeGuess) -> TimeGuess:
    """Return the rate at which recorded velocities are the derivative of positions, if one is a rate of drives."""
    slides = is_sliding(robot)
    found = []
    for fit in fits[:1]:
        slope = derivative_fit(fit.q, speeds.values, None)
        if not slope.agrees:
            return time
        for unit in ("rad/s", "deg/s", "rpm"):
            scale = scale_of([unit] * len(slides), slides, "angular speed", "linear speed")
            rate = float(np.median(np.abs(slope.factor * scale)[slope.moving]))
            rounded, is_round = nearest_rate(rate)
            if is_round and 20 <= rounded <= 10_000 and (speeds.unit or unit) == unit:
                found.append((rounded, unit))
    if not found:
        return time
    rate, unit = found[0]
    seconds = np.arange(speeds.values.shape[1]) / rate
    text = f"no stamps; with velocities in {unit}, they are the derivative of positions at this rate"
    if len(found) > 1:
        text += f"; {found[1][0]:g} Hz if they are in {found[1][1]}"
    level = "likely" if len(found) == 1 else "unsure"
    return replace(time, rate=rate, seconds=seconds, confidence=level, reason=text)


def _position_channel(
    robot: Robot, group: Group, fits: Sequence[UnitFit], time: TimeGuess, chosen: tuple[Confidence, str]
) -> tuple[ChannelGuess, list[UnitFit]]:
    """Return positions with unit and side, and the fits with the chosen one first."""
    ones = (1,) * len(group.values)
    said = group.unit if group.unit in ("rad", "deg", "mrad", "rev", "m", "mm", "cm") else None
    ordered = _preferred(fits, said, group.role.place if group.role else "")
    certainty: dict[str, tuple[Confidence, str]] = {"columns": chosen}
    if not ordered:
        unit = said or "rad"
        certainty["unit"] = ("unsure", f"no unit fits the joint limits; taken as {unit}")
        certainty["side"] = ("unsure", "taken as the joint side")
        integers = bool((group.values == np.round(group.values)).all()) and np.ptp(group.values) > WIDEST_LIMIT
        fill = {"counts_per_turn": 'encoder counts a turn, then unit = "count"'} if integers else {}
        return ChannelGuess("q", group, unit, "joint", ones, certainty, to_fill=fill), []
    first = ordered[0]
    certainty["unit"], certainty["side"] = _unit_certainty(robot, ordered, said)
    if chosen[0] == "unsure" and group.role is None:
        certainty |= {aspect: ("unsure", certainty[aspect][1]) for aspect in ("unit", "side")}
    unit = first.units[0] if len(set(first.units)) == 1 else first.units
    return ChannelGuess("q", group, unit, first.side, ones, certainty), ordered


def _preferred(fits: Sequence[UnitFit], said: str | None, place: str) -> list[UnitFit]:
    """Return the fits, those with the unit and side that names say first."""
    return sorted(
        fits,
        key=lambda fit: (
            said is not None and said not in fit.units,
            place == "motor" and fit.side != "motor",
            fit.is_odd,
            not fit.inside,
            fit.rank,
        ),
    )


def _unit_certainty(
    robot: Robot, fits: Sequence[UnitFit], said: str | None
) -> tuple[tuple[Confidence, str], tuple[Confidence, str]]:
    """Return confidence and reason of unit and side of positions."""
    first = fits[0]
    limits = [body.joint.limits for body in robot.actuated]
    limited = all(np.isfinite([one.lower, one.upper]).all() for one in limits)
    fitting = "motion fits the joint limits" if limited else "motion is that of an arm"
    if said is not None and said not in first.units:
        return ("unsure", f"the name says {said}, but that does not fit the joint limits"), ("unsure", "see unit")
    others = [fit for fit in fits[1:] if said is None or said in fit.units]
    units = {fit.units: fit for fit in others if fit.units != first.units}
    sides = [fit for fit in others if fit.side != first.side]
    if said is not None:
        unit: tuple[Confidence, str] = ("sure", f"the name says {said}, and the {fitting}")
    elif not units:
        # In another unit the arm would hardly move at all; the smaller that motion, the surer.
        hardly = first.extent / 57.3 < CLEARLY_SMALL or first.units[0] != "rad"
        unit = ("sure" if limited and hardly and first.inside else "likely", f"{fitting} in {first.units[0]} only")
    elif all(fit.is_odd for fit in units.values()):
        unit = ("likely", f"{fitting} in {first.units[0]}; unusual units fit too")
    else:
        unit = ("unsure", f"{fitting}, but also in {' and '.join(fit.text for fit in units.values())}")
    if sides:
        return unit, ("unsure", f"{sides[0].text} would fit too")
    if gears_of(robot) is not None:
        return unit, ("sure" if limited else "likely", f"{fitting} on this side only")
    if said is None and not {"deg", "mrad", "rev"}.isdisjoint(first.units):
        doubt: Confidence = worst([unit[0], "likely"])
        return (doubt, f"{unit[1]}, unless they are of motors: the robot's file has no gear ratios"), (
            doubt,
            "see unit",
        )
    return unit, ("sure" if limited and first.inside else "likely", f"{fitting} without any gear")


def _velocity_channel(
    robot: Robot, q: ChannelGuess, fits: Sequence[UnitFit], group: Group, time: TimeGuess
) -> ChannelGuess:
    """Return velocities with unit, side and signs by the derivative of positions."""
    ones = (1,) * len(group.values)
    named = group.is_named("velocity")
    said = group.unit if group.unit and group.unit.endswith(("/s", "rpm")) else None
    if time.seconds is None or not fits:
        unit = said or "rad/s"
        why = "not checked: " + ("no time" if time.seconds is None else "positions have no unit")
        levels: dict[str, tuple[Confidence, str]] = {
            "columns": ("likely" if named else "unsure", "by name" if named else why),
            "unit": ("likely" if said else "unsure", f"the name says {said}" if said else why),
            "side": ("unsure", why), "sign": ("unsure", why),
        }  # fmt: skip
        return ChannelGuess("qd", group, unit, q.side, ones, levels)
    found, fit = velocity_units(robot, fits[0].q, group.values, time.seconds)
    if not found:
        return _odd_velocity(q, group, named, said, fit)
    found.sort(key=lambda one: (said is not None and one.unit != said, one.side != q.side))
    first = found[0]
    by_rate = time.column is None
    level: Confidence = "sure" if len(found) == 1 and not by_rate and not _is_doubtful(time) else "likely"
    text = f"{first.unit} on the {first.side} side make it the derivative of q"
    if len(found) > 1:
        level = "unsure" if found[1].unit != first.unit or found[1].side != first.side else level
        text += f"; {found[1].unit} on the {found[1].side} side would too"
    # What the positions are in decides what the velocities are in.
    level = worst([level, q.certainty["unit"][0], q.certainty["side"][0]])
    certainty: dict[str, tuple[Confidence, str]] = {
        "columns": (q.certainty["columns"][0], f"the derivative of q{', as named' if named else ''}"),
        "unit": (level, text), "side": (level, text),
        "sign": ("sure" if fit.moving.all() else "likely", "that of the derivative of q, as far as joints move"),
    }  # fmt: skip
    unit = first.unit
    slides = is_sliding(robot)
    units = tuple("m/s" if slide else unit for slide in slides) if slides.any() else unit
    return ChannelGuess("qd", group, units, first.side, first.signs, certainty)


def _is_doubtful(time: TimeGuess) -> bool:
    return time.confidence == "unsure"


def _odd_velocity(q: ChannelGuess, group: Group, named: bool, said: str | None, fit: DerivativeFit) -> ChannelGuess:
    """Return velocities whose factor to the derivative of positions is no usual unit, or that are no derivative."""
    factor = float(np.median(fit.factor[fit.moving])) if fit.moving.any() else 0.0
    follows = fit.agrees
    why = f"{factor:.4g} times the derivative of q: no usual unit" if follows else "it is not the derivative of q"
    certainty: dict[str, tuple[Confidence, str]] = {
        "columns": ("likely" if follows and named else "unsure", ("by name; " if named else "") + why),
        "unit": ("unsure", why),
        "side": ("unsure", why),
    }
    return ChannelGuess("qd", group, said or "rad/s", q.side, (1,) * len(group.values), certainty)


def guess_reference(
    columns: PreparedColumns, motion: MotionGuess
) -> tuple[ChannelGuess | None, list[tuple[Group, str]]]:
    """Return commanded positions that follow the measured ones, and those that do not with the reason."""
    refused: list[tuple[Group, str]] = []
    if motion.q is None:
        return None, refused
    measured = motion.q.group.values
    for group in columns.groups:
        role = group.role
        if role is None or role.quantity != "position" or not role.commanded:
            continue
        slope, likeness = _slope(measured, group.values)
        if likeness < SAME or not 0.8 < slope < 1.25:
            refused.append(
                (group, f"named as commanded positions, but {slope:.3g} times q (correlation {likeness:.2f})")
            )
            continue
        certainty = {
            "columns": ("sure", f"named as commanded positions, and follow q (correlation {likeness:.3f})"),
            "unit": motion.q.certainty["unit"], "side": motion.q.certainty["side"],
        }  # fmt: skip
        ones = (1,) * len(measured)
        return ChannelGuess("reference", group, motion.q.unit, motion.q.side, ones, certainty), refused  # type: ignore[arg-type]
    return None, refused


def _slope(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Return the median slope and correlation of two groups, over joints that move."""
    a, b = (x - x.mean(axis=1, keepdims=True) for x in (one, other))
    size = np.sqrt(np.mean(a * a, axis=1))
    use = size > 0.05 * max(float(size.max()), 1e-300)
    with np.errstate(all="ignore"):
        slope = np.sum(a * b, axis=1) / np.sum(a * a, axis=1)
        likeness = np.sum(a * b, axis=1) / np.sqrt(np.sum(a * a, axis=1) * np.sum(b * b, axis=1))
    return float(np.nanmedian(slope[use])), float(np.nan_to_num(np.nanmedian(likeness[use])))
