"""``steelyard montecarlo``: a study of estimators on simulated experiments whose truth is known."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from ..errors import ConfigError
from ..estimators import methods_with_start
from ..files import require_files, robot_file
from ..plain_data import json_text
from .options import (
    DATA,
    OUTPUT,
    Effects,
    Json,
    Quiet,
    RobotName,
    Scheduler,
    Torque,
    comma_separated,
    numbers_from,
    quietly,
)
from .output import Column, ProgressBar, Screen, print_message
from .simulate import SCHEMA as SIMULATE_SCHEMA

if TYPE_CHECKING:
    from rich.console import Console

    from ..motion import Trajectory
    from ..robot import Robot
    from ..study import CaseVerdict, IntervalChecks, StudyConfiguration, StudyResult, StudySettings

SCHEMA = {
    "methods": tuple[str, ...], "seeds": int, "first_seed": int, "noise_levels": tuple[float, ...],
    "starts": tuple[float, ...], "processes": int, "scheduler": str,
}  # fmt: skip
RECORD_RATE = 200.0
"""Rate of the recordings where none is given [Hz]: enough for a motion of an arm, and runs stay short."""

_NOISES = ("motor_noise", "joint_noise", "position_noise", "disturbance")
_ONE_RUN = ("seed", "runs", "format")
"""Settings of ``steelyard simulate`` that are the study's here."""


