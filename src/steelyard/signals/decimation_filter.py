"""What a decimator is before it sees a sample: its stages, its response, and what it does to white noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import SignalError
from .checks import check_cutoff, check_positive, frozen
from .fir import FirStage
from .fir_design import amplitude, decimation_stages

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
    def output_rate(self) -> float:
        """Sampling rate of the output [Hz]."""
        return self.rate / self.factor

    @property
    def half(self) -> int:
        """Input samples needed on either side of an output."""
        done, total = 1, 0
        for stage in self.stages:
            total += stage.half * done
            done *= stage.factor
        return total

    def kept(self, samples: int) -> range:
        """Return the numbers of the input samples at which outputs lie if the ends are dropped."""
        first = -(-self.half // self.factor) * self.factor
        return range(first, max(first, samples - self.half), self.factor)

    def response(self, frequency: np.ndarray) -> np.ndarray:
        """Return the amplitude (real: the phase is zero) at frequencies [Hz] before samples are dropped."""
        cycles = np.asarray(frequency, dtype=float) / self.rate
        total, done = np.ones_like(cycles), 1
        for stage in self.stages:
            total = total * amplitude(stage.taps, cycles * done)
            done *= stage.factor
        return total

    def impulse_response(self) -> np.ndarray:
        """Return the impulse response of all stages together (2 half + 1,) at the input rate."""
        total, done = np.ones(1), 1
        for stage in self.stages:
            before, total = total, np.zeros(len(total) + (len(stage.taps) - 1) * done)
            for k, tap in enumerate(stage.taps):
                total[k * done : k * done + len(before)] += tap * before
            done *= stage.factor
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
        return float(2 * (1 - self.noise_correlation(1)[1]) * finite)


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
