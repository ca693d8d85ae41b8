"""Comparison of the parameters of several runs: differences from the first, in per cent and in sigmas (P2.9).

A comparison can be written as CSV or as LaTeX. Tables printed in the papers are runs too, with values and relative
sigmas as printed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from math import hypot, isfinite
from types import MappingProxyType

from ..errors import EstimateError, nearest_match
from ..text import csv_text, for_latex, latex_number

WITHIN = 2.0
"""Values that differ by no more sigmas than this agree."""

_MANY_APART = 0.5
"""Runs of which more than this part of the shared names regroup different parameters are not of one model."""


@dataclass(frozen=True)
class ComparedValue:
    """A parameter of one run.

    Attributes:
        value: Its value.
        sigma: Its standard deviation; None if not known.
        unit: SI unit.
        regrouping: What it is made of, ``ZZ2R = ZZ2 + YY3 + ...``; empty if not said.
    """

    value: float
    sigma: float | None
    unit: str
    regrouping: str = ""

    @property
    def ingredients(self) -> str:
        """Right-hand side of the regrouping."""
        return self.regrouping.partition("=")[2].strip() or self.regrouping.strip()


@dataclass(frozen=True)
class ComparedRun:
    """A run to compare.

    Attributes:
        name: Its name.
        parameters: Its parameters by name.
        source: Where they come from, if that is not a run folder.
        robot: Name of the robot; empty if not said.
    """

    name: str
    parameters: Mapping[str, ComparedValue]
    source: str = ""
    robot: str = ""


@dataclass(frozen=True)
class Difference:
    """A parameter of a run against that of the first.

    Attributes:
        absolute: ``x - x_ref``.
        percent: ``100 (x - x_ref) / |x_ref|``; None for a reference of zero.
        sigmas: ``(x - x_ref) / sqrt(sigma^2 + sigma_ref^2)``; None if no sigma is known.
    """

    absolute: float
    percent: float | None
    sigmas: float | None


@dataclass(frozen=True)
class ComparedRow:
    """One parameter over all runs.

    Attributes:
        name: Its name in the first run that has it.
        unit: SI unit.
        values: Its value in every run; None where it is absent.
        differences: Against the first run, for every run after it; None where either is absent, or both regroup other
            parameters and so are different quantities of one name.
    """

    name: str
    unit: str
    values: tuple[ComparedValue | None, ...]
    differences: tuple[Difference | None, ...]


@dataclass(frozen=True)
class ComparedSummary:
    """A run against the first, in a line.

    Attributes:
        name: Name of the run.
        compared: Parameters that both have.
        with_sigma: How many of them have a sigma.
        within: How many of those differ by at most two sigmas.
        largest_sigmas: Name and difference of the one that differs by most sigmas; None if no sigma is known.
        largest_percent: Name and difference of the one that differs by most per cent, of those that the first run knows
            better than their value; None if there is none.
        near_zero: How many it does not know so: per cent of them say nothing.
    """

    name: str
    compared: int
    with_sigma: int
    within: int
    largest_sigmas: tuple[str, float] | None
    largest_percent: tuple[str, float] | None
    near_zero: int


@dataclass(frozen=True)
class Comparison:
    """Runs side by side.

    Attributes:
        runs: Names of the runs; the first is the reference.
        rows: Every parameter of any run, in the order of the first run that has it.
        summaries: Every run after the first against it.
        warnings: Why runs may not be comparable at all, a sentence each.
    """

    runs: tuple[str, ...]
    rows: tuple[ComparedRow, ...]
    summaries: tuple[ComparedSummary, ...]
    warnings: tuple[str, ...] = ()


def compare_parameters(runs: Sequence[ComparedRun]) -> Comparison:
    """Put the parameters of runs side by side; the first is the reference.

    Parameters are matched by the name of their base column: ``Fvm1R`` of one run and ``Fvm1`` of another share a row.
    They are subtracted unless both say what they regroup and it is not the same.

    Raises:
        EstimateError: If there are fewer than two runs, two have one name, units differ, or a value is not finite.
    """
    if len(runs) < 2:
        raise EstimateError(f"comparison: got {len(runs)} runs, needed are at least two")
    names = [run.name for run in runs]
    for name in names:
        if names.count(name) > 1:
            raise EstimateError(f"comparison: two runs are called '{name}'; give each its own name")
    tables = [_by_base_name(run) for run in runs]
    columns = dict.fromkeys(name for table in tables for name in table)
    rows = tuple(_row([table.get(name) for table in tables], names) for name in columns)
    summaries = tuple(_summary(name, rows, k) for k, name in enumerate(names[1:]))
    warnings = [warning for k in range(1, len(runs)) for warning in _warnings(runs[0], runs[k], rows, k)]
    return Comparison(tuple(names), rows, summaries, tuple(warnings))


_Named = tuple[str, ComparedValue]


def _by_base_name(run: ComparedRun) -> dict[str, _Named]:
    table: dict[str, _Named] = {}
    for name, value in run.parameters.items():
        if not isfinite(value.value) or (value.sigma is not None and not (isfinite(value.sigma) and value.sigma >= 0)):
            raise EstimateError(
                f"run '{run.name}': parameter '{name}' is {value.value} +- {value.sigma}; allowed are finite numbers"
            )
        base = re.sub(r"(?<=[0-9\]L])R$", "", name)
        if base in table:
            raise EstimateError(f"run '{run.name}': parameter '{base}' comes twice, as '{table[base][0]}' and '{name}'")
        table[base] = (name, value)
    return table


def _row(found: Sequence[_Named | None], runs: Sequence[str]) -> ComparedRow:
    name, first = next(named for named in found if named is not None)
    for run, named in zip(runs, found, strict=True):
        if named is not None and named[1].unit != first.unit:
            raise EstimateError(f"parameter '{name}': unit is '{first.unit}', in run '{run}' it is '{named[1].unit}'")
    values = tuple(None if named is None else named[1] for named in found)
    differences = tuple(_difference(values[0], value) for value in values[1:])
    return ComparedRow(name, first.unit, values, differences)


def _difference(reference: ComparedValue | None, value: ComparedValue | None) -> Difference | None:
    if reference is None or value is None:
        return None
    if reference.ingredients and value.ingredients and reference.ingredients != value.ingredients:
        return None
    absolute = value.value - reference.value
    percent = 100 * absolute / abs(reference.value) if reference.value else None
    known = [sigma for sigma in (reference.sigma, value.sigma) if sigma is not None]
    deviation = hypot(*known) if known else 0.0
    return Difference(absolute, percent, absolute / deviation if deviation > 0 else None)


def _warnings(reference: ComparedRun, other: ComparedRun, rows: Sequence[ComparedRow], place: int) -> list[str]:
    """Return why a run may not be comparable with the reference; it is the one at ``place`` among all runs."""
    if reference.robot and other.robot and reference.robot != other.robot:
        return [
            f"'{other.name}' is of robot '{other.robot}', '{reference.name}' of '{reference.robot}': parameters of one "
            "name are different quantities there; compare runs of one robot"
        ]
    shared = [row for row in rows if row.values[0] is not None and row.values[place] is not None]
    apart = sum(row.differences[place - 1] is None for row in shared)
    if not shared or apart > _MANY_APART * len(shared):
        return [
            f"'{other.name}' and '{reference.name}' share {len(shared)} names, of which {apart} regroup different "
            "parameters: geometry, torque kind or payload of the two differ; compare runs of one robot and model"
        ]
    return []


def _summary(name: str, rows: Sequence[ComparedRow], place: int) -> ComparedSummary:
    found = [(row, difference) for row in rows if (difference := row.differences[place]) is not None]
    sigmas = [(row.name, d.sigmas) for row, d in found if d.sigmas is not None]
    percents = [(row.name, d.percent) for row, d in found if d.percent is not None and _is_known(row, place)]
    within = sum(abs(size) <= WITHIN for _, size in sigmas)
    return ComparedSummary(
        name, len(found), len(sigmas), within, _largest(sigmas), _largest(percents), len(found) - len(percents)
    )


def _is_known(row: ComparedRow, place: int) -> bool:
    """Return whether the reference is further from zero than its sigma, or that of the other run if it has none."""
    reference, value = row.values[0], row.values[place + 1]
    assert reference is not None  # or there is no difference
    assert value is not None
    return abs(reference.value) > ((value.sigma if reference.sigma is None else reference.sigma) or 0.0)


def _largest(named: Sequence[tuple[str, float]]) -> tuple[str, float] | None:
    return max(named, key=lambda pair: abs(pair[1]), default=None)


def to_csv(comparison: Comparison) -> str:
    """Return the comparison as CSV (RFC 4180): a line for each parameter, absent values empty, full precision.

    Columns: parameter, unit, then value and sigma of every run, and difference, per cent and sigmas of every run but
    the first.
    """
    first, *others = comparison.runs
    header = ["parameter", "unit", f"{first} value", f"{first} sigma"]
    header += [f"{run} {what}" for run in others for what in ("value", "sigma", "difference", "percent", "sigmas")]
    table = [header]
    for row in comparison.rows:
        cells = [row.name, row.unit, *_csv_numbers(row.values[0], "value", "sigma")]
        for value, difference in zip(row.values[1:], row.differences, strict=True):
            cells += _csv_numbers(value, "value", "sigma")
            cells += _csv_numbers(difference, "absolute", "percent", "sigmas")
        table.append(cells)
    return csv_text(table, "\r\n")


def _csv_numbers(record: ComparedValue | Difference | None, *names: str) -> list[str]:
    """Return fields of a record with full precision, empty where they are absent."""
    values = [None if record is None else getattr(record, name) for name in names]
    return ["" if value is None else repr(float(value)) for value in values]


def to_latex(comparison: Comparison) -> str:
    """Return the comparison as a LaTeX table (``booktabs``).

    Columns: parameter, unit, then value and relative sigma of every run, and the difference in per cent and in sigmas
    of every run but the first.
    """
    first, *others = (for_latex(run) for run in comparison.runs)
    columns = "ll" + "rr" + "rrrr" * len(others)
    groups = [rf"\multicolumn{{2}}{{c}}{{{first}}}", *(rf"\multicolumn{{4}}{{c}}{{{run}}}" for run in others)]
    rules = [r"\cmidrule(lr){3-4}"]
    rules += [rf"\cmidrule(lr){{{5 + 4 * k}-{8 + 4 * k}}}" for k in range(len(others))]
    heads = ["parameter", "unit", "value", r"$\sigma$ [\%]"]
    heads += ["value", r"$\sigma$ [\%]", r"diff. [\%]", r"diff. [$\sigma$]"] * len(others)
    lines = [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(["", "", *groups]) + r" \\",
        " ".join(rules),
        " & ".join(heads) + r" \\",
        r"\midrule",
        *(" & ".join(_latex_cells(row)) + r" \\" for row in comparison.rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _latex_cells(row: ComparedRow) -> list[str]:
    cells = [for_latex(row.name), for_latex(row.unit), *_latex_value(row.values[0])]
    for value, difference in zip(row.values[1:], row.differences, strict=True):
        percent = None if difference is None else difference.percent
        sigmas = None if difference is None else difference.sigmas
        cells += [*_latex_value(value), latex_number(percent, "+.1f"), latex_number(sigmas, "+.1f")]
    return cells


def _latex_value(value: ComparedValue | None) -> list[str]:
    if value is None:
        return ["--", "--"]
    relative = None if value.sigma is None or not value.value else 100 * value.sigma / abs(value.value)
    return [latex_number(value.value, ".4g"), latex_number(relative, ".2g")]


def published_names() -> tuple[str, ...]:
    """Return the names of the published runs, sorted."""
    tables = (entry.name for entry in _folder().iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in tables if name.endswith(".toml")))


def published_run(name: str) -> ComparedRun:
    """Return a published run by its name.

    A parameter is ``[value, relative sigma in per cent]`` there, with its regrouping where that differs between models.

    Raises:
        EstimateError: If there is none of this name.
    """
    names = published_names()
    if name not in names:
        raise EstimateError(f"unknown published run '{name}'; there are {', '.join(names)}{nearest_match(name, names)}")
    table = tomllib.loads(_folder().joinpath(f"{name}.toml").read_text(encoding="utf-8"))
    regrouping = table.get("regrouping", {})
    parameters = {
        parameter: ComparedValue(value, abs(value) * percent / 100, _unit(parameter), regrouping.get(parameter, ""))
        for parameter, (value, percent) in table["parameters"].items()
    }
    return ComparedRun(name, MappingProxyType(parameters), table["source"], table["robot"])


def _unit(parameter: str) -> str:
    """Return the unit of a parameter of a revolute joint."""
    family = parameter.rstrip("R").rstrip("0123456789L")
    units = {"Ia": "kg m^2", "Fv": "N m s/rad", "Fc": "N m", "off": "N m", "M": "kg"}
    if family in ("MX", "MY", "MZ"):
        return "kg m"
    return units.get(family.rstrip("ml"), "kg m^2")


def _folder() -> Traversable:
    return files(__package__ or "steelyard.judge").joinpath("published")
