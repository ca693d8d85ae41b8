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
from ..fit.shared_errors import is_shared_seen
from ..fit.validation import Validation
from .accuracy_map import AccuracyMap
from .applied import roll_pitch_yaw


def told_calibration(found: Calibration, workspace: AccuracyMap | None = None) -> dict[str, Any]:
    """Return a calibration of measurements as plain data: what was found, how sure, and how accurate the arm is.

    Args:
        found: The calibration.
        workspace: Predicted uncertainty over the workspace, if it was computed.
    """
    problem = cast(MeasuredProblem, found.problem)
    equations = problem.equations
    base_rotation, base_position = problem.base_pose(found.values)
    tool_rotation, tool_position = problem.tool_pose(found.values)
    own = found.validation
    unseen = (found.before_held_out, found.held_out) if own is None else (own.before, own.after)
    return plain(
        {
            "robot": problem.robot.name,
            "link": problem.setup.link,
            "method": found.settings.method,
            "covariance": found.settings.covariance,
            "configurations": len(np.unique(equations.pose)),
            "equations": equations.size,
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
            "held_out_before": _accuracy(unseen[0]),
            "held_out": _accuracy(unseen[1]),
            "held_out_is": "own files" if own else "none" if unseen[1] is None else "cross-validated",
            "cross_validated": _accuracy(found.held_out),
            "validation": None if own is None else _validation(own),
            "outliers": [
                {"pose": each.pose, "marker": each.marker, "size_mm": each.size_mm} for each in found.outliers
            ],
            "unmodelled_mm": 1e3 * found.unmodelled,
            "joint_ranges": [joint_range_to_json(each) for each in found.ranges],
            "weights": [
                {"group": group.name, "sigma": group.sigma, "equations": group.equations}
                for group in found.weights.groups
            ],
            "shared_part_of_noise": found.weights.correlation if is_shared_seen(equations.taken(found.used)) else None,
            "iterations": [
                {"objective": each.objective, "step": each.step, "damping": each.damping} for each in found.iterations
            ],
            "workspace": None if workspace is None else _workspace(workspace),
        }
    )


def _accuracy(found: Accuracy | None) -> dict[str, Any] | None:
    return None if found is None else asdict(found)


def _validation(own: Validation) -> dict[str, Any]:
    return {
        "base": own.base,
        "before": asdict(own.before),
        "after": asdict(own.after),
        "own_registration": _accuracy(own.registered),
        "shift_mm": None if own.motion is None else own.motion.shift_mm,
        "turn_deg": None if own.motion is None else own.motion.turn_deg,
        "moved": own.moved,
        "gross": [{"pose": each.pose, "marker": each.marker, "size_mm": each.size_mm} for each in own.gross],
    }


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
