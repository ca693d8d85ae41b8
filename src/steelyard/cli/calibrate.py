"""``steelyard calibrate``: geometry and elasticity from measured positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from ..errors import CalibrationError, nearest_match
from ..files import require_files, robot_file
from ..plain_data import json_text
from .options import CalibrationConfig, Json, Out, Quiet, RobotName, comma_separated, quietly
from .output import Column, ProgressBar, Screen, print_verdict

if TYPE_CHECKING:
    from ..calibration import CalibrationResult

POOR = 2
EXPORTS = ("urdf", "yaml", "none")


def calibrate(
    robot: RobotName,
    measurements: Annotated[Path, Parameter(help="Measured positions or poses: CSV, text, NPZ, Parquet, HDF5, MAT.")],
    /,
    *,
    config: CalibrationConfig = None,
    validate: Annotated[
        Path | None, Parameter(help="Measurements for validation, not fitted; default: cross-validation.")
    ] = None,
    validate_base: Annotated[
        Literal["same", "own"] | None,
        Parameter(help="same (default): the base of the fit; own: the tracker was moved, register it by itself."),
    ] = None,
    method: Annotated[
        Literal["wls", "ols", "eq14", "declared", "robust"] | None,
        Parameter(
            help="wls (default), ols, eq14 (from the precision claimed), declared (the instrument's sigmas), robust."
        ),
    ] = None,
    covariance: Annotated[
        Literal["shared", "groups", "model", "classical", "cluster"] | None,
        Parameter(help="How the covariance of the estimate is computed; default: shared (repeats may share an error)."),
    ] = None,
    grouping: Annotated[
        Literal["configuration", "direction", "kind", "equation"] | None,
        Parameter(help="Equations that share a sigma: configuration (default), direction, kind."),
    ] = None,
    sigma0: Annotated[float | None, Parameter(help="Precision claimed for the instrument in eq14 [m].")] = None,
    eta: Annotated[float | None, Parameter(help="Tuning factor in eq14; default: 1.")] = None,
    prior: Annotated[
        tuple[str, ...],
        Parameter(negative="", help="Sigma about the nominal value: --prior m=1e-3 or x3=1e-4; may be repeated."),
    ] = (),
    folds: Annotated[
        int | None, Parameter(help="Parts held out in turn; default: each configuration, ten parts from 51 on.")
    ] = None,
    keep_outliers: Annotated[bool, Parameter(negative="", help="Do not look for gross errors.")] = False,
    workspace: Annotated[
        int | None, Parameter(help="Random configurations of the map of accuracy; default: 1000, 0: none.")
    ] = None,
    load: Annotated[str | None, Parameter(help="Load of the set-up under which the map of accuracy holds.")] = None,
    export: Annotated[
        str | None, Parameter(help="Files by commas: urdf (edited in place), yaml (default), or none; needs --out.")
    ] = None,
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Calibrate an arm: geometric errors and compliances from measured positions, and how accurate it will be."""
    require_files(robot_file(robot), measurements, config, validate)
    if validate is None and validate_base:
        raise CalibrationError("--validate-base: there is no file to validate with; name one with --validate")
    flags = {
        "method": method, "covariance": covariance, "grouping": grouping, "sigma0": sigma0, "eta": eta,
        "prior": list(prior) or None, "folds": folds, "screen": False if keep_outliers else None,
        "validation_base": validate_base,
    }  # fmt: skip
    given = {key: value for key, value in flags.items() if value is not None}
    map_options: dict[str, Any] = {"load": load, **({} if workspace is None else {"workspace": workspace})}
    exports = _exports(robot, comma_separated(export), out)

    from ..calibration import CalibrationSettings
    from ..calibration import calibrate as calibrate_arm
    from ..run import RunFolder, hashes_of

    own = {key: value for key, value in given.items() if key != "method"}
    settings = CalibrationSettings(**{**own, "prior": dict(_prior(text) for text in prior)})
    with quietly(quiet), RunFolder(out, "calibrate") as run:
        with ProgressBar("calibrating") as progress:
            found = calibrate_arm(
                robot, measurements, setup=config, method=method, settings=settings, validate=validate, **map_options,
                progress=progress,
            )  # fmt: skip
        content = run.save(
            {"robot": robot, "measurements": str(measurements), **given},
            hashes_of(Path(robot), measurements, config, validate),
            found.to_json(),
            lambda place, identifier: _fill(found, robot, config, exports, place, identifier),
            report=found.to_html,
        )
        if json:
            print(json_text("calibrate", content))
        else:
            print_calibration(found, content, run.place, content.get("exports", []))
    return POOR if found.calibration.verdict.grade == "poor" else 0


