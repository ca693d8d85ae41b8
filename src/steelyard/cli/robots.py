"""``steelyard robots``: the catalogue."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from ..robot import Robot, catalogue_names, read_catalogue
from ..run import json_text


def run(json: bool) -> None:
    """Print the catalogue as a table or as JSON."""
    entries = [_entry(read_catalogue(name)) for name in catalogue_names()]
    if json:
        print(json_text("robots", {"robots": entries}))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("name", "joints", "torque", "default effects", "carries"):
        table.add_column(heading, overflow="fold")
    for entry in entries:
        table.add_row(
            entry["name"], str(entry["joints"]), entry["torque_kind"], " ".join(entry["effects"]),
            " ".join(entry["carries"]),
        )  # fmt: skip
    Console(highlight=False).print(table)


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
