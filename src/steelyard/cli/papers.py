"""``steelyard papers``: a paper's figures beside ours."""

from __future__ import annotations

import os
from pathlib import Path

from ..papers import PaperResult, content, reproduce
from ..run import RunFolder, json_text
from .identify import Timing
from .output import Column, Part, Screen


def run(paper: str, seeds: int | None, out: Path | None, json: bool) -> int:
    """Reproduce a paper, print its claims and save them; return 2 if one is not as expected."""
    timing = Timing()
    with RunFolder(out, "papers") as run:
        found = reproduce(paper, seeds=seeds, threads=os.cpu_count() or 1, stage=timing.stage)
        timing.finish()
        seconds = {**timing.seconds, **found.seconds}
        told = run.save({"paper": found.paper, "seeds": seeds}, {}, content(found), seconds=seconds)
        print(json_text("papers", told)) if json else _print(found, run.place)
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
