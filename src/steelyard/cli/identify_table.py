"""An identification on the screen: the verdict first, then what it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..identify import Identification, LogFinding, PayloadBody
from ..judge import QUESTIONS, Verdict
from .check import findings_table

STYLE = {"good": "green", "fair": "yellow", "poor": "red", "-": "dim"}


def print_identification(
    found: Identification, left_out: list[str], out: Path | None, console: Console | None = None
) -> None:
    """Print verdict, errors by joint, parameters, payload and notes."""
    console = console or Console(highlight=False)
    model = found.equations.model
    console.print(
        f"[bold]{escape(model.robot.name)}[/bold]  measured torque: {model.measured}, payload: {model.payload}, "
        "method: "
        f"{found.estimate.method}, {len(found.training)} recording(s), {found.estimate.system.rows} rows"
    )
    print_verdict(console, found.verdict)
    _print_findings(console, found)
    console.print()
    _print_errors(console, found)
    console.print()
    console.print(_parameters(found))
    _print_left_out(console, found)
    _print_endogeneity(console, found)
    if found.payload is not None:
        print_payload(console, found.payload)
    for line in left_out:
        console.print(f"note: {escape(line)}", style="yellow")
    for note in found.notes:
        console.print(f"note: {escape(note)}", style="dim")
    if out is not None:
        console.print(f"saved: {out / 'result.json'}")


def print_verdict(console: Console, verdict: Verdict) -> None:
    """Print the grade, every question with its rows and thresholds, and the reasons with their remedies."""
    console.print(f"\nverdict: {_graded(verdict.grade, bold=True)}")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("", "found", "good", "fair", "grade"):
        table.add_column(heading, justify="left", no_wrap=True)
    for question, text in QUESTIONS.items():
        rows = [row for row in verdict.criteria if row.question == question]
        if rows:
            table.add_row(f"[bold]{text}[/bold]", "", "", "", _graded(verdict.questions[question], bold=True))
        for row in rows:
            table.add_row(
                f"  {escape(row.name)}", escape(row.text_value), escape(row.good), escape(row.fair),
                _graded(row.grade or "-"),
            )  # fmt: skip
    console.print(table)
    for reason in verdict.reasons:
        console.print(f"- {escape(reason.text)}; [italic]{escape(reason.remedy)}[/italic]")


def _graded(grade: str, *, bold: bool = False) -> str:
    style = f"bold {STYLE[grade]}" if bold else STYLE[grade]
    return f"[{style}]{grade}[/{style}]"


def _print_findings(console: Console, found: Identification) -> None:
    """Print what the checks saw in the logs, the worst first."""
    if not found.findings:
        return
    console.print("\n[bold]log findings[/bold]")
    alike: dict[tuple[str, str, str], list[LogFinding]] = {}
    for one in found.findings:
        alike.setdefault((one.severity, one.recording, one.kind), []).append(one)
    rows = []
    for first, *others in alike.values():
        also = f" (also {', '.join(one.joint or one.text for one in others)})" if others else ""
        rows.append((first.severity, f"{first.recording}: {first.text}{also}", first.remedy))
    console.print(findings_table(rows))


def _print_errors(console: Console, found: Identification) -> None:
    unseen = {(joint.kind, joint.joint): joint for joint in found.unseen_error.joints}
    where = "held out" if found.held_out else "unseen"
    white = np.mean([joint.expected_durbin_watson for joint in found.fit_error.joints])
    console.print(
        f"torque errors below {found.unseen_error.cutoff:.3g} Hz: rms [N m or N], per cent of the torque, largest, rms "
        f"over the noise model's, and Durbin-Watson of the fit (white noise: {white:.2f})"
    )
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    names = short_names([joint.joint for joint in found.fit_error.joints])
    for heading in ("joint", "torque", "fit", "%", where, "%", "max", "/noise", "dw"):
        table.add_column(heading, justify="left" if heading in ("joint", "torque") else "right", no_wrap=True)
    for fit in found.fit_error.joints:
        other = unseen[fit.kind, fit.joint]
        noise = f"{other.noise_ratio:.2f}" if np.isfinite(other.noise_ratio) else ""
        table.add_row(
            names[fit.joint], fit.kind, f"{fit.rms:.3g}", f"{fit.relative_percent:.2f}", f"{other.rms:.3g}",
            f"{other.relative_percent:.2f}", f"{other.maximum:.3g}", noise, f"{fit.durbin_watson:.2f}",
        )  # fmt: skip
    table.add_row(
        "all", "", "", f"{found.fit_error.relative_percent:.2f}", "", f"{found.unseen_error.relative_percent:.2f}",
        style="bold",
    )  # fmt: skip
    console.print(table)


def short_names(names: Sequence[str], width: int = 20) -> dict[str, str]:
    """Return names of at most ``width`` characters: without what all end in (``_joint``), then cut in the middle."""
    unique = list(dict.fromkeys(names))
    ending = ""
    if any(len(name) > width for name in unique) and all(name.endswith("_joint") for name in unique):
        ending = "_joint"
    found = {}
    for name in unique:
        short = name.removesuffix(ending)
        half = (width - 1) // 2
        found[name] = short if len(short) <= width else f"{short[: width - 1 - half]}~{short[-half:]}"
    return found


def _parameters(found: Identification) -> Table:
    """Return the parameters of the model that was judged: the essential ones, as they were fitted together."""
    judged = found.essential
    numbers = dict(
        zip(judged.columns, zip(judged.values, judged.half_width(), judged.relative_sigma, strict=True), strict=True)
    )
    marks, settled = found.marks(), _settling_times(found)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in (
        "parameter",
        "value",
        "+- 95 %",
        "sigma %",
        "unit",
        *(("settled s",) if settled else ()),
        "caution",
    ):
        table.add_column(
            heading, justify="left" if heading in ("parameter", "unit", "caution") else "right", no_wrap=True
        )
    for base in found.equations.base.base:
        if base.kept not in numbers:
            continue
        value, half, relative = numbers[base.kept]
        cells = [base.name, f"{value:.4g}", f"{half:.2g}", f"{relative:.1f}", base.unit]
        cells += [settled.get(base.kept, "")] if settled else []
        table.add_row(*cells, marks.get(base.kept, ""))
    return table


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


def _print_endogeneity(console: Console, found: Identification) -> None:
    test = found.fit.detail.endogeneity if found.fit.detail else None
    if test is not None:
        console.print(
            f"\nDurbin-Wu-Hausman test of least squares on these rows: F = {test.statistic:.3g}, p = {test.p:.2g}; "
            f"farthest apart {found.base_parameter(test.worst).name}, by {test.worst_z:.1f} sigmas of the difference"
        )


def _print_left_out(console: Console, found: Identification) -> None:
    names = [found.base_parameter(step.name).name for step in found.reduction.steps]
    if names:
        console.print(
            f"\nnot essential (rule '{found.reduction.rule}', in the order they went; {len(names)} of "
            f"{len(found.estimate.columns)}): {' '.join(names)}",
            style="dim",
        )
    if found.reduction.stopped:
        console.print(f"note: {escape(found.reduction.stopped)}", style="dim")


def print_payload(console: Console, body: PayloadBody) -> None:
    """Print mass, centre and inertia."""
    console.print(f"\n[bold]payload[/bold]  mass {body.mass[0]:.4g} +- {body.mass[1]:.2g} kg (one sigma)")
    if body.centre is not None and body.centre_sigma is not None:
        told = ", ".join(
            f"{1000 * c:.1f} +- {1000 * s:.1f}" for c, s in zip(body.centre, body.centre_sigma, strict=True)
        )
        console.print(f"         centre {told} mm")
    if body.inertia_at_centre is not None and body.inertia_at_centre_sigma is not None:
        pairs = zip(
            ("XX", "XY", "XZ", "YY", "YZ", "ZZ"), body.inertia_at_centre, body.inertia_at_centre_sigma, strict=True
        )
        told = ", ".join(f"{name} {value:.3g} +- {sigma:.1g}" for name, value, sigma in pairs if np.isfinite(value))
        console.print(f"         inertia about its centre {told} kg m^2" if told else "")
