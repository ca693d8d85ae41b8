"""Families of motions that are linear in their coefficients: ``q(t) = X B(t)``, one row of X for each joint.

All derivatives are linear in X too, ``d^k q / dt^k = X B_k(t)``, so that a gradient by the motion becomes one by X in
one product. Scaling the time by s leaves the path as it is and divides ``B_k`` by ``s^k``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from scipy.interpolate import PPoly
from scipy.linalg import null_space

from ..errors import DesignError
from ..motion import Profile, Trajectory, fourier, quintic, trapezoidal
from ..motion.fourier import differentiated, series_values
from ..text import short_repr

FEWEST_HARMONICS = 2
"""One harmonic that starts with zero velocity and acceleration does not move at all."""


@dataclass(frozen=True)
class MotionFamily(ABC):
    """Motions with m coefficients a joint. Subclasses are final.

    Attributes:
        joints: Names of the joints.
    """

    joints: tuple[str, ...]

    @property
    @abstractmethod
    def size(self) -> int:
        """Coefficients of each joint, m."""

    @property
    @abstractmethod
    def duration(self) -> float:
        """Duration of a motion at time scale 1 [s]."""

    @property
    @abstractmethod
    def grid_interval(self) -> float:
        """Time after which a motion repeats itself [s]: what a grid has to cover."""

    @abstractmethod
    def basis(self, time: np.ndarray) -> np.ndarray:
        """Return B (4, m, N) at times (N,): rows of positions, velocities, accelerations and jerks."""

    @abstractmethod
    def trajectory(self, coefficients: np.ndarray, time_scale: float = 1.0) -> Trajectory:
        """Return the motion with coefficients X (n, m), its duration scaled."""

    @abstractmethod
    def still(self, posture: np.ndarray) -> np.ndarray:
        """Return the coefficients (n, m) of standing still in a posture (n,)."""

    @abstractmethod
    def random(self, centre: np.ndarray, span: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return coefficients (n, m) of a random motion about a centre (n,), within about a span (n,) of it."""

    def grid(self, count: int) -> np.ndarray:
        """Return instants (count,) spread evenly over what has to be looked at, each the middle of its part."""
        return (np.arange(count) + 0.5) * (self.grid_interval / count)


def fourier_basis(sin: np.ndarray, cos: np.ndarray, period: float, time: np.ndarray, orders: int) -> np.ndarray:
    """Return values and derivatives (orders, 1 + m, N) of a constant and of m series with coefficients (m, nf)."""
    frequency, series = 2 * np.pi / period, [(sin, cos)]
    for _ in range(orders - 1):
        series.append(differentiated(*series[-1], frequency))
    rows = np.array(series_values(frequency * time, series))
    mean = np.zeros((orders, 1, len(time)))
    mean[0] = 1.0
    return np.concatenate([mean, rows], axis=1)


