"""An experiment before it is done: where nothing is known yet, places are assumed, so that rows can be computed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...robot import AnyRobot, load_robot
from ..measured.measurements import Measurements
from ..measured.setup import CalibrationSetup, FrameSetup, MarkerSetup, load_named
from .rehearse import planned_measurements

LEVER = 0.1
"""Distance of assumed markers from the measured link's origin [m]."""

ASSUMED_MARKERS = tuple(
    MarkerSetup(f"marker_{number}", tuple(LEVER * (axis == number) for axis in (1, 2, 3)))  # type: ignore[arg-type]
    for number in (1, 2, 3)
)
"""Three markers on the axes of the measured link, where a set-up names none."""


def planned_setup(setup: CalibrationSetup) -> CalibrationSetup:
    """Return the set-up with a start for all that has none: the base at the origin, markers on the link's axes."""
    markers = tuple(
        each if each.position is not None else replace(assumed, name=each.name)
        for each, assumed in zip(setup.markers, _cycled(len(setup.markers)), strict=True)
    )
    base = FrameSetup(setup.base.xyz or (0.0, 0.0, 0.0), setup.base.rpy or (0.0, 0.0, 0.0), setup.base.known)
    return replace(setup, base=base, markers=markers or ASSUMED_MARKERS)


def planned_rows(robot: AnyRobot, setup: CalibrationSetup, q: np.ndarray, load: str | None = None) -> Measurements:
    """Return rows of positions of all markers at configurations (na, N), under a load of the set-up if one is named."""
    robot = load_robot(robot)
    load_named(setup, load)
    return planned_measurements(robot, setup, q, loads=(load or "",))


def _cycled(count: int) -> list[MarkerSetup]:
    return [ASSUMED_MARKERS[k % len(ASSUMED_MARKERS)] for k in range(count)]
