"""``steelyard montecarlo``: estimators before the court, on simulated experiments whose truth is known."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..identification import SCHEMA as IDENTIFY_SCHEMA
from ..motion import Trajectory, read_trajectory, write_trajectory
from ..robot import Robot, load_robot
from ..run import RunFolder, hashes_of, json_text, read_config
from ..study import (
    StudyConfiguration,
    StudyResult,
    StudySettings,
    default_motion,
    default_noise,
    montecarlo,
    study_configuration,
    study_to_json,
    times_to_json,
)
from .montecarlo_table import print_study
from .output import ProgressBar, tell
from .simulate import SCHEMA as SIMULATE_SCHEMA

SCHEMA = {
    "methods": list, "seeds": int, "first_seed": int, "noise_levels": list, "starts": list, "processes": int,
}  # fmt: skip
RECORD_RATE = 200.0
"""Rate of the recordings where none is given [Hz]: enough for a motion of an arm, and runs stay short."""

_NOISES = ("motor_noise", "joint_noise", "position_noise", "disturbance")
_ONE_RUN = ("seed", "runs", "format")
"""Settings of ``steelyard simulate`` that are the study's here."""


@dataclass(frozen=True)
class Asked:
    """Flags of the command, None where not given: of the study, of the experiment and of the fit."""

    study: Mapping[str, Any]
    simulate: Mapping[str, Any]
    identify: Mapping[str, Any]


def run(
    robot_name: str,
    trajectory: Path | None,
    asked: Asked,
    config: Path | None,
    out: Path | None,
    json: bool,
    parameters: bool,
) -> int:
    """Run the study, print and save; return 2 if a method failed in every run."""
    tables = [
        _merged(config, *one)
        for one in (
            ("montecarlo", SCHEMA, asked.study), ("simulate", SIMULATE_SCHEMA, asked.simulate),
            ("identify", IDENTIFY_SCHEMA, asked.identify),
        )
    ]  # fmt: skip
    processes = tables[0].pop("processes", os.cpu_count() or 1)
    study = _study(tables[0])
    robot = load_robot(robot_name)
    motion = default_motion(robot) if trajectory is None else _read(trajectory, robot)
    simulated, notes = _experiment(tables[1], robot, motion)
    given = study_configuration(robot_name, motion, simulated, tables[2])
    with RunFolder(out, "montecarlo") as run:
        court = _held(given, study, out, processes)
        content = {
            "robot": robot.name, "trajectory": None if trajectory is None else str(trajectory),
            "duration": motion.duration, **study_to_json(court),
        }  # fmt: skip
        content["notes"] = [*notes, *content["notes"]]
        settings = {"robot": robot_name, "montecarlo": tables[0], "simulate": simulated, "identify": tables[2]}
        fill = (lambda place, _: write_trajectory(motion, place / "motion.toml")) if trajectory is None else None
        run.save(settings, hashes_of(Path(robot_name), trajectory, config), content, fill, times_to_json(court))
        if json:
            print(json_text("montecarlo", {**content, "seconds": times_to_json(court)}))
        else:
            print_study(court, content, run.place, parameters)
    return 2 if any(verdict.failures == verdict.runs for verdict in court.verdicts) else 0


def _merged(config: Path | None, table: str, schema: Any, flags: Mapping[str, Any]) -> dict[str, Any]:
    settings = read_config(config, table, schema) if config else {}
    return {**settings, **{key: value for key, value in flags.items() if value is not None}}


def _study(table: Mapping[str, Any]) -> StudySettings:
    settings = dict(table)
    for key in ("noise_levels", "starts"):
        if key in settings:
            settings[key] = tuple(_number(key, value) for value in settings[key])
    if "methods" in settings:
        settings["methods"] = tuple(str(method) for method in settings["methods"])
    return StudySettings(**settings)


def _number(key: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ConfigError(f"{key}: got '{value}', needed are numbers, such as 0.5,1,2") from None


def _read(trajectory: Path, robot: Robot) -> Trajectory:
    return read_trajectory(trajectory, [body.joint.name for body in robot.actuated])


def _experiment(table: Mapping[str, Any], robot: Robot, motion: Trajectory) -> tuple[dict[str, Any], list[str]]:
    """Return the settings of the experiment, with noise if none is given, and what a reader should know of it."""
    settings = {key: value for key, value in table.items() if key not in _ONE_RUN}
    settings.setdefault("record_rate", RECORD_RATE)
    if any(name in settings for name in _NOISES):
        return settings, []
    noise = default_noise(robot, motion, settings.get("payload"))
    return {**settings, **noise}, ["no noise is given: white noise of 2 % of each joint's largest torque is taken"]


def _held(given: StudyConfiguration, study: StudySettings, out: Path | None, processes: int) -> StudyResult:
    """Run the study; say after an interrupt what is left of it."""
    folder = None if out is None else out / "runs"
    done = 0.0
    with ProgressBar("runs") as bar:

        def progress(so_far: float, total: float) -> None:
            nonlocal done
            done = so_far
            bar(so_far, total)

        try:
            return montecarlo(given, study, folder, processes, progress)
        except KeyboardInterrupt:
            kept = f"{done:g} runs are kept in '{folder}': the same command goes on from there"
            lost = "no run is kept; with --out DIR finished runs are, and the same command goes on from there"
            tell(lost if folder is None else kept)
            raise
