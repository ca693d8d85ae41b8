"""A comparison as CSV for a spreadsheet, or as LaTeX for a paper."""

from __future__ import annotations

from ..text import csv_text, for_latex
from .comparison import ComparedRow, ComparedValue, Comparison, Difference


def to_csv(comparison: Comparison) -> str:
    """Return the comparison as CSV (RFC 4180): a line for each parameter, absent values empty, full precision.

    Columns: parameter, unit, then value and sigma of every run, and difference, per cent and sigmas of every run but
    the first.
    """
    first, *others = comparison.runs
    header = ["parameter", "unit", f"{first} value", f"{first} sigma"]
    header += [f"{run} {what}" for run in others for what in ("value", "sigma", "difference", "percent", "sigmas")]
    table = [header]
    for row in comparison.rows:
        cells = [row.name, row.unit, *_value_cells(row.values[0])]
        for value, difference in zip(row.values[1:], row.differences, strict=True):
            cells += [*_value_cells(value), *_difference_cells(difference)]
        table.append(cells)
    return csv_text(table, "\r\n")


def _value_cells(value: ComparedValue | None) -> list[str]:
    return ["", ""] if value is None else [repr(float(value.value)), _number(value.sigma)]


def _difference_cells(difference: Difference | None) -> list[str]:
    if difference is None:
        return ["", "", ""]
    return [_number(difference.absolute), _number(difference.percent), _number(difference.sigmas)]


def _number(value: float | None) -> str:
    return "" if value is None else repr(float(value))


def to_latex(comparison: Comparison) -> str:
    """Return the comparison as a LaTeX table (``booktabs``).

    Columns: parameter, unit, then value and relative sigma of every run, and the difference in per cent and in sigmas
    of every run but the first.
    """
    first, *others = (for_latex(run) for run in comparison.runs)
    columns = "ll" + "rr" + "rrrr" * len(others)
    groups = [rf"\multicolumn{{2}}{{c}}{{{first}}}", *(rf"\multicolumn{{4}}{{c}}{{{run}}}" for run in others)]
    rules = [r"\cmidrule(lr){3-4}"]
    rules += [rf"\cmidrule(lr){{{5 + 4 * k}-{8 + 4 * k}}}" for k in range(len(others))]
    heads = ["parameter", "unit", "value", r"$\sigma$ [\%]"]
    heads += ["value", r"$\sigma$ [\%]", r"diff. [\%]", r"diff. [$\sigma$]"] * len(others)
    lines = [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(["", "", *groups]) + r" \\",
        " ".join(rules),
        " & ".join(heads) + r" \\",
        r"\midrule",
        *(" & ".join(_latex_cells(row)) + r" \\" for row in comparison.rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _latex_cells(row: ComparedRow) -> list[str]:
    cells = [for_latex(row.name), for_latex(row.unit), *_latex_value(row.values[0])]
    for value, difference in zip(row.values[1:], row.differences, strict=True):
        percent = None if difference is None else difference.percent
        sigmas = None if difference is None else difference.sigmas
        cells += [*_latex_value(value), _math(percent, "+.1f"), _math(sigmas, "+.1f")]
    return cells


def _latex_value(value: ComparedValue | None) -> list[str]:
    if value is None:
        return ["--", "--"]
    relative = None if value.sigma is None or not value.value else 100 * value.sigma / abs(value.value)
    return [_math(value.value, ".4g"), _math(relative, ".2g")]


def _math(value: float | None, style: str) -> str:
    if value is None:
        return "--"
    mantissa, _, exponent = format(value, style).partition("e")
    power = rf"\cdot 10^{{{int(exponent)}}}" if exponent else ""
    return f"${mantissa}{power}$"
