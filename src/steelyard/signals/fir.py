"""Linear-phase FIR stages: an odd symmetric impulse response, centred, of which every M-th output is computed.

``y[j] = sum_i h[i] x[j M + i - half]``: zero phase by centring, exact in blocks of any size. A few outputs at a
time are one matrix product of samples with a banded matrix; that costs some multiplications by zero and is still
several times faster than sample-by-sample loops, because it runs in BLAS. Of the stages of a decimator the early ones
are short and wide, the last one is sharp.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.lib.stride_tricks import as_strided
from scipy import linalg

from ..errors import SignalError
from .checks import check_finite, frozen, shaped_rows

# Rows read side by side: the processor follows about this many streams of memory at once.
_ROWS = 32


@dataclass(frozen=True)
class FirStage:
    """One centred FIR filter that keeps every ``factor``-th output.

    Attributes:
        taps: Impulse response (2 half + 1,), symmetric for zero phase.
        factor: Input samples for one output.
    """

    taps: np.ndarray
    factor: int = 1

    @property
    def half(self) -> int:
        """Samples needed on either side of an output."""
        return len(self.taps) // 2

    @cached_property
    def _band(self) -> np.ndarray:
        # More outputs at a time multiply more zeros, fewer leave BLAS idle.
        return self.band(16 if len(self.taps) > 16 * self.factor else 8)

    def band(self, together: int) -> np.ndarray:
        """Return the matrix (taps + (together - 1) factor, together) whose columns are the shifted taps."""
        band = np.zeros((len(self.taps) + (together - 1) * self.factor, together))
        for k in range(together):
            band[k * self.factor : k * self.factor + len(self.taps), k] = self.taps
        return band

    def outputs(self, samples: np.ndarray, count: int) -> np.ndarray:
        """Return ``count`` outputs (rows, count); the first is centred on sample ``half``."""
        samples = shaped_rows(samples)  # the windows below take contiguous float64 samples for granted
        result = np.empty((samples.shape[0], count))
        with np.errstate(invalid="ignore", over="ignore"):  # whoever calls looks at the result
            for row in range(0, samples.shape[0], _ROWS):
                self.write(samples[row : row + _ROWS], self._band, result[row : row + _ROWS])
        return result

    def write(self, samples: np.ndarray, band: np.ndarray, outputs: np.ndarray) -> None:
        """Write outputs (rows, count), the first centred on sample ``half``: windows of samples times a band.

        Args:
            samples: Samples (rows, N) of float64, contiguous along N.
            band: The matrix of as many outputs as are computed at a time; see :meth:`band`.
            outputs: Where they are written, contiguous along count.
        """
        rows, count = outputs.shape
        span, together = band.shape
        whole, rest = divmod(count, together)
        step = together * self.factor
        if whole:
            shape, strides = (whole, rows, span), (8 * step, samples.strides[0], 8)
            windows = as_strided(samples, shape, strides, writeable=False)
            places = as_strided(outputs, (whole, rows, together), (8 * together, outputs.strides[0], 8))
            np.matmul(windows, band, out=places)
        if rest:
            first, span = whole * step, len(self.taps) + (rest - 1) * self.factor
            outputs[:, whole * together :] = samples[:, first : first + span] @ band[:span, :rest]


class FirStream:
    """A FIR stage fed block by block. Samples carry numbers; outputs lie at multiples of the stage's factor.

    Args:
        stage: The filter.
        first: Number of the first sample that will come.
        first_row: Number of the first row, for messages.
    """

    def __init__(self, stage: FirStage, first: int = 0, first_row: int = 0) -> None:
        self.stage = stage
        self._first_row = first_row
        self.first_output = -(-(first + stage.half) // stage.factor)
        self._tail: np.ndarray | None = None
        self._at = first  # number of the first sample in the tail
        # Samples still to throw away before the window of the next output begins.
        self._skip = self.first_output * stage.factor - stage.half - first

    def push(self, block: np.ndarray) -> np.ndarray:
        """Take a block (rows, m) and return the outputs (rows, k) that are complete.

        Raises:
            SignalError: If a value is not finite.
        """
        thrown = min(self._skip, block.shape[1])
        if thrown:
            check_finite(block[:, :thrown], "signal", self._at, self._first_row)
            self._skip -= thrown
            self._at += thrown
            block = block[:, thrown:]
        if self._tail is None or not self._tail.shape[1]:
            return self._outputs_of(block)
        # The few outputs across the seam come from a copy; the block itself is not copied.
        held = self._tail.shape[1]
        across = -(-held // self.stage.factor)
        seam = min(block.shape[1], len(self.stage.taps) + (across - 1) * self.stage.factor - held)
        first = self._outputs_of(np.concatenate([self._tail, block[:, :seam]], axis=1))
        if first.shape[1] < across or seam == block.shape[1]:
            return first
        return np.concatenate([first, self._outputs_of(block[:, across * self.stage.factor - held :])], axis=1)

    def _outputs_of(self, samples: np.ndarray) -> np.ndarray:
        """Return all outputs within these samples, and keep the samples that the next output needs."""
        count = max(0, (samples.shape[1] - len(self.stage.taps)) // self.stage.factor + 1)
        result = self.stage.outputs(samples, count)
        # Every sample is a factor in some output: the sum of the few outputs shows what is wrong with the many samples.
        with np.errstate(invalid="ignore", over="ignore"):
            total = float(result.sum())
        if not math.isfinite(total):
            check_finite(samples, "signal", self._at, self._first_row)
            raise SignalError("signal: got values too large to filter (overflow)")
        used = min(count * self.stage.factor, samples.shape[1])
        self._skip += count * self.stage.factor - used
        self._tail = samples[:, used:].copy()
        self._at += used
        return result

    def flush(self) -> np.ndarray:
        """End the signal; nothing is left to return.

        Raises:
            SignalError: If a value is not finite among the last samples, which no output used.
        """
        if self._tail is None:
            return np.empty((0, 0))
        check_finite(self._tail, "signal", self._at, self._first_row)
        return self._tail[:, :0]


# Early stages may change amplitudes in the pass band by this fraction (0.001 dB).
EARLY_RIPPLE = 1e-4
_LONGEST_EARLY_STAGE = 12
_LARGEST_PRIME = 23
_GRID = 96


def amplitude(taps: np.ndarray, frequency: np.ndarray) -> np.ndarray:
    """Return the zero-phase (real) response of centred symmetric taps; frequency in cycles a sample."""
    half = len(taps) // 2
    angles = 2 * np.pi * np.multiply.outer(np.asarray(frequency, dtype=float), np.arange(1, half + 1))
    return taps[half] + 2 * np.cos(angles) @ taps[half + 1 :]


def stage_factors(factor: int) -> tuple[int, ...]:
    """Split a decimation factor: its smallest prime last, the others multiplied up to at most twelve."""
    primes = _primes(factor)
    if len(primes) < 2:
        return (factor,)
    last, rest = primes[0], sorted(primes[1:], reverse=True)
    stages: list[int] = []
    for prime in rest:
        fitting = [k for k, size in enumerate(stages) if size * prime <= _LONGEST_EARLY_STAGE]
        if fitting:
            stages[fitting[0]] *= prime
        else:
            stages.append(prime)
    return (*sorted(stages, reverse=True), last)


def in_short_stages(factor: int) -> int:
    """Return the largest factor, not above this one, without a prime so large that it makes one long stage.

    131 has 2,129 taps, 130 has 135 in stages of 13, 5 and 2.
    """
    while max(_primes(factor), default=1) > _LARGEST_PRIME:
        factor -= 1
    return factor


def _primes(number: int) -> list[int]:
    found = []
    divisor = 2
    while number > 1:
        if divisor * divisor > number:
            return [*found, number]
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return found


@lru_cache(maxsize=64)
def decimation_stages(factor: int, cutoff: float, stop: float, attenuation: float) -> tuple[FirStage, ...]:
    """Return the stages of a decimator.

    Args:
        factor: Total decimation factor.
        cutoff: Frequency of -3 dB of all stages together [cycles an input sample].
        stop: From here on everything is attenuated [cycles an input sample].
        attenuation: By this much [dB].
    """
    stages: list[FirStage] = []
    done = 1
    # What folds to between the edge and the stop band meets the slope of the last stage: together that is enough.
    edge = cutoff + 0.5 * (stop - cutoff)
    *early, last = stage_factors(factor)
    for size in early:
        stages.append(_early_stage(size, edge * done, attenuation))
        done *= size
    droop = math.prod(float(amplitude(s.taps, np.array(cutoff * d))) for s, d in with_rates(stages))
    stages.append(_last_stage(last, cutoff * done, stop * done, attenuation, droop))
    return tuple(stages)


def with_rates(stages: Sequence[FirStage]) -> Iterator[tuple[FirStage, int]]:
    """Yield stages, each with the decimation factor of all before it."""
    done = 1
    for stage in stages:
        yield stage, done
        done *= stage.factor


def _early_stage(factor: int, edge: float, attenuation: float) -> FirStage:
    """Return the shortest least-squares filter that is flat to ``edge`` and blocks what would fold onto it."""
    images = [(k / factor - edge, min(k / factor + edge, 0.5)) for k in range(1, factor // 2 + 1)]
    limit = 10 ** (-attenuation / 20)
    pass_weight = (limit / EARLY_RIPPLE) ** 2
    stop_grid = np.concatenate([np.linspace(*image, _GRID) for image in images])
    pass_grid = np.linspace(0, edge, _GRID)
    length = (2 * factor - 1) | 1
    while True:
        taps = _least_squares_taps(length, edge, images, pass_weight)
        ripple = np.abs(amplitude(taps, pass_grid) - 1).max()
        if ripple <= EARLY_RIPPLE and np.abs(amplitude(taps, stop_grid)).max() <= limit:
            return FirStage(frozen(taps / taps.sum()), factor)
        length += 2


def _least_squares_taps(
    length: int, edge: float, stops: Sequence[tuple[float, float]], pass_weight: float
) -> np.ndarray:
    """Return symmetric taps (length,) nearest to 1 up to ``edge`` and to 0 in the stop bands, in squares.

    ``scipy.signal.firls``: with ``a(f) = sum_n a_n cos(2 pi n f)`` the normal equations are ``Q a = b``,
    ``Q_kn = q(k - n) + q(k + n)``, q(n) the weighted integral of the cosine over all bands and b(n) that over the
    first.
    """
    half = length // 2
    bands = 2 * np.array([(0.0, edge), *stops])
    integrals = np.diff(np.sinc(bands * np.arange(length)[:, None, None]) * bands, axis=2)[:, :, 0]
    q = integrals @ np.array([pass_weight] + [1.0] * len(stops))
    Q = linalg.toeplitz(q[: half + 1]) + linalg.hankel(q[: half + 1], q[half:])
    a = _solved(Q, pass_weight * integrals[: half + 1, 0])
    return np.concatenate([a[:0:-1], 2 * a[:1], a[1:]])


def _solved(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve symmetric equations; of many solutions, as scipy.signal.firls does, take the smallest."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", linalg.LinAlgWarning)
            return linalg.solve(matrix, right, assume_a="pos")
    except (linalg.LinAlgError, linalg.LinAlgWarning):  # singular to rounding: gaps between bands leave taps free
        return np.asarray(linalg.lstsq(matrix, right, lapack_driver="gelsy")[0])  # type: ignore[index]  # never None


def _last_stage(factor: int, cutoff: float, stop: float, attenuation: float, droop: float) -> FirStage:
    """Return a short Kaiser-window filter with the -3 dB point at ``cutoff`` and its stop band from ``stop``."""
    # The middle of the transition (-6 dB) lies a little above the cut-off (-3 dB).
    length = math.ceil((attenuation - 7.95) / (2.285 * 2 * math.pi * 1.8 * (stop - cutoff)) + 1) | 1
    grid = np.concatenate([np.linspace(stop, min(0.5, 3 * stop), 8 * _GRID), np.linspace(stop, 0.5, 4 * _GRID)])
    limit = 10 ** (-attenuation / 20)
    while True:
        taps = _kaiser_taps(length, cutoff, stop, attenuation, droop)
        if np.abs(amplitude(taps, grid)).max() <= limit:
            return FirStage(frozen(taps), factor)
        length += 2 * max(1, length // 200)


def _kaiser_taps(length: int, cutoff: float, stop: float, attenuation: float, droop: float) -> np.ndarray:
    """Return Kaiser-window taps whose middle (-6 dB) is placed such that ``cutoff`` is at -3 dB with the droop."""
    # Half a decibel of reserve: the first side lobe of a Kaiser window is a little above the formula.
    window = np.kaiser(length, _kaiser_beta(attenuation + 0.5))
    places = np.arange(length) - length // 2

    def taps_at(middle: float) -> np.ndarray:
        taps = window * np.sinc(2 * middle * places)
        return taps / taps.sum()

    def excess(middle: float) -> float:
        return float(amplitude(taps_at(middle), np.array(cutoff))) * droop - math.sqrt(0.5)

    # A filter far too short for the transition never gets there; the caller then finds its stop band too weak.
    if excess(cutoff) * excess(stop) > 0:
        return taps_at(cutoff)
    return taps_at(_root(excess, cutoff, stop))


def _kaiser_beta(attenuation: float) -> float:
    """Return the shape of the Kaiser window whose side lobes are down by so many decibels, at least 21."""
    if attenuation > 50:
        return 0.1102 * (attenuation - 8.7)
    return 0.5842 * (attenuation - 21) ** 0.4 + 0.07886 * (attenuation - 21)


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function with different signs at both ends is zero, by bisection to the last bit."""
    falls = function(low) > 0
    middle = (low + high) / 2
    while low < middle < high:
        low, high = (middle, high) if (function(middle) > 0) == falls else (low, middle)
        middle = (low + high) / 2
    return middle
