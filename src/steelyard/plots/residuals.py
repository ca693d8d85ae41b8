"""Residuals as people look at them: histogram, correlation in time, spectrum, and against what may explain them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .base import COLOURS, Chart, numbers, plot_text, spread_sample

CELL = 270
"""Height of one of several small plots [pixels]."""
ACROSS = 3
_CLOUD = {"size": 3, "color": COLOURS["measured"], "opacity": 0.6}


HISTOGRAM_RANGE = 4.0
"""Standard deviations to which a histogram goes; what is beyond counts in its outermost bins."""


def histogram_plot(residuals: Mapping[str, np.ndarray]) -> Chart:
    """Return the distribution of each joint's residuals in their own deviations, with the Gaussian (P5 Fig. 3).

    The outermost bins hold all that is beyond them.
    """
    chart = _grid(list(residuals), "residual / standard deviation", "density")
    edges = np.linspace(-HISTOGRAM_RANGE, HISTOGRAM_RANGE, 41)
    middle, fine = (edges[1:] + edges[:-1]) / 2, np.linspace(-HISTOGRAM_RANGE, HISTOGRAM_RANGE, 161)
    gaussian = numbers(np.exp(-(fine**2) / 2) / np.sqrt(2 * np.pi))
    for k, values in enumerate(residuals.values()):
        deviation = float(np.std(values)) or 1.0
        density = np.histogram(
            np.clip((values - np.mean(values)) / deviation, -HISTOGRAM_RANGE, HISTOGRAM_RANGE), edges, density=True
        )[0]
        chart.add(
            k, type="bar", x=numbers(middle), y=numbers(density), name="residuals", showlegend=k == 0, legendgroup="r",
            marker={"color": COLOURS["measured"]}, width=float(edges[1] - edges[0]),
        )  # fmt: skip
        chart.add(
            k, x=numbers(fine), y=gaussian, name="Gaussian", mode="lines", showlegend=k == 0, legendgroup="g",
            line={"color": COLOURS["predicted"]},
        )  # fmt: skip
    return chart


def whiteness_plot(correlations: Mapping[str, tuple[np.ndarray, float]]) -> Chart:
    """Return the autocorrelation of each joint's residuals (lags from 1) with the band that white noise stays in.

    Args:
        correlations: Autocorrelation (k,) and half the width of the 95 % band, by joint.
    """
    chart = _grid(list(correlations), "lag [rows]", "autocorrelation")
    for k, (values, band) in enumerate(correlations.values()):
        chart.add(
            k, type="bar", x=numbers(np.arange(1, len(values) + 1)), y=numbers(values), showlegend=False,
            marker={"color": COLOURS["predicted"]},
        )  # fmt: skip
        chart.level(-band, place=k)
        chart.level(band, place=k)
    return chart


def signal_plot(signal: str, unit: str, joints: Mapping[str, tuple[np.ndarray, np.ndarray, str]]) -> Chart:
    """Return each joint's residuals against one signal, with the mean of every twentieth of them.

    Args:
        signal: What they are drawn against.
        unit: Its unit.
        joints: The signal (n,), the residuals (n,) and their unit, by joint.
    """
    chart = _grid(list(joints), f"{signal} [{unit}]", "residual")
    for k, (x, y, own) in enumerate(joints.values()):
        cloud = spread_sample(np.array([x, y]), 600)
        chart.add(
            k, x=numbers(cloud[0]), y=numbers(cloud[1]), mode="markers", name="residual", legendgroup="r",
            showlegend=k == 0, marker=_CLOUD,
        )  # fmt: skip
        at, mean = binned_mean(x, y)
        chart.add(
            k, x=numbers(at), y=numbers(mean), mode="lines", name="mean", legendgroup="m", showlegend=k == 0,
            line={"color": COLOURS["error"], "width": 2},
        )  # fmt: skip
        chart.y_axis(k, title=f"residual [{own}]")
    return chart


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
        line: Speeds and torques of the law (k,), (k,); None if it depends on more than the speed.
    """

    speed: np.ndarray
    torque: np.ndarray
    law: np.ndarray
    unit: str
    speed_unit: str
    line: tuple[np.ndarray, np.ndarray] | None = None


def friction_plot(joints: Mapping[str, FrictionCurve]) -> Chart:
    """Return friction against speed, a plot for each joint: the measured cloud and the fitted law."""
    chart = _grid(list(joints), "speed", "friction")
    for k, curve in enumerate(joints.values()):
        cloud = spread_sample(np.array([curve.speed, curve.torque]), 800)
        chart.add(
            k, x=numbers(cloud[0]), y=numbers(cloud[1]), mode="markers", name="measured", legendgroup="c",
            showlegend=k == 0, marker=_CLOUD,
        )  # fmt: skip
        law = curve.line or spread_sample(np.array([curve.speed, curve.law]), 400)
        chart.add(
            k, x=numbers(law[0]), y=numbers(law[1]), mode="lines" if curve.line else "markers", name="fitted law",
            legendgroup="l", showlegend=k == 0, line={"color": COLOURS["predicted"], "width": 2},
            marker={"size": 3, "color": COLOURS["predicted"]},
        )  # fmt: skip
        chart.x_axis(k, title=f"speed [{curve.speed_unit}]")
        chart.y_axis(k, title=f"friction [{curve.unit}]")
    return chart


def spectrum_plot(
    frequency: np.ndarray, lines: Mapping[str, np.ndarray], cutoffs: Mapping[str, float], unit: str
) -> Chart:
    """Return amplitude densities over frequency, both logarithmic, with cut-offs as vertical lines."""
    chart = Chart(320)
    chart.x_axis(type="log", title="frequency [Hz]")
    chart.y_axis(type="log", title=f"amplitude density [{unit}/√Hz]", exponentformat="power")
    for name, values in lines.items():
        positive = (frequency > 0) & (values > 0)
        chart.add(x=numbers(frequency[positive]), y=numbers(values[positive]), name=plot_text(name), mode="lines")
    for name, value in cutoffs.items():
        chart.level(value, f"{name} {value:.3g} Hz", vertical=True)
    return chart


def _grid(names: Sequence[str], x_title: str, y_title: str) -> Chart:
    """Return a chart with a small plot for each name, three in a row."""
    across = min(ACROSS, max(1, len(names)))
    rows = -(-len(names) // across)
    filled = [*names, *[""] * (rows * across - len(names))]
    chart = Chart(CELL, rows, across, filled)
    for k in range(len(filled)):
        chart.x_axis(k, title=x_title, visible=k < len(names))
        chart.y_axis(k, title=y_title, visible=k < len(names))
    return chart
