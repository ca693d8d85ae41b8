"""Guessing of set-ups: columns, units, sides and signs of logs from names, ranges and physics, and how sure that is."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import RecordingError
from ...files import require_files, toml_value
from ...progress import Progress, part_of, silent
from ...robot import AnyRobot, Robot, load_robot
from ...tables import TextOptions
from ...verdict import first_named
from ..setup import Columns
from .heads import LogHead, read_head, recordings_of
from .prepared import ChannelGuess
from .prepared import Confidence as Confidence
from .recording_guess import RecordingGuess, combined, guess_recording
from .table import channel_entry, relative_path, selector_of, setup_table, toml_text

MOST_LOGS = 4
"""Logs of the same columns that are looked into; those after them are taken to be alike."""


@dataclass(frozen=True)
class GuessedAspect:
    """How sure one aspect of a guess is.

    Attributes:
        aspect: ``columns``, ``kind``, ``unit``, ``side``, ``sign``, ``offset``, ``rate`` or ``order``.
        confidence: ``sure``, ``likely`` or ``unsure``.
        reason: Why.

    Example:
        >>> from steelyard.recording import GuessedAspect
        >>> GuessedAspect("unit", "sure", "the name says deg").confidence
        'sure'
    """

    aspect: str
    confidence: Confidence
    reason: str


@dataclass(frozen=True)
class GuessItem:
    """A guessed channel, the time or the order of the joints.

    Attributes:
        channel: ``time``, ``joints``, ``q``, ``qd``, ``reference``, ``temperature`` or a torque kind.
        file: The file it is in.
        columns: Its columns, as a set-up selects them; None if there are none.
        unit: Its unit, one for all joints or one each; None if there is none.
        side: ``joint`` or ``motor``; empty where there is none.
        sign: 1 or -1 for each joint; empty where there is none.
        confidence: The lowest confidence of its aspects.
        aspects: How sure each aspect is, and why.

    Example:
        >>> from steelyard.recording import GuessItem
        >>> GuessItem("q", "log.csv", "q{1..6}", "deg", "joint", (1,) * 6, "likely", ()).columns
        'q{1..6}'
    """

    channel: str
    file: str
    columns: Columns | None
    unit: str | tuple[str, ...] | None
    side: str
    sign: tuple[int, ...]
    confidence: Confidence
    aspects: tuple[GuessedAspect, ...]

    @property
    def reason(self) -> str:
        """All reasons in one line."""
        return "; ".join(f"{one.aspect} {one.confidence}: {one.reason}" for one in self.aspects)


@dataclass(frozen=True)
class SetupGuess:
    """A guessed set-up. Make one with :func:`guess_setup`.

    Attributes:
        table: The table ``[recording]``, as :func:`setup_from_table` takes it.
        text: The set-up as commented TOML.
        items: What was guessed, how sure it is, and why.
        to_fill: What nothing in the logs says and the user has to add.
        unused: Columns that are not used, with the reason.

    Example:
        >>> time = np.arange(400) / 100
        >>> log = np.column_stack([time, np.sin(time), np.cos(2 * time), np.cos(time), -2 * np.sin(2 * time)])
        >>> np.savetxt("log.csv", log, delimiter=",", header="t,q1,q2,qd1,qd2", comments="")
        >>> guess = steelyard.guess_setup("scara_2r", "log.csv")
        >>> guess.table["q"]
        {'columns': 'q{1..2}', 'unit': 'rad'}
    """

    table: Mapping[str, Any]
    text: str
    items: tuple[GuessItem, ...]
    to_fill: tuple[str, ...]
    unused: tuple[tuple[str, str], ...]


def guess_setup(
    robot: AnyRobot,
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    folder: str | os.PathLike[str] = ".",
    topic: str | None = None,
    group: str | None = None,
    episode: int | None = None,
    progress: Progress = silent,
) -> SetupGuess:
    """Return a set-up guessed from the first rows of logs: columns, units, rate, sides and signs, and how sure each is.

    Names of columns and files are compared with physics: velocities with the derivative of positions, positions with
    joint limits, torques with those that the robot's inertias need. ``sure`` needs a name and a physical test that
    agree, or a physical test that leaves one possibility.

    Args:
        robot: The arm.
        paths: A log, several of them, or the files side by side of one recording.
        folder: Where the set-up will be saved; its paths start there.
        topic: Topic of ROS bags that have several.
        group: Group or structure of HDF5 and MAT files that have several.
        episode: Number of the episode of a LeRobot data set.
        progress: Progress callback, counting logs.

    Raises:
        RecordingError: If a log cannot be read, is too short, or files are parts of several recordings.

    Example:
        >>> time = np.arange(400) / 100
        >>> log = np.column_stack([time, np.sin(time), np.cos(2 * time), np.cos(time), -2 * np.sin(2 * time)])
        >>> np.savetxt("log.csv", np.degrees(log) * [np.pi / 180, 1, 1, 1, 1], delimiter=",")
        >>> guess = steelyard.guess_setup("scara_2r", "log.csv")
        >>> guess.table["q"], [item.confidence for item in guess.items if item.channel == "joints"]
        ({'columns': '2:3', 'unit': 'deg'}, ['unsure'])
    """
    arm = load_robot(robot)
    given = [Path(paths)] if isinstance(paths, str | os.PathLike) else [Path(path) for path in paths]
    require_files(*given, error=RecordingError)
    if not given or not arm.actuated:
        raise RecordingError("no log is given; name one" if not given else f"robot '{arm.name}' has no moving joint")
    options = TextOptions(topic=topic, group=group, episode=episode)
    chosen = {key: value for key in ("topic", "group", "episode") if (value := getattr(options, key)) is not None}
    heads = [read_head(path, options, part_of(progress, k, len(given))) for k, path in enumerate(given)]
    layouts = _by_layout(recordings_of(heads, len(arm.actuated)))
    guesses = [
        (combined([guess_recording(arm, recording) for recording in alike[:MOST_LOGS]]), [one[0].path for one in alike])
        for alike in layouts
    ]
    return _setup(arm, guesses, Path(folder), chosen)


def _by_layout(recordings: Sequence[list[LogHead]]) -> list[list[list[LogHead]]]:
    """Return recordings that have the same columns together."""
    found: dict[Any, list[list[LogHead]]] = {}
    for heads in recordings:
        found.setdefault(tuple(head.layout for head in heads), []).append(heads)
    return list(found.values())


def _setup(
    robot: Robot, guesses: Sequence[tuple[RecordingGuess, Sequence[Path]]], folder: Path, chosen: Mapping[str, Any]
) -> SetupGuess:
    table = setup_table(robot, guesses, folder, chosen)
    comments: dict[str, list[str]] = {}
    items: list[GuessItem] = []
    to_fill: list[str] = []
    unused: list[tuple[str, str]] = []
    entry = 0
    for guess, paths in guesses:
        own = _items(guess, folder)
        items += own
        missing = list(_missing(guess))
        to_fill += [text for _, text in missing if text not in to_fill]
        unused += [(_names(names), reason) for _, names, reason in guess.unused]
        for place in _places(table, guess, paths, entry, folder):
            _add_comments(comments, own, missing, *place)
        entry += len(paths)
    comments["end"] = [f"not used: {names}: {reason}" for names, reason in unused]
    text = toml_text(robot, table, comments)
    return SetupGuess(table, text, tuple(items), tuple(to_fill), tuple(unused))


def _places(
    table: Mapping[str, Any], guess: RecordingGuess, paths: Sequence[Path], entry: int, folder: Path
) -> list[tuple[str, str | None]]:
    """Return the prefix of the keys of a guess in the comments, and the file it is of; None for all files."""
    if "part" in table:
        places: list[tuple[str, str | None]] = [(f"{k}.", str(part["path"])) for k, part in enumerate(table["part"])]
        return [("", ""), *places]
    if "file" in table:
        return [(f"{entry + k}.", None) for k in range(min(1, len(paths)))]
    return [("", None)]


def _add_comments(
    comments: dict[str, list[str]],
    items: Sequence[GuessItem],
    missing: Sequence[tuple[str, str]],
    prefix: str,
    file: str | None,
) -> None:
    """Add the lines above each key of one table."""
    for item in items:
        if file is not None and item.file != file:
            continue
        key = {"joints": "q", "rate": "rate"}.get(item.channel, item.channel)
        key = "torque" if item.channel.startswith(("motor_", "joint_t")) else key
        lines = [f"{item.channel} {one.aspect}: {one.confidence}, {one.reason}" for one in item.aspects]
        comments.setdefault(f"{prefix}{key}", []).extend(lines)
    for key, text in missing:
        if file in (None, "") and key == "rate":
            comments.setdefault("rate", []).extend([f"to fill in: {text}", "rate = "])
        elif key != "rate" and file in (None, ""):
            comments.setdefault("rate", []).append(f"to fill in: {text}")


def _missing(guess: RecordingGuess) -> list[tuple[str, str]]:
    """Return the keys that only the user can fill in, with what they mean."""
    found = []
    if guess.time.column is None and guess.time.rate is None:
        found.append(("rate", "rate, samples a second: there is no column of time, and nothing says it"))
    if guess.channel("q") is None:
        found.append(("q", "q, the columns of the joint positions: no group of columns looks like them"))
    for channel in guess.channels:
        entry = toml_value(channel_entry(channel, guess.heads[channel.group.part].table))
        found += [
            (channel.channel, f"{key} of {channel.channel} ({text}); without it is not read: {entry}")
            for key, text in channel.to_fill.items()
        ]
    return found


def _items(guess: RecordingGuess, folder: Path) -> list[GuessItem]:
    paths = [relative_path(head.path, folder) for head in guess.heads]
    time = guess.time
    items = []
    if time.column is not None and time.part is not None:
        columns = selector_of([time.column], guess.heads[time.part].table)
        aspects = (GuessedAspect("unit", time.confidence, time.reason),)  # type: ignore[arg-type]
        items.append(GuessItem("time", paths[time.part], columns, time.unit, "", (), aspects[0].confidence, aspects))
    elif time.rate is not None:
        aspects = (GuessedAspect("rate", time.confidence, time.reason),)  # type: ignore[arg-type]
        items.append(GuessItem("rate", "", None, "Hz", "", (), aspects[0].confidence, aspects))
    items += [_channel_item(one, guess, paths) for one in guess.channels]
    q = guess.channel("q")
    if q is not None:
        aspects = (GuessedAspect("order", *guess.joints),)
        items.append(GuessItem("joints", paths[q.group.part], None, None, "", (), guess.joints[0], aspects))
    return items


def _channel_item(channel: ChannelGuess, guess: RecordingGuess, paths: Sequence[str]) -> GuessItem:
    part = channel.group.part
    aspects = tuple(GuessedAspect(aspect, *certainty) for aspect, certainty in channel.certainty.items())
    columns = selector_of(channel.group.columns, guess.heads[part].table)
    return GuessItem(
        channel.channel, paths[part], columns, channel.unit, channel.side, channel.sign, channel.confidence, aspects
    )


def _names(names: Sequence[str]) -> str:
    return first_named(list(names), most=4)
