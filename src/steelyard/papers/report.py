"""Reports of reproduced papers: claims, figures and tables beside the printed ones, and a page that leads to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..report import DataTable, Page, PageSection, page_html, sentence
from ..text import counted
from .claim import Claim, PaperResult, PaperTable

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
