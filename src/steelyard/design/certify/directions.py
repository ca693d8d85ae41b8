"""Where a model depends on the direction of motion: columns that are affine in the signs of velocities.

Coulomb friction is ``Fc sign(x)`` with x a joint's velocity or a motor's own. At a reversal the sign is taken as its
whole range, so bounds need the signs as quantities of their own: ``D = D_0 + sum_k s_k D_k``, ``s_k = sign(a_k qd)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
import numpy as np

from ...errors import DesignError
from ...kernel.graph import CONSTANT, INPUT, Graph, graph_from_function

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
            f"function '{self._graph.name}': a sign enters in a way that cannot be bounded; "
            "allowed are constants times signs of velocities"
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