@final
@dataclass(frozen=True)
class FourierFamily(MotionFamily):
    """Fourier series whose velocity and acceleration are zero at the start by construction (P2.3, P2.4).

    ``sum_k k a_k = 0`` and ``sum_k k^2 b_k = 0`` leave 2 nf - 2 coefficients and the mean: those of orthonormal bases
    of the two null spaces.

    Attributes:
        harmonics: Number of harmonics nf.
        period: Period [s].
        periods: How often it is repeated.
    """

    __repr__ = short_repr

    harmonics: int
    period: float
    periods: int = 1

    def __post_init__(self) -> None:
        if self.harmonics < FEWEST_HARMONICS:
            raise DesignError(
                f"{self.harmonics} harmonics; at least {FEWEST_HARMONICS} are needed for a motion that starts at rest"
            )

    @property
    def size(self) -> int:
        """Coefficients of each joint: the mean, and two fewer than sines and cosines."""
        return 2 * self.harmonics - 1

    @property
    def duration(self) -> float:
        """Duration of all periods [s]."""
        return self.period * self.periods

    @property
    def grid_interval(self) -> float:
        """The period [s]."""
        return self.period

    def basis(self, time: np.ndarray) -> np.ndarray:
        """Return B (4, m, N) at times (N,)."""
        return fourier_basis(*self._shapes, self.period, time, 4)

    def trajectory(self, coefficients: np.ndarray, time_scale: float = 1.0) -> Trajectory:
        """Return the Fourier series with coefficients X (n, m)."""
        sin, cos = (coefficients[:, 1:] @ shapes for shapes in self._shapes)
        return fourier(coefficients[:, 0], sin, cos, time_scale * self.period, self.joints, self.periods)

    def still(self, posture: np.ndarray) -> np.ndarray:
        """Return the coefficients of standing still."""
        coefficients = np.zeros((len(self.joints), self.size))
        coefficients[:, 0] = posture
        return coefficients

    def random(self, centre: np.ndarray, span: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return coefficients of a random motion."""
        coefficients = self.still(centre)
        coefficients[:, 1:] = rng.standard_normal((len(span), self.size - 1)) * (span / self.harmonics)[:, None]
        return coefficients

    @cached_property
    def _shapes(self) -> tuple[np.ndarray, np.ndarray]:
        """Sines and cosines (2 nf - 2, nf) of each coefficient."""
        k = np.arange(1.0, self.harmonics + 1)
        sines, cosines = null_space(k[None]).T, null_space(k[None] ** 2).T
        nothing = np.zeros_like(sines)
        return np.vstack([sines, nothing]), np.vstack([nothing, cosines])


@final
@dataclass(frozen=True)
class ViaPointFamily(MotionFamily):
    """Moves from rest to rest through via points, back to the first (P1.6, P5): the coefficients are the points.

    Attributes:
        moves: Number of moves; as many points, the first of which is also the last.
        move: Duration of a move [s].
        profile: Its shape.
        kind: ``quintic`` or ``trapezoidal``, the kind of the motion that is made.
    """

    __repr__ = short_repr

    moves: int
    move: float
    profile: Profile
    kind: str

    def __post_init__(self) -> None:
        if self.moves < FEWEST_HARMONICS:
            raise DesignError(f"{self.moves} moves; at least 2 are needed to go somewhere and back")

    @property
    def size(self) -> int:
        """Number of free points."""
        return self.moves

    @property
    def duration(self) -> float:
        """Duration of all moves [s]."""
        return self.moves * self.move

    @property
    def grid_interval(self) -> float:
        """The whole motion [s]."""
        return self.duration

    def basis(self, time: np.ndarray) -> np.ndarray:
        """Return B (4, m, N): ``q = (1 - s) q_i + s q_{i+1}`` on move i, s the profile."""
        number = np.clip(np.floor(time / self.move).astype(int), 0, self.moves - 1)
        shape = PPoly(self.profile.coefficients, self.profile.breaks)
        rows = np.zeros((4, self.moves, len(time)))
        columns = np.arange(len(time))
        for order in range(4):
            s = shape(time / self.move - number, order) / self.move**order
            rows[order, number, columns] = (1.0 if order == 0 else 0.0) - s
            rows[order, (number + 1) % self.moves, columns] += s
        return rows

    def trajectory(self, coefficients: np.ndarray, time_scale: float = 1.0) -> Trajectory:
        """Return the moves through the points X (n, m) and back to the first."""
        points = np.concatenate([coefficients, coefficients[:, :1]], axis=1)
        make = quintic if self.kind == "quintic" else trapezoidal
        return make(points, time_scale * self.move, self.joints)

    def still(self, posture: np.ndarray) -> np.ndarray:
        """Return the coefficients of standing still."""
        return np.repeat(posture[:, None], self.moves, axis=1)

    def random(self, centre: np.ndarray, span: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return random points."""
        return centre[:, None] + span[:, None] * rng.uniform(-1, 1, (len(span), self.moves))
