"""Setups of logs: files, columns, units and sides, as table ``[recording]`` of a TOML file declares them."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Literal, get_args

from ..configuration import (
    Kind,
    PerJoint,
    Section,
    anything,
    choice,
    flag,
    in_radians,
    number,
    numbers,
    per_joint,
    text,
    texts,
    toml_file,
    whole_number,
)
from ..errors import ConfigError, nearest_match
from ..robot.tree import INERTIA_SOURCES, InertiaSource
from ..tables import TextOptions
from .gains import every_joint, relative_sigmas
from .record import TORQUE_KINDS, TorqueKind

Side = Literal["motor", "joint"]
Columns = str | int | tuple[str | int, ...]
Role = Literal["q", "qd", "reference", "torque", "temperature", "pose", "known_torque"]


@dataclass(frozen=True)
class ChannelSetup:
    """One channel: its columns and what their numbers mean.

    A number x in column j becomes ``sign_j scale_j x``; with ``side = "motor"`` positions then become ``R^-1 x``
    and torques ``R^T x``, ``R = diag(gear ratios) C``, C the robot's ``motor_coupling()``; the offset is added last.

    Attributes:
        role: What it is: ``q``, ``qd``, ``reference``, ``torque``, ``temperature``, ``pose`` or ``known_torque``.
        columns: Name, pattern, index range (from 1, last included), or several of these; None for columns that say
            what they are (``q[joint_1]``).
        unit: Unit of all joints or one for each; None for SI or what the header says.
        side: ``motor`` if before the gears; torques, positions and velocities only.
        kind: Torque kind, for ``torque``.
        name: Name of a torque channel; its kind by default.
        joints: Joint names in the order of the columns, where this channel differs from the recording's.
        sign: +1 or -1.
        offset: Added to positions, joint side [rad or m].
        gain: Torque per current [N m/A], on the side declared.
        gain_sigma: Relative standard deviation of the gains, or of the scale of a torque; infinite if it is unknown.
        gain_covariance: Covariance of their relative errors (n, n), where more than that is known.
        rating: What 100 percent is [A, N m or N].
        counts_per_turn: Encoder counts a turn.
        unwrap: Whether jumps by a turn (as the encoder wraps) are undone.
    """

    role: Role
    columns: Columns | None = None
    unit: str | tuple[str, ...] | None = None
    side: Side = "joint"
    kind: TorqueKind | None = None
    name: str = ""
    joints: tuple[str, ...] | None = None
    sign: PerJoint = 1.0
    offset: PerJoint = 0.0
    gain: PerJoint | None = None
    gain_sigma: PerJoint | None = None
    gain_covariance: tuple[tuple[float, ...], ...] | None = None
    rating: PerJoint | None = None
    counts_per_turn: PerJoint | None = None
    unwrap: bool = False

    @property
    def label(self) -> str:
        """What messages call the channel."""
        return self.name or self.kind or self.role


@dataclass(frozen=True)
class PartSetup:
    """A file, or one of several files side by side, and the channels in it.

    Attributes:
        path: Its path; empty if named when it is read.
        time: Column of the stamps, None if there is none or if it says so itself (``time``).
        time_unit: Unit of the stamps.
        channels: The channels in it; empty for columns that say what they are.
        text: Layout, for text files; topic, for ROS bags.
    """

    path: str = ""
    time: str | int | None = None
    time_unit: str | None = None
    channels: tuple[ChannelSetup, ...] = ()
    text: TextOptions = field(default_factory=TextOptions)


@dataclass(frozen=True)
class RecordingSetup:
    """How recordings are to be read. Make one with :func:`read_setup`.

    Attributes:
        files: Files that are a recording each; none if ``parts`` name the files.
        parts: One part, or several files side by side that make one recording.
        joints: Joint names in the order of the columns.
        rate: Samples a second [Hz], where there are no stamps.
        gear_ratio: Motor turns per joint turn; the robot's by default.
        coupling: C with ``q_motor = C q`` on the joint side (n, n); the robot's by default.
        payload: Name of the payload carried.
        notes: Notes to keep with the recording.
        inertia_source: Where the inertias of the robot's file come from, where that cannot say so itself (URDF, MJCF).
        rows: First and last data row to use, from 1, both included; 0 as last for the end.
        seconds: First and last second to use, counted from the first stamp.
        folder: Where relative paths start.
        overrides: Setups of single files, by path or pattern.
    """

    files: tuple[str, ...] = ()
    parts: tuple[PartSetup, ...] = (PartSetup(),)
    joints: tuple[str, ...] | None = None
    rate: float | None = None
    gear_ratio: PerJoint | None = None
    coupling: tuple[tuple[float, ...], ...] | None = None
    payload: str | None = None
    notes: tuple[str, ...] = ()
    inertia_source: InertiaSource | None = None
    rows: tuple[int, int] | None = None
    seconds: tuple[float, float] | None = None
    folder: Path = Path()
    overrides: tuple[tuple[str, RecordingSetup], ...] = field(default=(), repr=False)

    def for_file(self, path: str) -> RecordingSetup:
        """Return the setup of one file: its own ``[[recording.file]]`` where there is one."""
        name = Path(path).as_posix()
        for pattern, setup in self.overrides:
            wanted = Path(pattern).as_posix()
            if name == wanted or name.endswith("/" + wanted) or fnmatch(name, wanted) or fnmatch(name, "*/" + wanted):
                return setup
        return replace(self, overrides=())


LARGEST = 1e15  # of a number of a setup: products with measured ones stay finite
_number = number(largest=LARGEST)
_by_joint = per_joint(_number)
_count = whole_number(0, LARGEST)
_side = choice(*get_args(Side))


def _positive(value: Any) -> float:
    """A number above zero, from 1 / ``LARGEST`` to ``LARGEST``."""
    if _number(value) < 1 / LARGEST:
        raise ValueError("a number above 0")
    return float(value)


def _separator(value: Any) -> str:
    """One printable letter that no number has, a tab, or a word for blanks."""
    if value in ("tab", "\t", "whitespace", "space", " "):
        return value
    if not isinstance(value, str) or len(value) != 1 or not value.isascii() or not value.isprintable():
        raise ValueError("one letter such as , or ;, 'tab' or 'whitespace'")
    if value.isalnum() or value in '+-."':
        raise ValueError("a letter that stands in no number, such as , or ;")
    return value


def _matrix(value: Any) -> tuple[tuple[float, ...], ...]:
    """A square list of lists of numbers."""
    rows = tuple(map(numbers(None, _number), value)) if isinstance(value, list) else ()
    if not rows or any(len(row) != len(rows) for row in rows):
        raise ValueError("a square matrix, a list of rows")
    return rows


def _signs(value: Any) -> PerJoint:
    """+1 or -1 for each joint."""
    return every_joint(_by_joint(value), lambda sign: abs(sign) == 1, "1 or -1 for each joint")


def _column(value: Any) -> str | int:
    """A column's name, or its number from 1."""
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "" or value == 0:
        raise ValueError("a column's name, or its number counted from 1")
    return value


