"""From a graph to the steps that compute it: products are fused into sums, sine and cosine of an angle paired.

Fusing is decided here, on the graph, and never by LLVM. So the rounding of a result depends on the
function and the processor alone, not on how the steps are later cut into pieces.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi

from .graph import CONSTANT, INPUT, Graph

# Operations of our own, beside CasADi's (whose numbers are not negative).
MULTIPLY_ADD = -1  # a * b + c
MULTIPLY_SUBTRACT = -2  # a * b - c
NEGATIVE_MULTIPLY_ADD = -3  # c - a * b
SINCOS = -4

_PRODUCTS = (casadi.OP_MUL, casadi.OP_SQ)
_ANGLES = (casadi.OP_SIN, casadi.OP_COS)


class Step(NamedTuple):
    """One operation: nodes it computes (usually one; sine and cosine two) and nodes it needs."""

    operation: int
    results: tuple[int, ...]
    arguments: tuple[int, ...]


def steps_from_graph(graph: Graph, *, fuse: bool) -> list[Step]:
    """Return the steps that compute all outputs, in order.

    Args:
        graph: Values of the function.
        fuse: Whether the processor multiplies and adds in one instruction.
    """
    uses = _count_uses(graph)
    steps = [_fused(graph, node, uses) if fuse else _plain(graph, node) for node in _computed(graph)]
    return _paired(_needed(steps, graph))


def _computed(graph: Graph) -> list[int]:
    return [node for node, operation in enumerate(graph.operations) if operation not in (INPUT, CONSTANT)]


def _count_uses(graph: Graph) -> list[int]:
    uses = [0] * len(graph.operations)
    for node in _computed(graph):
        for argument in graph.arguments[node]:
            uses[argument] += 1
    for node in graph.outputs:
        if node is not None:
            uses[node] += 1
    return uses


def _plain(graph: Graph, node: int) -> Step:
    return Step(graph.operations[node], (node,), graph.arguments[node])


def _fused(graph: Graph, node: int, uses: list[int]) -> Step:
    """Return a sum or difference with a product that nobody else needs as one step."""
    operation = graph.operations[node]
    if operation not in (casadi.OP_ADD, casadi.OP_SUB):
        return _plain(graph, node)
    left, right = graph.arguments[node]
    if _is_lone_product(graph, right, uses):
        fused = MULTIPLY_ADD if operation == casadi.OP_ADD else NEGATIVE_MULTIPLY_ADD
        return Step(fused, (node,), (*_factors(graph, right), left))
    if _is_lone_product(graph, left, uses):
        fused = MULTIPLY_ADD if operation == casadi.OP_ADD else MULTIPLY_SUBTRACT
        return Step(fused, (node,), (*_factors(graph, left), right))
    return _plain(graph, node)


def _is_lone_product(graph: Graph, node: int, uses: list[int]) -> bool:
    return uses[node] == 1 and graph.operations[node] in _PRODUCTS


def _factors(graph: Graph, node: int) -> tuple[int, int]:
    factors = graph.arguments[node]
    return factors[0], factors[-1]


def _needed(steps: list[Step], graph: Graph) -> list[Step]:
    """Drop steps whose results reach no output, among them the products that were fused."""
    wanted = {node for node in graph.outputs if node is not None}
    kept = []
    for step in reversed(steps):
        if step.results[0] in wanted:
            wanted.update(step.arguments)
            kept.append(step)
    kept.reverse()
    return kept


def _paired(steps: list[Step]) -> list[Step]:
    """Compute sine and cosine of the same angle together, where the first of them stood."""
    nodes: dict[int, dict[int, int]] = {}  # angle -> operation -> the first node that computes it
    for operation, results, arguments in steps:
        if operation in _ANGLES:
            nodes.setdefault(arguments[0], {}).setdefault(operation, results[0])
    pair_of = {
        node: Step(SINCOS, (both[casadi.OP_SIN], both[casadi.OP_COS]), (angle,))
        for angle, both in nodes.items()
        if len(both) == 2
        for node in both.values()
    }
    # A pair stands where its first half was; its second appearance drops out.
    return list(dict.fromkeys(pair_of.get(step.results[0], step) for step in steps))
