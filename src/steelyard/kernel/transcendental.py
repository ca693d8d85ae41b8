"""Vector code of sine, cosine, exponential, logarithm and hyperbolic tangent; other functions by the C library.

Each vector function is an argument reduction to a small interval and a Taylor series there, within two units in the
last place. Lanes are independent, so a result does not depend on its neighbours.

Integers are taken from doubles by adding 1.5 * 2^52: the sum's last mantissa bits are the rounded integer. This needs
no rounding or conversion instruction, so every processor gives the same result.
"""

from __future__ import annotations

import ctypes
import functools
import math
import sys
from fractions import Fraction

import llvmlite.binding as llvm

from .emitter import Emitter, Target

LARGE_ANGLE = 1e6
"""Beyond this angle [rad] sine and cosine are left to the C library, lane by lane."""

_MAGIC = 1.5 * 2.0**52
_EXPONENT_MASK = 0x7FF << 52
_MANTISSA_MASK = (1 << 52) - 1
_ONE_BITS = 0x3FF << 52
_LN2_DIGITS = "0.693147180559945309417232121458176568075500134360255254120680009"
_PI_DIGITS = "3.14159265358979323846264338327950288419716939937510582097494459"


def _pieces(value: Fraction, bits: int, count: int) -> list[float]:
    """Split a number into ``count`` doubles: all but the last have ``bits`` bits, so small multiples are exact."""
    pieces = []
    for _ in range(count - 1):
        scale = Fraction(2) ** (bits - math.frexp(float(value))[1])
        piece = Fraction(math.floor(value * scale)) / scale
        pieces.append(float(piece))
        value -= piece
    return [*pieces, float(value)]


# |x| <= 1e6 is fewer than 2^20 quarter turns, so 33-bit pieces times their number are exact.
_QUARTER_TURN = _pieces(Fraction(_PI_DIGITS) / 2, bits=33, count=3)
# Exponents of doubles need 11 bits.
_LN2 = _pieces(Fraction(_LN2_DIGITS), bits=40, count=2)


def definitions(target: Target, caller: str) -> str:
    """Return LLVM definitions of ``@sincos``, ``@exp``, ``@log`` and ``@tanh``, those that the caller's text calls."""
    functions = [_sincos(target)] if "@sincos(" in caller else []
    for name, body in (("exp", _exp), ("log", _log), ("tanh", _tanh)):
        if f"@{name}(" not in caller:
            continue
        emit = Emitter(target)
        result = body(emit, "%x")
        functions.append(_function(emit, f"{emit.vector} @{name}({emit.vector} %x)", f"{emit.vector} {result}"))
    return "\n".join(functions)


def _function(emit: Emitter, signature: str, result: str) -> str:
    body = "\n".join(emit.lines)
    return f"define internal {signature} noinline nounwind {{\n{body}\nret {result}\n}}"


def _round(emit: Emitter, x: str, factor: float) -> tuple[str, str]:
    """Return x * factor rounded to an integer, as a double and as bits whose low end is that integer."""
    shifted = emit.fma(x, emit.number(factor), emit.number(_MAGIC))
    return emit.sub(shifted, emit.number(_MAGIC)), emit.bits(shifted)


# ---------------------------------------------------------------- sine and cosine