def _columns(value: Any) -> Columns:
    """A name, a pattern, an index range or a list of these."""
    return tuple(map(_column, value)) if isinstance(value, list) and value else _column(value)


def _rows(value: Any) -> tuple[int, int]:
    """First and last row: ``"635:3510"``, an end left out is open."""
    first, colon, last = value.partition(":") if isinstance(value, str) else ("", "", "")
    if not colon or not all(not end.strip() or end.strip().isdecimal() for end in (first, last)):
        raise ValueError('first and last row from 1, as "635:3510"')
    if max(len(first), len(last)) > 15:
        raise ValueError("first and last row of at most 15 digits")
    ends = int(first) if first.strip() else 1, int(last) if last.strip() else 0
    if ends[0] < 1 or (ends[1] and ends[1] < ends[0]):
        raise ValueError('first and last row from 1, as "635:3510", the last not before the first')
    return ends


def _seconds(value: Any) -> tuple[float, float]:
    """First and last second, counted from the first stamp."""
    ends = numbers(None, _number)(value)
    if len(ends) != 2 or not ends[0] < ends[1]:
        raise ValueError("two numbers, first and last second, as [2.5, 20]")
    return ends[0], ends[1]


_CHANNEL: dict[str, Kind[Any]] = {"columns": _columns, "unit": texts, "joints": texts}
_MOVING = {**_CHANNEL, "side": _side, "sign": _signs, "counts_per_turn": _by_joint}
_POSITION = {**_MOVING, "offset": _by_joint, "offset_deg": in_radians(_by_joint), "unwrap": flag}
_TORQUE = {
    **_CHANNEL, "side": _side, "sign": _signs, "kind": choice(*TORQUE_KINDS), "name": text, "gain": _by_joint,
    "gain_sigma": lambda value: relative_sigmas(value, _by_joint), "rating": _by_joint,
}  # fmt: skip
_CHANNEL_KEYS: dict[Role, dict[str, Kind[Any]]] = {
    "q": _POSITION,
    "qd": _MOVING,
    "reference": _POSITION,
    "torque": _TORQUE,
    "temperature": _CHANNEL,
    "pose": {"columns": _columns, "unit": texts},
    "known_torque": {**_CHANNEL, "side": _side, "sign": _signs},
}
_TEXT: dict[str, Kind[Any]] = {
    "separator": _separator,
    "header": flag,
    "comment": texts,
    "skip_lines": _count,
    "decimal": choice(".", ","),
    "reshape": whole_number(1, LARGEST),
    "topic": text,
    "group": text,
    "episode": _count,
}
_PART: dict[str, Kind[Any]] = {"time": anything, "time_unit": text, **dict.fromkeys(_CHANNEL_KEYS, anything), **_TEXT}
_COMMON: dict[str, Kind[Any]] = {
    "joints": texts,
    "rate": _positive,
    "period": _positive,
    "side": _side,
    "gear_ratio": _by_joint,
    "coupling": _matrix,
    "payload": text,
    "notes": texts,
    "inertia_source": choice(*INERTIA_SOURCES),
    "rows": _rows,
    "seconds": _seconds,
}
_RECORDING: dict[str, Kind[Any]] = {"files": texts, **_PART, **_COMMON, "part": anything, "file": anything}


