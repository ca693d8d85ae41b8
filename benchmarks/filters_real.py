"""Filters on real arms: do recursive least squares and the extended Kalman filter reach the batch estimate?

    python -m benchmarks.filters_real [franka_panda ur10e]

Printed for each: the relative error on unseen motion, the share of parameters within two of their sigmas of weighted
least squares of all rows, the farthest of them, and the time. The recordings are not part of the product: their folder
is named by the environment variable STEELYARD_DATA.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from benchmarks.calibration_data import TABLES, data_folder
from steelyard.cli import main as steelyard

LOGS: dict[str, tuple[str, ...]] = {
    "franka_panda": (),
    "ur10e": (
        "ur10e/identification/ur-20_02_10-30sec_12harm.csv", "--validate",
        "ur10e/identification/ur-20_02_12-40sec_12harm.csv",
    ),
}  # fmt: skip
METHODS = ("wls", "rls", "ekf")
NEAR = 2.0


@dataclass(frozen=True)
class Compared:
    """A method beside weighted least squares.

    Attributes:
        unseen: Relative error on unseen motion [%].
        near: Share of the parameters within two of their sigmas of weighted least squares.
        farthest: Name of the farthest of them.
        away: How far that one is, in its sigmas.
        notes: What the method tells.
    """

    unseen: float
    near: float
    farthest: str
    away: float
    notes: tuple[str, ...]


def identified(robot: str, method: str) -> dict[str, Any]:
    """Return what ``steelyard identify --json`` says of a log."""
    setup, printed = str(TABLES / f"{robot}.toml"), io.StringIO()
    arguments = [robot, *LOGS[robot], "--config", setup, "--root", str(data_folder()), "--method", method, "--json"]
    with contextlib.redirect_stdout(printed):
        steelyard(["identify", *arguments])
    result = json.loads(printed.getvalue())
    if "error" in result:
        raise SystemExit(f"{robot}, {method}: {result['error']['message']}")
    return result


def compared(result: dict[str, Any], batch: dict[str, Any]) -> Compared:
    """Return a result beside that of weighted least squares."""
    known = {each["name"]: each["full_value"] for each in batch["parameters"]}
    names = [each["name"] for each in result["parameters"]]
    away = np.array([(each["full_value"] - known[each["name"]]) / each["full_sigma"] for each in result["parameters"]])
    worst = int(np.abs(away).argmax())
    return Compared(
        result["validation"]["relative_error_percent"],
        float((np.abs(away) <= NEAR).mean()),
        names[worst],
        float(away[worst]),
        tuple(result["notes"]),
    )


def run(robots: Sequence[str] = tuple(LOGS)) -> None:
    """Print the comparison for the named logs."""
    for robot in robots:
        batch = identified(robot, "wls")
        print(f"  {robot}: {len(batch['parameters'])} parameters")
        notes: tuple[str, ...] = ()
        for method in METHODS:
            start = time.perf_counter()
            found = compared(identified(robot, method), batch)
            print(
                f"    {method}  unseen {found.unseen:.2f} %, within {NEAR:g} sigmas of wls {found.near:.0%}, farthest "
                f"{found.farthest} by {found.away:+.1f} sigmas, {time.perf_counter() - start:.1f} s"
            )
            notes = found.notes
        reasons = [note for note in notes if "least squares" in note or "innovations" in note]
        for note in reasons:
            print(f"         {note}")


if __name__ == "__main__":
    run(sys.argv[1:] or tuple(LOGS))
