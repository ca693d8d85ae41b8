"""Cutting steps into chunks and giving values their slots."""

from __future__ import annotations

import casadi
import pytest

from steelyard.kernel.program import (
    CONSTANT,
    INPUT,
    MULTIPLY_ADD,
    SINCOS,
    chunks_from_steps,
    graph_from_function,
    steps_from_graph,
)


@pytest.mark.parametrize("size", [1, 3, 10, 1000])
def test_each_chunk_reads_only_what_is_in_its_slot(mixed: casadi.Function, size: int) -> None:
    graph = graph_from_function(mixed)
    steps = steps_from_graph(graph, fuse=True)
    chunking = chunks_from_steps(steps, graph, size)
    assert [step for chunk in chunking.chunks for step in chunk.steps] == steps
    holds: dict[int, int] = {}  # slot -> node
    for chunk in chunking.chunks:
        assert len(chunk.steps) <= size
        for node, slot in chunk.reads.items():
            assert holds[slot] == node
        assert not set(chunk.reads.values()) & set(chunk.writes.values())
        holds.update({slot: node for node, slot in chunk.writes.items()})
        known = {result for step in chunk.steps for result in step.results} | chunk.reads.keys()
        used = {argument for step in chunk.steps for argument in step.arguments}
        assert all(node in known or graph.operations[node] in (INPUT, CONSTANT) for node in used)
    assert set(holds) == set(range(chunking.slots))


def test_slots_are_used_again() -> None:
    x = casadi.SX.sym("x")
    y = x
    for _ in range(100):
        y = casadi.sin(y)
    graph = graph_from_function(casadi.Function("chain", [x], [y]))
    chunking = chunks_from_steps(steps_from_graph(graph, fuse=True), graph, 1)
    assert len(chunking.chunks) == 100
    assert chunking.slots <= 2


def test_products_are_fused_only_where_the_processor_can() -> None:
    x = casadi.SX.sym("x", 3)
    graph = graph_from_function(casadi.Function("fused", [x], [x[0] * x[1] + x[2]]))
    assert [step.operation for step in steps_from_graph(graph, fuse=True)] == [MULTIPLY_ADD]
    assert [step.operation for step in steps_from_graph(graph, fuse=False)] == [casadi.OP_MUL, casadi.OP_ADD]


def test_sine_and_cosine_of_one_angle_are_one_step() -> None:
    x = casadi.SX.sym("x", 2)
    outputs = [casadi.sin(x[0]), casadi.cos(x[0]), casadi.sin(x[1])]
    graph = graph_from_function(casadi.Function("angles", [x], [casadi.vertcat(*outputs)]))
    assert [step.operation for step in steps_from_graph(graph, fuse=True)] == [SINCOS, casadi.OP_SIN]
