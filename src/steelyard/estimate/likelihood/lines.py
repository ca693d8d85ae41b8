"""Which lines a periodic motion has."""

from __future__ import annotations

import numpy as np

from ...errors import EstimateError
from ...signals import significant_lines
from ...signals.fourier import fourier_basis

MOST_LINES = 40
"""Lines that are fitted, at most: the strongest."""


def repeated_lines(q: np.ndarray, rate: float, period: float, label: str) -> tuple[int, ...]:
    """Return the lines of positions (n, N) that stand out of the spread between periods, the strongest of them.

    Args:
        q: Positions over two periods or more.
        rate: Sampling rate [Hz].
        period: Period [s].
        label: Name of the recording, for messages.

    Raises:
        EstimateError: If no line stands out.
    """
    lines = significant_lines(q, rate, period)
    if not lines:
        raise EstimateError(
            f"recording '{label}': no harmonic of {period:g} s stands out of the noise; give period and harmonics, or "
            "use gls"
        )
    basis = fourier_basis(np.arange(q.shape[1]) / rate, 1 / period, lines)[:, 1:]
    power = np.sum((basis.T @ (q - q.mean(axis=1, keepdims=True)).T) ** 2, axis=1).reshape(2, -1).sum(axis=0)
    return tuple(sorted(np.array(lines)[np.argsort(power)[-MOST_LINES:]].tolist()))


def explaining_lines(q: np.ndarray, time: np.ndarray, period: float, label: str) -> tuple[int, ...]:
    """Return lines 1 to K with the least ``sum_j N log(rss_j) + n (2 K + 1) log N`` (Bayesian information).

    Args:
        q: Positions (n, N).
        time: Times (N,) [s].
        period: Period [s].
        label: Name of the recording, for messages.

    Raises:
        EstimateError: If there is less than one period.
    """
    count = q.shape[1]
    interval = float(np.diff(time).min(initial=np.inf))
    if count < 8 or time[-1] + 1.5 * interval < period:
        raise EstimateError(
            f"recording '{label}' is shorter than its period of {period:g} s: too short to find its harmonics; give "
            "them"
        )
    most = max(1, min(MOST_LINES, int(period / interval / 4), (count - 2) // 4))
    order = [0, *(k for line in range(most) for k in (1 + line, 1 + most + line))]
    basis = fourier_basis(time, 1 / period, range(1, most + 1))[:, order]
    told = (np.linalg.qr(basis)[0].T @ q.T) ** 2
    total = np.sum(q**2, axis=1)
    rest = np.maximum(total - np.cumsum(told, axis=0)[2::2], 1e-20 * total + 1e-300)
    lines = np.arange(1, most + 1)
    criterion = count * np.log(rest).sum(axis=1) + len(q) * (2 * lines + 1) * np.log(count)
    return tuple(range(1, int(np.argmin(criterion)) + 2))
