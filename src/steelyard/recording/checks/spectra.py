"""Spectra of positions, velocities and torques: what was low-pass filtered before it was saved, and what vibrates.

Welch's method over segments of about `SECONDS`: all of the first blocks, then one of each, so that the cost of a long
log stays small. Positions enter as second differences, velocities as first ones, so that slow motion does not leak over
the noise (the window suppresses it by 105 dB); the spectra are divided by the differences' gain afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..record import Finding, Samples
from .filtered import filtered_findings
from .resonance import resonance_findings
from .subject import Subject

SECONDS = 10.5
"""Longest segment [s], before rounding down to a power of two: noise between the motion (below 1 Hz) and a filter at 2
Hz must be seen, which the window smears over 0.5 Hz."""
SHORTEST, LONGEST = 256, 8192
"""Samples in a segment: fewer show no floor beside the motion; more would not fit into a block twice."""
WHOLE_BLOCKS = 4
"""Blocks of which all segments are used; of later ones a single one is."""
BETA = 14.0
"""Of the Kaiser window."""
LOBE = 4.6
"""Half the width of the window's main lobe, in lines of the spectrum: ``sqrt(1 + (BETA / pi)^2)``."""
LONG_GAP = 20.0
"""Segments with a step longer than this many medians are left out."""
MOTION_POWER = 0.99
"""Part of the power of a velocity below the frequency that is taken as the end of the motion."""
_DIFFERENCES = {"q": 2, "qd": 1, "torque": 0}


@dataclass(frozen=True)
class Spectrum:
    """Power densities of a channel.

    Attributes:
        role: ``q``, ``qd`` or ``torque``.
        label: Name of the channel.
        rows: Names of its rows.
        frequency: Frequencies, without 0 (F,) [Hz].
        density: Power densities (rows, F) [unit^2/Hz].
        segments: Segments that were averaged.
        deviation: Standard deviation of each row (rows,).
        motion: Frequency at which the motion of each row's joint ends (rows,) [Hz]; 0 for a joint that stands still.
        fundamentals: Frequencies at which each joint moves most (n,) [Hz].
    """

    role: str
    label: str
    rows: tuple[str, ...]
    frequency: np.ndarray
    density: np.ndarray
    segments: int
    deviation: np.ndarray
    motion: np.ndarray
    fundamentals: np.ndarray

    @property
    def line(self) -> float:
        """Distance of two lines [Hz]."""
        return float(self.frequency[0])

    @property
    def lobe(self) -> float:
        """How far the window smears a line to either side [Hz]."""
        return LOBE * self.line


class Spectra:
    """Averages the spectra of all positions, velocities and torques."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._channels = [number for number, role in enumerate(subject.roles) if role in _DIFFERENCES]
        self._length = self._blocks = self._segments = 0
        self._step = 0.0
        self._window = np.zeros(0)
        self._power: dict[int, np.ndarray] = {}
        self._square = {number: np.zeros(len(subject.rows(number))) for number in self._channels}

    def take(self, block: Samples, fresh: int) -> None:
        """Add the segments of a block."""
        if not self._blocks:
            self._begin(block)
        self._blocks += 1
        needed = self._length + 2
        if not self._length or block.count < needed:
            return
        last = block.count - needed if self._blocks <= WHOLE_BLOCKS else 0
        for start in range(0, last + 1, self._length // 2):
            steps = np.diff(block.time[start : start + needed])
            if steps.max() <= LONG_GAP * self._step:
                self._add(block, start)

    def _begin(self, block: Samples) -> None:
        self._step = float(np.median(np.diff(block.time))) if block.count > 1 else 0.0
        if self._step <= 0:
            return
        longest = min(SECONDS / self._step, (block.count - 2) / 2, LONGEST)
        if longest >= SHORTEST:
            self._length = 2 ** int(np.log2(longest))
            window = np.kaiser(self._length, BETA)
            self._window = window / np.sqrt(window @ window)

    def _add(self, block: Samples, start: int) -> None:
        for number in self._channels:
            order = _DIFFERENCES[self._subject.roles[number]]
            values = block.channels[number][:, start : start + self._length + order]
            values = np.diff(values, order, axis=1) if order else values
            centred = values - values.mean(axis=1, keepdims=True)
            if not order:
                self._square[number] += np.einsum("ij,ij->i", centred, centred) / self._length
            lines = np.fft.rfft(centred * self._window, axis=1)[:, 1:]
            power = lines.real**2 + lines.imag**2
            self._power[number] = self._power[number] + power if number in self._power else power
        self._segments += 1

    def findings(self) -> Iterator[Finding]:
        """Yield channels that were low-pass filtered, and vibrations."""
        if not self._segments:
            return
        spectra = [self._spectrum(number) for number in self._channels]
        yield from filtered_findings(spectra)
        yield from resonance_findings(spectra)

    def _spectrum(self, number: int) -> Spectrum:
        frequency, role = np.fft.rfftfreq(self._length, self._step)[1:], self._subject.roles[number]
        density = self._power[number] * (2 * self._step / self._segments)
        gain = (2 * np.sin(np.pi * frequency * self._step)) ** 2
        positions = self._subject.row("q")
        motion, fundamentals = np.zeros(len(self._subject.rows(number))), np.zeros(0)
        if positions is not None:
            velocity = self._power[positions] / gain
            motion, fundamentals = _motion_of(frequency, velocity)
            if self._subject.kinds[number] == "wrench":
                motion = np.full(6, motion.max(initial=0.0))
        return Spectrum(
            role, self._subject.labels[number], self._subject.rows(number), frequency,
            density / gain ** _DIFFERENCES[role], self._segments,
            np.sqrt(self._square[number] / self._segments), motion, fundamentals,
        )  # fmt: skip


def _motion_of(frequency: np.ndarray, velocity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where the motion of each joint ends (n,), and where it is strongest (n,), from spectra of velocity."""
    total = np.cumsum(velocity, axis=1)
    end = frequency[np.argmax(total >= MOTION_POWER * total[:, -1:], axis=1)]
    moves = total[:, -1] > 0
    return np.where(moves, end, 0.0), np.where(moves, frequency[np.argmax(velocity, axis=1)], 0.0)
