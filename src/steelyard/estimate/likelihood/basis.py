"""The motions of a period: mean, sines and cosines with their derivatives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...signals.fourier import fourier_basis


def motion_basis(time: np.ndarray, period: float, lines: Sequence[int]) -> np.ndarray:
    """Return B (3, m, N): positions, velocities and accelerations of one, the sines and the cosines; m = 2 K + 1.

    With delta the coefficients (n, m) of a motion, ``q = delta B[0]``, ``qd = delta B[1]``, ``qdd = delta B[2]``.

    Args:
        time: Times (N,) [s].
        period: Period [s].
        lines: The K lines, as multiples of one over the period.
    """
    count = len(lines)
    angular = 2 * np.pi / period * np.array(lines, dtype=float)[:, None]
    position = fourier_basis(np.asarray(time, dtype=float), 1 / period, lines).T
    sines, cosines = position[1 : count + 1], position[count + 1 :]
    nothing = np.zeros((1, position.shape[1]))
    velocity = np.concatenate([nothing, angular * cosines, -angular * sines])
    acceleration = np.concatenate([nothing, -(angular**2) * sines, -(angular**2) * cosines])
    return np.stack([position, velocity, acceleration])
