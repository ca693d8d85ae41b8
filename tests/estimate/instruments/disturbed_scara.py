"""P1's arm as evidence for estimators that simulate it."""

from __future__ import annotations

from functools import cache

import numpy as np

from steelyard.estimate import Evidence, weighted, with_correlated_noise
from steelyard.model import build_model
from steelyard.motion import quintic
from steelyard.observe import Equations, Preparation, equations_of, reduce_rows, resolve_preparation, row_source
from steelyard.observe.reading import AnyRecording
from steelyard.robot import load_robot
from steelyard.simulation import Experiment, Noise, simulate

GAINS = {"control": "pd", "kp": (400.0, 12.0), "kd": (70.0, 1.6)}
JOINTS = ("joint_1", "joint_2")


@cache
def equations() -> Equations:
    return equations_of(build_model(load_robot("scara_2r")))


def true_values(run) -> dict[str, float]:
    """Return the true base parameters of a run by column."""
    standard = np.array([run.truth[name] for name in equations().model.names])
    return dict(zip(equations().names, (equations().base.regrouping @ standard).tolist(), strict=True))


def evidence_of(recording: AnyRecording, preparation: Preparation) -> Evidence:
    sources = (row_source(recording, equations(), resolve_preparation(preparation, [recording]), "run"),)
    plain = weighted(reduce_rows(sources), equations().names)
    return Evidence(sources, equations(), plain, with_correlated_noise(sources, plain).noise)


def moves(count: int, seconds: float = 1.0):
    points = np.zeros((2, count + 1))
    points[:, 1:-1] = np.random.default_rng(0).uniform(-1, 1, (2, count - 1)) * [[0.45], [2.6]]
    return quintic(points, seconds, JOINTS)


@cache
def quiet_run(seeds: int, count: int = 8):
    """Return runs in which nothing correlates: the motion is exact, torques have white noise."""
    experiment = Experiment(record_rate=100, control_rate=200, plant="ideal", motor_noise=Noise("white", (2.0, 0.1)))
    return simulate(load_robot("scara_2r"), moves(count), experiment, range(seeds))
