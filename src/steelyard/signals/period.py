"""The period of a repeated motion: found from the data, tested, and which of its lines stand out of the noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..distributions import f_isf, norm_sf, t_sf
from ..errors import SignalError
from .checks import as_rows, check_positive, frozen
from .fourier import fold, fourier_basis

LEAST_CORRELATION = 0.5
"""Rows that correlate less than this with themselves one period later are not repeated motion."""

SIGNIFICANCE = 0.01
"""Probabilities below this are not put down to chance."""

TOLERANCE = 0.01
"""A rest or drift below this fraction of the motion does not matter."""

_ALIKE = 0.05
"""Signals whose squared difference from themselves later is a smaller part of their squares repeat, roughly."""

_COARSE = 4000
"""Samples that are enough to see it."""


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


def find_period(values: np.ndarray, rate: float, shortest: float = 0.0, harmonics: int = 10) -> Period:
    """Find the common period of signals.

    The autocorrelation gives a first value; then frequency and Fourier coefficients are fitted together by least
    squares (Gauss-Newton) on a growing part of the data, so that the phase is never lost.

    Args:
        values: Signals (rows, N) with at least two periods; constant rows are ignored.
        rate: Sampling rate [Hz].
        shortest: Shortest period to consider [s]; the longest is half of the data.
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
    lag, correlation = _first_peak(_autocorrelation(rows), shortest * rate)
    lines = max(1, min(harmonics, int(0.5 * lag) - 1))
    frequency, spread = _refined(rows, rate, rate / lag, lines)
    period, periods = float(1 / frequency), int(rows.shape[1] / rate * frequency + 1e-6)
    return Period(period, float(spread * period**2), correlation, periods, lines)


