"""``steelyard model``: a model's parameters, base parameters, and what cannot be seen and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import ModelError
from ..model import build_model, summarise_model
from ..robot import Robot, load_robot
from ..run import hashes_of, json_text, read_config, write_result
from .model_table import print_model

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
    model = build_model(
        robot,
        effects=_words(settings.get("effects")),
        measured=settings.get("torque"),
        payload=settings.get("payload", "none"),
        sign_width=settings.get("sign_width", 0.0),
    )
    summary = summarise_model(model)
    inputs = hashes_of(Path(name), config)
    path = write_result(out, command, {"robot": name, **settings}, inputs, summary) if out else None
    if json:
        print(json_text(command, summary))
        return
    print_model(robot, summary)
    if path:
        print(f"\nsaved: {path}")


def _robot(name: str, settings: dict[str, Any]) -> Robot:
    robot = load_robot(name)
    if "gravity" in settings:
        robot = robot.with_gravity(_vector(settings["gravity"]))
    if "lock" in settings:
        robot = robot.with_locked(_positions(settings["lock"]))
    return robot


def _words(value: str | list[str] | None) -> list[str] | None:
    """Return effects from a list, or from words separated by commas or blanks."""
    return value.replace(",", " ").split() if isinstance(value, str) else value


def _vector(value: str | list[float]) -> tuple[float, float, float]:
    parts = value.replace(",", " ").split() if isinstance(value, str) else value
    numbers = [_number(part, "gravity") for part in parts]
    if len(numbers) != 3:
        raise ModelError(f"gravity '{value}': three numbers x,y,z are needed, such as 0,0,-9.81")
    return numbers[0], numbers[1], numbers[2]


def _positions(value: tuple[str, ...] | dict[str, float]) -> dict[str, float]:
    if isinstance(value, dict):
        return {joint: _number(position, f"lock {joint}") for joint, position in value.items()}
    pairs = [text.partition("=") for text in value]
    for joint, equals, position in pairs:
        if not (joint and equals and position):
            raise ModelError(f"lock '{joint}{equals}{position}': write JOINT=POSITION, such as joint_3=0.5")
    return {joint: _number(position, f"lock {joint}") for joint, _, position in pairs}


def _number(text: Any, what: str) -> float:
    try:
        number = float(text)
    except (TypeError, ValueError):
        raise ModelError(f"{what}: '{text}' is not a number; write it like 9.81") from None
    if number != number or number in (float("inf"), float("-inf")):
        raise ModelError(f"{what}: got {text}; a finite number is needed")
    return number
