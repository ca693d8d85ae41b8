"""Printing that all commands share: lines and tables that fit the terminal, verdicts, findings, errors, progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from ..plain_data import json_text
from ..progress import Progress
from ..text import for_terminal, with_remedy
from .options import is_quiet

if TYPE_CHECKING:
    from ..verdict import Reason, Verdict

GRADE_STYLE = {"good": "green", "fair": "yellow", "poor": "red", "-": "dim"}
SEVERITY_STYLE = {"info": "dim", "note": "dim", "warning": "yellow", "bad": "red", "severe": "red"}

Part = str | tuple[str, str]
"""Text, or text and its style."""

NARROWEST_TEXT, LONGEST_WORD, NARROWEST_KEY, SHORT_KEY = 14, 32, 12, 20
"""Columns of text wrap down to this width and their longest word, if it is not longer than this; names are shortened to
make a table fit, not below this; in tables that are split, they are shortened to this."""


def print_message(message: str) -> None:
    """Print a message in one line on stderr."""
    print(f"steelyard: {for_terminal(' '.join(message.split()))}", file=sys.stderr)


def fail(arguments: Sequence[str], kind: str, message: str) -> int:
    """Print an error in one line on stderr, with ``--json`` as JSON on stdout too; return exit code 1."""
    command = next((word for word in arguments if not word.startswith("-")), "steelyard")
    if "--json" in arguments:
        print(json_text(command, {"error": {"kind": kind, "message": " ".join(message.split())}}))
    print_message(message)
    return 1


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        heading: Its heading; a line end in it makes two lines.
        kind: ``figure`` and ``word`` (aligned right and left) are never cut or wrapped; ``text`` is wrapped; ``key``
            names the row: it is shortened where a table does not fit, and repeated where it is split.
    """

    heading: str
    kind: Literal["key", "text", "figure", "word"] = "figure"


