"""``steelyard identify``: recordings to parameters, errors on unseen motion and a verdict."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from ..files import require_files, robot_file
from ..plain_data import json_text
from .model import SCHEMA as MODEL_SCHEMA
from .options import (
    DATA,
    DEFAULT_MODEL,
    ESTIMATOR,
    PREPARATION,
    Config,
    Json,
    Method,
    ModelOptions,
    Out,
    Quiet,
    RobotName,
    Root,
    comma_separated,
    given,
    in_folder,
    quietly,
)  # fmt: skip
from .output import Column, Part, Screen, Timing, print_findings, print_verdict
from .payload import print_payload

if TYPE_CHECKING:
    from rich.console import Console

    from ..identification import Identification, LogFinding
    from ..recording import Recording
    from ..robot import Robot

EXIT_CODES = {"good": 0, "fair": 0, "poor": 2}


@Parameter(name="*")
@dataclass(frozen=True)
class EstimatorOptions:
    """Options of the estimator."""

    method: Method = None
    option: Annotated[
        tuple[str, ...],
        Parameter(group=ESTIMATOR, help="Setting of the method, name=value (ekf: integrator=euler); may be repeated."),
    ] = ()
    covariance: Annotated[
        Literal["model", "classical", "sandwich", "block", "hac"] | None,
        Parameter(group=ESTIMATOR, help="Whose sigmas; default: model with gls, else classical."),
    ] = None
    reduction: Annotated[
        Literal["f", "stepwise", "rsd", "bic", "none"] | None,
        Parameter(group=ESTIMATOR, help="Rule for essential parameters; default: f."),
    ] = None
    protect: Annotated[
        tuple[str, ...], Parameter(group=ESTIMATOR, help="Parameter that the reduction must keep; may be repeated.")
    ] = ()
    threads: Annotated[
        int | None, Parameter(group=ESTIMATOR, help="Threads; the result is the same. Default: all cores.")
    ] = None


@Parameter(name="*")
@dataclass(frozen=True)
class PreparationOptions:
    """Options of the preparation of rows."""

    cutoff: Annotated[
        float | None, Parameter(group=PREPARATION, help="Low-pass of the positions [Hz]; default: from the data.")
    ] = None
    decimation: Annotated[
        int | None, Parameter(group=PREPARATION, help="Samples for one row; default: from the cut-off.")
    ] = None
    velocity: Annotated[
        Literal["differentiated", "recorded"] | None,
        Parameter(group=PREPARATION, help="Where velocities come from; default: differentiated."),
    ] = None
    standstill: Annotated[
        float | None,
        Parameter(
            group=PREPARATION, help="Speed below which a joint's own rows are left out; default: from its noise."
        ),
    ] = None
    delay: Annotated[
        float | None,
        Parameter(
            group=PREPARATION,
            help="By how much all torques are late against the positions [s]; they are put back. Default: 0.",
        ),
    ] = None
    evaluation_cutoff: Annotated[
        float | None,
        Parameter(group=PREPARATION, help="Low-pass under which torques are compared [Hz]; default: the cut-off."),
    ] = None


@Parameter(name="*")
@dataclass(frozen=True)
class DataOptions:
    """Options that say which recordings are used, and how."""

    validate: Annotated[
        tuple[Path, ...],
        Parameter(
            group=DATA, help="Recording to judge by, not fitted; may be repeated. Default: the last part of each."
        ),
    ] = ()
    hold_out: Annotated[
        float | None, Parameter(group=DATA, help="Part held out without --validate; default: 0.25.")
    ] = None
    keep_bad: Annotated[bool, Parameter(group=DATA, help="Use recordings although a check found them bad.")] = False
    add: Annotated[
        tuple[Path, ...],
        Parameter(group=DATA, help="Run folder whose recordings count too, without being read; may be repeated."),
    ] = ()
    config: Config = None
    table: Annotated[
        tuple[str, ...],
        Parameter(group=DATA, help="Table of --config that describes the logs; may be repeated. Default: recording."),
    ] = ("recording",)
    validate_table: Annotated[
        tuple[str, ...], Parameter(group=DATA, help="Table of --config that describes the recordings to judge by.")
    ] = ()
    root: Root = None


_DATA, _ESTIMATOR, _PREPARATION = DataOptions(), EstimatorOptions(), PreparationOptions()


def identify(
    robot: RobotName,
    /,
    *logs: Annotated[Path, Parameter(help="Recordings to fit; each says what its columns are, or --config does.")],
    data: DataOptions = _DATA,
    model: ModelOptions = DEFAULT_MODEL,
    estimator: EstimatorOptions = _ESTIMATOR,
    preparation: PreparationOptions = _PREPARATION,
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Identify an arm: parameters with sigmas, errors on unseen motion, and a verdict in plain words."""
    paths = in_folder(data.root, [*logs, *data.validate])
    require_files(robot_file(robot), *paths, *data.add, data.config)
    flags = given(model, estimator, preparation)
    if data.hold_out is not None:
        flags["hold_out"] = data.hold_out
    with quietly(quiet):
        return _run(robot, logs, data, _settings_table(flags, data.config), out, json)


