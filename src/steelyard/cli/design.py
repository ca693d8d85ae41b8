"""``steelyard design``: the motion to record, proven to keep its limits, and the sigmas it promises."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DesignError, nearest_match
from ..excitation import SCHEMA, Design, SearchProgress, design_experiment, design_settings, design_to_json
from ..identification import read_run
from ..motion import EXPORT_FORMATS, export_set, quintic, write_trajectory
from ..motion.export_formats import ExportedMotion, checked_motion
from ..motion.exports import FIRST_SPEEDS
from ..robot import Robot, load_robot
from ..run import RunFolder, hashes_of, json_text, read_config
from .design_table import print_design
from .output import ProgressBar

MOTION_FILE = "motion.toml"
POOR = 2
_KEYS = {
    **SCHEMA, "torque": str, "payload": str, "effects": list, "limits": str, "start": list, "carries": str,
    "after": str, "format": list, "file_rate": float, "floor": (float, str), "position_scale": float, "gravity": list,
}  # fmt: skip


def run(robot_name: str, flags: dict[str, Any], config: Path | None, out: Path | None, json: bool) -> int:
    """Design, write motion, exports and result, and print what was found; return 2 if a parameter stays unseen."""
    asked = read_config(config, "design", _KEYS) if config else {}
    asked.update({key: value for key, value in _parsed(flags).items() if value is not None})
    asked.setdefault("threads", os.cpu_count() or 1)
    _check_contents(asked)
    settings, robot = design_settings(asked), _mounted(load_robot(robot_name), asked)
    _check_formats(robot, _formats(asked), asked.get("file_rate"), settings.durations[1])
    limits_file = Path(asked["limits"]) if asked.get("limits") else None
    after = Path(asked["after"]) if asked.get("after") else None
    with RunFolder(out, "design") as run:
        with ProgressBar("searching") as bar:
            design = design_experiment(
                robot, settings, torque=asked.get("torque"),
                payload=asked.get("payload", "none"), effects=asked.get("effects"), limits=limits_file,
                carries=asked.get("carries"), after=None if after is None else read_run(after),
                start=asked.get("start"), floor=asked.get("floor"), position_scale=asked.get("position_scale"),
                callback=lambda update: _report(bar, update),
            )  # fmt: skip
        inputs = hashes_of(Path(robot_name), config, limits_file, after / "result.json" if after else None)
        # The answer does not depend on the number of threads; neither shall the file.
        told = {"robot": robot_name, **{key: value for key, value in asked.items() if key != "threads"}}
        content = run.save(told, inputs, design_to_json(design), lambda place, _: _write(design, place, asked))
        print(json_text("design", content)) if json else print_design(design, run.place, content.get("files", []))
    return POOR if content["condition_number"]["normalised"] is None else 0


def _mounted(robot: Robot, asked: Mapping[str, Any]) -> Robot:
    """Return the robot under the gravity that was asked for."""
    if "gravity" not in asked:
        return robot
    gravity = asked["gravity"]
    if len(gravity) != 3 or not np.isfinite(gravity).all():
        raise DesignError(f"gravity is {gravity}; allowed are three finite numbers, such as 0,0,-9.81")
    x, y, z = (float(value) for value in gravity)
    return robot.with_gravity((x, y, z))


def _report(bar: ProgressBar, update: SearchProgress) -> None:
    if update.value is not None:
        kept = "limits kept" if update.violation == 0 else f"worst constraint {100 * update.violation:.2g} % over"
        bar.relabel(f"searching: best {update.value:.5g}, {kept}")
    bar(update.done, update.total)


def _parsed(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return flags with lists of numbers and goals in place of their texts."""
    parsed = dict(flags)
    for key in ("duration", "noise", "start", "gravity"):
        if isinstance(parsed[key], str):
            numbers = _numbers(parsed[key], key)
            parsed[key] = numbers if key in ("start", "gravity") or len(numbers) > 1 else numbers[0]
    if parsed["floor"] not in (None, "none"):
        parsed["floor"] = _height(parsed["floor"])
    if isinstance(parsed["harmonics"], str):
        whole = [int(count) if count.is_integer() else count for count in _numbers(parsed["harmonics"], "harmonics")]
        parsed["harmonics"] = whole if len(whole) > 1 else whole[0]
    if parsed["goals"]:
        parsed["goals"] = dict(_goal(text) for text in parsed["goals"])
    for key in ("limits", "after"):
        parsed[key] = None if parsed[key] is None else str(parsed[key])
    return parsed


