"""The program of a CasADi function: its graph of values, the steps that compute them, and chunks of steps.

CasADi's instruction list works on reusable memory cells. In the graph every instruction result is a node of its own
(static single assignment), so that later stages know which nodes use a value.

Steps fuse products into sums and pair sine and cosine of an angle. Fusing is decided here, on the graph, and never by
LLVM: the rounding of a result depends on the function and the processor alone, not on how steps are cut into chunks.

LLVM's time grows faster than the length of a block, so each chunk becomes a function of its own. A value that a later
chunk needs waits in a slot of scratch memory; a slot is free again after its last reader.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import casadi

from ..errors import KernelError

INPUT = casadi.OP_INPUT
CONSTANT = casadi.OP_CONST

_COPIES = (casadi.OP_ASSIGN, casadi.OP_LIFT)


@dataclass(frozen=True)
class Graph:
    """The values of one function, in an order in which they can be computed.

    Attributes:
        name: Name of the CasADi function, for messages.
        operations: CasADi operation id of each node.
        arguments: Nodes that each node is computed from; an input node holds its input row instead.
        constants: Value of each constant node.
        outputs: Node of each output row; ``None`` for a row that is constantly zero.
        input_rows: Number of rows of each input; input rows are numbered through all inputs.
        output_rows: Number of rows (structural non-zeros) of each output, likewise.
    """

    name: str
    operations: list[int]
    arguments: list[tuple[int, ...]]
    constants: dict[int, float]
    outputs: list[int | None]
    input_rows: tuple[int, ...]
    output_rows: tuple[int, ...]


def graph_from_function(function: casadi.Function) -> Graph:
    """Read the instruction list of an SX function.

    Args:
        function: CasADi SX function whose inputs are dense column vectors.

    Raises:
        KernelError: If the function is no SX function or an input is no dense column.
    """
    _check_function(function)
    input_rows = tuple(function.size1_in(k) for k in range(function.n_in()))
    output_rows = tuple(function.nnz_out(k) for k in range(function.n_out()))
    input_start, output_start = _starts(input_rows), _starts(output_rows)
    graph = Graph(function.name(), [], [], {}, [None] * sum(output_rows), input_rows, output_rows)
    cell: dict[int, int] = {}  # memory cell -> node that it holds now
    count = range(function.n_instructions())
    reading = zip(
        map(function.instruction_id, count),
        map(function.instruction_input, count),
        map(function.instruction_output, count),
        strict=True,
    )
    for index, (operation, sources, results) in enumerate(reading):
        if operation == casadi.OP_OUTPUT:
            graph.outputs[output_start[results[0]] + results[1]] = cell[sources[0]]
            continue
        if operation in _COPIES:
            cell[results[0]] = cell[sources[0]]
            continue
        if operation == INPUT:
            arguments = (input_start[sources[0]] + sources[1],)
        else:
            arguments = tuple([cell[source] for source in sources])
        node = len(graph.operations)
        if operation == CONSTANT:
            graph.constants[node] = function.instruction_constant(index)
        graph.operations.append(operation)
        graph.arguments.append(arguments)
        cell[results[0]] = node
    return graph


def _starts(rows: tuple[int, ...]) -> list[int]:
    return [sum(rows[:k]) for k in range(len(rows))]


def _check_function(function: casadi.Function) -> None:
    if not function.is_a("SXFunction"):
        raise KernelError(
            f"function '{function.name()}': got a {function.class_name()}, allowed is an SXFunction, "
            "which its method expand() may give"
        )
    for k in range(function.n_in()):
        sparsity = function.sparsity_in(k)
        if not (sparsity.is_dense() and sparsity.size2() <= 1):
            raise KernelError(
                f"function '{function.name()}': input '{function.name_in(k)}' is {sparsity.dim(True)}, "
                "allowed is a dense column vector"
            )


# Operations of our own, beside CasADi's (whose numbers are not negative).
MULTIPLY_ADD = -1  # a * b + c
MULTIPLY_SUBTRACT = -2  # a * b - c
NEGATIVE_MULTIPLY_ADD = -3  # c - a * b
SINCOS = -4

_PRODUCTS = (casadi.OP_MUL, casadi.OP_SQ)
_ANGLES = (casadi.OP_SIN, casadi.OP_COS)


class ProgramStep(NamedTuple):
    """One operation: nodes it computes (usually one; sine and cosine two) and nodes it needs."""

    operation: int
    results: tuple[int, ...]
    arguments: tuple[int, ...]


def steps_from_graph(graph: Graph, *, fuse: bool) -> list[ProgramStep]:
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


def _plain(graph: Graph, node: int) -> ProgramStep:
    return ProgramStep(graph.operations[node], (node,), graph.arguments[node])


def _fused(graph: Graph, node: int, uses: list[int]) -> ProgramStep:
    """Return a sum or difference with a product that no other node uses as one step."""
    operation = graph.operations[node]
    if operation not in (casadi.OP_ADD, casadi.OP_SUB):
        return _plain(graph, node)
    left, right = graph.arguments[node]
    if _is_lone_product(graph, right, uses):
        fused = MULTIPLY_ADD if operation == casadi.OP_ADD else NEGATIVE_MULTIPLY_ADD
        return ProgramStep(fused, (node,), (*_factors(graph, right), left))
    if _is_lone_product(graph, left, uses):
        fused = MULTIPLY_ADD if operation == casadi.OP_ADD else MULTIPLY_SUBTRACT
        return ProgramStep(fused, (node,), (*_factors(graph, left), right))
    return _plain(graph, node)


def _is_lone_product(graph: Graph, node: int, uses: list[int]) -> bool:
    return uses[node] == 1 and graph.operations[node] in _PRODUCTS


def _factors(graph: Graph, node: int) -> tuple[int, int]:
    factors = graph.arguments[node]
    return factors[0], factors[-1]


def _needed(steps: list[ProgramStep], graph: Graph) -> list[ProgramStep]:
    """Drop steps whose results reach no output, among them the products that were fused."""
    wanted = {node for node in graph.outputs if node is not None}
    needed = []
    for step in reversed(steps):
        if step.results[0] in wanted:
            wanted.update(step.arguments)
            needed.append(step)
    needed.reverse()
    return needed


def _paired(steps: list[ProgramStep]) -> list[ProgramStep]:
    """Compute sine and cosine of the same angle together, where the first of them stood."""
    nodes: dict[int, dict[int, int]] = {}  # angle -> operation -> the first node that computes it
    for operation, results, arguments in steps:
        if operation in _ANGLES:
            nodes.setdefault(arguments[0], {}).setdefault(operation, results[0])
    pair_of = {
        node: ProgramStep(SINCOS, (both[casadi.OP_SIN], both[casadi.OP_COS]), (angle,))
        for angle, both in nodes.items()
        if len(both) == 2
        for node in both.values()
    }
    # A pair stands where its first half was; its second appearance drops out.
    return list(dict.fromkeys(pair_of.get(step.results[0], step) for step in steps))


@dataclass(frozen=True)
class Chunk:
    """Steps that become one machine function.

    Attributes:
        steps: The steps, in order.
        reads: Slot of each node that an earlier chunk computed and this one needs.
        writes: Slot of each node that this chunk computes and a later one needs.
    """

    steps: list[ProgramStep]
    reads: dict[int, int]
    writes: dict[int, int]


@dataclass(frozen=True)
class Chunking:
    """All chunks of a function and the number of slots they need."""

    chunks: list[Chunk]
    slots: int


def chunks_from_steps(steps: list[ProgramStep], graph: Graph, size: int) -> Chunking:
    """Cut steps into chunks of at most ``size`` steps and give waiting values their slots."""
    count = max(1, -(-len(steps) // size))
    even = -(-len(steps) // count)
    parts = [steps[k * even : (k + 1) * even] for k in range(count)]
    needs = [_needs_from_outside(part, graph) for part in parts]
    last_reader = {node: k for k, need in enumerate(needs) for node in need}
    slot_of: dict[int, int] = {}
    free: list[int] = []
    slots = 0
    chunks = []
    for k, (part, need) in enumerate(zip(parts, needs, strict=True)):
        writes = {}
        for node in (result for step in part for result in step.results if result in last_reader):
            if not free:
                free.append(slots)
                slots += 1
            slot_of[node] = writes[node] = free.pop()
        chunks.append(Chunk(part, {node: slot_of[node] for node in need}, writes))
        # Only now: this chunk reads a slot for one vector after it has written another for the vector before.
        free.extend(slot_of[node] for node in need if last_reader[node] == k)
    return Chunking(chunks, slots)


def _needs_from_outside(part: list[ProgramStep], graph: Graph) -> dict[int, None]:
    """Return the computed nodes that a part uses but does not compute, in order of use."""
    inside = {result for step in part for result in step.results}
    return {
        argument: None
        for step in part
        for argument in step.arguments
        if argument not in inside and graph.operations[argument] not in (INPUT, CONSTANT)
    }
