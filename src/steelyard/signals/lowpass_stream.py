"""The low-pass filter block by block, equal to the whole-array filter.

Forward: the state is carried on. Backward: the pass that yields a block starts one memory length later in the signal,
at rest on the sample there; what is wrong with that start has died out when the block is reached.
"""

from __future__ import annotations

import numpy as np

from .checks import RowMemory, check_finite
from .lowpass import LowPass, check_length
from .recursive import sosfilt, sosfilt_zi


class LowPassStream:
    """Filters signals that come in blocks.

    Zero phase holds back up to two memory lengths of samples; :meth:`flush` returns the rest. In all as many samples
    come out as went in.

    Args:
        filter_: The filter.
    """

    def __init__(self, filter_: LowPass) -> None:
        self.filter = filter_
        self._memory = filter_.memory()
        self._rest = sosfilt_zi(filter_.sections) if len(filter_.sections) else np.empty(0)
        self._restart()

    def _restart(self) -> None:
        self._rows = RowMemory("block")
        self._taken = 0
        self._offset: np.ndarray | None = None  # the first sample: a constant passes exactly, see apply_low_pass
        self._start: np.ndarray | None = None  # samples before the first pass can begin
        self._state: np.ndarray | None = None
        self._last: np.ndarray | None = None  # the last samples as they came, to continue them at the end
        self._forward: list[np.ndarray] = []  # forward-filtered, not yet returned
        self._waiting = 0

    def push(self, block: np.ndarray) -> np.ndarray:
        """Take a block (rows, m) and return the filtered samples (rows, k) that are ready.

        Raises:
            SignalError: If the block does not fit those before or holds a value that is not finite.
        """
        samples = self._rows.check(block)
        check_finite(samples, f"block beginning at sample {self._taken}")
        self._taken += samples.shape[1]
        if self.filter.mode == "none":
            return samples.copy()
        if not samples.shape[1]:
            return self._rows.none()
        if self._offset is None:
            self._offset = samples[:, :1].copy()
        samples = samples - self._offset
        if self.filter.mode == "forward":
            return self._pass_forward(samples) + self._offset
        self._queue(samples)
        if self._waiting < 2 * self._memory + 1:
            return self._rows.none()
        return self._release(self._waiting - self._memory, settled=True) + self._offset

    def flush(self) -> np.ndarray:
        """End the signal: return the rest (rows, k) and make ready for the next signal.

        Raises:
            SignalError: If the signal was too short for the filter.
        """
        check_length(self.filter, self._taken)
        result = self._rows.none()
        if self.filter.mode == "zero_phase" and self._last is not None and self._offset is not None:
            last = self._last
            beyond = 2 * last[:, -1:] - last[:, -2 : -self.filter.pad - 2 : -1]
            self._keep(self._pass_forward(beyond))
            result = self._release(self._waiting - self.filter.pad, settled=False) + self._offset
        self._restart()
        return result

    def _queue(self, samples: np.ndarray) -> None:
        """Filter forward; the first samples wait until they can be continued before the start."""
        pad = self.filter.pad
        recent = samples if self._last is None else np.concatenate([self._last, samples], axis=1)
        self._last = recent[:, -pad - 1 :].copy()
        if self._state is not None:
            self._keep(self._pass_forward(samples))
            return
        held = samples if self._start is None else np.concatenate([self._start, samples], axis=1)
        if held.shape[1] <= pad:
            self._start = held
            return
        self._start = None
        before = 2 * held[:, :1] - held[:, pad:0:-1]
        self._keep(self._pass_forward(np.concatenate([before, held], axis=1))[:, pad:])

    def _pass_forward(self, samples: np.ndarray) -> np.ndarray:
        if self._state is None:
            self._state = self._rest * samples[:, :1]
        result, self._state = sosfilt(self.filter.sections, samples, self._state)
        return result

    def _keep(self, samples: np.ndarray) -> None:
        self._forward.append(samples)
        self._waiting += samples.shape[1]

    def _release(self, count: int, settled: bool) -> np.ndarray:
        """Filter all that waits backward and return its first ``count`` samples; the others wait on."""
        waiting = np.concatenate(self._forward, axis=1)
        backward = sosfilt(self.filter.sections, waiting[:, ::-1], self._rest * waiting[:, -1:])[0]
        self._forward = [waiting[:, count:].copy()] if settled else []
        self._waiting -= count
        return np.ascontiguousarray(backward[:, ::-1][:, :count])
