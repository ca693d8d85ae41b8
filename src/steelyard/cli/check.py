"""``steelyard check``: is this data any good, before any fit. Read in blocks: memory does not grow with the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import RecordingError
from ..recording import Finding, Recording, RecordingStream
from ..robot import load_robot
from ..run import RunFolder, hashes_of, json_text
from .logs import streams_of
from .output import Column, Part, ProgressBar, Screen

_STYLE = {"info": "dim", "note": "dim", "warning": "yellow", "bad": "red", "severe": "red"}
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
    robot = load_robot(robot_name)
    inputs = hashes_of(Path(robot_name), config)
    with RunFolder(out, "check") as saved:
        told = [_summary(stream, inputs) for stream in streams_of(robot, logs, config, (table,), root)]
        content = {"robot": robot.name, "recordings": told}
        saved.save({"robot": robot_name, "logs": [str(log) for log in logs]}, inputs, content)
        print(json_text("check", content)) if json else _print(content)
    severities = {finding["severity"] for recording in told for finding in recording["findings"]}
    return POOR if "bad" in severities else GOOD


def _summary(stream: RecordingStream, inputs: dict[str, str]) -> dict[str, Any]:
    """Read a log to its end; keep what is told of it, not its samples, and add its hashes to the inputs."""
    samples, first, last, block = 0, 0.0, 0.0, None
    steps: list[float] = []
    with ProgressBar("reading") as progress:
        for block in stream:
            first = float(block.time[0]) if samples == 0 else first
            last = float(block.time[-1])
            samples += block.samples
            steps.append(float(np.median(np.diff(block.time))) if block.samples > 1 else np.nan)
            progress(stream.bytes_done, stream.bytes_total)
    if block is None or stream.result is None:
        raise RecordingError("the log has no samples; check the file")
    inputs.update({source.path: source.sha256 for source in stream.result.sources})
    whole = replace(block, findings=stream.result.findings, sources=stream.result.sources)
    return _told(whole, samples, last - first, 1 / float(np.nanmedian(steps)))


def _told(recording: Recording, samples: int, duration: float, rate: float) -> dict[str, Any]:
    return {
        "files": [source.path for source in recording.sources],
        "samples": samples,
        "duration": duration,
        "rate": rate,
        "joints": list(recording.joints),
        "velocity": recording.qd is not None,
        "torques": [{"name": channel.name, "kind": channel.kind} for channel in recording.torques],
        "payload": recording.payload,
        "findings": [_told_finding(finding) for finding in recording.findings],
        "notes": list(recording.notes),
    }


def _told_finding(finding: Finding) -> dict[str, Any]:
    told = {field.name: getattr(finding, field.name) for field in fields(finding)}
    return {**told, "values": dict(finding.values)}


def print_findings(screen: Screen, rows: Sequence[tuple[str, str, str]]) -> None:
    """Print findings: severity, and text with remedy."""
    cells: list[list[Part]] = [
        [(severity, _STYLE[severity]), "; ".join(part for part in (text, remedy) if part)]
        for severity, text, remedy in rows
    ]
    screen.table([Column("", "word"), Column("", "text")], cells)


def _print(content: dict[str, Any]) -> None:
    screen = Screen()
    for told in content["recordings"]:
        channels = ", ".join(channel["name"] for channel in told["torques"]) or "no torques"
        rows = [(finding["severity"], finding["text"], finding["remedy"]) for finding in told["findings"]]
        worst = max((row[0] for row in rows), key=list(_STYLE).index, default="")
        found = f"{len(rows)} finding(s), the worst: {worst}" if rows else "nothing found"
        screen.line((", ".join(told["files"]), "bold"), f": {found}", always=True)
        screen.line(
            f"{told['samples']} samples, {told['duration']:.2f} s, about {told['rate']:.4g} Hz; "
            f"{len(told['joints'])} joints, {channels}; payload: {told['payload'] or 'none'}"
        )
        print_findings(screen, rows)
        for note in told["notes"]:
            screen.line(f"note: {note}", style="dim")
        screen.line()
