"""Fifth-order polynomials through via points (P1.6)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import make_interp_spline

from ..errors import MotionError, nearest_match
from .checks import checked_durations, checked_joints, checked_points, table_values
from .moves import QuinticMoves
from .piecewise import PiecewisePolynomial

AT_REST = [(1, 0.0), (2, 0.0)]


def quintic(
    points: ArrayLike,
    durations: ArrayLike,
    joints: Iterable[str],
    *,
    via: Literal["rest", "smooth"] = "rest",
    velocities: ArrayLike | None = None,
    accelerations: ArrayLike | None = None,
) -> PiecewisePolynomial:
    """Return a motion through via points, a fifth-order polynomial on each move.

    Each polynomial is fixed by position, velocity and acceleration at its two ends, so all three are continuous.

    Args:
        points: Via points (n, K), K at least 2 [rad or m].
        durations: Duration of each move (K-1,) [s], or one number for all moves.
        joints: Names of the joints, one for each row.
        via: ``rest``: velocity and acceleration are zero at each via point. ``smooth``: zero only at the two ends; in
            between the motion passes with jerk and its derivative continuous too. It may swing beyond the points.
        velocities: Velocities at the via points (n, K), the two ends included, instead of ``via``.
        accelerations: Accelerations at the via points (n, K); zero if only velocities are given.

    Raises:
        MotionError: If shapes, names or numbers do not fit.
    """
    names = checked_joints(joints)
    positions = checked_points(points, names)
    lengths = checked_durations(durations, positions.shape[1] - 1)
    breaks = np.concatenate([[0.0], np.cumsum(lengths)])
    if via not in ("rest", "smooth"):
        raise MotionError(f"via is {via!r}; allowed: rest, smooth{nearest_match(str(via), ('rest', 'smooth'))}")
    if velocities is None and accelerations is None:
        qd, qdd = _smooth_states(breaks, positions) if via == "smooth" else (np.zeros_like(positions),) * 2
        moves = QuinticMoves(positions, lengths, qd, qdd, via)
    elif via == "smooth":
        raise MotionError("via is 'smooth' and velocities or accelerations are given too; keep one of the two")
    else:
        qd, qdd = (
            np.zeros_like(positions) if given is None else table_values(given, names, what, positions.shape[1])
            for given, what in ((velocities, "velocities"), (accelerations, "accelerations"))
        )
        moves = QuinticMoves(positions, lengths, qd, qdd, "given")
    return PiecewisePolynomial(names, breaks, _coefficients(np.diff(breaks), positions, qd, qdd), moves)


def _smooth_states(breaks: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return velocities and accelerations (n, K) of the fifth-order spline at rest at both ends.

    Joint by joint: the last bits of a joint then do not depend on the order of the joints.
    """
    splines = [make_interp_spline(breaks, row, k=5, bc_type=(AT_REST, AT_REST)) for row in points]
    states = np.array([[spline(breaks, order) for spline in splines] for order in (1, 2)])
    states[:, :, [0, -1]] = 0.0  # the spline's own rounding is not rest
    return states[0], states[1]


def _coefficients(h: np.ndarray, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    """Return the coefficients (6, K-1, n) of the polynomials with given ends.

    In closed form, not through scipy's Bernstein basis: so each move begins with exactly the given state.
    """
    step = np.diff(q)
    v0, v1 = qd[:, :-1] * h, qd[:, 1:] * h
    a0, a1 = qdd[:, :-1] * h**2, qdd[:, 1:] * h**2
    rows = (
        (6 * step - 3 * (v0 + v1) - (a0 - a1) / 2) / h**5,
        (-15 * step + 8 * v0 + 7 * v1 + (3 * a0 - 2 * a1) / 2) / h**4,
        (10 * step - 6 * v0 - 4 * v1 - (3 * a0 - a1) / 2) / h**3,
        qdd[:, :-1] / 2,
        qd[:, :-1],
        q[:, :-1],
    )
    return np.array(rows).transpose(0, 2, 1)
