"""How large torques can be within intervals of time, friction at reversals and uncertain parameters included.

On an interval of half width h about its middle m, with every sign s anywhere in its range,
``tau(t) = tau(m; s) + d tau'``, ``|d| <= h``, and the rate tau' is enclosed by its value at m and a radius that
shrinks with h. The standard deviation of a torque is ``|L^T w|`` with w the row of the regressor, and the same form
holds for ``L^T w``. Both are affine in d and s up to the radii, so the magnitude plus the deviation is convex and its
largest value lies at a corner: the bound is off by no more than h times the radii, of second order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from ...errors import DesignError
from ...motion import Trajectory
from .spans import Spans, spans
from .torque_graph import TorqueGraph

# Roundings of the few sums and products here, relative to their terms.
_ROUNDING = 1e-13
# Slower than this [rad/s or m/s], a joint counts as standing when values that are reached are told.
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
        return at_middle, upper * (1 + _ROUNDING)

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
        middle, reach = arguments @ velocity, np.abs(arguments) @ (radius + _ROUNDING * np.abs(velocity))
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
        felt, pulls, shifts = self._felt[row]
        largest = np.full(torque.middle.shape, -np.inf)
        for corner in product((0, 1), repeat=len(felt)):
            chosen = [signs[end][sign] for end, sign in zip(corner, felt, strict=True)]
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
    def _felt(self) -> dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """For each joint: which signs it feels, the torque of each (k,), and its share of ``L^T w`` (k, r)."""
        factors, chi = self._graph.directions.factors, self._graph.chi
        factor = np.zeros((len(chi), 0)) if self._graph.spread is None else self._graph.spread.factor
        table = {}
        for row in self._rows:
            pulls, shifts = factors[:, row] @ chi, factors[:, row] @ factor
            felt = np.flatnonzero((pulls != 0) | np.abs(shifts).any(axis=1))
            if len(felt) > _MOST_SIGNS:
                raise DesignError(
                    f"torque of {self._graph.joints[row]} feels {len(felt)} directions; allowed are {_MOST_SIGNS}"
                )
            table[row] = (felt, pulls[felt], shifts[felt])
        return table


def _error(line: _Line, half: np.ndarray) -> np.ndarray:
    return line.error + half * line.slope_error
