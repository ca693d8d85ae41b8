"""Arrays as compiled code wants them: checked, aligned, rows that do not fall on the same cache sets."""

from __future__ import annotations

import math

import numpy as np

from ..errors import KernelError

_LINE = 8  # doubles in a cache line of 64 bytes


def aligned_empty(shape: tuple[int, ...]) -> np.ndarray:
    """Return an uninitialised float64 array that begins at a cache line."""
    size = math.prod(shape)
    return _from_line(np.empty(size + _LINE))[:size].reshape(shape)


def spread_rows(shape: tuple[int, ...], *, zero: bool = False) -> np.ndarray:
    """Return a float64 array whose last axis begins at a cache line, an odd number of lines apart.

    Args:
        shape: Shape of the array; its last axis is the contiguous one.
        zero: Whether to fill with zeros. Pages never written to then cost neither time nor memory.
    """
    *rows, columns = shape
    lines = -(-columns // _LINE)
    pitch = _LINE * (lines + 1 - lines % 2)
    size = math.prod(rows) * pitch
    flat = np.zeros(size + _LINE) if zero else np.empty(size + _LINE)
    return _from_line(flat)[:size].reshape((*rows, pitch))[..., :columns]


def _from_line(flat: np.ndarray) -> np.ndarray:
    return flat[(-flat.ctypes.data % 64) // 8 :]


def address_of(array: np.ndarray) -> int:
    """Return the address of the first element."""
    return array.__array_interface__["data"][0]


def check_array(array: object, what: str) -> np.ndarray:
    """Return the array; raise a KernelError unless it is one of float64."""
    if not isinstance(array, np.ndarray):
        raise KernelError(f"{what}: got {type(array).__name__}, allowed is a numpy array of float64")
    if array.dtype != np.float64:
        raise KernelError(f"{what}: got dtype {array.dtype}, allowed is float64")
    return array


def is_plain(array: np.ndarray) -> bool:
    """Return whether the last axis is contiguous and the elements are aligned."""
    return array.flags.aligned and (array.strides[-1] == array.itemsize or array.shape[-1] < 2)


def plain(array: np.ndarray) -> np.ndarray:
    """Return the array itself if its last axis is contiguous, else a copy."""
    return array if is_plain(array) else np.array(array, order="C")


def rows_of(array: np.ndarray) -> np.ndarray:
    """Return the address of each row of a two-dimensional array."""
    return address_of(array) + array.strides[0] * np.arange(array.shape[0])
