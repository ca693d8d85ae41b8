"""How long work tells how far it is: a function of done and total, called now and then."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[float, float], None]
"""Called with the amount done and the amount in all, in the same unit."""


def silent(done: float, total: float) -> None:
    """Tell nobody."""
