"""``steelyard compare``: parameters of two or more runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ..errors import EstimateError
from ..files import require_files, write_aside
from ..plain_data import json_text, plain
from ..text import for_terminal
from .options import OUTPUT, Json, Out, Quiet, quietly
from .output import Column, Screen, short_names

if TYPE_CHECKING:
    from ..judge import ComparedRun, ComparedSummary, Comparison

_LONGEST_HEADING = 16


def compare(
    *runs: Annotated[str, Parameter(help="Run folders, or names of published tables.")],
    essential: Annotated[bool, Parameter(help="Compare essential parameters only.")] = False,
    csv: Annotated[Path | None, Parameter(group=OUTPUT, help="Also write the table as CSV.")] = None,
    latex: Annotated[Path | None, Parameter(group=OUTPUT, help="Also write the table as LaTeX.")] = None,
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare the parameters of runs: differences in per cent and in sigmas."""
    from ..judge import compare_parameters, published_names, to_csv, to_latex
    from ..run import RunFolder, hashes_of

    if len(runs) < 2:
        raise EstimateError(
            f"compare needs two runs or more, got {len(runs)}; name run folders or published tables: "
            f"{', '.join(published_names())}"
        )
    require_files(*(Path(name) for name in runs if name not in published_names()))
    with quietly(quiet), RunFolder(out, "compare") as saved:
        comparison = compare_parameters([_compared_run(name, essential) for name in runs])
        for path, text in ((csv, to_csv), (latex, to_latex)):
            if path is not None:
                write_aside(path, text(comparison))
        inputs = hashes_of(*(Path(name) / "result.json" for name in runs))
        content = saved.save({"runs": list(runs), "essential": essential}, inputs, _comparison_to_json(comparison))
        print(json_text("compare", content)) if json else _print(comparison)


def _compared_run(name: str, essential: bool) -> ComparedRun:
    """Return a published table or a run folder as parameters by name."""
    from ..identification import read_identified
    from ..judge import ComparedRun, ComparedValue, published_names, published_run

    if name in published_names() and not Path(name).exists():
        return published_run(name)
    content = read_identified(Path(name))
    value, sigma = ("value", "sigma") if essential else ("full_value", "full_sigma")
    parameters = {
        row["name"]: ComparedValue(row[value], row[sigma], row["unit"], row["regrouping"])
        for row in content["parameters"]
        if row[sigma] is not None
    }
    return ComparedRun(name, parameters, robot=content.get("robot", ""))


def _comparison_to_json(comparison: Comparison) -> dict[str, Any]:
    def each(records: Sequence[object], name: str) -> list[Any]:
        return [getattr(record, name, None) for record in records]

    return plain(
        {
            "runs": comparison.runs,
            "warnings": comparison.warnings,
            "parameters": [
                {
                    "name": row.name,
                    "unit": row.unit,
                    "values": each(row.values, "value"),
                    "sigmas": each(row.values, "sigma"),
                    "differences": each(row.differences, "absolute"),
                    "differences_percent": each(row.differences, "percent"),
                    "differences_in_sigmas": each(row.differences, "sigmas"),
                }
                for row in comparison.rows
            ],
            "summaries": [
                {
                    "run": one.name, "compared": one.compared, "with_sigma": one.with_sigma,
                    "within_two_sigmas": one.within, "largest_in_sigmas": one.largest_sigmas,
                    "largest_in_percent": one.largest_percent,
                }
                for one in comparison.summaries
            ],
        }
    )  # fmt: skip


def _print(comparison: Comparison) -> None:
    screen = Screen()
    for warning in comparison.warnings:
        screen.line(f"warning: {warning}", style="yellow")
    names = _headings(comparison.runs)
    columns = [Column("parameter", "key"), Column("unit", "key"), *(Column(name) for name in names)]
    for name in names[1:]:
        columns += [Column(f"{name}\n%"), Column(f"{name}\nsigmas")]
    rows = []
    for row in comparison.rows:
        cells = ["" if value is None else f"{value.value:.4g}" for value in row.values]
        for difference in row.differences:
            cells += [_number(difference and difference.percent), _number(difference and difference.sigmas)]
        rows.append([row.name, row.unit, *cells])
    screen.table(columns, rows)
    for one in comparison.summaries:
        screen.line(_sentence(one, comparison.runs[0]), always=True)


def _headings(runs: Sequence[str]) -> list[str]:
    """Return short names of runs: those of their folders, unless two are called alike."""
    last = [Path(name).name or name for name in runs]
    names = last if len(set(last)) == len(last) else list(runs)
    short = short_names([for_terminal(name) for name in names], _LONGEST_HEADING)
    return [short[for_terminal(name)] for name in names]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:+.1f}"


def _sentence(one: ComparedSummary, reference: str) -> str:
    sentence = f"{one.name} against {reference}: {one.compared} parameters compared"
    if one.largest_sigmas:
        name, size = one.largest_sigmas
        sentence += f", {one.within} of {one.with_sigma} within two sigmas, most: {name} {size:+.1f} sigmas"
    if one.largest_percent:
        name, size = one.largest_percent
        sentence += f"; largest in per cent: {name} {size:+.0f} %"
    return sentence
