"""Bounds on torques within intervals of time, friction at reversals and uncertain parameters included.

On an interval of half width h about its middle m, with every sign s anywhere in its range,
``tau(t) = tau(m; s) + d tau'``, ``|d| <= h``, and the rate tau' is enclosed by its value at m and a radius that
shrinks with h. The standard deviation of a torque is ``|L^T w|`` with w the row of the regressor, and the same form
holds for ``L^T w``. Both are affine in d and s up to the radii, so the magnitude plus the deviation is convex and its
largest value lies at a corner: the bound is off by no more than h times the radii, of second order.

A motion over an interval is enclosed by its value at the middle and a radius (:class:`Spans`). With d_k the k-th
derivative at the middle and h half the width, Taylor's theorem gives for every time of the interval
``|q^(k)(t) - d_k| <= sum_j |d_(k+j)| h^j / j!``, to the last derivative of a polynomial; a Fourier series is cut and
its rest bounded by the sum of its harmonics' amplitudes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, singledispatch
from itertools import product
from math import factorial

import numpy as np
from scipy.interpolate import PPoly

from ...errors import DesignError
from ...motion import ApproachedTrajectory, FourierSeries, PiecewisePolynomial, Trajectory
from ...motion.trajectory import freeze
from .torque_graph import TorqueGraph

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


# Roundings of the few sums and products here, relative to their terms.
_TORQUE_ROUNDING = 1e-13
# Slower than this [rad/s or m/s], a joint counts as standing where values that are reached are reported.
_STANDSTILL = 1e-12
# Corners are taken over so many signs of a row; a row of any known model has at most three.
_MOST_SIGNS = 8


@dataclass(frozen=True, eq=False)
class _Line:
    """Quantities along the interval, ``middle + d slope``, the error of each (K,) apart.

    Attributes:
        middle: Values at the middle (..., K).
        slope: Rates at the middle (..., K).
        error: How far the value at the middle can be off (K,).
        slope_error: How far the rate is from ``slope`` anywhere in the interval (K,).
    """

    middle: np.ndarray
    slope: np.ndarray
    error: np.ndarray
    slope_error: np.ndarray


class TorqueBounder:
    """Bounds of ``|tau| + sigmas * deviation of tau`` for the joints with a finite limit (a ``Bounder``).

    Attributes:
        names: ``torque of <joint>`` and an ending.
        limits: Limits of the torque's magnitude (g,) [N m or N].
    """

    def __init__(self, graph: TorqueGraph, trajectory: Trajectory, limits: np.ndarray, ending: str = "") -> None:
        """Take the torques, the motion, one limit for each joint (n,), and what to add to the names.

        Raises:
            DesignError: If the limits are not one number above zero for each joint.
        """
        given = np.array(limits, dtype=float)
        if given.shape != (len(graph.joints),) or not (given > 0).all():
            raise DesignError(f"torque limits are {given}; allowed is one number above 0 for each of {graph.joints}")
        self._rows = [int(row) for row in np.flatnonzero(np.isfinite(given))]
        self._graph = graph
        self._trajectory = trajectory.in_order(graph.joints)
        self.names = tuple(f"torque of {graph.joints[row]}{ending}" for row in self._rows)
        self.limits = given[self._rows]
        self.limits.setflags(write=False)

    def bounds(
        self, begin: np.ndarray, end: np.ndarray, wanted: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return ``|tau|`` plus its deviation at the middles and upper bounds over the intervals, both (g, K).

        At standstill friction may be anything up to Coulomb's: the middle then counts the worst of it.
        """
        span = spans(self._trajectory, begin, end)
        torque = self._torques(span)
        deviations = self._deviations(span)
        signs = self._signs(span.middles[1], span.radii[1])
        signs_there = self._signs(span.middles[1], np.maximum(span.rounding[1], _STANDSTILL))
        at_middle, upper = np.empty((2, len(self._rows), len(begin)))
        for index, row in enumerate(self._rows):
            along = _Line(torque.middle[row], torque.slope[row], torque.error[row], torque.slope_error[row])
            deviation = None if deviations is None else deviations[index]
            at_middle[index] = self._largest(row, along, deviation, signs_there, 0.0)
            upper[index] = self._largest(row, along, deviation, signs, span.half)
            upper[index] += _error(along, span.half) + (0.0 if deviation is None else _error(deviation, span.half))
        return at_middle, upper * (1 + _TORQUE_ROUNDING)

    def _torques(self, span: Spans) -> _Line:
        """Return the smooth torques of all joints, with the constant of directed columns (n, K)."""
        graph, middles = self._graph, list(span.middles)
        ((value, error),) = graph.values(middles[:3], list(span.rounding[:3]))
        ((rate, rate_error),) = graph.rates(middles, list(span.radii))
        constant = graph.directions.constant @ graph.chi
        return _Line(value + constant[:, None], rate, error, rate_error)

    def _deviations(self, span: Spans) -> list[_Line] | None:
        """Return for each limited joint ``L^T w`` without its signs (r, K), errors as norms."""
        spread = self._graph.spread
        if spread is None:
            return None
        middles = list(span.middles)
        ((value, error),) = spread.values(middles[:3], list(span.rounding[:3]))
        ((rate, rate_error),) = spread.rates(middles, list(span.radii))
        lines = []
        for row in self._rows:
            own = spread.rows == row
            factor = spread.factor[spread.columns[own]].T
            constant = spread.factor.T @ self._graph.directions.constant[row]
            norms = [np.linalg.norm(np.abs(factor) @ each[own], axis=0) for each in (error, rate_error)]
            lines.append(_Line(factor @ value[own] + constant[:, None], factor @ rate[own], norms[0], norms[1]))
        return lines

    def _signs(self, velocity: np.ndarray, radius: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the least and the largest value (k, K) of every sign over intervals of velocities (n, K)."""
        arguments = self._graph.directions.arguments
        middle, reach = arguments @ velocity, np.abs(arguments) @ (radius + _TORQUE_ROUNDING * np.abs(velocity))
        decided = np.abs(middle) > reach
        return np.where(decided, np.sign(middle), -1.0), np.where(decided, np.sign(middle), 1.0)

    def _largest(
        self,
        row: int,
        torque: _Line,
        deviation: _Line | None,
        signs: tuple[np.ndarray, np.ndarray],
        half: np.ndarray | float,
    ) -> np.ndarray:
        """Return the largest of magnitude plus deviation (K,) over the corners of signs and time."""
        nonzero, pulls, shifts = self._nonzero[row]
        largest = np.full(torque.middle.shape, -np.inf)
        for corner in product((0, 1), repeat=len(nonzero)):
            chosen = [signs[end][sign] for end, sign in zip(corner, nonzero, strict=True)]
            for step in (half, -half) if np.any(half) else (0.0,):
                value = torque.middle + step * torque.slope + sum(p * s for p, s in zip(pulls, chosen, strict=True))
                size = np.abs(value)
                if deviation is not None:
                    place = deviation.middle + step * deviation.slope
                    place = place + sum(shift[:, None] * s for shift, s in zip(shifts, chosen, strict=True))
                    size = size + np.linalg.norm(place, axis=0)
                largest = np.maximum(largest, size)
        return largest

    @cached_property
    def _nonzero(self) -> dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """For each joint: the signs it depends on, the torque of each (k,), and its share of ``L^T w`` (k, r)."""
        factors, chi = self._graph.directions.factors, self._graph.chi
        factor = np.zeros((len(chi), 0)) if self._graph.spread is None else self._graph.spread.factor
        table = {}
        for row in self._rows:
            pulls, shifts = factors[:, row] @ chi, factors[:, row] @ factor
            nonzero = np.flatnonzero((pulls != 0) | np.abs(shifts).any(axis=1))
            if len(nonzero) > _MOST_SIGNS:
                raise DesignError(
                    f"torque of {self._graph.joints[row]} depends on {len(nonzero)} signs; allowed are {_MOST_SIGNS}"
                )
            table[row] = (nonzero, pulls[nonzero], shifts[nonzero])
        return table


def _error(line: _Line, half: np.ndarray) -> np.ndarray:
    return line.error + half * line.slope_error
