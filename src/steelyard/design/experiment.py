"""One call from a robot to a designed experiment."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import NoneType

from ..errors import DesignError, require_type
from ..identify import RunLike, load_run
from ..model import build_model
from ..robot import AnyRobot, Robot, load_robot
from .design import Design, design_motion
from .knowledge import known_after, known_of
from .limits.design_limits import DesignLimits, design_limits
from .search import Tell, silent_news
from .settings import DesignSettings
from .space.floor import FloorHeight


def design_experiment(
    robot: AnyRobot,
    settings: DesignSettings | None = None,
    *,
    torque: str | None = None,
    payload: str = "none",
    effects: Iterable[str] | None = None,
    limits: DesignLimits | str | os.PathLike[str] | None = None,
    carries: str | None = None,
    after: RunLike | None = None,
    start: Sequence[float] | None = None,
    floor: FloorHeight = None,
    position_scale: float | None = None,
    tell: Tell = silent_news,
) -> Design:
    """Design the motion that makes an arm's parameters most certain, within limits that hold at every instant.

    Args:
        robot: The arm, its catalogue name or the path of its file.
        settings: What is asked; a Fourier series of 20 s, D-optimal, by default.
        torque: Measured torques, as in :func:`~steelyard.model.build_model`.
        payload: ``none``, ``loaded`` or ``paired``.
        effects: Effects that are unknown; the robot's own by default.
        limits: What must be kept, or the file that says so; the robot's own limits by default.
        carries: Name of the payload, of those the robot knows.
        after: An earlier run, or its folder: its parameters, noise and information are what is known.
        start: Posture (n,) to start from and to return to [rad or m].
        floor: Height of the floor against gravity [m], or ``none``, as in :func:`~steelyard.design.design_limits`.
        position_scale: Part of each position range that may be used, as there.
        tell: Told how far the search is.

    Raises:
        DesignError: If what is asked does not fit together, or no motion keeps the limits.
    """
    robot = load_robot(robot)
    require_type(settings, (DesignSettings, NoneType), "settings", "DesignSettings(...) or None", DesignError)
    settings = settings or DesignSettings()
    model = build_model(robot, effects, torque, payload)
    kept = _kept(robot, limits, floor, position_scale)
    known, notes = known_of(model, kept, carries)
    if after is not None:
        known = known_after(known, load_run(after), model, kept, settings.rate)
    return design_motion(model, kept, settings, known, start=start, tell=tell, notes=notes)


def _kept(
    robot: Robot, limits: DesignLimits | str | os.PathLike[str] | None, floor: FloorHeight, position_scale: float | None
) -> DesignLimits:
    if not isinstance(limits, DesignLimits):
        path = None if limits is None else Path(limits)
        return design_limits(robot, path, floor=floor, position_scale=position_scale)
    if floor is not None or position_scale is not None:
        raise DesignError("floor and position_scale are part of limits that are given; give them to design_limits")
    return limits
