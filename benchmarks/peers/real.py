"""Real arms identified by other programs and judged as ours are: ``python -m benchmarks.peers.real [--out FILE.md]``.

Every peer runs in an environment of its own (``.cache/peers-NAME``), on the same raw files, with the same filter and
window of the judgement. CPU times are those of whole commands, with the start of Python and reading, in one run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from benchmarks.calibration_data import data_folder
from benchmarks.peers.figaroh_design import urdf_text
from benchmarks.real import CASES, MODES, RealCase, Target, arm_of, judge_target, predicted, recordings, run_case, timed
from benchmarks.real_scoring import READERS, Score, score
from benchmarks.real_tables import machine, markdown, write_section
from steelyard.identification import load_run, predict
from steelyard.robot import Body, Robot, inertia_from_parameters

ROOT = Path(__file__).parents[2]
PEERS = {"figaroh": "FIGAROH 1.0.2", "mujoco": "mujoco.sysid 4.0.0"}
"""Peers; ``requirements/peers-NAME.lock`` has what is installed in the environment of each."""

DEFAULT_DECIMATION = 10
MUJOCO_ITERATIONS = 20
SMALLEST_SPREAD = 1e-6
"""Smallest eigenvalue of a pseudo-inertia from which mujoco.sysid's parameters can start [kg m^2]."""


@dataclass(frozen=True)
class PeerSettings:
    """How FIGAROH is asked.

    Attributes:
        cutoff: Of its Butterworth filter of the positions [Hz].
        decimations: Factors to try; 10 is its default.
        recorded_velocity: Whether it gets recorded velocities, as ours does.
        drive_inertia: Whether drive inertias are unknown: not behind joint torque sensors.
        coupled: Whether motor 6 turns with joint 5.
    """

    cutoff: float
    decimations: tuple[int, ...] = (DEFAULT_DECIMATION,)
    recorded_velocity: bool = False
    drive_inertia: bool = True
    coupled: bool = False


SETTINGS = {
    "franka_panda": PeerSettings(10.0, recorded_velocity=True, drive_inertia=False),
    "kuka_lwr4": PeerSettings(8.0, recorded_velocity=True, drive_inertia=False),
    "staubli_tx40": PeerSettings(100.0, (DEFAULT_DECIMATION, 100), coupled=True),
    "ur10e": PeerSettings(10.0),
    "airbot_play": PeerSettings(5.0),
}
"""Cut-off of the TX40: that of FIGAROH's own example; else that of the judgement."""


@dataclass(frozen=True, eq=False)
class PeerResult:
    """A row of the table: one program on one target.

    Attributes:
        target: The row.
        name: The program and its settings.
        scores: Of every log.
        parameters: Number of parameters.
        cpu: CPU seconds of the whole command, without the prediction of unseen motion.
    """

    target: Target
    name: str
    scores: tuple[Score, ...]
    parameters: int
    cpu: float

    def mean(self, figure: str) -> float:
        """Return the mean of a figure over the logs."""
        return float(np.mean([getattr(one, figure) for one in self.scores]))


def interpreter(name: str) -> Path:
    """Return the interpreter of a peer's environment, which is made if it is not there.

    Raises:
        SystemExit: If the peer cannot be installed, with the last lines of pip.
    """
    folder, lock = ROOT / ".cache" / f"peers-{name}", ROOT / "requirements" / f"peers-{name}.lock"
    python, installed = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"), folder / "installed.lock"
    if not installed.exists() or installed.read_text() != lock.read_text():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "-r", str(lock)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{PEERS[name]} cannot be installed here: {done.stderr.strip()[-800:]}")
        installed.write_text(lock.read_text())
    return python


def figaroh_config(robot: Robot, settings: PeerSettings, rate: float) -> dict[str, Any]:
    """Return FIGAROH's configuration: its defaults but for filter and columns."""
    zeros = [0.0] * len(robot.actuated)
    components = {"friction": True, "joint_offset": True, "actuator_inertia": settings.drive_inertia}
    mechanics = {
        "reduction_ratios": [1.0] * len(zeros), "ratio_essential": 30.0, "actuator_inertias": zeros,
        "friction_coefficients": {"viscous": zeros, "static": zeros}, "joint_offsets": zeros,
    }  # fmt: skip
    identification = {
        "enabled": True,
        "problem": {"include_external_forces": False, "use_joint_torques": True, "model_components": components},
        "signal_processing": {
            "sampling_frequency": rate, "cutoff_frequency": settings.cutoff, "filter_type": "butterworth",
            "filter_order": 4,
        },
    }  # fmt: skip
    joints = {"active_joints": [body.joint.name for body in robot.actuated]}
    return {
        "robot": {"name": robot.name, "properties": {"joints": joints, "mechanics": mechanics}},
        "tasks": {"identification": identification},
    }


