"""Interval enclosures of CasADi functions: bounds on their values over boxes, rounding included.

Every instruction of the function's list works on intervals in midpoint-radius form (:data:`RULES`), K boxes at a
time. Values used twice count as if they were independent, so a radius is an upper bound; it shrinks in proportion to
those of the inputs.

An interval is a middle c and a radius r >= 0: all x with ``|x - c| <= r``. Wherever the operation allows it, the middle
of the result is the operation applied to the middles. The middle of a whole graph is then its value at the middle of
the inputs, and the radius says how far the function can be from there.

Rounding: errors of sums, products and roots are those of exact operations on operands that are off by a relative
1e-16, so it is enough to widen what enters a graph and what leaves the functions below that are no
such operation. These are widened here, by :data:`ROUNDING` of their size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from ...errors import DesignError
from ...kernel.program import CONSTANT, INPUT, Graph, graph_from_function

Number = np.ndarray | float
Interval = tuple[Number, Number]
"""Middle and radius, each an array (K,), or a number for what is the same in all columns."""

Rule = Callable[..., Interval]

ROUNDING = 1e-13
"""Relative width given to entering values: about 900 roundings, one after the other."""


def widened(middle: Number, radius: Number) -> Interval:
    """Return the interval with its radius grown by the rounding of its middle."""
    return middle, radius + ROUNDING * np.abs(middle)


def _mul(a: Interval, b: Interval) -> Interval:
    return a[0] * b[0], np.abs(a[0]) * b[1] + a[1] * (np.abs(b[0]) + b[1])


def _square(a: Interval) -> Interval:
    return a[0] * a[0], a[1] * (2 * np.abs(a[0]) + a[1])


def _inverse(a: Interval) -> Interval:
    size = np.abs(a[0])
    nearest = size - a[1]
    away = nearest > 0
    middle = np.where(away, 1 / np.where(away, a[0], 1.0), 0.0)
    # An interval that holds zero has the whole line as its inverse.
    return middle, np.where(away, a[1] / np.where(away, size * nearest, 1.0), np.inf)


def _divide(a: Interval, b: Interval) -> Interval:
    return _mul(a, _inverse(b))


def _square_root(a: Interval) -> Interval:
    """``|sqrt(x) - sqrt(c)| = |x - c| / (sqrt(x) + sqrt(c))``, largest at the lower end; only x >= 0 is looked at."""
    middle = np.sqrt(np.maximum(a[0], 0.0))
    below = middle + np.sqrt(np.maximum(a[0] - a[1], 0.0))
    safe = np.where(below > 0, below, 1.0)
    return middle, np.where(below > 0, a[1] / safe, np.sqrt(np.maximum(a[0] + a[1], 0.0)))


def sine_and_cosine(a: Interval) -> tuple[Interval, Interval]:
    """Return both of the same angle.

    ``sin(c + d) - sin(c) = cos(c) sin(d) - sin(c) (1 - cos(d))`` with ``|sin d| <= min(d, 1)`` and
    ``1 - cos d <= min(d^2 / 2, 2)``; likewise the cosine.
    """
    sine, cosine = np.sin(a[0]), np.cos(a[0])
    first, second = np.minimum(a[1], 1.0), np.minimum(0.5 * a[1] * a[1], 2.0)
    sine_size, cosine_size = np.abs(sine), np.abs(cosine)
    sine_radius = cosine_size * first + sine_size * second
    cosine_radius = sine_size * first + cosine_size * second
    return widened(sine, sine_radius), widened(cosine, cosine_radius)


def _hyperbolic_tangent(a: Interval) -> Interval:
    """The slope is largest at the point of the interval nearest zero."""
    nearest = np.maximum(np.abs(a[0]) - a[1], 0.0)
    return widened(np.tanh(a[0]), np.minimum(a[1] * (1 - np.tanh(nearest) ** 2), 2.0))


def _arc_tangent(a: Interval) -> Interval:
    nearest = np.maximum(np.abs(a[0]) - a[1], 0.0)
    return widened(np.arctan(a[0]), np.minimum(a[1] / (1 + nearest**2), np.pi))


def _exponential(a: Interval) -> Interval:
    middle = np.exp(a[0])
    return widened(middle, middle * np.expm1(a[1]))


def _logarithm(a: Interval) -> Interval:
    """The slope is largest at the lower end; an interval that reaches zero has the whole line."""
    inside = np.asarray(a[0] > a[1])
    middle = np.where(inside, a[0], 1.0)
    radius = -np.log1p(-np.where(inside, a[1], 0.0) / middle)
    return widened(np.log(middle), np.where(inside, radius + ROUNDING, np.inf))


def _floor(a: Interval) -> Interval:
    room = a[1] + ROUNDING * np.abs(a[0])
    low, high = np.floor(a[0] - room), np.floor(a[0] + room)
    return 0.5 * (low + high), 0.5 * (high - low)


def _sign(a: Interval) -> Interval:
    """The whole of [-1, 1] where the interval holds zero."""
    decided = np.abs(a[0]) > a[1]
    return np.where(decided, np.sign(a[0]), 0.0), np.where(decided, 0.0, 1.0)


def _truth(surely: np.ndarray, possibly: np.ndarray) -> Interval:
    middle = np.where(surely, 1.0, np.where(possibly, 0.5, 0.0))
    return middle, np.where(possibly & ~surely, 0.5, 0.0)


def _less(a: Interval, b: Interval) -> Interval:
    gap, slack = np.asarray(b[0] - a[0]), a[1] + b[1]
    return _truth(gap > slack, gap >= -slack)


def _not(a: Interval) -> Interval:
    size = np.abs(np.asarray(a[0]))
    return _truth((size == 0) & (a[1] == 0), size <= a[1])


def _if_else_zero(condition: Interval, a: Interval) -> Interval:
    size = np.abs(np.asarray(condition[0]))
    surely, never = size > condition[1], (size == 0) & (condition[1] == 0)
    open_radius = np.abs(a[0]) + a[1]
    return np.where(surely, a[0], 0.0), np.where(surely, a[1], np.where(never, 0.0, open_radius))


RULES: dict[int, Rule] = {
    ca.OP_ADD: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    ca.OP_SUB: lambda a, b: (a[0] - b[0], a[1] + b[1]),
    ca.OP_MUL: _mul,
    ca.OP_NEG: lambda a: (-a[0], a[1]),
    ca.OP_TWICE: lambda a: (2 * a[0], 2 * a[1]),
    ca.OP_SQ: _square,
    ca.OP_INV: _inverse,
    ca.OP_DIV: _divide,
    ca.OP_SQRT: _square_root,
    ca.OP_FABS: lambda a: (np.abs(a[0]), a[1]),
    ca.OP_FMIN: lambda a, b: (np.minimum(a[0], b[0]), np.maximum(a[1], b[1])),
    ca.OP_FMAX: lambda a, b: (np.maximum(a[0], b[0]), np.maximum(a[1], b[1])),
    ca.OP_FLOOR: _floor,
    ca.OP_TAN: lambda a: _divide(*sine_and_cosine(a)),
    ca.OP_TANH: _hyperbolic_tangent,
    ca.OP_ATAN: _arc_tangent,
    ca.OP_EXP: _exponential,
    ca.OP_LOG: _logarithm,
    ca.OP_SIGN: _sign,
    ca.OP_LT: _less,
    ca.OP_LE: _less,
    ca.OP_NOT: _not,
    ca.OP_IF_ELSE_ZERO: _if_else_zero,
}

# Radii are sums of positive products; so many roundings of theirs are covered by this factor.
_OUTWARD = 1 + 1e-11
# Boxes taken through the list together: all live values then fit the processor's second cache.
_BLOCK = 512
# Instructions one after the other whose rounding the widths of entering values cover (ROUNDING).
_DEEPEST = 800
_ANGLES = (ca.OP_SIN, ca.OP_COS)
_NAMES = {getattr(ca, name): name.removeprefix("OP_").lower() for name in dir(ca) if name.startswith("OP_")}

Box = tuple[np.ndarray, np.ndarray]
"""Middles and radii, each (rows, K)."""


@dataclass(frozen=True, eq=False)
class Enclosure:
    """A function ready to be evaluated over boxes. Make one with :func:`enclosure_of`.

    Attributes:
        graph: The function's values.
    """

    graph: Graph

    def __call__(self, middles: Sequence[np.ndarray], radii: Sequence[np.ndarray]) -> list[Box]:
        """Return for each output middles and radii (nnz, K): the value at the middles, and how far it can be from it.

        A radius is infinite where nothing can be said (a division by an interval that holds zero).

        Args:
            middles: Middle of each input (rows, K).
            radii: Radius of each input (rows, K), from 0.
        """
        count = middles[0].shape[-1]
        middle, radius = np.concatenate(middles), np.concatenate(radii)
        result = np.zeros((2, len(self.graph.outputs), count))
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            for begin in range(0, count, _BLOCK):
                columns = slice(begin, begin + _BLOCK)
                for row, (c, r) in self._swept(middle[:, columns], radius[:, columns]):
                    result[0, row, columns], result[1, row, columns] = c, r
        lost = ~(np.isfinite(result[0]) & np.isfinite(result[1]))
        result[0, lost], result[1, lost] = 0.0, np.inf
        result[1] *= _OUTWARD
        ends = np.cumsum(self.graph.output_rows)[:-1]
        return list(zip(np.split(result[0], ends), np.split(result[1], ends), strict=True))

    @cached_property
    def _last_use(self) -> list[list[int]]:
        """The nodes that are no longer needed after each node."""
        graph, last = self.graph, {}
        for node, (operation, sources) in enumerate(zip(graph.operations, graph.arguments, strict=True)):
            last.update(dict.fromkeys(() if operation == INPUT else sources, node))
        dead: list[list[int]] = [[] for _ in graph.operations]
        for source, node in last.items():
            if source not in graph.outputs:
                dead[node].append(source)
        return dead

    def _swept(self, middle: np.ndarray, radius: np.ndarray) -> Iterator[tuple[int, Interval]]:
        """Evaluate the function over some boxes and yield the interval of each output row."""
        graph, values = self.graph, {}
        angles: dict[int, tuple[Interval, Interval]] = {}
        for node, (operation, sources) in enumerate(zip(graph.operations, graph.arguments, strict=True)):
            if operation == INPUT:
                values[node] = widened(middle[sources[0]], radius[sources[0]])
                continue
            if operation == CONSTANT:
                constant = graph.constants[node]
                values[node] = constant, ROUNDING * abs(constant)
            elif operation in _ANGLES:
                if sources[0] not in angles:
                    angles[sources[0]] = sine_and_cosine(values[sources[0]])
                values[node] = angles[sources[0]][operation == ca.OP_COS]
            else:
                values[node] = RULES[operation](*[values[source] for source in sources])
            for source in self._last_use[node]:
                del values[source]
        for row, node in enumerate(graph.outputs):
            if node is not None:
                yield row, values[node]


def enclosure_of(function: ca.Function) -> Enclosure:
    """Return an SX function of dense columns as a function of boxes.

    Raises:
        DesignError: If the function has an operation for which no interval rule is known, or is too deep for the
            allowance for rounding.
    """
    graph = graph_from_function(function)
    for operation in graph.operations:
        if operation not in RULES and operation not in (INPUT, CONSTANT, *_ANGLES):
            known = sorted(_NAMES[each] for each in (*RULES, *_ANGLES))
            raise DesignError(
                f"function '{graph.name}': no bound is known for operation '{_NAMES.get(operation, operation)}'; "
                f"allowed are {', '.join(known)}"
            )
    if _depth(graph) > _DEEPEST:
        raise DesignError(
            f"function '{graph.name}': {_depth(graph)} operations follow one another; "
            f"rounding is accounted for up to {_DEEPEST}, so no bound is guaranteed"
        )
    return Enclosure(graph)


def _depth(graph: Graph) -> int:
    depths: list[int] = []
    for operation, sources in zip(graph.operations, graph.arguments, strict=True):
        depths.append(0 if operation == INPUT else 1 + max((depths[source] for source in sources), default=0))
    return max(depths, default=0)
