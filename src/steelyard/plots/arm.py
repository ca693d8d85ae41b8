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


def arm_plot(arm: ArmMotion) -> Chart:
    """Return the arm at its first instant, with a slider and a button that move it through all of them."""
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
    steps = [{"method": "animate", "label": name, "args": [[name], at_once]} for name in names]
    buttons = [
        {"method": "animate", "label": "play", "args": [None, play]},
        {"method": "animate", "label": "stop", "args": [[None], at_once]},
    ]
    axes = {
        f"{axis}axis": {"range": limits.tolist(), "title": {"text": f"{axis} [m]"}, "backgroundcolor": "rgba(0,0,0,0)",
                        "gridcolor": "rgba(128,128,128,0.35)", "zerolinecolor": "rgba(128,128,128,0.5)"}
        for axis, limits in zip("xyz", _cube(arm), strict=True)
    }  # fmt: skip
    clear, grey = "rgba(0,0,0,0)", COLOURS["measured"]
    chart.layout |= {
        # The label of a step is shown while it is on; dozens of them side by side would not be read.
        "sliders": [{"steps": steps, "currentvalue": {"prefix": "time [s]: ", "font": {"color": grey}}, "len": 0.82,
                     "x": 0.15, "y": 0, "pad": {"t": 0}, "font": {"color": clear}, "ticklen": 0, "minorticklen": 0}],
        "updatemenus": [{"type": "buttons", "buttons": buttons, "x": 0, "y": 0, "xanchor": "left", "yanchor": "top",
                         "pad": {"t": 15}, "direction": "left", "bgcolor": "#d0d7de", "font": {"color": "#1b1f24"}}],
        "scene": {"aspectmode": "cube", "domain": {"x": [0, 1], "y": [0.06, 1]}, **axes},
        "margin": {"l": 0, "r": 0, "t": 30, "b": 60},
    }  # fmt: skip
    for axis in ("xaxis", "yaxis"):
        del chart.layout[axis]
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
    points = np.concatenate([place.reshape(-1, 3) for place in places])
    middle, half = (points.max(axis=0) + points.min(axis=0)) / 2, max(0.1, 0.52 * float(np.ptp(points, axis=0).max()))
    return np.column_stack([middle - half, middle + half])
