"""Figures of recordings: positions, velocities and torques of every joint, thinned without losing peaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..plots import Chart, JointSeries, Thinned, grid_plot
from ..robot import AnyRobot, load_robot

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from .record import Recording, TorqueChannel

GAP = 10.0
"""Steps this many times longer than the median one interrupt the lines."""

_BLOCK = 100_000
_WRENCH = {"fx": "N", "fy": "N", "fz": "N", "tx": "N m", "ty": "N m", "tz": "N m"}


def recording_chart(recording: Recording, robot: AnyRobot | None = None) -> Chart:
    """Return what was recorded, a column for each signal and a row for each joint.

    Args:
        recording: The recording.
        robot: Its arm, for units; without it they are ``rad or m``, ``N m or N``.
    """
    kinds = {} if robot is None else {b.joint.name: b.joint.kind == "prismatic" for b in load_robot(robot).actuated}
    slides = [kinds.get(joint) for joint in recording.joints]
    positions = {"measured": recording.q, "reference": recording.reference}
    columns = {"position": _rows(recording, positions, [_unit(one, "rad", "m") for one in slides])}
    if recording.qd is not None:
        speeds = [_unit(one, "rad/s", "m/s") for one in slides]
        columns["velocity"] = _rows(recording, {"measured": recording.qd}, speeds)
    for channel in recording.torques:
        columns[channel.name] = _channel(recording, channel, slides)
    return grid_plot(columns)


def _unit(slides: bool | None, turning: str, sliding: str) -> str:
    return f"{turning} or {sliding}" if slides is None else sliding if slides else turning


def _channel(recording: Recording, channel: TorqueChannel, slides: Sequence[bool | None]) -> list[JointSeries]:
    values = {"measured": channel.values}
    if channel.kind == "wrench":
        return _rows(recording, values, list(_WRENCH.values()), list(_WRENCH))
    if channel.kind in ("motor_current", "motor_pwm"):
        return _rows(recording, values, ["A" if channel.kind == "motor_current" else "full scale"] * len(slides))
    return _rows(recording, values, [_unit(one, "N m", "N") for one in slides])


def _rows(
    recording: Recording, signals: dict[str, np.ndarray | None], units: Sequence[str], titles: Sequence[str] = ()
) -> list[JointSeries]:
    lines = {name: _thinned(recording.time, values) for name, values in signals.items() if values is not None}
    return [
        JointSeries(title, unit, {name: drawn[row] for name, drawn in lines.items()})
        for row, (title, unit) in enumerate(zip(titles or recording.joints, units, strict=True))
    ]


def _thinned(time: np.ndarray, values: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return lines of values (n, N) over the time since the first stamp, interrupted at gaps."""
    lines = Thinned(len(values))
    usual = float(np.median(np.diff(time[:_BLOCK]))) if len(time) > 1 else np.inf
    gaps = np.flatnonzero(np.diff(time) > GAP * usual) + 1
    edges = np.unique(np.concatenate([np.arange(0, len(time), _BLOCK), gaps, [len(time)]]))
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if first in gaps:
            lines.break_lines(float(time[first] - time[0]))
        lines.add(time[first:last] - time[0], values[:, first:last])
    return lines.lines()


def plot(self: Recording, robot: AnyRobot | None = None) -> go.Figure:
    """Return positions, velocities and torques of every joint as recorded, over the time since the first sample.

    Lines are thinned to what a screen shows; peaks stay, gaps interrupt them.

    Args:
        self: The recording.
        robot: Its arm, for units; without it they are ``rad or m``, ``N m or N``.

    Example:
        >>> time = np.arange(100) / 100
        >>> log = steelyard.Recording(("joint_1", "joint_2"), time, np.array([np.sin(time), np.cos(time)]))
        >>> log.plot("scara_2r").layout.yaxis.title.text
        'joint_1<br>[rad]'
    """
    return recording_chart(self, robot).figure()
