"""The results on real arms as Markdown: ``docs/benchmarks.md`` is written by the benchmarks, section by section."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steelyard.files import write_aside

if TYPE_CHECKING:
    from benchmarks.real import Outcome, Result

PAGE = """# Benchmarks on real arms

Written by `make bench-real` and `make bench-peers`, not by hand. The recordings are other people's, of real arms, and
not part of the product: name their folder with `STEELYARD_DATA` to repeat the figures.

How to read it:

- **Relative error**: `100 ||tau - tau_hat|| / ||tau||` of joint-side torques in per cent, nothing subtracted, over all
  joints, both signals through the same zero-phase Butterworth filter of order 4. A figure without its filter means
  nothing.
- **Unseen**: samples that no fit and no choice has used. Samples within four periods of the cut-off of an end of the
  predictions are left out, for they depend on how the filter continues the signals; `window` says how much of the
  unseen time is left.
- Errors are computed by the benchmark from raw files and predicted torques with SciPy alone
  (`benchmarks/real_scoring.py`), and compared with those that `steelyard identify` and `predict` print.
- **Good** and **excellent** are targets: what a search of effects on the same data, without a look at the unseen part,
  can reach.
- Sigmas hold for a model that is complete. On real arms residuals are mostly model error: published values may be many
  sigmas away.
"""


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; all columns but the first are aligned to the right."""
    lines = [list(header), ["---", *["---:"] * (len(header) - 1)], *(list(row) for row in rows)]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines) + "\n"


def write_section(path: Path, name: str, text: str) -> None:
    """Write a section of the page, in place of the one of that name; others stay."""
    page = path.read_text(encoding="utf-8") if path.exists() else PAGE
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    section = f"{begin}\n{text.strip()}\n\n{end}"
    if begin in page:
        page = re.sub(f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: section, page, flags=re.DOTALL)
    else:
        page = f"{page.rstrip()}\n\n{section}"
    write_aside(path, page)


def machine() -> str:
    """Return date, processor and versions in a sentence."""
    names = [line.split(":", 1)[1].strip() for line in _cpu_lines() if line.startswith("model name")]
    processor = f"{names[0]}, {len(names)} cores" if names else platform.processor() or "processor unknown"
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "casadi"))
    return (
        f"{date.today().isoformat()}; {processor}; {platform.system()}; steelyard {version('steelyard')}"
        f"{_commit()}, Python {platform.python_version()}, {packages}. Load of the machine at the end: {_load()}."
    )


def _cpu_lines() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def _commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return f" ({done.stdout.strip()})" if done.returncode == 0 else ""


def grade(error: float, good: float, excellent: float) -> str:
    """Return how an error stands against its targets, compared as printed."""
    rounded = round(error, 2)
    return "excellent" if rounded <= excellent else "good" if rounded <= good else "missed"


def errors_table(results: Sequence[Result]) -> str:
    """Return the main table: a row for each target."""
    rows = []
    for result in results:
        target, of = result.target, result.outcomes
        best = of["selected"].mean("window")
        rows.append(
            [
                target.title, f"{target.judged[0].cutoff:g}", *(f"{of[name].mean('window'):.2f}" for name in of),
                f"{target.good:g}", f"{target.excellent:g}", grade(best, target.good, target.excellent),
                f"{100 * of['plain'].mean('coverage'):.0f} %",
            ]
        )  # fmt: skip
    header = (
        "set", "filter [Hz]", "plain", "its consistent arm", "selected", "its consistent arm", "good", "excellent",
        "selected is", "window",
    )  # fmt: skip
    return markdown(header, rows)


def summary(results: Sequence[Result]) -> str:
    """Return how many rows reach their targets."""
    grades = [grade(one.outcomes["selected"].mean("window"), one.target.good, one.target.excellent) for one in results]
    excellent, missed = grades.count("excellent"), grades.count("missed")
    return f"Selected: {excellent} of {len(grades)} rows excellent, {grades.count('good')} good, {missed} missed."


