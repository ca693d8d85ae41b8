"""A page: sections of figures and tables as records, and the HTML that they become.

The file needs no network: scripts, styles and plotly are in it once. Its content security policy allows these scripts
alone, by their SHA-256, and no request: what a name in a log may try has no effect, even if it were to get past the
template's escapes. Figures are drawn when they come into view.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from math import floor, isfinite, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..text import for_terminal
from ..verdict import QUESTIONS

if TYPE_CHECKING:
    from ..plots import Chart
    from ..verdict import Verdict


_ALL_DIGITS = 15
"""Significant digits that every number has."""

Provenance = Mapping[str, str]
"""Where a run comes from: texts by name."""


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure with the sentence that says what it means here.

    Attributes:
        name: Short name in the page, of letters and hyphens.
        chart: The figure.
        caption: What it shows, and what its numbers mean.
    """

    name: str
    chart: Chart
    caption: str


@dataclass(frozen=True, eq=False)
class DataTable:
    """A table that readers sort, search and copy.

    Attributes:
        name: Short name in the page, of letters and hyphens.
        columns: Titles of the columns.
        rows: Cells: texts, numbers, or None where there is nothing to say.
        caption: What the table shows.
        digits: Significant digits of numbers.
        intervals: By number of a column, that of the column with its intervals: its numbers have digits enough that
            rounding is below a tenth of the interval.
        is_folded: Whether a button shows the last column, which is always in print.
    """

    name: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | float | None]]
    caption: str
    digits: int = 4
    intervals: Mapping[int, int] = field(default_factory=dict)
    is_folded: bool = False

    def is_number(self) -> list[bool]:
        """Return whether each column holds numbers."""
        return [
            any(isinstance(row[k], int | float) for row in self.rows)
            and not any(isinstance(row[k], str) for row in self.rows)
            for k in range(len(self.columns))
        ]

    def cells(self) -> list[list[tuple[str, str]]]:
        """Return text and sort key of every cell."""
        return [[_cell(value, self._digits(row, k)) for k, value in enumerate(row)] for row in self.rows]

    def _digits(self, row: Sequence[str | float | None], column: int) -> int:
        value, interval = row[column], row[self.intervals[column]] if column in self.intervals else None
        if not (isinstance(value, float) and isinstance(interval, float) and value and interval > 0):
            return self.digits
        if not (isfinite(value) and isfinite(interval)):
            return self.digits
        return min(_ALL_DIGITS, max(self.digits, floor(log10(abs(value))) + 1 - floor(log10(interval / 10))))


@dataclass(frozen=True, eq=False)
class PageSection:
    """A part of the page under one heading.

    Attributes:
        title: The heading.
        parts: Figures and tables, in order.
        text: A paragraph before them.
        closed: Whether it is folded at first.
        points: Sentences of a list after the paragraph.
    """

    title: str
    parts: Sequence[Figure | DataTable] = ()
    text: str = ""
    closed: bool = False
    points: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class Page:
    """A report.

    Attributes:
        title: Its title.
        subtitle: What was done, in a line.
        sections: What follows the verdict.
        verdict: The verdict; None for pages that judge nothing.
        facts: Short facts beside the title, by name.
        provenance: Where it comes from: texts by name.
        links: Names of files beside this one, by what is in them.
    """

    title: str
    subtitle: str
    sections: Sequence[PageSection]
    verdict: Verdict | None = None
    facts: Mapping[str, str] = field(default_factory=dict)
    provenance: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)


def page_html(page: Page) -> str:
    """Return a page as one HTML document."""
    has_figures = any(isinstance(part, Figure) for section in page.sections for part in section.parts)
    scripts = [_plotly(), _asset("report.js")] if has_figures else [_asset("report.js")]
    return _template().render(
        page=page,
        questions=QUESTIONS,
        scripts=[_Safe(script) for script in scripts],
        style=_Safe(_asset("report.css")),
        policy=_policy(scripts),
        figure_json=lambda figure: _Safe(_in_script(figure.chart.to_json())),
        is_figure=lambda part: isinstance(part, Figure),
    )


class _Safe(str):
    """Text of our own that the template does not escape."""

    __slots__ = ()

    def __html__(self) -> str:
        return self


def _in_script(content: str) -> str:
    """Return JSON that cannot end the script element that holds it."""
    return content.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _policy(scripts: Sequence[str]) -> str:
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    return f"default-src 'none'; script-src {hashes} 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:"


@lru_cache(maxsize=4)
def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


@lru_cache(maxsize=1)
def _template() -> Any:
    import jinja2  # imported when a report is written: nothing else waits for it

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        loader=jinja2.PackageLoader("steelyard.report"),
    )  # fmt: skip
    environment.filters["shown"] = for_terminal
    return environment.get_template("page.html")


@lru_cache(maxsize=1)
def _plotly() -> str:
    # The script is in plotly's package; importing the package itself takes half a second and more.
    return (files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")


@lru_cache
def _asset(name: str) -> str:
    return (files("steelyard.report") / "templates" / name).read_text(encoding="utf-8")


def is_page(path: Path, whole: bool = False) -> bool:
    """Return whether a file is a page written by :func:`page_html`; ``whole``: and has an end."""
    try:
        with path.open("rb") as file:
            is_ours = b'<meta name="generator" content="steelyard">' in file.read(2000)
            file.seek(max(0, path.stat().st_size - 100))
            return is_ours and (not whole or file.read().rstrip().endswith(b"</html>"))
    except OSError:
        return False


def sentence(text: str) -> str:
    """Return text as a sentence: with a capital and a full stop."""
    stripped = text.strip()
    if not stripped:
        return ""
    return stripped[0].upper() + stripped[1:] + ("" if stripped.endswith((".", "!", "?")) else ".")


def _cell(value: Any, digits: int) -> tuple[str, str]:
    if value is None:
        return "", ""
    if isinstance(value, bool):
        value = "yes" if value else "no"
    if isinstance(value, int):  # a count has all its digits
        return str(value), str(value)
    if isinstance(value, float):
        return f"{value:.{digits}g}", repr(float(value))
    return for_terminal(str(value)), json.dumps(str(value))