def possible_links(robot: Robot) -> list[Body]:
    """Return links to start from: those that no body can be, or without values, are balls of 20 cm."""
    bodies = []
    for body in robot.bodies:
        inertia, moment, mass = inertia_from_parameters(np.array(body.inertia or [0.0] * 10))
        spread = 0.5 * np.trace(inertia) * np.eye(3) - inertia
        pseudo = np.block([[spread, moment[:, None]], [moment[None], np.array([[mass]])]])
        if np.linalg.eigvalsh(pseudo).min() < SMALLEST_SPREAD:
            size = max(float(mass), 0.1)
            ball = 0.4 * size * 0.1**2
            body = replace(body, inertia=(ball, 0.0, 0.0, ball, 0.0, ball, 0.0, 0.0, 0.0, size))
        bodies.append(body)
    return bodies


def training_logs(case: RealCase) -> list[str]:
    """Return the names of the logs that a case is fitted with, as the readers know them."""
    if case.config == "airbot_play":
        return ["chirp"]
    logs = list(case.arguments[: case.arguments.index("--validate")]) if "--validate" in case.arguments else [""]
    return [Path(log).stem.removeprefix("ur-").removeprefix("measurements_") for log in logs]


def peer_run(case: RealCase, peer: str, decimation: int = 0) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Identify a set with a peer; return what it reports, and times and torques (1 + n, N) of every judged log."""
    robot, settings = arm_of(case.config), SETTINGS[case.config]
    judged = [row for target in case.targets for row in target.judged]
    training, root = training_logs(case), data_folder()
    task = {
        "robot": case.config, "root": str(root), "training": training,
        "trained": 1.0 - judged[0].held_out if judged[0].held_out < 1 else 1.0, "unseen": [row.log for row in judged],
        "decimation": decimation, "recorded_velocity": settings.recorded_velocity, "coupled": settings.coupled,
        "iterations": MUJOCO_ITERATIONS, "drive_inertia": settings.drive_inertia, "cutoff": judged[0].cutoff,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "arm.urdf").write_text(urdf_text(robot, possible_links(robot) if peer == "mujoco" else ()))
        rate = READERS[case.config](root, training[0]).rate
        # Every JSON document is a YAML document.
        (folder / "config.yaml").write_text(json.dumps(figaroh_config(robot, settings, rate)))
        (folder / "task.json").write_text(json.dumps(task))
        driver = Path(__file__).with_name(f"{peer}_identify.py")
        command = [str(interpreter(peer)), str(driver), str(folder)]
        code, _, _, error = timed(command, env={"PYTHONPATH": str(ROOT)}, cwd=folder)
        if code:
            raise SystemExit(f"{peer} failed on {case.name}: {error.strip()[-1000:]}")
        with np.load(folder / "predicted.npz") as arrays:
            torques = [np.vstack([arrays[f"time_{k}"], arrays[f"torque_{k}"]]) for k in range(len(judged))]
        return json.loads((folder / "result.json").read_text()), torques


def peer_results(case: RealCase, peer: str, decimation: int, ours: Path) -> Iterator[PeerResult]:
    """Judge a peer on every target of a case, on the very samples on which our run of a folder is judged."""
    reported, torques = peer_run(case, peer, decimation)
    run, root, left = load_run(ours), data_folder(), iter(torques)
    for target in case.targets:
        scores = []
        for row in target.judged:
            stamps, *theirs = next(left)
            own = predict(run, [recordings(row.robot)[row.log]], arm_of(row.robot))
            time, _, moving = predicted(own)
            torque = np.array([np.interp(time, stamps, values) for values in theirs])
            scores.append(score(READERS[row.robot](root, row.log), row, time, torque, moving))
        yield PeerResult(
            target, _title(peer, decimation), tuple(scores), reported["parameters"], reported["cpu_seconds"]
        )


def _title(peer: str, decimation: int) -> str:
    return f"FIGAROH, decimation {decimation}" if peer == "figaroh" else "mujoco.sysid"


def own_results(case: RealCase, folder: Path) -> Iterator[PeerResult]:
    """Identify a set by our command, plain and selected."""
    for mode in MODES:
        ran = run_case(case, mode, folder / mode)
        run = load_run(ran.folder)
        for target in case.targets:
            scores = judge_target(run, target).scores
            yield PeerResult(target, f"steelyard, {mode}", scores, ran.content["reduction"]["essential"], ran.cpu)


def results_of(case: RealCase) -> list[PeerResult]:
    """Return ours and the peers' results of a set, target by target."""
    with tempfile.TemporaryDirectory() as name:
        found = list(own_results(case, Path(name)))
        for decimation in SETTINGS[case.config].decimations:
            found += peer_results(case, "figaroh", decimation, Path(name) / "plain")
        found += peer_results(case, "mujoco", 0, Path(name) / "plain")
    return sorted(found, key=lambda one: case.targets.index(one.target))


