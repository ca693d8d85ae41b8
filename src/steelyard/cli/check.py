"""``steelyard check``: checks of logs before any fit, read in blocks: memory does not grow with the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ..files import require_files, robot_file
from ..plain_data import json_text, plain
from ..text import for_terminal
from .options import DATA, Json, Out, Quiet, RobotName, Root, Table, in_folder, quietly
from .output import SEVERITY_STYLE, ProgressBar, Screen, print_findings

if TYPE_CHECKING:
    from ..recording import RecordingStream
    from ..report import PageSection
    from ..report.signals import CheckedSignals
    from ..robot import Robot

GOOD, POOR = 0, 2


def check(
    robot: RobotName,
    /,
    *logs: Annotated[Path, Parameter(help="Recordings; each says what its columns are, or --config does.")],
    config: Annotated[
        Path | None, Parameter(name="--config", group=DATA, help="TOML file that says which columns are what.")
    ] = None,
    table: Table = "recording",
    root: Root = None,
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Check recordings before any fit: time stamps, units, jumps, limits, clipping, filters, vibrations, motion."""
    from ..report.signals import CheckedSignals
    from ..robot import load_robot
    from ..run import RunFolder, hashes_of
    from .logs import streams_of

    require_files(robot_file(robot), *in_folder(root, logs), config)
    arm, inputs = load_robot(robot), hashes_of(Path(robot), config)
    with quietly(quiet), RunFolder(out, "check") as saved:
        streams = streams_of(arm, logs, config, (table,), root)
        signals = [None if out is None else CheckedSignals(arm) for _ in streams]
        recordings = [_summary(stream, inputs, lines) for stream, lines in zip(streams, signals, strict=True)]
        content = {"robot": arm.name, "recordings": recordings}
        report = partial(_report, arm, streams, signals, recordings)
        saved.save({"robot": robot, "logs": [str(log) for log in logs]}, inputs, content, report=report)
        print(json_text("check", content)) if json else _print(content)
    severities = {finding["severity"] for recording in recordings for finding in recording["findings"]}
    return POOR if "bad" in severities else GOOD


def _report(
    robot: Robot,
    streams: Sequence[RecordingStream],
    signals: Sequence[CheckedSignals | None],
    recordings: Sequence[Mapping[str, Any]],
    provenance: Mapping[str, str],
) -> str:
    """Return the report; logs with places to show are read again."""
    from ..report import page_html
    from ..report.signals import check_page

    sections: list[PageSection] = []
    severities: dict[str, int] = {"bad": 0, "warning": 0, "info": 0}
    for number, (stream, lines, one) in enumerate(zip(streams, signals, recordings, strict=True), 1):
        assert stream.result is not None  # it has been read
        assert lines is not None
        findings = stream.result.findings
        for finding in findings:
            severities[finding.severity] += 1
        title = ", ".join(for_terminal(Path(file).name) for file in one["files"])
        sections.append(lines.page_section(number, title, findings, iter(stream), one["notes"]))
    return page_html(check_page(robot, sections, severities, provenance))


def _summary(stream: RecordingStream, inputs: dict[str, str], signals: CheckedSignals | None) -> dict[str, Any]:
    """Read a log to its end and return a summary; its hashes are added to the inputs, its signals drawn if wanted."""
    import numpy as np

    from ..errors import RecordingError

    samples, first, last, block = 0, 0.0, 0.0, None
    steps: list[float] = []
    with ProgressBar("reading") as progress:
        for block in stream:
            first = float(block.time[0]) if samples == 0 else first
            last = float(block.time[-1])
            samples += block.samples
            if signals is not None:
                signals.add(block)
            steps.append(float(np.median(np.diff(block.time))) if block.samples > 1 else np.nan)
            progress(stream.bytes_done, stream.bytes_total)
    if block is None or stream.result is None:
        raise RecordingError("the log has no samples; check the file")
    inputs.update({source.path: source.sha256 for source in stream.result.sources})
    return {
        "files": [source.path for source in stream.result.sources],
        "samples": samples,
        "duration": last - first,
        "rate": 1 / float(np.nanmedian(steps)),
        "joints": list(block.joints),
        "velocity": block.qd is not None,
        "torques": [{"name": channel.name, "kind": channel.kind} for channel in block.torques],
        "payload": block.payload,
        "findings": plain(stream.result.findings),
        "notes": list(block.notes),
    }


def _print(content: dict[str, Any]) -> None:
    screen = Screen()
    for one in content["recordings"]:
        channels = ", ".join(channel["name"] for channel in one["torques"]) or "no torques"
        rows = [(finding["severity"], finding["text"], finding["remedy"]) for finding in one["findings"]]
        worst = max((row[0] for row in rows), key=list(SEVERITY_STYLE).index, default="")
        found = f"{len(rows)} finding(s), the worst: {worst}" if rows else "nothing found"
        screen.line((", ".join(one["files"]), "bold"), f": {found}", always=True)
        screen.line(
            f"{one['samples']} samples, {one['duration']:.2f} s, about {one['rate']:.4g} Hz; "
            f"{len(one['joints'])} joints, {channels}; payload: {one['payload'] or 'none'}"
        )
        print_findings(screen, rows)
        for note in one["notes"]:
            screen.line(f"note: {note}", style="dim")
        screen.line()