def _fill(
    found: CalibrationResult, robot: str, config: Path | None, exports: Sequence[str], place: Path, identifier: str
) -> dict[str, Any]:
    """Write exports and arrays into the folder of the run; return what names them."""
    from ..calibration import export_calibration, fill_calibration

    written = export_calibration(found, place, exports, robot_file=Path(robot), run=identifier)
    text = config.read_text(encoding="utf-8-sig") if config else ""
    return {"exports": written, **fill_calibration(place, found.calibration), "setup": text}


def _prior(text: str) -> tuple[str, float]:
    name, _, sigma = text.rpartition("=")
    try:
        return name, float(sigma)
    except ValueError as error:
        raise CalibrationError(f"--prior is '{text}'; allowed is NAME=SIGMA or UNIT=SIGMA, such as m=1e-3") from error


def _exports(robot: str, export: Sequence[str] | None, out: Path | None) -> list[str]:
    """Return the files to export, checked before the work begins."""
    for name in export or ():
        if name not in EXPORTS:
            raise CalibrationError(
                f"export: got '{name}', allowed are {', '.join(EXPORTS)}{nearest_match(name, EXPORTS)}"
            )
    if export and out is None and "none" not in export:
        raise CalibrationError("--export needs a folder for its files; name one with --out")
    if export and "urdf" in export and Path(robot).suffix.lower() not in (".urdf", ".xml"):
        raise CalibrationError(f"--export urdf: the robot '{robot}' is no URDF file; take yaml")
    return [name for name in (export or ["yaml"]) if name != "none"]


_MOST_OUTLIERS = 20


def print_calibration(
    found: CalibrationResult, content: Mapping[str, Any], out: Path | None, written: Sequence[str]
) -> None:
    """Print verdict, accuracy, parameters, outliers and notes."""
    screen = Screen()
    screen.line(
        (content["robot"], "bold"),
        f"  {content['configurations']} configurations, {content['equations']} equations, "
        f"{len(found.calibration.fitted)} unknowns, method: {content['method']}",
    )
    print_verdict(screen, found.calibration.verdict)
    screen.line()
    _print_accuracy(screen, content, "position errors, mm", "points", ("mean_mm", "rms_mm", "p95_mm", "max_mm"))
    if content["after"]["rotations"]:
        figures = ("rotation_mean_deg", "rotation_rms_deg", "rotation_p95_deg", "rotation_max_deg")
        screen.line()
        _print_accuracy(screen, content, "orientation errors, deg", "rotations", figures)
    screen.line()
    screen.line(_base(content))
    _print_parameters(screen, content)
    _print_rest(screen, content)
    for note in content["notes"]:
        screen.line(f"note: {note}", style="dim")
    if out is not None:
        screen.line(f"saved in {out}: {', '.join(['result.json', 'report.html', *written])}", always=True)


