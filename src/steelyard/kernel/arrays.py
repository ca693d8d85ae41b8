"""Arrays for compiled code: checks of type and shape, alignment, and the addresses of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import casadi
import numpy as np

from ..errors import KernelError
from .lower import BLOCK

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


@dataclass(frozen=True)
class OutputSparsity:
    """Where the rows of an output belong in its matrix.

    Attributes:
        rows: Matrix row of each output row, shape (nnz,).
        columns: Matrix column of each output row, shape (nnz,).
        shape: Shape of the matrix.

    Example:
        >>> import casadi
        >>> x = casadi.SX.sym("x", 2)
        >>> function = steelyard.compile_batch(casadi.Function("diagonal", [x], [casadi.diag(x)]))
        >>> function.output_sparsity[0].shape, function.output_sparsity[0].rows.tolist()
        ((2, 2), [0, 1])
    """

    rows: np.ndarray
    columns: np.ndarray
    shape: tuple[int, int]


def sparsity_of(sparsity: casadi.Sparsity) -> OutputSparsity:
    """Return a CasADi sparsity as arrays."""
    rows, columns = (np.array(index, dtype=np.intp) for index in sparsity.get_triplet())
    rows.setflags(write=False)
    columns.setflags(write=False)
    return OutputSparsity(rows, columns, sparsity.shape)


def cells_of(matrices: np.ndarray, sparsity: OutputSparsity) -> np.ndarray:
    """Return the address of the first sample of each structural non-zero in an array (rows, columns, N)."""
    row, column, _ = matrices.strides
    return address_of(matrices) + row * sparsity.rows + column * sparsity.columns


@dataclass(frozen=True)
class RowTable:
    """Where the machine code finds the rows.

    Attributes:
        bases: Address of each row's first column, inputs before outputs.
        strides: Bytes from one column to the next: 8, or 0 for a value shared by all.
        inputs: The arrays that the input addresses belong to, so that they live as long as the table.
    """

    bases: np.ndarray
    strides: np.ndarray
    inputs: list[np.ndarray]


def row_table(inputs: list[np.ndarray], outputs: list[np.ndarray]) -> RowTable:
    """Return the table of input arrays and output addresses; a shared value is repeated for one block only."""
    arrays = [array if array.ndim == 2 else np.repeat(array[:, None], BLOCK, axis=1) for array in inputs]
    bases = np.concatenate([*map(rows_of, arrays), *outputs], dtype=np.int64)
    strides = np.full(len(bases), 8, dtype=np.int64)
    row = 0
    for array in inputs:
        if array.ndim == 1:
            strides[row : row + len(array)] = 0
        row += len(array)
    return RowTable(bases, strides, arrays)


@dataclass(frozen=True)
class ArrayChecker:
    """What a function expects of its arrays; the error messages name the function and the array."""

    function: str
    input_rows: tuple[int, ...]
    input_names: list[str]
    output_names: list[str]

    def input_name(self, k: int) -> str:
        """Return how messages call input k."""
        return f"function '{self.function}', input {k} '{self.input_names[k]}'"

    def inputs(self, inputs: tuple[np.ndarray, ...], out: Sequence[np.ndarray] | None) -> tuple[list[np.ndarray], int]:
        """Return the inputs, contiguous along samples, and the number of samples."""
        if len(inputs) != len(self.input_rows):
            raise KernelError(
                f"function '{self.function}': got {len(inputs)} inputs, allowed are {len(self.input_rows)}"
            )
        samples: int | None = None
        for k, (array, rows) in enumerate(zip(inputs, self.input_rows, strict=True)):
            check_array(array, self.input_name(k))
            if array.ndim not in (1, 2) or array.shape[0] != rows:
                raise KernelError(
                    f"{self.input_name(k)}: got shape {array.shape}, allowed are ({rows}, N) and ({rows},)"
                )
            if array.ndim == 2 and samples not in (None, array.shape[1]):
                raise KernelError(
                    f"{self.input_name(k)}: got {array.shape[1]} samples, allowed are {samples} as in the inputs before"
                )
            samples = array.shape[1] if array.ndim == 2 else samples
        return [plain(array) for array in inputs], _samples_of(out) if samples is None else samples

    def outputs(
        self, out: Sequence[np.ndarray], inputs: list[np.ndarray], shapes: Sequence[tuple[int, ...]], samples: int
    ) -> tuple[np.ndarray, ...]:
        """Return the output arrays, each of its shape times the number of samples."""
        if len(out) != len(shapes):
            raise KernelError(f"function '{self.function}': got {len(out)} output arrays, allowed are {len(shapes)}")
        for k, (array, shape) in enumerate(zip(out, shapes, strict=True)):
            what = f"function '{self.function}', output {k} '{self.output_names[k]}'"
            check_array(array, what)
            if array.shape != (*shape, samples):
                raise KernelError(f"{what}: got shape {array.shape}, allowed is {(*shape, samples)}")
            if not (is_plain(array) and array.flags.writeable):
                raise KernelError(f"{what}: got a read-only or strided array, allowed is a contiguous last axis")
            if any(np.shares_memory(array, other) for other in inputs):
                raise KernelError(f"{what}: got memory that an input uses too, allowed is memory of its own")
        return tuple(out)


def _samples_of(out: Sequence[np.ndarray] | None) -> int:
    """Return the number of samples when no input says it."""
    return out[0].shape[-1] if out and isinstance(out[0], np.ndarray) and out[0].ndim else 1
