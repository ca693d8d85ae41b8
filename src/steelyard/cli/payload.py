"""``steelyard payload``: what is it holding, when the arm is known from a run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import EstimateError
from ..identification import PayloadFound, SavedRun, identify_payload, payload_to_json, plain, read_run
from ..recording import Recording
from ..robot import Robot, load_robot
from ..run import RunFolder, hashes_of, json_text
from .identify_table import print_payload
from .logs import streams_of
from .output import ProgressBar, Screen

POOR = 2


def run(
    folder: Path,
    logs: Sequence[Path],
    config: Path | None,
    table: str,
    root: Path | None,
    robot_name: str | None,
    out: Path | None,
    json: bool,
) -> int:
    """Find the payload, print and save it; return 2 if the motion was not enough or the arm has changed."""
    with RunFolder(out, "payload") as saved:
        found, content, inputs = _found(folder, logs, config, table, root, robot_name)
        content = saved.save({"run": str(folder), "logs": [str(log) for log in logs]}, inputs, content)
        print(json_text("payload", content)) if json else _print(found, content, saved.place)
    return POOR if found.reasons else 0


def _found(
    folder: Path, logs: Sequence[Path], config: Path | None, table: str, root: Path | None, robot_name: str | None
) -> tuple[PayloadFound, dict[str, Any], dict[str, str]]:
    """Return the payload, the content of the result, and the hashes of what was read."""
    known = read_run(folder)
    name = robot_name or str(known.settings["robot"])
    robot = _robot_of(known, name)
    with ProgressBar("reading") as progress:
        recordings = []
        for done, stream in enumerate(streams := streams_of(robot, logs, config, (table,), root)):
            recordings.append(stream.whole())
            progress(done + 1, len(streams))
    found = identify_payload(robot, known, recordings, os.cpu_count() or 1)
    content = _content(known, found, recordings)
    inputs = {**hashes_of(folder / "result.json", config), **{s.path: s.sha256 for r in recordings for s in r.sources}}
    return found, content, inputs


def _robot_of(known: SavedRun, name: str) -> Robot:
    """Return the run's robot, refusing a file that has changed since."""
    path = Path(name)
    recorded = known.content["provenance"]["inputs"].get(name)
    if recorded is not None and not path.is_file():
        raise EstimateError(f"the run's robot file '{name}' is not here; name it with --robot")
    if recorded is not None and hashes_of(path)[str(path)] != recorded:
        raise EstimateError(f"the robot file '{name}' has changed since the run; identify the arm again")
    return load_robot(name)


def _content(known: SavedRun, found: PayloadFound, recordings: Sequence[Recording]) -> dict[str, Any]:
    return plain(
        {
            "robot": known.content["robot"],
            "payload": payload_to_json(found.body),
            "covariance": found.body.covariance,
            "motion_was_enough": found.enough,
            "agreement": found.agreement,
            "reasons": [{"text": reason.text, "remedy": reason.remedy} for reason in found.reasons],
            "recordings": [source.path for recording in recordings for source in recording.sources],
        }
    )


def _print(found: PayloadFound, content: dict[str, Any], out: Path | None) -> None:
    screen = Screen()
    screen.line((content["robot"], "bold"), f": {len(content['recordings'])} recording(s)")
    print_payload(screen, found.body, always=True)
    words = "was enough" if found.enough else "was not enough"
    screen.line(f"the motion {words}; arm against its run: {found.agreement:.2f} (1 is what chance gives)", always=True)
    for reason in found.reasons:
        screen.line(f"- {reason.text}; ", (reason.remedy, "italic"))
    if out is not None:
        screen.line(f"saved: {out / 'result.json'}", always=True)