def _sincos(target: Target) -> str:
    emit = Emitter(target)
    pair = f"{{ {emit.vector}, {emit.vector} }}"
    small = emit.compare("ole", emit.intrinsic("fabs", "%x"), emit.number(LARGE_ANGLE))
    turns, turn_bits = _round(emit, "%x", 2.0 / math.pi)
    r, rest = _reduced_angle(emit, turns)
    sine, cosine = _sine_series(emit, r, rest), _cosine_series(emit, r, rest)
    odd = emit.let(f"trunc {emit.integers} {turn_bits} to {emit.mask}")
    sine, cosine = emit.select(odd, cosine, sine), emit.select(odd, sine, cosine)
    sine = _flip_sign(emit, sine, turn_bits)
    cosine = _flip_sign(emit, cosine, emit.bitwise("add", turn_bits, emit.integer(1)))
    # The reduction turns -0 into +0 and sin x = x to the last bit here.
    tiny = emit.compare("olt", emit.intrinsic("fabs", "%x"), emit.number(2.0**-28))
    sine = emit.select(tiny, "%x", sine)
    width = target.lanes
    emit.lines += [
        f"%first = insertvalue {pair} poison, {emit.vector} {sine}, 0",
        f"%fast = insertvalue {pair} %first, {emit.vector} {cosine}, 1",
        f"%flags = bitcast {emit.mask} {small} to i{width}",
        f"%all = icmp eq i{width} %flags, -1",
        "br i1 %all, label %done, label %large",
        "large:",
        f"%slow = call {pair} @sincos_large({emit.vector} %x, {emit.mask} {small}, {pair} %fast)",
        f"ret {pair} %slow",
        "done:",
    ]
    return _sincos_large(target) + "\n" + _function(emit, f"{pair} @sincos({emit.vector} %x)", f"{pair} %fast")


def _reduced_angle(emit: Emitter, turns: str) -> tuple[str, str]:
    """Return x - turns * pi/2 as a double and the small rest that it could not hold."""
    first, second, third = (emit.mul(turns, emit.number(piece)) for piece in _QUARTER_TURN)
    near = emit.sub("%x", first)
    high = emit.sub(near, second)
    low = emit.sub(emit.sub(emit.sub(near, high), second), third)
    r = emit.add(high, low)
    return r, emit.add(emit.sub(high, r), low)


def _sine_series(emit: Emitter, r: str, rest: str) -> str:
    square = emit.mul(r, r)
    series = emit.polynomial(square, [(-1.0) ** k / math.factorial(2 * k + 1) for k in range(1, 9)])
    half = emit.fma(emit.number(-0.5), square, emit.number(1.0))
    return emit.add(r, emit.fma(emit.mul(r, square), series, emit.mul(rest, half)))


def _cosine_series(emit: Emitter, r: str, rest: str) -> str:
    square = emit.mul(r, r)
    series = emit.polynomial(square, [(-1.0) ** k / math.factorial(2 * k) for k in range(2, 9)])
    half = emit.mul(emit.number(0.5), square)
    top = emit.sub(emit.number(1.0), half)
    lost = emit.sub(emit.sub(emit.number(1.0), top), half)
    small = emit.sub(emit.mul(emit.mul(square, square), series), emit.mul(r, rest))
    return emit.add(top, emit.add(lost, small))


def _flip_sign(emit: Emitter, value: str, quarter_turns: str) -> str:
    """Negate where bit 1 of the number of quarter turns is set."""
    bit = emit.bitwise("and", quarter_turns, emit.integer(2))
    sign = emit.bitwise("shl", bit, emit.integer(62))
    return emit.double(emit.bitwise("xor", emit.bits(value), sign))


def _sincos_large(target: Target) -> str:
    """The lanes that are not small (large, infinite, NaN) are replaced by the C library's results."""
    emit = Emitter(target)
    pair = f"{{ {emit.vector}, {emit.vector} }}"
    result = "%fast"
    for part, name in enumerate(("sin", "cos")):
        exact = per_lane(emit, name, ["%x"])
        fast = emit.let(f"extractvalue {pair} %fast, {part}")
        chosen = emit.select("%small", fast, exact)
        result = emit.let(f"insertvalue {pair} {result}, {emit.vector} {chosen}, {part}")
    signature = f"{pair} @sincos_large({emit.vector} %x, {emit.mask} %small, {pair} %fast)"
    return _function(emit, signature, f"{pair} {result}")


def per_lane(emit: Emitter, name: str, arguments: list[str]) -> str:
    """Return the C library's function of each lane."""
    result = "poison"
    for lane in range(emit.target.lanes):
        scalars = [emit.let(f"extractelement {emit.vector} {a}, i32 {lane}") for a in arguments]
        given = ", ".join(f"double {scalar}" for scalar in scalars)
        value = emit.let(f"call double @{PREFIX}{name}({given})")
        result = emit.let(f"insertelement {emit.vector} {result}, double {value}, i32 {lane}")
    return result


