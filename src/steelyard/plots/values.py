"""Values with intervals, bars and matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .base import COLOURS, compact, new_figure, plot_text

if TYPE_CHECKING:
    import plotly.graph_objects as go


def interval_plot(
    names: Sequence[str], series: Mapping[str, tuple[np.ndarray, np.ndarray]], x_title: str, height: int = 0
) -> go.Figure:
    """Return values with their intervals, a line for each name, the first on top.

    Args:
        names: Names of the values.
        series: Values (n,) and half widths of their intervals (n,), by series; NaN where a series has none.
        x_title: Title of the axis.
        height: Height in pixels; by the number of names if 0.
    """
    import plotly.graph_objects as go

    figure = new_figure(height or 120 + 18 * len(names))
    places = np.arange(len(names))
    for k, (name, (values, half)) in enumerate(series.items()):
        shift = 0.0 if len(series) == 1 else 0.3 * (k / (len(series) - 1) - 0.5)
        figure.add_trace(
            go.Scatter(
                x=compact(values), y=compact(places + shift), mode="markers", name=plot_text(name),
                marker={"size": 7, "color": COLOURS.get(name), "symbol": ("circle", "diamond", "square", "x")[k % 4]},
                error_x={"type": "data", "array": compact(half), "thickness": 1.2, "width": 3},
            )
        )  # fmt: skip
    figure.update_yaxes(
        tickvals=places.tolist(), ticktext=[plot_text(name, 24) for name in names], autorange="reversed", zeroline=False
    )
    figure.update_xaxes(title=x_title)
    return figure


def bar_plot(
    names: Sequence[str], series: Mapping[str, np.ndarray], y_title: str, *, logarithmic: bool = False,
    lines: Mapping[str, float] | None = None, height: int = 340,
) -> go.Figure:  # fmt: skip
    """Return bars side by side for each name, with levels as horizontal lines."""
    import plotly.graph_objects as go

    figure = new_figure(height, barmode="group")
    shown = [plot_text(name, 24) for name in names]
    for name, values in series.items():
        figure.add_trace(go.Bar(x=shown, y=compact(values), name=plot_text(name), marker_color=COLOURS.get(name)))
    for name, level in (lines or {}).items():
        figure.add_hline(
            level, line={"dash": "dash", "color": COLOURS["limit"]}, annotation_text=plot_text(name),
            annotation_position="top left",
        )  # fmt: skip
    figure.update_xaxes(type="category", tickangle=-45 if len(names) > 8 else 0)
    figure.update_yaxes(title=y_title, type="log" if logarithmic else "linear")
    return figure


def matrix_plot(rows: Sequence[str], columns: Sequence[str], values: np.ndarray, title: str) -> go.Figure:
    """Return a matrix of numbers between -1 and 1 as colours."""
    import plotly.graph_objects as go

    side = min(900, 160 + 14 * len(rows))
    figure = new_figure(max(320, side))
    figure.add_trace(
        go.Heatmap(
            z=compact(values), x=[plot_text(name, 16) for name in columns], y=[plot_text(name, 16) for name in rows],
            zmin=-1, zmax=1, colorscale="RdBu", reversescale=True, colorbar={"title": title, "thickness": 14},
        )
    )  # fmt: skip
    figure.update_yaxes(autorange="reversed", type="category")
    figure.update_xaxes(type="category")
    return figure
