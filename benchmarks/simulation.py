"""A thousand seeds of P1's experiment: 30 s of a two-joint arm, integrated at 10 kHz."""

from __future__ import annotations

import time

import numpy as np

from steelyard.motion import quintic
from steelyard.robot import load_robot
from steelyard.simulate import Experiment, Noise, simulate

SEEDS = 1000


def run() -> None:
    """Print wall and CPU time on two threads, and the rate of plant steps."""
    robot = load_robot("scara_2r")
    points = np.zeros((2, 31))
    points[:, 1:-1] = np.random.default_rng(0).uniform(-1, 1, (2, 29)) * [[0.45], [2.6]]
    motion = quintic(points, 1.0, ["joint_1", "joint_2"])
    experiment = Experiment(
        control="pd",
        kp=(400, 12),
        kd=(70, 1.6),
        plant_rate=10_000,
        sign_width=1e-3,
        record_rate=100,
        encoder_quantum=2 * np.pi / 10_000,
        disturbance=Noise("band_limited", (2.0, 0.1), 20.0),
    )
    wall, cpu = time.perf_counter(), time.process_time()
    simulate(robot, motion, experiment, seeds=range(SEEDS), threads=2)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    steps = SEEDS * 30 * 10_000
    print(f"{SEEDS} seeds of the SCARA experiment (30 s, 10 kHz plant), two threads")
    print(
        f"  {wall:.1f} s wall, {cpu:.1f} s CPU  (wanted: 60 s), {steps / wall / 1e6:.1f} million plant steps a second"
    )
