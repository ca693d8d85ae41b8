"""The shape of a move from rest to rest: how far it has gone, as a function of the part of its time that has passed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.interpolate import PPoly

from ..errors import MotionError
from .checks import number, positive_number
from .trajectory import freeze

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
    """
    positive_number(ramp, "ramp")
    if not 0 <= number(cruise, "cruise") < 1:
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
