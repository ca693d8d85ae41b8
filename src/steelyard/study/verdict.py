"""Verdicts on the runs of every case and parameter, and the findings as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..model import BaseParameter
from .configuration import Case
from .statistics import (
    CaseRuns,
    Interval,
    IntervalChecks,
    PooledCoverage,
    bias_test,
    efficiency,
    holm,
    interval_checks,
    pooled_coverage,
    rarely_covered,
    share_interval,
)


@dataclass(frozen=True)
class ParameterVerdict:
    """Verdict on one parameter in the runs of a case; intervals are of 95 %.

    Attributes:
        name: Name of the base parameter.
        column: Name of its column.
        unit: SI unit.
        true: True value.
        runs: Runs that gave a value.
        mean: Mean of the values.
        bias: Mean less truth.
        bias_interval: Its interval (Student).
        bias_p: Probability of as large a bias by chance.
        is_biased: Whether the bias is significant among all parameters of all cases (Holm).
        spread: Standard deviation of the values.
        reported_sigma: Root mean square of the reported sigmas.
        bound_sigma: Cramer-Rao sigma; None if there is no bound.
        efficiency: Cramer-Rao variance over the mean squared error; None without a bound.
        efficiency_interval: Its interval (chi-square).
        coverage: Share of the reported 95 % intervals that hold the truth.
        coverage_interval: Its interval (Wilson).
        coverage_p: Probability of so low a coverage by chance if the intervals were right.
        is_overconfident: Whether the coverage is significantly too low among all parameters of all cases (Holm).
    """

    name: str
    column: str
    unit: str
    true: float
    runs: int
    mean: float
    bias: float
    bias_interval: Interval
    bias_p: float
    is_biased: bool
    spread: float
    reported_sigma: float
    bound_sigma: float | None
    efficiency: float | None
    efficiency_interval: Interval | None
    coverage: float
    coverage_interval: Interval
    coverage_p: float
    is_overconfident: bool

    @property
    def bias_in_sigmas(self) -> float:
        """Bias over the spread of the values, signed."""
        return self.bias / self.spread if self.spread > 0 else float(np.copysign(np.inf, self.bias)) * (self.bias != 0)


@dataclass(frozen=True)
class CaseVerdict:
    """Verdict on the runs of a case.

    Attributes:
        case: Method, noise level, start.
        runs: Number of runs.
        failures: Runs that failed.
        failure_interval: Interval of the share of failures (Wilson).
        usual_failure: The message that most of them have, empty without any.
        parameters: Parameters that two runs at least gave a value of.
        not_estimated: Names of those that fewer did.
        rms_over_bound: Root mean square of all errors, each over its Cramer-Rao sigma; None without a bound.
        checks_by_bound: P4's two checks with Cramer-Rao sigmas; None without runs.
        checks_as_reported: P4's two checks with the reported sigmas.
        pooled: Coverage of all parameters together; None without parameters.
        seconds: Median CPU time of a run's estimation [s].
    """

    case: Case
    runs: int
    failures: int
    failure_interval: Interval
    usual_failure: str
    parameters: tuple[ParameterVerdict, ...]
    not_estimated: tuple[str, ...]
    rms_over_bound: float | None
    checks_by_bound: IntervalChecks | None
    checks_as_reported: IntervalChecks | None
    pooled: PooledCoverage | None
    seconds: float

    @property
    def worst_bias(self) -> ParameterVerdict | None:
        """The parameter whose bias is largest in units of its spread."""
        return max(self.parameters, key=lambda one: abs(one.bias_in_sigmas), default=None)

    @property
    def smallest_coverage(self) -> ParameterVerdict | None:
        """The parameter whose intervals hold the truth most seldom."""
        return min(self.parameters, key=lambda one: one.coverage, default=None)

    @property
    def mean_coverage(self) -> float | None:
        """Mean coverage of all parameters."""
        return float(np.mean([one.coverage for one in self.parameters])) if self.parameters else None

    @property
    def judges_coverage(self) -> bool:
        """Whether the coverage is found too low, or the runs would have shown it if it were :data:`TOO_LOW`."""
        if self.pooled is None:
            return False
        found = self.pooled.is_too_low or any(one.is_overconfident for one in self.parameters)
        return found or self.pooled.shown >= TOO_LOW


def judged_cases(
    runs: Sequence[CaseRuns], parameters: Sequence[BaseParameter], true: np.ndarray, bound: np.ndarray | None
) -> tuple[CaseVerdict, ...]:
    """Return the verdict of every case; significance accounts for all tests of all cases (Holm).

    Args:
        runs: Runs of each case.
        parameters: Base parameters, c of them, in the order of the runs' rows.
        true: True values (c,).
        bound: Cramer-Rao sigmas at noise level 1 (c,), None without a bound.
    """
    verdicts = [_case_verdict(one, parameters, true, bound, len(runs)) for one in runs]
    everything = [one for verdict in verdicts for one in verdict.parameters]
    biased = iter(holm(np.array([one.bias_p for one in everything])))
    overconfident = iter(holm(np.array([one.coverage_p for one in everything])))
    return tuple(
        replace(
            verdict,
            parameters=tuple(
                replace(one, is_biased=bool(next(biased)), is_overconfident=bool(next(overconfident)))
                for one in verdict.parameters
            ),
        )
        for verdict in verdicts
    )


def _case_verdict(
    runs: CaseRuns, parameters: Sequence[BaseParameter], true: np.ndarray, bound: np.ndarray | None, cases: int
) -> CaseVerdict:
    messages = [text for text in runs.failures if text]
    failures = len(messages)
    usual = max(messages, key=messages.count, default="")
    level_bound = np.full(len(true), np.nan) if bound is None else bound * runs.case.noise_level
    errors = runs.values - true[:, None]
    hits = np.where(np.isfinite(errors), np.abs(errors) <= runs.half_width, np.nan)
    judged, left, rows = [], [], []
    for row, parameter in enumerate(parameters):
        there = np.isfinite(runs.values[row])
        if there.sum() < 2:
            left.append(parameter.name)
            continue
        columns = (runs.values[row, there], runs.sigma[row, there], runs.half_width[row, there])
        judged.append(_parameter_verdict(parameter, columns, float(true[row]), float(level_bound[row])))
        rows.append(row)
    by_bound, as_reported = _checks(runs, true, level_bound)
    return CaseVerdict(
        runs.case, len(runs.seeds), failures, share_interval(failures, len(runs.seeds)), usual, tuple(judged),
        tuple(left), _rms_over_bound(errors, level_bound), by_bound, as_reported,
        pooled_coverage(hits[rows], cases) if rows else None, float(np.median(runs.times)),
    )  # fmt: skip


def _parameter_verdict(
    parameter: BaseParameter, columns: tuple[np.ndarray, np.ndarray, np.ndarray], true: float, bound: float
) -> ParameterVerdict:
    values, sigma, half_width = columns
    errors = values - true
    interval, bias_p = bias_test(errors)
    hits = int(np.sum(np.abs(errors) <= half_width))
    part = efficiency(errors, bound) if np.isfinite(bound) else (None, None)
    return ParameterVerdict(
        name=parameter.name,
        column=parameter.column,
        unit=parameter.unit,
        true=true,
        runs=len(values),
        mean=float(values.mean()),
        bias=float(errors.mean()),
        bias_interval=interval,
        bias_p=bias_p,
        is_biased=False,
        spread=float(errors.std(ddof=1)),
        reported_sigma=float(np.sqrt(np.mean(sigma**2))),
        bound_sigma=bound if np.isfinite(bound) else None,
        efficiency=part[0],
        efficiency_interval=part[1],
        coverage=hits / len(values),
        coverage_interval=share_interval(hits, len(values)),
        coverage_p=rarely_covered(hits, len(values)),
        is_overconfident=False,
    )


def _rms_over_bound(errors: np.ndarray, bound: np.ndarray) -> float | None:
    ratios = errors[np.isfinite(bound)] / bound[np.isfinite(bound), None]
    there = np.isfinite(ratios)
    return float(np.sqrt(np.mean(ratios[there] ** 2))) if there.any() else None


def _checks(runs: CaseRuns, true: np.ndarray, bound: np.ndarray) -> tuple[IntervalChecks | None, IntervalChecks | None]:
    """Return P4's checks over the runs that did not fail and the parameters that all of these gave."""
    good = np.array([not text for text in runs.failures], dtype=bool)
    rows = np.isfinite(runs.values[:, good]).all(axis=1)
    if good.sum() < 2 or not rows.any():
        return None, None
    values = runs.values[rows][:, good]
    reported = np.sqrt(np.mean(runs.sigma[rows][:, good] ** 2, axis=1))
    known = bound[rows] if np.isfinite(bound[rows]).all() else None
    return interval_checks(values, true[rows], known), interval_checks(values, true[rows], reported)


