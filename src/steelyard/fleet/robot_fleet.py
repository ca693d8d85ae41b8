"""All units of one robot: the common arm, their variation, what changed and what depends on temperature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import EstimateError
from ..model import BaseParameter
from ..observe import Equations
from ..robot import INERTIAL_NAMES
from ..text import short_repr
from .changes import Change, ControlChart, Slope, control_chart, doubtful_logs, find_changes, slopes_of
from .hierarchy import Hierarchy, LogInformation, fit_hierarchy, stacked_rows, triangle_of
from .log_results import LogResult
from .manifest import FleetLog

UNSEEN = 1e-9
"""A parameter that all logs together show to a smaller part of its own information, beside the others, is not seen."""
MOST_ROUNDS = 3
"""Of looking for changes that others hide."""
PAYLOAD, SCALE = "payload", "scale of the torques"
"""Causes that change many parameters: a load on the last link, and torques that are recorded too large or too small."""
MASS = INERTIAL_NAMES.index("M")


@dataclass(frozen=True)
class FleetFinding:
    """Something that one unit has and the others have not, or that has changed.

    Attributes:
        code: ``changed``, ``drifts``, ``differs`` or ``payload``.
        robot: Name of the robot.
        serial: Serial number of the unit; empty for the whole fleet.
        date: Of the first log that shows it; None if all do.
        cause: The parameter, joint or payload that says so.
        value: Change of that parameter, SI units, or mass of the payload [kg]; None for several at once.
        sigma: Its standard deviation.
        p: Probability of such a finding, anywhere in the fleet, by chance.
        text: What was found, a sentence.
        remedy: What to do.
    """

    code: str
    robot: str
    serial: str
    date: datetime | None
    cause: str
    value: float | None
    sigma: float | None
    p: float
    text: str
    remedy: str


@dataclass(frozen=True, eq=False)
class RobotFleet:
    """The units of one robot. Make one with :func:`analyse`.

    Attributes:
        robot: Name of the robot.
        logs: The logs that count, in the order of unit and date.
        results: What each shows.
        serials: Serial numbers of the units.
        parameters: Base parameters that the logs show.
        unseen: Names of those that no log shows.
        hierarchy: Common arm, units and variances, without what has changed.
        changes: Changes and differences of units.
        chart: Parameters of every log with control limits.
        doubt: How many times larger the errors of each log are taken than it says, because its unit's others disagree.
        slopes: Friction over the temperature of its joint, where recorded.
        directions: In which directions (c, r) each cause that was looked for changes the parameters.
    """

    __repr__ = short_repr

    robot: str
    logs: tuple[FleetLog, ...]
    results: tuple[LogResult, ...]
    serials: tuple[str, ...]
    parameters: tuple[BaseParameter, ...]
    unseen: tuple[str, ...]
    hierarchy: Hierarchy
    changes: tuple[Change, ...]
    chart: ControlChart
    doubt: np.ndarray
    slopes: tuple[Slope, ...]
    directions: Mapping[str, np.ndarray]

    @cached_property
    def findings(self) -> tuple[FleetFinding, ...]:
        """What is worth a look, the most certain first."""
        return tuple(self._finding(change) for change in self.changes)

    def places_of(self, cause: str) -> tuple[int, ...]:
        """Return the places of the parameters that a cause changes."""
        return tuple(np.flatnonzero(self.directions[cause].any(axis=1)).tolist())

    @cached_property
    def varying(self) -> np.ndarray:
        """Places of the parameters that are known to be other than zero, those that vary most beyond doubt first."""
        fit, (low, _) = self.hierarchy, self.hierarchy.variance_interval()
        size = np.abs(fit.common)
        places = np.flatnonzero(size > 3 * np.sqrt(np.diagonal(fit.common_covariance)))
        return places[np.argsort(-np.sqrt(low[places]) / size[places], kind="stable")]

    @cached_property
    def unit_values(self) -> tuple[np.ndarray, np.ndarray]:
        """Parameters (U, c) of units before they changed, drawn to the common arm, and their sigmas (U, c).

        A unit that differs from all others is not drawn in that.
        """
        values, variance = self.hierarchy.unit_values.copy(), self.hierarchy.unit_sigma**2
        for change in self.changes:
            if not change.first:
                directions = self.directions[change.cause]
                values[change.unit] += directions @ change.delta
                variance[change.unit] += np.sum((directions * change.sigma) ** 2, axis=1)
        return values, np.sqrt(variance)

    def logs_of(self, unit: int) -> list[FleetLog]:
        """Return the logs of a unit in the order of their dates."""
        return [self.logs[k] for k in np.flatnonzero(self.hierarchy.unit_of == unit)]

    def update(self, serial: str, result: LogResult) -> tuple[np.ndarray, np.ndarray]:
        """Return parameters (c,) and sigmas (c,) of a unit with one more log; no other log is read.

        The common arm and the variances stay as they are: one log of one unit hardly moves them.

        Args:
            serial: Serial number of the unit.
            result: What the new log shows.

        Raises:
            EstimateError: If the fleet has no such unit, or the log is left out.
        """
        if serial not in self.serials:
            raise EstimateError(f"no unit '{serial}' in this fleet; it has {', '.join(self.serials[:5])}")
        if result.reason:
            raise EstimateError(f"the log is left out: {result.reason}")
        unit = self.serials.index(serial)
        places = [result.columns.index(one.column) for one in self.parameters]
        new = LogInformation(unit, result.rows[:, [*places, -1]])
        return self.hierarchy.updated(new)

    def parameter_rows(self) -> Iterator[dict[str, Any]]:
        """Yield every parameter of every unit, and of the common arm, a row each."""
        fit, (low, high) = self.hierarchy, self.hierarchy.variance_interval()
        values, sigma = self.unit_values
        alone, alone_sigma = fit.single_units()
        common_sigma = np.sqrt(np.diagonal(fit.common_covariance))
        for j, one in enumerate(self.parameters):
            spread = {
                "between_units": np.sqrt(fit.between_units[j]), "between_units_low": np.sqrt(low[j]),
                "between_units_high": np.sqrt(high[j]), "between_logs": np.sqrt(fit.between_logs[j]),
            }  # fmt: skip
            base = {"robot": self.robot, "parameter": one.name, "unit": one.unit}
            yield {
                **base, "serial": "", "value": fit.common[j], "sigma": common_sigma[j], "alone": None,
                "alone_sigma": None, "deviation_sigmas": None, **spread,
            }  # fmt: skip
            expected = np.sqrt(np.maximum(np.diagonal(fit.unit_score_covariance, axis1=1, axis2=2)[:, j], 0.0))
            for u, serial in enumerate(self.serials):
                deviation = fit.unit_scores[u, j] / expected[u] if expected[u] > 0 else 0.0
                yield {
                    **base, "serial": serial, "value": values[u, j], "sigma": sigma[u, j], "alone": alone[u, j],
                    "alone_sigma": alone_sigma[u, j], "deviation_sigmas": deviation, **spread,
                }  # fmt: skip

    def chart_rows(self) -> Iterator[dict[str, Any]]:
        """Yield every parameter of every log with its control limits, a row each."""
        units = self.hierarchy.unit_values[self.hierarchy.unit_of]
        for n, log in enumerate(self.logs):
            for j, one in enumerate(self.parameters):
                value, sigma = self.chart.values[n, j], self.chart.sigma[n, j]
                if np.isfinite(value):
                    reach = self.chart.limit * sigma
                    yield {
                        "robot": self.robot, "serial": log.serial, "date": log.date.isoformat(), "parameter": one.name,
                        "unit": one.unit, "value": value, "sigma": sigma, "low": units[n, j] - reach,
                        "high": units[n, j] + reach, "beyond": bool(abs(value - units[n, j]) > reach),
                    }  # fmt: skip

    def _finding(self, change: Change) -> FleetFinding:
        serial, logs = self.serials[change.unit], self.logs_of(change.unit)
        date = logs[change.first].date if change.first else None
        since = "in all its logs" if date is None else f"since {date:%Y-%m-%d %H:%M}".removesuffix(" 00:00")
        who, value, sigma = f"unit {serial} ({self.robot})", None, None
        code = "differs" if date is None else "drifts" if change.grows else "changed"
        remedy = "look at the drive, the gear and the temperature of that joint, and at what was changed then"
        if change.cause == PAYLOAD:
            code, value, sigma = "payload", change.delta[MASS], change.sigma[MASS]
            text = f"{who} {_load_text(value, sigma)}, {since}"
            remedy = "name it in the manifest's column payload, or look for what was mounted or taken off"
        elif change.cause == SCALE:
            value, sigma = change.delta[0], change.sigma[0]
            than, size = "before" if change.first else "the others'", f"{100 * abs(value):.3g} +- {100 * sigma:.2g} %"
            text = f"{who}: all torques are {size} {'larger' if value > 0 else 'smaller'} than {than}, {since}"
            remedy = "look at units and gains of that log, or for logs of another robot"
        else:
            places = self.places_of(change.cause)
            if len(places) == 1:
                value, sigma = change.delta[0], change.sigma[0]
            verb = {"differs": "is not like the others'", "drifts": "drifts", "changed": "has changed"}[code]
            text = f"{who}: {change.cause} {verb}, {since} ({', '.join(self._amounts(change, places))})"
        return FleetFinding(code, self.robot, serial, date, change.cause, value, sigma, change.p, text, remedy)

    def _amounts(self, change: Change, places: Sequence[int]) -> Iterator[str]:
        """Yield by how much each parameter has changed, in per cent where it is known to be other than zero."""
        for j, delta, sigma in zip(places, change.delta, change.sigma, strict=True):
            one, value = self.parameters[j], self.hierarchy.unit_values[change.unit, j]
            before = value if change.first else self.hierarchy.common[j]
            if abs(before) > 5 * sigma:
                part = 100 * sigma / abs(before)
                yield f"{one.name} {100 * delta / abs(before):+.0f} +- {part:{'.0f' if part >= 10 else '.1g'}} %"
            else:
                yield f"{one.name} {delta:+.3g} +- {sigma:.2g} {one.unit}"


def _load_text(mass: float, sigma: float) -> str:
    """Return what a load on the last link says, a load that is gone, or one whose mass does not show."""
    if mass > 2 * sigma:
        return f"moves as with a payload of {mass:.3g} +- {sigma:.2g} kg that was not declared"
    if mass < -2 * sigma:
        return f"moves as if {-mass:.3g} +- {sigma:.2g} kg had been taken off its last link"
    return f"moves as with another last link or tool, of no other mass ({mass:+.2g} +- {sigma:.2g} kg)"


def analyse(
    robot: str,
    logs: Sequence[FleetLog],
    results: Sequence[LogResult],
    equations: Equations,
    false_alarms: float = 0.05,
) -> RobotFleet:
    """Estimate the common arm and its units from their logs, and look for what is not like the others.

    Args:
        robot: Name of the robot.
        logs: Its logs.
        results: What each shows; those that are left out are not given.
        equations: Equations of the declared model, without payload.
        false_alarms: Probability that a fleet without changes raises any alarm.

    Raises:
        EstimateError: If no parameter is seen in any log.
    """
    order = sorted(range(len(logs)), key=lambda k: (logs[k].serial, logs[k].date, logs[k].place))
    logs, results = [logs[k] for k in order], [results[k] for k in order]
    serials = tuple(dict.fromkeys(log.serial for log in logs))
    seen = _seen_columns(_pooled([one.rows for one in results])[0])
    if not seen:
        raise EstimateError(f"no parameter of '{robot}' shows in any log: do the arms move?")
    informed = [
        LogInformation(serials.index(log.serial), one.rows[:, [*seen, -1]])
        for log, one in zip(logs, results, strict=True)
    ]
    base = {one.column: one for one in equations.base.base}
    parameters = tuple(base[results[0].columns[k]] for k in seen)
    total, pooled = _pooled([one.rows for one in informed])
    sizes = np.abs(pooled) + 1 / np.linalg.norm(total, axis=0)
    causes = _causes(equations, parameters)
    directions = {name: np.eye(len(parameters))[:, places] for name, places in causes.items()}
    span = equations.payload_span([one.column for one in parameters])
    directions |= {PAYLOAD: span} if span.any() else {}
    directions |= {SCALE: pooled[:, None]}
    times = np.array([log.date.timestamp() / 86400 for log in logs])
    first = fit_hierarchy(informed, sizes, _unit_directions(equations, parameters))
    doubt = doubtful_logs(first, directions)
    informed = [replace(one, rows=one.rows / by) for one, by in zip(informed, doubt, strict=True)]
    hierarchy, changes = _without_changes(first, informed, sizes, times, directions, false_alarms)
    chart = control_chart(replace(hierarchy, rows=stacked_rows(informed)), hierarchy.unit_values, false_alarms)
    unseen = tuple(base[name].name for k, name in enumerate(results[0].columns) if k not in seen)
    return RobotFleet(
        robot, tuple(logs), tuple(results), serials, parameters, unseen, hierarchy, tuple(changes), chart, doubt,
        tuple(_slopes(equations, parameters, hierarchy, results)), directions,
    )  # fmt: skip


def _without_changes(
    hierarchy: Hierarchy,
    logs: Sequence[LogInformation],
    sizes: np.ndarray,
    times: np.ndarray,
    directions: Mapping[str, np.ndarray],
    false_alarms: float,
) -> tuple[Hierarchy, list[Change]]:
    """Return the fleet as it was before its changes, and these.

    A payload that one unit carried would widen what all are expected to vary: logs that have changed say nothing of
    what changed in them, and what that hid is looked for again.
    """
    hierarchy, changes = _fitted_again(hierarchy, logs, sizes), list[Change]()
    for _ in range(MOST_ROUNDS):
        known = {(one.unit, one.cause) for one in changes}
        new = [
            one
            for one in find_changes(hierarchy, times, directions, false_alarms)
            if (one.unit, one.cause) not in known
        ]
        if not new:
            break
        changes += new
        cleaned = list(logs)
        for one in changes:
            mine = np.flatnonzero(hierarchy.unit_of == one.unit)
            for k in mine[one.first :]:
                cleaned[k] = cleaned[k].without(directions[one.cause])
        hierarchy = _fitted_again(hierarchy, cleaned, sizes)
    return hierarchy, sorted(changes, key=lambda one: (one.p, one.unit, one.first))


def _fitted_again(before: Hierarchy, logs: Sequence[LogInformation], sizes: np.ndarray) -> Hierarchy:
    return fit_hierarchy(logs, sizes, before.directions, (before.components, before.between_logs))


def _pooled(rows: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the triangle (c, c) of the rows of all logs, and the parameters (c,) that fit them as if of one arm."""
    whole = triangle_of(np.vstack(rows))
    triangle, side = whole[:-1, :-1], whole[:-1, -1]
    return triangle, np.linalg.lstsq(triangle, side)[0]