def speed(rounds: int) -> dict[str, list[float]]:
    """Return CPU seconds of whole commands on the TX40, in turns: ours, and FIGAROH's with two decimations."""
    case = next(case for case in CASES if case.name == "tx40")
    seconds: dict[str, list[float]] = {}
    for _ in range(rounds):
        for mode, options in MODES.items():
            command = case.command(data_folder(), *options)
            _, _, cpu, _ = timed([sys.executable, "-m", "steelyard", *command], cwd=ROOT)
            seconds.setdefault(f"steelyard, {mode}", []).append(cpu)
        for decimation in SETTINGS["staubli_tx40"].decimations:
            reported, _ = peer_run(case, "figaroh", decimation)
            seconds.setdefault(_title("figaroh", decimation), []).append(reported["cpu_seconds"])
    return seconds


def errors_table(results: list[PeerResult]) -> str:
    """Return errors and times, a row for each program and target."""
    rows = [
        [
            one.target.title, one.name, f"{one.mean('window'):.2f}", f"{one.mean('moving'):.2f}",
            f"{one.mean('all_rows'):.2f}", str(one.parameters), f"{one.cpu:.1f}",
        ]
        for one in results
    ]  # fmt: skip
    header = ("set", "program", "window", "moving rows", "all rows", "parameters", "CPU [s]")
    return markdown(header, rows)


def speed_table(seconds: dict[str, list[float]]) -> str:
    """Return CPU seconds, and how many times as long as our plain command each takes, round by round."""
    plain = np.array(seconds["steelyard, plain"])
    rows = []
    for name, values in seconds.items():
        ratios = np.array(values) / plain
        rows.append(
            [name, f"{np.median(values):.2f}", f"{np.median(ratios):.1f} ({ratios.min():.1f} to {ratios.max():.1f})"]
        )
    return markdown(("program", "CPU [s], median", "times our plain command (rounds)"), rows)


def verdicts(results: list[PeerResult]) -> str:
    """Return who predicts best where, a sentence a target and figure."""
    lines = []
    for target in dict.fromkeys(one.target for one in results):
        for figure, text in (("window", "window"), ("all_rows", "all rows")):
            errors = {one.name: one.mean(figure) for one in results if one.target == target}
            order = sorted(errors, key=lambda name: errors[name])
            lines.append(f"- {target.title}, {text}: {', '.join(f'{name} {errors[name]:.2f} %' for name in order)}.")
    return "\n".join(lines)


def section(results: list[PeerResult], seconds: dict[str, list[float]]) -> str:
    """Return the section of the peers."""
    parts = [
        "## Beside other programs", f"`make bench-peers`: {machine()} Peers, each in an environment of its own: "
        f"{', '.join(PEERS.values())}.",
        "FIGAROH's own classes, weighted least squares (its one pass), the decimation of its default 10 or as named; "
        "its filter of the positions has the cut-off of the judgement, on the TX40 that of its own example (100 Hz). "
        "It gets evenly resampled logs, joint-side torques and, on the TX40, the three columns of the coupled wrist "
        "that its own configuration drops. Both are judged on the same samples. CPU: from the start of Python to the "
        "estimate; ours with validation, consistent arm, residual tests and report.",
        "mujoco.sysid compares simulated with measured motion, which does not apply to torque logs of a controlled "
        "arm: its parameters, bounds and optimiser are used with torques of `mj_inverse` as residuals, "
        f"after the filter of the judgement, for at most {MUJOCO_ITERATIONS} iterations from the robot file's values.",
        errors_table(results), "Who predicts best, in order:", verdicts(results),
    ]  # fmt: skip
    if seconds:
        parts += [
            "TX40, whole commands in turns (ours as a reader would type it, without `--out`):",
            speed_table(seconds),
        ]
    return "\n\n".join(part.strip() for part in parts)


def run(only: str = "", out: Path | None = None, rounds: int = 3) -> None:
    """Compare on all sets whose name contains a word."""
    results: list[PeerResult] = []
    for case in CASES:
        if only in case.name:
            found = results_of(case)
            print(errors_table(found), flush=True)
            results += found
    seconds = speed(rounds) if rounds and any(one.target.title.startswith("TX40") for one in results) else {}
    if seconds:
        print(speed_table(seconds))
    print(verdicts(results))
    if out is not None:
        write_section(out, "peers", section(results, seconds))
        print(f"written: {out}")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Compare with other programs on the real arms.")
    parser.add_argument("--out", type=Path, help="Markdown page; its section on peers is written anew")
    parser.add_argument("--only", default="", help="only sets whose name contains this word")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of the comparison of speed")
    options = parser.parse_args()
    run(options.only, options.out, options.rounds)


if __name__ == "__main__":
    main()
