"""What a piecewise motion was made from: via points and how to pass them. Kept so that it can be written and edited."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ..text import short_repr
from .trajectory import freeze

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
