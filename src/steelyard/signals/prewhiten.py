"""Prewhitening: undo the amplitude and phase of an analogue anti-alias filter (P4.6).

The digital inverse is ``C(f) = S(f) / H(f)`` with the filter's response H and a smooth window S that is 1 up to an
extended bandwidth and falls to 0 beyond it: zero phase error, and bounded noise. Its impulse response is cut where the
rest no longer matters; what remains is a FIR filter that looks as far ahead as it looks back, so it streams exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import SignalError
from .checks import as_rows, check_order, check_positive, frozen
from .fir import FirStage, FirStream
from .recursive import buttap


@dataclass(frozen=True)
class AnalogueFilter:
    """A filter in continuous time by its zeros and poles [rad/s] and gain.

    Attributes:
        zeros: Zeros (m,), complex.
        poles: Poles (n,), complex, in the left half plane.
        gain: Factor of the transfer function.
    """

    zeros: np.ndarray
    poles: np.ndarray
    gain: float

    def response(self, frequency: np.ndarray) -> np.ndarray:
        """Return the complex response at frequencies [Hz]."""
        frequency = np.asarray(frequency, dtype=float)
        angular = 2j * np.pi * frequency[..., None]
        return self.gain * np.prod(angular - self.zeros, axis=-1) / np.prod(angular - self.poles, axis=-1)


def analogue_butterworth(order: int, cutoff: float) -> AnalogueFilter:
    """Return an analogue Butterworth low-pass of the given order with its -3 dB point at ``cutoff`` [Hz]."""
    angular = 2 * np.pi * check_positive(cutoff, "cut-off")
    poles = angular * buttap(check_order(order))
    return AnalogueFilter(frozen(np.empty(0)), frozen(poles), angular**order)


_POINTS = 1 << 16
# The window falls from 1 to 0 between the extended bandwidth and this many times it.
_FALL = 1.3


@dataclass(frozen=True)
class Prewhitener:
    """The inverse of an analogue filter for sampled signals. Make one with :func:`prewhitener`.

    Attributes:
        filter: The analogue filter.
        rate: Sampling rate [Hz].
        stage: The FIR filter that undoes it.
        band: Up to this frequency [Hz] amplitude and phase are restored within the tolerance.
        tolerance: ``|C H - 1|``: fraction of the amplitude, and radians of phase.
        max_gain: Largest amplification in the band.
        noise_gain: Variance of the output for white noise of variance 1.
    """

    filter: AnalogueFilter
    rate: float
    stage: FirStage
    band: float
    tolerance: float
    max_gain: float
    noise_gain: float

    @property
    def half(self) -> int:
        """Samples lost at each end."""
        return self.stage.half

    def response(self, frequency: np.ndarray) -> np.ndarray:
        """Return the complex response of the inverse at frequencies [Hz]."""
        place = np.arange(-self.half, self.half + 1)
        turns = np.multiply.outer(np.asarray(frequency, dtype=float) / self.rate, place)
        return np.exp(2j * np.pi * turns) @ self.stage.taps

    def apply(self, values: np.ndarray) -> np.ndarray:
        """Return the restored signals (rows, N - 2 half); the first belongs to input sample ``half``."""
        rows = as_rows(values, least=2 * self.half + 1)
        return self.stage.outputs(rows, rows.shape[1] - 2 * self.half)

    def stream(self) -> FirStream:
        """Return the same for signals that come in blocks."""
        return FirStream(self.stage)


def prewhitener(filter_: AnalogueFilter, rate: float, max_gain: float = 10.0, tolerance: float = 0.01) -> Prewhitener:
    """Design the inverse of an analogue anti-alias filter.

    Args:
        filter_: The analogue filter.
        rate: Sampling rate [Hz].
        max_gain: Amplification at which the extended bandwidth ends: more restores more and lifts more noise.
        tolerance: Error of amplitude and phase that the returned band holds.

    Raises:
        SignalError: If the filter attenuates more than ``max_gain`` at all frequencies.
    """
    rate = check_positive(rate, "sampling rate")
    check_positive(tolerance, "tolerance", "")
    frequency = np.fft.rfftfreq(_POINTS, 1 / rate)
    response = filter_.response(frequency)
    strong = np.abs(response) * max_gain >= 1
    if not strong[0]:
        raise SignalError(
            f"prewhitening: got a gain of {abs(response[0]):.3g} at 0 Hz, needed is 1 / {max_gain:g} or more"
        )
    weak = np.flatnonzero(~strong)
    edge = min(float(frequency[weak[0] - 1]) if len(weak) else np.inf, 0.5 * rate / _FALL * 0.98)
    wanted = _window(frequency, edge) / response
    impulse = np.fft.fftshift(np.fft.irfft(wanted, _POINTS))
    stage = _shortened(impulse, tolerance / 4)
    built = np.fft.rfft(stage.taps[::-1], _POINTS) * np.exp(2j * np.pi * frequency / rate * stage.half)
    wrong = np.flatnonzero(np.abs(built * response - 1) > tolerance)
    band = float(frequency[max(0, wrong[0] - 1)] if len(wrong) else frequency[-1])
    return Prewhitener(filter_, rate, stage, band, tolerance, max_gain, float(stage.taps @ stage.taps))


def _window(frequency: np.ndarray, edge: float) -> np.ndarray:
    """Return 1 up to the edge, then a fall to 0 with two continuous derivatives."""
    place = np.clip((frequency - edge) / ((_FALL - 1) * edge), 0, 1)
    return 1 - place**3 * (10 - 15 * place + 6 * place**2)


def _shortened(impulse: np.ndarray, tolerance: float) -> FirStage:
    """Cut a centred impulse response where the rest adds up to less than the tolerance at any frequency."""
    centre = len(impulse) // 2
    size = np.abs(impulse)
    outward = size[centre:].copy()
    outward[1:] += size[centre - 1 : 0 : -1]
    beyond = np.cumsum(outward[::-1])[::-1]
    half = max(1, int(np.argmax(beyond < tolerance)))
    # A stage correlates, a filter convolves: the response is turned around.
    return FirStage(frozen(impulse[centre - half : centre + half + 1][::-1].copy()))
