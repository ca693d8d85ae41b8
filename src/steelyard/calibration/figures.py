"""Figures of a calibrated arm: errors before and after, noise, convergence, uncertainty, the arm with its errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import TYPE_CHECKING, Any

import numpy as np

from ..plots import COLOURS, Chart, add_arrows, arm_plot, bar_plot, interval_plot, numbers, plot_text
from ..report import arm_at
from ..robot import Robot
from .fit.accuracy import point_distances, position_equations, registered_residual
from .fit.stages import nominal_values

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from .application.calibrated_arm import AccuracyMap
    from .chain.problem import MeasuredProblem
    from .fit.calibration import Calibration
    from .fit.fit import Iteration
    from .fit.weights import SigmaGroup
    from .pipeline import CalibrationResult

SHOWN_UNITS = {"m": ("mm", 1e3), "rad": ("mrad", 1e3), "rad/(N m)": ("1e-6 rad/(N m)", 1e6), "m/N": ("1e-6 m/N", 1e6)}
"""Units in which errors of an arm are shown, and the factors to them."""

MOST_SHOWN = 80
"""Configurations in which the arm is drawn; of more, some evenly spread."""

_FEW_GROUPS = 30
_ARROW = 0.2
"""Length of most arrows before the calibration, as a part of the measured space."""


@dataclass(frozen=True, eq=False)
class PointErrors:
    """Errors of the measured points of a file, before and after the calibration; points with a distance or a position.

    Attributes:
        title: What was measured for: ``fitted measurements`` or ``validation file``.
        pose: Number of the configuration of each point (N,).
        poses: Names of the configurations.
        before: With the nominal arm, base, tool and markers fitted (N,) [m].
        after: With the calibrated arm (N,) [m].
        held_out: Predicted by a fit without the configuration (N,) [m]; NaN where there is none.
        is_left_out: Which points were left out of the fit as gross errors (N,).
    """

    title: str
    pose: np.ndarray
    poses: tuple[str, ...]
    before: np.ndarray
    after: np.ndarray
    held_out: np.ndarray
    is_left_out: np.ndarray

    def of_poses(self, values: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return configurations (k,) and the rms of values (N,) over the chosen points (N,) of each (k,)."""
        usable = chosen & np.isfinite(values)
        count = np.bincount(self.pose[usable], minlength=len(self.poses))
        total = np.bincount(self.pose[usable], values[usable] ** 2, minlength=len(self.poses))
        found = np.flatnonzero(count)
        return found, np.sqrt(total[found] / count[found])


def point_errors(result: CalibrationResult) -> tuple[PointErrors, ...]:
    """Return the errors of the fitted measurements, and of those to validate with if there are any."""
    found, problem = result.calibration, result.problem
    nominal = nominal_values(found.remaining, found.weighted)
    held_out = np.full(problem.equations.size, np.nan)
    held_out[found.used] = found.cross_validation.residual
    residuals = (problem.residual(nominal), found.residual, held_out)
    errors = [_errors("fitted measurements", problem, residuals, found.used)]
    others = result.others
    if others is not None:
        residuals = tuple(_validated(found, others, values) for values in (nominal, found.values))
        none, every = np.full(others.equations.size, np.nan), np.ones(others.equations.size, dtype=bool)
        errors.append(_errors("validation file", others, (*residuals, none), every))
    return tuple(errors)


def _validated(found: Calibration, others: MeasuredProblem, values: np.ndarray) -> np.ndarray:
    residual = others.residual(values)
    own = registered_residual(others, residual) if found.settings.validation_base == "own" else None
    return residual if own is None else own


def _errors(title: str, problem: MeasuredProblem, residuals: Sequence[np.ndarray], used: np.ndarray) -> PointErrors:
    equations = problem.equations
    rows, before = point_distances(equations, residuals[0])
    after, held_out = (point_distances(equations, one)[1] for one in residuals[1:])
    left_out = ~np.isin(rows, equations.row[used])
    return PointErrors(title, problem.measurements.pose[rows], equations.poses, before, after, held_out, left_out)


