"""Derivatives of one step in time, as numbers: all stages in one call of compiled code, then the chain rule.

The stages' states are known before their derivatives are wanted, so the derivatives of all stages are columns of one
batch, at the price of one.
"""

from __future__ import annotations

import numpy as np

from ...kernel import BatchFunction
from .arm_graph import ArmGraph
from .discrete import FRACTIONS, Integrator


class StepDerivative:
    """Derivatives of x after a step by x before, torque and free parameters, transposed (3n + f, 2n).

    Args:
        graph: The arm.
        sensitivity: Its derivatives, compiled.
        integrator: How the step is taken.

    Attributes:
        motion: Positions, velocities and accelerations of the stages (n, stages), to be filled before each call.
    """

    def __init__(self, graph: ArmGraph, sensitivity: BatchFunction, integrator: Integrator) -> None:
        n, stages = graph.joints, len(FRACTIONS[integrator])
        self._n, self._dt, self._stages = n, 0.0, stages
        rows = 3 * n + graph.free
        self.motion = tuple(np.zeros((n, stages)) for _ in range(3))
        self._chi, self._turn = np.zeros((graph.parameters, stages)), np.zeros((n, stages))
        out = np.zeros((n * rows, stages))
        self._evaluate = sensitivity.bind([*self.motion, self._chi, self._turn], [out])
        self._strided, self._by_stage = out.T, np.zeros((stages, n * rows))
        self._A = list(self._by_stage.reshape(stages, rows, n))
        # Derivatives of velocity and position at a stage; a position moves on with the velocity even unforced.
        self._qd, self._q = np.zeros((rows, n)), np.zeros((rows, n))
        self._half, self._whole = np.zeros((rows, n)), np.zeros((rows, n))
        self._ones = self._qd.reshape(-1)[: n * n : n + 1]
        self._result = np.zeros((rows, 2 * n))

    def begin(self, dt: float) -> None:
        """Set the length of the steps [s]."""
        n, self._dt = self._n, dt
        for drifted, part in ((self._half, dt / 2), (self._whole, dt)):
            drifted[:n], drifted[n : 2 * n] = part * np.eye(n), np.eye(n)

    def at(self, chi: np.ndarray, turn: np.ndarray) -> np.ndarray:
        """Return the derivatives at the motion filled in, with parameters chi (c, 1) and directions (n, 1)."""
        np.copyto(self._chi, chi)
        np.copyto(self._turn, turn)
        self._evaluate()
        np.copyto(self._by_stage, self._strided)
        return self._euler() if self._stages == 1 else self._runge_kutta()

    def _euler(self) -> np.ndarray:
        n, result = self._n, self._result
        self._speed(self._A[0], self._dt)
        result[:, :n], result[:, n:] = self._qd, self._whole
        return result

    def _runge_kutta(self) -> np.ndarray:
        """Slopes of qd at the stages are b1 ... b4; those of q are the velocities there."""
        n, dt, result = self._n, self._dt, self._result
        b1 = self._A[0]
        self._speed(b1, dt / 2)
        b2 = self._bent(1, self._half)
        self._speed(b2, dt / 2)
        np.multiply(b1, dt * dt / 4, out=self._q)
        self._q += self._half
        b3 = self._bent(2, self._q)
        self._speed(b3, dt)
        np.multiply(b2, dt * dt / 2, out=self._q)
        self._q += self._whole
        b4 = self._bent(3, self._q)
        b2 += b3
        b1 += b2
        np.multiply(b1, dt * dt / 6, out=self._q)
        np.add(self._q, self._whole, out=result[:, n:])
        b1 += b2
        b1 += b4
        self._speed(b1, dt / 6)
        result[:, :n] = self._qd
        return result

    def _speed(self, slope: np.ndarray, dt: float) -> None:
        """Set the derivatives of a velocity that has had a slope for a time."""
        np.multiply(slope, dt, out=self._qd)
        self._ones += 1.0

    def _bent(self, stage: int, q: np.ndarray) -> np.ndarray:
        """Return the derivatives of the acceleration at a stage, whose velocity and position have derivatives too."""
        n, A = self._n, self._A[stage]
        bent = self._qd @ A[:n]
        bent += q @ A[n : 2 * n]
        bent[2 * n :] += A[2 * n :]
        return bent
