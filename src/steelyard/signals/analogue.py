"""Analogue filters in front of a converter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .checks import check_order, check_positive, frozen
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
