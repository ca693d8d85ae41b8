"""``steelyard papers``: a paper's figures beside ours."""

from __future__ import annotations

import os
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..papers import PaperResult, content, reproduce
from ..run import RunFolder, json_text
from .identify import Timing


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
    console = Console(highlight=False)
    console.print(f"[bold]{found.paper}[/bold]: {found.title}\n")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("claim", "paper", "ours", "expected", ""):
        table.add_column(heading, overflow="fold")
    for claim in found.claims:
        colour = "green" if claim.holds else "red"
        outcome = f"[{colour}]{claim.outcome}[/{colour}]"
        cells = (claim.name, _cell(claim.paper), _cell(claim.ours), _cell(claim.expected))
        table.add_row(*(escape(cell) for cell in cells), outcome)
    console.print(table)
    console.print(f"\n{_summary(found)}")
    remarks = dict.fromkeys(claim.remark for claim in found.claims if claim.remark)
    for remark in (*remarks, *found.notes):
        console.print(f"- {escape(remark)}")
    if found.seconds:
        times = ", ".join(f"{what} {1e3 * seconds:.0f} ms" for what, seconds in found.seconds.items())
        console.print(f"- processor time of one experiment here, compiled code at hand: {times}")
    if out is not None:
        console.print(f"saved: {out / 'result.json'}, with {len(found.tables)} tables")


def _summary(found: PaperResult) -> str:
    stated = [claim for claim in found.claims if claim.paper_holds is not None]
    broken = sum(not claim.paper_holds for claim in stated)
    return (
        f"{sum(claim.holds for claim in found.claims)} of {len(found.claims)} claims came out as expected; of the "
        f"{len(stated)} statements of the paper that these figures decide, {broken} do not hold"
    )


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
