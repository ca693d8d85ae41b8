"""Progress callbacks of long computations, and of the stages of a job."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[float, float], None]
"""Called with the amount done and the total amount, in the same unit."""

Stage = Callable[[str], Progress]
"""Called with the stage name; returns a progress callback."""


def silent(done: float, total: float) -> None:
    """Report nothing."""


def part_of(progress: Progress, index: int, count: int) -> Progress:
    """Return the callback of one of several equal parts, which reports to that of the whole."""
    return lambda done, total: progress(index + done / total, count)


def no_stages(name: str) -> Progress:
    """Report no stage and no progress."""
    del name
    return silent
