"""Residuals as people look at them: histogram, correlation in time, spectrum, and against what may explain them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .base import COLOURS, compact, new_figure, plot_text, spread_sample, subplots

if TYPE_CHECKING:
    import plotly.graph_objects as go

CELL = 230
"""Height of one of several small plots [pixels]."""
ACROSS = 3


def histogram_plot(residuals: Mapping[str, np.ndarray]) -> go.Figure:
    """Return the distribution of each joint's residuals in their own deviations, with the Gaussian (P5 Fig. 3)."""
    import plotly.graph_objects as go

    figure, places = _grid(list(residuals), "residual / standard deviation", "density")
    edges = np.linspace(-4, 4, 41)
    middle, fine = (edges[1:] + edges[:-1]) / 2, np.linspace(-4, 4, 161)
    for k, (values, (row, col)) in enumerate(zip(residuals.values(), places, strict=True)):
        deviation = float(np.std(values)) or 1.0
        density = np.histogram(np.clip((values - np.mean(values)) / deviation, -4, 4), edges, density=True)[0]
        figure.add_trace(
            go.Bar(
                x=compact(middle), y=compact(density), name="residuals", showlegend=k == 0, legendgroup="r",
                marker_color=COLOURS["measured"], width=edges[1] - edges[0], hoverinfo="y",
            ),
            row=row, col=col,
        )  # fmt: skip
        figure.add_trace(
            go.Scatter(
                x=compact(fine), y=compact(np.exp(-(fine**2) / 2) / np.sqrt(2 * np.pi)), name="Gaussian", mode="lines",
                showlegend=k == 0, legendgroup="g", line={"color": COLOURS["predicted"]},
            ),
            row=row, col=col,
        )  # fmt: skip
    return figure


def whiteness_plot(correlations: Mapping[str, tuple[np.ndarray, float]]) -> go.Figure:
    """Return the autocorrelation of each joint's residuals (lags from 1) with the band that white noise stays in.

    Args:
        correlations: Autocorrelation (k,) and half the width of the 95 % band, by joint.
    """
    import plotly.graph_objects as go

    figure, places = _grid(list(correlations), "lag [rows]", "autocorrelation")
    for (values, band), (row, col) in zip(correlations.values(), places, strict=True):
        lags = np.arange(1, len(values) + 1)
        bar = go.Bar(x=lags, y=compact(values), showlegend=False, marker_color=COLOURS["predicted"])
        figure.add_trace(bar, row=row, col=col)
        for level in (-band, band):
            figure.add_hline(level, line={"dash": "dash", "color": COLOURS["limit"], "width": 1}, row=row, col=col)
    return figure


def signal_plot(signal: str, unit: str, joints: Mapping[str, tuple[np.ndarray, np.ndarray, str]]) -> go.Figure:
    """Return each joint's residuals against one signal, with the mean of every twentieth of them.

    Args:
        signal: What they are drawn against.
        unit: Its unit.
        joints: The signal (n,), the residuals (n,) and their unit, by joint.
    """
    import plotly.graph_objects as go

    figure, places = _grid(list(joints), f"{signal} [{unit}]", "residual")
    for k, ((x, y, own), (row, col)) in enumerate(zip(joints.values(), places, strict=True)):
        cloud = spread_sample(np.array([x, y]), 600)
        figure.add_trace(
            go.Scatter(
                x=compact(cloud[0]), y=compact(cloud[1]), mode="markers", name="residual", legendgroup="r",
                showlegend=k == 0, marker={"size": 3, "color": COLOURS["measured"], "opacity": 0.6},
            ),
            row=row, col=col,
        )  # fmt: skip
        at, mean = binned_mean(x, y)
        figure.add_trace(
            go.Scatter(
                x=compact(at), y=compact(mean), mode="lines", name="mean", legendgroup="m", showlegend=k == 0,
                line={"color": COLOURS["error"], "width": 2},
            ),
            row=row, col=col,
        )  # fmt: skip
        figure.update_yaxes(title=f"residual [{own}]", row=row, col=col)
    return figure


