"""Compilation of LLVM text to machine code in this process, with a cache of the last modules."""

from __future__ import annotations

import ctypes
import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import llvmlite.binding as llvm

from .emitter import Target
from .lower import Program
from .transcendental import register_scalar_functions

_LONG = 2000
"""Steps above which LLVM's quick code generator is used: three times faster to compile, and on long straight-line
code its result is at most some 15 % slower."""

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


def machine_code(program: Program, driver: str) -> MachineCode:
    """Compile a program and the loop around it.

    Args:
        program: Lowered function.
        driver: LLVM text that calls the program's ``@compute``.
    """
    text, level = program.text + driver, 0 if program.steps > _LONG else 2
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
