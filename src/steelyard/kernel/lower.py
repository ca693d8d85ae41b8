"""From a CasADi function to LLVM text that computes it for a block of samples, and from that to machine code.

A block is at most ``BLOCK`` samples, small enough that everything between two chunks stays in cache. The code
finds its data through a table of row pointers, input rows first and output rows after them; a row holds
the block's samples side by side. All chunks see::

    @chunk(ptr scratch, ptr table, i64 bytes)     bytes: length of a row of this block

and ``@compute`` runs them in order. The last modules that were compiled are cached by their text.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import casadi
import llvmlite.binding as llvm

from . import transcendental
from .emitter import Emitter, Target
from .operations import cost_of, sincos, writer_of
from .program import (
    CONSTANT,
    INPUT,
    SINCOS,
    Chunk,
    Chunking,
    Graph,
    ProgramStep,
    chunks_from_steps,
    graph_from_function,
    steps_from_graph,
)
from .transcendental import register_scalar_functions

BLOCK = 72
"""Samples in a block: 9 cache lines a row, so rows do not fall on the same cache sets as a power of two would."""

CHUNK_SIZE = 1500
"""Steps in a chunk: longer ones compile slowly, shorter ones pass more values through memory."""

_INTRINSICS = {"fma": 3, "fabs": 1, "sqrt": 1, "floor": 1, "ceil": 1, "copysign": 2}


@dataclass(frozen=True)
class Program:
    """A lowered function.

    Attributes:
        name: Name of the CasADi function.
        text: LLVM module that defines ``@compute``.
        target: Processor the text is for.
        input_rows: Number of rows of each input.
        output_rows: Number of rows of each output.
        steps: Number of vector operations for one vector of samples.
        cost: Time of these operations in additions of a vector, about.
        slots: Number of scratch rows of ``BLOCK`` doubles.
    """

    name: str
    text: str
    target: Target
    input_rows: tuple[int, ...]
    output_rows: tuple[int, ...]
    steps: int
    cost: int
    slots: int

    @property
    def n_inputs(self) -> int:
        """Number of input rows, the first of the table."""
        return sum(self.input_rows)

    @property
    def n_rows(self) -> int:
        """Number of rows in the table."""
        return sum(self.input_rows) + sum(self.output_rows)


def lower(function: casadi.Function, target: Target, *, chunk_size: int = CHUNK_SIZE) -> Program:
    """Lower a CasADi SX function for a processor.

    Raises:
        KernelError: If an operation or an input of the function is not supported.
    """
    graph = graph_from_function(function)
    steps = steps_from_graph(graph, fuse=target.fma)
    chunking = chunks_from_steps(steps, graph, chunk_size)
    return Program(
        name=graph.name,
        text=_module(graph, chunking, target),
        target=target,
        input_rows=graph.input_rows,
        output_rows=graph.output_rows,
        steps=len(steps),
        cost=sum(cost_of(step.operation) for step in steps),
        slots=chunking.slots,
    )


def _module(graph: Graph, chunking: Chunking, target: Target) -> str:
    destinations = _destinations(graph)
    parts = [transcendental.scalar_declarations(), _intrinsic_declarations(target)]
    calls = []
    for k, chunk in enumerate(chunking.chunks):
        writer = _ChunkWriter(graph, chunk, target, destinations)
        parts.append(writer.function(f"chunk{k}", with_trivial_outputs=k == 0))
        calls.append(f"call void @chunk{k}(ptr %scratch, ptr %table, i64 %bytes)")
    parts.append(transcendental.definitions(target, "\n".join(parts)))
    parts.append(
        "define internal void @compute(ptr %scratch, ptr %table, i64 %bytes) noinline nounwind {\n"
        + "\n".join([*calls, "ret void", "}"])
    )
    return "\n".join(parts)


def _intrinsic_declarations(target: Target) -> str:
    vector, suffix = f"<{target.lanes} x double>", f"v{target.lanes}f64"
    return "\n".join(
        f"declare {vector} @llvm.{name}.{suffix}({', '.join([vector] * arity)})" for name, arity in _INTRINSICS.items()
    )


def _destinations(graph: Graph) -> dict[int | None, list[int]]:
    """Return for each node the table rows that its value goes to."""
    destinations: dict[int | None, list[int]] = {}
    for row, node in enumerate(graph.outputs, start=sum(graph.input_rows)):
        destinations.setdefault(node, []).append(row)
    return destinations


class _ChunkWriter:
    """Writes one chunk: a loop over the vectors of a block whose body is the chunk's steps."""

    def __init__(self, graph: Graph, chunk: Chunk, target: Target, destinations: dict[int | None, list[int]]) -> None:
        self._graph = graph
        self._chunk = chunk
        self._destinations = destinations
        self._emit = Emitter(target)
        self._align = 8 * target.lanes
        self._value: dict[int, str] = {}  # node -> name in this chunk

    def function(self, name: str, *, with_trivial_outputs: bool) -> str:
        """Return the text of the chunk's function."""
        if with_trivial_outputs:
            self._store_trivial_outputs()
        for step in self._chunk.steps:
            self._write_step(step)
        body = "\n".join(self._emit.lines)
        return (
            f"define internal void @{name}(ptr noalias %scratch, ptr noalias %table, i64 %bytes) noinline nounwind {{\n"
            "entry:\nbr label %loop\nloop:\n"
            "%i = phi i64 [ 0, %entry ], [ %next, %loop ]\n"
            "%here = getelementptr i8, ptr %scratch, i64 %i\n"
            f"{body}\n"
            f"%next = add i64 %i, {self._align}\n"
            "%more = icmp ult i64 %next, %bytes\n"
            "br i1 %more, label %loop, label %done\n"
            "done:\nret void\n}"
        )

    def _write_step(self, step: ProgramStep) -> None:
        emit = self._emit
        operation = step.operation
        arguments = [self._value.get(node) or self._fetch(node) for node in step.arguments]
        if operation == SINCOS:
            names = sincos(emit, arguments[0])
        else:
            names = (writer_of(operation, self._graph.name)(emit, *arguments),)
        for node, name in zip(step.results, names, strict=True):
            self._value[node] = name
            self._store(node, name)

    def _fetch(self, node: int) -> str:
        """Return the name of a value from outside the chunk: a constant, an input row or a slot."""
        emit = self._emit
        operation = self._graph.operations[node]
        if operation == CONSTANT:
            name = emit.number(self._graph.constants[node])
        elif operation == INPUT:
            address = self._row_address(self._graph.arguments[node][0])
            name = emit.let(f"load {emit.vector}, ptr {address}, align 8")
        else:
            address = self._slot_address(self._chunk.reads[node])
            name = emit.let(f"load {emit.vector}, ptr {address}, align {self._align}")
        self._value[node] = name
        return name

    def _store(self, node: int | None, name: str) -> None:
        emit = self._emit
        for row in self._destinations.get(node, ()):
            emit.lines.append(f"store {emit.vector} {name}, ptr {self._row_address(row)}, align 8")
        if node is not None and node in self._chunk.writes:
            address = self._slot_address(self._chunk.writes[node])
            emit.lines.append(f"store {emit.vector} {name}, ptr {address}, align {self._align}")

    def _store_trivial_outputs(self) -> None:
        """Store the outputs that no step computes: zeros, constants and copies of inputs."""
        for node in self._destinations:
            if node is None:
                self._store(node, self._emit.number(0.0))
            elif self._graph.operations[node] in (INPUT, CONSTANT):
                self._store(node, self._fetch(node))

    def _row_address(self, row: int) -> str:
        emit = self._emit
        entry = emit.let(f"getelementptr ptr, ptr %table, i64 {row}")
        return emit.let(f"getelementptr i8, ptr {emit.let(f'load ptr, ptr {entry}')}, i64 %i")

    def _slot_address(self, slot: int) -> str:
        return self._emit.let(f"getelementptr i8, ptr %here, i64 {slot * BLOCK * 8}")