def binned_mean(x: np.ndarray, y: np.ndarray, bins: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Return the means of x and y in bins of equally many points."""
    order = np.argsort(x, kind="stable")
    parts = [part for part in np.array_split(order, min(bins, max(1, len(x)))) if len(part)]
    return np.array([x[part].mean() for part in parts]), np.array([y[part].mean() for part in parts])


@dataclass(frozen=True, eq=False)
class FrictionCurve:
    """Friction of one joint.

    Attributes:
        speed: Speeds (n,) [rad/s or m/s].
        torque: Measured torque less all but friction in the model (n,) [N m or N].
        law: The fitted law at these speeds (n,).
        unit: Unit of the torque.
        speed_unit: Unit of the speed.
    """

    speed: np.ndarray
    torque: np.ndarray
    law: np.ndarray
    unit: str
    speed_unit: str


def friction_plot(joints: Mapping[str, FrictionCurve]) -> go.Figure:
    """Return friction against speed, a plot for each joint: the measured cloud and the fitted law."""
    import plotly.graph_objects as go

    figure, places = _grid(list(joints), "speed", "friction")
    for k, (curve, (row, col)) in enumerate(zip(joints.values(), places, strict=True)):
        cloud = spread_sample(np.array([curve.speed, curve.torque]), 800)
        figure.add_trace(
            go.Scatter(
                x=compact(cloud[0]), y=compact(cloud[1]), mode="markers", name="measured", legendgroup="c",
                showlegend=k == 0, marker={"size": 3, "color": COLOURS["measured"], "opacity": 0.6},
            ),
            row=row, col=col,
        )  # fmt: skip
        law = spread_sample(np.array([curve.speed, curve.law])[:, np.argsort(curve.speed)], 400)
        figure.add_trace(
            go.Scatter(
                x=compact(law[0]), y=compact(law[1]), mode="lines", name="fitted law", legendgroup="l",
                showlegend=k == 0, line={"color": COLOURS["predicted"], "width": 2},
            ),
            row=row, col=col,
        )  # fmt: skip
        figure.update_xaxes(title=f"speed [{curve.speed_unit}]", row=row, col=col)
        figure.update_yaxes(title=f"friction [{curve.unit}]", row=row, col=col)
    return figure


def spectrum_plot(
    frequency: np.ndarray, lines: Mapping[str, np.ndarray], cutoffs: Mapping[str, float], unit: str
) -> go.Figure:
    """Return amplitude densities over frequency, both logarithmic, with cut-offs as vertical lines."""
    import plotly.graph_objects as go

    figure = new_figure(380)
    for name, values in lines.items():
        positive = (frequency > 0) & (values > 0)
        figure.add_trace(
            go.Scatter(x=compact(frequency[positive]), y=compact(values[positive]), name=plot_text(name), mode="lines")
        )
    for name, value in cutoffs.items():
        figure.add_vline(
            value, line={"dash": "dash", "color": COLOURS["limit"]}, annotation_text=plot_text(name),
            annotation_position="top",
        )  # fmt: skip
    figure.update_xaxes(type="log", title="frequency [Hz]")
    figure.update_yaxes(type="log", title=f"amplitude density [{unit}/√Hz]", exponentformat="power")
    return figure


def correlation_plot(names: Sequence[str], correlation: np.ndarray) -> go.Figure:
    """Return a matrix of correlations (c, c) between parameters."""
    from .values import matrix_plot

    return matrix_plot(names, names, correlation, "correlation")


def _grid(names: Sequence[str], x_title: str, y_title: str) -> tuple[go.Figure, list[tuple[int, int]]]:
    """Return a figure with a small plot for each name, three in a row, and their places."""
    across = min(ACROSS, max(1, len(names)))
    rows = -(-len(names) // across)
    figure = subplots(rows, 80 + CELL * rows, names, across, horizontal_spacing=0.08)
    places = [(k // across + 1, k % across + 1) for k in range(len(names))]
    for row, col in places:
        figure.update_xaxes(title=x_title, row=row, col=col)
        figure.update_yaxes(title=y_title, row=row, col=col)
    return figure, places
