"""The period of a repeated motion, found from the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import SignalError
from .checks import as_rows, check_positive
from .fourier import fourier_basis

# Rows that correlate less than this with themselves one period later are not repeated motion.
LEAST_CORRELATION = 0.5


@dataclass(frozen=True)
class Period:
    """A period with its evidence.

    Attributes:
        period: The period [s]; seldom a whole number of samples.
        std: Its standard deviation for white noise [s].
        correlation: Correlation of the signals with themselves one period later, 1 for perfect repetition.
        periods: Whole periods in the data.
        harmonics: Lines used for the refinement.
    """

    period: float
    std: float
    correlation: float
    periods: int
    harmonics: int


def find_period(
    values: np.ndarray,
    rate: float,
    shortest: float | None = None,
    longest: float | None = None,
    harmonics: int = 10,
) -> Period:
    """Find the common period of signals.

    The autocorrelation gives a first value; then frequency and Fourier coefficients are fitted together by least
    squares (Gauss-Newton) on a growing part of the data, so that the phase is never lost.

    Args:
        values: Signals (rows, N) with at least two periods; constant rows are ignored.
        rate: Sampling rate [Hz].
        shortest: Shortest period to consider [s].
        longest: Longest period to consider [s]; half of the data by default.
        harmonics: Lines used for the refinement, those above the Nyquist frequency left out.

    Raises:
        SignalError: If the signals do not repeat.
    """
    rate = check_positive(rate, "sampling rate")
    rows = as_rows(values, least=8)
    rows = rows - rows.mean(axis=1, keepdims=True)
    size = rows.std(axis=1, keepdims=True)
    moving = size[:, 0] > 1e-12 * size.max(initial=0.0)
    if not moving.any() or size.max() == 0:
        raise SignalError("period: got constant signals only, needed is at least one that moves")
    rows = rows[moving] / size[moving]
    lag, correlation = _first_peak(_autocorrelation(rows), rate, shortest, longest)
    lines = max(1, min(harmonics, int(0.5 * lag) - 1))
    frequency, spread = _refined(rows, rate, rate / lag, lines)
    period = 1 / frequency
    return Period(
        float(period), float(spread * period**2), correlation, int(rows.shape[1] / rate / period + 1e-6), lines
    )


def _autocorrelation(rows: np.ndarray) -> np.ndarray:
    """Return the mean over rows of the correlation with the signal 0, 1, ... N // 2 samples later."""
    count = rows.shape[1]
    lags = count // 2 + 2
    length = 1 << (2 * count - 1).bit_length()
    spectrum = np.fft.rfft(rows, length, axis=1)
    products = np.fft.irfft(np.abs(spectrum) ** 2, length, axis=1)[:, :lags]
    energy = np.concatenate([np.zeros((len(rows), 1)), np.cumsum(rows**2, axis=1)], axis=1)
    ends = count - np.arange(lags)
    overlap = np.sqrt(energy[:, ends] * (energy[:, -1:] - energy[:, count - ends]))
    return (products / np.maximum(overlap, 1e-300)).mean(axis=0)


def _first_peak(
    correlation: np.ndarray, rate: float, shortest: float | None, longest: float | None
) -> tuple[float, float]:
    """Return the lag [samples] of the first peak that is as good as the best one, and its height."""
    fallen = np.flatnonzero(correlation < LEAST_CORRELATION)
    begin = max(1, int(fallen[0]) if len(fallen) else len(correlation))
    begin = max(begin, int((shortest or 0) * rate))
    end = min(len(correlation) - 1, int(longest * rate) + 2 if longest else len(correlation))
    inside = np.arange(begin, end)
    peaks = inside[(correlation[inside] >= correlation[inside - 1]) & (correlation[inside] >= correlation[inside + 1])]
    best = correlation[peaks].max(initial=-1.0)
    if best < LEAST_CORRELATION:
        raise SignalError(
            f"period: got a largest correlation of {max(best, 0):.2f} with later samples, needed is "
            f"{LEAST_CORRELATION}; the motion does not repeat, or the recording is shorter than two periods"
        )
    peak = int(peaks[np.flatnonzero(correlation[peaks] >= best - 0.1 * (1 - best) - 0.02)[0]])
    left, top, right = correlation[peak - 1 : peak + 2]
    bend = left - 2 * top + right
    return peak + (0.5 * (left - right) / bend if bend < 0 else 0.0), float(top)


def _refined(rows: np.ndarray, rate: float, frequency: float, lines: int) -> tuple[float, float]:
    """Fit the frequency on two periods, then on twice as many, and so on; return it with its standard deviation."""
    count = rows.shape[1]
    used = min(count, int(2 * rate / frequency) + 1)
    spread = np.inf
    while True:
        for _ in range(20):
            step, spread = _gauss_newton_step(rows[:, :used], rate, frequency, lines)
            frequency += step
            if abs(step) <= max(1e-15 * frequency, (0.01 if used < count else 1e-5) * spread):
                break
        if used == count:
            return frequency, spread
        used = min(count, 2 * used)


def _gauss_newton_step(rows: np.ndarray, rate: float, frequency: float, lines: int) -> tuple[float, float]:
    """Return the step in frequency [Hz] and its standard deviation, all coefficients being fitted too."""
    count = rows.shape[1]
    time = (np.arange(count) - (count - 1) / 2) / rate  # centred: frequency and phase then hardly interact
    basis = fourier_basis(time, frequency, range(1, lines + 1))
    q, r = np.linalg.qr(basis)
    coefficients = np.linalg.solve(r, q.T @ rows.T)
    residual = rows.T - basis @ coefficients
    turn = 2 * np.pi * np.arange(1, lines + 1) * time[:, None]
    sines, cosines = basis[:, 1 : 1 + lines], basis[:, 1 + lines :]
    slope = (turn * cosines) @ coefficients[1 : 1 + lines] - (turn * sines) @ coefficients[1 + lines :]
    slope -= q @ (q.T @ slope)
    # Rows count by their own noise; without any, all alike.
    noise = (residual**2).sum(axis=0) / (count - basis.shape[1] - 1) + 1e-20
    information = float(((slope**2).sum(axis=0) / noise).sum())
    step = float(((slope * residual).sum(axis=0) / noise).sum()) / information
    return step, information**-0.5
