"""A CasADi function over boxes instead of points: what its values can be, rounding included.

Every instruction of the function's list works on intervals in midpoint-radius form (:mod:`intervals`), K boxes at a
time. Values used twice count as if they were independent, so a radius is an upper bound; it shrinks in proportion to
those of the inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from ...errors import DesignError
from ...kernel.graph import CONSTANT, INPUT, Graph, graph_from_function
from .intervals import ROUNDING, RULES, Interval, sine_and_cosine, widened

# Radii are sums of positive products; so many roundings of theirs are covered by this factor.
_OUTWARD = 1 + 1e-11
# Boxes taken through the list together: all live values then fit the processor's second cache.
_BLOCK = 512
# Instructions one after the other whose rounding the widths of entering values cover (intervals.ROUNDING).
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
        count = self._checked(middles, radii)
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

    def _checked(self, middles: Sequence[np.ndarray], radii: Sequence[np.ndarray]) -> int:
        rows = self.graph.input_rows
        count = middles[0].shape[-1] if len(middles) else 0
        wanted = [(size, count) for size in rows]
        for what, arrays in (("middles", middles), ("radii", radii)):
            got = [np.shape(array) for array in arrays]
            if got != wanted:
                raise DesignError(f"function '{self.graph.name}': {what} have shapes {got}; allowed are {wanted}")
        if not all((radius >= 0).all() for radius in radii):
            raise DesignError(f"function '{self.graph.name}': a radius is negative or NaN; allowed is from 0")
        return count

    @cached_property
    def _last_use(self) -> list[list[int]]:
        """Which nodes are not needed any more after each node."""
        last = {source: node for node, sources in self._sources() for source in sources}
        dead: list[list[int]] = [[] for _ in self.graph.operations]
        kept = set(self.graph.outputs)
        for source, node in last.items():
            if source not in kept:
                dead[node].append(source)
        return dead

    def _sources(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        for node, operation in enumerate(self.graph.operations):
            yield node, () if operation == INPUT else self.graph.arguments[node]

    def _swept(self, middle: np.ndarray, radius: np.ndarray) -> Iterator[tuple[int, Interval]]:
        """Take some boxes through the list and yield the interval of each output row."""
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
            f"rounding is accounted for up to {_DEEPEST}, so no bound can be promised"
        )
    return Enclosure(graph)


def _depth(graph: Graph) -> int:
    depths: list[int] = []
    for operation, sources in zip(graph.operations, graph.arguments, strict=True):
        depths.append(0 if operation == INPUT else 1 + max((depths[source] for source in sources), default=0))
    return max(depths, default=0)


def enclose(function: ca.Function, middles: Sequence[np.ndarray], radii: Sequence[np.ndarray]) -> list[Box]:
    """Return middles and radii (nnz, K) of every output of an SX function over K boxes.

    Args:
        function: SX function whose inputs are dense columns.
        middles: Middle of each input (rows, K).
        radii: Radius of each input (rows, K).

    Raises:
        DesignError: If shapes do not fit, or an operation has no interval rule.
    """
    return enclosure_of(function)(middles, radii)
