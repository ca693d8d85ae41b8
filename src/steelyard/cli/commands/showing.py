"""Commands that show what the product can do. Heavy imports wait inside, so that ``--help`` is instant."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ..options import Json, Out


def papers(
    paper: Annotated[str, Parameter(help="P1 to P5.")],
    /,
    *,
    seeds: Annotated[int | None, Parameter(help="Simulated experiments; default: as many as the paper needs.")] = None,
    out: Out = None,
    json: Json = False,
) -> int:
    """Reproduce a paper's figures, beside those printed."""
    from .. import papers as command

    return command.run(paper, seeds, out, json)


def demo(*, out: Out = Path("demo"), json: Json = False) -> int:
    """The whole chain on the built-in KUKA LWR4+: motion, recordings, identification, verdict."""
    from .. import demo as command

    return command.run(out or Path("demo"), json)
