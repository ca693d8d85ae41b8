"""A calibration on the screen: the verdict first, then accuracy, parameters and what cannot be seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..calibrate.fit.calibration import Calibration
from .identify_table import print_verdict

_SHOWN = {"m": ("mm", 1e3), "rad": ("mrad", 1e3), "rad/(N m)": ("1e-6 rad/(N m)", 1e6), "m/N": ("1e-6 m/N", 1e6)}
_MOST_OUTLIERS = 20


def print_calibration(found: Calibration, content: Mapping[str, Any], out: Path | None, written: Sequence[str]) -> None:
    """Print verdict, accuracy, parameters, outliers and notes."""
    console = Console(highlight=False)
    console.print(
        f"[bold]{escape(content['robot'])}[/bold]  {content['configurations']} configurations, "
        f"{content['equations']} equations, {len(found.kept)} unknowns, method: {content['method']}"
    )
    print_verdict(console, found.verdict)
    console.print()
    console.print(_accuracy(content, "position errors, mm", "points", ("mean_mm", "rms_mm", "p95_mm", "max_mm")))
    if content["after"]["rotations"]:
        figures = ("rotation_mean_deg", "rotation_rms_deg", "rotation_p95_deg", "rotation_max_deg")
        console.print()
        console.print(_accuracy(content, "orientation errors, deg", "rotations", figures))
    console.print()
    console.print(_base(content), markup=False)
    console.print(_parameters(content))
    _print_rest(console, content)
    for note in content["notes"]:
        console.print(f"note: {escape(note)}", style="dim")
    if out is not None:
        console.print(f"saved in {out}: {', '.join(['result.json', *written])}")


def _accuracy(content: Mapping[str, Any], title: str, count: str, figures: Sequence[str]) -> Table:
    """Return errors before and after at the same points; points that differ have a row ``before`` of their own."""
    table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left", title=title)
    for heading in ("", count, "mean", "rms", "95 %", "max"):
        table.add_column(heading, justify="left" if not heading else "right")
    own, held_out = content["validation"], content["cross_validated"]
    rows = [("before (base and markers fitted)", content["before"]), ("after, on the fit", content["after"])]
    if held_out is not None and held_out[count] != content["before"][count] and own is None:
        rows.append(("before, points held out", content["held_out_before"]))
    rows.append(("after, cross-validated", held_out))
    if own is not None:
        rows += [("before, validation file", own["before"]), ("after, validation file", own["after"])]
    for name, row in rows:
        if row is not None and row[count]:
            table.add_row(name, str(row[count]), *(f"{row[what]:.3g}" for what in figures))
    return table


def _base(content: Mapping[str, Any]) -> str:
    xyz, rpy = ([f"{number:.6g}" for number in content["base"][key]] for key in ("xyz", "rpy"))
    return (
        f"base in the measurement frame: xyz {', '.join(xyz)} m, rpy {', '.join(rpy)} rad; base_x ... base_rz below "
        "are what was added to its start"
    )


def _parameters(content: Mapping[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("parameter", "value", "+- 95 %", "unit", "meaning"):
        table.add_column(heading, justify="right" if heading in ("value", "+- 95 %") else "left")
    for row in content["parameters"]:
        unit, scale = _SHOWN.get(row["unit"], (row["unit"], 1.0))
        half = (row["high"] - row["low"]) / 2
        table.add_row(
            escape(row["name"]), f"{scale * row['value']:.4g}", f"{scale * half:.2g}", escape(unit),
            escape(row["meaning"]),
        )  # fmt: skip
    return table


def _print_rest(console: Console, content: Mapping[str, Any]) -> None:
    for row in content["outliers"][:_MOST_OUTLIERS]:
        what = "the whole configuration" if row["marker"] is None else f"marker {row['marker']}"
        console.print(
            f"left out: pose {row['pose']}, {what}: {row['size_mm']:.3g} mm off", style="yellow", markup=False
        )
    if len(content["outliers"]) > _MOST_OUTLIERS:
        console.print(f"and {len(content['outliers']) - _MOST_OUTLIERS} more, see --json")
    reasons: dict[str, list[str]] = {}
    for row in content["invisible"]:
        reasons.setdefault(row["why"], []).append(row["name"])
    for why, names in reasons.items():
        console.print(f"kept as it was: {', '.join(names)}: {why}", style="dim", markup=False)
    for row in content["suspicions"]:
        console.print(
            f"suspicious before any fit: pose {row['pose']}, marker {row['marker']}: distances to other markers are "
            f"off by {row['size_mm']:.3g} mm",
            style="yellow", markup=False,
        )  # fmt: skip
    for row in content["validation"]["gross"][:_MOST_OUTLIERS] if content["validation"] else ():
        console.print(
            f"far off in the validation file, and counted: pose {row['pose']}, marker {row['marker']}: "
            f"{row['size_mm']:.3g} mm off",
            style="yellow", markup=False,
        )  # fmt: skip
    largest = max(content["weights"], key=lambda group: group["sigma"])
    smallest = min(content["weights"], key=lambda group: group["sigma"])
    console.print(
        f"noise as estimated: {len(content['weights'])} groups, sigma {_size(smallest)} ({smallest['group']}) to "
        f"{_size(largest)} ({largest['group']}); {_shared(content['shared_part_of_noise'])}",
        markup=False,
    )
    if content["workspace"] is not None:
        row = content["workspace"]
        console.print(
            f"predicted uncertainty over the workspace, relative to the robot's base (1 sigma, {row['configurations']} "
            f"configurations): median {row['median_mm']:.3g} mm, 95 % {row['p95_mm']:.3g} mm, worst "
            f"{row['worst_mm']:.3g} mm"
        )


def _shared(part: float | None) -> str:
    if part is None:
        return "what a configuration shares cannot be estimated from one target without repeats"
    return f"{100 * part:.0f} % of its variance is shared within a configuration"


def _size(group: Mapping[str, Any]) -> str:
    return f"{1e3 * group['sigma']:.3g} mm or mrad"
