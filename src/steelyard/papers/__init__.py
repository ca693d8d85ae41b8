"""Five papers reproduced in simulation: their claims and tables with computed figures beside them."""

from __future__ import annotations

from ..errors import EstimateError, nearest_match
from ..progress import Stage, no_stages
from .claim import Claim as Claim
from .claim import PaperResult as PaperResult
from .claim import PaperTable as PaperTable
from .claim import near as near
from .claim import paper_to_json as paper_to_json
from .claim import papers_index as papers_index
from .claim import same as same
from .claim import within as within
from .p1 import p1 as reproduce_p1
from .p2 import p2 as reproduce_p2
from .p3 import p3 as reproduce_p3
from .p4 import p4 as reproduce_p4
from .p5 import p5 as reproduce_p5

_PAPERS = {"P1": reproduce_p1, "P2": reproduce_p2, "P3": reproduce_p3, "P4": reproduce_p4, "P5": reproduce_p5}
PAPERS = tuple(_PAPERS)
"""Papers that can be reproduced."""


def reproduce(paper: str, *, seeds: int | None = None, threads: int = 1, stage: Stage = no_stages) -> PaperResult:
    """Reproduce a paper in simulation: its claims and tables with ours beside them.

    Args:
        paper: ``P1`` to ``P5``.
        seeds: Simulated experiments over which figures are means; None: the paper's own number.
        threads: Threads that share the work; the result is the same.
        stage: Called with the stage name; returns a progress callback.

    Raises:
        EstimateError: If the paper is not known, or the number of seeds or threads is below 1.
    """
    check_papers(paper)
    for what, number in (("seeds", seeds), ("threads", threads)):
        if number is not None and (int(number) != number or number < 1):
            raise EstimateError(f"{what}: got {number}, allowed are whole numbers from 1 on")
    run = _PAPERS[paper]
    return run(threads=threads, stage=stage) if seeds is None else run(seeds, threads, stage)


def check_papers(*names: str) -> None:
    """Refuse names of papers that are not known, or given twice.

    Raises:
        EstimateError: If one is.
    """
    for k, name in enumerate(names):
        if name not in _PAPERS:
            close = nearest_match(name.upper(), PAPERS)
            raise EstimateError(f"paper: got '{name}', allowed are {', '.join(PAPERS)}{close}")
        if name in names[:k]:
            raise EstimateError(f"paper '{name}' is given twice; give each once")
