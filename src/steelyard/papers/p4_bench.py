"""P4's arm as rows of equations at given instants: what its simulated experiments are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..model import build_model
from ..motion import Trajectory
from ..observe import Equations, equations_of
from ..robot import load_robot
from .designs import Arm
from .p4_arm import DURATION, RATE, TORQUE_VARIANCE

Motion = Sequence[np.ndarray]
"""Positions, velocities and accelerations (n, N)."""

SAMPLES = round(DURATION * RATE)
"""Samples of a period."""


@dataclass(frozen=True, eq=False)
class Bench:
    """An arm whose true parameters are known.

    Attributes:
        equations: Its equations.
        values: True base parameters (c,), as ``equations.names``.
        deviations: Noise of a torque sample of each joint (n,) [N m].
    """

    equations: Equations
    values: np.ndarray
    deviations: np.ndarray

    def rows(self, motion: Motion) -> np.ndarray:
        """Return W of every equation (n, N, c)."""
        compiled = self.equations.compiled(loaded=False)
        outputs = compiled.function(*(np.ascontiguousarray(part) for part in motion))
        whole = np.zeros((len(outputs), motion[0].shape[1], len(self.equations.names)))
        for e, (felt, names) in enumerate(zip(outputs, compiled.columns, strict=True)):
            whole[e][:, [self.equations.names.index(name) for name in names]] = felt.T
        return whole

    def torques(self, motion: Motion) -> np.ndarray:
        """Return the true torques (n, N)."""
        return self.rows(motion) @ self.values

    def weighted(self, motion: Motion) -> np.ndarray:
        """Return the stack of all rows over their noise (n N, c), joint by joint."""
        return np.concatenate(list(self.rows(motion) / self.deviations[:, None, None]))


def bench(arm: Arm) -> Bench:
    """Return the bench of an arm with the effects of its model."""
    equations = equations_of(build_model(load_robot(arm.model.robot.name), arm.model.effects))
    known = {name: arm.known.values.get(name, 0.0) for name in arm.model.names}
    true = equations.base_values(known)
    return Bench(equations, np.array([true[name] for name in equations.names]), np.sqrt(TORQUE_VARIANCE))


def instants(count: int = SAMPLES, periods: int = 1) -> np.ndarray:
    """Return the sampling instants of some periods [s].

    They lie half a step from the start, where the motion is at rest and the sign of friction undetermined.
    """
    return (np.arange(count * periods) + 0.5) * (DURATION / count)


def moved(trajectory: Trajectory, time: np.ndarray) -> Motion:
    """Return q, qd, qdd of a periodic motion at instants, however late."""
    return trajectory.derivatives(np.mod(time, trajectory.duration))[:3]


def solved(weighted: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return least squares of weighted rows (r, c) and y (r,): values (c,) and covariance (c, c)."""
    q, r = np.linalg.qr(weighted)
    inverse = np.linalg.inv(r)
    return inverse @ (q.T @ y), inverse @ inverse.T
