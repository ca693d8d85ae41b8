"""A calibration in a run folder, and the calibrated arm read back from it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from ...errors import CalibrationError
from ...robot import Robot, load_robot
from ...run import arrays_of, hashes_of, read_result, write_arrays
from ...text import short_repr
from ..chain.problem import MeasuredProblem, measured_problem
from ..chain.rehearse import planned_measurements
from ..fit.calibration import Calibration
from ..fit.joint_ranges import joint_range_from_json
from ..measured.measurements import joined
from ..measured.setup import CalibrationSetup, FrameSetup, MarkerSetup, completed_setup, default_setup
from ..measured.setup_file import setup_from_document
from .applied import roll_pitch_yaw
from .calibrated_arm import CalibratedArm, calibrated_arm

_ARRAYS = ("names", "values", "covariance", "base", "tool", "markers", "marker_names", "pose_is_measured")


@dataclass(frozen=True, eq=False)
class SavedCalibration:
    """A calibration read back.

    Attributes:
        arm: The calibrated arm.
        setup: How it was measured; base, tool and markers where they were found.
        content: The run's ``result.json``.
        robot_name: What the robot was called: a name of the catalogue or a file.
    """

    __repr__ = short_repr

    arm: CalibratedArm
    setup: CalibrationSetup
    content: Mapping[str, Any]
    robot_name: str


def fill_calibration(folder: Path, found: Calibration) -> dict[str, Any]:
    """Write the arrays of a calibration into a folder and return their names."""
    problem = cast(MeasuredProblem, found.problem)
    arrays = {
        "names": np.array([each.name for each in problem.parameters]),
        "values": found.values,
        "covariance": found.covariance,
        "base": np.column_stack(problem.base_pose(found.values)),
        "tool": np.column_stack(problem.tool_pose(found.values)),
        "markers": problem.marker_positions(found.values),
        "marker_names": np.array(problem.measurements.markers, dtype=np.str_),
        "pose_is_measured": np.array(bool(problem.measurements.of_kind("pose").any())),
    }
    return {"files": {"calibration": write_arrays(folder, "calibration", arrays)}}


def read_calibration(folder: Path, robot_name: str | None = None) -> SavedCalibration:
    """Return the calibrated arm of a run folder.

    Args:
        folder: The folder of a ``calibrate`` run.
        robot_name: The run's robot file, if it has moved.

    Raises:
        CalibrationError: If it is no such run, its arrays are missing or damaged, or the robot's file has changed.
    """
    content = read_result(folder, "calibrate", CalibrationError, {"setup": str})
    arrays = arrays_of(folder, content, "calibration", _ARRAYS, CalibrationError)
    name = robot_name or str(content["provenance"]["settings"]["robot"])
    robot = _robot(name, content["provenance"]["inputs"])
    setup = _placed(_setup(content, robot), arrays)
    problem = _problem(robot, setup, bool(arrays["pose_is_measured"]))
    if [each.name for each in problem.parameters] != arrays["names"].tolist():
        raise CalibrationError(f"'{folder}' has other unknowns than its set-up gives now; calibrate the arm again")
    outside = np.array([each.group in ("base", "tool", "marker") for each in problem.parameters])
    # Base, tool and markers start where they were found: nothing is left to add to them.
    values = np.where(outside, problem.start, arrays["values"])
    ranges = [joint_range_from_json(each) for each in content.get("joint_ranges", ())]
    lacking = 1e-3 * float(content.get("unmodelled_mm", 0.0))
    return SavedCalibration(
        calibrated_arm(problem, values, arrays["covariance"], ranges, lacking), setup, content, name
    )


def _robot(name: str, inputs: Mapping[str, str]) -> Robot:
    path, recorded = Path(name), set(inputs.values())
    if name in inputs and not path.is_file():
        raise CalibrationError(f"the run's robot file '{name}' is not here; name it with --robot")
    if path.is_file() and hashes_of(path)[str(path)] not in recorded:
        raise CalibrationError(f"'{name}' is not the robot file of the run: its content differs; calibrate again")
    return load_robot(name)


def _setup(content: Mapping[str, Any], robot: Robot) -> CalibrationSetup:
    text = str(content["setup"])
    return setup_from_document(tomllib.loads(text), robot) if text else default_setup(robot)


def _placed(setup: CalibrationSetup, arrays: Mapping[str, np.ndarray]) -> CalibrationSetup:
    """Return the set-up with base, tool and markers where they were found."""
    names = [str(name) for name in arrays["marker_names"]]
    completed = completed_setup(setup, tuple(names))
    by_name = {marker.name: marker for marker in completed.markers}
    markers = tuple(
        MarkerSetup(name, _vector(place), by_name[name].known)
        for name, place in zip(names, arrays["markers"], strict=True)
    )
    return replace(
        completed, markers=markers, base=_frame(arrays["base"], setup.base.known),
        tool=_frame(arrays["tool"], setup.tool.known),
    )  # fmt: skip


def _frame(place: np.ndarray, known: bool) -> FrameSetup:
    return FrameSetup(_vector(place[:, 3]), roll_pitch_yaw(place[:, :3]), known)


def _vector(numbers: np.ndarray) -> tuple[float, float, float]:
    x, y, z = (float(number) for number in numbers)
    return x, y, z


def _problem(robot: Robot, setup: CalibrationSetup, with_pose: bool) -> MeasuredProblem:
    """Return the problem of rows that nobody measured: what an arm needs of it is its chain."""
    q = np.zeros((len(robot.actuated), 1))
    if with_pose and setup.markers:
        both = [planned_measurements(robot, setup, q, kind=kind) for kind in ("position", "pose")]
        return measured_problem(robot, setup, joined(*both))
    return measured_problem(
        robot, setup, planned_measurements(robot, setup, q, kind="pose" if with_pose else "position")
    )
