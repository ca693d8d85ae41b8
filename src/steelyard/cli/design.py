"""``steelyard design``: the motion to record, proven to keep its limits, and the sigmas it promises."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..design import SCHEMA, Design, News, design_experiment, design_settings, told_design
from ..errors import DesignError
from ..identify import read_run
from ..motion import export_set, write_trajectory
from ..robot import load_robot
from ..run import hashes_of, json_text, read_config, write_result
from .design_table import print_design
from .output import ProgressBar

MOTION_FILE = "motion.toml"
POOR = 2
_KEYS = {
    **SCHEMA, "torque": str, "payload": str, "effects": list, "limits": str, "start": list, "carries": str,
    "after": str, "format": list, "file_rate": float,
}  # fmt: skip


def run(robot_name: str, flags: dict[str, Any], config: Path | None, out: Path | None, json: bool) -> int:
    """Design, write motion, exports and result, and print what was found; return 2 if a parameter stays unseen."""
    asked = read_config(config, "design", _KEYS) if config else {}
    asked.update({key: value for key, value in _parsed(flags).items() if value is not None})
    asked.setdefault("threads", os.cpu_count() or 1)
    limits_file = Path(asked["limits"]) if asked.get("limits") else None
    after = Path(asked["after"]) if asked.get("after") else None
    with ProgressBar("searching") as bar:
        design = design_experiment(
            load_robot(robot_name), design_settings(asked), torque=asked.get("torque"),
            payload=asked.get("payload", "none"), effects=asked.get("effects"), limits=limits_file,
            carries=asked.get("carries"), after=None if after is None else read_run(after),
            start=asked.get("start"), tell=lambda news: _tell(bar, news),
        )  # fmt: skip
    content = told_design(design)
    if out is not None:
        content["files"] = _write(design, out, asked)
        inputs = hashes_of(Path(robot_name), config, limits_file, after / "result.json" if after else None)
        # The answer does not depend on the number of threads; neither shall the file.
        told = {key: value for key, value in asked.items() if key != "threads"}
        write_result(out, "design", {"robot": robot_name, **told}, inputs, content)
    print(json_text("design", content)) if json else print_design(design, out, content.get("files", []))
    return POOR if content["condition_number"]["normalised"] is None else 0


def _tell(bar: ProgressBar, news: News) -> None:
    if news.value is not None:
        kept = "limits kept" if news.violation == 0 else f"worst constraint {100 * news.violation:.2g} % over"
        bar.relabel(f"searching: best {news.value:.5g}, {kept}")
    bar(news.done, news.total)


def _parsed(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return flags with lists of numbers and goals in place of their texts."""
    parsed = dict(flags)
    for key in ("duration", "noise", "start"):
        if isinstance(parsed[key], str):
            numbers = _numbers(parsed[key], key)
            parsed[key] = numbers if key == "start" or len(numbers) > 1 else numbers[0]
    if isinstance(parsed["harmonics"], str):
        whole = [int(count) for count in _numbers(parsed["harmonics"], "harmonics")]
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


def _goal(text: str) -> tuple[str, float]:
    name, _, wanted = text.rpartition("=")
    try:
        return name, float(wanted)
    except ValueError as error:
        raise DesignError(f"--goal is '{text}'; allowed is NAME=VALUE, such as condition=35") from error


def _write(design: Design, out: Path, asked: Mapping[str, Any]) -> list[str]:
    """Write the motion and its exports, all proven first; return the names of the files."""
    formats: Sequence[str] = [word for word in asked.get("format", ["csv"]) if word != "none"]
    out.mkdir(parents=True, exist_ok=True)
    exported = export_set(
        design.trajectory, out, formats, asked.get("file_rate"), check=design.check, robot=design.model.robot
    )
    write_trajectory(design.trajectory, out / MOTION_FILE)
    return [MOTION_FILE, *(path.name for path in exported)]