def _settings_table(flags: dict[str, Any], config: Path | None) -> dict[str, Any]:
    """Return the ``[identify]`` table of a configuration file with the flags, which win."""
    from ..identification import SCHEMA, with_options
    from ..robot import gravity_vector, lock_positions
    from ..run import read_config

    table = {**read_config(config, "model", MODEL_SCHEMA), **read_config(config, "identify", SCHEMA)} if config else {}
    option, protect, effects = (flags.pop(key, None) for key in ("option", "protect", "effects"))
    table |= {**flags, "threads": flags.get("threads") or os.cpu_count() or 1}
    table |= {"effects": comma_separated(effects)} if effects is not None else {}
    table |= {"protected": list(protect)} if protect else {}
    table |= {"gravity": list(gravity_vector(table["gravity"]))} if "gravity" in table else {}
    table |= {"lock": lock_positions(table["lock"])} if "lock" in table else {}
    return with_options(table, option or ())


def _run(
    name: str, logs: Sequence[Path], data: DataOptions, table: dict[str, Any], out: Path | None, json: bool
) -> int:
    """Identify, print and save; return 2 for a poor verdict."""
    from ..identification import identify as identify_arm
    from ..identification import read_run, settings_from_table, write_run
    from ..robot import load_robot
    from ..run import RunFolder, hashes_of
    from .logs import hashes_of_recordings, usable_recordings

    settings, robot, timing = settings_from_table(table), load_robot(name), Timing()
    timing.stage("reading")
    training, unseen = _recordings(robot, logs, data, table)
    used, left_out = usable_recordings(training, data.keep_bad)
    with RunFolder(out, "identify") as saved:
        earlier = [read_run(run) for run in data.add]
        found = identify_arm(
            robot, used, unseen, settings, payload=table.get("payload"), earlier=earlier, stage=timing.stage
        )
        timing.finish()
        results = [run / "result.json" for run in data.add]
        inputs = {**hashes_of(Path(name), data.config, *results), **hashes_of_recordings([*used, *unseen])}
        # The number of threads does not change the result.
        decisive = {key: list(v) if isinstance(v, tuple) else v for key, v in table.items() if key != "threads"}
        content = {"robot": name, "logs": [str(log) for log in logs], **decisive}
        content |= {"add": [str(run) for run in data.add]} if data.add else {}
        content = write_run(saved, content, inputs, found, {"left_out": left_out}, timing.seconds)
        if json:
            print(json_text("identify", content))
        else:
            print_identification(found, left_out, saved.place)
    return EXIT_CODES[found.verdict.grade]


def _recordings(
    robot: Robot, logs: Sequence[Path], data: DataOptions, settings: Mapping[str, Any]
) -> tuple[list[Recording], list[Recording]]:
    """Read what is to be fitted and what is to be judged by; files named for validation are not fitted too."""
    from .logs import read_streams, streams_of

    validate = data.validate or [Path(path) for path in settings.get("validate", ())]
    unseen = []
    if validate or data.validate_table:
        tables = data.validate_table or data.table
        unseen = read_streams(streams_of(robot, validate, data.config, tables, data.root))
    streams = streams_of(robot, logs, data.config, data.table, data.root)
    if not logs and validate:
        names = {path.name for path in validate}
        streams = [s for s in streams if not {Path(table.path).name for table in s.plan.tables} & names]
    return read_streams(streams), unseen


def print_identification(
    found: Identification, left_out: list[str], out: Path | None, console: Console | None = None
) -> None:
    """Print verdict, errors by joint, parameters, payload and notes."""
    screen = Screen(console)
    model = found.equations.model
    screen.line(
        (model.robot.name, "bold"),
        f"  measured torque: {model.measured}, payload: {model.payload}, method: {found.estimate.method}, "
        f"{len(found.training)} recording(s), {found.estimate.system.rows} rows",
    )
    print_verdict(screen, found.verdict)
    _print_findings(screen, found)
    screen.line()
    _print_errors(screen, found)
    screen.line()
    _print_parameters(screen, found)
    _print_left_out(screen, found)
    _print_endogeneity(screen, found)
    if found.payload is not None:
        print_payload(screen, found.payload)
    for line in left_out:
        screen.line(f"note: {line}", style="yellow")
    for note in found.notes:
        screen.line(f"note: {note}", style="dim")
    screen.saved(out)


