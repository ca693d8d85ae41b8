"""Motions as Fourier series with a period common to all joints (P2.3, P4.1).

Values, derivatives and exact extremes of trigonometric polynomials.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigvals

from ..configuration import whole_number
from ..errors import MotionError
from ..text import short_repr
from .checks import DURATION, checked_joints, checked_scalar, joint_array
from .trajectory import Derivatives, MotionExtrema, Trajectory, extrema_from_candidates, freeze

# Newton steps from a companion root; it doubles the digits, and the root has most of them already.
POLISHING_STEPS = 3


def differentiated(sin: np.ndarray, cos: np.ndarray, frequency: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the coefficients (n, nf) of sines and cosines of the derivative with respect to time."""
    factors = frequency * np.arange(1, sin.shape[-1] + 1)
    return -cos * factors, sin * factors


def series_values(phase: np.ndarray, series: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
    """Return ``sum_k sin_k sin(k x) + cos_k cos(k x)`` (n, N) of several series at phases x (N,) [rad]."""
    angles = np.arange(1, series[0][0].shape[-1] + 1)[:, None] * phase
    sines, cosines = np.sin(angles), np.cos(angles)
    return [sin @ sines + cos @ cosines for sin, cos in series]


def series_candidates(sin: np.ndarray, cos: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the phases (c,) in [0, 2 pi) at which one series (nf,) can be extreme, and its values (c,) there.

    Every extreme is a root of the derivative g. With ``z = exp(i x)``, ``z^m g`` is a polynomial of degree 2 m in z
    whose roots on the unit circle are the roots of g. The phase of every root is a candidate, those off the circle
    too: a value of the series never lies beyond its extreme, so they can do no harm, and no tolerance decides what
    counts as on the circle. Rounding of a root costs the value nothing to first order; Newton's method removes the
    rest.
    """
    slope = differentiated(sin, cos, 1.0)
    curvature = differentiated(*slope, 1.0)
    phases = np.concatenate([[0.0], _root_phases(*slope)])
    polished = phases
    for _ in range(POLISHING_STEPS):
        g, dg = series_values(polished, [slope, curvature])
        step = np.divide(g, dg, out=np.zeros_like(g), where=dg != 0)
        # A long step leaves the root's neighbourhood (a multiple root, or a phase that is no root): cut it.
        polished = polished - np.clip(step, -0.1 / len(sin), 0.1 / len(sin))
    both = np.remainder(np.concatenate([phases, polished]), 2 * np.pi)
    return both, series_values(both, [(sin, cos)])[0]


def _root_phases(sin: np.ndarray, cos: np.ndarray) -> np.ndarray:
    """Return the phases of the roots of ``z^m sum_k sin_k sin(k x) + cos_k cos(k x)`` in ``z = exp(i x)``.

    The companion matrix is taken as a pencil (A, B): a small leading coefficient is then not divided by.
    """
    there = np.flatnonzero((sin != 0) | (cos != 0))
    if len(there) == 0:
        return np.zeros(0)
    half = (cos - 1j * sin)[: there[-1] + 1] / 2
    half = half / np.abs(half).max()
    polynomial = np.concatenate([half[::-1], [0.0], half.conj()])  # highest power first
    size = len(polynomial) - 1
    companion = np.eye(size, k=-1, dtype=complex)
    companion[0] = -polynomial[1:]
    scale = np.eye(size, dtype=complex)
    scale[0, 0] = polynomial[0]
    roots = np.asarray(eigvals(companion, scale))
    return np.angle(roots[np.isfinite(roots) & (roots != 0)])


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

    Example:
        >>> motion = steelyard.fourier([0.5], sin=[[0.3]], cos=[[0.0]], period=5.0, joints=["joint_1"])
        >>> float(motion.at([0.0]).q[0, 0])
        0.5
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

    Example:
        >>> motion = steelyard.fourier([0.0], sin=[[0.3]], cos=[[0.1]], period=5.0, joints=["joint_1"], periods=2)
        >>> motion.duration
        10.0
    """
    names = checked_joints(joints)
    sines = joint_array(sin, names, "sin", None)
    if sines.shape[1] < 1:
        raise MotionError("sin has no harmonic; a Fourier series needs at least 1")
    return FourierSeries(
        names,
        joint_array(q0, names, "q0"),
        sines,
        joint_array(cos, names, "cos", sines.shape[1]),
        checked_scalar(period, "period [s]", DURATION),
        checked_scalar(periods, "periods", whole_number(1)),
    )
