"""A symbolic function as a batch function: rows are quantities, columns are samples."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import casadi
import numpy as np

from ..errors import KernelError
from .arrays import ArrayChecker, RowTable, address_of, cells_of, row_table, rows_of, sparsity_of, spread_rows
from .batch_driver import batch_driver, scratch_size
from .emitter import Target, host_target
from .lower import BLOCK, CHUNK_SIZE, MachineCode, Program, lower, machine_code
from .threads import ScratchPool, check_threads, for_each

_OPERATIONS_PER_CALL = 20_000_000
"""Vector operations in one call of machine code: some 10 ms, so that Ctrl-C is heard."""

_CACHE_BYTES = 4_000_000
"""Results larger than this would push everything else out of the cache and are streamed past it."""


def compile_batch(function: casadi.Function, *, target: Target | None = None) -> BatchFunction:
    """Compile a CasADi SX function for arrays of samples.

    Args:
        function: SX function whose inputs are dense column vectors; outputs may be sparse matrices.
        target: Processor to compile for; the one this program runs on by default.

    Raises:
        KernelError: If the function has an operation or an input that cannot be compiled.

    Example:
        >>> from steelyard.physics import inverse_dynamics_function
        >>> torques = steelyard.compile_batch(inverse_dynamics_function(steelyard.load_robot("scara_2r")))
        >>> q, qd, qdd = np.zeros((3, 2, 1000))
        >>> (tau,) = torques(q, qd, qdd, np.ones(20))
        >>> tau.shape
        (2, 1000)
    """
    return _compile(function, target or host_target(), CHUNK_SIZE)


def _compile(function: casadi.Function, target: Target, chunk_size: int) -> BatchFunction:
    program = lower(function, target, chunk_size=chunk_size)
    return BatchFunction(function, program, machine_code(program, batch_driver(program), quick=True))


class BatchFunction:
    """A compiled function of many samples. Make one with :func:`compile_batch`.

    A result depends on its own column alone: it is the same to the last bit for any number of columns, any
    position and any number of threads.

    Attributes:
        name: Name of the CasADi function.
        input_rows: Number of rows of each input.
        output_sparsity: Where the rows of each output belong in its matrix.

    Example:
        >>> from steelyard.physics import inertial_regressor_function
        >>> regressor = steelyard.compile_batch(inertial_regressor_function(steelyard.load_robot("scara_2r")))
        >>> (W,) = regressor.dense(*np.ones((3, 2, 100)))
        >>> regressor.input_rows, W.shape
        ((2, 2, 2), (2, 20, 100))
    """

    def __init__(self, function: casadi.Function, program: Program, code: MachineCode) -> None:
        self.name = program.name
        self.input_rows = program.input_rows
        self.output_sparsity = tuple(sparsity_of(function.sparsity_out(k)) for k in range(function.n_out()))
        self._program = program
        self._code = code
        self._arrays = ArrayChecker(program.name, program.input_rows, function.name_in(), function.name_out())
        self._shapes = [(rows,) for rows in program.output_rows]
        self._dense_shapes = [sparsity.shape for sparsity in self.output_sparsity]
        address, integer = ctypes.c_void_p, ctypes.c_int64
        self._run = code.function("batch", address, address, address, integer, integer)
        self._stream = code.function("stream", address, address, address, integer, integer)
        self._scratch = ScratchPool(scratch_size(program))

    def __call__(
        self, *inputs: np.ndarray, out: Sequence[np.ndarray] | None = None, threads: int = 1
    ) -> tuple[np.ndarray, ...]:
        """Evaluate the function for N samples.

        Args:
            inputs: One float64 array for each input of n rows: (n, N), or (n,) for the same values in all
                samples. If all are (n,), N is that of ``out``, or 1.
            out: Arrays to write to, one (nnz, N) for each output; made if not given.
            threads: Number of threads to share the samples.

        Returns:
            For each output an array (nnz, N): a row for each structural non-zero, in CasADi's order
            (column by column).

        Raises:
            KernelError: If the arrays do not fit the function.
        """
        given, samples = self._arrays.inputs(inputs, out)
        if out is None:
            results = tuple([spread_rows((*shape, samples)) for shape in self._shapes])
        else:
            results = self._arrays.outputs(out, given, self._shapes, samples)
        self._share(given, [rows_of(result) for result in results], samples, threads)
        return results

    def dense(
        self, *inputs: np.ndarray, out: Sequence[np.ndarray] | None = None, threads: int = 1
    ) -> tuple[np.ndarray, ...]:
        """Evaluate the function for N samples into whole matrices.

        Args:
            inputs: As for a call.
            out: Arrays to write to, one (rows, columns, N) for each output; only structural non-zeros are
                written. Made, with zeros elsewhere, if not given.
            threads: Number of threads to share the samples.

        Returns:
            For each output an array (rows, columns, N).
        """
        given, samples = self._arrays.inputs(inputs, out)
        if out is None:
            results = tuple([spread_rows((*shape, samples), zero=True) for shape in self._dense_shapes])
        else:
            results = self._arrays.outputs(out, given, self._dense_shapes, samples)
        cells = [cells_of(result, sparsity) for result, sparsity in zip(results, self.output_sparsity, strict=True)]
        self._share(given, cells, samples, threads)
        return results

    def bind(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> BoundBatch:
        """Tie the function to buffers that are used again and again.

        Args:
            inputs: As for a call; (n, N) arrays are read at each run, (n,) arrays only now.
            outputs: One (nnz, N) array for each output.

        Returns:
            A callable that computes a range of columns with almost no overhead.

        Raises:
            KernelError: If the arrays do not fit the function, or an input is not contiguous along samples.
        """
        given, samples = self._arrays.inputs(tuple(inputs), outputs)
        for k, (array, used) in enumerate(zip(inputs, given, strict=True)):
            if array is not used:
                raise KernelError(
                    f"{self._arrays.input_name(k)}: got strides {array.strides}, allowed is a contiguous last axis"
                )
        results = self._arrays.outputs(outputs, given, self._shapes, samples)
        table = row_table(given, [rows_of(result) for result in results])
        return BoundBatch(self, table, results, samples)

    def _share(self, given: list[np.ndarray], outputs: list[np.ndarray], samples: int, threads: int) -> None:
        """Compute all samples, pieces of them on each thread."""
        check_threads(threads, f"function '{self.name}'")
        if samples == 0:
            return
        table = row_table(given, outputs)
        bases, strides = address_of(table.bases), address_of(table.strides)
        width = _piece(samples, threads, self._program)
        run = self._stream if _is_streamable(outputs, samples) else self._run

        def compute(scratch: int, first: int) -> None:
            run(bases, strides, scratch, first, min(first + width, samples))

        for_each(compute, range(0, samples, width), self._scratch, threads)


class BoundBatch:
    """A compiled function tied to its buffers. Make one with :meth:`BatchFunction.bind`.

    Not for use by two threads at once: bind once for each thread.

    Attributes:
        samples: Number of columns of the buffers.

    Example:
        >>> import casadi
        >>> x = casadi.SX.sym("x", 2)
        >>> square = steelyard.compile_batch(casadi.Function("square", [x], [x * x]))
        >>> x_values, squares = np.array([[1.0, 2.0], [3.0, 4.0]]), np.empty((2, 2))
        >>> run = square.bind([x_values], [squares])
        >>> run()
        >>> squares.tolist()
        [[1.0, 4.0], [9.0, 16.0]]
    """

    def __init__(self, function: BatchFunction, table: RowTable, outputs: tuple[np.ndarray, ...], samples: int) -> None:
        self.samples = samples
        self._function = function
        self._kept = (table, outputs)  # the machine code holds nothing but their addresses
        self._scratch = spread_rows((scratch_size(function._program),))
        self._run = function._run
        self._addresses = (address_of(table.bases), address_of(table.strides), address_of(self._scratch))

    def __call__(self, first: int = 0, stop: int | None = None) -> None:
        """Compute columns ``first`` to ``stop - 1`` (all by default)."""
        stop = self.samples if stop is None else stop
        if not 0 <= first <= stop <= self.samples:
            raise KernelError(
                f"function '{self._function.name}': got columns {first} to {stop}, allowed are 0 to {self.samples}"
            )
        self._run(*self._addresses, first, stop)


def _piece(samples: int, threads: int, program: Program) -> int:
    """Return how many columns to compute in one call: whole blocks, a fair share, not too long."""
    affordable = _OPERATIONS_PER_CALL // (program.cost + program.n_rows + 1) * program.target.lanes
    fair = -(-samples // threads)
    return max(1, -(-min(affordable, fair) // BLOCK)) * BLOCK


def _is_streamable(outputs: list[np.ndarray], samples: int) -> bool:
    """Return whether results are too large to stay in cache, and begin at cache lines."""
    large = sum(map(len, outputs)) * samples * 8 > _CACHE_BYTES
    return large and not any((rows % 64).any() for rows in outputs)
