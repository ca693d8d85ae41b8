"""A guess as the table ``[recording]`` of a set-up, and as commented TOML."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import RecordingError
from ...files import toml_value
from ...robot import Robot
from ...tables import Table
from ...text import for_terminal
from ..columns import selected_columns
from ..plan import make_plan
from ..record import TORQUE_KINDS
from ..setup import Columns, setup_from_table
from .prepared import ChannelGuess
from .recording_guess import RecordingGuess

_NUMBER = re.compile(r"(?s)^(.*?)(\d{1,9})(\D*)$")
_TITLE = """\
# What is in the logs of robot '{robot}', guessed by steelyard init from names, ranges and physics.
# Each comment says how sure that is: sure, likely or unsure. Correct what is wrong: docs/recordings.md has all keys."""


def selector_of(columns: Sequence[int], table: Table) -> Columns:
    """Return the shortest text, number or list that selects these columns (from 0) of a table."""
    names = table.names
    numbers = tuple(column + 1 for column in columns)
    span = f"{numbers[0]}:{numbers[-1]}"
    if len(columns) == 1:
        candidates: list[Columns] = [names[columns[0]], numbers[0]] if table.named else [numbers[0]]
    else:
        candidates = [*_patterns([names[column] for column in columns])] if table.named else [span]
        candidates.append(numbers)
    return next(one for one in candidates if _selects(one, columns, names))


def _patterns(names: Sequence[str]) -> Iterator[Columns]:
    """Yield what may select columns by their names: a group, a range of numbers, the names themselves."""
    heads = {name.rpartition("[")[0] for name in names}
    if len(heads) == 1 and "" not in heads:
        yield heads.pop()
    parts = [match.groups() for name in names if (match := _NUMBER.match(name))]
    if len(parts) == len(names) and len({(before, after) for before, _, after in parts}) == 1:
        before, first, after = parts[0]
        yield f"{before}{{{first}..{parts[-1][1]}}}{after}"
    yield tuple(names)


def _selects(selector: Columns, columns: Sequence[int], names: Sequence[str]) -> bool:
    texts = [one for one in (selector if isinstance(selector, tuple) else (selector,)) if isinstance(one, str)]
    if any(not text or not _is_text(text) for text in texts):
        return False
    try:
        return selected_columns(selector, names, "") == list(columns)
    except RecordingError:
        return False


def _is_text(text: str) -> bool:
    return text.encode("utf-8", "replace").decode() == text


def relative_path(path: Path, folder: Path) -> str:
    """Return a path as a set-up in a folder names it.

    Raises:
        RecordingError: If TOML cannot hold its name.
    """
    try:
        found = Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # on another drive
        found = path.absolute().as_posix()
    if not _is_text(found):
        raise RecordingError(f"{path}: its name is not UTF-8 and cannot stand in a set-up; rename it")
    return found


def channel_entry(channel: ChannelGuess, table: Table) -> dict[str, Any]:
    """Return the keys of a channel."""
    entry: dict[str, Any] = {"kind": channel.channel} if channel.channel in TORQUE_KINDS else {}
    columns = selector_of(channel.group.columns, table)
    entry["columns"] = list(columns) if isinstance(columns, tuple) else columns
    if channel.unit is not None:
        entry["unit"] = list(channel.unit) if isinstance(channel.unit, tuple) else channel.unit
    if channel.side == "motor":
        entry["side"] = "motor"
    if any(sign < 0 for sign in channel.sign):
        entry["sign"] = -1 if all(sign < 0 for sign in channel.sign) else list(channel.sign)
    if channel.offset:
        entry["offset_deg"] = dict(channel.offset)
    return entry


def part_entry(guess: RecordingGuess, part: int) -> dict[str, Any]:
    """Return the keys of one of the files side by side."""
    head = guess.heads[part]
    entry: dict[str, Any] = {} if head.reshape is None else {"reshape": head.reshape}
    if guess.time.part == part and guess.time.column is not None:
        columns = selector_of([guess.time.column], head.table)
        entry["time"] = columns
        entry["time_unit"] = guess.time.unit
    torques = []
    for channel in guess.channels:
        if channel.group.part != part or channel.to_fill:
            continue
        keys = channel_entry(channel, head.table)
        if "kind" in keys:
            torques.append(keys)
        else:
            entry[channel.channel] = keys
    if torques:
        entry["torque"] = torques[0] if len(torques) == 1 else torques
    return entry


def with_joints(entry: Mapping[str, Any], guess: RecordingGuess, robot: Robot) -> dict[str, Any]:
    """Return the keys of a part, with the joints of its columns where their names would be misread."""
    tables = [head.table for head in guess.heads]
    trial = {**entry, **({} if "time" in entry else {"rate": 100.0})}
    try:
        if len(tables) == 1 and "q" in entry:
            make_plan(robot, setup_from_table(trial), tables)
        return dict(entry)
    except RecordingError:
        names = list(robot.joint_names)
        return {**entry, "joints": names}


def setup_table(
    robot: Robot,
    guesses: Sequence[tuple[RecordingGuess, Sequence[Path]]],
    folder: Path,
    chosen: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the table ``[recording]``: one layout with its files, several of them, or files side by side.

    ``chosen`` are keys that say which of several recordings in a file is meant.
    """
    first, paths = guesses[0]
    rate = {} if first.time.rate is None or first.time.column is not None else {"rate": first.time.rate}
    if len(first.heads) > 1:
        parts = [
            {"path": relative_path(head.path, folder), **chosen, **part_entry(first, part)}
            for part, head in enumerate(first.heads)
        ]
        return {**rate, "part": [part for part in parts if len(part) > 1 + len(chosen) + ("reshape" in part)]}
    if len(guesses) == 1:
        files = [relative_path(path, folder) for path in paths]
        return {"files": files, **chosen, **rate, **with_joints(part_entry(first, 0), first, robot)}
    entries = []
    for guess, own in guesses:
        found = {} if guess.time.rate is None or guess.time.column is not None else {"rate": guess.time.rate}
        keys = {**found, **with_joints(part_entry(guess, 0), guess, robot)}
        entries += [{"path": relative_path(path, folder), **chosen, **keys} for path in own]
    return {"file": entries}


def toml_text(robot: Robot, table: Mapping[str, Any], comments: Mapping[str, Sequence[str]]) -> str:
    """Return the set-up as TOML.

    Args:
        robot: The arm.
        table: The table ``[recording]``.
        comments: Lines above a key, by ``key`` or ``part.key`` counted from 0 (``1.q``); ``end`` for the end.
    """
    lines = [*_TITLE.format(robot=for_terminal(robot.name)).splitlines(), "", "[recording]"]
    lines += _commented({key: value for key, value in table.items() if key not in ("part", "file")}, comments, "")
    if "rate" in comments and "rate" not in table:
        lines += _comment_lines(comments["rate"])
    for kind in ("part", "file"):
        for number, entry in enumerate(table.get(kind, ())):
            lines += ["", f"[[recording.{kind}]]", *_commented(entry, comments, f"{number}.")]
    return "\n".join([*lines, *_comment_lines(comments.get("end", ()))]) + "\n"


def _commented(entry: Mapping[str, Any], comments: Mapping[str, Sequence[str]], prefix: str) -> list[str]:
    lines: list[str] = []
    for key, value in entry.items():
        lines += _comment_lines(comments.get(f"{prefix}{key}", ()))
        lines.append(f"{key} = {toml_value(value)}")
    return lines


def _comment_lines(texts: Sequence[str]) -> list[str]:
    return [f"# {for_terminal(text)}" for text in texts]
