"""When a simulated run is of no use: its numbers end, or the arm is nowhere near the motion it was told to follow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

FAR = 3.0
"""A loop that is more widths of the motion than this away from its reference has lost it."""

OnLost = Callable[[int, str], None]
"""Told which run diverged, and why, in words that follow the run's name."""


def divergence(time: float) -> str:
    """Return why a run whose numbers ended before a time [s] is of no use, and what helps."""
    return f"diverged before {time:.2f} s; lower the gains or the disturbance, or raise the plant_rate"


def departures(q: np.ndarray, reference: np.ndarray, span: np.ndarray | None = None) -> np.ndarray:
    """Return how far each run went from its reference (C,), in widths of the motion: its range and 1 rad or m.

    Args:
        q: Positions of every run (C, n, N).
        reference: Commanded positions (n, N).
        span: Range of the whole motion (n,), where the reference is a part of it.
    """
    width = 1.0 + (np.ptp(reference, axis=1) if span is None else span)
    return (np.abs(q - reference).max(axis=2) / width).max(axis=1)
