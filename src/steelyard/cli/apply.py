"""``steelyard apply``: joint commands with which a calibrated arm reaches its targets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from ..errors import CalibrationError
from ..files import require_files
from ..plain_data import json_text, plain
from .options import OUTPUT, Json, Quiet, quietly
from .output import Column, Screen

if TYPE_CHECKING:
    from ..calibration import Corrected

POOR = 2
FILE = "targets.csv"
_MOST_ROWS = 30


def apply(
    run: Annotated[Path, Parameter(help="Folder of the calibrate run.")],
    targets: Annotated[Path, Parameter(help="CSV of joints, or of x, y, z and perhaps an orientation.")],
    /,
    *,
    length: Annotated[Literal["m", "mm", "um", "in"], Parameter(help="Unit of positions; default: m.")] = "m",
    angle: Annotated[Literal["rad", "deg"], Parameter(help="Unit of angles; default: rad.")] = "rad",
    point: Annotated[
        str | None,
        Parameter(
            help="Tool point x,y,z in the measured link's frame [m]; default: its origin.", allow_leading_hyphen=True
        ),
    ] = None,
    load: Annotated[str | None, Parameter(help="Load of the set-up that the arm carries.")] = None,
    robot: Annotated[str | None, Parameter(help="The run's robot file, if it has moved.")] = None,
    out: Annotated[Path | None, Parameter(name="--out", group=OUTPUT, help="Folder for corrected targets.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Correct targets: joint commands with which the calibrated arm reaches the wanted poses, load included."""
    require_files(run, targets)
    from ..calibration import corrected_targets, load_named, read_calibration, read_targets, write_corrected
    from ..run import RunFolder, hashes_of

    place = _point(point)
    with quietly(quiet), RunFolder(out, "apply") as saved_run:
        saved = read_calibration(run, robot)
        wanted = read_targets(targets, saved.arm, length=length, angle=angle, point=place)
        found = corrected_targets(saved.arm, wanted, load=load_named(saved.setup, load))
        settings = {"run": str(run), "targets": str(targets), "length": length, "angle": angle, "load": load}
        content = saved_run.save(
            settings, hashes_of(run / "result.json", targets), _corrected_to_json(found),
            lambda folder, _: write_corrected(folder / FILE, found, saved.arm.robot, length=length, angle=angle),
        )  # fmt: skip
        print(json_text("apply", content)) if json else _print(found, saved_run.place)
    return 0 if found.reached.all() else POOR


def _point(text: str | None) -> tuple[float, float, float]:
    if text is None:
        return 0.0, 0.0, 0.0
    try:
        x, y, z = (float(part) for part in text.split(","))
    except ValueError as error:
        raise CalibrationError(f"--point is '{text}'; allowed are three numbers by commas [m]") from error
    return x, y, z


def _corrected_to_json(found: Corrected) -> dict[str, Any]:
    rows = [
        {
            "name": name, "status": found.status[k], "why": found.why[k],
            "joints": dict(zip(found.joints, found.q[:, k], strict=True)),
            "nominal": dict(zip(found.joints, found.nominal[:, k], strict=True)),
            "uncorrected_mm": 1e3 * found.uncorrected[k], "residual_mm": 1e3 * found.residual[k],
            "residual_rotation_rad": found.residual_rotation[k], "sigma_mm": 1e3 * found.semi_axis[k],
        }
        for k, name in enumerate(found.names)
    ]  # fmt: skip
    return plain({"targets": rows, "reached": int(found.reached.sum()), "of": len(found.names)})


def _print(found: Corrected, out: Path | None) -> None:
    import numpy as np

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
            f"{abs(found.correction[:, k]).max():.3g}", found.why[k] or "reached",
        ]
        for k, name in enumerate(found.names[:_MOST_ROWS])
    ]  # fmt: skip
    screen.table([Column("target", "key"), *map(Column, headings), Column("", "text")], rows)
    if len(found.names) > _MOST_ROWS:
        screen.line(f"and {len(found.names) - _MOST_ROWS} more")
    if out is not None:
        screen.line(f"saved in {out}: {FILE}, result.json", always=True)
