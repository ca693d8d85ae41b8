"""What is guessed of one recording, and of several with the same columns together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...robot import Robot
from ...text import counted
from .groups import Group
from .heads import LogHead
from .motion_channels import guess_motion, guess_reference
from .prepared import LEVELS, ChannelGuess, Confidence, prepared
from .stamps import TimeGuess
from .torque_channels import DriveGuess, guess_drives, left_out


@dataclass(frozen=True, eq=False)
class RecordingGuess:
    """All that is guessed of a recording.

    Attributes:
        heads: The files side by side.
        time: Where the time comes from.
        channels: The channels.
        joints: How sure the order of the joints is, and why.
        unused: File and names of columns that are not used, with the reason.
    """

    heads: tuple[LogHead, ...]
    time: TimeGuess
    channels: tuple[ChannelGuess, ...]
    joints: tuple[Confidence, str]
    unused: tuple[tuple[int, tuple[str, ...], str], ...]

    def channel(self, name: str) -> ChannelGuess | None:
        """Return a channel by name, None if there is none."""
        return next((one for one in self.channels if one.channel == name), None)


def guess_recording(robot: Robot, heads: Sequence[LogHead]) -> RecordingGuess:
    """Return all that can be guessed of a recording."""
    columns = prepared(robot, heads)
    motion = guess_motion(columns)
    reference, refused = guess_reference(columns, motion)
    moving = [one for one in (motion.q, motion.qd, reference) if one is not None]
    drives = guess_drives(columns, motion, [one.group for one in moving])
    channels = [drives.q if one.channel == "q" and drives.q is not None else one for one in moving]
    channels = tuple(_after_positions(one, drives.q) for one in (*channels, *drives.channels))
    used = [one.group for one in channels]
    unused = [
        (group.part, tuple(heads[group.part].table.names[k] for k in group.columns), reason)
        for group, reason in left_out(columns, used, (*refused, *drives.refused))
    ]
    unused += [
        (one.part, (heads[one.part].table.names[one.column],), "in no group of one column for each joint")
        for one in columns.rest
    ]
    time = _confirmed(motion.time, channels)
    return RecordingGuess(tuple(heads), time, channels, _order(robot, channels, drives), tuple(unused))


def _after_positions(channel: ChannelGuess, q: ChannelGuess | None) -> ChannelGuess:
    """Return velocities as sure as the positions that decide about them: a torque may have made these surer."""
    if q is None or channel.channel != "qd" or q.certainty["unit"][0] != "sure" or q.certainty["side"][0] != "sure":
        return channel
    for aspect in ("unit", "side"):
        level, text = channel.certainty[aspect]
        if level == "likely" and "would too" not in text and "not checked" not in text:
            channel = channel.with_certainty(aspect, "sure", text)
    return channel


def _confirmed(time: TimeGuess, channels: Sequence[ChannelGuess]) -> TimeGuess:
    """Return stamps that velocities confirm: in another unit of time they would be no derivative in a usual unit."""
    qd = next((one for one in channels if one.channel == "qd"), None)
    if qd is None or time.column is None or time.confidence != "likely" or qd.certainty["unit"][0] != "sure":
        return time
    return replace(time, confidence="sure", reason=f"{time.reason}; velocities in {qd.unit} confirm it")


def _order(robot: Robot, channels: Sequence[ChannelGuess], drives: DriveGuess) -> tuple[Confidence, str]:
    """Return how sure it is that each column belongs to its joint."""
    confirmed = drives.confirmed
    if len(robot.actuated) == 1:
        return "sure", "there is one joint"
    groups: list[Group] = [one.group for one in channels]
    orders = {group.order for group in groups}
    surplus = max((group.surplus for group in groups), default=0)
    physics = ", and the robot's inertias explain the torques in this order" if confirmed else ""
    if not groups:
        return "unsure", "no columns of joints were found"
    if drives.exchanged:
        return (
            "unsure",
            f"the robot's inertias explain the torques of {' and '.join(drives.exchanged)} better exchanged",
        )
    if orders == {"names"}:
        return "sure", "columns name the joints"
    if surplus > 0:
        return "unsure", f"{counted(surplus, 'numbered column')} more than joints; the first ones are taken"
    if "robot" not in orders:
        return ("sure" if confirmed else "likely"), f"columns are numbered in the order of the joints{physics}"
    return ("likely" if confirmed else "unsure"), f"columns are taken in the order of the robot's joints{physics}"


def combined(guesses: Sequence[RecordingGuess]) -> RecordingGuess:
    """Return the surest guess of several recordings with the same columns; where others contradict it, it is unsure."""
    best = max(guesses, key=lambda one: sum(_levels(channel) for channel in one.channels))
    channels = tuple(_against_others(one, [other.channel(one.channel) for other in guesses]) for one in best.channels)
    times = [one.time for one in guesses]
    time = best.time
    if any(one.unit != time.unit or one.column != time.column for one in times):
        time = replace(time, confidence="unsure", reason=f"{time.reason}; another log looks different")
    else:
        surest = max(times, key=lambda one: LEVELS.index(one.confidence))  # type: ignore[arg-type]
        time = replace(time, confidence=surest.confidence, reason=surest.reason)
    joints = max((one.joints for one in guesses), key=lambda one: LEVELS.index(one[0]))
    return replace(best, channels=channels, time=time, joints=joints)


def _levels(channel: ChannelGuess) -> int:
    return 1 + sum(LEVELS.index(level) for level, _ in channel.certainty.values())


def _against_others(channel: ChannelGuess, others: Sequence[ChannelGuess | None]) -> ChannelGuess:
    """Return a channel whose aspects are as sure as the surest log that agrees, unsure where one contradicts."""
    aspects = {
        "columns": lambda one: one.group.columns, "kind": lambda one: one.channel, "unit": lambda one: one.unit,
        "side": lambda one: one.side, "sign": lambda one: one.sign, "offset": lambda one: dict(one.offset),
    }  # fmt: skip
    for aspect, (level, reason) in channel.certainty.items():
        value = aspects[aspect]
        known = [one for one in others if one is not None and aspect in one.certainty]
        agreeing = [one.certainty[aspect] for one in known if value(one) == value(channel)]
        if any(value(one) != value(channel) and one.certainty[aspect][0] != "unsure" for one in known):
            channel = channel.with_certainty(aspect, "unsure", f"{reason}; another log looks different")
        elif agreeing:
            surest = max(agreeing, key=lambda one: LEVELS.index(one[0]))
            if LEVELS.index(surest[0]) > LEVELS.index(level):
                channel = channel.with_certainty(aspect, *surest)
    return channel
