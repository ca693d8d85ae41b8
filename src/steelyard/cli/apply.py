"""``steelyard apply``: joint commands with which a calibrated arm reaches its targets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..calibration import (
    Corrected,
    corrected_targets,
    load_named,
    read_calibration,
    read_targets,
    write_corrected,
)
from ..errors import CalibrationError
from ..identification.to_json import plain
from ..run import RunFolder, hashes_of, json_text
from .output import Column, Screen

POOR = 2
FILE = "targets.csv"
_MOST_ROWS = 30


def run(
    folder: Path,
    targets: Path,
    length: str,
    angle: str,
    point: str | None,
    load: str | None,
    robot: str | None,
    out: Path | None,
    json: bool,
) -> int:
    """Correct targets, print and save them; return 2 if one cannot be reached."""
    with RunFolder(out, "apply") as run:
        saved = read_calibration(folder, robot)
        asked = read_targets(targets, saved.arm, length=length, angle=angle, point=_point(point))
        found = corrected_targets(saved.arm, asked, load=load_named(saved.setup, load))
        settings = {"run": str(folder), "targets": str(targets), "length": length, "angle": angle, "load": load}
        content = run.save(
            settings, hashes_of(folder / "result.json", targets), _content(found),
            lambda place, _: write_corrected(place / FILE, found, saved.arm.robot, length=length, angle=angle),
        )  # fmt: skip
        print(json_text("apply", content)) if json else _print(found, run.place)
    return 0 if found.reached.all() else POOR


def _point(text: str | None) -> tuple[float, float, float]:
    if text is None:
        return 0.0, 0.0, 0.0
    try:
        x, y, z = (float(word) for word in text.split(","))
    except ValueError as error:
        raise CalibrationError(f"--point is '{text}'; allowed are three numbers by commas [m]") from error
    return x, y, z


def _content(found: Corrected) -> dict[str, Any]:
    rows = [
        {
            "name": name, "status": found.status[k], "why": found.told[k],
            "joints": dict(zip(found.joints, found.q[:, k].tolist(), strict=True)),
            "nominal": dict(zip(found.joints, found.nominal[:, k].tolist(), strict=True)),
            "uncorrected_mm": 1e3 * found.uncorrected[k], "residual_mm": 1e3 * found.residual[k],
            "residual_rotation_rad": found.residual_rotation[k], "sigma_mm": 1e3 * found.semi_axis[k],
        }
        for k, name in enumerate(found.names)
    ]  # fmt: skip
    return plain({"targets": rows, "reached": int(found.reached.sum()), "of": len(found.names)})


def _print(found: Corrected, out: Path | None) -> None:
    screen = Screen()
    line = f"{int(found.reached.sum())} of {len(found.names)} targets reached"
    if found.reached.any():
        off, uncertain = (1e3 * np.median(x[found.reached]) for x in (found.uncorrected, found.semi_axis))
        line += f"; uncorrected they would be off by {off:.3g} mm, corrected they are uncertain by {uncertain:.3g} mm "
        line += "(1 sigma; medians)"
    screen.line(line, always=True)
    headings = ("off by\nmm", "uncertain\nmm", "largest correction\nrad or m")
    rows = [
        [
            name, f"{1e3 * found.uncorrected[k]:.3g}", f"{1e3 * found.semi_axis[k]:.3g}",
            f"{np.abs(found.correction[:, k]).max():.3g}", found.told[k] or "reached",
        ]
        for k, name in enumerate(found.names[:_MOST_ROWS])
    ]  # fmt: skip
    screen.table([Column("target", "key"), *map(Column, headings), Column("", "text")], rows)
    if len(found.names) > _MOST_ROWS:
        screen.line(f"and {len(found.names) - _MOST_ROWS} more")
    if out is not None:
        screen.line(f"saved in {out}: {FILE}, result.json", always=True)
