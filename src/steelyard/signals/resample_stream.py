"""Resampling block by block: equal to resampling the whole, with gaps split alike."""

from __future__ import annotations

import numpy as np

from ..errors import SignalError
from .checks import RowMemory, check_finite, check_positive, frozen
from .resampling import Method, Segment, check_method, grid_range, interpolant
from .sampling import check_time

# Stamps on either side that an interpolated value depends on. A spline's influence falls by 3.7 from stamp to stamp:
# 1e-16 after 28; uneven stamps slow that down a little.
_REACH = {"linear": 1, "monotone": 3, "cubic": 48}


class ResampleStream:
    """Puts signals that come in blocks on a uniform grid that starts at the first stamp.

    Args:
        rate: Grid points a second [Hz].
        method: ``linear``, ``cubic`` or ``monotone``.
        max_gap: Intervals longer than this are not bridged [s].

    Attributes:
        start: Time of grid point 0 [s]; None before the first block.
        lone_samples: Samples lost because they stood alone between two gaps.
    """

    def __init__(self, rate: float, max_gap: float, method: Method = "linear") -> None:
        check_method(method)
        if method == "none":
            raise SignalError("resampling method: got 'none', allowed in a stream are linear, cubic, monotone")
        self._rate = check_positive(rate, "sampling rate")
        self._max_gap = check_positive(max_gap, "longest gap", "s")
        self._method = method
        self.start: float | None = None
        self.lone_samples = 0
        self._rows = RowMemory("block")
        self._time = np.empty(0)
        self._values: np.ndarray | None = None
        self._next = 0

    def push(self, time: np.ndarray, block: np.ndarray) -> tuple[Segment, ...]:
        """Take stamps (m,) and a block (rows, m); return the pieces of the grid that are ready.

        A piece that begins where the one before ended continues it; otherwise a gap lies between.

        Raises:
            SignalError: If stamps do not increase, within the block or from the one before.
        """
        rows = self._rows.check(block)
        check_finite(rows, "block")
        stamps = np.asarray(time, dtype=np.float64)
        if stamps.shape != (rows.shape[1],):
            raise SignalError(
                f"resample: got time stamps {stamps.shape} for {rows.shape[1]} samples, allowed is one each"
            )
        self._time = check_time(np.concatenate([self._time, stamps]), least=0)
        self._values = rows.copy() if self._values is None else np.concatenate([self._values, rows], axis=1)
        if self.start is None and len(self._time):
            self.start = float(self._time[0])
        pieces = []
        while len(gaps := np.flatnonzero(np.diff(self._time) > self._max_gap)):
            pieces += self._finish(int(gaps[0]) + 1)
        pieces += self._ready()
        return tuple(pieces)

    def flush(self) -> tuple[Segment, ...]:
        """End the signal and return the last piece of the grid, if any."""
        return tuple(self._finish(len(self._time)))

    def _finish(self, count: int) -> list[Segment]:
        """Emit what is left of the segment that ends after ``count`` stamps, and forget it."""
        pieces = []
        if count >= 2:
            pieces = self._emit(count, float(self._time[count - 1]))
        elif count == 1:
            self.lone_samples += 1
        self._drop(count)
        return pieces

    def _ready(self) -> list[Segment]:
        """Emit what no later stamp can change, and forget the stamps that nothing later depends on."""
        reach = _REACH[self._method]
        if len(self._time) <= reach + 1:
            return []
        pieces = self._emit(len(self._time), float(self._time[-1 - reach]))
        assert self.start is not None
        done = int(np.searchsorted(self._time, self.start + self._next / self._rate, side="right")) - 1
        self._drop(max(0, min(done, len(self._time) - 1) - reach))
        return pieces

    def _emit(self, count: int, last: float) -> list[Segment]:
        assert self.start is not None
        assert self._values is not None
        first, stop = grid_range(float(self._time[0]), last, self.start, self._rate)
        first = max(first, self._next)
        if stop <= first:
            return []
        at = np.clip(self.start + np.arange(first, stop) / self._rate, self._time[0], self._time[count - 1])
        self._next = stop
        curve = interpolant(self._method, self._time[:count], self._values[:, :count])
        return [Segment(first, frozen(curve(at)))]

    def _drop(self, count: int) -> None:
        assert self._values is not None or count == 0
        self._time = self._time[count:]
        if self._values is not None:
            self._values = self._values[:, count:]
