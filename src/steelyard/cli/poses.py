"""``steelyard poses``: configurations to measure, and the sigmas predicted for them."""

from __future__ import annotations

from math import degrees, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from ..files import require_files, robot_file, write_aside
from ..plain_data import json_text
from ..text import for_terminal
from .options import CalibrationConfig, Json, Out, Quiet, RobotName, comma_separated, quietly
from .output import Column, Screen, short_names

if TYPE_CHECKING:
    from ..calibration import ChosenPoses

FILE = "poses.csv"
_LONGEST_HEADING = 14


def poses(
    robot: RobotName,
    /,
    *,
    count: Annotated[int, Parameter(help="Configurations to measure; default: 20.")] = 20,
    config: CalibrationConfig = None,
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
    """Choose configurations to measure, and predict the sigmas that they give."""
    require_files(robot_file(robot), config, choose_from, test)
    choice: dict[str, Any] = {
        "count": count, "criterion": criterion, "candidates": candidates if choose_from is None else choose_from,
        "keep": keep, "tests": test, "sigma": sigma, "repeats": repeats, "load": load,
        "fixed": comma_separated(fixed) or (),
        "seed": seed,
    }  # fmt: skip
    from ..calibration import choose_poses, load_setup
    from ..robot import load_robot
    from ..run import RunFolder, hashes_of

    arm = load_robot(robot)
    setup = load_setup(arm, config)
    with quietly(quiet), RunFolder(out, "poses") as run:
        found = choose_poses(arm, setup=setup, **choice)
        settings = {"robot": robot, **{key: choice[key] for key in ("count", "criterion", "seed")}}
        content = run.save(
            settings, hashes_of(Path(robot), config, test, choose_from), found.to_json(),
            lambda place, _: write_aside(place / FILE, found.to_csv()), report=found.to_html,
        )  # fmt: skip
        print(json_text("poses", content)) if json else _print(found, run.place)
    return 0


def _print(found: ChosenPoses, out: Path | None) -> None:
    screen, design = Screen(), found.design
    random = f"{design.value_of_random:.4g}" if isfinite(design.value_of_random) else "not all are identifiable"
    unit = " m^2" if design.criterion == "industrial" else ""
    screen.line(
        f"{design.q.shape[1]} configurations by criterion {design.criterion}: {design.value:.4g}{unit} (a random "
        f"choice: {random})",
        always=True,
    )
    turns = {body.joint.name: body.joint.kind != "prismatic" for body in found.robot.actuated}
    short = short_names([for_terminal(name) for name in turns], _LONGEST_HEADING)
    columns = [Column(f"{short[for_terminal(name)]}\n{'deg' if turn else 'm'}") for name, turn in turns.items()]
    rows = [
        [
            str(k + 1),
            *(f"{degrees(x):.1f}" if turn else f"{x:.4f}" for x, turn in zip(q, turns.values(), strict=True)),
        ]
        for k, q in enumerate(design.q.T)
    ]
    screen.table([Column("pose", "key"), *columns], rows)
    pairs = zip(found.predicted_sigma.items(), found.units, strict=True)
    screen.line(f"predicted sigmas: {', '.join(f'{name} {value:.2g} {unit}' for (name, value), unit in pairs)}")
    if out is not None:
        screen.line(f"saved in {out}: {FILE}, result.json, report.html", always=True)
