"""The report of a comparison: parameters of several runs with intervals, and their differences in sigmas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..judge.comparison import ComparedRow, Comparison
from ..plots import Chart, interval_plot
from .page import DataTable, Figure, Page, PageSection

WIDEST = 100.0
"""Parameters whose two-sigma interval is wider than this [%] in every run are left out of the figure of values."""

AGREE = 2.0
"""Values that differ by no more sigmas than this agree."""


def comparison_page(
    comparison: Comparison,
    names: Sequence[str],
    provenance: Mapping[str, str],
    compared: str,
    summaries: Sequence[str],
    sections: Sequence[PageSection] = (),
) -> Page:
    """Return the report of a comparison.

    Args:
        comparison: Runs side by side.
        names: What each run is called in the page.
        provenance: Where it comes from, texts by name.
        compared: Which parameters of the runs are compared.
        summaries: A sentence for each run after the first.
        sections: Further parts.
    """
    points = [*(f"Warning: {text}." for text in comparison.warnings), *(f"{text}." for text in summaries)]
    figures = [one for one in (_differences(comparison, names), _values(comparison, names)) if one is not None]
    return Page(
        title=f"Comparison of {len(names)} runs",
        subtitle=f"{', '.join(names[1:])} against {names[0]}",
        sections=[
            PageSection("Differences", figures, points=points),
            PageSection("Parameters", [_table(comparison, names, compared)]),
            *sections,
        ],
        facts={
            names[k]: f"{one.within} of {one.with_sigma} within {AGREE:g} sigmas"
            for k, one in enumerate(comparison.summaries, 1)
        },
        provenance=provenance,
    )


def _differences(comparison: Comparison, names: Sequence[str]) -> Figure | None:
    """Return the differences in sigmas, largest first."""
    rows = [row for row in comparison.rows if any(one and one.sigmas is not None for one in row.differences)]
    if not rows:
        return None
    sigmas = np.array(
        [[np.nan if d is None or d.sigmas is None else d.sigmas for d in row.differences] for row in rows]
    )
    order = np.argsort(-np.nanmax(np.abs(sigmas), axis=1), kind="stable")
    series = {name: (sigmas[order, k], np.zeros(len(rows))) for k, name in enumerate(names[1:])}
    chart = _with_levels(
        interval_plot([rows[k].name for k in order], series, f"difference from {names[0]} [sigmas]"), -AGREE, AGREE
    )
    beyond = int((np.abs(sigmas) > AGREE).sum())
    count = int(np.isfinite(sigmas).sum())
    return Figure(
        "differences", chart,
        f"Differences over the root of both variances, largest first; dashed: {AGREE:g} sigmas. {beyond} of {count} "
        f"lie beyond, about {round(0.0455 * count)} are expected by chance if the runs have the same parameters and "
        "independent noise.",
    )  # fmt: skip


def _values(comparison: Comparison, names: Sequence[str]) -> Figure | None:
    """Return values of all runs relative to the first, with two-sigma intervals."""
    rows = [row for row in comparison.rows if _is_known(row)]
    if not rows:
        return None
    series = {}
    for k, name in enumerate(names):
        off, half = [], []
        for row in rows:
            value, reference = row.values[k], row.values[0]
            assert reference is not None  # or it is not known
            scale = 100 / abs(reference.value)
            known = value is not None and (k == 0 or row.differences[k - 1] is not None)
            off.append(scale * (value.value - reference.value) if known and value is not None else np.nan)
            half.append(AGREE * scale * value.sigma if known and value is not None and value.sigma else np.nan)
        series[name] = (np.array(off), np.array(half))
    left = len(comparison.rows) - len(rows)
    said = f" Left out, as not known better than their value or not in {names[0]}: {left}."
    return Figure(
        "values", _with_levels(interval_plot([row.name for row in rows], series, f"value less {names[0]} [%]"), 0.0),
        f"Values of every run relative to {names[0]}, with intervals of {AGREE:g} sigmas.{said if left else ''}",
    )  # fmt: skip


def _with_levels(chart: Chart, *levels: float) -> Chart:
    for level in levels:
        chart.level(level, vertical=True)
    return chart


def _is_known(row: ComparedRow) -> bool:
    """Return whether the first run has a value to compare with, known to its size."""
    reference = row.values[0]
    if reference is None or reference.value == 0:
        return False
    others = any(one is not None for one in row.differences)
    return others and AGREE * 100 * (reference.sigma or 0.0) <= WIDEST * abs(reference.value)


def _table(comparison: Comparison, names: Sequence[str], compared: str) -> DataTable:
    columns = ["parameter", "unit"]
    for name in names:
        columns += [name, f"± {AGREE:g} sigmas"]
    for name in names[1:]:
        columns += [f"{name}: difference [%]", f"{name}: [sigmas]"]
    rows = []
    for row in comparison.rows:
        cells: list[str | float | None] = [row.name, row.unit]
        for value in row.values:
            cells += [None, None] if value is None else [value.value, AGREE * value.sigma if value.sigma else None]
        for difference in row.differences:
            cells += [None, None] if difference is None else [difference.percent, difference.sigmas]
        rows.append([*cells, next((value.regrouping for value in row.values if value is not None), "")])
    intervals = {2 + 2 * k: 3 + 2 * k for k in range(len(names))}
    caption = f"Parameters of all runs: {compared}."
    return DataTable("parameters", [*columns, "regrouping"], rows, caption, intervals=intervals, is_folded=True)
