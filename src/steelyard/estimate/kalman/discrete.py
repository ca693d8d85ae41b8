"""One step of the state in time, with its exact derivatives: the chain rule through every stage of the integrator.

The state is ``x = [qd; q]``; the torque is held over the step. Forward Euler (P1) is ``x' = x + dt [qdd; qd]``, the
classical Runge-Kutta method is of order four.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import casadi as ca

from .arm_graph import ArmGraph

Integrator = Literal["euler", "rk4"]

FRACTIONS: dict[str, tuple[float, ...]] = {"euler": (0.0,), "rk4": (0.0, 0.5, 0.5, 1.0)}
"""How far each stage lies within the step, reached with the slope of the stage before."""

WEIGHTS: dict[str, tuple[float, ...]] = {"euler": (1.0,), "rk4": (1 / 6, 1 / 3, 1 / 3, 1 / 6)}
"""What the slope of each stage counts in the step."""


@dataclass(frozen=True, eq=False)
class DiscreteStep:
    """A step written in symbols.

    Attributes:
        following: State after the step (2n).
        derivative: Its derivatives by x, tau and the free parameters (2n, 2n + n + f).
        pivots: Pivots of the inertia matrix at all stages.
    """

    following: ca.SX
    derivative: ca.SX
    pivots: ca.SX


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
) -> DiscreteStep:
    """Return a step of ``dt`` [s] from x with its derivatives; a direction that is held has none."""
    n, count = graph.joints, len(FRACTIONS[integrator])
    q, qd, qdd, following, pivots = stage_points(graph, integrator)(x, tau, chi, turn, dt)
    stages = [ca.reshape(part, count, n).T for part in (q, qd, qdd)]
    return DiscreteStep(following, step_derivative(graph, integrator, dt, stages, chi, turn), pivots)


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
