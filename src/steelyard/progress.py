"""Progress callbacks of long computations: functions of the amount done and the total amount."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[float, float], None]
"""Called with the amount done and the amount in all, in the same unit."""


def silent(done: float, total: float) -> None:
    """Report nothing."""


def part_of(progress: Progress, index: int, count: int) -> Progress:
    """Return the callback of one of several equal parts, which reports to that of the whole."""
    return lambda done, total: progress(index + done / total, count)
