"""One step of the state in time with its exact derivatives, by the chain rule through every stage of the integrator.

The state is ``x = [qd; q]``; the torque is held over the step. Forward Euler (P1) is ``x' = x + dt [qdd; qd]``, the
classical Runge-Kutta method is of order four. As numbers, the derivatives of all stages come from one call of compiled
code: the stages' states are known before their derivatives are wanted, so that all stages are columns of one batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import casadi as ca
import numpy as np

from ...kernel import BatchFunction
from .dynamics import ArmGraph

Integrator = Literal["euler", "rk4"]

FRACTIONS: dict[str, tuple[float, ...]] = {"euler": (0.0,), "rk4": (0.0, 0.5, 0.5, 1.0)}
"""How far each stage lies within the step, reached with the slope of the stage before."""

WEIGHTS: dict[str, tuple[float, ...]] = {"euler": (1.0,), "rk4": (1 / 6, 1 / 3, 1 / 3, 1 / 6)}
"""What the slope of each stage counts in the step."""


def stage_points(graph: ArmGraph, integrator: Integrator) -> ca.Function:
    """Return ``(x, tau, chi, turn, dt) -> (q, qd, qdd at the stages, x after the step, pivots)``, joint by joint."""
    n = graph.joints
    x, tau, chi = ca.SX.sym("x", 2 * n), ca.SX.sym("tau", n), ca.SX.sym("chi", graph.parameters)
    turn, dt = ca.SX.sym("turn", n), ca.SX.sym("dt")
    points, pivots, slope = [], [], ca.SX(2 * n, 1)
    step = ca.SX(2 * n, 1)
    for fraction, weight in zip(FRACTIONS[integrator], WEIGHTS[integrator], strict=True):
        at = x + fraction * dt * slope
        qdd, pivot = graph.acceleration(at[n:], at[:n], tau, chi, turn)
        slope = ca.vertcat(qdd, at[:n])
        step += weight * slope
        points.append((at[n:], at[:n], qdd))
        pivots.append(pivot)
    outputs = [ca.vec(ca.horzcat(*(point[k] for point in points)).T) for k in range(3)]
    outputs += [x + dt * step, ca.vertcat(*pivots)]
    return ca.Function("stage_points", [x, tau, chi, turn, dt], [ca.cse(ca.densify(part)) for part in outputs])


def discrete_step(
    graph: ArmGraph, integrator: Integrator, dt: ca.SX, x: ca.SX, tau: ca.SX, chi: ca.SX, turn: ca.SX
) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return a step of ``dt`` [s] from x in symbols; a direction that is held has no derivative.

    Returns:
        State after the step (2n), its derivatives by x, tau and the free parameters (2n, 2n + n + f), and the pivots of
        the inertia matrix at all stages.
    """
    n, count = graph.joints, len(FRACTIONS[integrator])
    q, qd, qdd, following, pivots = stage_points(graph, integrator)(x, tau, chi, turn, dt)
    stages = [ca.reshape(part, count, n).T for part in (q, qd, qdd)]
    return following, step_derivative(graph, integrator, dt, stages, chi, turn), pivots


def step_derivative(
    graph: ArmGraph, integrator: Integrator, dt: ca.SX, stages: Sequence[ca.SX], chi: ca.SX, turn: ca.SX
) -> ca.SX:
    """Return the derivatives of x after a step by x, tau and the free parameters (2n, 2n + n + f).

    Args:
        graph: The arm.
        integrator: How the step is taken.
        dt: Its length [s].
        stages: Positions, velocities and accelerations at its stages, each (n, stages).
        chi: Parameters (c).
        turn: See :class:`.ArmGraph`.
    """
    n, count = graph.joints, len(FRACTIONS[integrator])
    start = ca.horzcat(ca.SX.eye(2 * n), ca.SX(2 * n, n + graph.free))
    slope, total = ca.SX(*start.shape), ca.SX(*start.shape)
    for k in range(count):
        A = graph.sensitivity(*(part[:, k] for part in stages), chi, turn)
        moved = start + FRACTIONS[integrator][k] * dt * slope
        by_torque_and_values = ca.horzcat(ca.SX(n, 2 * n), A[:, 2 * n :])
        bent = ca.mtimes(A[:, : 2 * n], moved) + by_torque_and_values
        slope = ca.vertcat(bent, moved[:n, :])
        total += WEIGHTS[integrator][k] * slope
    return start + dt * total


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
