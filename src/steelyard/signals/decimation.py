"""Parallel decimation of y and of every column of W alike (P1.5, P5.5): whole arrays or block by block.

Filter and decimator are linear, so ``y = W chi`` still holds exactly afterwards; nothing is distorted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..errors import SignalError
from .checks import RowMemory, check_choice, check_cutoff, check_finite, check_positive, frozen, joined, shaped_rows
from .fir import FirStage, FirStream, amplitude, decimation_stages, with_rates

DEFAULT_CUTOFF = 0.8
"""Default cut-off as a fraction of the Nyquist frequency after decimation."""

HIGHEST_CUTOFF = 0.95
_STOP_OVER_CUTOFF = 1.25


@dataclass(frozen=True)
class DecimationFilter:
    """A zero-phase low-pass filter that keeps every ``factor``-th sample. Make one with :func:`decimation_filter`.

    Attributes:
        rate: Sampling rate of the input [Hz].
        factor: Input samples for one output.
        cutoff: Frequency at which the amplitude is down by 3 dB [Hz].
        stop: From this frequency on everything is attenuated [Hz]; at most the new Nyquist frequency.
        attenuation: By at least this much [dB].
        stages: The FIR stages, in order.
    """

    rate: float
    factor: int
    cutoff: float
    stop: float
    attenuation: float
    stages: tuple[FirStage, ...]

    @property
    def half(self) -> int:
        """Input samples needed on either side of an output."""
        return sum(stage.half * rate for stage, rate in with_rates(self.stages))

    def outputs(self, samples: int) -> range:
        """Return the numbers of the input samples at which outputs lie if the ends are dropped."""
        first = -(-self.half // self.factor) * self.factor
        return range(first, max(first, samples - self.half), self.factor)

    def response(self, frequency: np.ndarray) -> np.ndarray:
        """Return the amplitude (real: the phase is zero) at frequencies [Hz] before samples are dropped."""
        cycles = np.asarray(frequency, dtype=float) / self.rate
        parts = (amplitude(stage.taps, cycles * rate) for stage, rate in with_rates(self.stages))
        return math.prod(parts, start=np.ones_like(cycles))

    def impulse_response(self) -> np.ndarray:
        """Return the impulse response of all stages together (2 half + 1,) at the input rate."""
        total = np.ones(1)
        for stage, rate in with_rates(self.stages):
            before, total = total, np.zeros(len(total) + (len(stage.taps) - 1) * rate)
            for k, tap in enumerate(stage.taps):
                total[k * rate : k * rate + len(before)] += tap * before
        return total

    def noise_gain(self) -> float:
        """Return the variance of an output for white noise of variance 1."""
        taps = self.impulse_response()
        return float(taps @ taps)

    def noise_correlation(self, max_lag: int) -> np.ndarray:
        """Return the autocorrelation (max_lag + 1,) of decimated white noise at lags 0, 1, ... of the output.

        ``r(k) = sum_i h[i] h[i + k factor] / sum_i h[i]^2``. Residuals that were white before look like this.
        """
        if max_lag < 0:
            raise SignalError(f"noise correlation: got a largest lag of {max_lag}, allowed are 0 and above")
        taps = self.impulse_response()
        correlation = np.zeros(max_lag + 1)
        for lag in range(min(max_lag, (len(taps) - 1) // self.factor) + 1):
            correlation[lag] = taps[: len(taps) - lag * self.factor] @ taps[lag * self.factor :]
        return frozen(correlation / correlation[0])

    def expected_durbin_watson(self, samples: int | None = None) -> float:
        """Return the Durbin-Watson statistic of decimated white noise, ``2 (1 - r(1)) (n - 1) / n`` for n samples.

        The textbook value of 2 holds without a filter only; judge residuals against this one (P5.5).
        """
        finite = 1.0 if samples is None else (samples - 1) / samples
        _, neighbours = self.noise_correlation(1)
        return float(2 * (1 - neighbours) * finite)


def decimation_filter(
    rate: float, factor: int, cutoff: float | None = None, attenuation: float = 80.0
) -> DecimationFilter:
    """Design the low-pass filter of a decimator.

    The stop band begins at 1.25 times the cut-off, at the latest at the new Nyquist frequency. The pass band
    deviates by less than 0.01 dB up to 0.6 times the cut-off.

    Args:
        rate: Sampling rate of the input [Hz].
        factor: Input samples for one output; 1 only filters.
        cutoff: Frequency of -3 dB [Hz]; 0.8 of the new Nyquist frequency by default.
        attenuation: Of the stop band [dB], 40 to 140.

    Raises:
        SignalError: If the settings make no sense together.
    """
    rate = check_positive(rate, "sampling rate")
    if int(factor) != factor or not 1 <= factor <= 100_000:
        raise SignalError(f"decimation factor: got {factor}, allowed are whole numbers from 1 to 100000")
    if not 40 <= attenuation <= 140:
        raise SignalError(f"stop-band attenuation: got {attenuation} dB, allowed are 40 to 140 dB")
    nyquist = rate / factor / 2
    cutoff = check_cutoff(DEFAULT_CUTOFF * nyquist if cutoff is None else cutoff, rate, "decimation cut-off")
    if cutoff > HIGHEST_CUTOFF * nyquist:
        raise SignalError(
            f"decimation cut-off: got {cutoff:g} Hz, allowed is at most {HIGHEST_CUTOFF * nyquist:g} Hz "
            f"({HIGHEST_CUTOFF:g} of the Nyquist frequency {nyquist:g} Hz after a factor of {factor}); "
            "lower the cut-off or the factor"
        )
    # Without decimation the stop band must still have a width.
    stop = min(_STOP_OVER_CUTOFF * cutoff, nyquist if factor > 1 else 0.98 * nyquist)
    stages = decimation_stages(int(factor), cutoff / rate, stop / rate, float(attenuation))
    return DecimationFilter(rate, int(factor), cutoff, stop, float(attenuation), stages)


Ends = Literal["drop", "mirror"]
_ROWS = 32


@dataclass(frozen=True)
class Decimated:
    """Decimated signals.

    Attributes:
        values: Signals (rows, k).
        rate: Their sampling rate [Hz].
        index: Number of the input sample at which each output lies (k,).
        dropped: Outputs dropped at the start and at the end, because the filter reaches beyond the data there.
        filter: What was applied.
    """

    values: np.ndarray
    rate: float
    index: np.ndarray
    dropped: tuple[int, int]
    filter: DecimationFilter


class Decimator:
    """Decimates signals that come in blocks. The result is that of the whole array, whatever the blocks.

    Outputs lie at input samples 0, factor, 2 factor, ... With ``ends="drop"`` those nearer to an end than the filter's
    half length are dropped. With ``ends="mirror"`` they are kept and the signal is mirrored at its ends: still the same
    linear operation on y and W, but the noise of those rows is up to twice as large in variance.

    Args:
        rate: Sampling rate of the input [Hz].
        factor: Input samples for one output.
        cutoff: Frequency of -3 dB [Hz]; 0.8 of the new Nyquist frequency by default.
        attenuation: Of everything from 1.25 times the cut-off on [dB].
        ends: ``drop`` or ``mirror``.

    Attributes:
        filter: The filter, with its response and its effect on white noise.
        ends: As given.
    """

    def __init__(
        self, rate: float, factor: int, cutoff: float | None = None, *, attenuation: float = 80.0, ends: Ends = "drop"
    ) -> None:
        check_choice(ends, ("drop", "mirror"), "ends")
        self.filter = decimation_filter(rate, factor, cutoff, attenuation)
        self.ends = ends
        self._restart()

    def _restart(self) -> None:
        # A whole number of outputs, so that mirrored samples leave the outputs at multiples of the factor.
        factor = self.filter.factor
        self._pad = -(-self.filter.half // factor) * factor if self.ends == "mirror" else 0
        self._cascades: list[_StageCascade] = []  # one for a few rows each
        self._rows = RowMemory("block")
        self._start: np.ndarray | None = None  # the first samples, until there are enough to mirror them
        self._last: np.ndarray | None = None  # the last samples, to mirror them at the end
        self._taken = 0

    def push(self, block: np.ndarray) -> np.ndarray:
        """Take a block (rows, m) and return the outputs (rows, k) that it completes.

        Raises:
            SignalError: If the block does not fit those before or holds a value that is not finite.
        """
        samples = self._rows.check(block)
        self._taken += samples.shape[1]
        if not self._pad:
            return self._through(samples)
        results = [self._through(part) for part in self._with_mirrored_start(samples)]
        return results[0] if len(results) == 1 else np.concatenate([self._rows.none(), *results], axis=1)

    def flush(self) -> np.ndarray:
        """End the signal: return the last outputs (rows, k) and make ready for the next signal.

        Raises:
            SignalError: If the signal was too short for a single output.
        """
        self._check_length()
        result = self._rows.none()
        if self._last is not None:
            result = self._through(self._last[:, -2::-1])
        for cascade in self._cascades:
            cascade.streams[0].flush()
        self._restart()
        return result

    def _check_length(self) -> None:
        filter_ = self.filter
        needed = self._pad + 1 if self._pad else filter_.outputs(0).start + filter_.half + 1
        if self._taken < needed:
            raise SignalError(
                f"signal: got {self._taken} samples, needed are at least {needed} to decimate by {filter_.factor} with "
                f"a cut-off of {filter_.cutoff:.3g} Hz; record longer or decimate less"
            )

    def _through(self, samples: np.ndarray) -> np.ndarray:
        if not self._cascades:
            starts = range(0, max(1, samples.shape[0]), _ROWS)
            self._cascades = [_StageCascade(self.filter, -self._pad, row) for row in starts]
        first, *others = self._cascades
        part = first.push(samples[: first.rows.stop])
        if not others:
            return part
        result = np.empty((samples.shape[0], part.shape[1]))
        result[first.rows] = part
        for cascade in others:
            result[cascade.rows] = cascade.push(samples[cascade.rows])
        return result

    def _with_mirrored_start(self, samples: np.ndarray) -> list[np.ndarray]:
        """Hold samples back until the start can be mirrored; remember the last ones for the end."""
        reach = self.filter.half + 1
        self._last = joined(self._last, samples[:, -reach:])[:, -reach:].copy()
        if self._taken - samples.shape[1] > self._pad:
            return [samples]
        held = joined(self._start, samples)
        if held.shape[1] <= self._pad:
            self._start = held
            return []
        self._start = None
        check_finite(held[:, : self._pad + 1], "signal")
        return [held[:, self._pad : 0 : -1], held]


class _StageCascade:
    """All stages one after the other for a few rows, which stay in cache on their way."""

    def __init__(self, filter_: DecimationFilter, first: int, row: int) -> None:
        self.rows = slice(row, row + _ROWS)
        self.streams: list[FirStream] = []
        for stage in filter_.stages:
            self.streams.append(FirStream(stage, first, row))
            first = self.streams[-1].first_output

    def push(self, samples: np.ndarray) -> np.ndarray:
        for stream in self.streams:
            samples = stream.push(samples)
        return samples


def decimate(
    values: np.ndarray,
    rate: float,
    factor: int,
    cutoff: float | None = None,
    *,
    attenuation: float = 80.0,
    ends: Ends = "drop",
) -> Decimated:
    """Low-pass filter and decimate whole signals.

    Args:
        values: Signals (rows, N).
        rate: Their sampling rate [Hz].
        factor: Input samples for one output.
        cutoff: Frequency of -3 dB [Hz]; 0.8 of the new Nyquist frequency by default.
        attenuation: Of everything from 1.25 times the cut-off on [dB].
        ends: What happens where the filter reaches beyond the data; see :class:`Decimator`.

    Raises:
        SignalError: If the settings make no sense together, or the signal is too short or not finite.
    """
    decimator = Decimator(rate, factor, cutoff, attenuation=attenuation, ends=ends)
    rows, filter_ = shaped_rows(values), decimator.filter
    result = decimator.push(rows)
    rest = decimator.flush()
    if rest.shape[1]:
        result = np.concatenate([result, rest], axis=1)
    index = np.arange(0, rows.shape[1], filter_.factor)
    start = filter_.outputs(rows.shape[1]).start // filter_.factor if ends == "drop" else 0
    inner = index[start : start + result.shape[1]]
    dropped = (start, len(index) - start - len(inner))
    return Decimated(frozen(result), filter_.rate / filter_.factor, frozen(inner), dropped, filter_)
