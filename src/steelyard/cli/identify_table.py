"""An identification on the screen: the verdict first, then what it rests on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.console import Console

from ..identification import Identification, LogFinding, PayloadBody
from ..judge import QUESTIONS, Verdict
from .check import print_findings
from .output import Column, Part, Screen

STYLE = {"good": "green", "fair": "yellow", "poor": "red", "-": "dim"}


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
    if out is not None:
        screen.line(f"saved: {out / 'result.json'}", always=True)


def print_verdict(screen: Screen, verdict: Verdict) -> None:
    """Print the grade, every question with its rows and thresholds, and the reasons with their remedies."""
    screen.line()
    screen.line("verdict: ", (verdict.grade, f"bold {STYLE[verdict.grade]}"), always=True)
    rows: list[list[Part]] = []
    for question, text in QUESTIONS.items():
        criteria = [row for row in verdict.criteria if row.question == question]
        if criteria:
            grade = verdict.questions[question]
            rows.append([(text, "bold"), "", "", "", (grade, f"bold {STYLE[grade]}")])
        for row in criteria:
            grade = row.grade or "-"
            rows.append([f"  {row.name}", row.text_value, row.good, row.fair, (grade, STYLE[grade])])
    columns = [Column("", "text"), *(Column(heading, "word") for heading in ("found", "good", "fair", "grade"))]
    screen.table(columns, rows)
    for reason in verdict.reasons:
        screen.line(f"- {reason.text}; ", (reason.remedy, "italic"))


def _print_findings(screen: Screen, found: Identification) -> None:
    """Print what the checks saw in the logs, the worst first."""
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
    white = np.mean([joint.expected_durbin_watson for joint in found.fit_error.joints])
    screen.line(
        f"torque errors below {found.unseen_error.cutoff:.3g} Hz: rms [N m or N], per cent of the torque, largest, rms "
        f"over the noise model's, and Durbin-Watson of the fit (white noise: {white:.2f})"
    )
    columns = [Column("joint", "key"), Column("torque", "key")]
    columns += [Column(heading) for heading in ("fit", "%", where, "%", "max", "/noise", "dw")]
    rows: list[list[Part]] = []
    for fit in found.fit_error.joints:
        other = unseen[fit.kind, fit.joint]
        noise = f"{other.noise_ratio:.2f}" if np.isfinite(other.noise_ratio) else ""
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
    numbers = dict(
        zip(judged.columns, zip(judged.values, judged.half_width(), judged.relative_sigma, strict=True), strict=True)
    )
    marks, settled = found.marks(), _settling_times(found)
    columns = [
        Column("parameter", "key"),
        Column("value"),
        Column("+- 95 %"),
        Column("sigma %"),
        Column("unit", "word"),
    ]
    columns += [Column("settled s")] if settled else []
    rows = []
    for base in found.equations.base.base:
        if base.kept not in numbers:
            continue
        value, half, relative = numbers[base.kept]
        cells = [base.name, f"{value:.4g}", f"{half:.2g}", f"{relative:.1f}", base.unit]
        cells += [settled.get(base.kept, "")] if settled else []
        rows.append([*cells, marks.get(base.kept, "")])
    screen.table([*columns, Column("caution", "text")], rows)


def _settling_times(found: Identification) -> dict[str, str]:
    """Return when each parameter came within 5 % of its last value for good, for methods that work through time."""
    history = found.fit.detail.history if found.fit.detail else None
    if history is None:
        return {}
    times = {
        name: history.settled_after(name, value)
        for name, value in zip(history.columns, history.values[:, -1], strict=True)
    }
    return {name: "never" if time is None else f"{time:.1f}" for name, time in times.items()}


def _print_endogeneity(screen: Screen, found: Identification) -> None:
    test = found.fit.detail.endogeneity if found.fit.detail else None
    if test is not None:
        screen.line()
        screen.line(
            f"Durbin-Wu-Hausman test of least squares on these rows: F = {test.statistic:.3g}, p = {test.p:.2g}; "
            f"farthest apart {found.base_parameter(test.worst).name}, by {test.worst_z:.1f} sigmas of the difference"
        )


def _print_left_out(screen: Screen, found: Identification) -> None:
    names = [found.base_parameter(step.name).name for step in found.reduction.steps]
    if names:
        screen.line()
        screen.line(
            f"not essential (rule '{found.reduction.rule}', in the order they went; {len(names)} of "
            f"{len(found.estimate.columns)}): {' '.join(names)}",
            style="dim",
        )
    if found.reduction.stopped:
        screen.line(f"note: {found.reduction.stopped}", style="dim")


def print_payload(screen: Screen, body: PayloadBody, *, always: bool = False) -> None:
    """Print mass, centre and inertia; the mass with ``--quiet`` too if it is what was asked for."""
    screen.line()
    screen.line(("payload", "bold"), f"  mass {body.mass[0]:.4g} +- {body.mass[1]:.2g} kg (one sigma)", always=always)
    if body.centre is not None and body.centre_sigma is not None:
        told = ", ".join(
            f"{1000 * c:.1f} +- {1000 * s:.1f}" for c, s in zip(body.centre, body.centre_sigma, strict=True)
        )
        screen.line(f"         centre {told} mm")
    if body.inertia_at_centre is not None and body.inertia_at_centre_sigma is not None:
        pairs = zip(
            ("XX", "XY", "XZ", "YY", "YZ", "ZZ"), body.inertia_at_centre, body.inertia_at_centre_sigma, strict=True
        )
        told = ", ".join(f"{name} {value:.3g} +- {sigma:.1g}" for name, value, sigma in pairs if np.isfinite(value))
        if told:
            screen.line(f"         inertia about its centre {told} kg m^2")
