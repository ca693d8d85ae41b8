"""Acceleration of an arm and its derivatives, from the model's own regressor, and projection to possible arms.

With W the columns of the regressor that are filtered, ``tau = W(q, qd, qdd) chi`` is linear in qdd:
``M = d(W chi)/dqdd``, ``N = W(q, qd, 0) chi`` and ``qdd = M^-1 (tau - N)`` (P1.7). Derivatives follow from the same
equation at that qdd, by the rule of implicit functions: ``M dqdd = dtau - W dchi - d(W chi)/dq dq - d(W chi)/dqd dqd``,
so that the acceleration itself is never differentiated by the parameters.

Coulomb friction has the direction ``tanh(turn)``. Held, ``turn`` (n) is a velocity over a width that is given from
outside; smooth, it is one over the width and is multiplied by the velocity, which friction then follows at all times.

Parameters are held at those of a possible arm: an inertia matrix that is positive definite, with a margin.
``u^T M(q, chi) u`` is linear in chi. Where the k-th pivot of ``M = L D L^T`` is too small, that form is d_k with
``u = L^-T e_k``, and ``a^T chi >= d`` with ``a = d(u^T M u)/dchi`` is an inequality that every possible arm obeys. The
parameters are moved onto it by as little as can be in the measure of their own information,
``dchi = P a (d - d_k) / (a^T P a)`` (projection of a constrained Kalman filter): what the data know well stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
from scipy.linalg import solve_triangular

from ...effects import EFFECTS
from ...errors import EstimateError
from ...model import Model, refuse_history
from ...physics import inertia_matrix, inverse_dynamics


@dataclass(frozen=True, eq=False)
class ArmGraph:
    """The equations of motion of n joints with c parameters, f of them free.

    Attributes:
        acceleration: ``(q, qd, tau, chi, turn) -> (qdd (n), pivots (n))``; the pivots are those of M's factors
            L D L^T: all are above zero where M is positive definite.
        sensitivity: ``(q, qd, qdd, chi, turn) -> A (n, 3n + f)``, the derivatives of qdd by qd, q, tau and the free
            parameters, side by side.
        inertia: ``(q, chi) -> (M (n, n), pivots (n))``.
        inertia_row: ``(q, u) -> a (f)``, the derivatives of ``u^T M(q, chi) u`` by the free parameters.
        joints: n.
        parameters: c.
        free: f.
        held: Whether the direction of friction is held, and not that of the velocity at every instant.
        coupling: C (n, n) with ``q_motor = C q``.
    """

    acceleration: ca.Function
    sensitivity: ca.Function
    inertia: ca.Function
    inertia_row: ca.Function
    joints: int
    parameters: int
    free: int
    held: bool
    coupling: np.ndarray


def arm_graph(model: Model, columns: Sequence[str], free: Sequence[int], *, loaded: bool, held: bool) -> ArmGraph:
    """Return the graph of an arm.

    Args:
        model: The model; one equation a joint.
        columns: Names of the parameters, c of them; all others count as zero.
        free: Which of them are estimated.
        loaded: Whether the payload is carried.
        held: Whether the direction of friction is held.

    Raises:
        EstimateError: If there is not one equation a joint, or an effect needs inertias that the filter estimates.
    """
    if model.measured in ("both", "difference"):
        raise EstimateError(
            f"the Kalman filter needs one torque equation a joint, the model has torque '{model.measured}'; "
            "choose `--torque motor` or `--torque joint`"
        )
    refuse_history(model, "the Kalman filter")
    _refuse_known_inertias(model)
    motion = model.motion
    joints = motion.q.shape[0]
    turn = ca.SX.sym("turn", joints)
    places = [model.names.index(name) for name in columns]
    turned = replace(motion, turn=turn if held else turn * motion.qd, inertias=None)
    W = model.regressor_of(model.terms_in(turned), loaded=loaded)[:, places]
    chi, tau = ca.SX.sym("chi", len(places)), ca.SX.sym("tau", joints)
    torque, M = _torque_and_inertia(model, places, W, chi)
    still = ca.SX.zeros(joints)
    qdd, pivots = solved(M, tau - ca.substitute(torque, motion.qdd, still))
    by_state = -ca.jacobian(torque, ca.vertcat(motion.qd, motion.q))
    A, _ = solved(M, ca.horzcat(by_state, ca.SX.eye(joints), -W[:, list(free)]))
    own = ca.substitute(W[:, list(free)], ca.vertcat(motion.qd, turn), ca.SX.zeros(2 * joints))
    row = ca.mtimes(motion.qdd.T, own - ca.substitute(own, motion.qdd, still)).T
    q, qd, acceleration = motion.q, motion.qd, motion.qdd
    return ArmGraph(
        _function("acceleration", [q, qd, tau, chi, turn], [qdd, pivots]),
        _function("sensitivity", [q, qd, acceleration, chi, turn], [A]),
        _function("inertia", [q, chi], [M, pivots]),
        _function("inertia_row", [q, acceleration], [row]),
        joints, len(places), len(free), held, model.robot.motor_coupling(),
    )  # fmt: skip


def _refuse_known_inertias(model: Model) -> None:
    for effect in model.effects:
        if EFFECTS[effect].needs_inertias:
            raise EstimateError(
                f"effect '{effect}' ({EFFECTS[effect].summary}) is computed with inertias of an earlier fit, and the "
                "Kalman filter estimates them as it goes; leave the effect out, or choose a method of least squares"
            )


def _function(name: str, inputs: list[ca.SX], outputs: list[ca.SX]) -> ca.Function:
    return ca.Function(name, inputs, [ca.cse(ca.densify(part)) for part in outputs])


def _torque_and_inertia(model: Model, places: list[int], W: ca.SX, chi: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return ``W chi`` (n) and ``d(W chi)/dqdd`` (n, n).

    For the links both come from Newton's and Euler's recursion, which is the same function as their columns of the
    regressor and much shorter; for all else from the columns.
    """
    motion, robot = model.motion, model.robot
    inertias = ca.SX(10 * len(robot.bodies), 1)
    others = []
    for k, place in enumerate(places):
        if model.parameters[place].effect == "inertia":
            inertias[place] = chi[k]
        else:
            others.append(k)
    rest = ca.mtimes(W[:, others], chi[others])
    torque = inverse_dynamics(robot, motion.q, motion.qd, motion.qdd, inertias) + rest
    return torque, inertia_matrix(robot, motion.q, inertias) + ca.jacobian(rest, motion.qdd)


