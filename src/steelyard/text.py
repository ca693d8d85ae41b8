"""Untrusted text (names of joints, files, markers, payloads) made safe for its destination; short ``repr`` of records.

Names come from robot files, logs and command lines of others. They may hold escape sequences that move a terminal's
cursor, characters that turn the reading direction, formulas that a spreadsheet evaluates, or commands of LaTeX.
"""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from numbers import Real

LONGEST_REPR, LONGEST_NAME, MOST_ROWS = 200, 40, 40
_NOT_ASCII = re.compile(r"[^\n\x20-\x7e]")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
}  # fmt: skip


def for_terminal(text: str) -> str:
    r"""Return text as one printable line: control, bidirectional and other unprintable characters as ``\x1b``.

    The console prints it without markup (:class:`steelyard.cli.output.Screen`), so brackets need no escape.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)


def for_json(document: str) -> str:
    r"""Return a JSON document with unprintable characters as ``\u202e``; readers get the same data.

    JSON itself escapes only those below U+0020. Line ends of the document stay.
    """
    return _NOT_ASCII.sub(lambda found: found[0] if found[0].isprintable() else _json_escape(found[0]), document)


def for_yaml(text: str) -> str:
    r"""Return text as a quoted string of YAML; unprintable characters are escaped, ``\U000e0001`` beyond U+FFFF.

    A JSON string is one in YAML too, but for pairs of surrogates, which readers of YAML take for two characters.
    """
    return "".join(
        letter if letter.isprintable() else f"\\U{ord(letter):08x}" if ord(letter) > 0xFFFF else f"\\u{ord(letter):04x}"
        for letter in json.dumps(text, ensure_ascii=False)
    )


def for_csv(text: str) -> str:
    """Return a cell that no spreadsheet takes for a formula: an apostrophe before ``= + - @``, tab or return.

    Numbers stay numbers. :func:`from_csv` takes the apostrophe off again.
    """
    return f"'{text}" if text.startswith(_FORMULA) and not _is_number(text) else text


def from_csv(cell: str) -> str:
    """Return the text that :func:`for_csv` made a cell of."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell


def csv_text(rows: Iterable[Sequence[str]], line_end: str = "\n") -> str:
    """Return rows of cells as CSV (RFC 4180), each cell as :func:`for_csv` makes it."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator=line_end).writerows([for_csv(cell) for cell in row] for row in rows)
    return buffer.getvalue()


def for_html(text: str) -> str:
    """Return text for HTML: its special characters escaped, unprintable ones visible."""
    return html.escape(for_terminal(text))


def counted(number: int, what: str) -> str:
    """Return a number with what it counts, such as ``1 gap`` or ``3 gaps``."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def with_remedy(text: str, remedy: str) -> str:
    """Return what is the case and what to do about it, which may be nothing."""
    return f"{text}; {remedy}" if remedy else text


def html_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table as notebooks show it: numbers with four digits, None empty, rows beyond forty counted."""
    lines = [_html_row("th", columns), *(_html_row("td", row) for row in rows[:MOST_ROWS])]
    hidden = len(rows) - MOST_ROWS
    return f"<table>{''.join(lines)}</table>" + (f"<p>and {counted(hidden, 'more row')}</p>" if hidden > 0 else "")


def _html_row(cell: str, values: Sequence[object]) -> str:
    texts = ("" if one is None else f"{one:.4g}" if isinstance(one, float) else str(one) for one in values)
    return f"<tr>{''.join(f'<{cell}>{for_html(text)}</{cell}>' for text in texts)}</tr>"


def for_latex(text: str) -> str:
    """Return text for LaTeX: its special characters escaped, unprintable ones visible."""
    return "".join(_LATEX.get(letter, letter) for letter in for_terminal(text))


def latex_number(value: float | None, style: str) -> str:
    """Return a number for LaTeX in a format such as ``.4g``; a dash for None."""
    if value is None:
        return "--"
    mantissa, _, exponent = format(value, style).partition("e")
    power = rf"\cdot 10^{{{int(exponent)}}}" if exponent else ""
    return f"${mantissa}{power}$"


def short_repr(self: object) -> str:
    """Return a dataclass in a line or two: names and figures, then shapes of arrays, counts and kinds of the rest.

    For records that hold arrays, whose own ``repr`` fills screens: ``__repr__ = short_repr`` in the class.
    """
    found = [(field.name, _brief(getattr(self, field.name, None))) for field in fields(self)]  # type: ignore[arg-type]
    shown = [(-1 if name == "verdict" else rank, f"{name}={text}") for name, (rank, text) in found if text]
    line = ""
    for _, text in sorted(shown, key=lambda pair: pair[0]):
        if len(line) + len(text) > LONGEST_REPR:
            return f"{type(self).__name__}({line}, ...)"
        line += f", {text}" if line else text
    return f"{type(self).__name__}({line})"


def _brief(value: object) -> tuple[int, str]:
    """Return the rank of a value in the line, and its text; empty for None."""
    shape = getattr(value, "shape", None)
    label = _label(value)
    if isinstance(value, str):
        return 0, repr(value if len(value) <= LONGEST_NAME else f"{value[:LONGEST_NAME]}...") if value else ""
    if isinstance(value, Real):
        return 0, str(value) if isinstance(value, bool) else f"{float(value):.6g}"
    if label:
        return 0, f"{type(value).__name__}({label!r})"
    if isinstance(shape, tuple):
        return 1, f"array{shape}"
    if isinstance(value, Mapping | Sequence | Set):
        return 2, f"<{len(value)}>" if value else ""
    return 3, "" if value is None else type(value).__name__


def _label(value: object, depth: int = 3) -> str:
    """Return the name of a record: its first field, or that of the record there."""
    if not is_dataclass(value) or isinstance(value, type) or not fields(value) or not depth:
        return ""
    first = getattr(value, fields(value)[0].name, None)
    return first[:LONGEST_NAME] if isinstance(first, str) else _label(first, depth - 1)


def _json_escape(letter: str) -> str:
    units = letter.encode("utf-16-be", errors="surrogatepass")
    return "".join(f"\\u{units[k]:02x}{units[k + 1]:02x}" for k in range(0, len(units), 2))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
