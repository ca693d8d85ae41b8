"""Claims of the papers with computed figures beside them, tables, and both as plain data and as reports.

``holds``: the computed figure is what a correct implementation is expected to get; this decides the exit code.
``paper_holds``: the paper's statement is true of the computed figure. A statement that is known not to reproduce is
expected not to hold, and its claim fails if it does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite, sqrt
from typing import Any

from ..judge import published_run
from ..plain_data import plain
from ..report import DataTable, Page, PageSection, page_html, sentence
from ..report import Figure as PageFigure
from ..text import counted

Figure = str | float
"""A number, or a text that stands for several."""

Range = tuple[float, float]


@dataclass(frozen=True)
class Claim:
    """A figure of a paper beside the computed one. Make one with :func:`near`, :func:`within` or :func:`same`.

    Attributes:
        name: What the figure is.
        paper: What the paper prints.
        ours: What was computed.
        expected: What a correct implementation gets, with its spread.
        holds: Whether ours is what is expected.
        fails_if: What would make ours differ from what is expected.
        paper_holds: Whether the paper's statement is true of ours; None where it states nothing that ours can decide.
        remark: How the paper misleads, or the reason of a difference; empty if there is none.
    """

    name: str
    paper: Figure
    ours: Figure
    expected: str
    holds: bool
    fails_if: str
    paper_holds: bool | None = None
    remark: str = ""

    def __post_init__(self) -> None:
        if not self.fails_if.strip():
            raise ValueError(f"claim '{self.name}': say in fails_if what would make it fail")

    @property
    def outcome(self) -> str:
        """The outcome as text: as expected or not, and whether the paper's statement holds."""
        text = "as expected" if self.holds else "not as expected"
        if self.paper_holds is None:
            return text
        return f"{text}; the paper's statement {'holds' if self.paper_holds else 'does not hold'}"


def within(
    name: str,
    paper: Figure,
    ours: float,
    low: float,
    high: float,
    remark: str = "",
    *,
    fails_if: str,
    why: str = "",
    claimed: Range | None = None,
) -> Claim:
    """Return a claim that is as expected where ours lies between two bounds, both allowed.

    Args:
        name: What the figure is.
        paper: What the paper prints.
        ours: What was computed.
        low: The smallest figure expected.
        high: The largest.
        remark: See :class:`Claim`.
        fails_if: See :class:`Claim`.
        why: Where the bounds come from.
        claimed: Range of figures for which the paper's statement is true; None if it states nothing. What is expected
            lies wholly inside or wholly outside of it.
    """
    if claimed is not None and not (claimed[0] <= low <= high <= claimed[1] or high < claimed[0] or low > claimed[1]):
        raise ValueError(f"claim '{name}': {_range(low, high)} is expected, which leaves open whether the paper holds")
    expected = _range(low, high) + (f" ({why})" if why else "")
    paper_holds = None if claimed is None else bool(claimed[0] <= ours <= claimed[1])
    return Claim(name, paper, _finite(ours), expected, bool(low <= ours <= high), fails_if, paper_holds, remark)


def near(
    name: str,
    paper: Figure,
    ours: float,
    reference: float,
    tolerance: float,
    remark: str = "",
    *,
    fails_if: str,
    why: str = "",
    claimed: Range | None = None,
) -> Claim:
    """Return a claim that is as expected where ours differs from a reference by no more than the tolerance."""
    found = within(
        name, paper, ours, reference - tolerance, reference + tolerance, remark, fails_if=fails_if, claimed=claimed
    )
    expected = f"{reference:.4g} +- {tolerance:.2g}" + (f" ({why})" if why else "")
    holds = bool(abs(ours - reference) <= tolerance)
    return Claim(name, paper, found.ours, expected, holds, fails_if, found.paper_holds, remark)


def same(
    name: str,
    paper: Figure,
    ours: Figure,
    expected: Figure,
    remark: str = "",
    *,
    fails_if: str,
    claimed: Figure | None = None,
) -> Claim:
    """Return a claim that is as expected where ours is exactly that; the paper holds where ours is what it claims."""
    paper_holds = None if claimed is None else ours == claimed
    return Claim(name, paper, ours, str(expected), ours == expected, fails_if, paper_holds, remark)


