"""Commands that show what the product can do. Heavy imports wait inside, so that ``--help`` is instant."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ..options import OUTPUT, Json, Out, Quiet, quietly

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
    from .. import papers as command

    with quietly(quiet):
        return command.run(paper, seeds, out, json)


def demo(
    *,
    out: Annotated[
        Path, Parameter(name="--out", group=OUTPUT, help="Folder for recordings and result; default: demo.")
    ] = Path("demo"),
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """The whole chain on the built-in KUKA LWR4+: motion, recordings, identification, verdict."""
    from .. import demo as command

    with quietly(quiet):
        return command.run(out, json)
