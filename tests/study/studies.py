"""Small studies of P1's arm, made once in a test run."""

from __future__ import annotations

from typing import Any

import numpy as np

from steelyard.motion import FourierSeries, Trajectory, fourier, quintic
from steelyard.study import StudyConfiguration, study_configuration

JOINTS = ["joint_1", "joint_2"]
WHITE = {"motor_noise": {"kind": "white", "std": [0.5, 0.02]}}
DISTURBED = {"disturbance": {"kind": "band_limited", "std": [0.5, 0.02], "band": 20.0}}
FIT = {"cutoff": 20.0, "decimation": 5, "standstill": 0.0}
UNFILTERED = {"mode": "none", "decimation": 1, "trim": 0, "standstill": 0.0}


def moves(seconds: int = 5) -> Trajectory:
    """Return short moves between random points."""
    points = np.zeros((2, seconds + 1))
    points[:, 1:-1] = np.random.default_rng(0).uniform(-1, 1, (2, seconds - 1)) * [[0.45], [2.6]]
    return quintic(points, 1.0, JOINTS)


def waves(harmonics: int = 3) -> FourierSeries:
    """Return a periodic motion."""
    rng = np.random.default_rng(1)
    sin, cos = rng.uniform(-0.5, 0.5, (2, 2, harmonics))
    return fourier([0.0, 0.0], sin, cos, 4.0, JOINTS)


def scara(
    simulate: dict[str, Any] | None = None, identify: dict[str, Any] | None = None, motion: Trajectory | None = None
) -> StudyConfiguration:
    """Return P1's arm at 100 Hz; white torque noise and P1's filter by default."""
    settings = {"record_rate": 100.0, "plant": "ideal", **(WHITE if simulate is None else simulate)}
    return study_configuration("scara_2r", motion or moves(), settings, FIT if identify is None else identify)
