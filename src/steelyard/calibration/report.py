"""The report of a calibrated arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..plots import cloud_plot
from ..report import DataTable, Figure, Page, PageSection, sentence
from ..verdict import first_named
from .application.calibrated_arm import AccuracyMap
from .figures import (
    MOST_SHOWN,
    SHOWN_UNITS,
    PointErrors,
    arrow_chart,
    convergence_chart,
    error_chart,
    parameter_charts,
    point_errors,
    weight_chart,
    workspace_chart,
)
from .records import FRAMES

if TYPE_CHECKING:
    from .fit.accuracy import Accuracy
    from .pipeline import CalibrationResult

_MAPPED = 2000
"""Points of the map of uncertainty that are drawn."""


def calibration_page(result: CalibrationResult, provenance: Mapping[str, str]) -> Page:
    """Return the report of a calibrated arm.

    Args:
        result: The calibrated arm, with its measurements.
        provenance: Where it comes from, texts by name.
    """
    content, found = result.to_json(), result.calibration
    sections = [
        _errors(result),
        _arm(result),
        _parameters(result, content),
        _workspace(result),
        _gross(result, content),
        _noise(result),
        _convergence(result),
    ]
    unseen = content["held_out"]
    return Page(
        title=f"Calibration of {content['robot']}",
        subtitle=f"method {content['method']}, measured link {content['link']}, covariance {content['covariance']}",
        sections=[section for section in sections if section is not None],
        verdict=found.verdict,
        facts={
            "error before, rms": f"{found.before.rms_mm:.3g} mm",
            "error after, rms": f"{found.after.rms_mm:.3g} mm",
            "unseen configurations, rms": "not judged" if unseen is None else f"{unseen['rms_mm']:.3g} mm",
            "configurations": f"{content['configurations']}",
            "unknowns": f"{len(found.fitted)} fitted, {len(found.invisible)} not identified",
        },
        provenance=provenance,
    )


def _errors(result: CalibrationResult) -> PageSection:
    found, errors = result.calibration, point_errors(result)
    own, held_out = found.validation, found.held_out
    rows = [("before, base and markers fitted", found.before), ("after, on the fit", found.after)]
    if held_out is not None:
        rows.append(("after, cross-validated", held_out))
    if own is not None:
        rows += [("before, validation file", own.before), ("after, validation file", own.after)]
    said = (
        f"Over all configurations the error falls from {found.before.rms_mm:.3g} to {found.after.rms_mm:.3g} mm (rms); "
        f"{_worst(errors[0])}"
    )
    if own is not None:
        said += f" On the validation file it falls from {own.before.rms_mm:.3g} to {own.after.rms_mm:.3g} mm."
    clicks = " A click on a point shows the arm there." if len(errors[0].poses) <= MOST_SHOWN else ""
    columns = ["of", "points", "mean [mm]", "rms [mm]", "95 % [mm]", "max [mm]"]
    table = [[name, one.points, one.mean_mm, one.rms_mm, one.p95_mm, one.max_mm] for name, one in rows]
    if found.after.rotations:
        columns += ["rms [deg]", "max [deg]"]
        table = [[*cells, *_turns(one)] for cells, (_, one) in zip(table, rows, strict=True)]
    return PageSection(
        "Errors before and after",
        [
            Figure("errors", error_chart(errors), f"Error of each configuration, rms over its points. {said}{clicks}"),
            DataTable("accuracy", columns, table, "Errors of predicted points, all markers and repeats.", digits=3),
        ],
    )  # fmt: skip


def _worst(errors: PointErrors) -> str:
    poses, values = errors.of_poses(errors.after, ~errors.is_left_out)
    if not len(poses):
        return "no configuration remains."
    worst = int(np.argmax(values))
    return (
        f"the largest after it is that of configuration {errors.poses[poses[worst]]} with {1e3 * values[worst]:.3g} mm."
    )


def _turns(accuracy: Accuracy) -> list[float | None]:
    return [accuracy.rotation_rms_deg, accuracy.rotation_max_deg]


def _arm(result: CalibrationResult) -> PageSection:
    chart, factor = arrow_chart(result)
    before, after = result.calibration.before, result.calibration.after
    said = "No complete positions were measured: there are no directions of errors to draw."
    if factor:
        said = (
            f"Errors before and after, {factor:g} times as long as they are, in the frame of the robot's base: lines "
            "lead from the measured points towards where the model puts them. Arrows of one direction in one region "
            f"mean an error of the model, arrows of all directions are noise; the mean length falls from "
            f"{before.mean_mm:.3g} to {after.mean_mm:.3g} mm."
        )
    return PageSection(
        "The arm and its errors", [Figure("arm", chart, f"The arm in its measured configurations. {said}")]
    )


def _parameters(result: CalibrationResult, content: Mapping[str, Any]) -> PageSection:
    rows, parts = content["parameters"], []
    for unit, chart in parameter_charts(rows).items():
        own = [row for row in rows if SHOWN_UNITS.get(row["unit"], (row["unit"], 1.0))[0] == unit]
        own = [row for row in own if row["group"] not in FRAMES]
        clear = [row["name"] for row in own if not row["low"] <= row["nominal"] <= row["high"]]
        said = (
            f"{len(clear)} of {len(own)} differ from the robot file beyond their intervals: {first_named(clear)}."
            if clear
            else "None differs from the robot file beyond its interval."
        )
        name = f"parameters-{len(parts) + 1}"
        level = result.calibration.settings.level
        parts.append(
            Figure(
                name,
                chart,
                f"Unknowns of the arm in {unit}, found less nominal, with {100 * level:g} % intervals. {said}",
            )
        )
    table = [_parameter_cells(row) for row in rows]
    parts.append(
        DataTable(
            "parameters", ["name", "value", "±", "nominal", "off by [sigma]", "unit", "of", "meaning"], table,
            "Fitted unknowns with their intervals; base, tool and markers are what was added to their start.",
            intervals={1: 2, 3: 2},
        )
    )  # fmt: skip
    return PageSection("Parameters", parts)


def _parameter_cells(row: Mapping[str, Any]) -> list[str | float | None]:
    unit, scale = SHOWN_UNITS.get(row["unit"], (row["unit"], 1.0))
    off = (row["value"] - row["nominal"]) / row["sigma"] if row["sigma"] else None
    half = scale * (row["high"] - row["low"]) / 2
    return [
        row["name"], scale * row["value"], half, scale * row["nominal"], None if row["group"] in FRAMES else off, unit,
        row["group"], row["meaning"],
    ]  # fmt: skip


def _workspace(result: CalibrationResult) -> PageSection | None:
    mapped = result.workspace
    if mapped is None:
        return None
    summary = mapped.summary()
    x, y, z = (round(one, 2) + 0.0 for one in summary.worst_position)
    drawn = AccuracyMap(
        mapped.q[:, :_MAPPED], mapped.position[:_MAPPED], mapped.sigma[:_MAPPED], mapped.semi_axis[:_MAPPED]
    )
    cloud = cloud_plot(drawn.position, 1e3 * drawn.semi_axis, "1 sigma [mm]")
    return PageSection(
        "Uncertainty over the workspace",
        [
            Figure(
                "workspace", workspace_chart(drawn),
                f"Predicted uncertainty of position at {len(mapped.semi_axis)} random configurations, relative to the "
                "robot's base (largest semi-axis of the 1-sigma ellipsoid): median "
                f"{1e3 * summary.median:.3g} mm, 95 % are below {1e3 * summary.p95:.3g} mm, the worst is "
                f"{1e3 * summary.worst:.3g} mm at ({x:g}, {y:g}, {z:g}) m.",
            ),
            Figure("workspace-cloud", cloud, "The same in space, in the frame of the robot's base."),
        ],
    )  # fmt: skip


def _gross(result: CalibrationResult, content: Mapping[str, Any]) -> PageSection:
    parts: list[Figure | DataTable] = []
    off = [[one.pose, one.marker or "all", one.size_mm, "left out of the fit"] for one in result.calibration.outliers]
    own = result.calibration.validation
    off += [
        [one.pose, one.marker or "all", one.size_mm, "validation file, counted"] for one in (own.gross if own else ())
    ]
    off += [[one.pose, one.marker, one.size_mm, "distances to other markers differ, used"] for one in result.suspicions]
    if off:
        columns = ["configuration", "marker", "off by [mm]", "what"]
        parts.append(DataTable("outliers", columns, off, "Points that are far off.", digits=3))
    if content["joint_ranges"]:
        ranges = [[one.joint, one.text] for one in result.calibration.ranges]
        parts.append(
            DataTable("ranges", ["joint", "what"], ranges, "Ranges of joints in which the model lacks something.")
        )
    if content["invisible"]:
        rows = [[one["name"], one["why"]] for one in content["invisible"]]
        parts.append(
            DataTable("invisible", ["name", "why"], rows, "Unknowns that are not identified; nominal values are used.")
        )
    said = [] if result.calibration.outliers else ["No point was left out as a gross error."]
    return PageSection(
        "Points and unknowns left out", parts, " ".join([*said, *(sentence(note) for note in content["notes"])])
    )


def _noise(result: CalibrationResult) -> PageSection:
    weights = result.calibration.weights
    groups: Sequence[Any] = weights.groups
    largest, smallest = max(groups, key=lambda one: one.sigma), min(groups, key=lambda one: one.sigma)
    said = (
        f"{len(groups)} groups of equations, sigma from {1e3 * smallest.sigma:.3g} ({smallest.name}) to "
        f"{1e3 * largest.sigma:.3g} ({largest.name}); {100 * weights.correlation:.0f} % of the variance is shared "
        "within a configuration."
    )
    if result.calibration.unmodelled:
        said += (
            f" Of the error {1e3 * result.calibration.unmodelled:.3g} mm (rms) are no noise: the model lacks something."
        )
    return PageSection(
        "Noise and weights",
        [
            Figure(
                "weights", weight_chart(groups),
                f"Noise as estimated, by group; an equation weighs by one over its sigma (method "
                f"{result.calibration.settings.method}). {said}",
            )
        ],
        closed=True,
    )  # fmt: skip


def _convergence(result: CalibrationResult) -> PageSection | None:
    found = result.calibration
    if not found.iterations:
        return None
    fits = len(found.history)
    reason = "Weights and fit have converged." if found.fit.converged and found.weighted.converged else ""
    if not found.fit.converged:
        reason = f"The fit has not converged: {found.fit.reason}."
    elif not found.weighted.converged:
        reason = "Weights still change."
    return PageSection(
        "Convergence",
        [
            Figure(
                "convergence", convergence_chart(found.iterations),
                f"Weighted sum of squares and size of the step over {len(found.iterations)} iterations of {fits} fits; "
                f"the sum jumps where weights are estimated again. {reason}",
            )
        ],
        closed=True,
    )  # fmt: skip
