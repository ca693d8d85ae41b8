"""The report of a study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..report import DataTable, Figure, Page, PageSection, sentence
from .figures import (
    bias_chart,
    chance_of_coverage,
    coverage_chart,
    efficiency_chart,
    sigma_chart,
    spread_over_sigma,
    time_chart,
)
from .statistics import MEAN_LEVEL, VARIANCE_LEVEL
from .verdict import CaseVerdict, ParameterVerdict, case_label, sentences

if TYPE_CHECKING:
    from .run import StudyResult

_CASES = [
    "estimator", "noise level", "start", "runs", "failed [%]", "worst bias [sigma]", "of", "rms error / bound",
    "mean coverage [%]", "smallest [%]", "of ", "means in 68 % [%]", "variances in 90 % [%]", "CPU time [ms]",
]  # fmt: skip
_PARAMETERS = [
    "case", "parameter", "true", "bias", "± 95 %", "significant", "spread", "reported sigma", "bound", "efficiency [%]",
    "coverage [%]", "too low", "unit",
]  # fmt: skip


def study_page(result: StudyResult, provenance: Mapping[str, str], notes: Sequence[str] = ()) -> Page:
    """Return the report of a study.

    Args:
        result: The study.
        provenance: Where it comes from, texts by name.
        notes: Further notes.
    """
    study, verdicts = result.study, result.verdicts
    sections = [_findings(result), *_figures(verdicts), _times(verdicts), _parameters(verdicts)]
    everything = [sentence(note) for note in (*notes, *result.notes)]
    if everything:
        sections.append(PageSection("Notes", points=everything))
    failed = sum(verdict.failures for verdict in verdicts)
    return Page(
        title="Monte Carlo study of estimators",
        subtitle=f"{', '.join(study.methods)}: {study.seeds} simulated experiments at each noise level",
        sections=sections,
        facts={
            "runs": f"{sum(verdict.runs for verdict in verdicts)}",
            "failed": f"{failed}",
            "base parameters": f"{len(result.parameters)}",
            "biased beyond chance": _count(verdicts, "is_biased"),
            "sigmas too small": _count(verdicts, "is_overconfident") + _unsure(verdicts),
        },
        provenance=provenance,
    )


def _count(verdicts: Sequence[CaseVerdict], what: str) -> str:
    everything = [getattr(one, what) for verdict in verdicts for one in verdict.parameters]
    return f"{sum(everything)} of {len(everything)}"


def _unsure(verdicts: Sequence[CaseVerdict]) -> str:
    few = any(verdict.parameters and not verdict.judges_coverage for verdict in verdicts)
    return ", too few runs to judge" if few else ""


def _findings(result: StudyResult) -> PageSection:
    rows = [_case_row(verdict) for verdict in result.verdicts]
    checked = "the Cramer-Rao bound" if result.bound.sigma is not None else "the reported sigmas"
    table = DataTable(
        "cases", _CASES, rows,
        "Every estimator: worst bias in standard deviations of the estimates, rms error over the Cramer-Rao sigma, "
        f"coverage of 95 % intervals, and P4's checks: {100 * MEAN_LEVEL:g} % of the means and "
        f"{100 * VARIANCE_LEVEL:g} % of the variances (against {checked}) are expected inside their intervals.",
        digits=3,
    )  # fmt: skip
    return PageSection("What was found", [table], points=[sentence(text) for text in sentences(result.verdicts)])


def _case_row(verdict: CaseVerdict) -> list[str | float | None]:
    case, worst, least = verdict.case, verdict.worst_bias, verdict.smallest_coverage
    by_bound = verdict.checks_by_bound
    checks = verdict.checks_as_reported if by_bound is None or by_bound.variances is None else by_bound
    return [
        case.method, case.noise_level, case.start, verdict.runs, 100 * verdict.failures / verdict.runs,
        None if worst is None else _finite(worst.bias_in_sigmas), "" if worst is None else worst.name,
        verdict.rms_over_bound, _percent(verdict.mean_coverage), None if least is None else 100 * least.coverage,
        "" if least is None else least.name, None if checks is None else 100 * checks.means,
        None if checks is None else _percent(checks.variances), 1e3 * verdict.seconds,
    ]  # fmt: skip


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _figures(verdicts: Sequence[CaseVerdict]) -> Iterator[PageSection]:
    """Yield bias, coverage and sigmas, a figure for each noise level."""
    levels: dict[float, list[CaseVerdict]] = {}
    for verdict in verdicts:
        if verdict.parameters:
            levels.setdefault(verdict.case.noise_level, []).append(verdict)
    if not levels:
        return
    yield PageSection("Bias", [_bias(k, each, len(levels) > 1) for k, each in enumerate(levels.values(), 1)])
    yield PageSection("Coverage", [_coverage(k, each, len(levels) > 1) for k, each in enumerate(levels.values(), 1)])
    parts = []
    for k, each in enumerate(levels.values(), 1):
        parts.append(_sigmas(k, each, len(levels) > 1))
        if any(one.efficiency is not None for verdict in each for one in verdict.parameters):
            parts.append(_efficiency(k, each, len(levels) > 1))
    yield PageSection("Sigmas reported and observed", parts)


def _caption(verdicts: Sequence[CaseVerdict], several: bool, text: str) -> str:
    return sentence(f"At noise level {verdicts[0].case.noise_level:g}: {text}" if several else text)


def _each(verdicts: Sequence[CaseVerdict]) -> Iterator[tuple[str, ParameterVerdict]]:
    cases = [verdict.case for verdict in verdicts]
    for verdict in verdicts:
        for one in verdict.parameters:
            yield case_label(verdict.case, cases), one


def _bias(number: int, verdicts: Sequence[CaseVerdict], several: bool) -> Figure:
    biased = [one for _, one in _each(verdicts) if one.is_biased]
    name, worst = max(_each(verdicts), key=lambda pair: abs(np.nan_to_num(pair[1].bias_in_sigmas)))
    said = (
        f"Significant beyond chance: {len(biased)} of {len(list(_each(verdicts)))} biases, all tests together."
        if biased
        else "No bias is significant beyond chance, all tests together."
    )
    text = (
        "mean error of every parameter with its 95 % interval, which holds 0 for an unbiased estimator in 95 of 100 "
        f"cases. Largest: {worst.name} with {name}, {worst.bias_in_sigmas:+.2g} standard deviations of the estimates. "
        f"{said}"
    )
    return Figure(f"bias-{number}", bias_chart(verdicts), _caption(verdicts, several, text))


def _coverage(number: int, verdicts: Sequence[CaseVerdict], several: bool) -> Figure:
    runs = max(one.runs for _, one in _each(verdicts))
    low, high = chance_of_coverage(runs)
    name, least = min(_each(verdicts), key=lambda pair: pair[1].coverage)
    bold = sum(one.is_overconfident for _, one in _each(verdicts))
    said = f"{bold} are too low beyond chance." if bold else "None is too low beyond chance."
    text = (
        "how often the reported 95 % intervals hold the truth, with 95 % intervals (Wilson). With "
        f"{runs} runs, right intervals have {low:.0f} to {high:.0f} % by chance (dashed). Smallest: {least.name} with "
        f"{name}, {100 * least.coverage:.0f} %. {said}"
    )
    return Figure(f"coverage-{number}", coverage_chart(verdicts), _caption(verdicts, several, text))


def _sigmas(number: int, verdicts: Sequence[CaseVerdict], several: bool) -> Figure:
    ratios = {(name, one.name): spread_over_sigma(one)[0] for name, one in _each(verdicts)}
    known = {key: ratio for key, ratio in ratios.items() if np.isfinite(ratio)}
    said = "No sigma was reported."
    if known:
        (name, parameter), ratio = max(known.items(), key=lambda item: abs(np.log(max(item[1], 1e-12))))
        said = f"Furthest from 1: {parameter} with {name}, {ratio:.3g}; above 1, intervals are too narrow."
    text = (
        "standard deviation of the estimates over the root mean square of their reported sigmas, with 95 % intervals "
        f"(chi-square). {said}"
    )
    return Figure(f"sigmas-{number}", sigma_chart(verdicts), _caption(verdicts, several, text))


def _efficiency(number: int, verdicts: Sequence[CaseVerdict], several: bool) -> Figure:
    cases = [verdict.case for verdict in verdicts]
    shares = [
        f"{case_label(one.case, cases)} {one.rms_over_bound:.3g}" for one in verdicts if one.rms_over_bound is not None
    ]
    text = (
        "Cramer-Rao variance over the mean squared error: 100 % is the best that an unbiased estimator can do. Root "
        f"mean square of all errors over the bound: {', '.join(shares)}."
    )
    return Figure(f"efficiency-{number}", efficiency_chart(verdicts), _caption(verdicts, several, text))


def _times(verdicts: Sequence[CaseVerdict]) -> PageSection:
    cases = [verdict.case for verdict in verdicts]
    order = sorted(verdicts, key=lambda verdict: verdict.seconds)
    fast, slow = order[0], order[-1]
    said = f"{case_label(fast.case, cases)} takes {1e3 * fast.seconds:.3g} ms"
    if slow is not fast:
        said += f", {case_label(slow.case, cases)} {1e3 * slow.seconds:.3g} ms"
    return PageSection(
        "Time",
        [Figure("times", time_chart(verdicts), f"Median processor time of one estimation on this machine: {said}.")],
    )


def _parameters(verdicts: Sequence[CaseVerdict]) -> PageSection:
    rows: list[list[str | float | None]] = [
        [
            name, one.name, one.true, one.bias, (one.bias_interval[1] - one.bias_interval[0]) / 2,
            "yes" if one.is_biased else "", one.spread, one.reported_sigma, one.bound_sigma, _percent(one.efficiency),
            100 * one.coverage, "yes" if one.is_overconfident else "", one.unit,
        ]
        for name, one in _each(verdicts)
    ]  # fmt: skip
    left = {name for verdict in verdicts for name in verdict.not_estimated}
    text = f"Not estimated in at least one case: {', '.join(sorted(left))}." if left else ""
    table = DataTable("parameters", _PARAMETERS, rows, "Every parameter in every case.", digits=3)
    return PageSection("Parameters", [table], text, closed=True)
