"""A court's findings on the screen: a row a case, sentences below, and a table of parameters if asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..montecarlo import CaseVerdict, Court, IntervalChecks


def print_court(
    court: Court, content: Mapping[str, Any], out: Path | None, parameters: bool, console: Console | None = None
) -> None:
    """Print the table of cases, what it says in words, and what is to be known of it."""
    console = console or Console(highlight=False)
    study = court.study
    console.print(
        f"[bold]{escape(content['robot'])}[/bold]: {study.seeds} simulated experiments of {content['duration']:g} s a "
        f"noise level, {len(court.parameters)} base parameters\n"
    )
    console.print(_cases(court.verdicts))
    for line in content["sentences"]:
        console.print(f"- {escape(line)}")
    if parameters:
        for verdict in court.verdicts:
            console.print()
            console.print(_parameters(verdict))
    for note in content["notes"]:
        console.print(f"note: {escape(note)}", style="dim")
    if out is not None:
        console.print(f"saved: {out / 'result.json'}, timing.json, runs")


def _table(title: str, headings: Sequence[str], texts: int = 1) -> Table:
    table = Table(
        box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold", title_justify="left", title=title
    )
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place < texts else "right", no_wrap=True)
    return table


def _cases(verdicts: Sequence[CaseVerdict]) -> Table:
    title = (
        "worst bias in standard deviations of the estimates (* significant), rms error over the Cramer-Rao sigma, "
        "coverage of 95 % intervals, P4's checks (68 and 90 % expected), CPU time of an estimation"
    )
    chosen = [part for part in _COLUMNS if part.heading not in _ONLY_IF_SOME or any(map(part.text, verdicts))]
    table = _table(title, [part.heading for part in chosen])
    for verdict in verdicts:
        table.add_row(*(escape(part.text(verdict)) for part in chosen))
    return table


def _parameters(verdict: CaseVerdict) -> Table:
    case = verdict.case
    start = "" if case.start is None else f", start off by {100 * case.start:g} %"
    headings = ("parameter", "true", "bias", "+-", "spread", "sigma\ntold", "bound", "effi-\nciency", "cover-\nage")
    table = _table(f"{case.method}, noise x {case.noise_level:g}{start}", headings)
    for one in verdict.parameters:
        low, high = one.bias_interval
        table.add_row(
            escape(one.name), f"{one.true:.4g}", f"{one.bias:.2g}{_star(one.is_biased)}", f"{(high - low) / 2:.2g}",
            f"{one.spread:.2e}", f"{one.told_sigma:.2e}", _number(one.bound_sigma, ".2e"),
            _number(one.efficiency, ".2f"), f"{_percent(one.coverage)}{_star(one.is_overconfident)}",
        )  # fmt: skip
    return table


def _bias_text(verdict: CaseVerdict) -> str:
    worst = verdict.worst_bias
    return "" if worst is None else f"{worst.bias_in_sigmas:+.2f}{_star(worst.is_biased)} {worst.name}"


def _coverage_text(verdict: CaseVerdict) -> str:
    least = verdict.smallest_coverage
    return "" if least is None else f"{_percent(least.coverage)}{_star(least.is_overconfident)} {least.name}"


def _checks(verdict: CaseVerdict) -> IntervalChecks | None:
    """Return P4's checks; without a bound the spread is compared with the sigmas that the method tells itself."""
    by_bound = verdict.checks_by_bound
    return verdict.checks_as_told if by_bound is None or by_bound.variances is None else by_bound


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
    _Column("P4\nmeans", lambda verdict: "" if (one := _checks(verdict)) is None else _percent(one.means)),
    _Column("P4\nvar.", lambda verdict: "" if (one := _checks(verdict)) is None else _percent(one.variances)),
    _Column("failed", lambda verdict: _percent(verdict.failures / verdict.runs)),
    _Column("time\na run", lambda verdict: _time(verdict.seconds)),
)
