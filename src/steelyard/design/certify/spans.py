"""A motion over intervals of time: values at the middle, and how far it can be from them anywhere in the interval.

With d_k the k-th derivative at the middle and h half the width, Taylor's theorem gives for every time of the interval
``|q^(k)(t) - d_k| <= sum_j |d_(k+j)| h^j / j!``, to the last derivative of a polynomial; a Fourier series is cut and
its rest bounded by the sum of its harmonics' amplitudes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from math import factorial

import numpy as np
from scipy.interpolate import PPoly

from ...errors import DesignError
from ...motion import ApproachedTrajectory, FourierSeries, PiecewisePolynomial, Trajectory
from ...motion.trajectory import freeze

# Derivatives of a Fourier series taken at the middle; the next one is bounded for all times.
_FOURIER_ORDERS = 6
# Rounding of a motion's values, relative to the largest they can be: that of its phase and of its sums.
_ROUNDING = 1e-14


@dataclass(frozen=True, eq=False)
class Spans:
    """A motion of n joints over K intervals. The arrays are not writeable.

    Attributes:
        half: Half the width of each interval (K,) [s].
        middles: Position, velocity, acceleration and jerk at the middles (4, n, K); SI units.
        radii: The most by which each differs from it within the interval (4, n, K).
        rounding: The most by which each of the middles is off by rounding (4, n, K).
    """

    half: np.ndarray
    middles: np.ndarray
    radii: np.ndarray
    rounding: np.ndarray

    def __post_init__(self) -> None:
        freeze(self, "half", "middles", "radii", "rounding")


def spans(trajectory: Trajectory, begin: np.ndarray, end: np.ndarray) -> Spans:
    """Return a motion over the intervals from ``begin`` to ``end`` (K,) [s], none of which reaches across a break.

    Raises:
        DesignError: If the motion is of a kind that has no such bounds.
    """
    middle = 0.5 * (begin + end)
    # The middle itself is rounded: the interval is widened so that it still reaches both ends.
    half = np.maximum(end - middle, middle - begin) + 4e-16 * np.abs(end)
    derivatives, remainder, scale = _taylor(trajectory, middle, half)
    rounding = _ROUNDING * scale[:4]
    radii = np.array([_deviation(derivatives, remainder, half, order) for order in range(4)]) + rounding
    return Spans(half, derivatives[:4], radii, rounding)


def breaks(trajectory: Trajectory) -> np.ndarray:
    """Return the instants (s,) [s] at which intervals must be split: where the jerk may jump, and both ends.

    All that the motion does, it does between the first and the last: of a periodic motion one period is enough.
    """
    return np.unique(_breaks(trajectory))


def _deviation(derivatives: np.ndarray, remainder: np.ndarray, half: np.ndarray, order: int) -> np.ndarray:
    """Return the bound on the change of one derivative (n, K); ``remainder`` bounds the one after the last."""
    last = len(derivatives)
    change = remainder * half ** (last - order) / factorial(last - order)
    for higher in range(order + 1, last):
        change = change + np.abs(derivatives[higher]) * half ** (higher - order) / factorial(higher - order)
    return change


@singledispatch
def _taylor(trajectory: Trajectory, middle: np.ndarray, half: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return derivatives (m, n, K) from the 0th on, a bound on the m-th (n, K), and the size of each (m, n, K)."""
    raise DesignError(
        f"a motion of kind {type(trajectory).__name__} has no bounds between instants; "
        "allowed are FourierSeries, PiecewisePolynomial and ApproachedTrajectory"
    )


@_taylor.register
def _fourier_taylor(
    trajectory: FourierSeries, middle: np.ndarray, half: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rates = 2 * np.pi / trajectory.period * np.arange(1, trajectory.sin.shape[1] + 1)
    angles = np.remainder(middle, trajectory.period) * rates[:, None]
    sines, cosines = np.sin(angles), np.cos(angles)
    sin, cos, amplitude = trajectory.sin, trajectory.cos, np.abs(trajectory.sin) + np.abs(trajectory.cos)
    derivatives, sizes = [], []
    for order in range(_FOURIER_ORDERS):
        derivatives.append(sin @ sines + cos @ cosines)
        sizes.append(amplitude @ rates**order)
        sin, cos = -cos * rates, sin * rates
    derivatives[0] = derivatives[0] + trajectory.q0[:, None]
    sizes[0] = sizes[0] + np.abs(trajectory.q0)
    # A phase is off by some roundings of the highest harmonic's angle.
    sizes = np.array(sizes) * (1 + 2 * np.pi * len(rates))
    shape = (*np.shape(sizes), len(middle))
    bound = np.broadcast_to((amplitude @ rates**_FOURIER_ORDERS)[:, None], shape[1:])
    return np.array(derivatives), bound, np.broadcast_to(sizes[..., None], shape)


@_taylor.register
def _polynomial_taylor(
    trajectory: PiecewisePolynomial, middle: np.ndarray, half: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    values = PPoly(trajectory.coefficients, trajectory.breaks, extrapolate=True)
    sizes = PPoly(np.abs(trajectory.coefficients), trajectory.breaks, extrapolate=True)
    orders = range(max(len(trajectory.coefficients), 4))
    derivatives, scales = (np.array([each(middle, order).T for order in orders]) for each in (values, sizes))
    scales = scales + _time_rounding(scales, trajectory.duration)
    return derivatives, np.zeros_like(derivatives[0]), scales


@_taylor.register
def _approached_taylor(
    trajectory: ApproachedTrajectory, middle: np.ndarray, half: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Orders above those that a part has are zero (polynomials) or its remainder (Fourier series, kept as one)."""
    start, stop = trajectory.core_interval
    parts = ((0.0, trajectory.way_in), (start, trajectory.core), (stop, trajectory.way_out))
    part_of = np.searchsorted([start, stop], middle, side="right")
    orders, joints = _FOURIER_ORDERS, len(trajectory.joints)
    derivatives, scales = np.zeros((2, orders, joints, len(middle)))
    remainder = np.zeros((joints, len(middle)))
    for number, (begin, part) in enumerate(parts):
        columns = part_of == number
        found, rest, size = _taylor(part, middle[columns] - begin, half[columns])
        derivatives[: len(found), :, columns], scales[: len(size), :, columns] = found, size
        remainder[:, columns] = rest
    return derivatives, remainder, scales + _time_rounding(scales, trajectory.duration)


def _time_rounding(scales: np.ndarray, duration: float) -> np.ndarray:
    """Return what a shift of time by its rounding changes, in units of the values' own rounding."""
    change = np.zeros_like(scales)
    change[:-1] = scales[1:] * duration * 0.1
    return change


@singledispatch
def _breaks(trajectory: Trajectory) -> np.ndarray:
    return np.array([0.0, trajectory.duration])


@_breaks.register
def _fourier_breaks(trajectory: FourierSeries) -> np.ndarray:
    return np.array([0.0, trajectory.period])


@_breaks.register
def _polynomial_breaks(trajectory: PiecewisePolynomial) -> np.ndarray:
    return trajectory.breaks


@_breaks.register
def _approached_breaks(trajectory: ApproachedTrajectory) -> np.ndarray:
    start, stop = trajectory.core_interval
    inside = _breaks(trajectory.core)[1:-1]
    return np.concatenate([trajectory.way_in.breaks, start + inside, stop + trajectory.way_out.breaks])
