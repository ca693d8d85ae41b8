"""An identification on the screen: the verdict first, then what it rests on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..identify import Identification, LogFinding, PayloadBody
from ..judge import Verdict
from .check import findings_table

STYLE = {"good": "green", "fair": "yellow", "poor": "red", "not judged": "dim"}


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
    console.print(_errors(found))
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
    """Print the grade, every row with its thresholds, and the reasons with their remedies."""
    style = STYLE[verdict.grade]
    console.print(f"\nverdict: [bold {style}]{verdict.grade}[/bold {style}]")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("", "found", "good", "fair", "grade"):
        table.add_column(heading, justify="left")
    for row in verdict.criteria:
        grade = row.grade or "not judged"
        style = STYLE[grade]
        table.add_row(
            row.name, escape(row.text_value), escape(str(row.good)), escape(str(row.fair)),
            f"[{style}]{grade}[/{style}]",
        )  # fmt: skip
    console.print(table)
    for reason in verdict.reasons:
        console.print(f"- {escape(reason.text)}; [italic]{escape(reason.remedy)}[/italic]")


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


def _errors(found: Identification) -> Table:
    unseen = {(joint.kind, joint.joint): joint for joint in found.unseen_error.joints}
    where = "held out" if found.held_out else "unseen"
    table = Table(
        box=None, pad_edge=False, header_style="bold", title_justify="left",
        title=f"torque errors below {found.unseen_error.cutoff:.3g} Hz: rms and per cent of the torque; "
        "over the noise; Durbin-Watson, and that of white noise",
    )  # fmt: skip
    headings = ("joint", "torque", "unit", "fit", "%", where, "%", "max", "/noise", "dw", "white")
    for heading in headings:
        table.add_column(heading, justify="left" if heading in ("joint", "torque", "unit") else "right", no_wrap=True)
    for fit in found.fit_error.joints:
        other = unseen[fit.kind, fit.joint]
        noise = f"{other.noise_ratio:.2f}" if np.isfinite(other.noise_ratio) else ""
        table.add_row(
            fit.joint, fit.kind, fit.unit, f"{fit.rms:.3g}", f"{fit.relative_percent:.2f}", f"{other.rms:.3g}",
            f"{other.relative_percent:.2f}", f"{other.maximum:.3g}", noise, f"{fit.durbin_watson:.2f}",
            f"{fit.expected_durbin_watson:.2f}",
        )  # fmt: skip
    table.add_row(
        "all", "", "", "", f"{found.fit_error.relative_percent:.2f}", "", f"{found.unseen_error.relative_percent:.2f}",
        style="bold",
    )  # fmt: skip
    return table


def _parameters(found: Identification) -> Table:
    estimate, essential = found.estimate, set(found.essential.columns)
    half = dict(zip(estimate.columns, estimate.half_width(), strict=True))
    rows = dict(
        zip(estimate.columns, zip(estimate.values, estimate.sigma, estimate.relative_sigma, strict=True), strict=True)
    )
    marks, settled = _bias_marks(found), _settling_times(found)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("parameter", "value", "+- 95 %", "sigma %", "unit", "settled s" if settled else ""):
        table.add_column(heading, justify="left" if heading in ("parameter", "unit", "") else "right", no_wrap=True)
    for base in found.equations.base.base:
        if base.kept not in essential:
            continue
        value, _, relative = rows[base.kept]
        table.add_row(
            base.name, f"{value:.4g}", f"{half[base.kept]:.2g}", f"{relative:.1f}", base.unit,
            settled.get(base.kept, marks.get(base.kept, "")),
        )  # fmt: skip
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


def _bias_marks(found: Identification) -> dict[str, str]:
    """Return the word beside each parameter that is biased, or would be by a delay that cannot be seen."""
    if found.bias is None:
        return {}
    exposed = () if found.bias.delays.has_common else found.bias.exposed
    return {**dict.fromkeys(exposed, "if in time"), **dict.fromkeys(found.bias.named, "biased")}


def _print_left_out(console: Console, found: Identification) -> None:
    names = [found.base_parameter(step.name).name for step in found.reduction.steps]
    if names:
        console.print(
            f"\nnot essential (rule '{found.reduction.rule}', in the order they went; {len(names)} of "
            f"{len(found.estimate.columns)}): {' '.join(names)}",
            style="dim",
        )


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
