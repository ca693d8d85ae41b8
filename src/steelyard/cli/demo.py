"""``steelyard demo``: the whole chain on the built-in KUKA LWR4+, from motion to verdict."""

from __future__ import annotations

import json as json_format
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..files import write_aside
from ..identify import Identification, Settings, identify_arm, write_run
from ..motion import limits_of, random_points, trapezoidal, trapezoidal_profile, write_trajectory
from ..observe import Preparation
from ..recording import Recording, check_recording, write_recording
from ..robot import Robot, load_robot
from ..run import json_text
from ..simulate import Experiment, Noise, recording_of, simulate
from .identify import CODE, Timing
from .identify_table import print_identification
from .output import Screen

ROBOT, PAYLOAD = "kuka_lwr4", "P5"
MOVES, SECONDS = 22, 2.0
CUTOFF, DECIMATION = 10.0, 100
# A tenth of the noise behind the reproduction of P5: a quiet arm.
MOTOR_NOISE = Noise("band_limited", (1.86, 3.02, 1.39, 1.62, 0.928, 0.696, 0.696), 50.0)
JOINT_NOISE = Noise("band_limited", (0.57, 1.14, 0.456, 0.57, 0.171, 0.171, 0.0684), 50.0)
RUNS = (("without", None, 1), ("with", PAYLOAD, 2), ("unseen", PAYLOAD, 3))


def run(out: Path, json: bool) -> int:
    """Rehearse three recordings, identify from two, judge by the third, print and save."""
    timing = Timing()
    found, extra = rehearsed_identification(out, timing)
    asked = {"robot": ROBOT, "torque": "both", "cutoff": CUTOFF, "decimation": DECIMATION}
    content = write_run(out, "demo", asked, {}, found, {"left_out": [], **extra})
    write_aside(out / "timing.json", json_format.dumps(timing.seconds, indent=2) + "\n")
    if json:
        print(json_text("demo", content))
    else:
        _print(found, extra["truth"], out)
    return CODE[found.verdict.grade]


def rehearsed_identification(out: Path, timing: Timing) -> tuple[Identification, dict[str, Any]]:
    """Return an identification from rehearsed recordings, with the truth behind them and what the checks found."""
    robot = load_robot(ROBOT)
    recordings, true = _rehearse(robot, out, timing)
    findings = [finding.text for recording in recordings for finding in check_recording(robot, recording)]
    settings = Settings(
        measured="both", preparation=Preparation(cutoff=CUTOFF, decimation=DECIMATION), threads=os.cpu_count() or 1
    )
    found = identify_arm(robot, recordings[:2], recordings[2:], settings, stage=timing.stage)
    timing.finish()
    return found, {"truth": _against_truth(true, found), "findings": findings}


def _print(found: Identification, truth: dict[str, Any], out: Path) -> None:
    print_identification(found, [], out)
    screen = Screen()
    screen.line(
        f"against the simulated truth: {truth['within_95']} of {truth['parameters']} intervals of 95 % hold it; the "
        f"payload weighs {truth['payload_mass']:.4f} kg"
    )
    screen.line(
        f"motions and recordings are beside it in {out}; try: steelyard "
        f"identify {ROBOT} {out / 'without.npz'} {out / 'with.npz'} --validate {out / 'unseen.npz'}"
    )


def _rehearse(robot: Robot, out: Path, timing: Timing) -> tuple[list[Recording], Mapping[str, float]]:
    """Simulate the runs, save motions and recordings, and return these with the truth behind them."""
    joints = [body.joint.name for body in robot.actuated]
    recordings: list[Recording] = []
    truth: Mapping[str, float] = {}
    for name, payload, seed in RUNS:
        progress = timing.stage(f"simulating {name}")
        rng = np.random.default_rng(seed)
        points = random_points(limits_of(robot), MOVES - 1, SECONDS, trapezoidal_profile(), rng)
        motion = trapezoidal(points, SECONDS, joints)
        experiment = Experiment(payload=payload, encoder_quantum=1e-5, motor_noise=MOTOR_NOISE, joint_noise=JOINT_NOISE)
        done = simulate(robot, motion, experiment, [seed], threads=os.cpu_count() or 1, progress=progress)
        recordings.append(recording_of(done))
        truth = done.truth
        out.mkdir(parents=True, exist_ok=True)
        write_trajectory(motion, out / f"{name}.toml")
        write_recording(recordings[-1], out / f"{name}.npz")
    return recordings, truth


def _against_truth(truth: Mapping[str, float], found: Identification) -> dict[str, Any]:
    """Return how many intervals hold the simulated truth."""
    base, estimate = found.equations.base, found.estimate
    true = base.regrouping @ np.array([truth[name] for name in found.equations.model.names])
    by_column = {one.kept: value for one, value in zip(base.base, true, strict=True)}
    error = np.abs(estimate.values - [by_column[name] for name in estimate.columns])
    return {
        "within_95": int(np.sum(error <= estimate.half_width())),
        "parameters": len(estimate.columns),
        "payload_mass": truth["ML"],
    }