def two_standard_errors(spread: float, values: Sequence[float] | int) -> float:
    """Return twice the standard error of a mean: the spread of one experiment over the root of their number."""
    count = values if isinstance(values, int) else len(values)
    return 2 * spread / sqrt(count)


def _range(low: float, high: float) -> str:
    if low == high:
        return f"{low:.4g}"
    if high == inf:
        return f"at least {low:.4g}"
    return f"at most {high:.4g}" if low == -inf else f"{low:.4g} to {high:.4g}"


def _finite(value: float) -> Figure:
    """Return a number that JSON can hold; one that is not finite becomes a text."""
    return float(value) if isfinite(value) else str(float(value))


Entry = str | float | int | None


@dataclass(frozen=True)
class PaperTable:
    """A printed table with ours beside it.

    Attributes:
        title: What it shows.
        columns: Headings.
        rows: Rows, one entry a column; None where there is nothing.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Entry]]) -> PaperTable:
    """Return a table; numbers that are not finite become None."""
    content = tuple(tuple(plain(row)) for row in rows)
    for row in content:
        if len(row) != len(columns):
            raise ValueError(f"table '{title}': a row of {len(row)} entries under {len(columns)} headings")
    return PaperTable(title, tuple(columns), content)


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
        figures: Its figures drawn again, for reports.
    """

    paper: str
    title: str
    claims: tuple[Claim, ...]
    tables: tuple[PaperTable, ...]
    notes: tuple[str, ...]
    seconds: Mapping[str, float] = field(default_factory=dict)
    figures: tuple[PageFigure, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        twice = [name for name, count in Counter(claim.name for claim in self.claims).items() if count > 1]
        if twice:
            raise ValueError(f"{self.paper}: the claim '{twice[0]}' is counted twice")

    @property
    def holds(self) -> bool:
        """Whether all claims come out as expected, those included that are expected not to hold."""
        return all(claim.holds for claim in self.claims)

    def to_html(self, provenance: Mapping[str, str] | None = None) -> str:
        """Return the report as one HTML document, as run folders have it.

        Args:
            provenance: Where it comes from, texts by name.
        """
        return page_html(paper_page(self, provenance or {}))


def paper_to_json(result: PaperResult) -> dict[str, Any]:
    """Return a result as plain data: ``paper``, ``title``, ``claims``, ``tables``, ``notes``."""
    keys = ("name", "paper", "ours", "expected", "holds", "paper_holds", "fails_if", "remark")
    return plain(
        {
            "paper": result.paper,
            "title": result.title,
            "claims": [{key: getattr(claim, key) for key in keys} for claim in result.claims],
            "tables": result.tables,
            "notes": result.notes,
        }
    )


def printed(name: str) -> dict[str, tuple[float, float]]:
    """Return a published run as printed: estimate and relative sigma [%] by column (``ZZ2`` for ``ZZ2R``)."""
    return {
        parameter.removesuffix("R"): (each.value, _percent(each.value, each.sigma))
        for parameter, each in published_run(name).parameters.items()
    }


def _percent(value: float, sigma: float | None) -> float:
    """Return the relative sigma as it was printed, to three digits."""
    return float("nan") if sigma is None else float(f"{100 * sigma / abs(value):.3g}")


_CLAIMS = ["claim", "paper", "here", "why, or what to know", "expected", "as expected", "would fail if"]
_DIGITS = 4


def paper_page(result: PaperResult, provenance: Mapping[str, str]) -> Page:
    """Return the report of a paper.

    Args:
        result: The paper.
        provenance: Where it comes from, texts by name.
    """
    held, broken, open_ones = _sorted_claims(result)
    sections = [_claims_section("Statements that hold", "held", held, _held_text(held))]
    if broken:
        text = (
            f"{_number(broken)} of the paper {'is' if len(broken) == 1 else 'are'} not true of the figures computed "
            "here; the column 'why' has the reason as far as it is known."
        )
        sections.append(_claims_section("Statements that do not hold", "broken", broken, text))
    if result.figures:
        sections.append(PageSection("Figures", result.figures, "Figures of the paper, from simulated experiments."))
    sections.append(PageSection("Tables", [_table(k, one) for k, one in enumerate(result.tables, 1)]))
    if open_ones:
        text = "Figures that the paper does not give, or gives for another arm: compared with what is expected."
        sections.append(_claims_section("Further figures", "further", open_ones, text))
    sections.append(PageSection("Notes", points=[sentence(note) for note in (*result.notes, *_times(result))]))
    expected = sum(claim.holds for claim in result.claims)
    return Page(
        title=f"{result.paper}: {result.title.partition(': ')[2] or result.title}",
        subtitle=f"{result.title.partition(': ')[0]}, reproduced in simulation",
        sections=[section for section in sections if section.parts or section.points],
        facts={
            "claims as expected": f"{expected} of {len(result.claims)}",
            "statements that hold": f"{len(held)}",
            "statements that do not": f"{len(broken)}",
        },
        provenance=provenance,
    )  # fmt: skip


def _sorted_claims(result: PaperResult) -> tuple[list[Claim], list[Claim], list[Claim]]:
    """Return claims whose statement holds, does not hold, and cannot be decided."""
    found: dict[bool | None, list[Claim]] = {True: [], False: [], None: []}
    for claim in result.claims:
        found[claim.paper_holds].append(claim)
    return found[True], found[False], found[None]


def _number(claims: Sequence[Claim]) -> str:
    return counted(len(claims), "statement")


def _held_text(held: Sequence[Claim]) -> str:
    if not held:
        return "The paper makes no statement that figures here could confirm."
    return f"{_number(held)} of the paper {'is' if len(held) == 1 else 'are'} true of the figures computed here."


def _claims_section(title: str, name: str, claims: Sequence[Claim], text: str) -> PageSection:
    rows = [
        [claim.name, _cell(claim.paper), _cell(claim.ours), sentence(claim.remark), claim.expected,
         "yes" if claim.holds else "no", claim.fails_if]
        for claim in claims
    ]  # fmt: skip
    odd = sum(not claim.holds for claim in claims)
    outcome = f"{odd} of {len(claims)} not as expected" if odd else "all as expected"
    caption = f"What the paper prints beside what comes out here: {outcome}."
    return PageSection(title, [DataTable(name, _CLAIMS, rows, caption)] if rows else (), text)


def _cell(value: str | float) -> str:
    """Return a figure as text: columns hold numbers and words, and are not sorted by size."""
    return value if isinstance(value, str) else f"{value:.{_DIGITS}g}"


def _table(number: int, table: PaperTable) -> DataTable:
    columns = [column or "name" for column in table.columns]
    return DataTable(f"table-{number}", columns, table.rows, sentence(table.title), digits=_DIGITS)


def _times(result: PaperResult) -> list[str]:
    if not result.seconds:
        return []
    times = ", ".join(f"{what} {1e3 * seconds:.3g} ms" for what, seconds in result.seconds.items())
    return [f"processor time of one experiment on this machine, compiled code at hand: {times}"]


def papers_index(results: Sequence[PaperResult], provenance: Mapping[str, str] | None = None) -> str:
    """Return the page that leads to the reports of several papers, ``P1.html`` ... beside it, as HTML."""
    rows = []
    for result in results:
        held, broken, _ = _sorted_claims(result)
        expected = f"{sum(claim.holds for claim in result.claims)} of {len(result.claims)}"
        rows.append([result.paper, result.title, expected, len(held), len(broken), len(result.tables),
                     len(result.figures)])  # fmt: skip
    table = DataTable(
        "papers",
        ["paper", "title", "claims as expected", "statements that hold", "that do not", "tables", "figures"], rows,
        "Papers reproduced in simulation; each page has its tables and figures beside the printed ones.",
    )  # fmt: skip
    return page_html(
        Page(
            title="Papers, reproduced in simulation",
            subtitle=f"{len(results)} papers: what they print beside what comes out here",
            sections=[PageSection("Papers", [table])],
            provenance=provenance or {},
            links={f"{result.paper}: {result.title}": f"{result.paper}.html" for result in results},
        )
    )