def error_chart(errors: Sequence[PointErrors]) -> Chart:
    """Return the error of every configuration before and after, rms over its points; a plot for each file."""
    chart = Chart(300, rows=len(errors), titles=[one.title for one in errors] if len(errors) > 1 else ())
    for row, one in enumerate(errors):
        good = ~one.is_left_out
        series = {
            "before": (one.of_poses(one.before, good), "error", "circle-open"),
            "after": (one.of_poses(one.after, good), "predicted", "circle"),
            "after, held out": (one.of_poses(one.held_out, good), "reference", "diamond-open"),
            "left out": (one.of_poses(one.after, one.is_left_out), "other", "x"),
        }
        # A click shows the arm there, where it is drawn in every configuration of this file.
        meta = "outlier" if row == 0 and len(one.poses) <= MOST_SHOWN else None
        for name, ((poses, values), colour, symbol) in series.items():
            if len(poses):
                chart.add(
                    row, x=numbers(poses + 1), y=numbers(1e3 * values), mode="markers", name=name, legendgroup=name,
                    showlegend=row == 0, meta=meta, text=[plot_text(one.poses[pose]) for pose in poses],
                    hovertemplate="%{text}: %{y:.3g} mm",
                    marker={"size": 7, "symbol": symbol, "color": COLOURS[colour]},
                )  # fmt: skip
        chart.y_axis(row, title="error, rms [mm]", type="log", tickformat="~g", nticks=6)
        chart.x_axis(row, title="configuration [number]", range=[0.3, len(one.poses) + 0.7], zeroline=False)
    return chart


def parameter_charts(rows: Sequence[Mapping[str, Any]]) -> dict[str, Chart]:
    """Return how far the unknowns of the arm are from their nominal values, with intervals, a figure for each unit.

    Args:
        rows: Parameters as in ``result.json``.
    """
    charts = {}
    arm = [row for row in rows if row["group"] in ("joint", "compliance", "weight")]
    for unit in dict.fromkeys(row["unit"] for row in arm):
        own = [row for row in arm if row["unit"] == unit]
        shown, scale = SHOWN_UNITS.get(unit, (unit, 1.0))
        off = scale * np.array([row["value"] - row["nominal"] for row in own])
        half = scale * np.array([(row["high"] - row["low"]) / 2 for row in own])
        charts[shown] = interval_plot([row["name"] for row in own], {"predicted": (off, half)},
                                      f"found less nominal [{shown}]")  # fmt: skip
        charts[shown].data[-1] |= {"showlegend": False, "name": "found"}
        charts[shown].y_axis(title="unknown")
    return charts


def weight_chart(groups: Sequence[SigmaGroup]) -> Chart:
    """Return the standard deviation of every noise group."""
    unit = "mm or mrad" if any("r" in group.name.split()[-1] for group in groups) else "mm"
    sigma = 1e3 * np.array([group.sigma for group in groups])
    if len(groups) <= _FEW_GROUPS:
        bars = bar_plot([group.name for group in groups], {"predicted": sigma}, f"sigma [{unit}]")
        bars.x_axis(title="group of equations")
        return bars
    chart = Chart(280)
    direction = np.array([group.name.split()[-1] for group in groups])
    for name in dict.fromkeys(direction.tolist()):
        own = np.flatnonzero(direction == name)
        chart.add(
            x=numbers(own + 1), y=numbers(sigma[own]), mode="markers", name=plot_text(name), marker={"size": 6},
            text=[plot_text(groups[k].name) for k in own.tolist()], hovertemplate=f"%{{text}}: %{{y:.3g}} {unit}",
        )  # fmt: skip
    chart.y_axis(title=f"sigma [{unit}]", rangemode="tozero")
    chart.x_axis(title="group of equations [number]")
    return chart


