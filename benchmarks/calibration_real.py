"""Real arms calibrated by one command each: accuracy before, after and held out, and what was named as wrong.

    python -m benchmarks.calibration_real [fanuc kr210 tiago tiago_35 talos]

The recordings are not part of the product: their folder is named by the environment variable STEELYARD_DATA.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from benchmarks.calibration_data import CASES, calibration_case
from steelyard.cli import main as steelyard

FIGURES = ("mean_mm", "rms_mm", "p95_mm", "max_mm")
SUSPICIOUS = ("1", "2", "3", "8")
"""Configurations of the KR210 whose joint angles do not fit the rest."""


def calibration(name: str, out: Path) -> dict[str, Any]:
    """Return what ``steelyard calibrate --json`` says of a set whose files are written to a folder."""
    case = calibration_case(name, out)
    files, printed = (str(case.robot), str(case.measurements)), io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = steelyard(["calibrate", *files, "--config", str(case.setup), "--workspace", "0", "--json"])
    if code == 1:
        raise SystemExit(f"{name}: the calibration failed")
    return json.loads(printed.getvalue())


def named(result: dict[str, Any], pose: str, marker: str | None = None) -> bool:
    """Return whether a marker of a configuration, or any part of the configuration, is named as a gross error."""
    return any(each["pose"] == pose and marker in (None, each["marker"]) for each in result["outliers"])


def _fanuc(result: dict[str, Any]) -> list[tuple[str, bool]]:
    return [("at most 0.40 mm mean, each configuration left out in turn", result["held_out"]["mean_mm"] <= 0.40)]


def _kr210(result: dict[str, Any]) -> list[tuple[str, bool]]:
    return [
        ("pose 6 marker 1 named", named(result, "6", "marker_1")),
        ("pose 18 marker 3 named", named(result, "18", "marker_3")),
        (f"suspicious poses {', '.join(SUSPICIOUS)} named", all(named(result, pose) for pose in SUSPICIOUS)),
        ("at most 1.3 mm mean on the rest, held out", result["held_out"]["mean_mm"] <= 1.3),
    ]


def _halved(result: dict[str, Any]) -> list[tuple[str, bool]]:
    """Return whether the nominal error is halved; where it is not, the verdict must say so."""
    halved = result["held_out"]["mean_mm"] < result["before"]["mean_mm"] / 2
    texts = [
        reason["text"]
        for reason in result["verdict"]["reasons"]
        if "held out" in reason["text"] or "shared" in reason["text"]
    ]
    if halved or not texts:
        return [("held out below half of nominal", halved)]
    return [(f"held out below half of nominal, or a statement why not ({'; '.join(texts)})", True)]


def _tiago_35(result: dict[str, Any]) -> list[tuple[str, bool]]:
    return [("outlier pose 10 named", named(result, "10")), *_halved(result)]


WANTED: dict[str, Callable[[dict[str, Any]], list[tuple[str, bool]]]] = {
    "fanuc": _fanuc,
    "kr210": _kr210,
    "tiago": _halved,
    "tiago_35": _tiago_35,
    "talos": _halved,
}


def print_result(name: str, result: dict[str, Any]) -> None:
    """Print the figures of a set, and beside them what is wanted."""
    print(
        f"  {name}: {result['configurations']} configurations, {result['equations']} equations, "
        f"{len(result['parameters'])} unknowns, {result['method']}, verdict {result['verdict']['grade']}"
    )
    for key, texts in (("before", "nominal arm"), ("after", "calibrated"), ("held_out", result["held_out_is"])):
        numbers = "  ".join(f"{figure[:-3]} {result[key][figure]:.3f}" for figure in FIGURES)
        print(f"    {texts:16s} {numbers} mm, {result[key]['points']} points")
    bad = [
        f"pose {each['pose']}{' ' + each['marker'] if each['marker'] else ''} by {each['size_mm']:.3g} mm"
        for each in result["outliers"]
    ]
    print(f"    gross errors: {', '.join(bad) or 'none'}")
    for texts, holds in WANTED[name](result):
        print(f"    wanted: {texts}: {'holds' if holds else 'MISSES'}")


def run(names: Sequence[str] = tuple(CASES)) -> None:
    """Calibrate and print the named sets."""
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            print_result(name, calibration(name, Path(folder)))


if __name__ == "__main__":
    run(sys.argv[1:] or tuple(CASES))
