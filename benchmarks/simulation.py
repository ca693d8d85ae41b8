"""A thousand seeds of P1's experiment: 30 s of a two-joint arm, integrated at 10 kHz; and its filtered velocities."""

from __future__ import annotations

import time

import numpy as np

from steelyard.motion import quintic
from steelyard.robot import load_robot
from steelyard.signals import LowPass, apply_low_pass, central_difference, low_pass, propose_cutoff
from steelyard.simulation import Experiment, Noise, SimulatedRun, recording_of, simulate

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
    done = simulate(robot, motion, experiment, seeds=range(SEEDS), threads=2)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    steps = SEEDS * 30 * 10_000
    print(f"{SEEDS} seeds of the SCARA experiment (30 s, 10 kHz plant), two threads")
    print(
        f"  {wall:.1f} s wall, {cpu:.1f} s CPU  (wanted: 60 s), {steps / wall / 1e6:.1f} million plant steps a second"
    )
    _print_velocities(done)


def _print_velocities(done: SimulatedRun, seeds: int = 5) -> None:
    """Print the rms error of velocities from filtered encoder positions, by cut-off, mean over a few seeds."""
    proposed = propose_cutoff(recording_of(done).q, 100.0).cutoff
    print("  rms error of filtered velocities [rad/s], joints 1 and 2  (wanted: 0.005 and 0.015)")
    for cutoff in (20.0, 15.0, 12.0, 10.0, proposed):
        filters = {"encoder": low_pass(100.0, cutoff), "per pass": low_pass(100.0, cutoff, design="per_pass")}
        cases = {name: [recording_of(done, k).q for k in range(seeds)] for name in filters}
        filters["without encoder steps"], cases["without encoder steps"] = filters["encoder"], list(done.q[:seeds])
        reported = "; ".join(f"{name} {_errors(done, cases[name], filters[name])}" for name in filters)
        print(f"    {cutoff:4.1f} Hz{' (proposed)' if cutoff == proposed else ''}: {reported}")


def _errors(done: SimulatedRun, positions: list[np.ndarray], filter_: LowPass) -> str:
    errors = []
    for index, q in enumerate(positions):
        velocity = central_difference(apply_low_pass(filter_, q), 100.0)
        errors.append(np.sqrt(((velocity[:, 19:-19] - done.qd[index][:, 20:-20]) ** 2).mean(axis=1)))
    return " / ".join(f"{value:.4f}" for value in np.mean(errors, axis=0))
