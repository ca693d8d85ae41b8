"""``steelyard check``: is this data any good, before any fit."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import RecordingError
from ..recording import Recording, read_recording, read_recordings, read_setup
from ..robot import load_robot
from ..run import json_text, write_result

_STYLE = {"info": "dim", "warning": "yellow", "bad": "red"}
GOOD, POOR = 0, 2


def run(
    robot_name: str,
    logs: tuple[Path, ...],
    config: Path | None,
    table: str,
    root: Path | None,
    out: Path | None,
    json: bool,
) -> int:
    """Read the logs, print what was found, and return 2 if any of it is bad."""
    if not logs and config is None:
        raise RecordingError("no log given; name one, or a configuration file that names some with --config")
    robot = load_robot(robot_name)
    if config is not None:
        recordings = read_recordings(robot, read_setup(config, table), list(logs) or None, root=root or config.parent)
    else:
        recordings = tuple(read_recording(robot, log) for log in logs)
    content = {"robot": robot.name, "recordings": [_summary(recording) for recording in recordings]}
    if out is not None:
        inputs = [path for path in (Path(robot_name), config, *logs) if path and path.is_file()]
        write_result(out, "check", {"robot": robot_name, "logs": [str(log) for log in logs]}, inputs, content)
    if json:
        print(json_text("check", content))
    else:
        _print(content)
    bad = any(finding.severity == "bad" for recording in recordings for finding in recording.findings)
    return POOR if bad else GOOD


def _summary(recording: Recording) -> dict[str, Any]:
    steps = np.diff(recording.time)
    return {
        "files": [source.path for source in recording.sources],
        "samples": recording.samples,
        "duration": recording.duration,
        "rate": float(1 / np.median(steps)),
        "joints": list(recording.joints),
        "velocity": recording.qd is not None,
        "torques": [{"name": channel.name, "kind": channel.kind} for channel in recording.torques],
        "payload": recording.payload,
        "findings": [asdict(finding) for finding in recording.findings],
        "notes": list(recording.notes),
    }


def _print(content: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    for told in content["recordings"]:
        channels = ", ".join(channel["name"] for channel in told["torques"]) or "no torques"
        console.print(f"[bold]{', '.join(told['files'])}[/bold]")
        console.print(
            f"{told['samples']} samples, {told['duration']:.2f} s, about {told['rate']:.4g} Hz; "
            f"{len(told['joints'])} joints, {channels}; payload: {told['payload'] or 'none'}"
        )
        table = Table(box=None, pad_edge=False, show_header=False)
        for finding in told["findings"]:
            style = _STYLE[finding["severity"]]
            table.add_row(f"[{style}]{finding['severity']}[/{style}]", finding["text"])
        console.print(table if told["findings"] else "nothing found")
        for note in told["notes"]:
            console.print(f"note: {note}", style="dim")
        console.print()
