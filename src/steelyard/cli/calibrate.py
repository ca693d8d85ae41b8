"""``steelyard calibrate``: geometry and elasticity from measured positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..calibration import (
    AccuracyMap,
    CalibrationSettings,
    CalibrationSetup,
    FramePlace,
    MeasuredProblem,
    accuracy_map,
    calibrated,
    calibrated_arm,
    calibration_to_json,
    check_measurements,
    declared_sigma,
    default_setup,
    fill_calibration,
    load_named,
    map_csv,
    measured_problem,
    random_configurations,
    read_measurements,
    read_setup,
    write_calibration_yaml,
    write_urdf,
)
from ..calibration.fit.calibration import Calibration
from ..errors import CalibrationError, nearest_match
from ..files import write_aside
from ..robot import Robot, load_robot
from ..run import RunFolder, hashes_of, json_text
from .calibrate_table import print_calibration
from .output import ProgressBar

POOR = 2
MAPPED = 1000
EXPORTS = ("urdf", "yaml", "none")
_SEED = 0


def run(
    robot_name: str,
    measurements: Path,
    config: Path | None,
    validate: Path | None,
    flags: Mapping[str, Any],
    workspace: int | None,
    load: str | None,
    export: Sequence[str] | None,
    out: Path | None,
    json: bool,
) -> int:
    """Calibrate, print and save; return 2 if the verdict is poor."""
    robot = load_robot(robot_name)
    setup = read_setup(config, robot) if config else default_setup(robot)
    exports = _exports(robot_name, export, out)
    if validate is None and flags.get("validation_base"):
        raise CalibrationError("--validate-base: there is no file to validate with; name one with --validate")
    with RunFolder(out, "calibrate") as run:
        with ProgressBar("calibrating") as progress:
            problem, suspicions = _problem(robot, setup, measurements)
            progress(1, 4)
            settings = _settings(flags, problem, setup)
            others = None if validate is None else _others(problem, validate, measurements)
            found = calibrated(problem, settings=settings, validation=others)
            progress(2, 4)
            mapped = _mapped(problem, found, MAPPED if workspace is None else workspace, load)
            progress(4, 4)
        content = calibration_to_json(found, mapped)
        content["suspicions"] = [{"pose": s.pose, "marker": s.marker, "size_mm": 1e3 * s.size} for s in suspicions]
        content["notes"] = list(problem.measurements.notes)
        asked = {key: value for key, value in flags.items() if value is not None}

        def fill(place: Path, identifier: str) -> dict[str, Any]:
            written = _export(robot_name, problem, found, exports, place, identifier)
            if mapped is not None:
                write_aside(place / "workspace.csv", map_csv(mapped, [body.joint.name for body in robot.actuated]))
                written.append("workspace.csv")
            text = config.read_text(encoding="utf-8-sig") if config else ""
            return {"exports": written, **fill_calibration(place, found), "setup": text}

        names = {"robot": robot_name, "measurements": str(measurements), **asked}
        content = run.save(names, hashes_of(Path(robot_name), measurements, config, validate), content, fill)
        if json:
            print(json_text("calibrate", content))
        else:
            print_calibration(found, content, run.place, content.get("exports", []))
    return POOR if found.verdict.grade == "poor" else 0


def _problem(robot: Robot, setup: CalibrationSetup, path: Path) -> tuple[MeasuredProblem, tuple[Any, ...]]:
    measured = read_measurements(path, robot, setup)
    suspicions = check_measurements(robot, setup, measured)
    return measured_problem(robot, setup, measured), suspicions


def _settings(flags: Mapping[str, Any], problem: MeasuredProblem, setup: CalibrationSetup) -> CalibrationSettings:
    given = {key: value for key, value in flags.items() if value is not None}
    given["prior"] = dict(_prior(text) for text in given.get("prior", ()))
    if given.get("method") == "declared":
        given["sigma"] = declared_sigma(setup, problem.measurements, problem.equations)
    return CalibrationSettings(**given)


def _prior(text: str) -> tuple[str, float]:
    name, _, sigma = text.rpartition("=")
    try:
        return name, float(sigma)
    except ValueError as error:
        raise CalibrationError(f"--prior is '{text}'; allowed is NAME=SIGMA or UNIT=SIGMA, such as m=1e-3") from error


def _others(problem: MeasuredProblem, path: Path, fitted: Path) -> MeasuredProblem:
    """Return measurements to validate with."""
    if hashes_of(path).values() == hashes_of(fitted).values() or path.resolve() == fitted.resolve():
        raise CalibrationError(f"'{path}' is the file that is fitted; validate with other measurements")
    measured = read_measurements(path, problem.robot, problem.setup)
    check_measurements(problem.robot, problem.setup, measured, fewest=1)
    return problem.for_validation(measured)


def _mapped(problem: MeasuredProblem, found: Calibration, count: int, load: str | None) -> AccuracyMap | None:
    if count == 0:
        return None
    if count < 0:
        raise CalibrationError(f"--workspace is {count}; allowed are 0 and above")
    arm = calibrated_arm(problem, found.values, found.covariance, found.ranges, found.unmodelled)
    q = random_configurations(problem.robot, count, np.random.default_rng(_SEED))
    return accuracy_map(arm, q, load=load_named(problem.setup, load))


def _exports(robot_name: str, asked: Sequence[str] | None, out: Path | None) -> list[str]:
    for name in asked or ():
        if name not in EXPORTS:
            raise CalibrationError(
                f"export: got '{name}', allowed are {', '.join(EXPORTS)}{nearest_match(name, EXPORTS)}"
            )
    if asked and out is None and "none" not in asked:
        raise CalibrationError("--export needs a folder for its files; name one with --out")
    if asked and "urdf" in asked and Path(robot_name).suffix.lower() not in (".urdf", ".xml"):
        raise CalibrationError(f"--export urdf: the robot '{robot_name}' is no URDF file; take yaml")
    return [name for name in (asked or ["yaml"]) if name != "none"]


def _export(
    robot_name: str,
    problem: MeasuredProblem,
    found: Calibration,
    exports: Sequence[str],
    place: Path,
    identifier: str,
) -> list[str]:
    """Write the exports of a run into a folder and return their names."""
    arm, written = calibrated_arm(problem, found.values, found.covariance), []
    if "yaml" in exports:
        base, tool = (FramePlace(*place(found.values)) for place in (problem.base_pose, problem.tool_pose))
        write_calibration_yaml(place / "calibration.yaml", arm, base=base, tool=tool, run=identifier)
        written.append("calibration.yaml")
    if "urdf" in exports:
        write_urdf(Path(robot_name), arm, place / "calibrated.urdf")
        written.append("calibrated.urdf")
    return written