def rows_table(results: Sequence[Result]) -> str:
    """Return errors of moving and of all rows, and the product's own figure of the former."""
    rows = []
    for result in results:
        for name, outcome in result.outcomes.items():
            rows.append(
                [
                    result.target.title, name, f"{outcome.mean('moving'):.2f}", f"{np.mean(outcome.printed):.2f}",
                    f"{outcome.differs:.3f}", f"{outcome.mean('all_rows'):.2f}",
                ]
            )  # fmt: skip
    header = ("set", "model", "moving rows, computed here", "moving rows, as printed", "largest difference", "all rows")
    return markdown(header, rows)


def joints_table(results: Sequence[Result]) -> str:
    """Return the error of every joint in the window of the main table."""
    rows = [
        [result.target.title, name, *_joint_cells(outcome)]
        for result in results
        for name, outcome in result.outcomes.items()
    ]
    return markdown(("set", "model", *(f"joint {k}" for k in range(1, 8))), rows)


def _joint_cells(outcome: Outcome) -> list[str]:
    cells = [f"{error:.1f}" for error in outcome.joints]
    return [*cells, *[""] * (7 - len(cells))]


def model_table(results: Sequence[Result]) -> str:
    """Return what was chosen and how long it took: a row for each command."""
    rows, seen = [], set()
    for result in results:
        for mode, ran in result.ran.items():
            if (result.case.name, mode) in seen:
                continue
            seen.add((result.case.name, mode))
            content = ran.content
            excited = [row for row in content["parameters"] if row["excited"]]
            steps = (content["selection"] or {}).get("steps", [])
            rows.append(
                [
                    result.case.name, mode, f"{content['reduction']['essential']} of {len(excited)}",
                    ", ".join(f"{step['effect']} ({step['gain_percent']:.1f} %)" for step in steps) or "",
                    content["verdict"]["grade"], f"{ran.after_reading:.1f}", f"{ran.wall:.1f}", f"{ran.cpu:.1f}",
                ]
            )  # fmt: skip
    header = ("command", "model", "parameters", "effects chosen (gain in cross-validation)", "verdict",
              "after reading [s]", "whole command, wall [s]", "CPU [s]")  # fmt: skip
    return markdown(header, rows)


def published_table(result: Result) -> str:
    """Return published values beside ours."""
    rows = [
        [
            f"`{one.name}`", f"{one.published:.4g}",
            "" if np.isnan(one.published_sigma) else f"{one.published_sigma:.2g}", f"{one.value:.4g}",
            f"{one.sigma:.2g}", f"{one.sigmas_apart:+.1f}",
        ]
        for one in result.published
    ]  # fmt: skip
    header = ("parameter", "published", "sigma", "ours, plain", "sigma", "apart [sigmas]")
    return markdown(header, rows)


def section(results: Sequence[Result]) -> str:
    """Return the section of the real arms."""
    commands = dict.fromkeys(result.command for result in results)
    parts = [
        "## Unseen motion", f"`make bench-real`: {machine()}", "Relative error on unseen motion [%].",
        errors_table(results), summary(results), "## Moving and all rows",
        "Moving rows: each joint's own samples at standstill speed or faster, as the product counts them. All rows: "
        "every unseen sample that has a prediction, standstill and ends of filters included. Computed and printed "
        "figures may differ by how torques with uneven stamps are resampled (linearly here), by a few samples at the "
        "ends, and for a held-out part by friction with memory, whose state begins with the log here.",
        rows_table(results), "## Each joint", "In the window of the first table [%].", joints_table(results),
        "## Models and times",
        "Plain commands run on one thread, those that select on two. CPU times include the start of Python; seconds "
        "after reading are by the clock and grow with what else the machine does.",
        model_table(results), "Commands, from the folder of the repository (the plain model: with `--plain`):",
        "```sh\n" + "\n".join(commands) + "\n```", "## Parameters beside the authors'",
    ]  # fmt: skip
    for result in results:
        if result.published:
            parts += [f"### {result.case.name}: {result.published_by}", published_table(result)]
    return "\n\n".join(part.strip() for part in parts)
