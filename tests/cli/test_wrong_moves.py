"""Faults of a log through the command line: poor or fair as they deserve, exit code 2 for poor, and named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from from_benchmarks import benchmark_module
from steelyard.recording import Recording, write_recording
from steelyard.robot import load_robot
from steelyard.simulation import Experiment, Noise, recording_of, simulate
from steelyard.study import default_motion, default_noise

planted = benchmark_module("planted_faults")


SEEDS = 5
"""Of the tests with many seeds; ``python -m benchmarks.planted_faults`` takes ten, and an hour and a half."""


def cases(arms):
    return [(arm, fault) for arm in arms for fault in planted.FAULTS if planted.can_have(arm, fault)]


@pytest.mark.parametrize(
    ("arm", "fault"),
    [
        pytest.param(arm, fault, marks=[] if arm == "scara_2r" else pytest.mark.large)
        for arm, fault in cases(["scara_2r", "ur10e"])
    ],
)
def test_a_planted_fault_is_graded_and_named(arm, fault):
    found = planted.outcome(fault, arm, 0)
    assert found.observed, (found.grade, found.result.get("verdict", found.result))
    assert found.named, found.result["verdict"]["reasons"]
    poor = planted.FAULTS[fault].best == "poor" or found.grade == "poor"
    assert found.code == (1 if found.grade == "error" else 2 if poor else 0)


@pytest.mark.large
@pytest.mark.parametrize(("arm", "fault"), cases(planted.ARMS))
def test_planted_faults_are_seen_in_every_seed_and_named_in_four_of_five(arm, fault):
    outcomes = [planted.outcome(fault, arm, seed) for seed in range(SEEDS)]
    assert sum(one.observed for one in outcomes) == SEEDS
    assert sum(one.named for one in outcomes) >= 0.8 * SEEDS


def with_stribeck(arm: str, seed: int) -> Recording:
    """Return a log whose friction is half as large again near standstill, which no model here has."""
    robot = load_robot(arm)
    motion = default_motion(robot, seed)
    noise: dict[str, Any] = {
        key: Noise(value["kind"], tuple(value["std"])) for key, value in default_noise(robot, motion).items()
    }
    run = simulate(robot, motion, Experiment(plant="ideal", control_rate=200, record_rate=200, **noise), [seed])
    recording, qd = recording_of(run), run.qd[0]
    coulomb = np.array([[run.truth[f"Fcm{number + 1}"]] for number in range(len(qd))])
    knee = 0.1 * np.abs(qd).max(axis=1, keepdims=True)
    more = 0.5 * coulomb * np.exp(-((qd / knee) ** 2)) * np.sign(qd)
    channel = recording.torques[0]
    values = channel.values + (more if channel.gain is None else more / channel.gain[:, None])
    return replace(recording, torques=(replace(channel, values=values),), notes=())


def test_friction_that_the_model_lacks_is_a_caution_beside_the_parameters_it_bends(tmp_path):
    logs = [str(write_recording(with_stribeck("scara_2r", seed), tmp_path / f"{seed}.npz")) for seed in range(3)]
    code, result = planted.identified(["scara_2r", *logs[:2], "--validate", logs[2], "--plain"])
    assert code == 0
    assert result["verdict"]["questions"]["known"] == "fair"
    marked = {row["name"] for row in result["parameters"] if row["caution"] == "model lacks"}
    assert {"Fvm1", "Fcm1", "Fvm2", "Fcm2"} <= marked


def test_a_small_torque_of_which_nothing_is_explained_leaves_no_good_verdict(tmp_path):
    """Two per cent of the largest torque may be bias of a sensor: but a column of something else is not good."""
    arm, logs = load_robot("scara_2r"), []
    experiment = Experiment(record_rate=200, motor_noise=Noise("white", (0.02, 0.001)))
    for seed in range(3):
        recording = recording_of(simulate(arm, default_motion(arm, seed + 1), experiment, [seed]))
        channel = recording.torques[0]
        values = channel.values.copy()
        values[1] = 0.01 * np.abs(values[0]).max() * np.sin(11 * recording.time + seed)
        changed = replace(recording, torques=(replace(channel, values=values),), notes=())
        logs.append(str(write_recording(changed, tmp_path / f"{seed}.npz")))
    code, result = planted.identified(["scara_2r", *logs[:2], "--validate", logs[2]])
    row = next(one for one in result["verdict"]["criteria"] if one["name"] == "worst joint, relative error")
    assert (code, result["verdict"]["grade"], row["grade"]) == (0, "fair", "fair")
    assert row["value"] > 90
    assert any("joint_2 (motor)" in reason["text"] for reason in result["verdict"]["reasons"])
