"""A court's findings as plain data."""

from __future__ import annotations

from typing import Any

from ..identify import plain
from .court import Court
from .runs import CaseRuns
from .statistics import IntervalChecks
from .verdict import CaseVerdict, ParameterVerdict
from .words import sentences


def told_court(court: Court) -> dict[str, Any]:
    """Return everything but times: the same study gives the same bytes."""
    study = court.study
    return plain(
        {
            "methods": list(study.methods),
            "seeds": {"first": study.first_seed, "count": study.seeds},
            "noise_levels": list(study.noise_levels),
            "starts": list(study.starts),
            "bound": {"is_known": court.bound.sigma is not None, "reason": court.bound.reason or None},
            "cases": [_case(verdict, runs) for verdict, runs in zip(court.verdicts, court.runs, strict=True)],
            "sentences": list(sentences(court.verdicts)),
            "notes": list(court.notes),
        }
    )


def told_times(court: Court) -> list[dict[str, Any]]:
    """Return the CPU time of a run's estimation in every case [s]."""
    return plain(
        [
            {
                **_head(runs),
                "median": verdict.seconds,
                "least": runs.times.min(),
                "most": runs.times.max(),
            }
            for verdict, runs in zip(court.verdicts, court.runs, strict=True)
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
        "checks_as_told": _checks(verdict.checks_as_told),
        "parameters": [_parameter(one) for one in verdict.parameters],
        "not_estimated": list(verdict.not_estimated),
    }  # fmt: skip


def _checks(checks: IntervalChecks | None) -> dict[str, Any] | None:
    return None if checks is None else {"means_within_68": checks.means, "variances_within_90": checks.variances}


def _parameter(one: ParameterVerdict) -> dict[str, Any]:
    return {
        "name": one.name, "unit": one.unit, "true": one.true, "runs": one.runs, "mean": one.mean, "bias": one.bias,
        "bias_interval": list(one.bias_interval), "bias_p": one.bias_p, "bias_in_sigmas": one.bias_in_sigmas,
        "biased": one.is_biased, "spread": one.spread, "told_sigma": one.told_sigma, "bound_sigma": one.bound_sigma,
        "efficiency": one.efficiency,
        "efficiency_interval": None if one.efficiency_interval is None else list(one.efficiency_interval),
        "coverage": one.coverage, "coverage_interval": list(one.coverage_interval), "coverage_p": one.coverage_p,
        "overconfident": one.is_overconfident,
    }  # fmt: skip
