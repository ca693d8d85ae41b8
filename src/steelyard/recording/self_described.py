"""Columns that say what they are: ``time``, ``q[joint_1]``, ``motor_torque[joint_1]`` need no declaration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from .columns import group_columns
from .record import TORQUE_KINDS
from .setup import ChannelSetup, Role
from .tables import Table
from .units import unit_in_name

TIME_NAMES = ("time", "t", "timestamp", "stamp")


def described_channels(table: Table) -> list[ChannelSetup]:
    """Return the channels a table names itself, by group or by a single column."""
    channels = []
    for role in get_args(Role):
        if role != "torque" and _has(table, role):
            channels.append(ChannelSetup(role))
    for name, kind in _torque_names(table).items():
        if _has(table, name):
            gain = _numbers(table.described, "gain", name) if kind == "motor_current" else None
            channels.append(ChannelSetup("torque", kind=kind, name=name, gain=gain))
    return channels


def time_column(table: Table) -> int | None:
    """Return the column of the stamps if its name says so."""
    if not table.named:
        return None
    bare = [unit_in_name(name)[0].strip().lower() for name in table.names]
    return next((bare.index(word) for word in TIME_NAMES if word in bare), None)


def _has(table: Table, name: str) -> bool:
    bare = [unit_in_name(column)[0] for column in table.names]
    return table.named and (name in bare or bool(group_columns(name, table.names)))


def _torque_names(table: Table) -> dict[str, Any]:
    """Return kinds by channel name: every kind by its own, and those a file of ours describes."""
    names: dict[str, Any] = {kind: kind for kind in TORQUE_KINDS}
    described = table.described.get("torques")
    if isinstance(described, Mapping):
        names.update({str(name): kind for name, kind in described.items() if kind in TORQUE_KINDS})
    return names


def _numbers(described: Mapping[str, Any], key: str, name: str) -> tuple[float, ...] | None:
    values = described.get(key)
    values = values.get(name) if isinstance(values, Mapping) else None
    if not isinstance(values, list) or not all(isinstance(v, int | float) for v in values):
        return None
    return tuple(float(value) for value in values)


def described_payload(table: Table) -> str | None:
    """Return the payload a file of ours names."""
    payload = table.described.get("payload")
    return payload if isinstance(payload, str) else None


def described_notes(table: Table) -> tuple[str, ...]:
    """Return the notes a file of ours carries."""
    notes = table.described.get("notes")
    return tuple(str(note) for note in notes) if isinstance(notes, list) else ()
