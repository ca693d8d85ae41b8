"""Torques and other signals over time, a row for each joint, with one zoom for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .base import COLOURS, ROW, compact, plot_text, subplots

if TYPE_CHECKING:
    import plotly.graph_objects as go

Line = tuple[np.ndarray, np.ndarray]
"""Times and values (k,), (k,)."""


@dataclass(frozen=True, eq=False)
class JointSeries:
    """Lines of one joint.

    Attributes:
        title: What the row is called.
        unit: Unit of the values.
        lines: Lines by name; ``measured``, ``predicted``, ``error``, ``reference`` and ``limit`` have their colours.
        points: Points worth a marker, by name.
        band: Half the width of a band about the predicted line, if known; points as those of it.
    """

    title: str
    unit: str
    lines: Mapping[str, Line]
    points: Mapping[str, Line]


def torque_plot(joints: Sequence[JointSeries]) -> go.Figure:
    """Return measured, predicted and error torque of every joint over time (P5 Figs. 4 to 7, P2 Fig. 3)."""
    return series_plot(joints, "time [s]")


def series_plot(joints: Sequence[JointSeries], x_title: str = "time [s]") -> go.Figure:
    """Return lines of every joint over one axis; zoom is linked."""
    import plotly.graph_objects as go

    figure = subplots(len(joints), 90 + ROW * len(joints), shared_xaxes=True)
    named: set[str] = set()
    for row, joint in enumerate(joints, 1):
        for name, (x, y) in joint.lines.items():
            colour = COLOURS.get(name)
            figure.add_trace(
                go.Scatter(
                    x=compact(x), y=compact(y), name=plot_text(name), legendgroup=name, showlegend=name not in named,
                    mode="lines", line={"width": 1.2, "color": colour}, connectgaps=False,
                ),
                row=row, col=1,
            )  # fmt: skip
            named.add(name)
        for name, (x, y) in joint.points.items():
            figure.add_trace(
                go.Scatter(
                    x=compact(x), y=compact(y), name=plot_text(name), legendgroup=name, showlegend=name not in named,
                    mode="markers", marker={"size": 8, "symbol": "circle-open", "color": COLOURS["error"]},
                    meta="outlier",
                ),
                row=row, col=1,
            )  # fmt: skip
            named.add(name)
        title = f"{plot_text(joint.title, 16)}<br>[{joint.unit}]"
        figure.update_yaxes(title={"text": title, "standoff": 4}, row=row, col=1)
    figure.update_xaxes(matches="x")
    figure.update_xaxes(title=x_title, row=len(joints), col=1)
    return figure
