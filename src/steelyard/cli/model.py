"""``steelyard model``: a model's parameters, base parameters, and what cannot be seen and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..model import build_model, summarise_model
from ..robot import Robot, gravity_vector, load_robot, lock_positions
from ..run import RunFolder, hashes_of, json_text, read_config
from .model_table import print_model
from .output import Screen

SCHEMA = {
    "torque": str, "payload": str, "effects": list, "gravity": list, "sign_width": float, "lock": dict,
}  # fmt: skip


def run(
    name: str, flags: dict[str, Any], config: Path | None, out: Path | None, json: bool, command: str = "model"
) -> None:
    """Build the model, save it if asked, and print it."""
    settings = read_config(config, "model", SCHEMA) if config else {}
    settings.update({key: value for key, value in flags.items() if value is not None})
    robot = _robot(name, settings)
    with RunFolder(out, command) as run:
        summary = _summary(robot, settings)
        run.save({"robot": name, **settings}, hashes_of(Path(name), config), summary)
        if json:
            print(json_text(command, summary))
            return
        print_model(robot, summary)
        if run.place:
            Screen().line(f"saved: {run.place / 'result.json'}", always=True)


def _summary(robot: Robot, settings: dict[str, Any]) -> dict[str, Any]:
    model = build_model(
        robot,
        effects=_words(settings.get("effects")),
        measured=settings.get("torque"),
        payload=settings.get("payload", "none"),
        sign_width=settings.get("sign_width", 0.0),
    )
    return summarise_model(model)


def _robot(name: str, settings: dict[str, Any]) -> Robot:
    robot = load_robot(name)
    if "gravity" in settings:
        robot = robot.with_gravity(gravity_vector(settings["gravity"]))
    if "lock" in settings:
        robot = robot.with_locked(lock_positions(settings["lock"]))
    return robot


def _words(value: str | list[str] | None) -> list[str] | None:
    """Return effects from a list, or from words separated by commas or blanks."""
    return value.replace(",", " ").split() if isinstance(value, str) else value
