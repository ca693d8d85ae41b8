"""Acceleration of an arm and its derivatives, from the model's own regressor: nothing of the physics is written twice.

With W the columns of the regressor that are filtered, ``tau = W(q, qd, qdd) chi`` is linear in qdd:
``M = d(W chi)/dqdd``, ``N = W(q, qd, 0) chi`` and ``qdd = M^-1 (tau - N)`` (P1.7). Derivatives follow from the same
equation at that qdd, by the rule of implicit functions: ``M dqdd = dtau - W dchi - d(W chi)/dq dq - d(W chi)/dqd dqd``,
so that the acceleration itself is never differentiated by the parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import casadi as ca

from ...errors import EstimateError
from ...model import Model
from ...physics import inertia_matrix, inverse_dynamics


@dataclass(frozen=True, eq=False)
class ArmGraph:
    """The equations of motion of n joints with c parameters, f of them free.

    Attributes:
        acceleration: ``(q, qd, tau, chi) -> (qdd (n), pivots (n))``; the pivots are those of M's factors L D L^T: all
            are above zero where M is positive definite.
        sensitivity: ``(q, qd, qdd, chi) -> A (n, 3n + f)``, the derivatives of qdd by qd, q, tau and the free
            parameters, side by side.
        joints: n.
        parameters: c.
        free: f.
    """

    acceleration: ca.Function
    sensitivity: ca.Function
    joints: int
    parameters: int
    free: int


def arm_graph(
    model: Model, columns: Sequence[str], free: Sequence[int], *, loaded: bool, sign_width: float
) -> ArmGraph:
    """Return the graph of an arm.

    Args:
        model: The model; one equation a joint.
        columns: Names of the parameters, c of them; all others count as zero.
        free: Which of them are estimated.
        loaded: Whether the payload is carried.
        sign_width: Width of the smooth sign in friction [rad/s or m/s]; above 0, or friction has no derivative.

    Raises:
        EstimateError: If there is not one equation a joint.
    """
    _check_equations(model)
    smooth = replace(model, sign_width=float(sign_width))
    motion = smooth.motion
    regressor = smooth.regressor if loaded or model.payload == "none" else smooth.unloaded_regressor
    places = [smooth.names.index(name) for name in columns]
    W = regressor(motion.q, motion.qd, motion.qdd)[:, places]
    joints, count = W.shape
    chi, tau = ca.SX.sym("chi", count), ca.SX.sym("tau", joints)
    torque, M = _torque_and_inertia(smooth, places, W, chi)
    at_rest = ca.substitute(torque, motion.qdd, ca.SX.zeros(joints))
    qdd, pivots = solved(M, tau - at_rest)
    forward = ca.Function(
        "acceleration", [motion.q, motion.qd, tau, chi], [ca.cse(ca.densify(part)) for part in (qdd, pivots)]
    )
    by_state = -ca.jacobian(torque, ca.vertcat(motion.qd, motion.q))
    A, _ = solved(M, ca.horzcat(by_state, ca.SX.eye(joints), -W[:, list(free)]))
    sensitivity = ca.Function("sensitivity", [motion.q, motion.qd, motion.qdd, chi], [ca.cse(ca.densify(A))])
    return ArmGraph(forward, sensitivity, joints, count, len(free))


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
        pivots.append(M[k, k] - _sum(before[j] * low[k, j] for j in range(k)))
        for row in range(k + 1, size):
            low[row, k] = (M[row, k] - _sum(before[j] * low[row, j] for j in range(k))) / pivots[k]
    rows = [right[k, :] for k in range(size)]
    for k in range(size):
        for j in range(k):
            rows[k] = rows[k] - low[k, j] * rows[j]
    rows = [row / pivot for row, pivot in zip(rows, pivots, strict=True)]
    for k in reversed(range(size)):
        for j in range(k + 1, size):
            rows[k] = rows[k] - low[j, k] * rows[j]
    return ca.vertcat(*rows), ca.vertcat(*pivots)


def _sum(terms) -> ca.SX:
    return sum(terms, ca.SX(0))


def _check_equations(model: Model) -> None:
    if model.measured in ("both", "difference"):
        raise EstimateError(
            f"the Kalman filter needs one torque equation a joint, the model has torque '{model.measured}'; "
            "choose `--torque motor` or `--torque joint`"
        )
