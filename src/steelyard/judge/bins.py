"""Residuals sorted into cells by what the arm did at that moment: speed and direction, load, position, time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

BINS = 10
"""Quantile bins of a signal."""
CROSSED_BINS = 6
"""Quantile bins of a signal that is looked at for both directions of motion apart."""
SPEED_FRACTIONS = (0.03, 0.08, 0.2, 0.4, 0.7)
"""Limits of the speed classes as fractions of the speed that 95 % of the samples stay below: finer near zero."""
SLOW = 0.2
"""Up to this fraction of that speed a joint is said to turn slowly."""
CROSSED = ("load", "temperature", "time")
"""Signals that may act on friction, so that their effect changes sign with the direction of motion."""
_LEAST = 12


@dataclass(frozen=True)
class Cells:
    """Which cell each sample falls into.

    Attributes:
        signal: Name of the signal.
        label: Cell of each sample (n,).
        level: Bin of the signal for each cell (B,): two cells share one where directions are apart.
        direction: +1 or -1 for each cell (B,), 0 where directions are not apart.
        low: Lower limit of each cell (B,), in the signal's unit.
        high: Upper limit of each cell (B,).
        centre: Mean of the signal in each cell (B,).
        count: Samples of each cell (B,).
        scale: Size of the signal: the speed that 95 % of the samples stay below; its range for other signals.
    """

    signal: str
    label: np.ndarray
    level: np.ndarray
    direction: np.ndarray
    low: np.ndarray
    high: np.ndarray
    centre: np.ndarray
    count: np.ndarray
    scale: float

    def columns(self) -> np.ndarray:
        """Return the indicator columns (n, B)."""
        return np.equal.outer(self.label, np.arange(len(self.level))).astype(np.float64)

    def average(self, values: np.ndarray) -> np.ndarray:
        """Return the mean of values (n,) in each cell (B,)."""
        return np.bincount(self.label, values, len(self.level)) / self.count


def cells_of(signal: str, signals: Mapping[str, np.ndarray]) -> Cells | None:
    """Sort samples by one of the signals (n,); None if it hardly varies."""
    values = signals[signal]
    direction = np.zeros(len(values))
    if signal == "velocity":
        direction = np.where(values < 0, -1.0, 1.0)
        return _cells(signal, np.abs(values), speed_limits(values), direction)
    if signal in CROSSED and "velocity" in signals:
        direction = np.where(signals["velocity"] < 0, -1.0, 1.0)
        return _cells(signal, values, _quantiles(values, CROSSED_BINS), direction)
    return _cells(signal, values, _quantiles(values, BINS), direction)


def speed_cells(velocity: np.ndarray) -> Cells | None:
    """Sort samples by speed alone, whatever the direction."""
    return _cells("velocity", np.abs(velocity), speed_limits(velocity), np.zeros(len(velocity)))


def fast(velocity: np.ndarray) -> float:
    """Return the speed that 95 % of the samples stay below."""
    return float(np.quantile(np.abs(velocity), 0.95))


def speed_limits(velocity: np.ndarray) -> np.ndarray:
    """Return limits between speed classes; classes with hardly a sample are joined with the next faster one."""
    speed, limits = np.abs(velocity), []
    least = max(2 * _LEAST, 0.005 * len(speed))
    below = 0
    for limit in np.array(SPEED_FRACTIONS) * fast(velocity):
        count = int(np.count_nonzero(speed < limit))
        if count - below >= least and len(speed) - count >= least:
            limits.append(limit)
            below = count
    return np.array(limits)


def _quantiles(values: np.ndarray, bins: int) -> np.ndarray:
    bins = max(1, min(bins, len(values) // (2 * _LEAST)))
    limits = np.unique(np.quantile(values, np.arange(1, bins) / bins))
    return limits[limits > values.min()]


def _cells(signal: str, values: np.ndarray, limits: np.ndarray, direction: np.ndarray) -> Cells | None:
    if len(limits) == 0:
        return None
    level = np.searchsorted(limits, values, side="right")
    code = 2 * level + (direction > 0)
    kinds, label, count = np.unique(code, return_inverse=True, return_counts=True)
    first = np.array([np.flatnonzero(label == k)[0] for k in range(len(kinds))])
    edges = np.concatenate([[values.min()], limits, [values.max()]])
    levels = kinds // 2
    centre = np.bincount(label, values) / count
    scale = fast(values) if signal == "velocity" else float(np.ptp(values))
    return Cells(signal, label, levels, direction[first], edges[levels], edges[levels + 1], centre, count, scale)
