"""Vibrations: narrow peaks in the spectra of torques and velocities above the motion.

The floor at a frequency is the median of the lines within a third of an octave of it on either side, corrected to the
mean. A peak must exceed what noise reaches by chance in all lines together, and be narrow. Harmonics of a periodic
motion are peaks too, but a comb of them: a peak with others at the distance of a joint's own frequency on both sides is
one of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...distributions import chi2_isf, chi2_ppf
from ..record import Finding

if TYPE_CHECKING:
    from .spectra import Spectrum

OVER_FLOOR = 10.0
"""Power of a peak over the floor (10 dB)."""
CHANCE = 1e-6
"""Probability that the noise of a whole channel has such a peak."""
NARROW = 0.15
"""Width of a peak at a quarter of its height, relative to its frequency: weakly damped structures are narrower."""
ABOVE_MOTION = 3.0
"""Peaks count above this many times the frequency at which the motion of all joints ends."""
LEAST_PART = 0.01
"""A vibration with a smaller rms, relative to the signal's standard deviation, is not mentioned."""
HARMFUL = 0.05
"""From this part on it is a warning: residuals of the fit will be full of it."""
COMB = 0.05
"""Peaks at the distance of a motion's frequency with this part of the power make a comb."""
MAINS = (50.0, 60.0, 100.0, 120.0, 150.0, 180.0)
"""Frequencies of the mains and its harmonics [Hz]."""
_SIDE = 1.26
"""A third of an octave."""
_LEAST_SEGMENTS = 3
_LOWEST_LINES = 20
"""A floor has to have lines on both sides of a peak."""


def resonance_findings(spectra: Sequence[Spectrum]) -> Iterator[Finding]:
    """Yield the strongest peak of every torque, and of velocities where the torque of that joint shows none."""
    seen: set[str] = set()
    for one in sorted((one for one in spectra if one.role != "q"), key=lambda one: one.role != "torque"):
        for row, peak in _strongest_peaks(one) if one.segments >= _LEAST_SEGMENTS else ():
            if one.rows[row] not in seen:
                seen.add(one.rows[row])
                yield _finding(one.label, one.rows[row], *peak)


def _finding(label: str, name: str, frequency: float, size: float, part: float) -> Finding:
    mains = next((one for one in MAINS if abs(one - frequency) < 0.01 * one), None)
    height = 10 * np.log10(size)
    values = {"frequency": frequency, "over_floor": size, "part": part}
    how_much = f"{height:.0f} dB above the noise around it, {100 * part:.2g} % rms of the signal"
    if mains is not None:
        text = f"{label} of {name} has a line at {frequency:.4g} Hz ({mains:.0f} Hz: mains), {how_much}"
        remedy = "look at shields and earths of the measurement; a --cutoff below it removes it"
        kind = "mains"
    else:
        text = (
            f"{label} of {name} vibrates at {frequency:.3g} Hz, {how_much}: a resonance, or a ripple of gear or motor"
        )
        remedy = f"keep --cutoff below {0.7 * frequency:.2g} Hz; a rigid model does not explain it"
        kind = "resonance"
    severity = "warning" if part > HARMFUL else "info"
    return Finding(kind, severity, text, label, name, values=values, remedy=remedy)


def _strongest_peaks(spectrum: Spectrum) -> Iterator[tuple[int, tuple[float, float, float]]]:
    """Yield rows with a peak, and frequency, power over the floor and relative rms of their strongest one."""
    frequency = spectrum.frequency
    first = max(ABOVE_MOTION * float(spectrum.motion.max(initial=0.0)), _LOWEST_LINES * spectrum.line)
    use = np.flatnonzero((frequency > first) & (frequency < 0.95 * frequency[-1]))
    if use.size < _LOWEST_LINES:
        return
    freedom = 2.0 * max(1.0, 0.7 * spectrum.segments)
    floors = _floors(frequency, spectrum.density, use) * float(freedom / chi2_ppf(0.5, freedom))
    chance = float(chi2_isf(CHANCE / use.size / len(spectrum.rows), freedom)) / freedom
    for row, floor in enumerate(floors):
        if not floor.min() > 0 or not np.isfinite(floor).all():
            continue
        over = spectrum.density[row, use] / floor
        inner = over[1:-1]
        tops = np.flatnonzero((inner > max(OVER_FLOOR, chance)) & (inner >= over[:-2]) & (inner >= over[2:])) + 1
        found = [_peak(spectrum, row, over, floor, use, int(top)) for top in tops]
        strongest = max((one for one in found if one is not None), key=lambda one: one[2], default=None)
        if strongest is not None:
            yield row, strongest


def _floors(frequency: np.ndarray, density: np.ndarray, use: np.ndarray) -> np.ndarray:
    """Return the median of the lines around every line in use (rows, K), interpolated between eighths of an octave."""
    places = np.geomspace(frequency[use[0]], frequency[use[-1]], max(2, int(8 * np.log2(use[-1] / use[0]))))
    low, high = np.searchsorted(frequency, places / _SIDE), np.searchsorted(frequency, places * _SIDE)
    medians = np.array([np.median(density[:, a:b], axis=1) for a, b in zip(low, high, strict=True)])
    at, known = np.log(frequency[use]), np.log(places)
    return np.array([np.exp(np.interp(at, known, row)) for row in np.log(medians).T])


def _peak(
    spectrum: Spectrum, row: int, over: np.ndarray, floor: np.ndarray, use: np.ndarray, top: int
) -> tuple[float, float, float] | None:
    """Return frequency, height and relative rms of a peak, None if it is broad, small or one of a comb."""
    level, line = over[top], spectrum.line
    low, high = (_edge(over, top, direction) for direction in (-1, 1))
    centre = float(spectrum.frequency[use[top]])
    if (high - low) * line > NARROW * centre + 2 * spectrum.lobe or _is_harmonic(over, top, spectrum):
        return None
    part = slice(low, high + 1)
    excess = np.maximum(spectrum.density[row][use[part]] - floor[part], 0.0)
    power = float(excess.sum() * line)
    deviation = float(spectrum.deviation[row])
    total = deviation if deviation > 0 else float(np.sqrt(spectrum.density[row].sum() * line))
    relative = float(np.sqrt(power)) / total if total > 0 else 0.0
    frequency = float(excess @ spectrum.frequency[use[part]] / excess.sum())
    return (frequency, float(level), relative) if relative >= LEAST_PART else None


def _edge(over: np.ndarray, top: int, direction: int) -> int:
    """Return the first line from a peak at which it has fallen to a quarter of its height."""
    side = over[top::direction]
    low = np.flatnonzero(side < over[top] / 4)
    return top + direction * (int(low[0]) if low.size else side.size - 1)


def _is_harmonic(over: np.ndarray, top: int, spectrum: Spectrum) -> bool:
    """Return whether a peak has others at the distance of a joint's own frequency, or twice that, with valleys between.

    A side that lies in the motion or beyond the Nyquist frequency is not asked.
    """
    for distance in {round(multiple * one / spectrum.line) for one in spectrum.fundamentals for multiple in (1, 2)}:
        if distance <= spectrum.lobe / spectrum.line:
            continue
        sides = [side for side in (-distance, distance) if 1 <= top + side < over.size - 1]
        if sides and all(_next_in_comb(over, top, side) for side in sides):
            return True
    return False


def _next_in_comb(over: np.ndarray, top: int, side: int) -> bool:
    near, between = over[top + side - 1 : top + side + 2].max(), over[top + side // 2]
    return bool(near > max(2.0, COMB * over[top]) and between < near / 4)
