"""Setups from a ``steelyard.toml``: table ``[recording]``, its parts and its files."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import ConfigError, nearest_match
from ..files import toml_document
from . import setup_values as as_
from .record import TorqueKind
from .setup import ChannelSetup, PartSetup, RecordingSetup, Role, TextOptions
from .setup_values import Converter, taken

_CHANNEL: dict[str, Converter] = {"columns": as_.columns, "unit": as_.texts, "joints": as_.texts}
_MOVING = {**_CHANNEL, "side": as_.side, "sign": as_.signs, "counts_per_turn": as_.per_joint}
_POSITION = {**_MOVING, "offset": as_.per_joint, "offset_deg": as_.degrees, "unwrap": as_.yes_or_no}
_TORQUE = {
    **_CHANNEL, "side": as_.side, "sign": as_.signs, "kind": as_.torque_kind, "name": as_.text, "gain": as_.per_joint,
    "rating": as_.per_joint,
}  # fmt: skip
_CHANNEL_KEYS: dict[Role, dict[str, Converter]] = {
    "q": _POSITION,
    "qd": _MOVING,
    "reference": _POSITION,
    "torque": _TORQUE,
    "temperature": _CHANNEL,
    "pose": {"columns": as_.columns, "unit": as_.texts},
}
_TEXT: dict[str, Converter] = {
    "separator": as_.separator,
    "header": as_.yes_or_no,
    "comment": as_.texts,
    "skip_lines": as_.count,
    "decimal": as_.choice(".", ","),
    "reshape": as_.count,
}


def _as_given(value: Any) -> Any:
    return value


_PART: dict[str, Converter] = {
    "time": _as_given,
    "time_unit": as_.text,
    **dict.fromkeys(_CHANNEL_KEYS, _as_given),
    **_TEXT,
}
_COMMON: dict[str, Converter] = {
    "joints": as_.texts,
    "rate": as_.positive,
    "period": as_.positive,
    "side": as_.side,
    "gear_ratio": as_.per_joint,
    "coupling": as_.matrix,
    "payload": as_.text,
    "notes": as_.texts,
    "rows": as_.row_range,
    "seconds": as_.second_range,
}
_RECORDING: dict[str, Converter] = {"files": as_.texts, **_PART, **_COMMON, "part": _as_given, "file": _as_given}


def read_setup(path: str | os.PathLike[str], table: str = "recording") -> RecordingSetup:
    """Return the setup in one table of a TOML file.

    Args:
        path: The file; relative paths in it start at its folder.
        table: Name of the table.

    Raises:
        ConfigError: If the file cannot be read, a key is unknown or a value makes no sense.
    """
    try:
        document = toml_document(Path(path), "the setup", ConfigError)
    except ConfigError as error:
        raise ConfigError(f"setup '{path}': {error}") from error
    if table not in document:
        raise ConfigError(
            f"setup '{path}' has no table [{table}]; tables: {', '.join(document)}{nearest_match(table, document)}"
        )
    return setup_from_table(document[table], Path(path).parent, f"{path}: [{table}]")


def setup_from_table(table: Mapping[str, Any], folder: Path = Path(), where: str = "recording") -> RecordingSetup:
    """Return the setup that a table of settings describes, as ``[recording]`` would.

    Args:
        table: Keys and values as TOML has them.
        folder: Where relative paths start.
        where: What messages call the table.
    """
    files = _tables(table, "file", where)
    base = {key: value for key, value in table.items() if key != "file"}
    setup = _one_setup(base, folder, where)
    overrides = []
    for number, entry in enumerate(files, 1):
        place = f"{where} file {number}"
        path = taken({"path": entry.get("path")}, {"path": as_.text}, place)["path"]
        own = {key: value for key, value in entry.items() if key != "path"}
        if "files" in own or "part" in own:
            raise ConfigError(f"{place}: 'files' and 'part' belong in [recording] itself, not in one of its files")
        overrides.append((path, _one_setup({**base, **own}, folder, place)))
    names = setup.files or tuple(path for path, _ in overrides if "*" not in path and "?" not in path)
    values = {name: getattr(setup, name) for name in setup.__dataclass_fields__}
    return RecordingSetup(**{**values, "files": names, "overrides": tuple(overrides)})


def _tables(table: Mapping[str, Any], key: str, where: str) -> list[dict[str, Any]]:
    entries = table.get(key, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ConfigError(f"{where}: '{key}' must be tables; write [[recording.{key}]] on a line of its own")
    return entries


def _one_setup(table: Mapping[str, Any], folder: Path, where: str) -> RecordingSetup:
    values = taken(dict(table), _RECORDING, where)
    parts = _tables(table, "part", where)
    common = {key: values[key] for key in _COMMON if key in values and key not in ("period", "side")}
    side = values.get("side", "joint")
    whole = _part({key: values[key] for key in _PART if key in values}, "", side, where)
    if parts:
        if whole.channels or whole.time is not None or "files" in values:
            raise ConfigError(f"{where}: columns and files stand in its [[recording.part]] tables, not beside them")
        common["parts"] = tuple(
            _named_part(entry, side, f"{where} part {number}") for number, entry in enumerate(parts, 1)
        )
        _refuse_twice(common["parts"], where)
    else:
        common["parts"] = (whole,)
    common["rate"] = _rate(values, any(part.time is not None for part in common["parts"]), where)
    return RecordingSetup(**common, files=values.get("files", ()), folder=folder)


def _rate(values: Mapping[str, Any], has_time: bool, where: str) -> float | None:
    rate, period = values.get("rate"), values.get("period")
    if rate and period and not math.isclose(rate * period, 1, rel_tol=1e-6):
        raise ConfigError(f"{where}: rate {rate:g} Hz and period {period:g} s disagree; keep one of them")
    found = rate or (1 / period if period else None)
    if found and has_time:
        raise ConfigError(f"{where}: both a time column and a rate are declared; keep the time column, or the rate")
    return found


def _named_part(entry: Mapping[str, Any], side: str, where: str) -> PartSetup:
    values = taken(dict(entry), {"path": as_.text, **_PART}, where)
    if "path" not in values:
        raise ConfigError(f"{where}: 'path' is missing; name the file of this part")
    return _part({key: value for key, value in values.items() if key != "path"}, values["path"], side, where)


def _part(values: Mapping[str, Any], path: str, side: str, where: str) -> PartSetup:
    channels = [
        _channel(role, entry, side, f"{where} {role}")
        for role in _CHANNEL_KEYS
        if role in values
        for entry in (values[role] if role == "torque" and _is_list_of_tables(values[role]) else [values[role]])
    ]
    layout = {key: values[key] for key in _TEXT if key in values}
    if not layout.get("reshape", 1):
        raise ConfigError(f"{where}: 'reshape' must be the number of values in a row; got 0")
    time, unit = _time(values, where)
    return PartSetup(path, time, unit, tuple(channels), TextOptions(**layout))


def _is_list_of_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(entry, dict) for entry in value)


def _time(values: Mapping[str, Any], where: str) -> tuple[str | int | None, str | None]:
    """Return column and unit of the stamps; ``time = "t"`` or ``time = {column = "t", unit = "ms"}``."""
    entry, unit = values.get("time"), values.get("time_unit")
    if entry is None:
        return None, unit
    keys: dict[str, Converter] = {"column": as_.column, "unit": as_.text}
    given = taken(entry if isinstance(entry, dict) else {"column": entry}, keys, f"{where} time")
    own = given.get("unit")
    if own and unit and own != unit:
        raise ConfigError(f"{where}: time is declared in '{own}' and in '{unit}'; keep one of them")
    return given.get("column"), own or unit


def _channel(role: Role, entry: Any, side: str, where: str) -> ChannelSetup:
    """Return one channel; a text or list instead of a table names its columns."""
    values = taken(entry if isinstance(entry, dict) else {"columns": entry}, _CHANNEL_KEYS[role], where)
    if "offset_deg" in values and "offset" in values:
        raise ConfigError(f"{where}: 'offset' and 'offset_deg' are both given; keep one of them")
    if "offset_deg" in values:
        values["offset"] = values.pop("offset_deg")
    if role == "torque" and "kind" not in values:
        raise ConfigError(
            f"{where}: 'kind' is missing; allowed: motor_current, motor_torque, joint_torque, motor_pwm, wrench"
        )
    unit = values.pop("unit", None)
    kind: TorqueKind | None = values.get("kind")
    takes_side = role in ("q", "qd", "reference") or (role == "torque" and kind in ("motor_torque", "motor_current"))
    values.setdefault("side", side if takes_side else "joint")
    if values["side"] == "motor" and not takes_side:
        raise ConfigError(f"{where}: a {kind or role} has no motor side; leave 'side' out")
    if "gain" in values and kind != "motor_current":
        raise ConfigError(f"{where}: only a motor_current takes a gain, this is a {kind}")
    return ChannelSetup(role=role, unit=unit if unit is None or len(unit) > 1 else unit[0], **values)


def _refuse_twice(parts: tuple[PartSetup, ...], where: str) -> None:
    labels = [channel.label for part in parts for channel in part.channels]
    labels += ["time" for part in parts if part.time is not None]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise ConfigError(f"{where}: '{twice[0]}' is declared in two parts; keep one, or give torques their own name")
