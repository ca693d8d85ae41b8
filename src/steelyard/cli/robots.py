"""``steelyard robots``: the arms of the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..plain_data import json_text
from .options import Json
from .output import Column, Screen

if TYPE_CHECKING:
    from ..robot import Robot


def robots(*, json: Json = False) -> None:
    """List the arms of the catalogue, what is known of each and its default model."""
    from ..robot import catalogue_names, read_catalogue

    entries = [_entry(read_catalogue(name)) for name in catalogue_names()]
    if json:
        print(json_text("robots", {"robots": entries}))
        return
    columns = [
        Column("name", "key"), Column("joints"), Column("torque", "word"), Column("default effects", "text"),
        Column("carries", "text"),
    ]  # fmt: skip
    rows = [
        [
            entry["name"], str(entry["joints"]), entry["torque_kind"], " ".join(entry["effects"]),
            " ".join(entry["carries"]),
        ]
        for entry in entries
    ]  # fmt: skip
    Screen().table(columns, rows)


def _entry(robot: Robot) -> dict[str, Any]:
    return {
        "name": robot.name,
        "joints": len(robot.actuated),
        "torque_kind": robot.defaults.torque,
        "torque": robot.defaults.measured,
        "effects": list(robot.defaults.effects),
        "carries": list(robot.carries),
        "source": robot.source,
        "inertia_source": robot.inertia_source,
    }
