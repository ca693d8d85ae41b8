"""The machine that code is made for: a processor, its features and how many doubles fit in one vector."""

from __future__ import annotations

import functools
import platform
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
    """Return the processor this program runs on."""
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
    """Return the least processor of this architecture: 128-bit vectors and nothing newer."""
    if platform.machine().lower() in ("arm64", "aarch64"):
        return Target("generic", "", lanes=2, fma=True)
    return Target("x86-64", "", lanes=2, fma=False)
