"""Printing of a design: figures, limits, predicted sigmas and weak parameters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console

from ..excitation import CRITERIA, NEAR_ZERO, Design, Figures, LimitUse, limit_uses
from .output import Column, Screen

MOST_LIMITS, MOST_WEAK, MOST_SIGMAS = 12, 8, 16


def print_design(design: Design, out: Path | None, files: Sequence[str], console: Console | None = None) -> None:
    """Print the motion, its figures beside random motions, the tightest limits and the weak parameters."""
    screen = Screen(console)
    _print_head(screen, design)
    _print_figures(screen, design.figures, design.baseline)
    _print_sigmas(screen, design)
    screen.line()
    screen.line(("limits", "bold"), " that were checked; the tightest of each kind, and those used most:")
    _print_limits(screen, design)
    _print_weak(screen, design)
    for note in design.notes:
        screen.line(f"note: {note}", style="dim")
    if out is not None:
        screen.line(f"saved in {out}: {', '.join(files)}, result.json, report.html", always=True)
        if "motion_010" in "".join(files):
            screen.line("run motion_010 first (10 % of the pace), then motion_050; record motion_100")


def _print_head(screen: Screen, design: Design) -> None:
    model, kind = design.model, design.settings.motion
    motion = "Fourier series" if kind == "fourier" else f"{kind} moves"
    screen.line(
        (model.robot.name, "bold"),
        f": {motion} of {design.trajectory.duration:.4g} s for {len(design.figures.names)} parameters; torque "
        f"{model.measured}{'' if model.payload == 'none' else f', payload {model.payload}'}",
    )
    screen.line(("proven", "bold"), f" at every instant: {'; '.join(design.checked)}")
    if design.limits.capsules:
        screen.line(f"capsules for links: {design.limits.capsules}")
    screen.line(("not checked", "bold"), f": {'; '.join(design.not_checked)}", style="yellow")
    described = "gamma of the goals" if design.goals else CRITERIA[design.objective].description
    screen.line(f"made small: {described} = ", (f"{design.value:.4g}", "bold"), always=True)
    for name, wanted, reached in design.goals:
        screen.line(f"  goal {name}: {wanted:.4g} wanted, {reached:.4g} reached")
    if design.is_interrupted:
        screen.line("the search was interrupted: this is the best proven motion so far", style="yellow")
    screen.line()


def _print_figures(screen: Screen, figures: Figures, random: Figures | None) -> None:
    named = [
        ("log10 det of the covariance", "log10_det_covariance"), ("condition number, as it is", "raw"),
        ("  columns at unit length", "normalised"), ("  rows over their noise", "weighted"),
    ]  # fmt: skip
    both = (figures, random)
    rows = [[label, *(_number(None if one is None else getattr(one, name)) for one in both)] for label, name in named]
    rows.append(["median relative sigma, %", *(_number(None if one is None else _median(one)) for one in both)])
    screen.table([Column("", "text"), Column("this motion"), Column("random motions")], rows)


def _median(figures: Figures) -> float:
    known = figures.relative_sigma[np.isfinite(figures.relative_sigma)]
    return 100 * float(np.median(known)) if len(known) else float("nan")


def _number(value: float | None) -> str:
    return "-" if value is None or np.isnan(value) else f"{value:.4g}"


def _print_sigmas(screen: Screen, design: Design) -> None:
    """Say how much better than random motions, and the sigmas themselves where they are few."""
    figures, random = design.figures, design.baseline
    if random is not None:
        ratio = float(np.median(random.sigma / figures.sigma))
        screen.line()
        screen.line(f"sigmas of random motions within the same limits: {ratio:.2g} times these (median)")
    if len(figures.names) <= MOST_SIGMAS:
        rows = zip(figures.names, figures.sigma, figures.relative_sigma, strict=True)
        screen.line(f"predicted sigmas: {', '.join(_sigma(*row) for row in rows)}")


def _sigma(name: str, sigma: float, relative: float) -> str:
    part = f" ({_percent(relative)})" if relative <= NEAR_ZERO else ""
    return f"{name} {sigma:.2g}{part}"


def _percent(part: float) -> str:
    return f"{100 * part:.2g} %" if part < 0.1 else f"{100 * part:.0f} %"


def _print_limits(screen: Screen, design: Design) -> None:
    columns = [
        Column("limit", "text"), Column("reached"), Column("allowed"), Column("unit", "word"), Column("used"),
        Column("at"),
    ]  # fmt: skip
    uses = limit_uses(design)
    tightest = list({one.kind: one for one in reversed(uses)}.values())
    others = [one for one in uses if one not in tightest]
    shown = tightest + others[: max(MOST_LIMITS - len(tightest), 0)]
    screen.table(columns, [_cells(one) for one in sorted(shown, key=lambda one: -one.tightness)])
    if len(uses) > len(shown):
        screen.line(f"and {len(uses) - len(shown)} more")


def _cells(one: LimitUse) -> list[str]:
    used = "" if one.used is None else f"{100 * one.used:.1f} %"
    return [one.name, f"{one.reached:.4g}", f"{one.sign} {one.limit:.4g}", one.unit, used, f"{one.instant:.2f} s"]


def _print_weak(screen: Screen, design: Design) -> None:
    if not np.isfinite(design.figures.relative_sigma).any():
        screen.line()
        screen.line("weak parameters cannot be listed because nominal values are missing")
        return
    weak = [one for one in design.weak if one.relative <= NEAR_ZERO]
    tiny = [one.name for one in design.weak if one.relative > NEAR_ZERO]
    if not design.weak:
        screen.line()
        screen.line("no parameter stays weak: every predicted sigma is below 20 % of its parameter")
    if weak:
        screen.line()
        screen.line(("weak", "bold"), ", predicted sigma above 20 % of the parameter, and what would help:")
    for remedy in dict.fromkeys(one.remedy for one in weak):
        alike = [f"{one.name} {_percent(one.relative)}" for one in weak if one.remedy == remedy]
        more = f" and {len(alike) - MOST_WEAK} more" if len(alike) > MOST_WEAK else ""
        screen.line(f"  {', '.join(alike[:MOST_WEAK])}{more}")
        screen.line(f"    {remedy}")
    if tiny:
        screen.line()
        screen.line(f"{len(tiny)} near zero beside their sigmas, not worth finding: {', '.join(tiny)}")
