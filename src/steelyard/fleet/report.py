"""The report of a fleet: what is worth a look first, then units by parameter, drift charts and the logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..plots import COLOURS, Chart, interval_plot, matrix_plot, numbers, plot_text
from ..report import DataTable, Figure, Page, PageSection, sentence
from .changes import Change
from .robot_fleet import PAYLOAD, RobotFleet

if TYPE_CHECKING:
    from .pipeline import FleetResult

MOST_CHARTS, MOST_UNITS, MOST_BANDS, SIDE_BY_SIDE = 12, 60, 3, 8
"""Drift charts, rows of the picture of units, parameters with bands, columns of the table of units: all worst first."""
LARGEST_DEVIATION = 4.0
"""Deviations of so many sigmas have the deepest colour."""

_VARIATION = ["parameter", "common arm", "sigma", "between units", "from", "to", "between logs", "unit"]


def fleet_page(result: FleetResult, provenance: Mapping[str, str]) -> Page:
    """Return the report of a fleet."""
    sections = [_findings(result)]
    for number, robot in enumerate(result.robots, 1):
        sections += [_variation(number, robot), _units(number, robot), *_drifts(number, robot), *_slopes(number, robot)]
    sections.append(_logs(result))
    if result.notes:
        sections.append(PageSection("Notes", points=[sentence(note) for note in result.notes]))
    units = sum(len(robot.serials) for robot in result.robots)
    return Page(
        title="Fleet",
        subtitle=", ".join(f"{len(robot.serials)} x {robot.robot}" for robot in result.robots),
        sections=sections,
        facts={
            "logs": f"{len(result.logs)}",
            "left out": f"{len(result.broken)}",
            "units": f"{units}",
            "units with findings": f"{len({(one.robot, one.serial) for one in result.findings})}",
        },
        provenance=provenance,
    )


def _findings(result: FleetResult) -> PageSection:
    rows: list[list[str | float | None]] = [
        [one.robot, one.serial, "" if one.date is None else f"{one.date:%Y-%m-%d %H:%M}", one.cause, one.value,
         one.sigma, one.p]
        for one in result.findings
    ]  # fmt: skip
    if not rows:
        return PageSection("What was found", text="No unit has changed, and none is unlike the others, beyond chance.")
    table = DataTable(
        "findings", ["robot", "unit", "since", "what", "change", "sigma", "chance"], rows,
        "Every finding, the most certain first: change in SI units (a payload: its mass in kg) and the probability of "
        "such a finding anywhere in the fleet by chance.", digits=3,
    )  # fmt: skip
    points = [sentence(f"{one.text}; {one.remedy}") for one in result.findings]
    return PageSection("What was found", [table], points=points)


def _variation(number: int, robot: RobotFleet) -> PageSection:
    fit, (low, high) = robot.hierarchy, robot.hierarchy.variance_interval()
    sizes, spread = np.abs(fit.common), np.sqrt(fit.between_units)
    sigma = np.sqrt(np.diagonal(fit.common_covariance))
    shown = np.sort(robot.varying)
    percent = [100 * np.sqrt(values[shown]) / sizes[shown] for values in (fit.between_units, low, high)]
    names = [robot.parameters[k].name for k in shown]
    chart = interval_plot(
        names, {"units": (percent[0], np.array([percent[0] - percent[1], percent[2] - percent[0]]))},
        "standard deviation between units [% of the common arm's]",
    )  # fmt: skip
    rows: list[list[str | float | None]] = [
        [one.name, fit.common[k], sigma[k], spread[k], np.sqrt(low[k]), np.sqrt(high[k]), np.sqrt(fit.between_logs[k]),
         one.unit]
        for k, one in enumerate(robot.parameters)
    ]  # fmt: skip
    text = (
        "The common arm, and the standard deviations of its units from it (with 95 % intervals) and of logs from their "
        "units, by restricted likelihood."
    )
    table = DataTable(f"variation-{number}", _VARIATION, rows, text, digits=4)
    widest = names[int(np.argmax(percent[0]))] if names else ""
    said = f" {widest} varies most: {percent[0].max():.3g} %." if names else ""
    caption = f"How far units vary, parameters that are known to be other than zero, with 95 % intervals.{said}"
    return PageSection(f"Variation of {robot.robot}", [Figure(f"spread-{number}", chart, caption), table])


def _units(number: int, robot: RobotFleet) -> PageSection:
    fit = robot.hierarchy
    expected = np.sqrt(np.maximum(np.diagonal(fit.unit_score_covariance, axis1=1, axis2=2), np.finfo(float).tiny))
    deviations = np.where(expected > 1e-100, fit.unit_scores / expected, 0.0)
    order = np.argsort(-np.abs(deviations).max(axis=1))[:MOST_UNITS]
    chart = matrix_plot(
        [robot.serials[u] for u in order], [one.name for one in robot.parameters],
        np.clip(deviations[order] / LARGEST_DEVIATION, -1, 1), f"/ {LARGEST_DEVIATION:g} sigma",
    )  # fmt: skip
    worst = int(order[0])
    name = robot.parameters[int(np.argmax(np.abs(deviations[worst])))].name
    caption = (
        "Deviation of units from the common arm, in standard deviations of what is expected of a unit, each parameter "
        f"as if it alone deviated; worst first. Furthest: unit {robot.serials[worst]}, {name}, "
        f"{np.abs(deviations[worst]).max():.2g} sigma."
    )
    figures = [Figure(f"units-{number}", chart, caption), *_bands(number, robot, order)]
    return PageSection(f"Units of {robot.robot}", [*figures, *_side_by_side(number, robot, order)])


def _bands(number: int, robot: RobotFleet, order: np.ndarray) -> Iterator[Figure]:
    """Yield the units' values of the parameters that vary most, with the band in which units are expected."""
    places = robot.varying[:MOST_BANDS]
    if not len(places):
        return
    fit, (values, sigma) = robot.hierarchy, robot.unit_values
    serials = [plot_text(robot.serials[u]) for u in order]
    titles = [f"{robot.parameters[j].name} [{robot.parameters[j].unit}]" for j in places]
    chart = Chart(220, rows=len(places), titles=titles, linked=True)
    for place, j in enumerate(places):
        for sign in (-1, 1):
            level = fit.common[j] + sign * 1.96 * np.sqrt(fit.between_units[j])
            chart.add(
                place, x=serials, y=[level] * len(serials), mode="lines", name="95 % of units",
                line={"dash": "dash", "width": 1.2, "color": COLOURS["limit"]}, showlegend=sign > 0 and not place,
            )  # fmt: skip
        chart.add(
            place, x=serials, y=numbers(values[order, j]), mode="markers", name="units", showlegend=not place,
            error_y={"type": "data", "array": numbers(1.96 * sigma[order, j]), "thickness": 1.2, "width": 3},
            marker={"size": 6, "color": COLOURS["measured"]},
        )  # fmt: skip
        chart.x_axis(place, type="category", tickangle=-45 if len(serials) > 8 else 0)
    caption = (
        "Units, the furthest from the common arm first, with 95 % intervals, and the band in which 95 % of units are "
        f"expected: the {len(places)} parameters that vary most beyond doubt."
    )
    yield Figure(f"bands-{number}", chart, caption)