def solved(M: ca.SX, right: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return ``M^-1 B`` of a symmetric matrix and the pivots D (n) of its factors ``L D L^T``."""
    size = M.shape[0]
    low, pivots = ca.SX.eye(size), []
    for k in range(size):
        before = [low[k, j] * pivots[j] for j in range(k)]
        pivots.append(M[k, k] - sum((before[j] * low[k, j] for j in range(k)), ca.SX(0)))
        for row in range(k + 1, size):
            low[row, k] = (M[row, k] - sum((before[j] * low[row, j] for j in range(k)), ca.SX(0))) / pivots[k]
    rows = [right[k, :] for k in range(size)]
    for k in range(size):
        for j in range(k):
            rows[k] = rows[k] - low[k, j] * rows[j]
    rows = [row / pivot for row, pivot in zip(rows, pivots, strict=True)]
    for k in reversed(range(size)):
        for j in range(k + 1, size):
            rows[k] = rows[k] - low[j, k] * rows[j]
    return ca.vertcat(*rows), ca.vertcat(*pivots)


TARGET = 1.2
"""Pivots that are too small are raised to this many times the least."""

TRIES = 20
"""Pivots that are raised one after the other at a posture, at most."""


def possible_move(
    graph: ArmGraph, free: list[int], q: np.ndarray, chi: np.ndarray, least: np.ndarray, root: np.ndarray
) -> np.ndarray | None:
    """Return how the free parameters must move (f,) for M(q) to have pivots of at least ``least``; None if none helps.

    Args:
        graph: The arm.
        free: Which parameters are free.
        q: Posture (n,).
        chi: All parameters (c,).
        least: Least pivots (n,).
        root: ``R_pp^-1`` (f, f), the root of their covariance.
    """
    values = chi.copy()
    for _ in range(TRIES):
        M = np.asarray(graph.inertia(q, values)[0])
        pivots, u = _worst(M, least)
        if u is None:
            return values[free] - chi[free]
        a = root.T @ np.asarray(graph.inertia_row(q, u)).ravel()
        weight = a @ a
        if not (np.isfinite(weight) and weight > 0):
            return None
        values[free] += root @ a * (pivots[1] - pivots[0]) / weight
    return None


def _worst(M: np.ndarray, least: np.ndarray) -> tuple[tuple[float, float], np.ndarray | None]:
    """Return the first pivot that is too small with its target, and the direction that shows it; None if none is."""
    size = len(M)
    low, pivots = np.eye(size), np.zeros(size)
    for k in range(size):
        pivots[k] = M[k, k] - (low[k, :k] ** 2) @ pivots[:k]
        if not pivots[k] >= least[k]:
            unit = np.zeros(k + 1)
            unit[k] = 1.0
            u = np.zeros(size)
            u[: k + 1] = solve_triangular(low[: k + 1, : k + 1].T, unit)
            return (float(pivots[k]), TARGET * float(least[k])), u
        low[k + 1 :, k] = (M[k + 1 :, k] - low[k + 1 :, :k] @ (low[k, :k] * pivots[:k])) / pivots[k]
    return (0.0, 0.0), None
