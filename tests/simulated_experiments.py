"""Short simulated recordings of catalogue arms, made once in a test run: for commands, documentation and pipelines."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from steelyard.motion import limits_of, quintic, quintic_profile, random_points, trapezoidal, trapezoidal_profile
from steelyard.recording import Recording
from steelyard.robot import load_robot
from steelyard.simulation import Experiment, Noise, SimulatedRun, recording_of, simulate


@lru_cache(maxsize=8)
def scara(seed: int, seconds: int = 20) -> Recording:
    """Return P1's arm on random moves, 100 Hz, with noise on the motor torques."""
    robot = load_robot("scara_2r")
    rng = np.random.default_rng(seed)
    points = np.zeros((2, seconds + 1))
    points[:, 1:-1] = rng.uniform(-1, 1, (2, seconds - 1)) * [[0.45], [2.6]]
    experiment = Experiment(
        control="pd", kp=(400, 12), kd=(70, 1.6), record_rate=100, encoder_quantum=1e-5,
        motor_noise=Noise("white", (0.5, 0.02)),
    )  # fmt: skip
    return recording_of(simulate(robot, quintic(points, 1.0, ["joint_1", "joint_2"]), experiment, [seed]))


@lru_cache(maxsize=8)
def lwr4(seed: int, payload: str | None = None, moves: int = 10, shape: str = "trapezoidal") -> Recording:
    """Return a KUKA LWR4+ on a few moves, 200 Hz, both torques with little noise; it follows its motion exactly."""
    robot = load_robot("kuka_lwr4")
    joints = [body.joint.name for body in robot.actuated]
    profile, path = (trapezoidal_profile(), trapezoidal) if shape == "trapezoidal" else (quintic_profile(), quintic)
    points = random_points(limits_of(robot), moves - 1, 2.0, profile, np.random.default_rng(seed))
    experiment = Experiment(
        plant="ideal", control_rate=200, payload=payload, record_rate=200, encoder_quantum=1e-5,
        motor_noise=Noise("white", (0.8, 1.2, 0.6, 0.7, 0.4, 0.3, 0.3)),
        joint_noise=Noise("white", (0.3, 0.5, 0.2, 0.3, 0.08, 0.08, 0.03)),
    )  # fmt: skip
    return recording_of(simulate(robot, path(points, 2.0, joints), experiment, [seed]))


@lru_cache(maxsize=8)
def ur10e(seed: int, gravity: tuple[float, float, float] | None = None) -> Recording:
    """Return a UR10e on ten moves, 100 Hz, with little noise on the motor currents; it follows its motion exactly."""
    robot = load_robot("ur10e") if gravity is None else load_robot("ur10e").with_gravity(gravity)
    joints = [body.joint.name for body in robot.actuated]
    points = random_points(limits_of(robot), 9, 2.0, quintic_profile(), np.random.default_rng(seed))
    experiment = Experiment(
        plant="ideal", control_rate=100, record_rate=100, encoder_quantum=1e-5,
        motor_noise=Noise("white", (1.0, 1.0, 0.5, 0.2, 0.2, 0.2)),
    )  # fmt: skip
    return recording_of(simulate(robot, quintic(points, 2.0, joints), experiment, [seed]))


@lru_cache(maxsize=8)
def short_log(name: str, seed: int, rate: float = 200) -> tuple[SimulatedRun, Recording]:
    """Return a short run of any arm, which follows its motion exactly, and its recording at a rate [Hz].

    Noise on the torques is a hundredth of them.
    """
    robot = load_robot(name)
    joints = [body.joint.name for body in robot.actuated]
    points = random_points(limits_of(robot), 8, 2.0, quintic_profile(), np.random.default_rng(seed))
    experiment = Experiment(plant="ideal", control_rate=rate, record_rate=rate, encoder_quantum=1e-6)
    run = simulate(robot, quintic(points, 2.0, joints), experiment, [seed])
    clean, rng = recording_of(run), np.random.default_rng(seed)
    noisy = []
    for channel in clean.torques:
        size = 0.01 * np.sqrt((channel.values**2).mean(axis=1, keepdims=True))
        noisy.append(replace(channel, values=channel.values + size * rng.standard_normal(channel.values.shape)))
    return run, replace(clean, torques=tuple(noisy))
