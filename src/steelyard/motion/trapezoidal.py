"""Moves with a trapezoidal acceleration from point to point (P5.7)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from .checks import checked_durations, checked_joints, checked_points, number
from .moves import TrapezoidalMoves
from .piecewise import PiecewisePolynomial
from .profile import DEFAULT_RAMP, Profile, trapezoidal_profile


def trapezoidal(
    points: ArrayLike,
    durations: ArrayLike,
    joints: Iterable[str],
    *,
    ramp: float = DEFAULT_RAMP,
    cruise: float = 0.0,
) -> PiecewisePolynomial:
    """Return a motion from point to point, at rest at each, its acceleration a trapezoid up and one down.

    The jerk is bounded, velocity and acceleration are zero at each point, and all joints move in step: each is at the
    same part of its way at all times (:func:`~steelyard.motion.trapezoidal_profile`).

    Args:
        points: Points (n, K), K at least 2 [rad or m].
        durations: Duration of each move (K-1,) [s], or one number for all moves.
        joints: Names of the joints, one for each row.
        ramp: Part of a move's time that each of its four acceleration ramps takes.
        cruise: Part of a move's time at constant velocity.

    Raises:
        MotionError: If shapes, names or numbers do not fit.
    """
    names = checked_joints(joints)
    positions = checked_points(points, names)
    lengths = checked_durations(durations, positions.shape[1] - 1)
    parts = number(ramp, "ramp"), number(cruise, "cruise")
    profile, moves = trapezoidal_profile(*parts), TrapezoidalMoves(positions, lengths, *parts)
    return PiecewisePolynomial(names, *_sections(profile, positions, lengths), moves)


def _sections(profile: Profile, points: np.ndarray, durations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return breaks and coefficients of the profile stretched over each move."""
    ends = np.concatenate([[0.0], np.cumsum(durations)])
    moves = np.diff(ends)
    begins = ends[:-1, None] + moves[:, None] * profile.breaks[:-1]
    degree = len(profile.coefficients) - 1
    powers = np.arange(degree, -1, -1)[:, None]
    scaled = profile.coefficients[:, None, :] / (moves**powers)[:, :, None]  # (d+1, K-1, sections)
    coefficients = scaled[..., None] * np.diff(points).T[None, :, None, :]
    coefficients[-1] += points[:, :-1].T[:, None, :]
    breaks = np.append(begins.ravel(), ends[-1])
    return breaks, coefficients.reshape(degree + 1, -1, len(points))
