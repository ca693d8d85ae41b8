"""Values with intervals, bars and matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .base import COLOURS, Chart, numbers, plot_text

_SYMBOLS = ("circle", "diamond", "square", "x")


def interval_plot(names: Sequence[str], series: Mapping[str, tuple[np.ndarray, np.ndarray]], x_title: str) -> Chart:
    """Return values with their intervals, a line for each name, the first on top.

    Args:
        names: Names of the values.
        series: Values (n,) and half widths of their intervals, (n,) or below and above (2, n), by series; NaN where a
            series has none.
        x_title: Title of the axis.
    """
    several = max(0, len(series) - 2)
    chart = Chart(40 + (18 + 7 * several) * len(names))
    places = np.arange(len(names))
    for k, (name, (values, half)) in enumerate(series.items()):
        shift = 0.0 if len(series) == 1 else (0.6 if several else 0.3) * (k / (len(series) - 1) - 0.5)
        below, above = half if np.ndim(half) == 2 else (half, half)
        chart.add(
            x=numbers(values), y=numbers(places + shift), mode="markers", name=plot_text(name),
            marker={"size": 7, "color": COLOURS.get(name), "symbol": _SYMBOLS[k % len(_SYMBOLS)]},
            error_x={"type": "data", "symmetric": False, "array": numbers(above), "arrayminus": numbers(below),
                     "thickness": 1.2, "width": 3},
        )  # fmt: skip
    shown = [plot_text(name, 24) for name in names]
    chart.y_axis(tickvals=places.tolist(), ticktext=shown, autorange="reversed", zeroline=False)
    chart.x_axis(title=x_title)
    return chart


def bar_plot(
    names: Sequence[str],
    series: Mapping[str, np.ndarray],
    y_title: str,
    *,
    logarithmic: bool = False,
    levels: Mapping[str, float] | None = None,
) -> Chart:
    """Return bars side by side for each name, with levels as dashed lines."""
    chart = Chart(260)
    shown = [plot_text(name, 24) for name in names]
    chart.x_axis(type="category", tickangle=-45 if len(names) > 8 else 0)
    chart.y_axis(title=y_title, type="log" if logarithmic else "linear")
    for name, values in series.items():
        chart.add(
            type="bar", x=shown, y=numbers(values), name=plot_text(name), marker={"color": COLOURS.get(name)},
            showlegend=len(series) > 1,
        )  # fmt: skip
    for name, level in (levels or {}).items():
        chart.level(level, name)
    return chart


def matrix_plot(rows: Sequence[str], columns: Sequence[str], values: np.ndarray, title: str) -> Chart:
    """Return a matrix of numbers between -1 and 1 as colours."""
    chart = Chart(max(220, min(780, 40 + 14 * len(rows))))
    chart.add(
        type="heatmap", z=[[round(float(one), 4) for one in row] for row in values], zmin=-1, zmax=1,
        x=[plot_text(name, 16) for name in columns], y=[plot_text(name, 16) for name in rows],
        colorscale="RdBu", reversescale=True, colorbar={"title": {"text": title}, "thickness": 14},
    )  # fmt: skip
    chart.y_axis(autorange="reversed", type="category")
    chart.x_axis(type="category")
    return chart
