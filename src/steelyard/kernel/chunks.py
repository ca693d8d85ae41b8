"""Cutting a long list of steps into chunks that LLVM compiles quickly, and where values wait in between.

LLVM's time grows faster than the length of a block, so each chunk becomes a function of its own. A value
that a later chunk needs waits in a slot of scratch memory; a slot is free again after its last reader.
"""

from __future__ import annotations

from dataclasses import dataclass

from .graph import CONSTANT, INPUT, Graph
from .steps import Step


@dataclass(frozen=True)
class Chunk:
    """Steps that become one machine function.

    Attributes:
        steps: The steps, in order.
        reads: Slot of each node that an earlier chunk computed and this one needs.
        writes: Slot of each node that this chunk computes and a later one needs.
    """

    steps: list[Step]
    reads: dict[int, int]
    writes: dict[int, int]


@dataclass(frozen=True)
class Chunking:
    """All chunks of a function and the number of slots they need."""

    chunks: list[Chunk]
    slots: int


def chunks_from_steps(steps: list[Step], graph: Graph, size: int) -> Chunking:
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


def _needs_from_outside(part: list[Step], graph: Graph) -> dict[int, None]:
    """Return the computed nodes that a part uses but does not compute, in order of use."""
    inside = {result for step in part for result in step.results}
    return {
        argument: None
        for step in part
        for argument in step.arguments
        if argument not in inside and graph.operations[argument] not in (INPUT, CONSTANT)
    }
