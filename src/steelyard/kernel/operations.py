"""LLVM code of each CasADi operation, in one table.

Comparisons give 0.0 or 1.0; a NaN counts as true; sign keeps -0 and NaN; all as CasADi evaluates them.
"""

from __future__ import annotations

from collections.abc import Callable

import casadi

from ..errors import KernelError
from .emitter import Emitter
from .program import MULTIPLY_ADD, MULTIPLY_SUBTRACT, NEGATIVE_MULTIPLY_ADD, SINCOS
from .transcendental import BINARY, UNARY, per_lane

Writer = Callable[..., str]
"""Takes an emitter and the names of the arguments, returns the name of the result."""


def _truth(emit: Emitter, a: str) -> str:
    return emit.compare("une", a, emit.number(0.0))


def _from_mask(emit: Emitter, mask: str) -> str:
    return emit.select(mask, emit.number(1.0), emit.number(0.0))


def _comparison(condition: str) -> Writer:
    return lambda emit, a, b: _from_mask(emit, emit.compare(condition, a, b))


def _logical(operation: str) -> Writer:
    def write(emit: Emitter, a: str, b: str) -> str:
        return _from_mask(emit, emit.let(f"{operation} {emit.mask} {_truth(emit, a)}, {_truth(emit, b)}"))

    return write


def _not(emit: Emitter, a: str) -> str:
    return _from_mask(emit, emit.compare("oeq", a, emit.number(0.0)))


def _if_else_zero(emit: Emitter, condition: str, a: str) -> str:
    return emit.select(_truth(emit, condition), a, emit.number(0.0))


def _sign(emit: Emitter, a: str) -> str:
    positive = emit.select(emit.compare("ogt", a, emit.number(0.0)), emit.number(1.0), a)
    return emit.select(emit.compare("olt", a, emit.number(0.0)), emit.number(-1.0), positive)


def _extremum(condition: str) -> Writer:
    def write(emit: Emitter, a: str, b: str) -> str:
        chosen = emit.select(emit.compare(condition, b, a), b, a)
        return emit.select(emit.compare("uno", a, a), b, chosen)

    return write


def _tan(emit: Emitter, a: str) -> str:
    sine, cosine = sincos(emit, a)
    return emit.div(sine, cosine)


def _intrinsic(name: str) -> Writer:
    return lambda emit, *arguments: emit.intrinsic(name, *arguments)


def _vector_function(name: str) -> Writer:
    return lambda emit, a: emit.let(f"call {emit.vector} @{name}({emit.vector} {a})")


def _scalar_function(name: str) -> Writer:
    return lambda emit, *arguments: per_lane(emit, name, list(arguments))


def sincos(emit: Emitter, a: str) -> tuple[str, str]:
    """Return sine and cosine of the same angle, at the price of a little more than one."""
    pair = f"{{ {emit.vector}, {emit.vector} }}"
    both = emit.let(f"call {pair} @sincos({emit.vector} {a})")
    return emit.let(f"extractvalue {pair} {both}, 0"), emit.let(f"extractvalue {pair} {both}, 1")


_ANGLES = (casadi.OP_SIN, casadi.OP_COS, casadi.OP_TAN, SINCOS)

_VECTOR_FUNCTIONS = {casadi.OP_EXP: "exp", casadi.OP_LOG: "log", casadi.OP_TANH: "tanh"}

_SCALAR_FUNCTIONS = {
    **{getattr(casadi, f"OP_{name.upper()}"): name for name in (*UNARY, *BINARY) if name not in ("sin", "cos")},
    casadi.OP_CONSTPOW: "pow",
}

_WRITERS: dict[int, Writer] = {
    MULTIPLY_ADD: Emitter.fma,
    MULTIPLY_SUBTRACT: lambda emit, a, b, c: emit.fma(a, b, emit.neg(c)),
    NEGATIVE_MULTIPLY_ADD: lambda emit, a, b, c: emit.fma(emit.neg(a), b, c),
    casadi.OP_ADD: Emitter.add,
    casadi.OP_SUB: Emitter.sub,
    casadi.OP_MUL: Emitter.mul,
    casadi.OP_DIV: Emitter.div,
    casadi.OP_NEG: Emitter.neg,
    casadi.OP_INV: lambda emit, a: emit.div(emit.number(1.0), a),
    casadi.OP_SQ: lambda emit, a: emit.mul(a, a),
    casadi.OP_TWICE: lambda emit, a: emit.add(a, a),
    casadi.OP_SQRT: _intrinsic("sqrt"),
    casadi.OP_FABS: _intrinsic("fabs"),
    casadi.OP_FLOOR: _intrinsic("floor"),
    casadi.OP_CEIL: _intrinsic("ceil"),
    casadi.OP_COPYSIGN: _intrinsic("copysign"),
    casadi.OP_SIGN: _sign,
    casadi.OP_LT: _comparison("olt"),
    casadi.OP_LE: _comparison("ole"),
    casadi.OP_EQ: _comparison("oeq"),
    casadi.OP_NE: _comparison("une"),
    casadi.OP_NOT: _not,
    casadi.OP_AND: _logical("and"),
    casadi.OP_OR: _logical("or"),
    casadi.OP_IF_ELSE_ZERO: _if_else_zero,
    casadi.OP_FMIN: _extremum("olt"),
    casadi.OP_FMAX: _extremum("ogt"),
    casadi.OP_SIN: lambda emit, a: sincos(emit, a)[0],
    casadi.OP_COS: lambda emit, a: sincos(emit, a)[1],
    casadi.OP_TAN: _tan,
    **{operation: _vector_function(name) for operation, name in _VECTOR_FUNCTIONS.items()},
    **{operation: _scalar_function(name) for operation, name in _SCALAR_FUNCTIONS.items()},
}

_COSTS = dict.fromkeys((*_VECTOR_FUNCTIONS, *_ANGLES), 30) | dict.fromkeys(_SCALAR_FUNCTIONS, 400)

_NAMES = {getattr(casadi, name): name.removeprefix("OP_").lower() for name in dir(casadi) if name.startswith("OP_")}


def operation_name(operation: int) -> str:
    """Return CasADi's name of an operation, in small letters."""
    return _NAMES.get(operation, str(operation))


def cost_of(operation: int) -> int:
    """Return about how many additions an operation takes as long as."""
    return _COSTS.get(operation, 1)


def writer_of(operation: int, function_name: str) -> Writer:
    """Return the writer of a CasADi operation.

    Raises:
        KernelError: If the operation cannot be compiled; the message names it and the function.
    """
    writer = _WRITERS.get(operation)
    if writer is None:
        allowed = ", ".join(sorted(_NAMES[known] for known in _WRITERS if known in _NAMES))
        raise KernelError(
            f"function '{function_name}': operation '{operation_name(operation)}' cannot be compiled, "
            f"allowed are {allowed}"
        )
    return writer