def read_setup(path: str | os.PathLike[str], table: str = "recording") -> RecordingSetup:
    """Return the setup in one table of a TOML file.

    Args:
        path: The file; relative paths in it start at its folder.
        table: Name of the table.

    Raises:
        ConfigError: If the file cannot be read, a key is unknown or a value makes no sense.
    """
    with toml_file(Path(path), "the setup", ConfigError) as file:
        if table not in file:
            raise ConfigError(
                f"has no table [{table}]; tables: {', '.join(file.table)}{nearest_match(table, file.table)}"
            )
        return _setup(file.section(table), Path(path).parent)


def setup_from_table(table: Mapping[str, Any], folder: Path = Path(), where: str = "recording") -> RecordingSetup:
    """Return the setup that a table of settings describes, as ``[recording]`` would.

    Args:
        table: Keys and values as TOML has them.
        folder: Where relative paths start.
        where: What messages call the table.
    """
    return _setup(Section(table, where, ConfigError), folder)


def _setup(section: Section, folder: Path) -> RecordingSetup:
    base = {key: value for key, value in section.table.items() if key != "file"}
    setup = _one_setup(Section(base, section.where, ConfigError), folder)
    overrides = []
    for entry in section.sections("file"):
        path = entry.get("path", text)
        own = {key: value for key, value in entry.table.items() if key != "path"}
        if "files" in own or "part" in own:
            raise entry.failure("'files' and 'part' belong in [recording] itself, not in one of its files")
        overrides.append((path, _one_setup(Section({**base, **own}, entry.where, ConfigError), folder)))
    names = setup.files or tuple(path for path, _ in overrides if "*" not in path and "?" not in path)
    return replace(setup, files=names, overrides=tuple(overrides))


