"""How a design is printed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from ..design import CRITERIA, Design, Figures, Finding

MOST_CONSTRAINTS, MOST_WEAK = 12, 8


def print_design(design: Design, out: Path | None, files: Sequence[str]) -> None:
    """Print the motion, its figures beside random motions, the tightest limits and the weak parameters."""
    console = Console(highlight=False)
    told = "goals, gamma" if design.goals else CRITERIA[design.objective].told
    console.print(
        f"[bold]{design.model.robot.name}[/bold]: {design.settings.motion} motion of "
        f"{design.trajectory.duration:.4g} s, {told} [bold]{design.value:.4g}[/bold]"
    )
    if design.is_interrupted:
        console.print("the search was interrupted: this is the best proven motion so far", style="yellow")
    for name, wanted, reached in design.goals:
        console.print(f"  goal {name}: {wanted:.4g} wanted, {reached:.4g} reached")
    console.print(_figures(design.figures, design.baseline))
    console.print("\n[bold]limits[/bold], proven at every instant; those used most:")
    console.print(_constraints(design))
    _print_weak(console, design)
    for note in design.notes:
        console.print(f"note: {note}", style="dim")
    if out is not None:
        console.print(f"saved in {out}: {', '.join(files)}, result.json; start with the slowest")


def _figures(figures: Figures, random: Figures | None) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("", "this motion", "random motions"):
        table.add_column(heading, justify="left" if not heading else "right")
    rows = [
        ("condition number, as it is", "raw"), ("columns at unit length", "normalised"),
        ("rows over their noise", "weighted"), ("log10 det of the covariance", "log10_det_covariance"),
    ]  # fmt: skip
    for words, name in rows:
        table.add_row(words, *(_number(None if one is None else getattr(one, name)) for one in (figures, random)))
    table.add_row(
        "median relative sigma, %", *(_number(None if one is None else _median(one)) for one in (figures, random))
    )
    return table


def _median(figures: Figures) -> float:
    known = figures.relative_sigma[np.isfinite(figures.relative_sigma)]
    return 100 * float(np.median(known)) if len(known) else float("nan")


def _number(value: float | None) -> str:
    return "-" if value is None or np.isnan(value) else f"{value:.4g}"


def _constraints(design: Design) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("constraint", "worst", "limit", "used", "at, s"):
        table.add_column(heading, justify="left" if heading == "constraint" else "right")
    ordered = sorted(design.certificate.findings, key=lambda finding: -_used(finding))
    for finding in ordered[:MOST_CONSTRAINTS]:
        used = "-" if finding.limit == 0 else f"{100 * _used(finding):.1f} %"
        table.add_row(finding.name, f"{finding.worst:.4g}", f"{finding.limit:.4g}", used, f"{finding.instant:.2f}")
    if len(ordered) > MOST_CONSTRAINTS:
        table.add_row(f"and {len(ordered) - MOST_CONSTRAINTS} more", "", "", "", "")
    return table


def _used(finding: Finding) -> float:
    """Return how much of a limit is used; of a clearance, 1 where it is touched and less with every metre."""
    return 1 + finding.worst if finding.limit == 0 else finding.worst / finding.limit


def _print_weak(console: Console, design: Design) -> None:
    if not design.weak:
        console.print("\nno parameter stays weak: all predicted sigmas are below 20 % of the parameters")
        return
    console.print("\n[bold]weak parameters[/bold] (predicted sigma over 20 %), and what would help:")
    for weak in design.weak[:MOST_WEAK]:
        console.print(f"  {weak.name}: {100 * weak.relative:.0f} %; {weak.remedy}")
    if len(design.weak) > MOST_WEAK:
        console.print(f"  and {len(design.weak) - MOST_WEAK} more, in result.json")
