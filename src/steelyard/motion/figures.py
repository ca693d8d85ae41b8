"""Figures of motions: position, velocity and acceleration of every joint with their limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..plots import Chart, JointSeries, grid_plot
from ..robot import AnyRobot, load_robot

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from .limits import MotionLimits
    from .trajectory import Trajectory

POINTS = 1000
"""Evenly spread times of a motion that is drawn, beside those of its extremes."""

_RATES = {"position": "", "velocity": "/s", "acceleration": "/s²"}


def drawn_times(trajectory: Trajectory) -> np.ndarray:
    """Return times [s] of a figure: evenly spread ones, and those at which an extreme is reached."""
    extrema = trajectory.extrema()
    peaks = [getattr(extrema, name).time for name in ("lower", "upper", "velocity", "acceleration")]
    return np.unique(np.clip(np.concatenate([np.linspace(0, trajectory.duration, POINTS), *peaks]), 0.0, trajectory.duration))


def motion_chart(trajectory: Trajectory, robot: AnyRobot | None = None, limits: MotionLimits | None = None) -> Chart:
    """Return position, velocity and acceleration of every joint over time.

    Args:
        trajectory: The motion.
        robot: Its arm, for units and limits; without it units are ``rad or m`` ...
        limits: Limits of the same joints, instead of the robot's.
    """
    from .limits import limits_of  # which needs trajectories

    kinds: dict[str, str] = {}
    if robot is not None:
        arm = load_robot(robot)
        kinds = {body.joint.name: "m" if body.joint.kind == "prismatic" else "rad" for body in arm.actuated}
        limits = limits or limits_of(arm)
    samples = trajectory.at(drawn_times(trajectory))
    columns: dict[str, list[JointSeries]] = {name: [] for name in _RATES}
    for row, joint in enumerate(trajectory.joints):
        for (name, per), values in zip(_RATES.items(), (samples.q, samples.qd, samples.qdd), strict=True):
            unit = kinds[joint] + per if joint in kinds else f"rad{per} or m{per}"
            levels = {} if limits is None else _levels(limits, joint, name)
            columns[name].append(JointSeries(joint, unit, {"motion": (samples.time, values[row])}, levels=levels))
    return grid_plot(columns)


def _levels(limits: MotionLimits, joint: str, name: str) -> dict[str, float]:
    if joint not in limits.joints:
        return {}
    row = limits.joints.index(joint)
    if name == "position":
        found = {"lower": float(limits.lower[row]), "upper": float(limits.upper[row])}
    else:
        most = float(getattr(limits, name)[row])
        found = {"lower": -most, "upper": most}
    return {key: value for key, value in found.items() if np.isfinite(value)}


def plot(self: Trajectory, robot: AnyRobot | None = None, limits: MotionLimits | None = None) -> go.Figure:
    """Return position, velocity and acceleration of every joint over time; limits near them are dashed.

    Args:
        self: The motion.
        robot: Its arm, for units and limits; without it units are ``rad or m`` ...
        limits: Limits of the same joints, instead of the robot's.

    Example:
        >>> motion = steelyard.quintic([[0.0, 0.4], [0.0, 0.5]], 1.0, ["joint_1", "joint_2"])
        >>> motion.plot("scara_2r").layout.yaxis.title.text
        'joint_1<br>[rad]'
    """
    return motion_chart(self, robot, limits).figure()
