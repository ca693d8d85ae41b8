"""A court's findings on the screen: a row a case, sentences below, and a table of parameters if asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from ..study import CaseVerdict, IntervalChecks, StudyResult
from .output import Column, Screen


def print_study(
    court: StudyResult, content: Mapping[str, Any], out: Path | None, parameters: bool, console: Console | None = None
) -> None:
    """Print the table of cases, what it says in words, and what is to be known of it."""
    screen = Screen(console)
    study = court.study
    screen.line(
        (content["robot"], "bold"),
        f": {study.seeds} simulated experiments of {content['duration']:g} s a noise level, "
        f"{len(court.parameters)} base parameters",
    )
    screen.line()
    _print_cases(screen, court.verdicts)
    for line in content["sentences"]:
        screen.line(f"- {line}", always=True)
    if parameters:
        for verdict in court.verdicts:
            screen.line()
            _print_parameters(screen, verdict)
    for note in content["notes"]:
        screen.line(f"note: {note}", style="dim")
    if out is not None:
        screen.line(f"saved: {out / 'result.json'}, timing.json, runs", always=True)


def _print_cases(screen: Screen, verdicts: Sequence[CaseVerdict]) -> None:
    title = (
        "worst bias in standard deviations of the estimates (* significant), rms error over the Cramer-Rao sigma, "
        "coverage of 95 % intervals, means and variances within their intervals (68 and 90 % expected), CPU time of "
        "an estimation"
    )
    chosen = [part for part in _COLUMNS if part.heading not in _ONLY_IF_SOME or any(map(part.text, verdicts))]
    rows = [[part.text(verdict) for part in chosen] for verdict in verdicts]
    kinds: dict[str, Literal["key"]] = dict.fromkeys(("method", "noise", "start"), "key")
    columns = [Column(part.heading, kinds.get(part.heading, "figure")) for part in chosen]
    screen.table(columns, rows, title=title, gap=1)


def _print_parameters(screen: Screen, verdict: CaseVerdict) -> None:
    case = verdict.case
    start = "" if case.start is None else f", start off by {100 * case.start:g} %"
    headings = ("parameter", "true", "bias", "+-", "spread", "sigma\ntold", "bound", "effi-\nciency", "cover-\nage")
    rows = []
    for one in verdict.parameters:
        low, high = one.bias_interval
        rows.append([
            one.name, f"{one.true:.4g}", f"{one.bias:.2g}{_star(one.is_biased)}", f"{(high - low) / 2:.2g}",
            f"{one.spread:.2e}", f"{one.reported_sigma:.2e}", _number(one.bound_sigma, ".2e"),
            _number(one.efficiency, ".2f"), f"{_percent(one.coverage)}{_star(one.is_overconfident)}",
        ])  # fmt: skip
    first, *others = headings
    columns = [Column(first, "key"), *map(Column, others)]
    screen.table(columns, rows, title=f"{case.method}, noise x {case.noise_level:g}{start}", gap=1)


def _bias_text(verdict: CaseVerdict) -> str:
    worst = verdict.worst_bias
    return "" if worst is None else f"{worst.bias_in_sigmas:+.2f}{_star(worst.is_biased)} {worst.name}"


def _coverage_text(verdict: CaseVerdict) -> str:
    least = verdict.smallest_coverage
    return "" if least is None else f"{_percent(least.coverage)}{_star(least.is_overconfident)} {least.name}"


def _checks(verdict: CaseVerdict) -> IntervalChecks | None:
    """Return P4's checks; without a bound the spread is compared with the sigmas that the method tells itself."""
    by_bound = verdict.checks_by_bound
    return verdict.checks_as_reported if by_bound is None or by_bound.variances is None else by_bound


def _star(is_significant: bool) -> str:
    return "*" if is_significant else ""


def _number(value: float | None, style: str) -> str:
    return "" if value is None else f"{value:{style}}"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"


def _time(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


@dataclass(frozen=True)
class _Column:
    heading: str
    text: Callable[[CaseVerdict], str]


_ONLY_IF_SOME = ("start",)
_COLUMNS = (
    _Column("method", lambda verdict: verdict.case.method),
    _Column("noise", lambda verdict: f"{verdict.case.noise_level:g}"),
    _Column("start", lambda verdict: "" if verdict.case.start is None else f"{verdict.case.start:g}"),
    _Column("worst bias", _bias_text),
    _Column("rms/\nbound", lambda verdict: _number(verdict.rms_over_bound, ".2f")),
    _Column("cover-\nage", lambda verdict: _percent(verdict.mean_coverage)),
    _Column("smallest", _coverage_text),
    _Column("means\nin", lambda verdict: "" if (one := _checks(verdict)) is None else _percent(one.means)),
    _Column("var.\nin", lambda verdict: "" if (one := _checks(verdict)) is None else _percent(one.variances)),
    _Column("failed", lambda verdict: _percent(verdict.failures / verdict.runs)),
    _Column("time\na run", lambda verdict: _time(verdict.seconds)),
)