# ---------------------------------------------------------------- exponential and hyperbolic tangent


def _exponent_and_rest(emit: Emitter, x: str) -> tuple[str, str, str]:
    """Return k and r + rest with x = k ln 2 + r + rest and abs(r) <= ln(2)/2."""
    k, _ = _round(emit, x, 1.0 / math.log(2.0))
    high = emit.sub(x, emit.mul(k, emit.number(_LN2[0])))
    low = emit.mul(k, emit.number(_LN2[1]))
    r = emit.sub(high, low)
    return k, r, emit.sub(emit.sub(high, r), low)


def _expm1_tail(emit: Emitter, r: str, rest: str) -> str:
    """Return e^(r + rest) - 1 - r, which is small against r."""
    series = emit.polynomial(r, [1.0 / math.factorial(k) for k in range(2, 14)])
    return emit.fma(emit.mul(r, r), series, rest)


def _power_of_two(emit: Emitter, k: str) -> str:
    shifted = emit.bits(emit.add(k, emit.number(_MAGIC + 1023.0)))
    return emit.double(emit.bitwise("shl", shifted, emit.integer(52)))


def _clamp(emit: Emitter, x: str, low: float, high: float) -> str:
    """Limit x; NaN passes through because no comparison with it holds."""
    x = emit.select(emit.compare("ogt", x, emit.number(high)), emit.number(high), x)
    return emit.select(emit.compare("olt", x, emit.number(low)), emit.number(low), x)


def _exp(emit: Emitter, x: str) -> str:
    k, r, rest = _exponent_and_rest(emit, _clamp(emit, x, -746.0, 710.0))
    value = emit.add(emit.number(1.0), emit.add(r, _expm1_tail(emit, r, rest)))
    # 2^k alone may overflow or underflow where the result does not: scale in two halves.
    first, _ = _round(emit, k, 0.5)
    second = emit.sub(k, first)
    return emit.mul(emit.mul(value, _power_of_two(emit, first)), _power_of_two(emit, second))


def _tanh(emit: Emitter, x: str) -> str:
    """Use t = m / (m + 2) with m = e^(2|x|) - 1, and carry what m and m + 2 lose in rounding."""
    size = _clamp(emit, emit.intrinsic("fabs", x), 0.0, 22.0)
    k, r, rest = _exponent_and_rest(emit, emit.add(size, size))
    power = _power_of_two(emit, k)
    whole = emit.sub(power, emit.number(1.0))
    linear = emit.mul(power, r)
    total, lost = _exact_sum(emit, whole, linear)
    tail = emit.fma(power, _expm1_tail(emit, r, rest), lost)
    m = emit.add(total, tail)
    m_rest = emit.add(emit.sub(total, m), tail)
    below, below_rest = _exact_sum(emit, m, emit.number(2.0))
    t = emit.div(m, below)
    # To first order t changes by (m_rest - t * rest of the divisor) / divisor, and 1 / divisor = (1 - t) / 2.
    change = emit.sub(m_rest, emit.mul(t, emit.add(below_rest, m_rest)))
    inverse = emit.fma(t, emit.number(-0.5), emit.number(0.5))
    return emit.intrinsic("copysign", emit.fma(change, inverse, t), x)


def _exact_sum(emit: Emitter, a: str, b: str) -> tuple[str, str]:
    """Return a + b as its rounded value and the rounding error, whichever is larger."""
    total = emit.add(a, b)
    b_part = emit.sub(total, a)
    a_part = emit.sub(total, b_part)
    return total, emit.add(emit.sub(a, a_part), emit.sub(b, b_part))


# ---------------------------------------------------------------- logarithm


