"""Seeded random motions of every kind for bounds that must hold at any instant."""

from __future__ import annotations

import numpy as np

from steelyard.motion import Trajectory, fourier, quintic, trapezoidal, with_approach

KINDS = ("fourier", "quintic", "smooth", "trapezoidal", "approached")


def random_trajectory(kind: str, joints: tuple[str, ...], seed: int, size: float = 0.6) -> Trajectory:
    """Return a motion of some seconds, its positions of the given size [rad or m]."""
    rng = np.random.default_rng(seed)
    count = len(joints)
    if kind == "fourier":
        harmonics = int(rng.integers(1, 6))
        sin, cos = size * rng.normal(size=(2, count, harmonics)) / harmonics
        return fourier(size * rng.normal(size=count), sin, cos, rng.uniform(3, 12), joints)
    if kind == "approached":
        core = random_trajectory(("fourier", "quintic", "trapezoidal")[seed % 3], joints, seed, size)
        return with_approach(core, np.zeros(count), rng.uniform(1, 3), rng.uniform(1, 3))
    points = size * rng.normal(size=(count, int(rng.integers(2, 6))))
    points[-1, 1] = points[-1, 0]  # one joint stands still during a move
    durations = rng.uniform(0.5, 2.5, points.shape[1] - 1)
    if kind == "trapezoidal":
        return trapezoidal(points, durations, joints, cruise=float(rng.choice([0.0, 0.2])))
    return quintic(points, durations, joints, via="smooth" if kind == "smooth" else "rest")


def instants_near(
    trajectory: Trajectory, instant: float, edges: np.ndarray, reach: float = 1e-5, count: int = 501
) -> np.ndarray:
    """Return instants about one, inside the motion, and those of the edges that are close."""
    about = np.clip(instant + np.linspace(-reach, reach, count), 0.0, trajectory.duration)
    return np.concatenate([about, edges[np.abs(edges - instant) <= reach]])
