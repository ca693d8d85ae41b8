"""The torques of an arm with given parameters, written for bounds: smooth part, its rate, and directions of motion.

``tau = tau_smooth(q, qd, qdd) + (D_0 + sum_k s_k D_k) chi`` with ``s_k = sign(a_k qd)``. With every sign held, torques
change at the rate ``tau' = d tau_smooth/dq qd + d tau_smooth/dqd qdd + d tau_smooth/dqdd qddd``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from ...errors import DesignError
from ...model import Model
from ...physics import inverse_dynamics
from ...robot import moved_parameters, transform_from_placement
from .directions import Directions, directions_of
from .enclosure import Enclosure, enclosure_of

Side = Literal["motor", "joint"]


@dataclass(frozen=True, eq=False)
class RowGraph:
    """The smooth entries of a regressor over boxes, for the spread of torques.

    Attributes:
        values: ``(q, qd, qdd) -> w`` (m,), the entries that depend on the motion.
        rates: ``(q, qd, qdd, qddd) -> w'`` (m,).
        rows: Row of each entry (m,).
        columns: Column of each entry (m,).
        factor: ``L`` (p, r) with ``L L^T`` the covariance of the parameters, times the square of the number of sigmas.
    """

    values: Enclosure
    rates: Enclosure
    rows: np.ndarray
    columns: np.ndarray
    factor: np.ndarray


@dataclass(frozen=True, eq=False)
class TorqueGraph:
    """The torques on one side of the gears, n joints, p parameters. Make one with :func:`torque_graph`.

    Attributes:
        joints: Names of the joints.
        values: Torque without its directed part over boxes, ``(q, qd, qdd) -> tau`` (n,).
        rates: Its rate over boxes, ``(q, qd, qdd, qddd) -> tau'`` (n,).
        directions: The directed part of the regressor.
        chi: Values of the parameters (p,).
        spread: How the uncertainty of the parameters enters; None if they are taken as known.
    """

    joints: tuple[str, ...]
    values: Enclosure
    rates: Enclosure
    directions: Directions
    chi: np.ndarray
    spread: RowGraph | None


def torque_graph(
    model: Model,
    chi: ArrayLike,
    side: Side,
    *,
    loaded: bool = True,
    covariance: ArrayLike | None = None,
    sigmas: float = 0.0,
) -> TorqueGraph:
    """Return the torques of an arm with given parameters, ready to be bounded for any motion.

    Args:
        model: The arm and its effects.
        chi: Values of the model's standard parameters (p,). Base parameters are given at the places of the kept ones
            (``BaseParameters.kept_columns``), zero elsewhere.
        side: ``motor`` or ``joint``: torques of the motors, or those that a joint torque sensor feels.
        loaded: Whether the payload, if the model has one, is carried.
        covariance: Covariance of chi (p, p); zero where a parameter is taken as known.
        sigmas: How many standard deviations of the torque are added to its magnitude.

    Raises:
        DesignError: If shapes or numbers do not fit.
    """
    if side not in ("motor", "joint"):
        raise DesignError(f"torque side is {side!r}; allowed: motor, joint")
    one_side = model if model.measured == side else replace(model, measured=side)
    values = np.array(chi, dtype=float)
    if values.shape != (len(one_side.names),) or not np.isfinite(values).all():
        raise DesignError(
            f"chi has shape {values.shape}; allowed are {len(one_side.names)} finite numbers, one for each parameter"
        )
    regressor = one_side.regressor if loaded else one_side.unloaded_regressor
    directions = directions_of(regressor)
    torque = _smooth_torque(one_side, regressor, directions, values, loaded)
    at_point, rate = _with_rate(one_side, torque)
    joints = tuple(body.joint.name for body in model.robot.actuated)
    factor = _scaled_factor(covariance, sigmas, len(values))
    spread = None if factor is None else _row_graph(one_side, regressor, directions, factor)
    values.setflags(write=False)
    return TorqueGraph(joints, at_point, rate, directions, values, spread)


def _with_rate(model: Model, expression: ca.SX) -> tuple[Enclosure, Enclosure]:
    """Return an expression of the motion and its rate along it, over boxes."""
    motion = model.motion
    jerk = ca.SX.sym("qddd", motion.q.shape[0])
    rate = ca.jtimes(expression, ca.vertcat(motion.q, motion.qd, motion.qdd), ca.vertcat(motion.qd, motion.qdd, jerk))
    inputs = [motion.q, motion.qd, motion.qdd]
    value = ca.Function("torque", inputs, [ca.cse(ca.densify(expression))])
    change = ca.Function("torque_rate", [*inputs, jerk], [ca.cse(ca.densify(rate))])
    return enclosure_of(value), enclosure_of(change)


def _smooth_torque(
    model: Model, regressor: ca.Function, directions: Directions, chi: np.ndarray, loaded: bool
) -> ca.SX:
    """Return the torque of all columns without a sign. Rigid bodies by Newton-Euler: a third of the operations."""
    motion = model.motion
    matrix = regressor(motion.q, motion.qd, motion.qdd)
    effects = np.array([parameter.effect for parameter in model.parameters])
    rigid = np.isin(effects, ("inertia", "payload"))
    rest = np.flatnonzero(~rigid & ~directions.columns)
    torque = ca.densify(ca.mtimes(matrix[:, rest.tolist()], ca.DM(chi[rest])))
    if "inertia" not in model.effects:
        return torque
    inertias = chi[effects == "inertia"].copy()
    if loaded and model.payload != "none":
        frame = model.robot.frame(model.payload_link)
        carried = moved_parameters(chi[effects == "payload"], *transform_from_placement(frame.placement))
        inertias[10 * (frame.body - 1) : 10 * frame.body] += carried
    known = ca.sparsify(ca.SX(ca.DM(inertias)))
    return torque + inverse_dynamics(model.robot, motion.q, motion.qd, motion.qdd, known)


def _scaled_factor(covariance: ArrayLike | None, sigmas: float, size: int) -> np.ndarray | None:
    """Return L (p, r) with ``sigmas^2 C = L L^T``, by the eigenvalues of the correlations, as C may be singular."""
    if covariance is None or sigmas == 0:
        return None
    matrix = np.asarray(covariance, dtype=float)
    if matrix.shape != (size, size) or not np.isfinite(matrix).all() or not np.allclose(matrix, matrix.T):
        raise DesignError(f"covariance has shape {matrix.shape}; allowed is a symmetric matrix ({size}, {size})")
    if not (np.isfinite(sigmas) and sigmas > 0):
        raise DesignError(f"sigmas is {sigmas!r}; allowed is a number from 0")
    deviations = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    scale = np.where(deviations > 0, deviations, 1.0)
    variances, axes = np.linalg.eigh(0.5 * (matrix + matrix.T) / np.outer(scale, scale))
    if variances[0] < -1e-9 or np.abs(matrix[deviations == 0]).any():
        raise DesignError(
            "covariance is not positive semi-definite; allowed are no negative variances in any direction"
        )
    # The eigenvalues are rounded: made a little larger, they give no smaller deviation than the covariance does.
    return sigmas * deviations[:, None] * axes * np.sqrt(np.maximum(variances, 0.0) + 1e-14)


def _row_graph(model: Model, regressor: ca.Function, directions: Directions, factor: np.ndarray) -> RowGraph:
    """Return the entries of columns without a sign whose parameters are uncertain."""
    motion = model.motion
    matrix = ca.SX(regressor(motion.q, motion.qd, motion.qdd))
    rows, columns = (np.asarray(index, dtype=int) for index in matrix.sparsity().get_triplet())
    uncertain = np.abs(factor).max(axis=1) > 0
    wanted = np.flatnonzero(~directions.columns[columns] & uncertain[columns])
    entries = matrix.nz[wanted.tolist()]
    return RowGraph(*_with_rate(model, entries), rows[wanted], columns[wanted], factor)
