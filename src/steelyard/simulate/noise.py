"""Random signals of an experiment: every seed has streams of its own, so that each run can be repeated alone."""

from __future__ import annotations

import numpy as np

from ..errors import SimulationError
from ..signals import autoregressive_noise, band_limited_noise, white_noise
from .experiment import Noise

# The order of these names fixes which stream belongs to whom; new ones go to the end.
STREAMS = ("disturbance", "motor_noise", "joint_noise", "position_noise")


def noise_of_seed(noise: Noise | None, stream: str, seed: int, joints: int, samples: int, rate: float) -> np.ndarray:
    """Return the noise (n, N) of one seed at a rate [Hz]; zeros where there is none."""
    if noise is None:
        return np.zeros((joints, samples))
    if len(noise.std) != joints:
        raise SimulationError(f"{stream} std {list(noise.std)}: {joints} numbers are needed, one a joint")
    rng = np.random.default_rng([seed, STREAMS.index(stream)])
    std = np.array(noise.std)
    if noise.kind == "white":
        return white_noise(samples, std, rng)
    if noise.kind == "band_limited":
        return band_limited_noise(samples, rate, noise.band, std, rng)
    return autoregressive_noise(samples, np.array([np.exp(-2 * np.pi * noise.band / rate)]), std, rng)
