"""Random motions of every kind, by seed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from steelyard.motion import Trajectory, fourier, quintic, trapezoidal, with_approach

JOINTS = ("base", "shoulder", "elbow")


def _rest(rng: np.random.Generator) -> Trajectory:
    moves = int(rng.integers(1, 6))
    return quintic(rng.normal(size=(3, moves + 1)), rng.uniform(0.2, 3, moves), JOINTS)


def _smooth(rng: np.random.Generator) -> Trajectory:
    moves = int(rng.integers(1, 6))
    return quintic(rng.normal(size=(3, moves + 1)), rng.uniform(0.2, 3, moves), JOINTS, via="smooth")


def _given(rng: np.random.Generator) -> Trajectory:
    moves = int(rng.integers(1, 6))
    q, qd, qdd = rng.normal(size=(3, 3, moves + 1))
    return quintic(q, rng.uniform(0.2, 3, moves), JOINTS, velocities=2 * qd, accelerations=5 * qdd)


def _trapezoidal(rng: np.random.Generator) -> Trajectory:
    moves = int(rng.integers(1, 6))
    cruise = float(rng.choice([0.0, rng.uniform(0, 0.9)]))
    ramp = (1 - cruise) / 4 * float(rng.choice([1.0, rng.uniform(0.05, 1)]))
    return trapezoidal(rng.normal(size=(3, moves + 1)), rng.uniform(0.2, 3, moves), JOINTS, ramp=ramp, cruise=cruise)


def _fourier(rng: np.random.Generator) -> Trajectory:
    harmonics = int(rng.integers(1, 9))
    sin, cos = rng.normal(size=(2, 3, harmonics)) * rng.choice([0.0, 1e-12, 1e-3, 1.0, 1.0, 1.0], (2, 3, harmonics))
    return fourier(rng.normal(size=3), sin, cos, rng.uniform(0.5, 30), JOINTS, periods=int(rng.integers(1, 4)))


def _approached(rng: np.random.Generator) -> Trajectory:
    core = [_given, _fourier, _trapezoidal][rng.integers(3)](rng)
    start, end = rng.normal(size=(2, 3))
    return with_approach(core, start, rng.uniform(0.5, 3), rng.uniform(0.5, 3), end_posture=end)


MAKERS = {
    "rest": _rest,
    "smooth": _smooth,
    "given": _given,
    "trapezoidal": _trapezoidal,
    "fourier": _fourier,
    "approached": _approached,
}


@pytest.fixture(scope="session", params=MAKERS)
def make_motion(request) -> Callable[[int], Trajectory]:
    """A function from a seed to a motion of one kind; the tests run for every kind."""
    return lambda seed: MAKERS[request.param](np.random.default_rng(seed))
