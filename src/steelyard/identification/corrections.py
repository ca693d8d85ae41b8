"""Configurations that correct what a diagnosis found; data are never touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..configuration import PerJoint
from ..errors import ConfigError
from ..files import toml_text
from ..recording import Finding, RecordingStream
from ..recording.setup import ChannelSetup
from ..recording.units import QUANTITIES, normal_unit, row_quantities
from .findings import Diagnosed

_HEAD = "# Written by steelyard check --fix. What was found and is corrected here:"


def corrected_configuration(
    document: Mapping[str, Any], table: str, stream: RecordingStream, findings: Sequence[Diagnosed | Finding]
) -> str:
    """Return a configuration in TOML that corrects what can be corrected by one.

    Args:
        document: The configuration that the log was read with; empty if it describes itself.
        table: Its table of the recording.
        stream: A log of it, opened: which channels it has, in which order.
        findings: What was found.

    Raises:
        ConfigError: If nothing that was found can be corrected by a configuration.
    """
    fixed = [one for one in findings if one.fix]
    if not fixed:
        raise ConfigError("--fix: nothing was found that a configuration can correct")
    found: dict[str, Any] = {name: _copied(value) for name, value in document.items()}
    recording = found.get(table)
    if recording is None or not any(key in recording for key in ("q", "part")):
        found[table] = {**(recording or {}), **_described(stream)}
    for one in fixed:
        for key, value in one.fix.items():
            place, *path = key.split(".")
            if place == "identify":
                _settle_identify(found.setdefault("identify", {}), path[0], value)
            else:
                _change_channels(found[table], path[0], path[1], value, stream)
    lines = [_HEAD, *(f"# - {' '.join(one.text.split())}" for one in fixed)]
    return "\n".join(lines) + "\n\n" + toml_text(found)


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copied(one) for key, one in value.items()}
    return [_copied(one) for one in value] if isinstance(value, list) else value


def _described(stream: RecordingStream) -> dict[str, Any]:
    """Return the declaration of a log whose columns say what they are."""
    plan, found, torques = stream.plan, dict[str, Any](), []
    if plan.time is not None:
        part, place, _ = plan.time
        found["time"] = plan.tables[part].names[plan.wanted[part][place]]
    elif plan.setup.rate is not None:
        found["rate"] = plan.setup.rate
    for channel in plan.channels:
        setup = channel.setup
        if setup.role == "torque":
            own: dict[str, Any] = {"kind": setup.kind, "columns": setup.label}
            own |= {"name": setup.name} if setup.name and setup.name != setup.kind else {}
            own |= {} if setup.gain is None else {"gain": _plain(setup.gain)}
            torques.append(own)
        else:
            found[setup.role] = {"columns": setup.label}
    found |= {"torque": torques[0] if len(torques) == 1 else torques} if torques else {}
    return found | ({"payload": plan.setup.payload} if plan.setup.payload else {})


def _plain(value: PerJoint) -> Any:
    return dict(value) if isinstance(value, Mapping) else list(value) if isinstance(value, tuple) else value


def _settle_identify(table: dict[str, Any], key: str, value: Any) -> None:
    table[key] = {**table.get(key, {}), **value} if isinstance(value, Mapping) else value


def _change_channels(table: dict[str, Any], role: str, key: str, value: Any, stream: RecordingStream) -> None:
    """Change a key of every channel of a role, wherever the set-up declares it."""
    for place in (table, *table.get("part", ())):
        given = place.get(role)
        if given is None:
            continue
        several = isinstance(given, list) and bool(given) and all(isinstance(one, Mapping) for one in given)
        entries = given if several else [given]
        changed = [_changed(one, role, key, value, stream) for one in entries]
        place[role] = changed if several else changed[0]


def _changed(entry: Any, role: str, key: str, value: Any, stream: RecordingStream) -> dict[str, Any]:
    found = dict(entry) if isinstance(entry, Mapping) else {"columns": entry}
    joints = stream.plan.joints
    channel = _channel(stream, role, found)
    if channel is not None and channel.kind == "wrench":
        return found
    if key == "joints":
        # The columns of these two belong to each other's joint.
        before = found.get("joints") or (channel.joints if channel else None) or list(joints)
        exchanged = dict(zip(joints, value, strict=True))
        found["joints"] = [exchanged.get(joint, joint) for joint in before]
    elif key == "sign":
        before = _by_joint(found.get("sign", 1), joints)
        found["sign"] = [int(before[joint] * value.get(joint, 1)) for joint in joints]
    elif key == "unit":
        if channel is not None:
            found["unit"] = _units(found.get("unit"), value, stream, channel)
    else:
        before = _by_joint(found.get(key, 0.0), joints)
        found[key] = [before[joint] + value.get(joint, 0.0) for joint in joints]
    return found


def _units(given: Any, changed: Mapping[str, str], stream: RecordingStream, channel: ChannelSetup) -> list[str]:
    """Return the unit of each joint: changed, as it was declared, or SI."""
    joints = stream.plan.joints
    quantities = row_quantities(stream.plan.robot, channel, len(joints))
    units = given if isinstance(given, list) and len(given) == len(joints) else [given] * len(joints)
    units = [unit[0] if isinstance(unit, list) else unit for unit in units]
    declared = [
        unit if unit and normal_unit(unit) in QUANTITIES[quantity] else next(iter(QUANTITIES[quantity]))
        for unit, quantity in zip(units, quantities, strict=True)
    ]
    return [changed.get(joint, unit) for joint, unit in zip(joints, declared, strict=True)]


def _channel(stream: RecordingStream, role: str, entry: Mapping[str, Any]) -> ChannelSetup | None:
    own = [one.setup for one in stream.plan.channels if one.setup.role == role]
    alike = [one for one in own if entry.get("kind") in (None, one.kind)]
    return alike[0] if alike else None


def _by_joint(value: Any, joints: Sequence[str]) -> dict[str, float]:
    if isinstance(value, Mapping):
        return {joint: value.get(joint, 1 if all(abs(one) == 1 for one in value.values()) else 0.0) for joint in joints}
    return dict(zip(joints, value if isinstance(value, list) else [value] * len(joints), strict=True))