_LONG = 2000
"""Steps above which the code of a loop is generated quickly too: what takes longest then is its compilation."""

_CACHED = 32
made_code: dict[bytes, MachineCode] = {}
"""The last modules by their text: the same arm is compiled again and again, and the code has no state of its own."""


@dataclass(frozen=True)
class MachineCode:
    """Compiled functions of one module.

    Attributes:
        engine: LLVM's owner of the code; the code dies with it.
    """

    engine: llvm.ExecutionEngine

    def function(self, name: str, *arguments: type[ctypes._SimpleCData]) -> Callable[..., None]:
        """Return a function of the module; calling it releases Python's global lock."""
        return ctypes.CFUNCTYPE(None, *arguments)(self.engine.get_function_address(name))


def machine_code(program: Program, driver: str, *, quick: bool) -> MachineCode:
    """Compile a program and the loop around it.

    Args:
        program: Lowered function.
        driver: LLVM text that calls the program's ``@compute``.
        quick: Use LLVM's quick code generator also for a short program. It takes a third of the time, its code computes
            the same to the last bit in a tenth more: what that costs, a regressor has saved for its first 6 million
            samples.
    """
    text, level = program.text + driver, 0 if quick or program.steps > _LONG else 2
    key = hashlib.sha256(f"{program.target} {level} {text}".encode()).digest()
    if key not in made_code:
        made_code[key] = _compiled(text, program.target, level)
        if len(made_code) > _CACHED:
            made_code.pop(next(iter(made_code)))
    return made_code[key]


def _compiled(text: str, target: Target, level: int) -> MachineCode:
    _initialise()
    context = llvm.create_context()
    module = llvm.parse_assembly(text, context)
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=target.cpu, features=target.features, opt=level, jit=True
    )
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    # The code is made: the text's memory, many times its size, can go. The module must go before its context.
    engine.remove_module(module)
    module.close()
    context.close()
    return MachineCode(engine)


@functools.cache
def _initialise() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    register_scalar_functions()