MOST_NAMED = 3
"""Parameters named in a sentence."""

TOO_LOW = 0.9
"""Coverage of 95 % intervals that a study must be able to show, or it does not call them right."""

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
    """Return the findings of all cases, a sentence each; one sentence if there are none."""
    cases = [verdict.case for verdict in verdicts]
    found = [text for verdict in verdicts for text in _findings(verdict, case_label(verdict.case, cases))]
    unsure = {
        case_label(verdict.case, cases): verdict.pooled
        for verdict in verdicts
        if verdict.pooled is not None and not verdict.judges_coverage
    }
    if not found:
        right = ", and over all parameters 95 % intervals hold the truth as often as they should"
        found = [f"no method failed, none is biased beyond chance{'' if unsure else right}"]
    if unsure:
        found.append(_too_few(unsure, max(verdict.runs for verdict in verdicts)))
    return tuple(found)


def _too_few(unsure: Mapping[str, PooledCoverage], runs: int) -> str:
    """Return what the runs cannot say about coverage, with the case that covers least."""
    name, least = min(unsure.items(), key=lambda item: item[1].share)
    return (
        f"{runs} runs are too few to judge coverage: right 95 % intervals would hold the truth in "
        f"{100 * least.least:.0f} to 100 % by chance; found {100 * least.share:.0f} % ({name})"
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
        yield f"{name}: reports sigmas too small in {_count(bold, verdict)}: {named}{_more(bold)}"
    pooled = verdict.pooled
    if pooled and pooled.is_too_low and not any(one.is_overconfident for one in verdict.parameters):
        yield (
            f"{name}: over all parameters 95 % intervals hold the truth in {100 * pooled.share:.0f} % only "
            f"({100 * pooled.least:.0f} to 100 % by chance)"
        )
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