def _log(emit: Emitter, x: str) -> str:
    e, f = _log_parts(emit, x)
    # With s = f / (2 + f): log(1 + f) = 2 s + 2 s^3 / 3 + ..., and 2 s = f - f^2/2 + s f^2/2.
    s = emit.div(f, emit.add(f, emit.number(2.0)))
    square = emit.mul(s, s)
    series = emit.mul(square, emit.polynomial(square, [2.0 / (2 * k + 1) for k in range(1, 11)]))
    half = emit.mul(emit.mul(f, f), emit.number(0.5))
    small = emit.fma(s, emit.add(half, series), emit.mul(e, emit.number(_LN2[1])))
    value = emit.add(emit.mul(e, emit.number(_LN2[0])), emit.sub(f, emit.sub(half, small)))
    return _log_special(emit, x, value)


def _log_parts(emit: Emitter, x: str) -> tuple[str, str]:
    """Return e and f with x = 2^e (1 + f) and 1 + f between sqrt(1/2) and sqrt(2)."""
    denormal = emit.compare("olt", x, emit.number(2.0**-1022))
    scaled = emit.select(denormal, emit.mul(x, emit.number(2.0**54)), x)
    bits = emit.bits(scaled)
    exponent = emit.bitwise("lshr", emit.bitwise("and", bits, emit.integer(_EXPONENT_MASK)), emit.integer(52))
    biased = emit.double(emit.bitwise("or", exponent, emit.bits(emit.number(2.0**52))))
    bias = emit.select(denormal, emit.number(2.0**52 + 1023.0 + 54.0), emit.number(2.0**52 + 1023.0))
    e = emit.sub(biased, bias)
    mantissa = emit.bitwise("and", bits, emit.integer(_MANTISSA_MASK))
    m = emit.double(emit.bitwise("or", mantissa, emit.integer(_ONE_BITS)))
    high = emit.compare("ogt", m, emit.number(math.sqrt(2.0)))
    m = emit.select(high, emit.mul(m, emit.number(0.5)), m)
    e = emit.select(high, emit.add(e, emit.number(1.0)), e)
    return e, emit.sub(m, emit.number(1.0))


def _log_special(emit: Emitter, x: str, value: str) -> str:
    positive = emit.compare("ogt", x, emit.number(0.0))
    zero = emit.compare("oeq", x, emit.number(0.0))
    infinite = emit.compare("oeq", x, emit.number(math.inf))
    value = emit.select(infinite, x, value)
    outside = emit.select(zero, emit.number(-math.inf), emit.number(math.nan))
    return emit.select(positive, value, outside)


# ---------------------------------------------------------------- scalar functions of the C library

UNARY = (
    "sin", "cos", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erf", "expm1", "log1p",
)  # fmt: skip
BINARY = ("pow", "atan2", "fmod", "remainder", "hypot")

# What LLVM itself calls on a processor without an instruction for it.
_BACKEND = ("floor", "ceil")

PREFIX = "steelyard_"


@functools.cache
def register_scalar_functions() -> None:
    """Give LLVM the addresses of all functions that compiled code may call."""
    library = _library()
    for name in (*UNARY, *BINARY):
        llvm.add_symbol(PREFIX + name, _address(library, name))
    for name in _BACKEND:
        llvm.add_symbol(name, _address(library, name))


def scalar_declarations() -> str:
    """Return the LLVM declarations of all scalar functions."""
    unary = [f"declare double @{PREFIX}{name}(double)" for name in UNARY]
    binary = [f"declare double @{PREFIX}{name}(double, double)" for name in BINARY]
    return "\n".join(unary + binary)


def _library() -> ctypes.CDLL:
    if sys.platform == "win32":
        return ctypes.CDLL("ucrtbase")
    if sys.platform == "linux":
        try:
            return ctypes.CDLL("libm.so.6")
        except OSError:  # a C library other than glibc holds the functions itself
            pass
    return ctypes.CDLL(None)


def _address(library: ctypes.CDLL, name: str) -> int:
    address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    if address is None:
        raise OSError(f"the C library has no function '{name}'")
    return address
