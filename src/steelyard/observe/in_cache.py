"""Decimation of many rows in place: samples are written where the filter reads them, and stay in the cache.

The same stages and the same outputs as :class:`steelyard.signals.Decimator`, which takes arrays of any origin; here the
regressor writes its rows straight into the filter's buffer, a few hundred samples at a time.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..signals import Decimator, FirStage
from .preparation import SettledPreparation

# Numbers in a line of the cache.
_LINE = 8
# Outputs of one matrix product: more would multiply more zeros, fewer leave BLAS idle.
_TOGETHER = 8


class InPlaceDecimator(Protocol):
    """Takes samples that were written to ``inputs`` (rows, width)."""

    inputs: np.ndarray

    def advance(self, count: int, outputs: np.ndarray) -> int:
        """Take the first ``count`` columns of ``inputs``, write what they complete and return how many outputs it is.

        Outputs may have waited: ``outputs`` (rows, m) needs room for as many as ``count`` and the filter's length give.
        """
        ...

    def flush(self) -> np.ndarray:
        """End the signal and return the last outputs (rows, k)."""
        ...


def in_place_decimator(settled: SettledPreparation, rows: int, width: int) -> InPlaceDecimator:
    """Return the decimator of a preparation for so many rows, at most ``width`` samples at a time."""
    if settled.decimates and settled.chosen.ends == "mirror":
        return _Mirroring(settled, rows, width)
    return _Dropping(settled.decimation_filter.stages, rows, width)


def decimator_of(settled: SettledPreparation) -> Decimator:
    """Return the decimator of a preparation for arrays."""
    filter_, chosen = settled.decimation_filter, settled.chosen
    return Decimator(filter_.rate, filter_.factor, filter_.cutoff, attenuation=filter_.attenuation, ends=chosen.ends)


class _Dropping:
    """Outputs nearer to an end than the filter's half length are dropped; without stages samples just pass."""

    def __init__(self, stages: tuple[FirStage, ...], rows: int, width: int) -> None:
        self._stages: list[_Stage] = []
        first = 0
        for stage in stages:
            self._stages.append(_Stage(stage, rows, width, first))
            width, first = width // stage.factor + 1, self._stages[-1].first_output
        self.inputs = self._stages[0].inputs if stages else np.empty((rows, width))

    def advance(self, count: int, outputs: np.ndarray) -> int:
        if not self._stages:
            outputs[:, :count] = self.inputs[:, :count]
            return count
        for stage, place in zip(self._stages, [*(later.inputs for later in self._stages[1:]), outputs], strict=True):
            count = stage.advance(count, place)
        return count

    def flush(self) -> np.ndarray:
        return self.inputs[:, :0]


class _Mirroring:
    """The signal is mirrored at its ends."""

    def __init__(self, settled: SettledPreparation, rows: int, width: int) -> None:
        self.inputs = np.empty((rows, width))
        self._decimator = decimator_of(settled)

    def advance(self, count: int, outputs: np.ndarray) -> int:
        ready = self._decimator.push(self.inputs[:, :count].copy())
        outputs[:, : ready.shape[1]] = ready
        return ready.shape[1]

    def flush(self) -> np.ndarray:
        return self._decimator.flush()


class _Stage:
    """A FIR stage with a buffer: samples still needed stand right before the place where new ones are written.

    Samples carry numbers from ``first`` on; outputs lie at multiples of the stage's factor.
    """

    def __init__(self, stage: FirStage, rows: int, width: int, first: int) -> None:
        self.factor, self._taps = stage.factor, len(stage.taps)
        self._front = -(-self._taps // _LINE) * _LINE
        lines = -(-(self._front + width) // _LINE)
        # An odd number of lines from row to row: neighbours do not fall on the same sets of the cache.
        self._buffer = np.empty((rows, _LINE * (lines + 1 - lines % 2)))
        self.inputs = self._buffer[:, self._front : self._front + width]
        self._held = 0
        # Samples to throw away before the window of the next output begins.
        self.first_output = -(-(first + stage.half) // self.factor)
        self._skip = self.first_output * self.factor - stage.half - first
        self._band = np.zeros((self._taps + (_TOGETHER - 1) * self.factor, _TOGETHER))
        for k in range(_TOGETHER):
            self._band[k * self.factor : k * self.factor + self._taps, k] = stage.taps

    def advance(self, count: int, outputs: np.ndarray) -> int:
        """Take ``count`` new samples, write the outputs that they complete and return how many these are."""
        first, last = self._front - self._held, self._front + count
        thrown = min(self._skip, last - first)
        self._skip -= thrown
        first += thrown
        ready = max(0, (last - first - self._taps) // self.factor + 1)
        self._filter(first, outputs[:, :ready])
        first += ready * self.factor
        self._skip += max(0, first - last)
        self._held = max(0, last - first)
        self._buffer[:, self._front - self._held : self._front] = self._buffer[:, last - self._held : last]
        return ready

    def _filter(self, first: int, outputs: np.ndarray) -> None:
        rows, count = outputs.shape
        whole, rest = divmod(count, _TOGETHER)
        step, span = _TOGETHER * self.factor, len(self._band)
        if whole:
            shape, strides = (whole, rows, span), (8 * step, self._buffer.strides[0], 8)
            windows = as_strided(self._buffer[:, first:], shape, strides, writeable=False)
            places = as_strided(outputs, (whole, rows, _TOGETHER), (8 * _TOGETHER, outputs.strides[0], 8))
            np.matmul(windows, self._band, out=places)
        if rest:
            first, span = first + whole * step, self._taps + (rest - 1) * self.factor
            outputs[:, whole * _TOGETHER :] = self._buffer[:, first : first + span] @ self._band[:span, :rest]
