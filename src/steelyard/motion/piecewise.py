"""Piecewise polynomial motions through via points: quintic polynomials (P1.6) and trapezoidal accelerations (P5.7).

A motion holds the via points it was made from, so that it can be written to a file and edited. A :class:`Profile` is
the normalised shape of a move from rest to rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import PPoly, make_interp_spline

from ..configuration import checked, choice
from ..errors import MotionError
from ..text import short_repr
from .checks import POSITIVE, checked_durations, checked_joints, checked_points, checked_scalar, joint_array
from .trajectory import Derivatives, MotionExtrema, Trajectory, extrema_from_candidates, freeze

Via = Literal["rest", "smooth", "given"]


@dataclass(frozen=True, eq=False)
class QuinticMoves:
    """Via points joined by fifth-order polynomials.

    Attributes:
        points: Via points (n, K) [rad or m].
        durations: Duration of each move (K-1,) [s].
        velocities: Velocities at the via points (n, K).
        accelerations: Accelerations at the via points (n, K).
        via: Where velocities and accelerations come from: all zero, of the smoothest curve, or given.

    Example:
        >>> steelyard.quintic([[0.0, 0.4, 0.0]], 1.0, ["joint_1"]).moves.via
        'rest'
    """

    __repr__ = short_repr

    points: np.ndarray
    durations: np.ndarray
    velocities: np.ndarray
    accelerations: np.ndarray
    via: Via

    def __post_init__(self) -> None:
        freeze(self, "points", "durations", "velocities", "accelerations")

    def with_rows(self, rows: list[int]) -> QuinticMoves:
        """Return the same moves with the joints in another order."""
        return replace(
            self,
            points=self.points[rows],
            velocities=self.velocities[rows],
            accelerations=self.accelerations[rows],
        )


@dataclass(frozen=True, eq=False)
class TrapezoidalMoves:
    """Via points joined by moves with a trapezoidal acceleration, at rest at each point.

    Attributes:
        points: Via points (n, K) [rad or m].
        durations: Duration of each move (K-1,) [s].
        ramp: Part of a move that each of its four acceleration ramps takes.
        cruise: Part of a move at constant velocity.

    Example:
        >>> steelyard.trapezoidal([[0.0, 0.4]], 2.0, ["joint_1"]).moves.ramp
        0.125
    """

    __repr__ = short_repr

    points: np.ndarray
    durations: np.ndarray
    ramp: float
    cruise: float

    def __post_init__(self) -> None:
        freeze(self, "points", "durations")

    def with_rows(self, rows: list[int]) -> TrapezoidalMoves:
        """Return the same moves with the joints in another order."""
        return replace(self, points=self.points[rows])


Moves = QuinticMoves | TrapezoidalMoves


@final
@dataclass(frozen=True, eq=False)
class PiecewisePolynomial(Trajectory):
    """A polynomial of time on each of m sections, position, velocity and acceleration continuous.

    On section s: ``q(t) = sum_k coefficients[k, s] (t - breaks[s])^(d - k)``, d the degree (scipy's ``PPoly``).

    Attributes:
        joints: Names of the joints.
        breaks: Where sections begin, and the end (m+1,) [s]; the first is 0.
        coefficients: Coefficients (d+1, m, n), highest power first.
        moves: The via points it was made from.

    Example:
        >>> motion = steelyard.quintic([[0.0, 0.4, 0.0]], 1.0, ["joint_1"])
        >>> motion.breaks.tolist(), motion.coefficients.shape
        ([0.0, 1.0, 2.0], (6, 2, 1))
    """

    __repr__ = short_repr

    breaks: np.ndarray
    coefficients: np.ndarray
    moves: Moves

    def __post_init__(self) -> None:
        freeze(self, "breaks", "coefficients")

    @property
    def duration(self) -> float:
        """How long the motion takes [s]."""
        return float(self.breaks[-1])

    def derivatives(self, time: np.ndarray) -> Derivatives:
        """Return position, velocity, acceleration and jerk (n, N) at times (N,) in the motion."""
        polynomial = self._polynomial()
        q, qd, qdd, qddd = (np.ascontiguousarray(polynomial(time, order).T) for order in range(4))
        return q, qd, qdd, qddd

    def extrema(self) -> MotionExtrema:
        """Return the exact extremes: each lies at a root of the next derivative or at an end of a section.

        At the ends of a section both sides count: the jerk may jump there.
        """
        position = self._polynomial()
        candidates = [
            [_candidates(position.derivative(order), joint) for joint in range(len(self.joints))] for order in range(4)
        ]
        return extrema_from_candidates(candidates, self.joints)

    def _with_rows(self, joints: tuple[str, ...], rows: list[int]) -> PiecewisePolynomial:
        return PiecewisePolynomial(joints, self.breaks, self.coefficients[:, :, rows], self.moves.with_rows(rows))

    def _polynomial(self) -> PPoly:
        return PPoly(self.coefficients, self.breaks, extrapolate=False)


def _candidates(polynomials: PPoly, joint: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the times at which a joint's polynomial can be extreme, and its values there."""
    polynomial = PPoly(np.ascontiguousarray(polynomials.c[:, :, joint]), polynomials.x, extrapolate=False)
    stationary = polynomial.derivative().roots(discontinuity=False)
    stationary = stationary[np.isfinite(stationary)]  # scipy marks a section that is constant by nan; its ends are in
    begins, ends = polynomials.x[:-1], polynomials.x[1:]
    at_ends = np.zeros(len(ends))
    for coefficient in polynomial.c:
        at_ends = at_ends * (ends - begins) + coefficient
    times = np.concatenate([begins, ends, stationary])
    return times, np.concatenate([polynomial.c[-1], at_ends, polynomial(stationary)])


DEFAULT_RAMP = 0.125
"""Part of a move that each of its four acceleration ramps takes: half of the time at full acceleration."""


@dataclass(frozen=True, eq=False)
class Profile:
    """A unit move s(x): s(0) = 0, s(1) = 1, at rest at both ends. A joint moves as ``q0 + (q1 - q0) s(t / T)``.

    Attributes:
        breaks: Where sections begin, and the end (m+1,); from 0 to 1.
        coefficients: Coefficients (d+1, m), highest power first.
        velocity: Largest s'; a move's largest velocity is this times ``|q1 - q0| / T``.
        acceleration: Largest s''; a move's largest acceleration is this times ``|q1 - q0| / T^2``.
        jerk: Largest s'''; a move's largest jerk is this times ``|q1 - q0| / T^3``.

    Example:
        >>> from steelyard.motion import quintic_profile
        >>> round(quintic_profile().jerk, 3)
        60.0
    """

    breaks: np.ndarray
    coefficients: np.ndarray
    velocity: float
    acceleration: float
    jerk: float

    def __post_init__(self) -> None:
        freeze(self, "breaks", "coefficients")


@lru_cache(maxsize=1)
def quintic_profile() -> Profile:
    """Return ``s = 10 x^3 - 15 x^4 + 6 x^5``: velocity and acceleration zero at both ends.

    Its peaks are ``s' = 15/8`` at 1/2, ``s'' = 10/sqrt(3)`` at ``1/2 - 1/sqrt(12)`` and ``s''' = 60`` at the ends.

    Example:
        >>> from steelyard.motion import quintic_profile
        >>> quintic_profile().velocity
        1.875
    """
    coefficients = np.array([[6.0], [-15.0], [10.0], [0.0], [0.0], [0.0]])
    return Profile(np.array([0.0, 1.0]), coefficients, 15 / 8, 10 / np.sqrt(3.0), 60.0)


@lru_cache(maxsize=32)
def trapezoidal_profile(ramp: float = DEFAULT_RAMP, cruise: float = 0.0) -> Profile:
    """Return the move whose acceleration is a trapezoid up, then one down.

    With the ramp r, the cruise c and the hold ``h = (1 - c - 4 r) / 2`` as parts of the move's time, the acceleration
    rises over r, holds over h, falls over r, is zero over c, and the same with the other sign. Its peaks are
    ``s' = 2 / (1 + c)``, ``s'' = s' / (r + h)`` and ``s''' = s'' / r``.

    Args:
        ramp: Part of the time of each of the four ramps; above 0, at most ``(1 - cruise) / 4`` (no hold).
        cruise: Part of the time at constant velocity; from 0, below 1.

    Example:
        >>> from steelyard.motion import trapezoidal_profile
        >>> trapezoidal_profile().velocity
        2.0
    """
    checked_scalar(ramp, "ramp", POSITIVE)
    if not 0 <= checked_scalar(cruise, "cruise") < 1:
        raise MotionError(f"cruise is {cruise:g}; allowed is from 0 to below 1, a part of the move's time")
    hold = (1.0 - cruise - 4.0 * ramp) / 2
    if hold < -1e-12:
        raise MotionError(
            f"ramp is {ramp:g} with cruise {cruise:g}; allowed is at most (1 - cruise) / 4 = {(1 - cruise) / 4:g}"
        )
    velocity = 2.0 / (1.0 + cruise)
    acceleration = velocity / (ramp + max(hold, 0.0))
    jerk = acceleration / ramp
    lengths = np.array([ramp, hold, ramp, cruise, ramp, hold, ramp])
    jerks = np.array([jerk, 0.0, -jerk, 0.0, -jerk, 0.0, jerk])
    there = lengths > 1e-12
    breaks = np.concatenate([[0.0], np.cumsum(lengths[there])])
    breaks[-1] = 1.0
    unit = PPoly(jerks[there][None], breaks).antiderivative(3)
    return Profile(breaks, unit.c, velocity, acceleration, jerk)


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

    Example:
        >>> motion = steelyard.quintic([[0.0, 0.4, 0.0]], 1.0, ["joint_1"])
        >>> motion.duration, round(float(motion.extrema().velocity.value[0]), 3)
        (2.0, 0.75)
    """
    names = checked_joints(joints)
    positions = checked_points(points, names)
    lengths = checked_durations(durations, positions.shape[1] - 1)
    breaks = np.concatenate([[0.0], np.cumsum(lengths)])
    checked(via, choice("rest", "smooth"), "via", MotionError)
    if velocities is None and accelerations is None:
        qd, qdd = _smooth_states(breaks, positions) if via == "smooth" else (np.zeros_like(positions),) * 2
        moves = QuinticMoves(positions, lengths, qd, qdd, via)
    elif via == "smooth":
        raise MotionError("via is 'smooth' and velocities or accelerations are given too; keep one of the two")
    else:
        qd, qdd = (
            np.zeros_like(positions) if given is None else joint_array(given, names, what, positions.shape[1])
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

    Example:
        >>> motion = steelyard.trapezoidal([[0.0, 0.4]], 2.0, ["joint_1"])
        >>> round(float(motion.extrema().velocity.value[0]), 3)
        0.4
    """
    names = checked_joints(joints)
    positions = checked_points(points, names)
    lengths = checked_durations(durations, positions.shape[1] - 1)
    parts = checked_scalar(ramp, "ramp"), checked_scalar(cruise, "cruise")
    profile, moves = trapezoidal_profile(*parts), TrapezoidalMoves(positions, lengths, *parts)
    return PiecewisePolynomial(names, *_sections(profile, positions, lengths), moves)


def _sections(profile: Profile, points: np.ndarray, durations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return breaks and coefficients of the profile scaled to each move."""
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