def _numbers(text: str, what: str) -> list[float]:
    try:
        return [float(word) for word in text.split(",")]
    except ValueError as error:
        raise DesignError(f"--{what} is '{text}'; allowed are numbers separated by commas") from error


def _height(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise DesignError(f"--floor is '{text}'; allowed is a height [m], or none for no floor") from error


def _goal(text: str) -> tuple[str, float]:
    name, _, wanted = text.rpartition("=")
    try:
        return name, float(wanted)
    except ValueError as error:
        raise DesignError(f"--goal is '{text}'; allowed is NAME=VALUE, such as condition=35") from error


def _check_contents(asked: Mapping[str, Any]) -> None:
    """Refuse what types alone do not tell: what lists hold, and what has nothing to go with."""
    for key in ("duration", "noise", "start", "gravity", "harmonics"):
        allowed, kind = ("whole numbers", int) if key == "harmonics" else ("numbers", int | float)
        values = asked.get(key, ())
        for value in values if isinstance(values, list) else [values] if key in asked else ():
            if not isinstance(value, kind) or isinstance(value, bool):
                raise DesignError(f"{key} is {values!r}; allowed are {allowed}")
    for key in ("effects", "parameters", "format"):
        if not all(isinstance(word, str) for word in asked.get(key, ())):
            raise DesignError(f"{key} is {asked[key]!r}; allowed are words")
    for name, wanted in asked.get("goals", {}).items():
        if not isinstance(wanted, int | float):
            raise DesignError(f"goal '{name}' is {wanted!r}; allowed is a number")
    if asked.get("seed", 0) < 0:
        raise DesignError(f"seed is {asked['seed']}; allowed is 0 or more")
    if asked.get("carries") and asked.get("payload", "none") == "none":
        raise DesignError(f"the arm carries '{asked['carries']}', but --payload is none; choose loaded or paired")


def _formats(asked: Mapping[str, Any]) -> list[str]:
    return [word for word in dict.fromkeys(asked.get("format", ["csv"])) if word != "none"]


def _check_formats(robot: Robot, formats: Sequence[str], rate: float | None, longest: float) -> None:
    """Refuse files that could not be written, before the long search; a still motion stands for the slowest."""
    joints = [body.joint for body in robot.actuated]
    units = tuple("m" if joint.kind == "prismatic" else "rad" for joint in joints)
    still = quintic(np.zeros((len(joints), 2)), longest / min(FIRST_SPEEDS), [joint.name for joint in joints])
    for name in formats:
        if name not in EXPORT_FORMATS:
            allowed = (*EXPORT_FORMATS, "none")
            raise DesignError(f"format is '{name}'; allowed: {', '.join(allowed)}{nearest_match(name, allowed)}")
        form = EXPORT_FORMATS[name]
        checked_motion(ExportedMotion(still, units, form.rate if rate is None else rate), form)


def _write(design: Design, place: Path, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Write the motion and its exports, all proven first; return the names of the files."""
    formats, robot = _formats(asked), design.model.robot
    exported = (
        export_set(design.trajectory, place, formats, asked.get("file_rate"), check=design.check, robot=robot)
        if formats
        else []
    )
    write_trajectory(design.trajectory, place / MOTION_FILE)
    return {"files": [MOTION_FILE, *(path.name for path in exported)]}
