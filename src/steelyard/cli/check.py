"""``steelyard check``: checks of logs before any fit, read in blocks: memory does not grow with the log."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ..files import require_files, robot_file
from ..plain_data import json_text, plain
from ..text import for_terminal
from .options import DATA, OUTPUT, Json, Out, Quiet, Root, Table, in_folder, quietly
from .output import SEVERITY_STYLE, ProgressBar, Screen, print_findings, print_message

if TYPE_CHECKING:
    from ..identification import Diagnosed, Settings
    from ..recording import Finding, RecordingStream
    from ..report import PageSection
    from ..report.signals import CheckedSignals
    from ..robot import Robot

GOOD, POOR = 0, 2
NOT_ASKED = "no model was fitted: --no-model"


def check(
    robot: Annotated[str, Parameter(help="Catalogue name or robot file; or the folder of an identify run.")],
    /,
    *logs: Annotated[Path, Parameter(help="Recordings; each says what its columns are, or --config does.")],
    config: Annotated[
        Path | None, Parameter(name="--config", group=DATA, help="TOML file that says which columns are what.")
    ] = None,
    table: Table = "recording",
    root: Root = None,
    model: Annotated[
        bool,
        Parameter(
            group=DATA,
            negative="--no-model",
            help="Whether a model of the arm is fitted to look for wrong signs, delays, loads and the like.",
        ),
    ] = True,
    fix: Annotated[
        Path | None,
        Parameter(group=OUTPUT, help="Write a configuration that corrects what was found; data are not touched."),
    ] = None,
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Check recordings before any fit: stamps, gaps, units, signs, mounting, delays, loads; or an old model on them."""
    from ..errors import ConfigError
    from ..report.signals import CheckedSignals
    from ..robot import load_robot
    from ..run import RunFolder, hashes_of
    from .logs import streams_of

    if (Path(robot) / "result.json").is_file():
        return _check_run(Path(robot), logs, config, table, root, json=json, quiet=quiet)
    require_files(robot_file(robot), *in_folder(root, logs), config)
    if fix is not None and fix.exists():
        raise ConfigError(f"--fix {fix}: the file exists and is not overwritten; name another")
    arm, inputs, settings = load_robot(robot), hashes_of(Path(robot), config), _settings(config)
    with quietly(quiet), RunFolder(out, "check") as saved:
        streams = streams_of(arm, logs, config, (table,), root)
        signals = [None if out is None else CheckedSignals(arm) for _ in streams]
        recordings = [_summary(stream, inputs, lines) for stream, lines in zip(streams, signals, strict=True)]
        found, note = _diagnosed(arm, streams, recordings, config, table, settings) if model else ([], NOT_ASKED)
        by_model = [_to_json(one) for one in found]
        findings = [*_flat(recordings), *by_model]
        content = {"robot": arm.name, "recordings": recordings, "findings": findings, "model_note": note or None}
        report = partial(_report, arm, streams, signals, recordings, by_model)
        saved.save({"robot": robot, "logs": [str(log) for log in logs]}, inputs, content, report=report)
        print(json_text("check", content)) if json else _print(content)
        if fix is not None:
            _write_fix(fix, config, table, streams, found, quiet=json)
    return POOR if any(one["severity"] == "bad" for one in findings) else GOOD


def _diagnosed(
    arm: Robot,
    streams: Sequence[RecordingStream],
    recordings: Sequence[Mapping[str, Any]],
    config: Path | None,
    table: str,
    settings: Settings,
) -> tuple[list[Diagnosed], str]:
    """Return what a model of the arm shows of logs, or a note why none was fitted."""
    from ..errors import SteelyardError
    from ..identification import diagnose
    from .logs import read_streams, with_declared_source
    from .output import Timing

    spoilt = [one for one in recordings if any(finding["severity"] == "bad" for finding in one["findings"])]
    if spoilt:
        return [], "no model was fitted: mend what is bad first"
    if not all(one["torques"] for one in recordings):
        return [], "no model was fitted: not every recording has torques"
    timing = Timing()
    try:
        robot = with_declared_source(arm, config, (table,))
        found = diagnose(robot, read_streams(streams), settings, stage=timing.stage)
    except SteelyardError as error:
        return [], f"no model was fitted: {error}"
    finally:
        timing.finish()
    return list(found.findings), ""


def _settings(config: Path | None) -> Settings:
    """Return the settings of a configuration's table [identify] that concern the model and the preparation."""
    from ..identification import SCHEMA, settings_from_table
    from ..run import read_config

    given = read_config(config, "identify", SCHEMA) if config else {}
    return settings_from_table({"threads": os.cpu_count() or 1, **given, "select": False})


