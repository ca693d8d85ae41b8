"""The court's findings in plain sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .study import Case
from .verdict import CaseVerdict, ParameterVerdict

MOST_NAMED = 3
"""Parameters named in a sentence."""

WIDER = 1.1
"""A biased parameter's intervals miss the truth by its bias; by its sigma too if the spread is so many times larger."""


def case_words(case: Case, cases: Sequence[Case]) -> str:
    """Return what tells a case from the others: its method, and level and start where they differ."""
    words = [case.method]
    if len({other.noise_level for other in cases}) > 1:
        words.append(f"noise x {case.noise_level:g}")
    if case.start is not None:
        words.append(f"start off by {100 * case.start:g} %")
    return ", ".join(words)


def sentences(verdicts: Sequence[CaseVerdict]) -> tuple[str, ...]:
    """Return what is wrong with which case, a sentence each; one sentence of praise if nothing is."""
    cases = [verdict.case for verdict in verdicts]
    found = [text for verdict in verdicts for text in _findings(verdict, case_words(verdict.case, cases))]
    if found:
        return tuple(found)
    return (
        "no method failed, none is biased beyond chance, and all 95 % intervals hold the truth as often as they should",
    )


def _findings(verdict: CaseVerdict, name: str) -> Iterator[str]:
    biased = sorted((one for one in verdict.parameters if one.is_biased), key=lambda one: -abs(one.bias_in_sigmas))
    if biased:
        told = ", ".join(_bias_words(one) for one in biased[:MOST_NAMED])
        yield f"{name}: biased in {_count(biased, verdict)}: {told}{_more(biased)}"
    bold = [one for one in verdict.parameters if one.is_overconfident and (_excess(one) > WIDER or not one.is_biased)]
    if bold:
        bold = sorted(bold, key=lambda one: one.coverage)
        told = ", ".join(_coverage_words(one) for one in bold[:MOST_NAMED])
        yield f"{name}: tells sigmas too small in {_count(bold, verdict)}: {told}{_more(bold)}"
    if verdict.failures:
        yield f"{name}: {verdict.failures} of {verdict.runs} runs failed; most often: {verdict.usual_failure}"
    if verdict.not_estimated and verdict.parameters:
        yield f"{name}: not estimated: {', '.join(verdict.not_estimated)}"


def _bias_words(one: ParameterVerdict) -> str:
    missed = f" (coverage {100 * one.coverage:.0f} %)" if one.is_overconfident else ""
    return f"{one.name} by {one.bias_in_sigmas:+.2g} sigma{missed}"


def _coverage_words(one: ParameterVerdict) -> str:
    return f"{one.name} spreads {_excess(one):.2g} times its sigma (coverage {100 * one.coverage:.0f} %)"


def _excess(one: ParameterVerdict) -> float:
    """Return the spread over the sigma told."""
    return one.spread / one.told_sigma if one.told_sigma > 0 else float("inf")


def _count(some: Sequence[ParameterVerdict], verdict: CaseVerdict) -> str:
    return f"{len(some)} of {len(verdict.parameters)} parameters"


def _more(some: Sequence[ParameterVerdict]) -> str:
    return " ..." if len(some) > MOST_NAMED else ""
