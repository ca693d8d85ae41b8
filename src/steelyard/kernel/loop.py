"""A symbolic step function compiled to a loop over time; columns are independent runs."""

from __future__ import annotations

import ctypes

import casadi
import numpy as np

from ..errors import KernelError
from .arrays import address_of, check_array, plain, rows_of, spread_rows
from .emitter import Target, host_target
from .loop_driver import FRAME_FIELDS, loop_driver, scratch_size
from .lower import BLOCK, CHUNK_SIZE, MachineCode, Program, lower, machine_code
from .threads import ScratchPool, check_positive, check_threads, for_each


class Run:
    """The arrays of a run of C columns and T steps.

    Columns are filled up to whole vectors with copies of the last one, which cannot run away from the others.

    Attributes:
        columns: C.
        steps: T.
    """

    def __init__(
        self,
        *,
        lanes: int,
        state: np.ndarray,
        parameters: np.ndarray,
        inputs: np.ndarray,
        outputs: int,
        steps: int,
        hold: int,
        every: int,
    ) -> None:
        self.columns = state.shape[1]
        self.steps = steps
        self._padded = -(-self.columns // lanes) * lanes
        self._states = (_filled(state, self._padded), spread_rows((state.shape[0], self._padded)))
        self._shared_parameters = parameters.ndim == 1
        if self._shared_parameters:
            self._parameters = np.repeat(parameters[:, None], BLOCK, axis=1)
        else:
            self._parameters = _filled(parameters, self._padded)
        self._inputs = inputs
        self._records = spread_rows((steps // every, outputs, self._padded))
        self._hold = hold
        self._every = every
        self._lanes = lanes
        self._edge_inputs = inputs

    def final_state(self) -> np.ndarray:
        """Return the state after the last step, shape (ns, C); the two state buffers are used in turns."""
        return self._states[self.steps % 2][:, : self.columns].copy()

    def recorded(self) -> np.ndarray:
        """Return the recorded outputs, shape (T // record_every, ny, C)."""
        return self._records[:, :, : self.columns]

    def frames(self, width: int) -> np.ndarray:
        """Return what the machine code knows of each block of ``width`` columns, a row a block.

        The addresses are those of arrays that live as long as this run.
        """
        starts = range(0, self.columns, width)
        if self._inputs.ndim == 3:
            # The last block is read in whole vectors: a filled copy keeps it from reading beyond the end.
            edge = self._inputs[:, :, starts[-1] :]
            self._edge_inputs = _filled(edge, self._padded - starts[-1])
        return np.stack([self._frame(start, min(width, self._padded - start)) for start in starts])

    def _frame(self, start: int, width: int) -> np.ndarray:
        own_inputs = self._inputs.ndim == 3
        is_last = start + width == self._padded
        inputs = self._edge_inputs if is_last else self._inputs
        fields = {
            "bytes": 8 * width,
            "input_base": address_of(inputs) + (8 * start if own_inputs and not is_last else 0),
            "input_step": inputs.strides[0],
            "input_row": inputs.strides[1],
            "input_column": 8 if own_inputs else 0,
            "hold": self._hold,
            "record_base": address_of(self._records) + 8 * start,
            "record_step": self._records.strides[0],
            "record_row": self._records.strides[1],
            "every": self._every,
            "records": self._records.shape[0],
        }
        unset = np.zeros(self._inputs.shape[1] + self._records.shape[1], dtype=np.int64)  # the machine code sets them
        return np.concatenate(
            [
                np.array([fields[name] for name in FRAME_FIELDS], dtype=np.int64),
                rows_of(self._states[0]) + 8 * start,
                unset[: self._inputs.shape[1]],
                rows_of(self._parameters) + (0 if self._shared_parameters else 8 * start),
                rows_of(self._states[1]) + 8 * start,
                unset[self._inputs.shape[1] :],
            ]
        )


def _filled(array: np.ndarray, width: int) -> np.ndarray:
    """Return a copy whose last axis is ``width`` long, the last column repeated."""
    copy = spread_rows((*array.shape[:-1], width))
    columns = array.shape[-1]
    copy[..., :columns] = array
    copy[..., columns:] = array[..., -1:]
    return copy


_OPERATIONS_PER_CALL = 20_000_000
"""Vector operations in one call of machine code: some 10 ms, so that Ctrl-C is heard."""


def compile_loop(step: casadi.Function, *, target: Target | None = None) -> TimeLoop:
    """Compile a CasADi SX step function into a loop over time.

    Args:
        step: Function (state (ns), input (nu), parameters (np)) -> (next_state (ns), output (ny)), all dense
            columns; nu, np and ny may be 0.
        target: Processor to compile for; the one this program runs on by default.

    Raises:
        KernelError: If the function has another form or an operation that cannot be compiled.

    Example:
        >>> import casadi
        >>> x, u = casadi.SX.sym("x"), casadi.SX.sym("u")
        >>> step = casadi.Function("step", [x, u, casadi.SX.sym("p", 0)], [0.5 * x + u, x])
        >>> state, outputs = steelyard.compile_loop(step)(np.array([[0.0]]), np.ones((4, 1)))
        >>> outputs.ravel().tolist()
        [0.0, 1.0, 1.5, 1.75]
    """
    return _compile(step, target or host_target(), CHUNK_SIZE)


def _compile(step: casadi.Function, target: Target, chunk_size: int) -> TimeLoop:
    _check_step(step)
    program = lower(step, target, chunk_size=chunk_size)
    return TimeLoop(program, machine_code(program, loop_driver(program), quick=False))


def _check_step(step: casadi.Function) -> None:
    if (step.n_in(), step.n_out()) != (3, 2):
        raise KernelError(
            f"step '{step.name()}': got {step.n_in()} inputs and {step.n_out()} outputs, allowed are "
            "(state, input, parameters) -> (next_state, output)"
        )
    for k in range(2):
        sparsity = step.sparsity_out(k)
        if not (sparsity.is_dense() and sparsity.size2() <= 1):
            raise KernelError(
                f"step '{step.name()}': output '{step.name_out(k)}' is {sparsity.dim(True)}, allowed is a dense column"
            )
    if step.size1_in(0) != step.size1_out(0):
        raise KernelError(
            f"step '{step.name()}': got {step.size1_out(0)} next states, allowed are {step.size1_in(0)}, one a state"
        )


class TimeLoop:
    """A compiled loop over time. Make one with :func:`compile_loop`.

    Attributes:
        name: Name of the step function.
        n_states: Number of states ns.
        n_inputs: Number of inputs nu.
        n_parameters: Number of parameters np.
        n_outputs: Number of outputs ny.

    Example:
        >>> import casadi
        >>> x, u = casadi.SX.sym("x"), casadi.SX.sym("u")
        >>> loop = steelyard.compile_loop(casadi.Function("step", [x, u, casadi.SX.sym("p", 0)], [0.5 * x + u, x]))
        >>> loop.n_states, loop.n_inputs, loop.n_outputs
        (1, 1, 1)
    """

    def __init__(self, program: Program, code: MachineCode) -> None:
        self.name = program.name
        self.n_states, self.n_inputs, self.n_parameters = program.input_rows
        self.n_outputs = program.output_rows[1]
        self._program = program
        self._code = code
        address, integer = ctypes.c_void_p, ctypes.c_int64
        self._advance = code.function("advance", address, address, integer, integer)
        self._scratch = ScratchPool(scratch_size(program))

    def __call__(
        self,
        state0: np.ndarray,
        inputs: np.ndarray | None = None,
        parameters: np.ndarray | None = None,
        *,
        steps: int | None = None,
        record_every: int = 1,
        input_hold: int = 1,
        threads: int = 1,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Run T steps for C columns at once.

        Step t = 0 ... T - 1 computes ``x[t+1], y[t] = step(x[t], inputs[t // input_hold], parameters)``.
        Feeding ``x[T]`` back as ``state0`` continues the run, to the last bit as if it had not been
        interrupted, when T is a multiple of ``input_hold`` and ``record_every``.

        Args:
            state0: x[0], shape (ns, C).
            inputs: Shape (rows, nu), shared by all columns, or (rows, nu, C). May be left out if nu is 0.
            parameters: Shape (np,), shared by all columns, or (np, C). May be left out if np is 0.
            steps: T; by default rows * input_hold.
            record_every: Every how many steps the output is recorded.
            input_hold: For how many steps a row of inputs is used.
            threads: Number of threads to share the columns.

        Returns:
            The final state x[T], shape (ns, C), and the outputs, shape (T // record_every, ny, C):
            ``outputs[k] = y[k * record_every]``, computed from the state before that step.

        Raises:
            KernelError: If the arrays do not fit the step function.
        """
        check_threads(threads, f"step '{self.name}'")
        check_positive(record_every, f"step '{self.name}': record_every")
        check_positive(input_hold, f"step '{self.name}': input_hold")
        columns = self._check_state(state0)
        inputs, steps = self._check_inputs(inputs, columns, steps, input_hold)
        run = Run(
            lanes=self._program.target.lanes,
            state=state0,
            parameters=self._check_parameters(parameters, columns),
            inputs=inputs,
            outputs=self.n_outputs,
            steps=steps,
            hold=input_hold,
            every=record_every,
        )
        if columns and steps:
            self._run(run, threads)
        return run.final_state(), run.recorded()

    def _run(self, run: Run, threads: int) -> None:
        """Advance all blocks of columns by some steps, then by some more: Python is back in between."""
        lanes = self._program.target.lanes
        width = min(BLOCK, -(-run.columns // (threads * lanes)) * lanes)
        frames = run.frames(width)
        span = max(1, _OPERATIONS_PER_CALL // ((self._program.cost + self._program.n_rows) * (width // lanes) + 1))
        for first in range(0, run.steps, span):
            stop = min(first + span, run.steps)

            def advance(scratch: int, frame: int, first: int = first, stop: int = stop) -> None:
                self._advance(scratch, frame, first, stop)

            for_each(advance, rows_of(frames).tolist(), self._scratch, threads)

    def _check_state(self, state0: np.ndarray) -> int:
        what = f"step '{self.name}', state0"
        check_array(state0, what)
        if state0.ndim != 2 or state0.shape[0] != self.n_states:
            raise KernelError(f"{what}: got shape {state0.shape}, allowed is ({self.n_states}, C)")
        return state0.shape[1]

    def _check_inputs(
        self, inputs: np.ndarray | None, columns: int, steps: int | None, hold: int
    ) -> tuple[np.ndarray, int]:
        """Return the inputs, contiguous along columns, and the number of steps."""
        what = f"step '{self.name}', inputs"
        if inputs is None and self.n_inputs == 0 and steps is not None:
            inputs = np.empty((-(-steps // hold), 0))
        inputs = check_array(inputs, what)
        allowed = f"(rows, {self.n_inputs}) and (rows, {self.n_inputs}, {columns})"
        if inputs.shape[1:] not in ((self.n_inputs,), (self.n_inputs, columns)):
            raise KernelError(f"{what}: got shape {inputs.shape}, allowed are {allowed}")
        most = inputs.shape[0] * hold
        wanted = most if steps is None else steps
        if not 0 <= wanted <= most:
            raise KernelError(f"step '{self.name}', steps: got {steps}, allowed are 0 to {most}, rows times input_hold")
        return plain(inputs), wanted

    def _check_parameters(self, parameters: np.ndarray | None, columns: int) -> np.ndarray:
        what = f"step '{self.name}', parameters"
        if parameters is None and self.n_parameters == 0:
            parameters = np.empty(0)
        parameters = check_array(parameters, what)
        if parameters.shape not in ((self.n_parameters,), (self.n_parameters, columns)):
            allowed = f"({self.n_parameters},) and ({self.n_parameters}, {columns})"
            raise KernelError(f"{what}: got shape {parameters.shape}, allowed are {allowed}")
        return parameters
