"""An arm that moves: links as lines, shapes as hulls, ellipsoids of inertia, with a slider for time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .base import COLOURS, Chart, numbers, plot_text

HEIGHT = 480


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """The solid ellipsoid of a body's mass and inertia.

    Attributes:
        body: Number of the body whose frame it is in; 0 is the base.
        centre: Centre of mass (3,) [m].
        axes: Semi-axes as columns (3, 3) [m].
    """

    body: int
    centre: np.ndarray
    axes: np.ndarray


@dataclass(frozen=True, eq=False)
class ArmMotion:
    """An arm at some instants.

    Attributes:
        time: Instants (f,) [s].
        poses: ``[R p]`` of every body's frame in the base frame, the base first (f, b, 3, 4).
        parents: Number of the parent of every body but the base (b - 1,).
        tips: Points beyond the last joints: body and place in its frame (3,).
        ellipsoids: Ellipsoids by series, ``identified`` and ``robot file``.
        hulls: Corners (k, 3) and triangles (m, 3) in the frame of a body, with its number.
    """

    time: np.ndarray
    poses: np.ndarray
    parents: Sequence[int]
    tips: Sequence[tuple[int, np.ndarray]]
    ellipsoids: Mapping[str, Sequence[Ellipsoid]]
    hulls: Sequence[tuple[int, np.ndarray, np.ndarray]] = ()


def arm_plot(arm: ArmMotion, slider: str = "time [s]", labels: Sequence[str] = ()) -> Chart:
    """Return the arm at its first instant, with a slider and a button that move it through all of them.

    Args:
        arm: The arm.
        slider: What the slider shows.
        labels: Its texts, one for each instant; the instants themselves if there are none.
    """
    chart = Chart(HEIGHT)
    for trace in _traces(arm, 0):
        chart.add(**trace)
    names = [f"{time:.3f}" for time in arm.time]
    which = list(range(len(chart.data)))
    chart.frames = [
        {"name": name, "data": [_moved(trace) for trace in _traces(arm, k)], "traces": which}
        for k, name in enumerate(names)
    ]
    at_once = {"mode": "immediate", "frame": {"duration": 0, "redraw": True}, "transition": {"duration": 0}}
    play = {**at_once, "fromcurrent": True, "frame": {"duration": 60, "redraw": True}}
    shown = [plot_text(label, 24) for label in labels] or names
    steps = [
        {"method": "animate", "label": label, "args": [[name], at_once]}
        for name, label in zip(names, shown, strict=True)
    ]
    buttons = [
        {"method": "animate", "label": "play", "args": [None, play]},
        {"method": "animate", "label": "stop", "args": [[None], at_once]},
    ]
    clear, grey = "rgba(0,0,0,0)", COLOURS["measured"]
    chart.layout |= {
        # The label of a step is shown while it is on; dozens of them side by side would not be read.
        "sliders": [{"steps": steps, "currentvalue": {"prefix": f"{slider}: ", "font": {"color": grey}}, "len": 0.76,
                     "x": 0.22, "y": 0, "pad": {"t": 0}, "font": {"color": clear}, "ticklen": 0, "minorticklen": 0}],
        "updatemenus": [{"type": "buttons", "buttons": buttons, "x": 0, "y": 0, "xanchor": "left", "yanchor": "top",
                         "pad": {"t": 15}, "direction": "left", "bgcolor": "#d0d7de", "font": {"color": "#1b1f24"}}],
    }  # fmt: skip
    _set_scene(chart, _cube(arm), 0.06)
    return chart


def _set_scene(chart: Chart, cube: np.ndarray, bottom: float) -> None:
    """Give a chart axes in space with these ranges (3, 2) instead of those in a plane."""
    axes = {
        f"{axis}axis": {"range": limits.tolist(), "title": {"text": f"{axis} [m]"}, "backgroundcolor": "rgba(0,0,0,0)",
                        "gridcolor": "rgb(150,156,165)", "zerolinecolor": "rgb(128,134,143)", "nticks": 6}
        for axis, limits in zip("xyz", cube, strict=True)
    }  # fmt: skip
    chart.layout |= {
        "scene": {"aspectmode": "cube", "domain": {"x": [0, 1], "y": [bottom, 1]}, **axes,
                  "camera": {"eye": {"x": 1.3, "y": 1.3, "z": 0.8}, "center": {"x": 0, "y": 0, "z": -0.14}}},
        "margin": {"l": 0, "r": 0, "t": 30, "b": 60 if bottom else 10},
    }  # fmt: skip
    for axis in ("xaxis", "yaxis"):
        del chart.layout[axis]


def add_arrows(chart: Chart, starts: np.ndarray, arrows: np.ndarray, name: str, colour: str) -> None:
    """Add arrows (n, 3) from points (n, 3) to a figure in space: lines with a dot at their end; axes are widened."""
    ends = starts + arrows
    lines = np.stack([starts, ends, np.full_like(starts, np.nan)], axis=1).reshape(-1, 3).T
    sizes = np.tile([0.0, 2.5, 0.0], len(starts))
    chart.add(
        type="scatter3d", **_xyz(lines), mode="lines+markers", name=plot_text(name), hoverinfo="skip",
        line={"width": 3, "color": colour}, marker={"size": numbers(sizes), "color": colour, "line": {"width": 0}},
    )  # fmt: skip
    scene = chart.layout["scene"]
    before = np.array([scene[f"{axis}axis"]["range"] for axis in "xyz"])
    points = np.concatenate([before.T, starts, ends])
    for axis, limits in zip("xyz", _around(points, 0.5), strict=True):
        scene[f"{axis}axis"]["range"] = limits.tolist()


def cloud_plot(points: np.ndarray, values: np.ndarray, title: str) -> Chart:
    """Return points (n, 3) [m] in space, coloured by their values (n,)."""
    chart = Chart(HEIGHT)
    colours = {"title": {"text": title, "side": "right"}, "thickness": 14, "len": 0.8}
    chart.add(
        type="scatter3d", **_xyz(points.T), mode="markers", showlegend=False,
        marker={"size": 2.5, "color": numbers(values), "colorscale": "Cividis", "showscale": True, "colorbar": colours},
        text=[f"{value:.3g}" for value in values], hovertemplate="%{text}<extra></extra>",
    )  # fmt: skip
    _set_scene(chart, _around(points), 0.0)
    return chart


def _traces(arm: ArmMotion, k: int) -> list[dict[str, Any]]:
    poses = arm.poses[k]
    grey = COLOURS["measured"]
    traces: list[dict[str, Any]] = [
        {"type": "scatter3d", **_xyz(_links(arm, poses)), "mode": "lines+markers", "name": "links",
         "line": {"width": 7, "color": grey}, "marker": {"size": 4, "color": grey}}
    ]  # fmt: skip
    for name, ellipsoids in arm.ellipsoids.items():
        colour = COLOURS["predicted"] if name == "identified" else COLOURS["limit"]
        traces.append(
            {"type": "scatter3d", **_xyz(_curves(ellipsoids, poses)), "mode": "lines", "name": plot_text(name),
             "line": {"width": 3, "color": colour}}
        )  # fmt: skip
        centres = np.array([poses[one.body] @ np.append(one.centre, 1) for one in ellipsoids]).reshape(-1, 3).T
        traces.append(
            {"type": "scatter3d", **_xyz(centres), "mode": "markers", "showlegend": False,
             "name": plot_text(f"centres of mass, {name}"), "marker": {"size": 4, "color": colour}}
        )  # fmt: skip
    for body, corners, triangles in arm.hulls:
        i, j, m = (numbers(corner) for corner in triangles.T)
        placed = poses[body, :, :3] @ corners.T + poses[body, :, 3:]
        traces.append(
            {"type": "mesh3d", **_xyz(placed), "i": i, "j": j, "k": m, "opacity": 0.25, "color": grey,
             "hoverinfo": "skip", "flatshading": True}
        )  # fmt: skip
    return traces


def _xyz(points: np.ndarray) -> dict[str, Any]:
    return {axis: numbers(row) for axis, row in zip("xyz", points, strict=True)}


def _moved(trace: dict[str, Any]) -> dict[str, Any]:
    """Return what changes of a trace from frame to frame."""
    return {key: trace[key] for key in ("type", "x", "y", "z")}


def _links(arm: ArmMotion, poses: np.ndarray) -> np.ndarray:
    """Return lines from every body's frame to its parent's, and to the tips, separated by NaN (3, m)."""
    ends = [(poses[parent, :, 3], poses[body, :, 3]) for body, parent in enumerate(arm.parents, 1)]
    ends += [(poses[body, :, 3], poses[body] @ np.append(place, 1)) for body, place in arm.tips]
    gap = np.full(3, np.nan)
    return np.array([point for first, last in ends for point in (first, last, gap)]).T


_TURN = np.linspace(0, 2 * np.pi, 13)
_CIRCLES = [
    np.array([np.cos(_TURN), np.sin(_TURN), 0 * _TURN]),
    np.array([np.cos(_TURN), 0 * _TURN, np.sin(_TURN)]),
    np.array([0 * _TURN, np.cos(_TURN), np.sin(_TURN)]),
]


def _curves(ellipsoids: Sequence[Ellipsoid], poses: np.ndarray) -> np.ndarray:
    """Return the three main circles of every ellipsoid, separated by NaN (3, m)."""
    parts = [np.zeros((3, 0))]
    for one in ellipsoids:
        for circle in _CIRCLES:
            placed = poses[one.body, :, :3] @ (one.axes @ circle + one.centre[:, None]) + poses[one.body, :, 3:]
            parts += [placed, np.full((3, 1), np.nan)]
    return np.concatenate(parts, axis=1)


def _cube(arm: ArmMotion) -> np.ndarray:
    """Return one range for each axis (3, 2), all of one length, that hold the arm in all its poses."""
    places = [arm.poses[:, :, :, 3].reshape(-1, 3)]
    places += [arm.poses[:, body] @ np.append(place, 1) for body, place in arm.tips]
    places += [
        (arm.poses[:, one.body, :, :3] @ one.centre + arm.poses[:, one.body, :, 3])[:, None]
        + np.array([-1.0, 1.0])[None, :, None] * np.linalg.norm(one.axes, axis=0).max()
        for ellipsoids in arm.ellipsoids.values() for one in ellipsoids
    ]  # fmt: skip
    return _around(np.concatenate([place.reshape(-1, 3) for place in places]))


def _around(points: np.ndarray, part: float = 0.52) -> np.ndarray:
    """Return ranges (3, 2) of one length about points (n, 3); ``part`` 0.5 leaves no margin."""
    middle, half = (points.max(axis=0) + points.min(axis=0)) / 2, max(0.1, part * float(np.ptp(points, axis=0).max()))
    return np.column_stack([middle - half, middle + half])