def _flat(recordings: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the findings of the checks without a model in the form of those with one."""
    return [
        {
            "code": one["kind"], "severity": one["severity"], "joint": one["joint"], "recording": recording["files"][0],
            "value": None, "interval": None, "unit": "", "text": one["text"], "remedy": one["remedy"],
        }
        for recording in recordings
        for one in recording["findings"]
    ]  # fmt: skip


def _to_json(one: Diagnosed | Finding) -> dict[str, Any]:
    return {key: value for key, value in plain(one).items() if key != "fix"}


def _write_fix(
    path: Path,
    config: Path | None,
    table: str,
    streams: Sequence[RecordingStream],
    by_model: Sequence[Diagnosed],
    *,
    quiet: bool,
) -> None:
    from ..errors import ConfigError
    from ..files import toml_document, write_aside
    from ..identification import corrected_configuration

    found = [*_of_all(streams), *by_model]
    if not any(one.fix for one in found):  # no error: what was found counts as it does without --fix
        print_message(f"--fix: nothing was found that a configuration can correct; '{path}' is not written")
        return
    document = toml_document(config, "the configuration", ConfigError) if config else {}
    write_aside(path, corrected_configuration(document, table, streams[0], found))
    if not quiet:
        Screen().line(f"saved: {path}", always=True)


def _of_all(streams: Sequence[RecordingStream]) -> list[Finding]:
    """Return the findings of the first log that a configuration corrects in all of them: it is one for all."""
    fixes = [[] if one.result is None else [found.fix for found in one.result.findings] for one in streams]
    first = streams[0].result
    return [] if first is None else [one for one in first.findings if one.fix and all(one.fix in own for own in fixes)]


def _check_run(
    run: Path,
    logs: Sequence[Path],
    config: Path | None,
    table: str,
    root: Path | None,
    *,
    json: bool,
    quiet: bool,
) -> int:
    """Check whether the model of a run still holds on logs."""
    from ..identification import check_model
    from .logs import run_and_recordings

    require_files(*in_folder(root, logs), config)
    with quietly(quiet):
        known, arm, recordings = run_and_recordings(run, None, logs, config, table, root)
        with ProgressBar("predicting") as progress:
            found = check_model(known, recordings, arm, progress=progress)
        error = found.prediction.error
        assert error is not None  # check_model refuses recordings without torques
        content = {
            "robot": arm.name, "run": str(run), "valid": found.is_valid,
            "relative_error_percent": error.relative_percent, "relative_error_percent_then": found.then_percent,
            "joints": [
                {"name": one.joint, "kind": one.kind, "rms": one.rms, "relative_error_percent": one.relative_percent}
                for one in error.joints
            ],
            "findings": [_to_json(one) for one in found.findings],
        }  # fmt: skip
        if json:
            print(json_text("check", plain(content)))
        else:
            screen = Screen()
            state = "the model still holds" if found.is_valid else "the model no longer describes this arm"
            state = state if found.is_judged else "these logs cannot judge the model"
            screen.line((arm.name, "bold"), f": {state}", always=True)
            if found.is_judged:
                screen.line(f"error {error.relative_percent:.3g} %, {found.then_percent:.3g} % when it was identified")
            print_findings(screen, [(one.severity, one.text, one.remedy) for one in found.findings])
    return POOR if any(one.severity == "bad" for one in found.findings) else GOOD


def _report(
    robot: Robot,
    streams: Sequence[RecordingStream],
    signals: Sequence[CheckedSignals | None],
    recordings: Sequence[Mapping[str, Any]],
    by_model: Sequence[Mapping[str, Any]],
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
    for one in by_model:
        severities[one["severity"]] += 1
    return page_html(check_page(robot, sections, by_model, severities, provenance))


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
        "findings": [_to_json(one) for one in stream.result.findings],
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
    by_model = content["findings"][sum(len(one["findings"]) for one in content["recordings"]) :]
    if content["model_note"] is None:
        worst = max((one["severity"] for one in by_model), key=list(SEVERITY_STYLE).index, default="")
        found = f"{len(by_model)} finding(s), the worst: {worst}" if by_model else "nothing found"
        screen.line(("with a model of the arm", "bold"), f": {found}", always=worst in ("warning", "bad"))
        print_findings(screen, [(one["severity"], one["text"], one["remedy"]) for one in by_model])
    if content["model_note"]:
        screen.line(f"note: {content['model_note']}", style="dim")