class Screen:
    """A terminal, a pipe or a file: lines are wrapped to its width, figures are never cut.

    Text is printed as it is, without markup; unprintable characters are visible escapes (see :mod:`steelyard.text`).
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)
        self._is_quiet = is_quiet.get()

    @property
    def width(self) -> int:
        """Letters in a line."""
        return self._console.width

    def line(self, *parts: Part, style: str = "", always: bool = False) -> None:
        """Print a paragraph, or an empty line; ``always``: with ``--quiet`` too."""
        if self._is_quiet and not always:
            return
        text = Text(style=style)
        for part in parts:
            text.append_text(_text(part))
        margin = len(text.plain) - len(text.plain.lstrip(" ")) + 2 * text.plain.startswith("- ")
        first, *others = text.wrap(self._console, max(self._console.width - margin, 1)) or [text]
        self._print(first)
        for row in others:
            self._print(Text(" " * margin).append_text(row))

    def saved(self, folder: Path | None) -> None:
        """Print where the result and its report were saved, if they were."""
        if folder is not None:
            self.line(f"saved: {folder / 'result.json'}", always=True)
            if (folder / "report.html").is_file():
                self.line(f"report: {folder / 'report.html'}", always=True)

    def table(
        self, columns: Sequence[Column], rows: Sequence[Sequence[Part]], *, title: str = "", gap: int = 2
    ) -> None:
        """Print a table; where it is too wide, names are shortened, texts wrapped, then columns put below.

        Args:
            columns: Its columns, keys first.
            rows: Cells, one for each column; what a row lacks at its end is empty.
            title: Line above.
            gap: Blanks between columns.
        """
        if self._is_quiet:
            return
        if title:
            self.line(title, style="italic")
        cells = [[*map(_text, row), *[Text()] * (len(columns) - len(row))] for row in rows]
        heads = [[Text(for_terminal(line), "bold") for line in column.heading.split("\n")] for column in columns]
        heads = [[*[Text()] * (max(map(len, heads)) - len(head)), *head] for head in heads]
        widths, least = _widths(columns, heads, cells)
        free = self._console.width - sum(least[1:]) - gap * (len(columns) - 1)
        if columns[0].kind == "key" and widths[0] > free:
            _shorten_keys(cells, free if free >= NARROWEST_KEY else SHORT_KEY)
            widths, least = _widths(columns, heads, cells)
        for number, part in enumerate(_parts(columns, widths, least, self._console.width, gap)):
            if number:
                self.line()
            self._print_part(columns, heads, cells, part, gap)

    def _print_part(
        self,
        columns: Sequence[Column],
        heads: Sequence[Sequence[Text]],
        cells: Sequence[Sequence[Text]],
        part: Sequence[tuple[int, int]],
        gap: int,
    ) -> None:
        head_rows = [[heads[column][k] for column, _ in part] for k in range(len(heads[0]))]
        for row in (*head_rows, *([row[column] for column, _ in part] for row in cells)):
            wrapped = [
                list(cell.wrap(self._console, width)) if columns[column].kind == "text" else [cell]
                for cell, (column, width) in zip(row, part, strict=True)
            ]
            for k in range(max(map(len, wrapped))):
                line = Text()
                for lines, (column, width) in zip(wrapped, part, strict=True):
                    cell = lines[k] if k < len(lines) else Text()
                    cell.rstrip()
                    blanks = " " * (width - cell_len(cell.plain))
                    right = columns[column].kind == "figure"
                    line.append_text(Text.assemble(blanks, cell) if right else Text.assemble(cell, blanks))
                    line.append(" " * gap)
                if any(cell.plain.strip() for cell in row):
                    self._print(line)

    def _print(self, line: Text) -> None:
        line.rstrip()
        self._console.print(line, no_wrap=True, overflow="ignore", crop=False, soft_wrap=True, markup=False)


def _text(part: Part) -> Text:
    text, style = (part, "") if isinstance(part, str) else part
    return Text(for_terminal(text), style)


def _shorten_keys(cells: Sequence[list[Text]], width: int) -> None:
    short = short_names([row[0].plain for row in cells], width)
    for row in cells:
        row[0] = Text(short[row[0].plain], row[0].style)


def _widths(
    columns: Sequence[Column], heads: Sequence[Sequence[Text]], cells: Sequence[Sequence[Text]]
) -> tuple[list[int], list[int]]:
    """Return the widths that columns would like to have, and the least that they need."""
    widths, least = [], []
    for k, column in enumerate(columns):
        texts = [cell.plain for cell in (*heads[k], *(row[k] for row in cells))]
        widths.append(max(map(cell_len, texts)))
        word = max((cell_len(word) for text in texts for word in text.split()), default=0)
        narrowest = max(NARROWEST_TEXT, min(word, LONGEST_WORD))
        least.append(min(widths[-1], narrowest) if column.kind == "text" else widths[-1])
    return widths, least


def _parts(
    columns: Sequence[Column], widths: Sequence[int], least: Sequence[int], width: int, gap: int
) -> list[list[tuple[int, int]]]:
    """Return the columns of each part of a table, with their widths; keys are repeated in every part."""
    keys = [k for k, column in enumerate(columns) if column.kind == "key"]
    parts: list[list[int]] = [list(keys)]
    room = start = width - sum(widths[k] + gap for k in keys)
    for k in range(len(columns)):
        if k in keys:
            continue
        if least[k] > room and len(parts[-1]) > len(keys):
            parts.append(list(keys))
            room = start
        parts[-1].append(k)
        room -= least[k] + gap
    return [_filled(widths, least, part, width, gap) for part in parts]


def _filled(
    widths: Sequence[int], least: Sequence[int], part: Sequence[int], width: int, gap: int
) -> list[tuple[int, int]]:
    """Return the columns of a part with their widths: what is free goes to texts, the more to the longer."""
    free = max(width - sum(least[k] for k in part) - gap * (len(part) - 1), 0)
    wanted = sum(widths[k] - least[k] for k in part)
    share = min(free / wanted, 1.0) if wanted else 0.0
    return [(k, least[k] + int(share * (widths[k] - least[k]))) for k in part]


def short_names(names: Sequence[str], width: int) -> dict[str, str]:
    """Return names of at most ``width`` characters: without ``_joint`` at their end, then cut in the middle.

    Different names stay different.
    """
    unique = list(dict.fromkeys(names))
    if all(cell_len(name) <= width for name in unique):
        return {name: name for name in unique}
    trimmed = [name.removesuffix("_joint") for name in unique]
    if len(set(trimmed)) < len(unique):
        trimmed = unique
    short = [_cut(name, width) for name in trimmed]
    if len(set(short)) < len(unique):
        marks = [f"~{k + 1}" for k in range(len(unique))]
        short = [_cut(name, width - len(mark)) + mark for name, mark in zip(trimmed, marks, strict=True)]
    return dict(zip(unique, short, strict=True))


def _cut(name: str, width: int) -> str:
    if cell_len(name) <= width:
        return name
    half = (width - 1) // 2
    return f"{set_cell_size(name, width - 1 - half)}~{set_cell_size(name[::-1], half)[::-1]}"


def print_verdict(screen: Screen, verdict: Verdict) -> None:
    """Print the grade, every question with its rows and thresholds, and the reasons with their remedies."""
    from ..verdict import QUESTIONS

    screen.line()
    screen.line("verdict: ", (verdict.grade, f"bold {GRADE_STYLE[verdict.grade]}"), always=True)
    rows: list[list[Part]] = []
    for question, text in QUESTIONS.items():
        criteria = [row for row in verdict.criteria if row.question == question]
        if criteria:
            grade = verdict.answers[question] or "-"
            rows.append([(text, "bold"), "", "", "", (grade, f"bold {GRADE_STYLE[grade]}")])
        for row in criteria:
            grade = row.grade or "-"
            rows.append([f"  {row.name}", row.text_value, row.good, row.fair, (grade, GRADE_STYLE[grade])])
    columns = [Column("", "text"), *(Column(heading, "word") for heading in ("found", "good", "fair", "grade"))]
    screen.table(columns, rows)
    print_reasons(screen, verdict.reasons)


def print_reasons(screen: Screen, reasons: Sequence[Reason]) -> None:
    """Print reasons, each with its remedy if there is one."""
    for reason in reasons:
        screen.line(f"- {reason.text}{'; ' if reason.remedy else ''}", (reason.remedy, "italic"))


def print_findings(screen: Screen, rows: Sequence[tuple[str, str, str]]) -> None:
    """Print findings: severity, and text with remedy."""
    cells: list[list[Part]] = [
        [(severity, SEVERITY_STYLE[severity]), with_remedy(text, remedy)] for severity, text, remedy in rows
    ]
    screen.table([Column("", "word"), Column("", "text")], cells)


class ProgressBar:
    """A bar on stderr that appears when the work takes more than a second; use it as a context."""

    def __init__(self, label: str) -> None:
        self._label = for_terminal(label)
        self._start = time.monotonic()
        self._is_quiet = is_quiet.get()
        self._bar: Any = None

    def __enter__(self) -> ProgressBar:
        return self

    def __call__(self, done: float, total: float) -> None:
        """Show how much is done of how much in all."""
        if self._bar is None and not self._is_quiet and time.monotonic() - self._start > 1.0:
            from rich import progress as parts

            console = Console(stderr=True)
            label = parts.TextColumn("{task.description}", markup=False)
            self._bar = parts.Progress(
                label, parts.BarColumn(), parts.TaskProgressColumn(), parts.TimeRemainingColumn(), console=console,
                transient=True, disable=not console.is_terminal,
            )  # fmt: skip
            self._bar.start()
            self._bar.add_task(self._label, total=total)
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=done, total=total)

    def relabel(self, label: str) -> None:
        """Change the label of the bar."""
        self._label = for_terminal(label)
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], description=self._label)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


class Timing:
    """A bar for each stage on stderr, and the seconds each took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._bar: ProgressBar | None = None
        self._name, self._start = "", time.perf_counter()

    def stage(self, name: str) -> Progress:
        """End the stage before and begin one."""
        self.finish()
        self._name, self._start = name, time.perf_counter()
        self._bar = ProgressBar(name)
        return self._bar

    def finish(self) -> None:
        """End the stage at hand."""
        if self._bar is not None:
            self._bar.__exit__()
            self._bar = None
        if self._name:
            spent = self.seconds.get(self._name, 0.0) + time.perf_counter() - self._start
            self.seconds[self._name] = round(spent, 3)
            self._name = ""