def _print_accuracy(screen: Screen, content: Mapping[str, Any], title: str, count: str, figures: Sequence[str]) -> None:
    """Print errors before and after at the same points; points that differ have a row ``before`` of their own."""
    own, held_out = content["validation"], content["cross_validated"]
    rows = [("before (base and markers fitted)", content["before"]), ("after, on the fit", content["after"])]
    if held_out is not None and held_out[count] != content["before"][count] and own is None:
        rows.append(("before, points held out", content["held_out_before"]))
    rows.append(("after, cross-validated", held_out))
    if own is not None:
        rows += [("before, validation file", own["before"]), ("after, validation file", own["after"])]
    columns = [Column("", "text"), *(Column(heading) for heading in (count, "mean", "rms", "95 %", "max"))]
    cells = [
        [name, str(row[count]), *(f"{row[what]:.3g}" for what in figures)]
        for name, row in rows
        if row is not None and row[count]
    ]
    screen.table(columns, cells, title=title)


def _base(content: Mapping[str, Any]) -> str:
    xyz, rpy = ([f"{number:.6g}" for number in content["base"][key]] for key in ("xyz", "rpy"))
    return (
        f"base in the measurement frame: xyz {', '.join(xyz)} m, rpy {', '.join(rpy)} rad; base_x ... base_rz below "
        "are what was added to its start"
    )


def _print_parameters(screen: Screen, content: Mapping[str, Any]) -> None:
    from ..calibration import SHOWN_UNITS

    columns = [
        Column("parameter", "key"), Column("value"), Column("+- 95 %"), Column("unit", "word"),
        Column("meaning", "text"),
    ]  # fmt: skip
    rows = []
    for row in content["parameters"]:
        unit, scale = SHOWN_UNITS.get(row["unit"], (row["unit"], 1.0))
        half = (row["high"] - row["low"]) / 2
        rows.append([row["name"], f"{scale * row['value']:.4g}", f"{scale * half:.2g}", unit, row["meaning"]])
    screen.table(columns, rows)


def _print_rest(screen: Screen, content: Mapping[str, Any]) -> None:
    for row in content["outliers"][:_MOST_OUTLIERS]:
        what = "the whole configuration" if row["marker"] is None else f"marker {row['marker']}"
        screen.line(f"left out: pose {row['pose']}, {what}: {row['size_mm']:.3g} mm off", style="yellow")
    if len(content["outliers"]) > _MOST_OUTLIERS:
        screen.line(f"and {len(content['outliers']) - _MOST_OUTLIERS} more, see --json")
    reasons: dict[str, list[str]] = {}
    for row in content["invisible"]:
        reasons.setdefault(row["why"], []).append(row["name"])
    for why, names in reasons.items():
        screen.line(f"not identified, nominal value used: {', '.join(names)}: {why}", style="dim")
    for row in content["suspicions"]:
        screen.line(
            f"suspicious before any fit: pose {row['pose']}, marker {row['marker']}: distances to other markers are "
            f"off by {row['size_mm']:.3g} mm",
            style="yellow",
        )  # fmt: skip
    for row in content["validation"]["gross"][:_MOST_OUTLIERS] if content["validation"] else ():
        screen.line(
            f"far off in the validation file, and counted: pose {row['pose']}, marker {row['marker']}: "
            f"{row['size_mm']:.3g} mm off",
            style="yellow",
        )  # fmt: skip
    largest = max(content["weights"], key=lambda group: group["sigma"])
    smallest = min(content["weights"], key=lambda group: group["sigma"])
    screen.line(
        f"noise as estimated: {len(content['weights'])} groups, sigma {_size(smallest)} ({smallest['group']}) to "
        f"{_size(largest)} ({largest['group']}); {_shared(content['shared_part_of_noise'])}"
    )
    if content["workspace"] is not None:
        row = content["workspace"]
        screen.line(
            f"predicted uncertainty over the workspace, relative to the robot's base (1 sigma, {row['configurations']} "
            f"configurations): median {row['median_mm']:.3g} mm, 95 % {row['p95_mm']:.3g} mm, worst "
            f"{row['worst_mm']:.3g} mm"
        )


def _shared(part: float | None) -> str:
    if part is None:
        return "what a configuration shares cannot be estimated from one target without repeats"
    return f"{100 * part:.0f} % of its variance is shared within a configuration"


def _size(group: Mapping[str, Any]) -> str:
    return f"{1e3 * group['sigma']:.3g} mm or mrad"
