"""Positions to q, qd and qdd block by block, with everything else that was recorded kept beside them."""

from __future__ import annotations

import numpy as np

from ..signals import LowPassStream, central_difference
from .preparation import SettledPreparation


class Fifo:
    """Columns that wait until they are asked for."""

    def __init__(self) -> None:
        self._parts: list[np.ndarray] = []
        self.count = 0

    def put(self, columns: np.ndarray) -> None:
        """Add columns (rows, m) at the end."""
        if columns.shape[1]:
            self._parts.append(columns)
            self.count += columns.shape[1]

    def take(self, count: int) -> np.ndarray:
        """Return the first ``count`` columns."""
        joined = self._parts[0] if len(self._parts) == 1 else np.concatenate(self._parts, axis=1)
        # A copy, so that a small rest does not keep a large block alive.
        self._parts = [joined[:, count:].copy()]
        self.count -= count
        return joined[:, :count]


class SegmentMotion:
    """Filters and differentiates one segment; samples keep their company, ends are trimmed.

    Signals come as rows ``[positions (n); velocities (n) if recorded; others]`` and leave as
    ``[q (n); qd (n); qdd (n); others]``.

    Args:
        settled: The preparation.
    """

    def __init__(self, settled: SettledPreparation) -> None:
        self._settled = settled
        self._size = len(settled.joints)
        self._recorded = settled.chosen.velocity == "recorded"
        self._filter = LowPassStream(settled.low_pass)
        self._others = Fifo()
        self._tail: np.ndarray | None = None
        self._to_drop, self._held_back = settled.trim
        self._ready = Fifo()
        self._taken = 0
        self._returned = 0

    @property
    def is_too_short(self) -> bool:
        """Whether the segment has too few samples for the filter."""
        low = self._settled.low_pass
        return self._taken < max(sum(low.ends()), low.pad) + 1

    def push(self, signals: np.ndarray) -> np.ndarray | None:
        """Take a block (rows, m) and return the columns (rows, k) that are ready, if any."""
        filtered = self._size * (2 if self._recorded else 1)
        self._taken += signals.shape[1]
        self._others.put(signals[filtered:])
        self._move(self._filter.push(signals[:filtered]))
        return self._release(self._ready.count - self._held_back)

    def flush(self) -> np.ndarray | None:
        """End the segment and return its last columns, if any."""
        if self.is_too_short:
            return None
        self._move(self._filter.flush())
        return self._release(self._ready.count - self._held_back)

    def _release(self, count: int) -> np.ndarray | None:
        drop = min(self._to_drop, max(0, count))
        if drop:
            self._ready.take(drop)
            self._to_drop -= drop
        return self._ready.take(count - drop) if count > drop else None

    def _move(self, smooth: np.ndarray) -> None:
        margin = self._settled.margin
        joined = smooth if self._tail is None else np.concatenate([self._tail, smooth], axis=1)
        count = joined.shape[1] - 2 * margin
        if not smooth.shape[1] or count <= 0:
            self._tail = joined
            return
        if not self._returned:
            self._others.take(margin)
        self._returned += count
        self._tail = joined[:, count:].copy()
        self._ready.put(np.concatenate([*self._derivatives(joined, margin), self._others.take(count)]))

    def _derivatives(self, smooth: np.ndarray, margin: int) -> tuple[np.ndarray, ...]:
        rate = self._settled.rate
        q = smooth[: self._size, margin:-margin]
        if self._recorded:
            velocity = smooth[self._size :]
            return q, velocity[:, margin:-margin], central_difference(velocity, rate)
        qdd = central_difference(smooth, rate, self._settled.chosen.second)
        inner = margin - 1
        return q, central_difference(smooth, rate)[:, inner : inner + qdd.shape[1]], qdd
