"""Linear-phase FIR stages: an odd symmetric impulse response, centred, of which every M-th output is computed.

``y[j] = sum_i h[i] x[j M + i - half]``: zero phase by centring, exact in blocks of any size. A few outputs at a
time are one matrix product of samples with a banded matrix; that costs some multiplications by zero and is still
several times faster than sample-by-sample loops, because it runs in BLAS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..errors import SignalError
from .checks import check_finite, shaped_rows

# Rows read side by side: the processor follows about this many streams of memory at once.
_ROWS = 32


@dataclass(frozen=True)
class FirStage:
    """One centred FIR filter that keeps every ``factor``-th output.

    Attributes:
        taps: Impulse response (2 half + 1,), symmetric for zero phase.
        factor: Input samples for one output.
    """

    taps: np.ndarray
    factor: int = 1

    @property
    def half(self) -> int:
        """Samples needed on either side of an output."""
        return len(self.taps) // 2

    @property
    def _together(self) -> int:
        """Outputs of one matrix product: more outputs multiply more zeros, fewer leave BLAS idle."""
        return 16 if len(self.taps) > 16 * self.factor else 8

    @cached_property
    def _band(self) -> np.ndarray:
        """The matrix (taps + (outputs - 1) factor, outputs) whose columns are the shifted impulse response."""
        span = len(self.taps) + (self._together - 1) * self.factor
        band = np.zeros((span, self._together))
        for k in range(self._together):
            band[k * self.factor : k * self.factor + len(self.taps), k] = self.taps
        return band

    def outputs(self, samples: np.ndarray, count: int) -> np.ndarray:
        """Return ``count`` outputs (rows, count); the first is centred on sample ``half``."""
        samples = shaped_rows(samples)  # the windows below take contiguous float64 samples for granted
        result = np.empty((samples.shape[0], count))
        with np.errstate(invalid="ignore", over="ignore"):  # whoever calls looks at the result
            for row in range(0, samples.shape[0], _ROWS):
                self._fill(samples[row : row + _ROWS], result[row : row + _ROWS])
        return result

    def _fill(self, samples: np.ndarray, result: np.ndarray) -> None:
        rows, count = result.shape
        together = self._together
        whole, rest = divmod(count, together)
        step = together * self.factor
        if whole:
            stride = samples.strides[0]
            windows = as_strided(samples, (whole, rows, self._band.shape[0]), (8 * step, stride, 8), writeable=False)
            places = as_strided(result, (whole, rows, together), (8 * together, result.strides[0], 8))
            np.matmul(windows, self._band, out=places)
        if rest:
            span = len(self.taps) + (rest - 1) * self.factor
            part = samples[:, whole * step : whole * step + span]
            result[:, whole * together :] = part @ self._band[:span, :rest]


class FirStream:
    """A FIR stage fed block by block. Samples carry numbers; outputs lie at multiples of the stage's factor.

    Args:
        stage: The filter.
        first: Number of the first sample that will come.
        first_row: Number of the first row, for messages.
    """

    def __init__(self, stage: FirStage, first: int = 0, first_row: int = 0) -> None:
        self.stage = stage
        self._first_row = first_row
        self.first_output = -(-(first + stage.half) // stage.factor)
        self._tail: np.ndarray | None = None
        self._at = first  # number of the first sample in the tail
        # Samples still to throw away before the window of the next output begins.
        self._skip = self.first_output * stage.factor - stage.half - first

    def push(self, block: np.ndarray) -> np.ndarray:
        """Take a block (rows, m) and return the outputs (rows, k) that are complete.

        Raises:
            SignalError: If a value is not finite.
        """
        thrown = min(self._skip, block.shape[1])
        if thrown:
            check_finite(block[:, :thrown], "signal", self._at, self._first_row)
            self._skip -= thrown
            self._at += thrown
            block = block[:, thrown:]
        if self._tail is None or not self._tail.shape[1]:
            return self._outputs_of(block)
        # The few outputs across the seam come from a copy; the block itself is not copied.
        held = self._tail.shape[1]
        across = -(-held // self.stage.factor)
        seam = min(block.shape[1], len(self.stage.taps) + (across - 1) * self.stage.factor - held)
        first = self._outputs_of(np.concatenate([self._tail, block[:, :seam]], axis=1))
        if first.shape[1] < across or seam == block.shape[1]:
            return first
        return np.concatenate([first, self._outputs_of(block[:, across * self.stage.factor - held :])], axis=1)

    def _outputs_of(self, samples: np.ndarray) -> np.ndarray:
        """Return all outputs within these samples, and keep the samples that the next output needs."""
        count = max(0, (samples.shape[1] - len(self.stage.taps)) // self.stage.factor + 1)
        result = self.stage.outputs(samples, count)
        # Every sample is a factor in some output: the sum of the few outputs shows what is wrong with the many samples.
        with np.errstate(invalid="ignore", over="ignore"):
            total = float(result.sum())
        if not math.isfinite(total):
            check_finite(samples, "signal", self._at, self._first_row)
            raise SignalError("signal: got values too large to filter (overflow)")
        used = min(count * self.stage.factor, samples.shape[1])
        self._skip += count * self.stage.factor - used
        self._tail = samples[:, used:].copy()
        self._at += used
        return result

    def flush(self) -> np.ndarray:
        """End the signal; nothing is left to return.

        Raises:
            SignalError: If a value is not finite among the last samples, which no output used.
        """
        if self._tail is None:
            return np.empty((0, 0))
        check_finite(self._tail, "signal", self._at, self._first_row)
        return self._tail[:, :0]
