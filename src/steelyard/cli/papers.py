"""``steelyard papers``: reproduction of published figures."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ..plain_data import json_text
from .options import Json, Out, Quiet, quietly
from .output import Column, Part, Screen, Timing

if TYPE_CHECKING:
    from ..papers import PaperResult

PAPERS = (
    "P1: Gautier 2001, SCARA; P2: Kolyubin 2017, LWR4+; P3: Klimchik 2013, KR-270; P4: Swevers 1997, IR 361; "
    "P5: Jubien 2014, LWR4+."
)


def papers(
    paper: Annotated[str, Parameter(help=PAPERS)],
    /,
    *,
    seeds: Annotated[int | None, Parameter(help="Simulated experiments; default: as many as the paper needs.")] = None,
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Reproduce a paper's figures, beside those printed."""
    from ..papers import paper_to_json, reproduce
    from ..run import RunFolder

    timing = Timing()
    with quietly(quiet), RunFolder(out, "papers") as run:
        found = reproduce(paper, seeds=seeds, threads=os.cpu_count() or 1, stage=timing.stage)
        timing.finish()
        seconds = {**timing.seconds, **found.seconds}
        content = run.save({"paper": found.paper, "seeds": seeds}, {}, paper_to_json(found), seconds=seconds)
        print(json_text("papers", content)) if json else _print(found, run.place)
    return 0 if found.holds else 2


def _print(found: PaperResult, out: Path | None) -> None:
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
    screen.line(_summary(found), always=True)
    remarks = dict.fromkeys(claim.remark for claim in found.claims if claim.remark)
    for remark in (*remarks, *found.notes):
        screen.line(f"- {remark}")
    if found.seconds:
        times = ", ".join(f"{what} {1e3 * seconds:.0f} ms" for what, seconds in found.seconds.items())
        screen.line(f"- processor time of one experiment here, compiled code at hand: {times}")
    if out is not None:
        screen.line(f"saved: {out / 'result.json'}, with {len(found.tables)} tables", always=True)


def _summary(found: PaperResult) -> str:
    stated = [claim for claim in found.claims if claim.paper_holds is not None]
    broken = sum(not claim.paper_holds for claim in stated)
    return (
        f"{sum(claim.holds for claim in found.claims)} of {len(found.claims)} claims came out as expected; of the "
        f"{len(stated)} statements of the paper that these figures decide, {broken} do not hold"
    )


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
