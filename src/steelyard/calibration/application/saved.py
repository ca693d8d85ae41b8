"""Calibrations in run folders: as plain data for JSON, and as the calibrated arm read back."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from ...configuration import vector
from ...errors import CalibrationError
from ...plain_data import plain
from ...robot import Robot, load_robot, roll_pitch_yaw
from ...run import arrays_of, hashes_of, read_result, write_arrays
from ...text import short_repr
from ...verdict import verdict_to_json
from ..chain.problem import MeasuredProblem, measured_problem
from ..chain.simulated import planned_measurements
from ..fit.calibration import Calibration
from ..fit.joint_ranges import joint_range_from_json, joint_range_to_json
from ..fit.weights import is_shared_observed
from ..measurement.setup import CalibrationSetup, FrameSetup, MarkerSetup, completed_setup, default_setup
from ..measurement.setup_file import setup_from_document
from ..records import FRAMES
from .calibrated_arm import AccuracyMap, CalibratedArm, calibrated_arm

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
    outside = np.array([each.group in FRAMES for each in problem.parameters])
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
        MarkerSetup(name, vector(place.tolist()), by_name[name].known)
        for name, place in zip(names, arrays["markers"], strict=True)
    )
    return replace(
        completed, markers=markers, base=_frame(arrays["base"], setup.base.known),
        tool=_frame(arrays["tool"], setup.tool.known),
    )  # fmt: skip


def _frame(place: np.ndarray, known: bool) -> FrameSetup:
    return FrameSetup(vector(place[:, 3].tolist()), roll_pitch_yaw(place[:, :3]), known)


def _problem(robot: Robot, setup: CalibrationSetup, with_pose: bool) -> MeasuredProblem:
    """Return the problem of one planned row: a calibrated arm needs only its chain."""
    q = np.zeros((len(robot.actuated), 1))
    planned = planned_measurements(robot, setup, q, kind="pose" if with_pose else "position")
    return measured_problem(robot, setup, replace(planned, markers=tuple(marker.name for marker in setup.markers)))


def calibration_to_json(found: Calibration, workspace: AccuracyMap | None = None) -> dict[str, Any]:
    """Return a calibration of measurements as plain data: what was found, how sure, and how accurate the arm is.

    Args:
        found: The calibration.
        workspace: Predicted uncertainty over the workspace, if it was computed.
    """
    problem, own = cast(MeasuredProblem, found.problem), found.validation
    equations = problem.equations
    unseen = (found.before_held_out, found.held_out) if own is None else (own.before, own.after)
    return plain(
        {
            "robot": problem.robot.name,
            "link": problem.setup.link,
            "method": found.settings.method,
            "covariance": found.settings.covariance,
            "configurations": len(np.unique(equations.pose)),
            "equations": equations.size,
            "verdict": verdict_to_json(found.verdict),
            "parameters": _parameters(found),
            "invisible": [{"name": each.name, "why": each.why} for each in found.invisible],
            "weak": found.identifiability.weak,
            "condition_number": found.identifiability.condition,
            "base": _frame_to_json(*problem.base_pose(found.values)),
            "tool": _frame_to_json(*problem.tool_pose(found.values)),
            "before": found.before,
            "after": found.after,
            "held_out_before": unseen[0],
            "held_out": unseen[1],
            "held_out_is": "own files" if own else "none" if unseen[1] is None else "cross-validated",
            "cross_validated": found.held_out,
            "validation": own,
            "outliers": found.outliers,
            "unmodelled_mm": 1e3 * found.unmodelled,
            "joint_ranges": [joint_range_to_json(each) for each in found.ranges],
            "weights": [
                {"group": group.name, "sigma": group.sigma, "equations": group.equations}
                for group in found.weights.groups
            ],
            "shared_part_of_noise": found.weights.correlation
            if is_shared_observed(equations.taken(found.used))
            else None,
            "iterations": found.iterations,
            "workspace": None if workspace is None else _workspace(workspace),
        }
    )


def _frame_to_json(rotation: np.ndarray, position: np.ndarray) -> dict[str, Any]:
    return {"xyz": position, "rpy": roll_pitch_yaw(rotation)}


def _parameters(found: Calibration) -> list[dict[str, Any]]:
    bounds, sigma, parameters = found.interval(), found.sigma, found.problem.parameters
    return [
        {
            "name": each.name, "value": found.values[number], "sigma": sigma[number], "unit": each.unit,
            "nominal": each.nominal, "low": bounds[number, 0], "high": bounds[number, 1], "group": each.group,
            "meaning": each.meaning,
        }
        for number, each in ((column, parameters[column]) for column in found.fit.columns)
    ]  # fmt: skip


def _workspace(workspace: AccuracyMap) -> dict[str, Any]:
    summary = workspace.summary()
    return {
        "configurations": len(workspace.semi_axis),
        "median_mm": 1e3 * summary.median,
        "p95_mm": 1e3 * summary.p95,
        "worst_mm": 1e3 * summary.worst,
        "worst_position": summary.worst_position,
        "worst_q": summary.worst_q,
    }
