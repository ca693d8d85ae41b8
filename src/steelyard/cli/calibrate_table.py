"""A calibration on the screen: the verdict first, then accuracy, parameters and what cannot be seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..calibration.fit.calibration import Calibration
from .identify_table import print_verdict
from .output import Column, Screen

_SHOWN = {"m": ("mm", 1e3), "rad": ("mrad", 1e3), "rad/(N m)": ("1e-6 rad/(N m)", 1e6), "m/N": ("1e-6 m/N", 1e6)}
_MOST_OUTLIERS = 20


def print_calibration(found: Calibration, content: Mapping[str, Any], out: Path | None, written: Sequence[str]) -> None:
    """Print verdict, accuracy, parameters, outliers and notes."""
    screen = Screen()
    screen.line(
        (content["robot"], "bold"),
        f"  {content['configurations']} configurations, {content['equations']} equations, {len(found.kept)} unknowns, "
        f"method: {content['method']}",
    )
    print_verdict(screen, found.verdict)
    screen.line()
    _print_accuracy(screen, content, "position errors, mm", "points", ("mean_mm", "rms_mm", "p95_mm", "max_mm"))
    if content["after"]["rotations"]:
        figures = ("rotation_mean_deg", "rotation_rms_deg", "rotation_p95_deg", "rotation_max_deg")
        screen.line()
        _print_accuracy(screen, content, "orientation errors, deg", "rotations", figures)
    screen.line()
    screen.line(_base(content))
    _print_parameters(screen, content)
    _print_rest(screen, content)
    for note in content["notes"]:
        screen.line(f"note: {note}", style="dim")
    if out is not None:
        screen.line(f"saved in {out}: {', '.join(['result.json', *written])}", always=True)


def _print_accuracy(screen: Screen, content: Mapping[str, Any], title: str, count: str, figures: Sequence[str]) -> None:
    """Print errors before and after at the same points; points that differ have a row ``before`` of their own."""
    own, held_out = content["validation"], content["cross_validated"]
    rows = [("before (base and markers fitted)", content["before"]), ("after, on the fit", content["after"])]
    if held_out is not None and held_out[count] != content["before"][count] and own is None:
        rows.append(("before, points held out", content["held_out_before"]))
    rows.append(("after, cross-validated", held_out))
    if own is not None:
        rows += [("before, validation file", own["before"]), ("after, validation file", own["after"])]
    columns = [Column("", "text"), *(Column(heading) for heading in (count, "mean", "rms", "95 %", "max"))]
    cells = [
        [name, str(row[count]), *(f"{row[what]:.3g}" for what in figures)]
        for name, row in rows
        if row is not None and row[count]
    ]
    screen.table(columns, cells, title=title)


def _base(content: Mapping[str, Any]) -> str:
    xyz, rpy = ([f"{number:.6g}" for number in content["base"][key]] for key in ("xyz", "rpy"))
    return (
        f"base in the measurement frame: xyz {', '.join(xyz)} m, rpy {', '.join(rpy)} rad; base_x ... base_rz below "
        "are what was added to its start"
    )


def _print_parameters(screen: Screen, content: Mapping[str, Any]) -> None:
    columns = [
        Column("parameter", "key"), Column("value"), Column("+- 95 %"), Column("unit", "word"),
        Column("meaning", "text"),
    ]  # fmt: skip
    rows = []
    for row in content["parameters"]:
        unit, scale = _SHOWN.get(row["unit"], (row["unit"], 1.0))
        half = (row["high"] - row["low"]) / 2
        rows.append([row["name"], f"{scale * row['value']:.4g}", f"{scale * half:.2g}", unit, row["meaning"]])
    screen.table(columns, rows)


def _print_rest(screen: Screen, content: Mapping[str, Any]) -> None:
    for row in content["outliers"][:_MOST_OUTLIERS]:
        what = "the whole configuration" if row["marker"] is None else f"marker {row['marker']}"
        screen.line(f"left out: pose {row['pose']}, {what}: {row['size_mm']:.3g} mm off", style="yellow")
    if len(content["outliers"]) > _MOST_OUTLIERS:
        screen.line(f"and {len(content['outliers']) - _MOST_OUTLIERS} more, see --json")
    reasons: dict[str, list[str]] = {}
    for row in content["invisible"]:
        reasons.setdefault(row["why"], []).append(row["name"])
    for why, names in reasons.items():
        screen.line(f"kept as it was: {', '.join(names)}: {why}", style="dim")
    for row in content["suspicions"]:
        screen.line(
            f"suspicious before any fit: pose {row['pose']}, marker {row['marker']}: distances to other markers are "
            f"off by {row['size_mm']:.3g} mm",
            style="yellow",
        )  # fmt: skip
    for row in content["validation"]["gross"][:_MOST_OUTLIERS] if content["validation"] else ():
        screen.line(
            f"far off in the validation file, and counted: pose {row['pose']}, marker {row['marker']}: "
            f"{row['size_mm']:.3g} mm off",
            style="yellow",
        )  # fmt: skip
    largest = max(content["weights"], key=lambda group: group["sigma"])
    smallest = min(content["weights"], key=lambda group: group["sigma"])
    screen.line(
        f"noise as estimated: {len(content['weights'])} groups, sigma {_size(smallest)} ({smallest['group']}) to "
        f"{_size(largest)} ({largest['group']}); {_shared(content['shared_part_of_noise'])}"
    )
    if content["workspace"] is not None:
        row = content["workspace"]
        screen.line(
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