def convergence_chart(iterations: Sequence[Iteration]) -> Chart:
    """Return objective and step of every iteration."""
    chart = Chart(170, rows=2, linked=True)
    number = numbers(np.arange(1, len(iterations) + 1))
    series = {
        "objective [1]": [one.objective for one in iterations],
        "step / residuals [1]": [one.step for one in iterations],
    }
    for row, (title, values) in enumerate(series.items()):
        drawn = np.where(np.array(values) > 0, values, np.nan)
        chart.add(row, x=number, y=numbers(drawn), mode="lines+markers", showlegend=False,
                  line={"color": COLOURS["predicted"]}, name=title)  # fmt: skip
        chart.y_axis(row, title=title, type="log", tickformat="~g", nticks=5)
    chart.x_axis(1, title="iteration [number]", dtick=max(1, len(iterations) // 10))
    return chart


def workspace_chart(mapped: AccuracyMap) -> Chart:
    """Return the uncertainty over distance from the base's z axis and height: what a cloud in space hides inside."""
    chart = Chart(340)
    size = 1e3 * mapped.semi_axis
    marker = {"size": 6, "color": numbers(size), "colorscale": "Cividis", "showscale": True,
              "colorbar": {"title": {"text": "1 sigma [mm]", "side": "right"}, "thickness": 14}}  # fmt: skip
    radius = np.hypot(mapped.position[:, 0], mapped.position[:, 1])
    chart.add(
        x=numbers(radius), y=numbers(mapped.position[:, 2]), mode="markers", showlegend=False, marker=marker,
        text=[f"{value:.3g} mm" for value in size], hovertemplate="%{text}<extra></extra>",
    )  # fmt: skip
    chart.x_axis(title="distance from the z axis of the base [m]")
    chart.y_axis(title="height z [m]")
    return chart


def configurations_chart(robot: Robot, q: np.ndarray, names: Sequence[str]) -> Chart:
    """Return the arm in configurations (na, K) of these names, with a slider; frames are numbered from 1."""
    count = q.shape[1]
    shown = np.arange(count) if count <= MOST_SHOWN else np.linspace(0, count - 1, MOST_SHOWN).astype(int)
    return arm_plot(arm_at(robot, shown + 1.0, q[:, shown], {}), "configuration", [names[int(k)] for k in shown])


def arrow_chart(result: CalibrationResult) -> tuple[Chart, float]:
    """Return the arm in its configurations with the errors of all points before and after, and their exaggeration."""
    found, problem = result.calibration, result.problem
    measurements = problem.measurements
    first = np.unique(measurements.pose, return_index=True)
    chart = configurations_chart(problem.robot, measurements.q[:, first[1]], [measurements.poses[k] for k in first[0]])
    points = position_equations(problem)
    points = points[found.used[points].all(axis=1)]
    if not len(points):
        return chart, 0.0
    rotation, origin = problem.base_pose(found.values)
    place = (problem.equations.measured[points] - origin) @ rotation
    nominal = problem.residual(nominal_values(found.remaining, found.weighted))[points] @ rotation
    after = found.residual[points] @ rotation
    factor = _round_factor(_ARROW * float(np.ptp(place, axis=0).max()), np.linalg.norm(nominal, axis=1))
    add_arrows(chart, place, -factor * nominal, f"before, {factor:g} times", COLOURS["error"])
    add_arrows(chart, place, -factor * after, f"after, {factor:g} times", COLOURS["predicted"])
    return chart, factor


def _round_factor(wanted: float, sizes: np.ndarray) -> float:
    """Return 1, 2 or 5 times a power of ten, that makes most of the sizes [m] at most as long as wanted [m]."""
    usual = float(np.quantile(sizes, 0.95))
    ratio = max(wanted, 0.01) / usual if usual > 0 else 1.0
    power = 10.0 ** floor(log10(ratio))
    return next(step for step in (5.0, 2.0, 1.0) if step * power <= ratio * (1 + 1e-9)) * power


def plot_errors(self: CalibrationResult) -> go.Figure:
    """Return the error of every configuration before and after the calibration, held out too; zoom is free.

    Example:
        >>> from steelyard.calibration import CalibrationSetup, MarkerSetup
        >>> from steelyard.calibration import random_configurations, simulated_measurements
        >>> nests = [(0.3, 0.0, 0.0), (0.2, 0.1, 0.0), (0.2, 0.0, 0.1)]
        >>> setup = CalibrationSetup("link_2", markers=tuple(MarkerSetup(f"nest_{k}", p) for k, p in enumerate(nests)))
        >>> q = random_configurations("scara_2r", 20, np.random.default_rng(0))
        >>> points = simulated_measurements(steelyard.load_robot("scara_2r"), setup, q, {"x2": 2e-3}, sigma=5e-5)
        >>> figure = steelyard.calibrate("scara_2r", points, setup=setup, workspace=0).plot_errors()
        >>> figure.layout.yaxis.title.text, [trace.name for trace in figure.data]
        ('error, rms [mm]', ['before', 'after', 'after, held out'])
    """
    return error_chart(point_errors(self)).figure()


def to_html(self: CalibrationResult, provenance: Mapping[str, str] | None = None) -> str:
    """Return the report as one HTML document, as run folders have it.

    Args:
        self: The calibrated arm.
        provenance: Where it comes from, texts by name.

    Example:
        >>> from steelyard.calibration import CalibrationSetup, MarkerSetup
        >>> from steelyard.calibration import random_configurations, simulated_measurements
        >>> nests = [(0.3, 0.0, 0.0), (0.2, 0.1, 0.0), (0.2, 0.0, 0.1)]
        >>> setup = CalibrationSetup("link_2", markers=tuple(MarkerSetup(f"nest_{k}", p) for k, p in enumerate(nests)))
        >>> q = random_configurations("scara_2r", 20, np.random.default_rng(0))
        >>> points = simulated_measurements(steelyard.load_robot("scara_2r"), setup, q, {"x2": 2e-3}, sigma=5e-5)
        >>> steelyard.calibrate("scara_2r", points, setup=setup, workspace=0).to_html()[:15]
        '<!doctype html>'
    """
    from ..report import page_html
    from .report import calibration_page  # loaded when used: most calibrations are not printed

    return page_html(calibration_page(self, provenance or {}))
