"""Columns that say what they are: ``time``, ``q[joint_1]``, ``motor_torque[joint_1]`` need no declaration."""

from __future__ import annotations

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
            given = table.described.get("gain", {}).get(name) if kind == "motor_current" else None
            gain = None if given is None else tuple(float(value) for value in given)
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
    described = table.described.get("torques", {})
    return names | {
        name: kind for name, kind in described.items() if kind in TORQUE_KINDS and name not in get_args(Role)
    }


def described_payload(table: Table) -> str | None:
    """Return the payload a file of ours names."""
    return table.described.get("payload")


def described_notes(table: Table) -> tuple[str, ...]:
    """Return the notes a file of ours carries."""
    return tuple(table.described.get("notes", ()))
