"""The result of a Monte Carlo study as plain data, and its findings as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..plain_data import plain
from .configuration import Case
from .run import StudyResult
from .statistics import CaseRuns, IntervalChecks
from .verdict import CaseVerdict, ParameterVerdict

MOST_NAMED = 3
"""Parameters named in a sentence."""

WIDER = 1.1
"""A biased parameter's intervals miss the truth by its bias; by its sigma too if the spread is so many times larger."""


def case_label(case: Case, cases: Sequence[Case]) -> str:
    """Return the label of a case: its method, and noise level and start where they differ between cases."""
    parts = [case.method]
    if len({other.noise_level for other in cases}) > 1:
        parts.append(f"noise x {case.noise_level:g}")
    if case.start is not None:
        parts.append(f"start off by {100 * case.start:g} %")
    return ", ".join(parts)


def sentences(verdicts: Sequence[CaseVerdict]) -> tuple[str, ...]:
    """Return what is wrong with which case, a sentence each; one sentence if nothing is."""
    cases = [verdict.case for verdict in verdicts]
    found = [text for verdict in verdicts for text in _findings(verdict, case_label(verdict.case, cases))]
    if found:
        return tuple(found)
    return (
        "no method failed, none is biased beyond chance, and all 95 % intervals hold the truth as often as they should",
    )


def _findings(verdict: CaseVerdict, name: str) -> Iterator[str]:
    biased = sorted((one for one in verdict.parameters if one.is_biased), key=lambda one: -abs(one.bias_in_sigmas))
    if biased:
        named = ", ".join(_bias_text(one) for one in biased[:MOST_NAMED])
        yield f"{name}: biased in {_count(biased, verdict)}: {named}{_more(biased)}"
    bold = [one for one in verdict.parameters if one.is_overconfident and (_excess(one) > WIDER or not one.is_biased)]
    if bold:
        bold = sorted(bold, key=lambda one: one.coverage)
        named = ", ".join(_coverage_text(one) for one in bold[:MOST_NAMED])
        yield f"{name}: tells sigmas too small in {_count(bold, verdict)}: {named}{_more(bold)}"
    if verdict.failures:
        yield f"{name}: {verdict.failures} of {verdict.runs} runs failed; most often: {verdict.usual_failure}"
    if verdict.not_estimated and verdict.parameters:
        yield f"{name}: not estimated: {', '.join(verdict.not_estimated)}"


def _bias_text(one: ParameterVerdict) -> str:
    missed = f" (coverage {100 * one.coverage:.0f} %)" if one.is_overconfident else ""
    return f"{one.name} by {one.bias_in_sigmas:+.2g} sigma{missed}"


def _coverage_text(one: ParameterVerdict) -> str:
    return f"{one.name} spreads {_excess(one):.2g} times its sigma (coverage {100 * one.coverage:.0f} %)"


def _excess(one: ParameterVerdict) -> float:
    """Return the spread over the reported sigma."""
    return one.spread / one.reported_sigma if one.reported_sigma > 0 else float("inf")


def _count(some: Sequence[ParameterVerdict], verdict: CaseVerdict) -> str:
    return f"{len(some)} of {len(verdict.parameters)} parameters"


def _more(some: Sequence[ParameterVerdict]) -> str:
    return " ..." if len(some) > MOST_NAMED else ""


def study_to_json(result: StudyResult) -> dict[str, Any]:
    """Return everything but times: the same study gives the same bytes."""
    study = result.study
    return plain(
        {
            "methods": list(study.methods),
            "seeds": {"first": study.first_seed, "count": study.seeds},
            "noise_levels": list(study.noise_levels),
            "starts": list(study.starts),
            "bound": {"is_known": result.bound.sigma is not None, "reason": result.bound.reason or None},
            "cases": [_case(verdict, runs) for verdict, runs in zip(result.verdicts, result.runs, strict=True)],
            "sentences": list(sentences(result.verdicts)),
            "notes": list(result.notes),
        }
    )


def times_to_json(result: StudyResult) -> list[dict[str, Any]]:
    """Return the CPU time of a run's estimation in every case [s]."""
    return plain(
        [
            {
                **_head(runs),
                "median": verdict.seconds,
                "least": runs.times.min(),
                "most": runs.times.max(),
            }
            for verdict, runs in zip(result.verdicts, result.runs, strict=True)
        ]
    )


def _head(runs: CaseRuns) -> dict[str, Any]:
    case = runs.case
    return {"method": case.method, "noise_level": case.noise_level, "start": case.start}


def _case(verdict: CaseVerdict, runs: CaseRuns) -> dict[str, Any]:
    worst, least = verdict.worst_bias, verdict.smallest_coverage
    return {
        **_head(runs),
        "runs": verdict.runs,
        "failures": [
            {"seed": int(seed), "message": text}
            for seed, text in zip(runs.seeds, runs.failures, strict=True)
            if text
        ],
        "failure_rate": verdict.failures / verdict.runs,
        "failure_rate_interval": list(verdict.failure_interval),
        "worst_bias": None if worst is None else {
            "name": worst.name, "in_sigmas": worst.bias_in_sigmas, "significant": worst.is_biased,
        },
        "biased": [one.name for one in verdict.parameters if one.is_biased],
        "overconfident": [one.name for one in verdict.parameters if one.is_overconfident],
        "rms_over_bound": verdict.rms_over_bound,
        "mean_coverage": verdict.mean_coverage,
        "smallest_coverage": None if least is None else {"name": least.name, "coverage": least.coverage},
        "checks_by_bound": _checks(verdict.checks_by_bound),
        "checks_as_reported": _checks(verdict.checks_as_reported),
        "parameters": [_parameter(one) for one in verdict.parameters],
        "not_estimated": list(verdict.not_estimated),
    }  # fmt: skip


def _checks(checks: IntervalChecks | None) -> dict[str, Any] | None:
    return None if checks is None else {"means_within_68": checks.means, "variances_within_90": checks.variances}


def _parameter(one: ParameterVerdict) -> dict[str, Any]:
    return {
        "name": one.name, "unit": one.unit, "true": one.true, "runs": one.runs, "mean": one.mean, "bias": one.bias,
        "bias_interval": list(one.bias_interval), "bias_p": one.bias_p, "bias_in_sigmas": one.bias_in_sigmas,
        "biased": one.is_biased, "spread": one.spread, "reported_sigma": one.reported_sigma,
        "bound_sigma": one.bound_sigma, "efficiency": one.efficiency,
        "efficiency_interval": None if one.efficiency_interval is None else list(one.efficiency_interval),
        "coverage": one.coverage, "coverage_interval": list(one.coverage_interval), "coverage_p": one.coverage_p,
        "overconfident": one.is_overconfident,
    }  # fmt: skip
