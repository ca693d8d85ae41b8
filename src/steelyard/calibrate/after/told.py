"""A calibration as plain data for JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, cast

import numpy as np

from ...identify.told import plain, told_verdict
from ..chain.problem import MeasuredProblem
from ..fit.accuracy import Accuracy
from ..fit.calibration import Calibration
from ..fit.joint_ranges import joint_range_to_json
from .accuracy_map import AccuracyMap
from .applied import roll_pitch_yaw


def told_calibration(
    found: Calibration, workspace: AccuracyMap | None = None, validation: Accuracy | None = None
) -> dict[str, Any]:
    """Return a calibration of measurements as plain data: what was found, how sure, and how accurate the arm is.

    Args:
        found: The calibration.
        workspace: Predicted uncertainty over the workspace, if it was computed.
        validation: Accuracy on measurements of their own; else the cross-validated one is told.
    """
    problem = cast(MeasuredProblem, found.problem)
    base_rotation, base_position = problem.base_pose(found.values)
    tool_rotation, tool_position = problem.tool_pose(found.values)
    held_out = validation or found.held_out
    return plain(
        {
            "robot": problem.robot.name,
            "link": problem.setup.link,
            "method": found.settings.method,
            "covariance": found.settings.covariance,
            "configurations": len(np.unique(problem.equations.pose)),
            "equations": problem.equations.size,
            "verdict": told_verdict(found.verdict),
            "parameters": _parameters(found),
            "invisible": [{"name": each.name, "why": each.why} for each in found.invisible],
            "weak": [
                {"name": each.name, "inflation": each.inflation, "resembles": list(each.resembles)}
                for each in found.identifiability.weak
            ],
            "condition_number": found.identifiability.condition,
            "base": {"xyz": base_position, "rpy": roll_pitch_yaw(base_rotation)},
            "tool": {"xyz": tool_position, "rpy": roll_pitch_yaw(tool_rotation)},
            "before": asdict(found.before),
            "after": asdict(found.after),
            "held_out": None if held_out is None else asdict(held_out),
            "held_out_is": "none" if held_out is None else "cross-validated" if validation is None else "own files",
            "outliers": [
                {"pose": each.pose, "marker": each.marker, "size_mm": each.size_mm} for each in found.outliers
            ],
            "unmodelled_mm": 1e3 * found.unmodelled,
            "joint_ranges": [joint_range_to_json(each) for each in found.ranges],
            "weights": [
                {"group": group.name, "sigma": group.sigma, "equations": group.equations}
                for group in found.weights.groups
            ],
            "shared_part_of_noise": found.weights.correlation,
            "iterations": [
                {"objective": each.objective, "step": each.step, "damping": each.damping} for each in found.iterations
            ],
            "workspace": None if workspace is None else _workspace(workspace),
        }
    )


def _parameters(found: Calibration) -> list[dict[str, Any]]:
    kept, rows = set(found.kept), []
    intervals = found.interval()
    for number, each in enumerate(found.problem.parameters):
        if each.name in kept:
            rows.append(
                {
                    "name": each.name, "value": found.values[number], "sigma": found.sigma[number], "unit": each.unit,
                    "nominal": each.nominal, "low": intervals[number, 0], "high": intervals[number, 1],
                    "group": each.group, "meaning": each.meaning,
                }
            )  # fmt: skip
    return rows


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
