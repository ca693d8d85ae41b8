"""Piecewise polynomial motions: quintic and trapezoidal moves alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.interpolate import PPoly

from ..text import short_repr
from .moves import Moves
from .peaks import extrema_from_candidates
from .trajectory import Derivatives, MotionExtrema, Trajectory, freeze


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
