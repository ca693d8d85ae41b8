"""Torques of an arm with given parameters in a form that can be bounded: smooth part, its rate, and signs.

``tau = tau_smooth(q, qd, qdd) + (D_0 + sum_k s_k D_k) chi`` with ``s_k = sign(a_k qd)``. With every sign held, torques
change at the rate ``tau' = d tau_smooth/dq qd + d tau_smooth/dqd qdd + d tau_smooth/dqdd qddd``.

Coulomb friction is ``Fc sign(x)`` with x a joint's velocity or a motor's own. At a reversal the sign is taken as its
whole range, so bounds need the signs as quantities of their own: ``D = D_0 + sum_k s_k D_k``, ``s_k = sign(a_k qd)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from ...configuration import checked, kind_of
from ...errors import DesignError
from ...kernel.program import CONSTANT, INPUT, Graph, graph_from_function
from ...model import Model
from ...physics import inverse_dynamics
from ...robot import moved_parameters, transform_from_placement
from .enclosure import Enclosure, enclosure_of

_SIGN = ca.OP_SIGN
_LESS = (ca.OP_LT, ca.OP_LE)


@dataclass(frozen=True, eq=False)
class Directions:
    """The part of a matrix (n, p) that depends on directions of motion.

    Attributes:
        arguments: Rows a_k (k, n): a direction is the sign of ``a_k qd``.
        constant: D_0 (n, p).
        factors: D_k (k, n, p).
        columns: Which columns (p,) have such entries; in the others all of the above is zero.
    """

    arguments: np.ndarray
    constant: np.ndarray
    factors: np.ndarray
    columns: np.ndarray


def directions_of(function: ca.Function) -> Directions:
    """Return how the matrix of a function ``(q, qd, qdd) -> W`` (n, p) depends on directions of motion.

    Raises:
        DesignError: If a column with a sign depends on the motion in any other way than by signs.
    """
    rows, columns = (np.asarray(index, dtype=int) for index in function.sparsity_out(0).get_triplet())
    size = function.size_out(0)
    graph = graph_from_function(function)
    signed = _signed_nodes(graph)
    flagged = np.zeros(size[1], dtype=bool)
    flagged[[column for column, node in zip(columns, graph.outputs, strict=True) if node in signed]] = True
    reader = _AffineReader(graph, size[0])
    entries = [(row, column, node) for row, column, node in zip(rows, columns, graph.outputs, strict=True)]
    forms = {(row, column): reader.form(node) for row, column, node in entries if flagged[column] and node is not None}
    arguments = np.array(list(reader.arguments)).reshape(-1, size[0])
    constant, factors = np.zeros(size), np.zeros((len(arguments), *size))
    for (row, column), form in forms.items():
        if form.rates.any():
            raise DesignError(
                f"function '{function.name()}': column {column} depends on a sign and on the velocity itself; "
                "torques can be bounded only where these are columns of their own"
            )
        constant[row, column] = form.constant
        for index, factor in form.signs.items():
            factors[index, row, column] = factor
    return Directions(arguments, constant, factors, flagged)


def _signed_nodes(graph: Graph) -> set[int]:
    """Return the nodes that depend on a sign or a comparison."""
    signed: set[int] = set()
    for node, (operation, sources) in enumerate(zip(graph.operations, graph.arguments, strict=True)):
        is_sign = operation == _SIGN or operation in _LESS
        if is_sign or (operation != INPUT and not signed.isdisjoint(sources)):
            signed.add(node)
    return signed


@dataclass(frozen=True, eq=False)
class _Form:
    """``constant + rates qd + sum signs[k] s_k``."""

    constant: float
    rates: np.ndarray
    signs: dict[int, float]

    def plus(self, other: _Form, factor: float) -> _Form:
        signs = {
            key: self.signs.get(key, 0.0) + factor * other.signs.get(key, 0.0) for key in {*self.signs, *other.signs}
        }
        return _Form(self.constant + factor * other.constant, self.rates + factor * other.rates, signs)

    @property
    def is_number(self) -> bool:
        return not self.rates.any() and not any(self.signs.values())


class _AffineReader:
    """Reads nodes of a graph as affine in velocities and signs, and numbers the signs it meets."""

    def __init__(self, graph: Graph, joints: int) -> None:
        self.arguments: dict[tuple[float, ...], int] = {}
        self._graph = graph
        self._joints = joints
        self._zero = _Form(0.0, np.zeros(joints), {})
        self._forms: dict[int, _Form] = {}

    def form(self, node: int) -> _Form:
        if node not in self._forms:
            self._forms[node] = self._read(node)
        return self._forms[node]

    def _read(self, node: int) -> _Form:
        operation, sources = self._graph.operations[node], self._graph.arguments[node]
        if operation == CONSTANT:
            return _Form(self._graph.constants[node], self._zero.rates, {})
        if operation == INPUT:
            return self._velocity(sources[0])
        if operation not in _READERS:
            raise self._refusal()
        return _READERS[operation](self, *[self.form(source) for source in sources])

    def _velocity(self, row: int) -> _Form:
        joint = row - self._graph.input_rows[0]
        if not 0 <= joint < self._joints:
            raise self._refusal()
        return _Form(0.0, np.eye(self._joints)[joint], {})

    def product(self, a: _Form, b: _Form) -> _Form:
        number, other = (a, b) if a.is_number else (b, a)
        if not number.is_number:
            raise self._refusal()
        return self._zero.plus(other, number.constant)

    def sign(self, argument: _Form) -> _Form:
        """Number the sign by its argument; that of the opposite velocity is the opposite of the same sign."""
        if argument.constant != 0 or any(argument.signs.values()) or not argument.rates.any():
            raise self._refusal()
        flip = -1.0 if argument.rates[np.flatnonzero(argument.rates)[0]] < 0 else 1.0
        key = tuple(float(rate) for rate in flip * argument.rates)
        index = self.arguments.setdefault(key, len(self.arguments))
        return _Form(0.0, self._zero.rates, {index: flip})

    def less(self, a: _Form, b: _Form) -> _Form:
        """``a < b`` is 1 or 0: half of one plus the sign. At equality, a reversal, both count."""
        return _Form(0.5, self._zero.rates, {}).plus(self.sign(b.plus(a, -1.0)), 0.5)

    def _refusal(self) -> DesignError:
        return DesignError(
            f"function '{self._graph.name}': a sign enters in a way that cannot be bounded; allowed are constants "
            "times signs of velocities; leave that effect out (--effects), or write its columns without a sign"
        )


_READERS: dict[int, Callable[..., _Form]] = {
    ca.OP_ADD: lambda _, a, b: a.plus(b, 1.0),
    ca.OP_SUB: lambda _, a, b: a.plus(b, -1.0),
    ca.OP_NEG: lambda _, a: a.plus(a, -2.0),
    ca.OP_TWICE: lambda _, a: a.plus(a, 1.0),
    ca.OP_MUL: _AffineReader.product,
    _SIGN: _AffineReader.sign,
    ca.OP_LT: _AffineReader.less,
    ca.OP_LE: _AffineReader.less,
}

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
        chi: Values of the model's standard parameters (p,). Base parameters are given at the places of the base columns
            (``BaseParameters.base_columns``), zero elsewhere.
        side: ``motor`` or ``joint``: torques of the motors, or those that a joint torque sensor measures.
        loaded: Whether the payload, if the model has one, is carried.
        covariance: Covariance of chi (p, p); zero where a parameter is taken as known.
        sigmas: How many standard deviations of the torque are added to its magnitude.

    Raises:
        DesignError: If the side is unknown, or the covariance not positive semi-definite.
    """
    checked(side, kind_of(Side), "torque side", DesignError)
    one_side = model if model.measured == side else replace(model, measured=side)
    values = np.array(chi, dtype=float)
    regressor = one_side.regressor if loaded else one_side.unloaded_regressor
    directions = directions_of(regressor)
    torque = _smooth_torque(one_side, regressor, directions, values, loaded)
    at_point, rate = _with_rate(one_side, torque)
    joints = tuple(body.joint.name for body in model.robot.actuated)
    factor = _scaled_factor(covariance, sigmas)
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


def _scaled_factor(covariance: ArrayLike | None, sigmas: float) -> np.ndarray | None:
    """Return L (p, r) with ``sigmas^2 C = L L^T``, by the eigenvalues of the correlations, as C may be singular."""
    if covariance is None or sigmas == 0:
        return None
    matrix = np.asarray(covariance, dtype=float)
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
