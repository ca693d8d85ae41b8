"""An arm that moves: links as lines, shapes as hulls, ellipsoids of inertia, with a slider for time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .base import COLOURS, compact, new_figure, plot_text

if TYPE_CHECKING:
    import plotly.graph_objects as go

HEIGHT = 560


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


def arm_plot(arm: ArmMotion) -> go.Figure:
    """Return the arm at its first instant, with a slider and a button that move it through all of them."""
    import plotly.graph_objects as go

    figure = new_figure(HEIGHT)
    for trace in _traces(arm, 0):
        figure.add_trace(trace)
    names = [f"{time:.3f}" for time in arm.time]
    figure.frames = [
        go.Frame(name=name, data=[_moved(trace) for trace in _traces(arm, k)], traces=list(range(len(figure.data))))
        for k, name in enumerate(names)
    ]
    at_once = {"mode": "immediate", "frame": {"duration": 0, "redraw": True}, "transition": {"duration": 0}}
    play = {"mode": "immediate", "fromcurrent": True, "frame": {"duration": 60, "redraw": True},
            "transition": {"duration": 0}}  # fmt: skip
    steps = [{"method": "animate", "label": name, "args": [[name], at_once]} for name in names]
    buttons = [
        {"method": "animate", "label": "play", "args": [None, play]},
        {"method": "animate", "label": "stop", "args": [[None], at_once]},
    ]
    cube = _cube(arm)
    figure.update_layout(
        sliders=[{"steps": steps, "currentvalue": {"prefix": "time [s]: "}, "pad": {"t": 10}, "len": 0.85, "x": 0.12}],
        updatemenus=[{"type": "buttons", "buttons": buttons, "x": 0.0, "y": 0.0, "xanchor": "left", "yanchor": "top",
                      "pad": {"t": 40}, "direction": "left", "bgcolor": "#d0d7de", "font": {"color": "#1b1f24"}}],
        scene={"aspectmode": "cube", **{f"{axis}axis": {"range": limits.tolist(), "title": f"{axis} [m]"}
                                        for axis, limits in zip("xyz", cube, strict=True)}},
        margin={"l": 0, "r": 0, "t": 30, "b": 0},
    )  # fmt: skip
    return figure


def _traces(arm: ArmMotion, k: int) -> list[Any]:
    import plotly.graph_objects as go

    poses = arm.poses[k]
    links = _links(arm, poses)
    traces: list[Any] = [
        go.Scatter3d(
            x=links[0], y=links[1], z=links[2], mode="lines+markers", name="links",
            line={"width": 7, "color": COLOURS["measured"]}, marker={"size": 4, "color": COLOURS["measured"]},
        )
    ]  # fmt: skip
    for name, ellipsoids in arm.ellipsoids.items():
        points = _curves(ellipsoids, poses)
        colour = COLOURS["predicted"] if name == "identified" else COLOURS["limit"]
        traces.append(
            go.Scatter3d(x=points[0], y=points[1], z=points[2], mode="lines", name=plot_text(name),
                         line={"width": 3, "color": colour})
        )  # fmt: skip
        centres = compact(np.array([poses[one.body] @ np.append(one.centre, 1) for one in ellipsoids]).reshape(-1, 3).T)
        traces.append(
            go.Scatter3d(x=centres[0], y=centres[1], z=centres[2], mode="markers", showlegend=False,
                         name=plot_text(f"centres of mass, {name}"), marker={"size": 4, "color": colour})
        )  # fmt: skip
    for body, corners, triangles in arm.hulls:
        placed = compact(poses[body, :, :3] @ corners.T + poses[body, :, 3:])
        i, j, m = triangles.T
        traces.append(
            go.Mesh3d(x=placed[0], y=placed[1], z=placed[2], i=i, j=j, k=m, opacity=0.25, color=COLOURS["measured"],
                      hoverinfo="skip", flatshading=True)
        )  # fmt: skip
    return traces


def _moved(trace: Any) -> dict[str, Any]:
    """Return what changes of a trace from frame to frame."""
    return {"type": trace.type, "x": trace.x, "y": trace.y, "z": trace.z}


def _links(arm: ArmMotion, poses: np.ndarray) -> np.ndarray:
    """Return lines from every body's frame to its parent's, and to the tips, separated by NaN (3, m)."""
    ends = [(poses[parent, :, 3], poses[body, :, 3]) for body, parent in enumerate(arm.parents, 1)]
    ends += [(poses[body, :, 3], poses[body] @ np.append(place, 1)) for body, place in arm.tips]
    gap = np.full(3, np.nan)
    return compact(np.array([point for first, last in ends for point in (first, last, gap)]).T)


_TURN = np.linspace(0, 2 * np.pi, 17)
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
    return compact(np.concatenate(parts, axis=1))


def _cube(arm: ArmMotion) -> np.ndarray:
    """Return one range for each axis (3, 2), all of one length, that hold the arm in all its poses."""
    places = [arm.poses[:, :, :, 3].reshape(-1, 3)]
    places += [arm.poses[:, body] @ np.append(place, 1) for body, place in arm.tips]
    points = np.concatenate(places)
    middle, half = (points.max(axis=0) + points.min(axis=0)) / 2, max(0.1, 0.6 * float(np.ptp(points, axis=0).max()))
    return np.column_stack([middle - half, middle + half])
