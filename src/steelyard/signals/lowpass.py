"""Low-pass Butterworth filters with the stated cut-off, for whole arrays and block by block.

Forward and backward filtering squares the amplitude: a Butterworth filter designed for a cut-off is down by 6 dB there,
not by 3. The corrected design shifts the cut-off of each pass such that both together are down by 3 dB at the stated
frequency: with ``w = tan(pi f / rate)`` and order n in each pass the total amplitude is ``1 / (1 + (w / w_d)^(2n))``,
hence ``w_d = w_c (sqrt(2) - 1)^(-1 / 2n)``, exactly.

Block by block the result is that of the whole array. Forward, the state is carried on. Backward, the pass that yields a
block starts one memory length later in the signal, at rest on the sample there; what is wrong with that start has died
out when the block is reached.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from ..errors import SignalError
from .checks import (
    ColumnQueue,
    RowMemory,
    as_rows,
    check_choice,
    check_cutoff,
    check_finite,
    check_order,
    check_positive,
    frozen,
    joined,
    shaped_rows,
)
from .recursive import butter, sosfilt, sosfilt_zi, sosfiltfilt, sosfreqz

Mode = Literal["zero_phase", "forward", "none"]
Design = Literal["corrected", "per_pass"]
MODES = ("zero_phase", "forward", "none")
DESIGNS = ("corrected", "per_pass")

STREAM_TOLERANCE = 1e-13
"""What is left of a disturbance where blocks are joined."""

END_TOLERANCE = 1e-4
"""What is left of the unknown samples beyond an end where the trimmed signal begins."""


@dataclass(frozen=True)
class LowPass:
    """A low-pass filter as built. Make one with :func:`low_pass`.

    Attributes:
        rate: Sampling rate [Hz].
        cutoff: Cut-off [Hz]; None if nothing is filtered.
        order: Order of each pass: ``scipy.signal.butter(order, ...)``. Two passes fall off like order 2n.
        mode: ``zero_phase`` (forward and backward), ``forward`` or ``none`` (P1's three cases).
        design: ``corrected``: -3 dB at the cut-off. ``per_pass``: -3 dB at the cut-off in each pass, -6 dB in both.
        sections: Second-order sections of one pass (k, 6).
    """

    rate: float
    cutoff: float | None
    order: int
    mode: Mode
    design: Design
    sections: np.ndarray

    @property
    def pad(self) -> int:
        """Samples by which the signal is continued at its ends before filtering (as scipy does)."""
        taps = 2 * len(self.sections) + 1
        taps -= min(int((self.sections[:, 2] == 0).sum()), int((self.sections[:, 5] == 0).sum()))
        return 3 * taps if self.mode == "zero_phase" else 0

    def response(self, frequency: np.ndarray) -> np.ndarray:
        """Return the complex response at frequencies [Hz]."""
        frequency = np.asarray(frequency, dtype=float)
        if self.mode == "none":
            return np.ones(frequency.shape, dtype=complex)
        one_pass = sosfreqz(self.sections, frequency, self.rate)
        return one_pass if self.mode == "forward" else np.abs(one_pass) ** 2 + 0j

    def memory(self, tolerance: float = STREAM_TOLERANCE) -> int:
        """Return after how many samples the impulse response of one pass stays below ``tolerance`` of its peak."""
        if self.mode == "none":
            return 0
        return _memory(self.sections.tobytes(), len(self.sections), float(tolerance))

    def ends(self, tolerance: float = END_TOLERANCE) -> tuple[int, int]:
        """Return how many samples at the start and at the end are touched by what lies beyond the data."""
        memory = self.memory(tolerance)
        return (memory, memory if self.mode == "zero_phase" else 0)


@lru_cache(maxsize=64)
def _memory(sections: bytes, count: int, tolerance: float) -> int:
    sos = np.frombuffer(sections).reshape(count, 6)
    radius = max(float(np.abs(np.roots(section[3:])).max()) for section in sos)
    # Several poles of nearly the same size decay later than one; twice the time of the slowest is ample.
    horizon = int(2 * math.log(tolerance) / math.log(max(radius, 1e-3))) + 50
    size = np.abs(sosfilt(sos, np.eye(1, horizon))[0][0])
    return int(np.flatnonzero(size > tolerance * size.max())[-1]) + 1


def low_pass(
    rate: float, cutoff: float | None, order: int = 4, mode: Mode = "zero_phase", design: Design = "corrected"
) -> LowPass:
    """Design a low-pass Butterworth filter.

    Args:
        rate: Sampling rate [Hz].
        cutoff: Cut-off [Hz]; may be None only with mode ``none``.
        order: Order of each pass, 1 to 16.
        mode: ``zero_phase``, ``forward`` or ``none``.
        design: ``corrected`` puts the -3 dB point of the whole filter at the cut-off. ``per_pass`` is the usual
            ``butter`` and ``sosfiltfilt``: -6 dB at the cut-off with zero phase. They differ with zero phase only.

    Raises:
        SignalError: If the cut-off is not below the Nyquist frequency, or mode or design is unknown.
    """
    check_choice(mode, MODES, "filter mode")
    check_choice(design, DESIGNS, "filter design")
    rate = check_positive(rate, "sampling rate")
    order = check_order(order)
    if mode == "none":
        return LowPass(rate, None, order, mode, design, frozen(np.empty((0, 6))))
    if cutoff is None:
        raise SignalError(f"filter: got no cut-off, needed is one in Hz with mode '{mode}'; mode 'none' needs none")
    cutoff = check_cutoff(cutoff, rate)
    built = cutoff
    if (mode, design) == ("zero_phase", "corrected"):
        warped = math.tan(math.pi * cutoff / rate) * (math.sqrt(2) - 1) ** (-0.5 / order)
        built = rate / math.pi * math.atan(warped)
    return LowPass(rate, cutoff, order, mode, design, frozen(butter(order, built, rate)))


def evaluation_filter(rate: float, cutoff: float) -> LowPass:
    """Return the filter under which relative torque errors are compared: order 4, zero phase, designed per pass."""
    return low_pass(rate, cutoff, 4, "zero_phase", "per_pass")


def apply_low_pass(filter_: LowPass, values: np.ndarray) -> np.ndarray:
    """Filter whole signals (rows, N) to the same shape.

    Zero phase: ``scipy.signal.sosfiltfilt`` (odd continuation at the ends). Forward: started at rest on the first
    sample. The samples named by :meth:`LowPass.ends` are influenced by the ends; :func:`trim_ends` cuts them.

    Raises:
        SignalError: If the signal is not finite, or too short to leave a single sample after trimming.
    """
    rows = as_rows(values)
    if filter_.mode == "none":
        return rows.copy()
    check_length(filter_, rows.shape[1])
    # A constant passes as it is: without its first sample a joint at rest has no velocity, not even one by rounding.
    moved = rows - rows[:, :1]
    if filter_.mode == "zero_phase":
        return sosfiltfilt(filter_.sections, moved, filter_.pad) + rows[:, :1]
    return sosfilt(filter_.sections, moved)[0] + rows[:, :1]


def trim_ends(filter_: LowPass, values: np.ndarray, tolerance: float = END_TOLERANCE) -> np.ndarray:
    """Return signals (rows, N) without the samples that the ends influence by more than ``tolerance``."""
    rows = shaped_rows(values)
    start, end = filter_.ends(tolerance)
    check_length(filter_, rows.shape[1], tolerance)
    return rows[:, start : rows.shape[1] - end]


def check_length(filter_: LowPass, samples: int, tolerance: float = END_TOLERANCE) -> None:
    """Raise a SignalError if nothing of a signal of this length is free of the filter's ends."""
    needed = max(sum(filter_.ends(tolerance)), filter_.pad) + 1
    if samples < needed:
        raise SignalError(
            f"signal: got {samples} samples, needed are at least {needed} ({needed / filter_.rate:.3g} s) for a "
            f"low-pass of order {filter_.order} at {filter_.cutoff:.3g} Hz; record longer or raise the cut-off"
        )


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
        self._forward = ColumnQueue()  # forward-filtered, not yet returned

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
        if self._forward.count < 2 * self._memory + 1:
            return self._rows.none()
        return self._release(self._forward.count - self._memory) + self._offset

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
            self._forward.put(self._pass_forward(beyond))
            result = self._release(self._forward.count - self.filter.pad) + self._offset
        self._restart()
        return result

    def _queue(self, samples: np.ndarray) -> None:
        """Filter forward; the first samples wait until they can be continued before the start."""
        pad = self.filter.pad
        self._last = joined(self._last, samples)[:, -pad - 1 :].copy()
        if self._state is not None:
            self._forward.put(self._pass_forward(samples))
            return
        held = joined(self._start, samples)
        if held.shape[1] <= pad:
            self._start = held
            return
        self._start = None
        before = 2 * held[:, :1] - held[:, pad:0:-1]
        self._forward.put(self._pass_forward(np.concatenate([before, held], axis=1))[:, pad:])

    def _pass_forward(self, samples: np.ndarray) -> np.ndarray:
        if self._state is None:
            self._state = self._rest * samples[:, :1]
        result, self._state = sosfilt(self.filter.sections, samples, self._state)
        return result

    def _release(self, count: int) -> np.ndarray:
        """Filter all that waits backward and return its first ``count`` samples; the others wait on."""
        waiting = self._forward.all()
        backward = sosfilt(self.filter.sections, waiting[:, ::-1], self._rest * waiting[:, -1:])[0]
        self._forward.drop(count)
        return np.ascontiguousarray(backward[:, ::-1][:, :count])


class SegmentFilter:
    """Filters the signals of one segment that come in blocks, delays others alike and trims the ends of both.

    Args:
        filter_: The filter.
        trim: Samples to cut at the start and at the end; those of :meth:`LowPass.ends` by default.
    """

    def __init__(self, filter_: LowPass, trim: tuple[int, int] | None = None) -> None:
        self._stream, self._others, self._ready = LowPassStream(filter_), ColumnQueue(), ColumnQueue()
        self._to_drop, self._held_back = filter_.ends() if trim is None else trim
        self._needed = max(sum(filter_.ends()), filter_.pad) + 1
        self._taken = 0

    def push(self, signals: np.ndarray, others: np.ndarray) -> np.ndarray | None:
        """Take signals (m, k) and others (c, k); return columns ``[filtered; others]`` that are ready, if any."""
        self._taken += signals.shape[1]
        self._others.put(others)
        return self._released(self._stream.push(signals))

    def flush(self) -> np.ndarray | None:
        """End the segment and return its last columns; None too if it was too short for the filter."""
        return None if self._taken < self._needed else self._released(self._stream.flush())

    def _released(self, smooth: np.ndarray) -> np.ndarray | None:
        if smooth.shape[1]:
            self._ready.put(np.concatenate([smooth, self._others.take(smooth.shape[1])]))
        count = self._ready.count - self._held_back
        drop = min(self._to_drop, max(0, count))
        if drop:
            self._ready.drop(drop)
            self._to_drop -= drop
        return self._ready.take(count - drop) if count > drop else None
