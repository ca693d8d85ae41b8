"""The doors of a calibration: measurements that cannot give an answer are refused with the reason, at once."""

from __future__ import annotations

import numpy as np

from ...errors import CalibrationError
from ...robot import AnyRobot, load_robot
from .handedness import check_right_handed
from .marker_doors import Suspicion, check_markers
from .measurements import NOT_MEASURED, Measurements
from .orientation import check_rotations
from .setup import CalibrationSetup
from .unit_doors import check_units


def check_measurements(
    robot: AnyRobot, setup: CalibrationSetup, measurements: Measurements, fewest: int = 2
) -> tuple[Suspicion, ...]:
    """Refuse measurements from which the arm cannot be calibrated; return points that do not fit the others.

    Args:
        robot: The arm.
        setup: How it was measured.
        measurements: What was measured.
        fewest: Configurations that are needed at least.

    Raises:
        CalibrationError: One line that says what is wrong and what to do: one configuration only, wrong units by size,
            left-handed frames, markers that are swapped, mirrored or there twice, differences without a load.
    """
    robot = load_robot(robot)
    check_configurations(measurements, fewest)
    check_loads(setup, measurements)
    check_rotations(measurements.rotation, [f"pose '{measurements.poses[pose]}'" for pose in measurements.pose])
    check_units(robot, setup, measurements)
    suspicions = check_markers(measurements)
    check_right_handed(robot, setup, measurements)
    return suspicions


def check_configurations(measurements: Measurements, fewest: int = 2) -> None:
    """Refuse measurements of nothing, and of one configuration: they do not show what the joints do."""
    if not measurements.rows or not np.isfinite(measurements.value).any():
        raise CalibrationError("there are no measured numbers; at least two configurations are needed, better thirty")
    distinct = np.unique(np.round(measurements.q.T, 9), axis=0)
    if len(distinct) < fewest:
        raise CalibrationError(
            f"all {measurements.rows} rows are at one configuration; measure at different joint positions, better "
            "thirty than ten"
        )


def check_loads(setup: CalibrationSetup, measurements: Measurements) -> None:
    """Refuse loads that the set-up does not have, and differences between loaded and unloaded without a load."""
    loads = len(setup.loads)
    if measurements.load.size and not NOT_MEASURED <= measurements.load.min() <= measurements.load.max() < loads:
        raise CalibrationError(
            f"load numbers go from {measurements.load.min()} to {measurements.load.max()}; the set-up has {loads} "
            "loads, -1 stands for none"
        )
    bare = np.flatnonzero(measurements.of_kind("difference") & (measurements.load == NOT_MEASURED))
    if bare.size:
        raise CalibrationError(
            f"pose '{measurements.poses[measurements.pose[bare[0]]]}' measures a difference between loaded and "
            'unloaded, but names no load; add a column load, or load = "NAME" in [measurement] and [loads.NAME]'
        )


def check_equations(equations: int, unknowns: int) -> None:
    """Refuse fewer equations than unknowns.

    Args:
        equations: Number of measured numbers.
        unknowns: Number of unknowns that can be told apart.
    """
    if equations < unknowns:
        raise CalibrationError(
            f"{equations} measured numbers for {unknowns} unknowns; measure at least "
            f"{-(-(unknowns - equations) // 3)} points more, or set fewer unknowns: [geometry] joints, known = true"
        )
