"""``steelyard robots``: the catalogue."""

from __future__ import annotations

from typing import Any

from ..robot import Robot, catalogue_names, read_catalogue
from ..run import json_text
from .output import Column, Screen


def run(json: bool) -> None:
    """Print the catalogue as a table or as JSON."""
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
    }