def _seen_columns(triangle: np.ndarray) -> list[int]:
    """Return the columns that the triangle of all logs shows, in order: one that others span is left out."""
    lengths = np.linalg.norm(triangle, axis=0)
    seen, basis = list[int](), np.zeros((len(triangle), 0))
    for k in np.flatnonzero(lengths > UNSEEN * lengths.max(initial=0.0)):
        rest = triangle[:, k] / lengths[k]
        for _ in range(2):  # once leaves rounding errors
            rest = rest - basis @ (basis.T @ rest)
        if (length := np.linalg.norm(rest)) > UNSEEN**0.5:
            seen.append(int(k))
            basis = np.column_stack([basis, rest / length])
    return seen


def _unit_directions(equations: Equations, parameters: Sequence[BaseParameter]) -> np.ndarray:
    """Return the directions (c, m) in which units differ: a standard parameter alone, or a link heavier as a whole.

    Links are those of the robot's catalogue values; where it has none, only single parameters vary.
    """
    model, names = equations.model, list(equations.names)
    regrouping = equations.base.regrouping[[names.index(one.column) for one in parameters]]
    known = model.robot.parameters
    values = np.array([known.get(one.name, 0.0) for one in model.parameters])
    links = [
        np.array([one.number == body.number and one.symbol in INERTIAL_NAMES for one in model.parameters])
        for body in model.robot.bodies
    ]
    found = np.column_stack([regrouping, *(regrouping @ (values * own) for own in links)])
    # A parameter that only unseen ones are regrouped with moves nothing; two that move the same are one.
    lengths = np.linalg.norm(found, axis=0)
    found = found[:, lengths > UNSEEN * lengths.max()]
    scaled = found / np.linalg.norm(found, axis=0)
    alike = np.abs(np.triu(scaled.T @ scaled, 1)) > 1 - UNSEEN
    return found[:, ~alike.any(axis=0)]


def _causes(equations: Equations, parameters: Sequence[BaseParameter]) -> dict[str, tuple[int, ...]]:
    """Return places of the parameters that may have changed: each alone, and all friction of a joint."""
    columns = [one.column for one in parameters]
    causes = {one.name: (k,) for k, one in enumerate(parameters)}
    of_joint: dict[str, list[int]] = {}
    for one in equations.model.parameters:
        if one.name in columns and (one.friction or one.effect.startswith("off")):
            of_joint.setdefault(one.joint, []).append(columns.index(one.name))
    return causes | {f"friction of {joint}": tuple(own) for joint, own in of_joint.items() if len(own) > 1}


def _slopes(
    equations: Equations, parameters: Sequence[BaseParameter], hierarchy: Hierarchy, results: Sequence[LogResult]
) -> Iterator[Slope]:
    of_column: Mapping[str, tuple[str, str]] = {
        one.name: (one.joint, one.friction) for one in equations.model.parameters
    }
    for k, one in enumerate(parameters):
        joint, friction = of_column[one.column]
        if not friction:
            continue
        place = equations.joints.index(joint)
        warm = np.array([result.temperature[place] if result.temperature else np.nan for result in results])
        yield from slopes_of(hierarchy, warm, [one.name], [k])
