"""``steelyard poses``: configurations to measure, and the sigmas they promise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..calibration import (
    CalibrationSetup,
    PoseCriterionName,
    PoseDesign,
    calibrated_arm,
    default_setup,
    design_poses,
    identifiability,
    joint_range,
    load_named,
    marker_rows,
    measured_problem,
    planned_rows,
    planned_setup,
    random_configurations,
    read_setup,
    read_targets,
)
from ..errors import CalibrationError, nearest_match
from ..files import write_aside
from ..identification.to_json import plain
from ..robot import Robot, load_robot
from ..run import RunFolder, hashes_of, json_text
from ..text import csv_text, for_terminal
from .output import Column, Screen, short_names

FILE = "poses.csv"
_TESTED, _NOISE, _LONGEST_HEADING = 20, 1e-4, 14


@dataclass(frozen=True)
class Asked:
    """What is asked for: see the command's options."""

    count: int
    criterion: PoseCriterionName
    candidates: int
    choose_from: Path | None
    keep: bool
    test: Path | None
    sigma: float | None
    repeats: int
    load: str | None
    fixed: list[str] | None
    seed: int


def run(robot_name: str, config: Path | None, asked: Asked, out: Path | None, json: bool) -> int:
    """Choose configurations, print and save them."""
    _check(asked)
    robot = load_robot(robot_name)
    setup = planned_setup(read_setup(config, robot) if config else default_setup(robot))
    with RunFolder(out, "poses") as run:
        design, names, units = _designed(robot, setup, asked)
        settings = {"robot": robot_name, "count": asked.count, "criterion": asked.criterion, "seed": asked.seed}
        content = run.save(
            settings, hashes_of(Path(robot_name), config, asked.test, asked.choose_from),
            _content(robot, design, names, units),
            lambda place, _: write_aside(place / FILE, _csv(robot, design)),
        )  # fmt: skip
        print(json_text("poses", content)) if json else _print(robot, design, content, run.place)
    return 0


def _check(asked: Asked) -> None:
    for what, number in (("count", asked.count), ("candidates", asked.candidates), ("repeats", asked.repeats)):
        if number < 1:
            raise CalibrationError(f"--{what} is {number}; allowed are whole numbers from 1 on")
    if asked.sigma is not None and not (np.isfinite(asked.sigma) and asked.sigma > 0):
        raise CalibrationError(f"--sigma is {asked.sigma}; allowed is a number above 0 [m]")


def _designed(robot: Robot, setup: CalibrationSetup, asked: Asked) -> tuple[PoseDesign, list[str], list[str]]:
    rng = np.random.default_rng(asked.seed)
    if asked.choose_from is None:
        candidates = random_configurations(robot, asked.candidates, rng)
    else:
        candidates = _joints_of(robot, setup, asked.choose_from)
    if candidates.shape[1] < asked.count:
        raise CalibrationError(f"{asked.count} configurations cannot be chosen from {candidates.shape[1]} candidates")
    problem = measured_problem(robot, setup, planned_rows(robot, setup, candidates, asked.load))
    told = identifiability(problem.parameters, problem.at(problem.start).jacobian)
    size = len(problem.parameters)
    arm = calibrated_arm(problem, problem.start, np.zeros((size, size)))
    markers = {each.name: each.position or (0.0, 0.0, 0.0) for each in setup.markers}
    load = load_named(setup, asked.load)
    x, y, z = (asked.sigma,) * 3 if asked.sigma is not None else setup.sigma or (_NOISE,) * 3
    rows = marker_rows(
        arm, markers, (x, y, z), told.kept, load=load, base_rotation=problem.registration.base[:9].reshape(3, 3)
    )
    tests = None
    if asked.criterion == "industrial":
        tested = (
            random_configurations(robot, _TESTED, rng) if asked.test is None else _joints_of(robot, setup, asked.test)
        )
        tests = marker_rows(arm, {"tool": (0.0, 0.0, 0.0)}, (1.0, 1.0, 1.0), told.kept, load=load)(tested)
    lower, upper = joint_range(robot)
    design = design_poses(
        rows, candidates, asked.count, criterion=asked.criterion, tests=tests, repeats=asked.repeats, lower=lower,
        upper=upper, movable=_movable(robot, asked.fixed) & (not asked.keep), names=told.kept, seed=asked.seed,
    )  # fmt: skip
    units = {each.name: each.unit for each in problem.parameters}
    return design, list(told.kept), [units[name] for name in told.kept]


def _joints_of(robot: Robot, setup: CalibrationSetup, path: Path) -> np.ndarray:
    """Return the configurations (na, N) of a file."""
    problem = measured_problem(robot, setup, planned_rows(robot, setup, np.zeros((len(robot.actuated), 1))))
    size = len(problem.parameters)
    targets = read_targets(path, calibrated_arm(problem, problem.start, np.zeros((size, size))))
    if targets.joints is None:
        raise CalibrationError(f"'{path}' has no columns of joints; configurations are given by their joints")
    return targets.joints


def _movable(robot: Robot, fixed: Sequence[str] | None) -> np.ndarray:
    names = [body.joint.name for body in robot.actuated]
    for name in fixed or ():
        if name not in names:
            raise CalibrationError(
                f"--fixed: no joint '{name}'; joints: {', '.join(names)}{nearest_match(name, names)}"
            )
    return np.array([name not in (fixed or ()) for name in names])


def _content(robot: Robot, design: PoseDesign, names: Sequence[str], units: Sequence[str]) -> dict[str, Any]:
    joints = [body.joint.name for body in robot.actuated]
    sigma = np.sqrt(np.diag(design.covariance))
    return plain(
        {
            "criterion": design.criterion,
            "value": design.value,
            "value_of_random_choice": design.value_of_random,
            "configurations": [dict(zip(joints, column, strict=True)) for column in design.q.T.tolist()],
            "predicted_sigma": dict(zip(names, sigma, strict=True)),
            "units": dict(zip(names, units, strict=True)),
        }
    )


def _csv(robot: Robot, design: PoseDesign) -> str:
    heading = ["pose", *(body.joint.name for body in robot.actuated)]
    return csv_text([heading, *([str(k + 1), *(f"{x:.9g}" for x in column)] for k, column in enumerate(design.q.T))])


def _print(robot: Robot, design: PoseDesign, content: dict[str, Any], out: Path | None) -> None:
    screen = Screen()
    random = f"{design.value_of_random:.4g}" if np.isfinite(design.value_of_random) else "some unknowns stay unseen"
    unit = " m^2" if design.criterion == "industrial" else ""
    screen.line(
        f"{design.q.shape[1]} configurations by criterion {design.criterion}: {design.value:.4g}{unit} (a random "
        f"choice: {random})",
        always=True,
    )
    turns = {body.joint.name: body.joint.kind != "prismatic" for body in robot.actuated}
    short = short_names([for_terminal(name) for name in turns], _LONGEST_HEADING)
    columns = [Column(f"{short[for_terminal(name)]}\n{'deg' if turn else 'm'}") for name, turn in turns.items()]
    rows = [
        [
            str(k + 1),
            *(f"{np.degrees(x):.1f}" if turn else f"{x:.4f}" for x, turn in zip(q, turns.values(), strict=True)),
        ]
        for k, q in enumerate(design.q.T)
    ]
    screen.table([Column("pose", "key"), *columns], rows)
    sigmas = ", ".join(
        f"{name} {value:.2g} {content['units'][name]}" for name, value in content["predicted_sigma"].items()
    )
    screen.line(f"promised sigmas: {sigmas}")
    if out is not None:
        screen.line(f"saved in {out}: {FILE}, result.json", always=True)
