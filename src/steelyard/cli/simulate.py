"""``steelyard simulate``: a simulated experiment that leaves a recording, and the truth beside it."""

from __future__ import annotations

import json as json_format
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from ..errors import SimulationError
from ..files import require_files, robot_file, write_aside
from ..plain_data import json_text
from .options import OUTPUT, Config, Json, Quiet, RobotName, quietly
from .output import Column, ProgressBar, Screen

if TYPE_CHECKING:
    from ..motion import Trajectory
    from ..robot import Robot
    from ..simulation import SimulatedRun

SCHEMA = {
    "control": str, "kp": list, "kd": list, "bandwidth": float, "velocity": str, "control_rate": float,
    "plant_rate": float, "record_rate": float, "delay": float, "encoder_quantum": (float, list), "sign_width": float,
    "motor_noise": dict, "joint_noise": dict, "disturbance": dict, "position_noise": dict, "stiffness": list,
    "saturate": bool, "payload": str, "plant": str, "seed": int, "runs": int, "noise": bool,
    "format": Literal["npz", "csv"],
}  # fmt: skip


def simulate(
    robot: RobotName,
    trajectory: Annotated[Path, Parameter(help="Trajectory file (TOML).")],
    /,
    *,
    rate: Annotated[float | None, Parameter(help="Rate of the recording [Hz]; default: 1000.")] = None,
    control: Annotated[
        Literal["pd", "computed_torque"] | None, Parameter(help="Controller; default: computed_torque.")
    ] = None,
    payload: Annotated[str | None, Parameter(help="Name of a payload the robot knows.")] = None,
    plant: Annotated[Literal["compiled", "mujoco"] | None, Parameter(help="Who integrates; default: compiled.")] = None,
    seed: Annotated[int | None, Parameter(help="Seed of noise and disturbance; default: 0.")] = None,
    runs: Annotated[int | None, Parameter(help="Number of runs, with seeds from the first on; default: 1.")] = None,
    noise: Annotated[
        bool,
        Parameter(negative="", help="White noise on torques: 2 % of each joint's largest."),
    ] = False,
    format: Annotated[Literal["npz", "csv"] | None, Parameter(help="Kind of recording; default: npz.")] = None,
    config: Config = None,
    out: Annotated[
        Path, Parameter(name="--out", group=OUTPUT, help="Folder for recording and truth; default: simulation.")
    ] = Path("simulation"),
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Simulate an experiment: a closed-loop arm follows a trajectory; recording and truth are saved."""
    require_files(robot_file(robot), trajectory, config)
    flags = {
        "record_rate": rate, "control": control, "payload": payload, "plant": plant, "seed": seed, "runs": runs,
        "format": format, "noise": noise or None,
    }  # fmt: skip
    with quietly(quiet):
        _run(robot, trajectory, {key: value for key, value in flags.items() if value is not None}, config, out, json)


def _run(name: str, trajectory: Path, flags: dict[str, Any], config: Path | None, out: Path, json: bool) -> None:
    """Simulate, write recordings, truth and result, and print what happened."""
    from ..motion import read_trajectory
    from ..robot import load_robot
    from ..run import RunFolder, hashes_of, read_config
    from ..simulation import experiment_from_settings, simulate
    from ..study import default_noise

    given = {**(read_config(config, "simulate", SCHEMA) if config else {}), **flags}
    settings = dict(given)
    seed, runs, kind = settings.pop("seed", 0), settings.pop("runs", 1), settings.pop("format", "npz")
    if runs < 1:
        raise SimulationError(f"runs is {runs}; allowed is 1 or more")
    robot = load_robot(name)
    motion = read_trajectory(trajectory, [body.joint.name for body in robot.actuated])
    if settings.pop("noise", False):
        settings = {**default_noise(robot, motion, settings.get("payload")), **settings}
    experiment = experiment_from_settings(settings)
    with RunFolder(out, "simulate") as run:
        with ProgressBar("simulating") as progress:
            done = simulate(
                robot, motion, experiment, range(seed, seed + runs), threads=os.cpu_count() or 1, progress=progress
            )
        names = _names(done, kind)
        content = {**_summary(done), "recordings": names, "violations": _violations(motion, robot)}
        inputs = hashes_of(Path(name), trajectory, config)
        settings = {"robot": name, "trajectory": str(trajectory), **given}
        run.save(settings, inputs, content, lambda place, _: _write_recordings(done, place, names))
        print(json_text("simulate", content)) if json else _print(content, run.place or out, alike=_are_alike(done))


def _names(done: SimulatedRun, kind: str) -> list[str]:
    if len(done.seeds) == 1:
        return [f"recording.{kind}"]
    return [f"recording_{seed:04d}.{kind}" for seed in done.seeds]


def _write_recordings(done: SimulatedRun, place: Path, names: Sequence[str]) -> None:
    from ..recording import write_recording
    from ..simulation import recording_of

    for index, name in enumerate(names):
        write_recording(recording_of(done, index), place / name)
    truth = {"robot": done.robot.name, "effects": list(done.effects), "parameters": dict(done.truth)}
    write_aside(place / "truth.json", json_format.dumps(truth, indent=2, allow_nan=False) + "\n")


def _summary(done: SimulatedRun) -> dict[str, Any]:
    import numpy as np

    error = np.sqrt(((done.q - done.reference) ** 2).mean(axis=(0, 2)))
    joints = [body.joint.name for body in done.robot.actuated]
    return {
        "robot": done.robot.name,
        "plant": done.experiment.plant,
        "plant_rate": done.experiment.plant_rate,
        "sign_width": done.experiment.sign_width,
        "record_rate": done.experiment.record_rate,
        "samples": int(done.time.size),
        "seeds": list(done.seeds),
        "joints": [
            {
                "joint": joint,
                "tracking_rms": float(error[row]),
                "velocity_max": float(np.abs(done.qd[:, row]).max()),
                "torque_max": float(np.abs(done.motor_torque[:, row]).max()),
            }
            for row, joint in enumerate(joints)
        ],
    }


def _are_alike(done: SimulatedRun) -> bool:
    """Return whether seeds make no difference to what is recorded."""
    from ..simulation import recording_of

    if len(done.seeds) < 2:
        return False
    one, other = (recording_of(done, index) for index in (0, 1))
    pairs = [(one.q, other.q), *((a.values, b.values) for a, b in zip(one.torques, other.torques, strict=True))]
    return all(bool((first == second).all()) for first, second in pairs)


def _violations(motion: Trajectory, robot: Robot) -> list[str]:
    from ..motion import limit_violations

    return [
        f"{v.joint}: {v.quantity} {v.value:.4g} beyond the limit {v.limit:.4g} at {v.time:.3f} s"
        for v in limit_violations(motion, robot)
    ]


def _print(content: dict[str, Any], out: Path, *, alike: bool) -> None:
    screen = Screen()
    screen.line(
        (content["robot"], "bold"),
        f": {content['samples']} samples at {content['record_rate']:g} Hz, {len(content['seeds'])} run(s), plant "
        f"'{content['plant']}' at {content['plant_rate']:g} Hz",
    )
    headings = ("tracking rms", "largest speed", "largest motor torque")
    rows = [
        [row["joint"], f"{row['tracking_rms']:.2e}", f"{row['velocity_max']:.3g}", f"{row['torque_max']:.4g}"]
        for row in content["joints"]
    ]
    screen.table([Column("joint", "key"), *map(Column, headings)], rows)
    if alike:
        screen.line("note: without noise or disturbance all runs are alike; --noise adds some", style="yellow")
    for line in content["violations"]:
        screen.line(f"note: the trajectory breaks a limit: {line}", style="yellow")
    screen.line(f"saved: {out / content['recordings'][0]}, truth.json, result.json", always=True)
