"""The memory of one run over time: columns filled up to whole vectors, and what each block knows of it."""

from __future__ import annotations

import numpy as np

from .arrays import address_of, rows_of, spread_rows
from .loop_driver import FRAME_FIELDS
from .lower import BLOCK


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
