"""``steelyard papers``: reproduction of published figures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ..plain_data import json_text
from .options import Json, Out, Quiet, quietly
from .output import Column, Part, Screen, Timing

if TYPE_CHECKING:
    from ..papers import PaperResult
    from ..run.folder import Report

PAPERS = (
    "P1: Gautier 2001, SCARA; P2: Kolyubin 2017, LWR4+; P3: Klimchik 2013, KR-270; P4: Swevers 1997, IR 361; "
    "P5: Jubien 2014, LWR4+."
)


def papers(
    *papers: Annotated[str, Parameter(help=f"{PAPERS} Default: all.")],
    seeds: Annotated[int | None, Parameter(help="Simulated experiments; default: as many as the paper needs.")] = None,
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Reproduce the figures of papers, beside those printed."""
    from ..papers import PAPERS as KNOWN
    from ..papers import check_papers, paper_to_json, reproduce
    from ..run import RunFolder

    wanted = papers or KNOWN
    check_papers(*wanted)
    timing = Timing()
    with quietly(quiet), RunFolder(out, "papers") as run:
        found = [reproduce(name, seeds=seeds, threads=os.cpu_count() or 1, stage=timing.stage) for name in wanted]
        timing.finish()
        seconds = dict(timing.seconds)
        for one in found:
            seconds |= one.seconds
        each = [paper_to_json(one) for one in found]
        alone = len(wanted) == 1
        settings = {"paper": wanted[0]} if alone else {"papers": list(wanted)}
        content = each[0] if alone else {"papers": each}
        content = run.save(
            {**settings, "seeds": seeds}, {}, content, seconds=seconds, report=_pages(found), report_has_times=True
        )
        if json:
            print(json_text("papers", content))
        else:
            for one in found:
                _print(one, several=len(found) > 1)
            _print_saved(run.place, found)
    return 0 if all(one.holds for one in found) else 2


def _pages(found: Sequence[PaperResult]) -> Report | dict[str, Report]:
    """Return one page, or one for each paper and an index."""
    from ..papers import papers_index

    if len(found) == 1:
        return found[0].to_html
    return {**{f"{one.paper}.html": one.to_html for one in found}, "index.html": partial(papers_index, found)}


def _print(found: PaperResult, *, several: bool) -> None:
    screen = Screen()
    screen.line((found.paper, "bold"), f": {found.title}")
    screen.line()
    rows: list[list[Part]] = [
        [
            claim.name, _cell(claim.paper), _cell(claim.ours), _cell(claim.expected),
            (claim.outcome, "green" if claim.holds else "red"),
        ]
        for claim in found.claims
    ]  # fmt: skip
    screen.table([Column(heading, "text") for heading in ("claim", "paper", "ours", "expected", "")], rows)
    screen.line()
    screen.line(f"{found.paper}: " if several else "", _summary(found), always=True)
    remarks = dict.fromkeys(claim.remark for claim in found.claims if claim.remark)
    for remark in (*remarks, *found.notes):
        screen.line(f"- {remark}")
    if found.seconds:
        times = ", ".join(f"{what} {1e3 * seconds:.0f} ms" for what, seconds in found.seconds.items())
        screen.line(f"- processor time of one experiment here, compiled code at hand: {times}")


def _print_saved(out: Path | None, found: Sequence[PaperResult]) -> None:
    if out is not None:
        page = "report.html" if len(found) == 1 else "index.html"
        tables = sum(len(one.tables) for one in found)
        Screen().line(f"saved: {out / 'result.json'}, with {tables} tables, and {page}", always=True)


def _summary(found: PaperResult) -> str:
    stated = [claim for claim in found.claims if claim.paper_holds is not None]
    broken = sum(not claim.paper_holds for claim in stated)
    return (
        f"{sum(claim.holds for claim in found.claims)} of {len(found.claims)} claims came out as expected; of the "
        f"{len(stated)} statements of the paper that these figures decide, {broken} do not hold"
    )


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
