"""Fourier series with a period common to all joints (P2.3, P4.1)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from ..errors import MotionError
from ..text import short_repr
from .checks import checked_duration, checked_joints, row_values, table_values, whole_number
from .harmonics import differentiated, series_candidates, series_values
from .peaks import extrema_from_candidates
from .trajectory import Derivatives, MotionExtrema, Trajectory, freeze


@final
@dataclass(frozen=True, eq=False)
class FourierSeries(Trajectory):
    """A periodic motion. Make one with :func:`fourier`.

    ``q_i(t) = q0_i + sum_k sin_ik sin(k w0 t) + cos_ik cos(k w0 t)``, ``w0 = 2 pi / period``, k = 1 to nf.

    Attributes:
        joints: Names of the joints.
        q0: Mean positions (n,) [rad or m].
        sin: Coefficients of the sines (n, nf) [rad or m].
        cos: Coefficients of the cosines (n, nf) [rad or m].
        period: Period of all joints [s].
        periods: Number of periods.
    """

    __repr__ = short_repr

    q0: np.ndarray
    sin: np.ndarray
    cos: np.ndarray
    period: float
    periods: int

    def __post_init__(self) -> None:
        freeze(self, "q0", "sin", "cos")

    @property
    def duration(self) -> float:
        """How long the motion takes [s]: its periods one after the other."""
        return self.period * self.periods

    def derivatives(self, time: np.ndarray) -> Derivatives:
        """Return position, velocity, acceleration and jerk (n, N) at times (N,) in the motion."""
        # The remainder is exact, so that the phase of the hundredth period is as good as that of the first.
        phase = np.remainder(time, self.period) * self._frequency
        rows = series_values(phase, [(sin, cos) for _, sin, cos in self._orders()])
        return self.q0[:, None] + rows[0], rows[1], rows[2], rows[3]

    def extrema(self) -> MotionExtrema:
        """Return the exact extremes, all reached within the first period."""
        candidates = [
            [
                (phase / self._frequency, mean[joint] + values)
                for joint in range(len(self.joints))
                for phase, values in [series_candidates(sin[joint], cos[joint])]
            ]
            for mean, sin, cos in self._orders()
        ]
        return extrema_from_candidates(candidates, self.joints)

    def _orders(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Return mean and coefficients of position, velocity, acceleration and jerk."""
        orders = [(self.q0, self.sin, self.cos)]
        for _ in range(3):
            orders.append((np.zeros_like(self.q0), *differentiated(*orders[-1][1:], self._frequency)))
        return orders

    @property
    def _frequency(self) -> float:
        return 2 * np.pi / self.period

    def _with_rows(self, joints: tuple[str, ...], rows: list[int]) -> FourierSeries:
        return FourierSeries(joints, self.q0[rows], self.sin[rows], self.cos[rows], self.period, self.periods)


def fourier(
    q0: ArrayLike, sin: ArrayLike, cos: ArrayLike, period: float, joints: Iterable[str], periods: int = 1
) -> FourierSeries:
    """Return a periodic motion, a sum of sines and cosines of the multiples of one frequency.

    Args:
        q0: Mean positions (n,) [rad or m].
        sin: Coefficients of ``sin(k w0 t)`` (n, nf), k = 1 to nf [rad or m].
        cos: Coefficients of ``cos(k w0 t)`` (n, nf) [rad or m].
        period: Period common to all joints [s]; ``w0 = 2 pi / period``.
        joints: Names of the joints, one for each row.
        periods: How often the period is repeated.

    Raises:
        MotionError: If shapes, names or numbers do not fit.
    """
    names = checked_joints(joints)
    sines = table_values(sin, names, "sin")
    if sines.shape[1] < 1:
        raise MotionError("sin has no harmonic; a Fourier series needs at least 1")
    return FourierSeries(
        names,
        row_values(q0, names, "q0"),
        sines,
        table_values(cos, names, "cos", sines.shape[1]),
        checked_duration(period, "period [s]"),
        whole_number(periods, "periods"),
    )
