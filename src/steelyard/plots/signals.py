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
    """

    title: str
    unit: str
    lines: Mapping[str, Line]
    points: Mapping[str, Line] = field(default_factory=dict)
    levels: Mapping[str, float] = field(default_factory=dict)


def series_plot(joints: Sequence[JointSeries], x_title: str = "time [s]") -> Chart:
    """Return lines of every joint over one axis; zoom is linked (torques: P5 Figs. 4 to 7, P2 Fig. 3)."""
    chart = Chart(ROW, rows=len(joints), linked=True)
    named: set[str] = set()
    others = dict.fromkeys(name for joint in joints for name in joint.lines if name not in COLOURS)
    colours = COLOURS | {name: CYCLE[k % len(CYCLE)] for k, name in enumerate(others)}  # one colour in all rows
    for row, joint in enumerate(joints):
        for name, (x, y) in joint.lines.items():
            chart.add(
                row, x=numbers(x), y=numbers(y), name=plot_text(name), legendgroup=plot_text(name),
                showlegend=name not in named, mode="lines", line={"width": 1.2, "color": colours[name]},
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
