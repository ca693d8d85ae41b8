"""Writing LLVM IR as text: each call appends one instruction and returns the name of its result.

Text is several times faster to make than a tree of IR objects, and LLVM's own parser is quick.

The target of compilation is a processor, its features and how many doubles fit in one vector.
"""

from __future__ import annotations

import functools
import platform
import struct
from dataclasses import dataclass

import llvmlite.binding as llvm

from ..errors import KernelError

_LANES = (2, 4, 8)


@dataclass(frozen=True)
class Target:
    """A processor as LLVM sees it.

    Attributes:
        cpu: LLVM name of the processor, for example ``"skylake"``.
        features: LLVM feature string, for example ``"+avx2,+fma"``.
        lanes: Number of doubles in one vector: 2 (SSE2, NEON), 4 (AVX) or 8 (AVX-512).
        fma: Whether a multiply and an add may be one instruction with one rounding.

    Example:
        >>> from steelyard.kernel import baseline_target
        >>> baseline_target().lanes
        2
    """

    cpu: str
    features: str
    lanes: int
    fma: bool

    def __post_init__(self) -> None:
        if self.lanes not in _LANES:
            raise KernelError(f"vector width: got {self.lanes} lanes, allowed are {_LANES}")


@functools.cache
def host_target() -> Target:
    """Return the processor this program runs on.

    Example:
        >>> from steelyard.kernel import host_target
        >>> host_target().lanes >= 2
        True
    """
    cpu = llvm.get_host_cpu_name()
    if platform.machine().lower() in ("arm64", "aarch64"):
        return Target(cpu, "", lanes=2, fma=True)  # NEON belongs to the architecture
    features = llvm.get_host_cpu_features()
    flags = features.flatten()
    fma = bool(features.get("fma"))
    if features.get("avx512f") and features.get("avx512dq"):
        # Some processors are described as happier with 256 bits; straight-line arithmetic is not.
        return Target(cpu, f"{flags},-prefer-256-bit", lanes=8, fma=fma)
    return Target(cpu, flags, lanes=4 if features.get("avx") else 2, fma=fma)


@functools.cache
def baseline_target() -> Target:
    """Return the least processor of this architecture: 128-bit vectors and nothing newer.

    Example:
        >>> from steelyard.kernel import baseline_target
        >>> baseline_target().lanes
        2
    """
    if platform.machine().lower() in ("arm64", "aarch64"):
        return Target("generic", "", lanes=2, fma=True)
    return Target("x86-64", "", lanes=2, fma=False)


def literal(value: float) -> str:
    """Return a double as LLVM writes it: its bits."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


class Emitter:
    """The instructions of one function body on vectors of ``target.lanes`` doubles.

    Attributes:
        lines: The instructions so far.
        vector: LLVM type of a vector of doubles.
        integers: LLVM type of a vector of 64-bit integers.
        mask: LLVM type of a vector of truth values.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.lines: list[str] = []
        self.vector = f"<{target.lanes} x double>"
        self.integers = f"<{target.lanes} x i64>"
        self.mask = f"<{target.lanes} x i1>"
        self._count = 0

    def let(self, expression: str) -> str:
        """Append ``name = expression`` and return the name."""
        self._count += 1
        name = f"%t{self._count}"
        self.lines.append(f"{name} = {expression}")
        return name

    def number(self, value: float) -> str:
        """Return the literal of a vector with the same double in all lanes."""
        return f"splat (double {literal(value)})"

    def integer(self, value: int) -> str:
        """Return the literal of a vector with the same integer in all lanes."""
        return f"splat (i64 {value})"

    def add(self, a: str, b: str) -> str:
        """Return a + b."""
        return self.let(f"fadd {self.vector} {a}, {b}")

    def sub(self, a: str, b: str) -> str:
        """Return a - b."""
        return self.let(f"fsub {self.vector} {a}, {b}")

    def mul(self, a: str, b: str) -> str:
        """Return a * b."""
        return self.let(f"fmul {self.vector} {a}, {b}")

    def div(self, a: str, b: str) -> str:
        """Return a / b."""
        return self.let(f"fdiv {self.vector} {a}, {b}")

    def neg(self, a: str) -> str:
        """Return -a."""
        return self.let(f"fneg {self.vector} {a}")

    def fma(self, a: str, b: str, c: str) -> str:
        """Return a * b + c, rounded once where the processor can."""
        if not self.target.fma:
            return self.add(self.mul(a, b), c)
        return self.intrinsic("fma", a, b, c)

    def intrinsic(self, name: str, *arguments: str) -> str:
        """Return the result of an LLVM intrinsic on vectors."""
        given = ", ".join(f"{self.vector} {argument}" for argument in arguments)
        return self.let(f"call {self.vector} @llvm.{name}.v{self.target.lanes}f64({given})")

    def compare(self, condition: str, a: str, b: str) -> str:
        """Return the mask of an LLVM floating-point comparison."""
        return self.let(f"fcmp {condition} {self.vector} {a}, {b}")

    def select(self, mask: str, a: str, b: str) -> str:
        """Return a where the mask is set, else b."""
        return self.let(f"select {self.mask} {mask}, {self.vector} {a}, {self.vector} {b}")

    def bits(self, a: str) -> str:
        """Return the bits of doubles as integers."""
        return self.let(f"bitcast {self.vector} {a} to {self.integers}")

    def double(self, a: str) -> str:
        """Return the doubles that have these bits."""
        return self.let(f"bitcast {self.integers} {a} to {self.vector}")

    def bitwise(self, operation: str, a: str, b: str) -> str:
        """Return an integer operation: and, or, xor, shl, lshr, add, sub."""
        return self.let(f"{operation} {self.integers} {a}, {b}")

    def polynomial(self, x: str, coefficients: list[float]) -> str:
        """Return the polynomial with these coefficients, lowest power first, by Horner's rule."""
        total = self.number(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            total = self.fma(total, x, self.number(coefficient))
        return total
