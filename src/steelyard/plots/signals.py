"""Torques and other signals over time, a row for each joint, with one zoom for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from .base import COLOURS, CYCLE, ROW, Chart, numbers, plot_text

Line = tuple[np.ndarray, np.ndarray]
"""Times and values (k,), (k,)."""


@dataclass(frozen=True, eq=False)
class JointSeries:
    """Lines of one joint.

    Attributes:
        title: What the row is called.
        unit: Unit of the values.
        lines: Lines by name; names of ``COLOURS`` have their colour.
        points: Points worth a marker, by name.
        levels: Limits, drawn as dashed lines, by name.
        is_stepped: Whether a value holds from the point before to its own, as a time from sample to sample does.
    """

    title: str
    unit: str
    lines: Mapping[str, Line]
    points: Mapping[str, Line] = field(default_factory=dict)
    levels: Mapping[str, float] = field(default_factory=dict)
    is_stepped: bool = False


_DASHES = ("solid", "dash", "dot", "dashdot")


def series_plot(joints: Sequence[JointSeries], x_title: str = "time [s]") -> Chart:
    """Return lines of every joint over one axis; zoom is linked (torques: P5 Figs. 4 to 7, P2 Fig. 3)."""
    chart = Chart(ROW, rows=len(joints), linked=True)
    named: set[str] = set()
    others = dict.fromkeys(name for joint in joints for name in joint.lines if name not in COLOURS)
    # One style in all rows; when the colours begin again, the lines are dashed.
    styles = {name: {"color": colour} for name, colour in COLOURS.items()}
    for k, name in enumerate(others):
        styles[name] = {"color": CYCLE[k % len(CYCLE)], "dash": _DASHES[k // len(CYCLE) % len(_DASHES)]}
    for row, joint in enumerate(joints):
        shape = {"shape": "vh"} if joint.is_stepped else {}
        for name, (x, y) in joint.lines.items():
            chart.add(
                row, x=numbers(x), y=numbers(y), name=plot_text(name), legendgroup=plot_text(name),
                showlegend=name not in named, mode="lines", line={"width": 1.2, **styles[name], **shape},
            )  # fmt: skip
            named.add(name)
        for name, (x, y) in joint.points.items():
            if len(x):
                chart.add(
                    row, x=numbers(x), y=numbers(y), name=plot_text(name), legendgroup=plot_text(name),
                    showlegend=name not in named, mode="markers", meta="outlier",
                    marker={"size": 9, "symbol": "circle-open", "color": COLOURS["error"], "line": {"width": 2}},
                )  # fmt: skip
                named.add(name)
        for name, level in joint.levels.items():
            chart.level(level, name, row)
        chart.y_axis(row, title={"text": f"{plot_text(joint.title, 16)}<br>[{joint.unit}]", "standoff": 4})
    chart.x_axis(len(joints) - 1, title=x_title)
    return chart


NEAR = 3.0
"""Levels are drawn in a grid if they are within this many times the signal's size."""


def grid_plot(columns: Mapping[str, Sequence[JointSeries]], x_title: str = "time [s]") -> Chart:
    """Return signals in columns by name, a row for each joint; zoom along x is linked.

    Levels are drawn without their names, and only where the signal comes near them.
    """
    rows = max(len(column) for column in columns.values())
    titles = [name if row == 0 else "" for row in range(rows) for name in columns]
    chart = Chart(ROW, rows, len(columns), titles, linked=True, gap=0.12)
    named: set[str] = set()
    for place in range(rows * len(columns)):
        row, column = divmod(place, len(columns))
        joints = list(columns.values())[column]
        if row >= len(joints):
            chart.x_axis(place, visible=False)
            chart.y_axis(place, visible=False)
            continue
        _add_cell(chart, place, joints[row], named)
        first = next(iter(columns.values()))
        is_named = column > 0 and row < len(first) and first[row].title == joints[row].title
        title = "" if is_named else f"{plot_text(joints[row].title, 22)}<br>"
        text = {"text": f"{title}[{joints[row].unit}]", "standoff": 2, "font": {"size": 11}}
        chart.y_axis(place, title=text, nticks=5, tickfont={"size": 10})
        chart.x_axis(place, nticks=4, tickangle=0, tickfont={"size": 10})
        if row == len(joints) - 1:
            chart.x_axis(place, title=x_title, showticklabels=True)
    return chart


def _add_cell(chart: Chart, place: int, joint: JointSeries, named: set[str]) -> None:
    several = len(joint.lines) > 1
    for name, (x, y) in joint.lines.items():
        chart.add(
            place, x=numbers(x), y=numbers(y), name=plot_text(name), legendgroup=plot_text(name), mode="lines",
            showlegend=several and name not in named,
            line={"width": 1.2, "color": COLOURS.get(name, COLOURS["predicted"])},
        )  # fmt: skip
        named.add(name)
    values = np.concatenate([y[np.isfinite(y)] for _, y in joint.lines.values()])
    if not len(values):
        return
    low, high = float(values.min()), float(values.max())
    near = [level for level in joint.levels.values() if abs(level) <= NEAR * max(abs(low), abs(high))]
    for level in near:
        chart.level(level, place=place)
    if near:  # lines that are no trace do not widen an axis
        low, high = min(low, *near), max(high, *near)
        margin = 0.06 * ((high - low) or 1.0)
        chart.y_axis(place, range=[low - margin, high + margin])
