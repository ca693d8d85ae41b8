"""Progress callbacks of long work, and of the stages of a job."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[float, float], None]
"""Called with the amount done and the total amount, in the same unit."""

Stage = Callable[[str], Progress]
"""Called with the stage name; returns a progress callback."""


def silent(done: float, total: float) -> None:
    """Report no progress."""


def no_stages(name: str) -> Progress:
    """Report no stage and no progress."""
    del name
    return silent
