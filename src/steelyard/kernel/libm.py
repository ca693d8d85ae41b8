"""The C library's scalar functions, made known to LLVM under our own names on every platform."""

from __future__ import annotations

import ctypes
import functools
import sys

import llvmlite.binding as llvm

UNARY = (
    "sin", "cos", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erf", "expm1", "log1p",
)  # fmt: skip
BINARY = ("pow", "atan2", "fmod", "remainder", "hypot")

# What LLVM itself calls on a processor without an instruction for it.
_BACKEND = ("floor", "ceil")

PREFIX = "steelyard_"


@functools.cache
def register() -> None:
    """Give LLVM the addresses of all functions that compiled code may call."""
    library = _library()
    for name in (*UNARY, *BINARY):
        llvm.add_symbol(PREFIX + name, _address(library, name))
    for name in _BACKEND:
        llvm.add_symbol(name, _address(library, name))


def declarations() -> str:
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
