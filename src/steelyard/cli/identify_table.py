"""An identification on the screen: verdict, errors by joint, parameters, the consistent arm, notes."""

from __future__ import annotations

from collections import Counter
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from .output import Column, Part, Screen, print_findings, print_verdict
from .payload import print_payload

if TYPE_CHECKING:
    from rich.console import Console

    from ..identification import Identification, LogFinding

SHOWN = 1.1
"""From this factor on widened intervals stand beside those of noise."""


def print_identification(
    found: Identification, left_out: list[str], out: Path | None, console: Console | None = None
) -> None:
    """Print verdict, errors by joint, parameters, payload and notes."""
    screen = Screen(console)
    model = found.equations.model
    screen.line(
        (model.robot.name, "bold"),
        f"  measured torque: {model.measured}, payload: {model.payload}, method: {found.fit.method_text}, "
        f"{len(found.training)} recording(s), {found.estimate.system.rows} rows",
    )
    print_verdict(screen, found.verdict)
    _print_findings(screen, found)
    screen.line()
    _print_errors(screen, found)
    screen.line()
    _print_parameters(screen, found)
    _print_nonlinear(screen, found)
    _print_left_out(screen, found)
    _print_standard(screen, found)
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
    _print_recordings(screen, found)


def _print_recordings(screen: Screen, found: Identification) -> None:
    """Print the errors of every unseen recording apart, with and without standstill."""
    parts = found.unseen_error.parts
    if len(parts) < 2:
        return
    screen.line()
    screen.line(
        f"{'held-out parts' if found.held_out else 'unseen recordings'} apart: error in per cent of the torque while "
        "joints move, the same of all samples, and samples near standstill"
    )
    rows: list[list[Part]] = [
        [
            one.label,
            f"{one.relative_percent:.2f}",
            f"{one.relative_percent_all_rows:.2f}",
            f"{one.standstill_percent:.0f}",
        ]
        for one in (*parts, found.unseen_error)
    ]
    rows[-1] = [(cell, "bold") for cell in ("all", *map(str, rows[-1][1:]))]
    screen.table([Column("recording", "key"), *map(Column, ("moving %", "all %", "standstill %"))], rows, gap=2)


def _print_parameters(screen: Screen, found: Identification) -> None:
    """Print the parameters of the model that was judged: the essential ones, as they were fitted together."""
    judged = found.essential
    figures = zip(judged.values, judged.half_width(), judged.relative_sigma, strict=True)
    numbers = dict(zip(judged.columns, figures, strict=True))
    marks, times = found.marks(), _settling_times(found)
    columns = [Column("parameter", "key"), *map(Column, ("value", "+- 95 %", "sigma %")), Column("unit", "word")]
    columns += [Column("settled s")] if times else []
    wider = _widened_widths(found)
    if wider:
        columns.insert(3, Column("widened"))
    rows = []
    for base in found.equations.base.base:
        if base.column not in numbers:
            continue
        value, half, relative = numbers[base.column]
        cells = [base.name, f"{value:.4g}", f"{half:.2g}", f"{relative:.1f}", base.unit]
        cells += [times.get(base.column, "")] if times else []
        if wider:
            cells.insert(3, f"{wider[base.column]:.2g}")
        rows.append([*cells, marks.get(base.column, "")])
    screen.table([*columns, Column("caution", "text")], rows)


def _widened_widths(found: Identification) -> dict[str, float]:
    """Return half the widths of the widened intervals by column; empty if none differs from the other by much."""
    wider = found.widening
    if wider is None or (wider.sigma < SHOWN * found.essential.sigma).all():
        return {}
    return dict(zip(wider.columns, wider.half_width().tolist(), strict=True))


def _print_nonlinear(screen: Screen, found: Identification) -> None:
    """Print Stribeck velocities, Dahl lengths, sign width and delay that were estimated."""
    rows: list[list[Part]] = [
        [one.title, f"{one.value:.4g}", f"{one.sigma:.2g}", f"{one.interval_95[0]:.4g} to {one.interval_95[1]:.4g}",
         one.unit, f"{one.given:.3g}"]
        for one in found.nonlinear
        if one.value is not None and one.interval_95 is not None
    ]  # fmt: skip
    if rows:
        screen.line()
        screen.line("nonlinear parameters, estimated together with those above", style="bold")
        columns = [Column("parameter", "key"), *map(Column, ("value", "sigma", "95 % interval"))]
        screen.table([*columns, Column("unit", "word"), Column("before")], rows)


def _print_standard(screen: Screen, found: Identification) -> None:
    """Print the links of the physically consistent arm, how it predicts, and where its values come from."""
    from ..robot import INERTIAL_NAMES

    standard = found.standard
    if standard is None or found.standard_error is None:
        return
    screen.line()
    screen.line(
        ("physically consistent arm", "bold"),
        f": unseen motion to {found.standard_error.relative_percent:.3g} % (free parameters: "
        f"{found.unseen_error_of_all.relative_percent:.3g} %)",
    )
    figures = dict(
        zip(standard.names, zip(standard.values, standard.sigma, standard.sources, strict=True), strict=True)
    )
    file = standard.model.robot.parameters
    prior = standard.prior
    contradicted = {one.link for one in prior.disagreements} if prior else set()
    if prior and not prior.chosen:
        contradicted |= set(prior.contradicted)
    rows: list[list[Part]] = []
    for body in standard.model.robot.bodies:
        ten = [figures[f"{symbol}{body.number}"] for symbol in INERTIAL_NAMES]
        mass, sigma, source = ten[9]
        known, count = file.get(f"M{body.number}"), Counter(source for _, _, source in ten)
        sources = ", ".join(f"{number} {source}" for source, number in count.most_common())
        rows.append([
            body.link, f"{mass:.4g}", _sigma_text(sigma, source), "" if known is None else f"{known:.4g}",
            *(f"{1000 * moment / mass:.1f}" if mass > 0 else "-" for moment, _, _ in ten[6:9]),
            f"{sources}; prior contradicts data" if body.link in contradicted else sources,
        ])  # fmt: skip
    headings = ("mass kg", "sigma", "file kg", "centre x mm", "y", "z")
    screen.table([Column("link", "key"), *map(Column, headings), Column("parameters from", "text")], rows, gap=1)
    for link, (_, most) in standard.implausible.items():
        screen.line(f"not a plausible mass: {link}, up to {most:.2g} kg would be", style="yellow")
    if standard.edges:
        # Data that are not quite those of a body draw what they do not show to where the rest is just possible.
        guess = "what the data do not show of them (mass, centre, inertia) is a guess, and with it torques under"
        what_next = "" if prior else f"; {guess} another gravity (--prior FILE decides)"
        screen.line(f"at the edge of what a body can be: {', '.join(standard.edges)}{what_next}", style="dim")
    for bound in standard.active:
        screen.line(f"active bound: {bound}", style="yellow")
    if standard.zeros:
        screen.line(f"held at zero: {', '.join(standard.zeros)}", style="dim")


def _sigma_text(sigma: float, source: str) -> str:
    """Return a sigma, or why a value has none."""
    if source in ("pinned", "bound"):
        return source
    if source == "robot file":
        return "-"
    return f"{sigma:.2g}" if isfinite(sigma) else ""


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
