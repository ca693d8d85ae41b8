"""The means of cells as a curve over the signal, split into what follows the direction of motion and what does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from .bins import SLOW, SPEED_FRACTIONS, Cells

Parity = Literal["odd", "even"]
Shape = Literal["constant", "line", "straight", "slow", "curved"]
# A shape is named if it makes up this much of a curve.
_MOST = 0.8


@dataclass(frozen=True)
class Profile:
    """Mean residual over the levels of a signal.

    Attributes:
        signal: Name of the signal.
        parity: ``odd`` if residuals change sign with the direction of motion; the values are then those along the
            motion.
        low: Lower limit of each level (K,).
        high: Upper limit of each level (K,).
        value: Mean residual of each level (K,).
        shape: ``constant``, ``line`` (in proportion), ``straight`` (both together), ``slow`` (a bump at low speed) or
            ``curved``.
        first: First level of the worst range.
        last: Its last level.
        worst_mean: Mean residual there.
    """

    signal: str
    parity: Parity
    low: np.ndarray
    high: np.ndarray
    value: np.ndarray
    shape: Shape
    first: int
    last: int
    worst_mean: float

    @property
    def worst_bin(self) -> tuple[float, float]:
        """Limits of the signal where it is worst."""
        return float(self.low[self.first]), float(self.high[self.last])

    def inside_worst(self, cells: Cells) -> np.ndarray:
        """Return which samples (n,) lie in the worst range."""
        level = np.searchsorted(np.unique(cells.level), cells.level)[cells.label]
        return (level >= self.first) & (level <= self.last)


def mean_profile(cells: Cells, values: np.ndarray) -> Profile:
    """Return the curve of the means of values (n,) over the cells' levels."""
    parity, value, weight, centre, levels = _split(cells, cells.average(values))
    speed = cells.signal == "velocity"
    shape = _shape(centre / cells.scale, value, weight, bump=speed and parity == "odd")
    allowed = _slow_levels(cells, levels) if shape == "slow" else np.ones(len(value), bool)
    return _with_worst(cells, parity, levels, value, weight, shape, allowed)


def spread_profile(cells: Cells, values: np.ndarray) -> Profile:
    """Return the curve of the mean squares of values (n,) over speed, less their overall mean."""
    square = cells.average(values**2) - float(np.mean(values**2))
    everywhere, slow = np.arange(len(square)), _slow_levels(cells, cells.level)
    excess = cells.count * np.maximum(square, 0.0)
    is_slow = float(excess[slow].sum()) >= 0.5 * float(excess.sum())
    shape: Shape = "slow" if is_slow else "curved"
    allowed = (slow if is_slow else ~slow) & (square > 0)
    allowed = allowed if allowed.any() else square == square.max()
    return _with_worst(cells, "even", everywhere, square, cells.count.astype(float), shape, allowed)


def _split(cells: Cells, means: np.ndarray) -> tuple[Parity, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return parity, values, weights, centres and the first cell of each level that both directions share."""
    if not cells.direction.any():
        return "even", means, cells.count.astype(float), cells.centre, np.arange(len(means))
    negative, positive = np.flatnonzero(cells.direction < 0), np.flatnonzero(cells.direction > 0)
    _, at_negative, at_positive = np.intersect1d(cells.level[negative], cells.level[positive], return_indices=True)
    negative, positive = negative[at_negative], positive[at_positive]
    if len(negative) < 2:
        return "even", means, cells.count.astype(float), cells.centre, np.arange(len(means))
    weight = 1 / (1 / cells.count[negative] + 1 / cells.count[positive])
    odd, even = (means[positive] - means[negative]) / 2, (means[positive] + means[negative]) / 2
    centre = (cells.centre[positive] + cells.centre[negative]) / 2
    if weight @ odd**2 >= weight @ even**2:
        return "odd", odd, weight, centre, positive
    return "even", even, weight, centre, positive


def _slow_levels(cells: Cells, chosen: np.ndarray) -> np.ndarray:
    slow = cells.high[chosen] <= 1.001 * SLOW * cells.scale
    return slow if slow.any() else cells.low[chosen] == cells.low[chosen].min()


def _with_worst(
    cells: Cells,
    parity: Parity,
    chosen: np.ndarray,
    value: np.ndarray,
    weight: np.ndarray,
    shape: Shape,
    allowed: np.ndarray,
) -> Profile:
    """Find the level that weighs most and its neighbours of the same sign that are at least half as far off."""
    peak = int(np.argmax(np.where(allowed, weight * value**2, -1.0)))
    alike = allowed & (value * np.sign(value[peak]) >= 0.5 * abs(value[peak]))
    first = last = peak
    while first > 0 and alike[first - 1]:
        first -= 1
    while last < len(value) - 1 and alike[last + 1]:
        last += 1
    inside = slice(first, last + 1)
    mean = float(weight[inside] @ value[inside] / weight[inside].sum())
    return Profile(cells.signal, parity, cells.low[chosen], cells.high[chosen], value, shape, first, last, mean)


def _shape(x: np.ndarray, value: np.ndarray, weight: np.ndarray, bump: bool) -> Shape:
    """Name the curve: how much of it a constant, a line or both explain; otherwise whether it lives at low speed."""
    root = np.sqrt(weight)
    target, one, line = root * value, root, root * x
    total = float(target @ target)
    if total == 0 or _explained(target, [one]) >= _MOST * total:
        return "constant"
    if _explained(target, [line]) >= _MOST * total:
        return "line"
    both = _explained(target, [one, line])
    if both >= _MOST * total:
        return "straight"
    if not bump:
        return "curved"
    slow = max(_explained(target, [one, line, root * np.exp(-x / width)]) for width in SPEED_FRACTIONS[:3])
    return "slow" if slow > _explained(target, [one, line, root * x**2]) else "curved"


def _explained(target: np.ndarray, columns: list[np.ndarray]) -> float:
    """Return the part of the sum of squares that columns explain."""
    matrix = np.column_stack(columns)
    fitted = matrix @ np.linalg.lstsq(matrix, target, rcond=1e-9)[0]
    return float(fitted @ fitted)