def _one_setup(section: Section, folder: Path) -> RecordingSetup:
    values = section.values(_RECORDING)
    parts = section.sections("part")
    common = {key: values[key] for key in _COMMON if key in values and key not in ("period", "side")}
    side = values.get("side", "joint")
    whole = _part({key: values[key] for key in _PART if key in values}, "", side, section)
    if parts:
        if whole.channels or whole.time is not None or "files" in values:
            raise section.failure("columns and files stand in its [[recording.part]] tables, not beside them")
        common["parts"] = tuple(_named_part(entry, side) for entry in parts)
        _refuse_twice(common["parts"], section)
    else:
        common["parts"] = (whole,)
    common["rate"] = _rate(values, any(part.time is not None for part in common["parts"]), section)
    return RecordingSetup(**common, files=values.get("files", ()), folder=folder)


def _rate(values: Mapping[str, Any], has_time: bool, section: Section) -> float | None:
    rate, period = values.get("rate"), values.get("period")
    if rate and period and not math.isclose(rate * period, 1, rel_tol=1e-6):
        raise section.failure(f"rate {rate:g} Hz and period {period:g} s disagree; keep one of them")
    found = rate or (1 / period if period else None)
    if found and has_time:
        raise section.failure("both a time column and a rate are declared; keep the time column, or the rate")
    return found


def _named_part(section: Section, side: str) -> PartSetup:
    values = section.values({"path": text, **_PART})
    path = section.get("path", text)
    return _part({key: value for key, value in values.items() if key != "path"}, path, side, section)


def _part(values: Mapping[str, Any], path: str, side: str, section: Section) -> PartSetup:
    channels = [
        _channel(role, entry, side, f"{section.where} {role}")
        for role in _CHANNEL_KEYS
        if role in values
        for entry in _entries(role, values[role])
    ]
    layout = {key: values[key] for key in _TEXT if key in values}
    time, unit = _time(values, section)
    return PartSetup(path, time, unit, tuple(channels), TextOptions(**layout))


def _entries(role: Role, value: Any) -> list[Any]:
    several = role == "torque" and isinstance(value, list) and value and all(isinstance(one, dict) for one in value)
    return value if several else [value]


def _time(values: Mapping[str, Any], section: Section) -> tuple[str | int | None, str | None]:
    """Return column and unit of the stamps; ``time = "t"`` or ``time = {column = "t", unit = "ms"}``."""
    entry, unit = values.get("time"), values.get("time_unit")
    if entry is None:
        return None, unit
    table = entry if isinstance(entry, dict) else {"column": entry}
    given = Section(table, f"{section.where} time", ConfigError).values({"column": _column, "unit": text})
    own = given.get("unit")
    if own and unit and own != unit:
        raise section.failure(f"time is declared in '{own}' and in '{unit}'; keep one of them")
    return given.get("column"), own or unit


def _channel(role: Role, entry: Any, side: str, where: str) -> ChannelSetup:
    """Return one channel; a text or list instead of a table names its columns."""
    section = Section(entry if isinstance(entry, dict) else {"columns": entry}, where, ConfigError)
    section.refuse_both("offset", "offset_deg")
    values = section.values(_CHANNEL_KEYS[role])
    if "offset_deg" in values:
        values["offset"] = values.pop("offset_deg")
    if role == "torque":
        values["kind"] = section.get("kind", _TORQUE["kind"])
    unit = values.pop("unit", None)
    kind: TorqueKind | None = values.get("kind")
    takes_side = role in ("q", "qd", "reference") or (role == "torque" and kind in ("motor_torque", "motor_current"))
    values.setdefault("side", side if takes_side else "joint")
    # Known torques act on the links: they are before the gears only where they say so themselves.
    if values["side"] == "motor" and not takes_side and role != "known_torque":
        raise section.failure(f"a {kind or role} has no motor side; leave 'side' out")
    if "gain" in values and kind != "motor_current":
        raise section.failure(f"only a motor_current takes a gain, this is a {kind}")
    if "gain_sigma" in values and kind in ("motor_pwm", "wrench"):
        raise section.failure(f"only currents and torques take a gain_sigma, this is a {kind}")
    return ChannelSetup(role=role, unit=unit if unit is None or len(unit) > 1 else unit[0], **values)


def _refuse_twice(parts: tuple[PartSetup, ...], section: Section) -> None:
    labels = [channel.label for part in parts for channel in part.channels]
    labels += ["time" for part in parts if part.time is not None]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise section.failure(f"'{twice[0]}' is declared in two parts; keep one, or give torques their own name")
