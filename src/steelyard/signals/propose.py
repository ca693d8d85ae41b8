"""Proposal of a cut-off from the data: the frequency where motion ends and noise begins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..distributions import chi2_ppf
from ..errors import SignalError
from .checks import as_rows, check_order, check_positive, frozen
from .sampling import find_quantum

ABOVE_NOISE = 10.0
"""Power over the noise floor that counts as excitation (10 dB)."""

_DISTORTION = 0.01
_HIGHEST = 0.8
# What the window leaks of the strongest line, in power.
_LEAKAGE = 1e-9
_BLACKMAN_HARRIS = np.array([0.35875, -0.48829, 0.14128, -0.01168])


@dataclass(frozen=True)
class CutoffProposal:
    """A cut-off with the evidence for it.

    Attributes:
        cutoff: Proposed cut-off for all rows together [Hz].
        row_cutoff: Proposal for each row by itself (rows,) [Hz].
        excitation_band: Highest frequency at which each row stands 10 dB above its noise (rows,) [Hz]; 0 for none.
        velocity_band: Frequency below which 95 % of the power of each row's derivative lies, of what stands above its
            noise (rows,) [Hz]; 0 for none.
        noise_floor: Power density of the noise (rows,) [unit^2/Hz]: median of the upper half of the spectrum,
            and at least that of the quantisation.
        noise_std: Standard deviation of white noise with that density (rows,).
        quantum: Quantisation step of each row (rows,); 0 where none was found.
        quantum_floor: Power density that this step alone would give (rows,) [unit^2/Hz].
        frequency: Frequencies of the spectrum (F,) [Hz].
        spectrum: Power densities (rows, F) [unit^2/Hz].
        reason: One line that says how the cut-off came about.
    """

    cutoff: float
    row_cutoff: np.ndarray
    excitation_band: np.ndarray
    velocity_band: np.ndarray
    noise_floor: np.ndarray
    noise_std: np.ndarray
    quantum: np.ndarray
    quantum_floor: np.ndarray
    frequency: np.ndarray
    spectrum: np.ndarray
    reason: str


def propose_cutoff(values: np.ndarray, rate: float, order: int = 4) -> CutoffProposal:
    """Propose the cut-off of a zero-phase low-pass for signals (rows, N), positions or torques.

    The cut-off is the lowest that changes the excitation band by less than 1 %: with order n in each pass,
    ``fc = f_band (0.414 / 0.0101)^(1 / 2n)`` (1.6 f_band for order 4), at most 0.8 of the Nyquist frequency.

    Args:
        values: Signals.
        rate: Sampling rate [Hz].
        order: Order of the filter in each pass.

    Raises:
        SignalError: If no row stands above its noise, or there are too few samples for a spectrum.
    """
    rate = check_positive(rate, "sampling rate")
    rows = as_rows(values, least=64)
    frequency, spectrum, dof = _spectrum(rows, rate)
    upper = spectrum[:, frequency >= rate / 4]
    # The median of a chi-square density is below its mean; the spectrum's own degrees of freedom say by how much.
    floor = np.median(upper, axis=1) * dof / chi2_ppf(0.5, dof)
    quantum = find_quantum(rows)
    quantum_floor = quantum**2 / 12 * 2 / rate
    # Exact repetition gathers quantisation noise in lines, with next to nothing between them.
    floor = np.maximum(floor, quantum_floor)
    band = np.array([_band(frequency, row, level) for row, level in zip(spectrum, floor, strict=True)])
    band[np.ptp(rows, axis=1) <= 1e-12 * np.abs(rows).max(axis=1)] = 0.0  # constant but for rounding
    if not (band > 0).any():
        raise SignalError(
            "cut-off: got no row that stands 10 dB above its noise, needed is motion; give the cut-off yourself"
        )
    ratio = ((np.sqrt(2) - 1) * (1 - _DISTORTION) / _DISTORTION) ** (0.5 / check_order(order))
    row_cutoff = np.minimum(band * ratio, _HIGHEST * rate / 2)
    leader = int(np.argmax(band))
    velocity_band, noise_std = (
        np.where(band > 0, _velocity_band(frequency, spectrum, floor), 0.0),
        np.sqrt(floor * rate / 2),
    )
    reason = _reason(row_cutoff[leader], band[leader], ratio, leader, quantum[leader], floor[leader], rate)
    arrays = (row_cutoff, band, velocity_band, floor, noise_std, quantum, quantum_floor, frequency, spectrum)
    return CutoffProposal(float(row_cutoff[leader]), *map(frozen, arrays), reason=reason)


def _spectrum(rows: np.ndarray, rate: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Return frequencies, Welch power densities and their degrees of freedom.

    The Blackman-Harris window keeps strong slow motion from leaking over the noise (92 dB).
    """
    length = min(rows.shape[1], max(64, min(8192, rows.shape[1] // 4)))
    angles = 2 * np.pi * np.arange(length) / length
    window = np.cos(np.multiply.outer(angles, np.arange(4))) @ _BLACKMAN_HARRIS
    # A straight line is taken out of every segment.
    line, _ = np.linalg.qr(np.column_stack([np.ones(length), np.arange(length) - (length - 1) / 2]))
    starts = range(0, rows.shape[1] - length + 1, length - length // 2)
    density = np.zeros((len(rows), length // 2 + 1))
    for start in starts:
        part = rows[:, start : start + length]
        density += np.abs(np.fft.rfft((part - part @ line @ line.T) * window, axis=1)) ** 2
    density /= rate * float(window @ window) * len(starts)
    density[:, 1 : (length + 1) // 2] *= 2  # negative frequencies; 0 and half the rate have none
    return np.fft.rfftfreq(length, 1 / rate), density, 2.0 * max(1.0, 0.9 * len(starts))


def _band(frequency: np.ndarray, density: np.ndarray, floor: float) -> float:
    """Return the frequency where the spectrum last stands above the floor for three neighbouring lines."""
    above = density > ABOVE_NOISE * max(floor, _LEAKAGE * float(density.max(initial=0.0)))
    # The window smears a line over three to each side; a lone line above the floor is chance.
    firm = above[:-2] & above[1:-1] & above[2:]
    return float(frequency[np.flatnonzero(firm)[-1] + 1]) if firm.any() else 0.0


def _velocity_band(frequency: np.ndarray, density: np.ndarray, floor: np.ndarray) -> np.ndarray:
    """Return the frequency (rows,) below which 95 % of the derivative's power above the noise lies."""
    power = np.where(density > ABOVE_NOISE * floor[:, None], density, 0.0) * frequency**2
    total = np.cumsum(power, axis=1)
    return frequency[np.argmax(total >= 0.95 * total[:, -1:], axis=1)]


def _reason(cutoff: float, band: float, ratio: float, row: int, quantum: float, floor: float, rate: float) -> str:
    text = f"row {row} stands 10 dB above its noise up to {band:.3g} Hz; "
    if cutoff < 0.999 * band * ratio:
        text += f"{cutoff:.3g} Hz is the highest allowed, {_HIGHEST:g} of the Nyquist frequency"
    else:
        text += f"{cutoff:.3g} Hz, {ratio:.2f} times that, changes this band by less than 1 %"
    if quantum > 0:
        share = min(1.0, quantum**2 / 6 / rate / max(floor, 1e-300))
        text += f"; steps of {quantum:.3g} explain {100 * share:.0f} % of the noise"
    return text