def _print_findings(screen: Screen, found: Identification) -> None:
    """Print the findings of the log checks, the worst first."""
    if not found.findings:
        return
    screen.line()
    screen.line("log findings", style="bold")
    alike: dict[tuple[str, str, str], list[LogFinding]] = {}
    for one in found.findings:
        alike.setdefault((one.severity, one.recording, one.kind), []).append(one)
    rows = []
    for first, *others in alike.values():
        also = f" (also {', '.join(one.joint or one.text for one in others)})" if others else ""
        rows.append((first.severity, f"{first.recording}: {first.text}{also}", first.remedy))
    print_findings(screen, rows)


def _print_errors(screen: Screen, found: Identification) -> None:
    unseen = {(joint.kind, joint.joint): joint for joint in found.unseen_error.joints}
    where = "held out" if found.held_out else "unseen"
    expected = [joint.expected_durbin_watson for joint in found.fit_error.joints]
    screen.line(
        f"torque errors below {found.unseen_error.cutoff:.3g} Hz: rms [N m or N], per cent of the torque, largest, rms "
        f"over the noise model's, and Durbin-Watson of the fit (white noise: {sum(expected) / len(expected):.2f})"
    )
    columns = [Column("joint", "key"), Column("torque", "key")]
    columns += [Column(heading) for heading in ("fit", "%", where, "%", "max", "/noise", "dw")]
    rows: list[list[Part]] = []
    for fit in found.fit_error.joints:
        other = unseen[fit.kind, fit.joint]
        noise = f"{other.noise_ratio:.2f}" if isfinite(other.noise_ratio) else ""
        rows.append([
            fit.joint, fit.kind, f"{fit.rms:.3g}", f"{fit.relative_percent:.2f}", f"{other.rms:.3g}",
            f"{other.relative_percent:.2f}", f"{other.maximum:.3g}", noise, f"{fit.durbin_watson:.2f}",
        ])  # fmt: skip
    everything = ("all", "", "", f"{found.fit_error.relative_percent:.2f}", "")
    rows.append([(cell, "bold") for cell in (*everything, f"{found.unseen_error.relative_percent:.2f}")])
    screen.table(columns, rows, gap=1)


def _print_parameters(screen: Screen, found: Identification) -> None:
    """Print the parameters of the model that was judged: the essential ones, as they were fitted together."""
    judged = found.essential
    figures = zip(judged.values, judged.half_width(), judged.relative_sigma, strict=True)
    numbers = dict(zip(judged.columns, figures, strict=True))
    marks, times = found.marks(), _settling_times(found)
    columns = [Column("parameter", "key"), *map(Column, ("value", "+- 95 %", "sigma %")), Column("unit", "word")]
    columns += [Column("settled s")] if times else []
    rows = []
    for base in found.equations.base.base:
        if base.column not in numbers:
            continue
        value, half, relative = numbers[base.column]
        cells = [base.name, f"{value:.4g}", f"{half:.2g}", f"{relative:.1f}", base.unit]
        cells += [times.get(base.column, "")] if times else []
        rows.append([*cells, marks.get(base.column, "")])
    screen.table([*columns, Column("caution", "text")], rows)


def _settling_times(found: Identification) -> dict[str, str]:
    """Return when each parameter came within 5 % of its last value for good, for methods that work through time."""
    history = found.fit.detail.history if found.fit.detail else None
    if history is None:
        return {}
    times = {
        name: history.converged_after(name, value)
        for name, value in zip(history.columns, history.values[:, -1], strict=True)
    }
    return {name: "never" if time is None else f"{time:.1f}" for name, time in times.items()}


def _print_endogeneity(screen: Screen, found: Identification) -> None:
    test = found.fit.detail.endogeneity if found.fit.detail else None
    if test is not None:
        screen.line()
        screen.line(
            f"Durbin-Wu-Hausman test of least squares on these rows: F = {test.statistic:.3g}, p = {test.p:.2g}; "
            f"farthest apart {found.equations.base.name_of[test.worst]}, by {test.worst_z:.1f} sigmas of the difference"
        )


def _print_left_out(screen: Screen, found: Identification) -> None:
    names = [found.equations.base.name_of[step.name] for step in found.reduction.steps]
    if names:
        screen.line()
        screen.line(
            f"not essential (rule '{found.reduction.rule}', in the order they went; {len(names)} of "
            f"{len(found.estimate.columns)}): {' '.join(names)}",
            style="dim",
        )
    if found.reduction.stopped:
        screen.line(f"note: {found.reduction.stopped}", style="dim")