def _side_by_side(number: int, robot: RobotFleet, order: np.ndarray) -> Iterator[DataTable]:
    """Yield how far each parameter of each unit is from the common arm, in per cent."""
    common, shown, (values, _) = robot.hierarchy.common, order[:SIDE_BY_SIDE], robot.unit_values
    percent = 100 * (values[shown] - common) / np.abs(common)
    rows: list[list[str | float | None]] = [
        [robot.parameters[j].name, float(common[j]), *percent[:, j].tolist()] for j in robot.varying
    ]
    if rows:
        columns = ["parameter", "common arm", *(f"{robot.serials[u]} [%]" for u in shown)]
        text = f"Units side by side: difference from the common arm in per cent, the {len(shown)} furthest units."
        yield DataTable(f"side-by-side-{number}", columns, rows, text, digits=3)


def _drifts(number: int, robot: RobotFleet) -> Iterator[PageSection]:
    charts = [
        Figure(f"drift-{number}-{k}", _drift_chart(robot, change, places), sentence(finding.text))
        for k, (change, finding) in enumerate(zip(robot.changes[:MOST_CHARTS], robot.findings, strict=False))
        if (places := _places(robot, change))
    ]
    if charts:
        yield PageSection(f"Drift charts of {robot.robot}", charts)


def _places(robot: RobotFleet, change: Change) -> tuple[int, ...]:
    """Return the parameters that show a change: its own, for a payload those furthest beyond their limits."""
    if change.cause != PAYLOAD:
        return robot.places_of(change.cause)
    mine = robot.hierarchy.unit_of == change.unit
    units = robot.hierarchy.unit_values[change.unit]
    beyond = np.nanmax(np.abs(robot.chart.values[mine] - units) / robot.chart.sigma[mine], axis=0)
    return tuple(int(k) for k in np.argsort(-np.nan_to_num(beyond))[:2])


