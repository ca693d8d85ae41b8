"""Every estimator before the court, in the setting it is made for and in those it is not: what docs/how-to-choose says.

All on the SCARA of P1. ``python -m benchmarks.estimators [--seeds 100] [--setting NAME ...]``
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from steelyard.cli.montecarlo import print_study
from steelyard.motion import Trajectory
from steelyard.papers.p1_motion import scara_moves
from steelyard.robot import load_robot
from steelyard.study import StudyResult, StudySettings, default_motion, montecarlo, study_configuration, study_to_json

ROBOT = "scara_2r"
WHITE = {"kind": "white", "std": [0.5, 0.02]}
UNFILTERED = {"mode": "none", "decimation": 1, "trim": 20}
P1 = {
    "control": "pd", "kp": [400.0, 12.0], "kd": [70.0, 1.6], "plant_rate": 10_000.0, "sign_width": 1e-3,
    "record_rate": 100.0, "encoder_quantum": 2 * np.pi / 10_000,
    "disturbance": {"kind": "band_limited", "std": [2.0, 0.10], "band": 20.0},
}  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """An experiment and the methods that are tried on it.

    Attributes:
        what: What it shows, a sentence.
        methods: The methods.
        simulate: The experiment.
        identify: Filters and settings of methods.
        moves: Whether the motion is P1's moves of a second, else the arm's own Fourier motion.
    """

    what: str
    methods: tuple[str, ...]
    simulate: dict[str, Any]
    identify: dict[str, Any] = field(default_factory=dict)
    moves: bool = False


SETTINGS = {
    "white": Setting(
        "noise on torques alone, white; positions exact, nothing filtered",
        ("ols", "wls", "gls", "rls", "ekf", "ml", "iv", "didim"),
        {"plant": "ideal", "record_rate": 100.0, "motor_noise": WHITE},
        {**UNFILTERED, "ml": {"position_noise": 0.0}},
    ),
    "usual": Setting(
        "the same with the product's own filter and decimation",
        ("ols", "wls", "gls", "rls", "ekf", "ml", "iv", "didim"),
        {"plant": "ideal", "record_rate": 100.0, "motor_noise": WHITE},
    ),
    "correlated": Setting(
        "noise on torques that persists for 50 ms",
        ("ols", "wls", "gls", "rls", "ekf", "ml", "iv"),
        {
            "plant": "ideal",
            "record_rate": 100.0,
            "motor_noise": {"kind": "correlated", "std": [0.5, 0.02], "band": 3.0},
        },
    ),
    "positions": Setting(
        "noise on positions too, 2e-3 rad",
        ("wls", "gls", "ekf", "ml", "iv", "didim"),
        {
            "plant": "ideal",
            "record_rate": 100.0,
            "motor_noise": WHITE,
            "position_noise": {"kind": "white", "std": [2e-3, 2e-3]},
        },
    ),
    "process": Setting(
        "a small white torque that nobody measures drives the arm; 1 kHz, no noise on torques",
        ("wls", "gls", "ekf", "iv"),
        {"record_rate": 1000.0, "encoder_quantum": 1e-5, "disturbance": {"kind": "white", "std": [0.5, 0.02]}},
    ),
    "strong process": Setting(
        "the same with a torque twenty times as large",
        ("wls", "gls", "ekf", "iv"),
        {"record_rate": 1000.0, "encoder_quantum": 1e-5, "disturbance": {"kind": "white", "std": [10.0, 0.4]}},
    ),
    "closed loop": Setting(
        "P1: disturbed in closed loop, coarse encoder, nothing filtered",
        ("wls", "gls", "ekf", "iv", "didim"),
        P1,
        {**UNFILTERED, "standstill": 0.0},
        moves=True,
    ),
    "closed loop, filtered": Setting(
        "the same with P1's filter and decimation",
        ("wls", "gls", "rls", "ekf", "iv", "didim"),
        P1,
        {"cutoff": 20.0, "decimation": 10, "trim": 20, "standstill": 0.0},
        moves=True,
    ),
}


def motion_of(setting: Setting) -> Trajectory:
    """Return the motion of a setting."""
    return scara_moves() if setting.moves else default_motion(load_robot(ROBOT))


def court_of(setting: Setting, seeds: int, processes: int = 1, methods: Sequence[str] | None = None) -> StudyResult:
    """Return the court of a setting."""
    given = study_configuration(ROBOT, motion_of(setting), setting.simulate, setting.identify)
    return montecarlo(given, StudySettings(tuple(methods or setting.methods), seeds), processes=processes)


def run(seeds: int = 100, names: Sequence[str] = tuple(SETTINGS)) -> None:
    """Print the court of every setting."""
    for name in names:
        court = court_of(SETTINGS[name], seeds, os.cpu_count() or 1)
        print(f"\n=== {name}: {SETTINGS[name].what}")
        content = {**study_to_json(court), "robot": ROBOT, "duration": motion_of(SETTINGS[name]).duration}
        print_study(court, content, None, parameters=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--setting", nargs="*", default=list(SETTINGS))
    requested = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    run(requested.seeds, requested.setting)
