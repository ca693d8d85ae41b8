"""Commands about where an arm is: calibrate it, correct its targets, choose what to measure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from ...files import require_files, robot_file
from ..options import DATA, OUTPUT, Json, Out, Quiet, Robot, quietly, words

Setup = Annotated[
    Path | None,
    Parameter(
        name="--config",
        group=DATA,
        help="TOML file: link, units, columns, base, markers, loads, springs; see the docs.",
    ),
]


def calibrate(
    robot: Robot,
    measurements: Annotated[Path, Parameter(help="Measured positions or poses (CSV, text or NPZ).")],
    /,
    *,
    config: Setup = None,
    validate: Annotated[
        Path | None, Parameter(help="Measurements to judge by, not fitted; default: cross-validation.")
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
        Parameter(help="Whose sigmas; default: shared (repeats may share an error)."),
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
    from .. import calibrate as command

    flags = {
        "method": method, "covariance": covariance, "grouping": grouping, "sigma0": sigma0, "eta": eta,
        "prior": list(prior) or None, "folds": folds, "screen": False if keep_outliers else None,
        "validation_base": validate_base,
    }  # fmt: skip
    with quietly(quiet):
        return command.run(robot, measurements, config, validate, flags, workspace, load, words(export), out, json)


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
    from .. import apply as command

    with quietly(quiet):
        return command.run(run, targets, length, angle, point, load, robot, out, json)


def poses(
    robot: Robot,
    /,
    *,
    count: Annotated[int, Parameter(help="Configurations to measure; default: 20.")] = 20,
    config: Setup = None,
    criterion: Annotated[
        Literal["D", "A", "O1", "O2", "O3", "O4", "industrial"],
        Parameter(help="D (default), A, observability index O1 to O4, or industrial (accuracy after compensation)."),
    ] = "D",
    candidates: Annotated[int, Parameter(help="Random configurations to choose from; default: 400.")] = 400,
    choose_from: Annotated[
        Path | None, Parameter(name="--from", help="CSV of joints [rad or m] to choose from, instead of random ones.")
    ] = None,
    keep: Annotated[bool, Parameter(negative="", help="Choose only: do not move what was chosen.")] = False,
    test: Annotated[
        Path | None, Parameter(help="CSV of joints: where accuracy counts (industrial); default: 20 random ones.")
    ] = None,
    sigma: Annotated[
        float | None, Parameter(help="Noise of the instrument [m]; default: the set-up's, or 1e-4.")
    ] = None,
    repeats: Annotated[int, Parameter(help="Measurements of each configuration; default: 1.")] = 1,
    load: Annotated[str | None, Parameter(help="Load of the set-up under which the arm is measured.")] = None,
    fixed: Annotated[str | None, Parameter(help="Joints that stay where a candidate has them, by commas.")] = None,
    seed: Annotated[int, Parameter(help="Of the candidates; default: 0.")] = 0,
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Choose configurations to measure, and the sigmas they promise."""
    require_files(robot_file(robot), config, choose_from, test)
    from .. import poses as command

    asked = command.Asked(
        count, criterion, candidates, choose_from, keep, test, sigma, repeats, load, words(fixed), seed
    )
    with quietly(quiet):
        return command.run(robot, config, asked, out, json)