def montecarlo(
    robot: RobotName,
    trajectory: Annotated[
        Path | None, Parameter(help="Motion (TOML); default: a random Fourier motion within the arm's limits.")
    ] = None,
    /,
    *,
    methods: Annotated[
        str | None, Parameter(help="Estimators, by commas, of those of 'steelyard identify'; default: wls,gls.")
    ] = None,
    seeds: Annotated[int | None, Parameter(help="Simulated experiments a noise level; default: 100.")] = None,
    first_seed: Annotated[int | None, Parameter(help="The first of their seeds; default: 0.")] = None,
    noise_levels: Annotated[
        str | None, Parameter(help="Factors of all noise of the experiment, by commas; default: 1.")
    ] = None,
    starts: Annotated[
        str | None,
        Parameter(help=f"How far off starts ({', '.join(methods_with_start())}) are, parts of each parameter: 0,0.2."),
    ] = None,
    rate: Annotated[float | None, Parameter(help="Rate of the recordings [Hz]; default: 200.")] = None,
    torque: Torque = None,
    effects: Effects = None,
    processes: Annotated[int | None, Parameter(help="Processes; the result is the same. Default: all cores.")] = None,
    scheduler: Scheduler = None,
    parameters: Annotated[
        bool, Parameter(negative="", group=OUTPUT, help="Also print a table of parameters for each case.")
    ] = False,
    config: Annotated[
        Path | None,
        Parameter(
            name="--config", group=DATA, help="TOML file: tables montecarlo, simulate and identify; flags win over it."
        ),
    ] = None,
    out: Annotated[
        Path | None, Parameter(name="--out", group=OUTPUT, help="Folder for the result, and for runs as they finish.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Compare estimators by bias, efficiency, coverage and failures over many simulated experiments."""
    require_files(robot_file(robot), trajectory, config)
    study = {
        "methods": comma_separated(methods), "seeds": seeds, "first_seed": first_seed,
        "noise_levels": numbers_from(noise_levels, "--noise-levels", ConfigError),
        "starts": numbers_from(starts, "--starts", ConfigError), "processes": processes,
        "scheduler": scheduler,
    }  # fmt: skip
    flags = {
        "montecarlo": study, "simulate": {"record_rate": rate},
        "identify": {"torque": torque, "effects": comma_separated(effects)},
    }  # fmt: skip
    with quietly(quiet):
        return _run(robot, trajectory, flags, config, out, json, parameters)


def _run(
    name: str,
    trajectory: Path | None,
    flags: Mapping[str, Mapping[str, Any]],
    config: Path | None,
    out: Path | None,
    json: bool,
    parameters: bool,
) -> int:
    """Run the study, print and save; return 2 if a method failed in every run."""
    from ..configuration import ROOT, Section, record_from
    from ..identification import SCHEMA as IDENTIFY_SCHEMA
    from ..motion import read_trajectory, write_trajectory
    from ..robot import load_robot
    from ..run import RunFolder, hashes_of
    from ..study import StudySettings, default_motion, study_configuration, study_to_json, times_to_json

    schemas = {"montecarlo": SCHEMA, "simulate": SIMULATE_SCHEMA, "identify": IDENTIFY_SCHEMA}
    tables = {table: _merged(config, table, schema, flags[table]) for table, schema in schemas.items()}
    processes = tables["montecarlo"].pop("processes", os.cpu_count() or 1)
    scheduler = tables["montecarlo"].pop("scheduler", None)
    study, robot = record_from(StudySettings, Section(tables["montecarlo"], ROOT, ConfigError)), load_robot(name)
    joints = [body.joint.name for body in robot.actuated]
    motion = default_motion(robot) if trajectory is None else read_trajectory(trajectory, joints)
    tables["simulate"], notes = _experiment(tables["simulate"], robot, motion)
    given = study_configuration(name, motion, tables["simulate"], tables["identify"])
    with RunFolder(out, "montecarlo") as run:
        found = _studied(given, study, out, processes, scheduler)
        content = {
            "robot": robot.name, "trajectory": None if trajectory is None else str(trajectory),
            "duration": motion.duration, **study_to_json(found),
        }  # fmt: skip
        content["notes"] = [*notes, *content["notes"]]
        fill = (lambda place, _: write_trajectory(motion, place / "motion.toml")) if trajectory is None else None
        inputs = hashes_of(Path(name), trajectory, config)
        report = partial(found.to_html, notes=notes)
        settings, seconds = {"robot": name, **tables}, times_to_json(found)
        run.save(settings, inputs, content, fill, seconds, report, report_has_times=True)
        if json:
            print(json_text("montecarlo", {**content, "seconds": seconds}))
        else:
            print_study(found, content, run.place, parameters)
    return 2 if any(verdict.failures == verdict.runs for verdict in found.verdicts) else 0


def _merged(config: Path | None, table: str, schema: Any, flags: Mapping[str, Any]) -> dict[str, Any]:
    from ..run import read_config

    settings = read_config(config, table, schema) if config else {}
    return {**settings, **{key: value for key, value in flags.items() if value is not None}}


def _experiment(table: Mapping[str, Any], robot: Robot, motion: Trajectory) -> tuple[dict[str, Any], list[str]]:
    """Return the settings of the experiment, with noise if none is given, and notes."""
    from ..study import default_noise

    settings = {key: value for key, value in table.items() if key not in _ONE_RUN}
    settings.setdefault("record_rate", RECORD_RATE)
    if any(name in settings for name in _NOISES):
        return settings, []
    noise = default_noise(robot, motion, settings.get("payload"))
    return {**settings, **noise}, ["no noise is given: white noise of 2 % of each joint's largest torque is taken"]


def _studied(
    given: StudyConfiguration, study: StudySettings, out: Path | None, processes: int, scheduler: str | None
) -> StudyResult:
    """Run the study; say after an interrupt which runs were saved."""
    from ..study import montecarlo

    folder = None if out is None else out / "runs"
    done = 0.0
    with ProgressBar("runs") as bar:

        def progress(so_far: float, total: float) -> None:
            nonlocal done
            done = so_far
            bar(so_far, total)

        try:
            return montecarlo(given, study, folder, processes, progress, scheduler=scheduler)
        except KeyboardInterrupt:
            saved = f"{done:g} runs are saved in '{folder}': the same command resumes from there"
            lost = "no run is saved; with --out DIR finished runs are, and the same command resumes from there"
            print_message(lost if folder is None else saved)
            raise


def print_study(
    found: StudyResult, content: Mapping[str, Any], out: Path | None, parameters: bool, console: Console | None = None
) -> None:
    """Print the table of cases, its findings as sentences, and notes."""
    screen = Screen(console)
    study = found.study
    screen.line(
        (content["robot"], "bold"),
        f": {study.seeds} simulated experiments of {content['duration']:g} s a noise level, "
        f"{len(found.parameters)} base parameters",
    )
    screen.line()
    _print_cases(screen, found.verdicts)
    for line in content["sentences"]:
        screen.line(f"- {line}", always=True)
    if parameters:
        for verdict in found.verdicts:
            screen.line()
            _print_parameters(screen, verdict)
    for note in content["notes"]:
        screen.line(f"note: {note}", style="dim")
    if out is not None:
        screen.line(f"saved: {out / 'result.json'}, report.html, timing.json, runs", always=True)


def _print_cases(screen: Screen, verdicts: Sequence[CaseVerdict]) -> None:
    title = (
        "worst bias in standard deviations of the estimates (* significant), rms error over the Cramer-Rao sigma, "
        "coverage of 95 % intervals, means and variances within their intervals (68 and 90 % expected), CPU time of "
        "an estimation"
    )
    chosen = [part for part in _COLUMNS if part.heading not in _ONLY_IF_SOME or any(map(part.text, verdicts))]
    rows = [[part.text(verdict) for part in chosen] for verdict in verdicts]
    kinds: dict[str, Literal["key"]] = dict.fromkeys(("method", "noise", "start"), "key")
    columns = [Column(part.heading, kinds.get(part.heading, "figure")) for part in chosen]
    screen.table(columns, rows, title=title, gap=1)


def _print_parameters(screen: Screen, verdict: CaseVerdict) -> None:
    case = verdict.case
    start = "" if case.start is None else f", start off by {100 * case.start:g} %"
    headings = ("parameter", "true", "bias", "+-", "spread", "reported\nsigma", "bound", "effi-\nciency", "cover-\nage")
    rows = []
    for one in verdict.parameters:
        low, high = one.bias_interval
        rows.append([
            one.name, f"{one.true:.4g}", f"{one.bias:.2g}{_star(one.is_biased)}", f"{(high - low) / 2:.2g}",
            f"{one.spread:.2e}", f"{one.reported_sigma:.2e}", _number(one.bound_sigma, ".2e"),
            _number(one.efficiency, ".2f"), f"{_percent(one.coverage)}{_star(one.is_overconfident)}",
        ])  # fmt: skip
    first, *others = headings
    columns = [Column(first, "key"), *map(Column, others)]
    screen.table(columns, rows, title=f"{case.method}, noise x {case.noise_level:g}{start}", gap=1)


def _bias_text(verdict: CaseVerdict) -> str:
    worst = verdict.worst_bias
    return "" if worst is None else f"{worst.bias_in_sigmas:+.2f}{_star(worst.is_biased)} {worst.name}"


def _coverage_text(verdict: CaseVerdict) -> str:
    least = verdict.smallest_coverage
    return "" if least is None else f"{_percent(least.coverage)}{_star(least.is_overconfident)} {least.name}"


def _checks(verdict: CaseVerdict) -> IntervalChecks | None:
    """Return P4's checks; without a bound the spread is compared with the reported sigmas."""
    by_bound = verdict.checks_by_bound
    return verdict.checks_as_reported if by_bound is None or by_bound.variances is None else by_bound


def _star(is_significant: bool) -> str:
    return "*" if is_significant else ""


def _number(value: float | None, style: str) -> str:
    return "" if value is None else f"{value:{style}}"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"


def _time(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


@dataclass(frozen=True)
class _Column:
    heading: str
    text: Callable[[CaseVerdict], str]


_ONLY_IF_SOME = ("start",)
_COLUMNS = (
    _Column("method", lambda verdict: verdict.case.method),
    _Column("noise", lambda verdict: f"{verdict.case.noise_level:g}"),
    _Column("start", lambda verdict: "" if verdict.case.start is None else f"{verdict.case.start:g}"),
    _Column("worst bias", _bias_text),
    _Column("rms/\nbound", lambda verdict: _number(verdict.rms_over_bound, ".2f")),
    _Column("cover-\nage", lambda verdict: _percent(verdict.mean_coverage)),
    _Column("smallest", _coverage_text),
    _Column("means\nin", lambda verdict: "" if (one := _checks(verdict)) is None else _percent(one.means)),
    _Column("var.\nin", lambda verdict: "" if (one := _checks(verdict)) is None else _percent(one.variances)),
    _Column("failed", lambda verdict: _percent(verdict.failures / verdict.runs)),
    _Column("time\na run", lambda verdict: _time(verdict.seconds)),
)