def repetition(values: np.ndarray) -> float | None:
    """Return the number of samples after which signals repeat, roughly; None if they do not.

    Two repetitions need not be complete: at least a sixth of the samples has to come again.

    Args:
        values: Signals (rows, N).

    Example:
        >>> from steelyard.signals import repetition
        >>> time = np.arange(1000)
        >>> repetition(np.sin(2 * np.pi * time / 700)[None])
        700.0
    """
    step = max(1, values.shape[1] // _COARSE)
    rows = values[:, ::step] - values.mean(axis=1, keepdims=True)
    size = rows.std(axis=1)
    moving = size > 1e-12 * size.max(initial=0.0)
    if not moving.any():
        return None
    rows = rows[moving] / size[moving, None]
    count = rows.shape[1]
    length = 1 << (2 * count - 1).bit_length()
    products = np.fft.irfft((np.abs(np.fft.rfft(rows, length, axis=1)) ** 2).sum(axis=0), length)[:count]
    energy = np.concatenate([[0.0], np.cumsum((rows**2).sum(axis=0))])
    lags = np.arange(count)
    # Squared difference of the signals and themselves later, over the squares of both: 0 if they repeat.
    difference = 1 - 2 * products / np.maximum(energy[count - lags] + energy[-1] - energy[lags], 1e-300)
    apart = np.flatnonzero(difference > 0.5)
    inside = np.arange(int(apart[0]) if len(apart) else count, 5 * count // 6)
    if not len(inside) or difference[inside].min() > _ALIKE:
        return None
    near = inside[difference[inside] <= max(2 * difference[inside].min(), _ALIKE / 5)]
    is_least = (difference[near] <= difference[near - 1]) & (difference[near] <= difference[near + 1])
    return float(step * near[is_least][0]) if is_least.any() else float(step * near[0])


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


def _first_peak(correlation: np.ndarray, shortest: float) -> tuple[float, float]:
    """Return the lag [samples] of the first peak that is as good as the best one, and its height."""
    fallen = np.flatnonzero(correlation < LEAST_CORRELATION)
    begin = max(1, int(fallen[0]) if len(fallen) else len(correlation), int(shortest))
    inside = np.arange(begin, len(correlation) - 1)
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


@dataclass(frozen=True)
class Periodicity:
    """A test of repetition, row by row.

    What is left after subtracting the mean period is white noise if the motion repeats; where it does not, the rest is
    smooth. The von Neumann ratio compares noise between neighbouring samples with the spread between periods: 1 for
    white noise, near 0 for a rest that is motion. Coloured noise lowers it too, so the size of the rest decides
    together with the p-value.

    Attributes:
        ratio: Von Neumann ratio (rows,): mean squared successive difference over twice the variance.
        statistic: Standard normal if the rest is white (rows,); large if it is smooth.
        p_value: Probability of a statistic at least this large (rows,).
        aperiodic_share: Standard deviation of the smooth rest over that of the motion (rows,).
        drift: Change of the mean from period to period (rows,).
        drift_p_value: Probability of a slope at least this steep without drift (rows,).
        drift_share: Whole change by drift over the standard deviation of the motion (rows,).
        is_periodic: True if no row has a rest or drift that is both significant and larger than the tolerance.
        reason: One line that says why.
    """

    ratio: np.ndarray
    statistic: np.ndarray
    p_value: np.ndarray
    aperiodic_share: np.ndarray
    drift: np.ndarray
    drift_p_value: np.ndarray
    drift_share: np.ndarray
    is_periodic: bool
    reason: str


def check_periodicity(values: np.ndarray, rate: float, period: float) -> Periodicity:
    """Test whether signals (rows, N) repeat with the period.

    Args:
        values: Signals with at least three periods.
        rate: Sampling rate [Hz].
        period: Period [s].

    Raises:
        SignalError: If there are fewer than three periods.
    """
    folded = fold(values, rate, period, least=3)
    mean = folded.values.mean(axis=1)
    periods, samples = folded.values.shape[1:]
    rest = _rest(as_rows(values), mean, period * rate, periods)
    motion = np.maximum(mean.std(axis=1), np.finfo(float).tiny)
    ratio, statistic, share = _smoothness(rest, motion, samples)
    p_value = norm_sf(statistic)
    drift, drift_p = _drift(folded.values.mean(axis=2))
    drift_share = np.abs(drift) * (periods - 1) / motion
    wanders = (p_value < SIGNIFICANCE) & (share > TOLERANCE)
    drifts = (drift_p < SIGNIFICANCE) & (drift_share > TOLERANCE)
    arrays = (frozen(part) for part in (ratio, statistic, p_value, share, drift, drift_p, drift_share))
    reason = _reason(wanders, drifts, share, drift_share, periods)
    return Periodicity(*arrays, is_periodic=not (wanders.any() or drifts.any()), reason=reason)


def _rest(rows: np.ndarray, mean: np.ndarray, length: float, periods: int) -> np.ndarray:
    """Return the samples of whole periods less the mean period (rows, P), read between its points where need be."""
    used = rows[:, : int(np.floor(periods * length + 1e-6))]
    place = np.arange(used.shape[1]) / length % 1.0 * mean.shape[1]
    closed = np.concatenate([mean, mean[:, :1]], axis=1)
    from scipy import interpolate  # imported when used: it takes a third of a second, and few motions are folded

    curve = interpolate.CubicSpline(np.arange(closed.shape[1]), closed, axis=1, bc_type="periodic")
    return used - curve(place)


def _smoothness(rest: np.ndarray, motion: np.ndarray, samples: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return von Neumann ratio, its statistic and the share of the smooth part."""
    count = rest.shape[1]
    between = (rest**2).mean(axis=1)
    within = 0.5 * (np.diff(rest, axis=1) ** 2).mean(axis=1)
    ratio = np.where(between > 0, within / np.maximum(between, np.finfo(float).tiny), 1.0)
    # For white noise the ratio has mean 1 and variance 1 / (number of independent samples).
    statistic = (1 - ratio) * np.sqrt(count - samples)
    excess = np.maximum(between - within, 0) * count / (count - samples)
    return ratio, statistic, np.sqrt(excess) / motion


def _drift(means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the slope of the period means (rows, periods) and its two-sided p-value."""
    periods = means.shape[1]
    place = np.arange(periods) - (periods - 1) / 2
    spread = float(place @ place)
    slope = means @ place / spread
    rest = means - means.mean(axis=1, keepdims=True) - np.multiply.outer(slope, place)
    error = np.sqrt((rest**2).sum(axis=1) / (periods - 2) / spread)
    statistic = np.abs(slope) / np.maximum(error, np.finfo(float).tiny)
    return slope, 2 * t_sf(statistic, periods - 2)


def _reason(wanders: np.ndarray, drifts: np.ndarray, share: np.ndarray, drift_share: np.ndarray, periods: int) -> str:
    reasons = []
    if drifts.any():
        row = int(np.argmax(np.where(drifts, drift_share, -1)))
        reasons.append(f"row {row} drifts by {100 * drift_share[row]:.3g} % of its motion over {periods} periods")
    if wanders.any():
        row = int(np.argmax(np.where(wanders, share, -1)))
        reasons.append(
            f"row {row} does not repeat: {100 * share[row]:.3g} % of its motion differs from period to period"
        )
    if reasons:
        return "; ".join(reasons)
    return f"{periods} periods repeat: the rest is at most {100 * share.max(initial=0):.2g} % of the motion"


def significant_lines(values: np.ndarray, rate: float, period: float) -> tuple[int, ...]:
    """Return the lines (multiples of 1 / period) that stand out of the noise between periods in any row (P4.1).

    For each line ``F = n |mean|^2 (n - 1) / sum |X_i - mean|^2`` over n periods follows F(2, 2 n - 2) if the line is
    noise; the significance is that of all lines and rows together.

    Raises:
        SignalError: If there are fewer than two periods.
    """
    folded = fold(values, rate, period)
    periods = folded.values.shape[1]
    lines = np.fft.rfft(folded.values, axis=2)[:, :, 1 : (folded.values.shape[2] + 1) // 2]
    mean = lines.mean(axis=1)
    scatter = (np.abs(lines - mean[:, None]) ** 2).sum(axis=1) / (periods - 1)
    # Rounding is no signal: nothing below 1e-12 of the largest line counts.
    floor = (1e-12 * np.abs(mean).max(axis=1, initial=0, keepdims=True)) ** 2 * periods
    power = periods * np.abs(mean) ** 2
    limit = f_isf(SIGNIFICANCE / mean.size, 2, 2 * (periods - 1))
    found = (power > limit * scatter) & (power > floor)
    return tuple(int(k) + 1 for k in np.flatnonzero(found.any(axis=0)))