def _drift_chart(robot: RobotFleet, change: Change, places: tuple[int, ...]) -> Chart:
    """Return parameters of a unit's logs over time, with control limits."""
    mine = np.flatnonzero(robot.hierarchy.unit_of == change.unit)
    dates = [f"{robot.logs[k].date:%Y-%m-%dT%H:%M}" for k in mine]
    titles = [f"{robot.parameters[j].name} [{robot.parameters[j].unit}]" for j in places]
    chart = Chart(220, rows=len(places), titles=titles, linked=True)
    for place, j in enumerate(places):
        middle = robot.hierarchy.unit_values[change.unit, j]
        values, reach = robot.chart.values[mine, j], robot.chart.limit * robot.chart.sigma[mine, j]
        for sign in (-1, 1):
            chart.add(
                place, x=dates, y=numbers(middle + sign * reach), mode="lines", name="control limits",
                line={"dash": "dash", "width": 1.2, "color": COLOURS["limit"]}, showlegend=sign > 0 and not place,
            )  # fmt: skip
        chart.add(
            place, x=dates, y=numbers(values), mode="lines+markers", name=plot_text(robot.serials[change.unit]),
            error_y={"type": "data", "array": numbers(1.96 * robot.chart.sigma[mine, j]), "thickness": 1.2, "width": 3},
            line={"color": COLOURS["measured"]}, showlegend=not place,
        )  # fmt: skip
        chart.x_axis(place, type="date")
    return chart


def _slopes(number: int, robot: RobotFleet) -> Iterator[PageSection]:
    if robot.slopes:
        rows: list[list[str | float | None]] = [
            [one.name, one.slope, one.sigma, one.slope / one.sigma] for one in robot.slopes
        ]
        text = "Change of friction for each degree of its joint's temperature, over all units, with its sigma."
        table = DataTable(f"slopes-{number}", ["parameter", "per deg C", "sigma", "in sigmas"], rows, text, digits=3)
        yield PageSection(f"Friction and temperature of {robot.robot}", [table])


def _logs(result: FleetResult) -> PageSection:
    rows: list[list[str | float | None]] = [
        [log.robot, log.serial, f"{log.date:%Y-%m-%d %H:%M}", one.reason or "used",
         one.error if np.isfinite(one.error) else None, one.seconds or None, len(one.findings)]
        for log, one in sorted(zip(result.logs, result.results, strict=True), key=lambda pair: not pair[1].reason)
    ]  # fmt: skip
    columns = ["robot", "unit", "date", "used, or why not", "error of the fit [%]", "duration [s]", "findings"]
    return PageSection(
        "Logs", [DataTable("logs", columns, rows, "Every log, those left out first.", digits=3)],
        closed=not result.broken,
    )  # fmt: skip
