"""Checks of logs that need no model, in bounded memory: samples in blocks, findings at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np

from ..record import Finding, Reblocker, Samples
from .agreement import TorqueRatio, VelocityAgreement
from .motion import Movement
from .resolution import Holding, Quantisation
from .saturation import Saturation
from .spectra import Spectra
from .subject import Subject as Subject
from .subject import subject_of as subject_of
from .time_steps import TimeSteps
from .values import Jumps, Ranges, Spikes

BLOCK = 16_384
"""Steps that a check gets at once, whatever the blocks of the reader: findings do not depend on them."""


class Check(Protocol):
    """What a check has: samples in, findings out."""

    def take(self, block: Samples, fresh: int) -> None:
        """Add a block; its samples before ``fresh`` were in the block before."""
        ...

    def findings(self) -> Iterator[Finding]:
        """Yield the findings."""
        ...


CHECKS: tuple[Callable[[Subject], Check], ...] = (
    TimeSteps, Ranges, Jumps, Spikes, VelocityAgreement, TorqueRatio, Movement, Saturation, Spectra,
    Quantisation, Holding,
)  # fmt: skip


class Checker:
    """Runs all checks over the samples of a recording, in bounded memory."""

    def __init__(self, subject: Subject) -> None:
        self._checks = [check(subject) for check in CHECKS]
        self._blocks = Reblocker(BLOCK + 1, overlap=1)
        self._fresh = 0

    def take(self, samples: Samples) -> None:
        """Add samples."""
        for block in self._blocks.take(samples):
            self._check(block)

    def _check(self, block: Samples) -> None:
        with np.errstate(all="ignore"):
            for check in self._checks:
                check.take(block, self._fresh)
        self._fresh = 1

    def findings(self) -> list[Finding]:
        """Return the findings of all checks; no samples can be added after."""
        for block in self._blocks.rest():
            self._check(block)
        with np.errstate(all="ignore"):
            return [finding for check in self._checks for finding in check.findings()]
