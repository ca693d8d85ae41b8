"""The step of the encoder: the smallest difference of which all differences are multiples."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..record import Finding
from ..samples import Samples
from .subject import Subject

LEAST_STEPS = 20
"""Small steps needed to tell a grid."""
SMALL = 5.5
"""Steps of up to so many of the smallest speak: rounding of written numbers spoils larger ones."""
OFF_GRID = 0.1
"""Largest distance from a multiple, in steps; nine in ten must be nearer."""
ATTEMPTS = 16
"""Blocks in which a grid is looked for."""


class Quantisation:
    """Looks at the first blocks until each joint's step is known."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._steps: list[float | None] = [None] * len(subject.joints)
        self._attempts = 0

    def take(self, block: Samples, fresh: int) -> None:
        """Find the step of joints whose step is not known yet."""
        number = self._subject.row("q")
        if number is None or None not in self._steps or self._attempts == ATTEMPTS:
            return
        self._attempts += 1
        for row, known in enumerate(self._steps):
            if known is None:
                self._steps[row] = quantum(block.channels[number][row])

    def findings(self) -> Iterator[Finding]:
        """Yield the step of each joint on a grid."""
        for joint, step in zip(self._subject.joints, self._steps, strict=True):
            if step:
                text = f"q of {joint} comes in steps of {step:.6g}"
                yield Finding("quantisation", "info", text, "q", joint, values={"step": step})


def quantum(values: np.ndarray) -> float | None:
    """Return the step of a signal on a grid, None if its small steps are too few or on no grid."""
    steps = np.abs(np.diff(values))
    steps = steps[steps > 0]
    if steps.size < LEAST_STEPS:
        return None
    step = float(steps.min())
    small = steps[steps < SMALL * step]
    if small.size < LEAST_STEPS:
        return None
    multiples = np.round(small / step)
    step = float(small.sum() / multiples.sum())
    near = np.abs(small / step - multiples) < OFF_GRID
    return step if near.mean() > 0.9 else None
