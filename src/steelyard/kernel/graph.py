"""A CasADi function as a list of values: each value is named once and knows what it is made of.

CasADi's instruction list works on reusable memory cells. Here every instruction result becomes a node
of its own (static single assignment), so that later stages can ask who uses a value and until when.
"""

from __future__ import annotations

from dataclasses import dataclass

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
