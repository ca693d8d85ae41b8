"""Signals that were low-pass filtered before they were saved: a knee in the spectrum above the motion.

Above the motion, spectra of unfiltered signals become ever flatter: torque falls with friction's jumps by 6 to 12 dB an
octave until it reaches the noise, positions with twice the integral of that until they reach the encoder's. A low-pass
makes them steeper instead. With mean levels P of half octaves, ``B = min(0, 2 (P[c] - P[c-1]))`` is the slope before c
and ``D = P[c+3] - P[c+1]`` that after it (``P[c+2] - P[c]`` near the Nyquist frequency), both in dB an octave; the knee
is ``B - D``. A Butterworth filter of order n gives up to 6 n. The corner is where the spectrum is 4.5 dB below the
straight line from before: between the 3 dB of a filter that ran once and the 6 dB of one that ran forwards and back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..record import Finding

if TYPE_CHECKING:
    from .spectra import Spectrum

KNEE = 15.0
"""Knee from which on a signal was filtered [dB an octave]: order 3 and more. Elastic joints and first-order filters in
drives and sensors bend a spectrum by 6 to 12, which is left to them."""
CERTAIN = 4.0
"""The knee must also exceed this many of its own standard deviations."""
ABOVE_MOTION = 1.5
"""Knees are looked for above this many times the frequency at which the motion ends, and a lobe of the window."""
CORNER_DROP = 4.5
"""Drop below the line from before at which the corner is [dB]."""
UNCERTAINTY = 0.25
"""Of a corner, relative: half a half octave and the kind of filter."""
DIFFERENT = 1.6
"""Ratio of two corners that such errors do not explain."""
MOST_ROWS = 0.5
"""If so many rows of a channel were filtered, the channel was."""
HARMLESS = 100.0
"""A filter of order 4 at this many times the frequency at which the motion ends shifts it by 0.026 rad: 2.6 % of the
inertial torque look like friction. Filters above that may differ."""
_HALF_OCTAVE = np.sqrt(2.0)
_LOG_DEVIATION = 5.57
"""Standard deviation of the level of a line with two degrees of freedom [dB]."""
_CORRELATED = 2.5
"""Neighbouring lines that the window makes one."""


def filtered_findings(spectra: Sequence[Spectrum]) -> Iterator[Finding]:
    """Yield what was low-pass filtered, and a warning if torque and position were filtered differently."""
    corners = {one.label: np.array([_corner(one, row) for row in range(len(one.rows))]) for one in spectra}
    for one in spectra:
        found = corners[one.label]
        judged = np.isfinite(one.density).all(axis=1) & (one.density.max(axis=1) > 0)
        known = np.isfinite(found)
        if not known.any():
            continue
        if known.sum() >= MOST_ROWS * judged.sum():
            yield _finding(one.label, "", float(np.median(found[known])), int(known.sum()))
        else:
            for row in np.flatnonzero(known):
                yield _finding(one.label, one.rows[row], float(found[row]), 1)
    positions = next((one for one in spectra if one.role == "q"), None)
    for one in spectra:
        if positions is not None and one.role == "torque":
            yield from _compared(positions, one, corners)


def _finding(label: str, row: str, corner: float, rows: int) -> Finding:
    who = f"{label} of {row}" if row else label
    text = (
        f"{who} was low-pass filtered before it was saved, at about {corner:.2g} Hz "
        f"({(1 - UNCERTAINTY) * corner:.2g} to {(1 + UNCERTAINTY) * corner:.2g}): above that its noise is gone"
    )
    values = {"corner": corner, "uncertainty": UNCERTAINTY * corner}
    return Finding("filtered", "info", text, label, row, rows, values=values)


def _compared(positions: Spectrum, torque: Spectrum, corners: dict[str, np.ndarray]) -> Iterator[Finding]:
    """Yield a warning if torque and position were filtered at different frequencies, or only one of them."""
    pair = [corners[positions.label], corners[torque.label]]
    sure = [np.isfinite(one).sum() >= MOST_ROWS * len(one) for one in pair]
    if not any(sure):
        return
    q, tau = (float(np.nanmedian(one)) if known else np.inf for one, known in zip(pair, sure, strict=True))
    lowest, motion = min(q, tau), float(positions.motion.max(initial=0.0))
    ratio = max(q, tau) / lowest
    if ratio < DIFFERENT or lowest > HARMLESS * motion:
        return
    said = ["was not" if np.isinf(one) else f"at about {one:.2g} Hz" for one in (q, tau)]
    text = (
        f"q and {torque.label} were filtered differently: q {said[0]}, {torque.label} {said[1]}; unless the filters "
        "have no delay, one is late against the other"
    )
    values = {name: value for name, value in (("q", q), ("torque", tau)) if np.isfinite(value)}
    remedy = (
        "save signals as they are measured, or filter all of them alike; identify with --cutoff below "
        f"{lowest:.2g} Hz, and let --delay find what is left"
    )
    yield Finding("filtered_differently", "warning", text, torque.label, "", values=values, remedy=remedy)


def _corner(spectrum: Spectrum, row: int) -> float:
    """Return the corner frequency of the filter that a row went through, NaN if it went through none [Hz]."""
    density, frequency = spectrum.density[row], spectrum.frequency
    if not density.max() > 0 or not np.isfinite(density).all():
        return np.nan
    start = max(ABOVE_MOTION * spectrum.motion[row] + spectrum.lobe, 2 * spectrum.lobe)
    edges = start * _HALF_OCTAVE ** np.arange(64)
    edges = edges[edges <= frequency[-1]]
    if edges.size < 5:
        return np.nan
    level = 10 * np.log10(np.maximum(density, 1e-300))
    bounds = np.searchsorted(frequency, edges)
    lines = np.diff(bounds)
    mean = np.add.reduceat(level[: bounds[-1]], bounds[:-1]) / lines
    variance = _LOG_DEVIATION**2 * _CORRELATED / (lines * spectrum.segments)
    before = np.minimum(0.0, 2 * (mean[1:-2] - mean[:-3]))
    knee = before - (mean[3:] - mean[1:-2])
    deviation = np.sqrt(4 * variance[:-3] + 9 * variance[1:-2] + variance[3:])
    after = before[:-1] - (mean[4:] - mean[2:-2])
    spread = np.sqrt(4 * (variance[:-4] + variance[1:-3]) + variance[2:-2] + variance[4:])
    clear = knee / np.maximum(KNEE, CERTAIN * deviation)
    clear[:-1] = np.maximum(clear[:-1], after / np.maximum(KNEE, CERTAIN * spread))
    best = int(np.argmax(clear))
    if clear[best] <= 1:
        return np.nan
    return _crossing(frequency, level, edges, mean, float(before[best]), best + 1)


def _crossing(
    frequency: np.ndarray, level: np.ndarray, edges: np.ndarray, mean: np.ndarray, slope: float, band: int
) -> float:
    """Return the frequency at which the spectrum is `CORNER_DROP` below the line from before a knee."""
    middle = edges[band - 1] * np.sqrt(_HALF_OCTAVE)
    fine = middle * 2 ** (np.arange(0, 20) / 8)
    bounds = np.searchsorted(frequency, np.append(fine / 2 ** (1 / 16), fine[-1] * 2 ** (1 / 16)))
    use = np.diff(bounds) > 0
    use &= bounds[1:] < frequency.size
    fine, starts = fine[use], bounds[:-1][use]
    means = np.array([level[a:b].mean() for a, b in zip(starts, bounds[1:][use], strict=True)])
    drop = mean[band - 1] + slope * np.log2(fine / middle) - means
    below = np.flatnonzero(drop > CORNER_DROP)
    # The last fine band above the line: single ones below it before are noise.
    above = np.flatnonzero(drop[: below[np.argmax(drop[below])] + 1] <= CORNER_DROP) if below.size else below
    if not above.size or above[-1] + 1 >= fine.size:
        return float(middle)
    k = int(above[-1])
    share = (CORNER_DROP - drop[k]) / (drop[k + 1] - drop[k])
    return float(fine[k] * (fine[k + 1] / fine[k]) ** share)
