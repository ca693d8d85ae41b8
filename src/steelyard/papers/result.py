"""What comes out of a paper: claims and tables, and the same as plain data for JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from .claim import Claim

Entry = str | float | int | None


@dataclass(frozen=True)
class Table:
    """A printed table with ours beside it.

    Attributes:
        title: What it shows.
        columns: Headings.
        rows: Rows, one entry a column; None where there is nothing.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Entry]]) -> Table:
    """Return a table; numbers that are not finite become None."""
    kept = tuple(tuple(_entry(value) for value in row) for row in rows)
    for row in kept:
        if len(row) != len(columns):
            raise ValueError(f"table '{title}': a row of {len(row)} entries under {len(columns)} headings")
    return Table(title, tuple(columns), kept)


def _entry(value: Any) -> Entry:
    if value is None or isinstance(value, str | int):
        return value
    return float(value) if isfinite(value) else None


@dataclass(frozen=True)
class PaperResult:
    """A paper reproduced.

    Attributes:
        paper: ``P1`` to ``P5``.
        title: Authors, year and subject.
        claims: Its claims, with ours beside them; each name occurs once.
        tables: Its tables, with ours beside them.
        notes: What a reader should know: settings, and what is not reproduced here.
        seconds: Processor times that the paper compares, by what was done: of this machine, so not among the figures.
    """

    paper: str
    title: str
    claims: tuple[Claim, ...]
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    seconds: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        twice = [name for name, count in Counter(claim.name for claim in self.claims).items() if count > 1]
        if twice:
            raise ValueError(f"{self.paper}: the claim '{twice[0]}' is counted twice")

    @property
    def holds(self) -> bool:
        """Whether all claims come out as expected, those included that are expected not to hold."""
        return all(claim.holds for claim in self.claims)


def content(result: PaperResult) -> dict[str, Any]:
    """Return a result as plain data: ``paper``, ``title``, ``claims``, ``tables``, ``notes``."""
    keys = ("name", "paper", "ours", "expected", "holds", "paper_holds", "fails_if", "remark")
    return {
        "paper": result.paper,
        "title": result.title,
        "claims": [{key: getattr(claim, key) for key in keys} for claim in result.claims],
        "tables": [
            {"title": each.title, "columns": list(each.columns), "rows": [list(row) for row in each.rows]}
            for each in result.tables
        ],
        "notes": list(result.notes),
    }
