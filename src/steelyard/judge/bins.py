"""Residuals sorted into bins of a signal (speed and direction, load, position, time), and tests of their means.

A Wald test compares the means of the bins with what the serial correlation of the residuals allows. As a curve over the
signal, the means are split into a part that follows the direction of motion and one that does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import linalg

from ..distributions import f_sf
from .whiteness import SerialCorrelation, correlated

BINS = 10
"""Quantile bins of a signal."""
CROSSED_BINS = 6
"""Quantile bins of a signal that is looked at for both directions of motion apart."""
SPEED_FRACTIONS = (0.03, 0.08, 0.2, 0.4, 0.7)
"""Limits of the speed classes as fractions of the speed that 95 % of the samples stay below: finer near zero."""
SLOW = 0.2
"""Up to this fraction of that speed a joint turns slowly."""
CROSSED = ("load", "temperature", "time")
"""Signals that may act on friction, so that their effect changes sign with the direction of motion."""
_LEAST = 12


@dataclass(frozen=True)
class Bins:
    """Which bin each sample falls into.

    Attributes:
        signal: Name of the signal.
        label: Bin of each sample (n,).
        level: Level of the signal for each bin (B,): two bins share one where directions are apart.
        direction: +1 or -1 for each bin (B,), 0 where directions are not apart.
        low: Lower limit of each bin (B,), in the signal's unit.
        high: Upper limit of each bin (B,).
        centre: Mean of the signal in each bin (B,).
        count: Samples of each bin (B,).
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
        """Return the mean of values (n,) in each bin (B,)."""
        return np.bincount(self.label, values, len(self.level)) / self.count


def bins_of(signal: str, signals: Mapping[str, np.ndarray]) -> Bins | None:
    """Sort samples by one of the signals (n,); None if it hardly varies."""
    values = signals[signal]
    if signal == "velocity":
        return _binned(signal, np.abs(values), speed_limits(values), np.where(values < 0, -1.0, 1.0))
    if signal in CROSSED and "velocity" in signals:
        direction = np.where(signals["velocity"] < 0, -1.0, 1.0)
        return _binned(signal, values, _quantiles(values, CROSSED_BINS), direction)
    return _binned(signal, values, _quantiles(values, BINS), np.zeros(len(values)))


def speed_bins(velocity: np.ndarray) -> Bins | None:
    """Sort samples by speed alone, whatever the direction."""
    return _binned("velocity", np.abs(velocity), speed_limits(velocity), np.zeros(len(velocity)))


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


def _binned(signal: str, values: np.ndarray, limits: np.ndarray, direction: np.ndarray) -> Bins | None:
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
    return Bins(signal, label, levels, direction[first], edges[levels], edges[levels + 1], centre, count, scale)


_DEPENDENT = 1e-8
_ITERATIONS = 3
_UNREMARKABLE = 0.05


@dataclass(frozen=True)
class BinTest:
    """A test of columns beyond a base.

    Attributes:
        f: Wald statistic over its degrees of freedom.
        p: Its probability, from F.
        share: Share of the residual's variance that the columns explain, less what chance explains.
        basis: Orthonormal basis of base and columns together (n, q).
        left: Residuals less the part in that basis (n,).
    """

    f: float
    p: float
    share: float
    basis: np.ndarray
    left: np.ndarray


@dataclass(frozen=True)
class BinNoise:
    """What is known of the noise of residuals.

    Attributes:
        lengths: Samples of each run.
        size: Standard deviation at each sample (n,), up to a factor: larger near reversals, for instance.
        serial: How its serial correlation is estimated.
    """

    lengths: Sequence[int]
    size: np.ndarray
    serial: SerialCorrelation


def wald_test(
    residual: np.ndarray, base: np.ndarray, columns: np.ndarray, noise: BinNoise, least: float = 0.0
) -> BinTest | None:
    """Test whether residuals e (n,) have a part along columns (n, m) beyond an orthonormal base (n, k).

    With Q an orthonormal basis of what the columns add, ``t = Q^T e`` has the covariance ``V = s^2 Q^T D C D Q``,
    where D holds the noise's size and C its correlation matrix, run by run, and ``F = t^T V^-1 t / d``. Means are those
    of least squares, so that a pattern that is not quite a step costs nothing but a little power.

    Args:
        residual: The residuals.
        base: What has been fitted before.
        columns: What is tested.
        noise: What is known of the residuals' noise.
        least: Share of the residuals' variance below which a part is not worth a test.

    Returns:
        The test, or None if the columns add nothing to the base, the samples are too few for it or the part is small.
    """
    extra = columns - base @ (base.T @ columns)
    left_vectors, sizes, _ = linalg.svd(extra, full_matrices=False)
    added = left_vectors[:, sizes > _DEPENDENT * np.linalg.norm(columns)]
    basis = np.concatenate([base, added], axis=1)
    left = residual - basis @ (basis.T @ residual)
    if added.shape[1] == 0 or len(residual) < 3 * basis.shape[1] or left @ left <= 1e-20 * (residual @ residual):
        return None
    along, count = added.T @ residual, added.shape[1]
    if along @ along < least * (residual @ residual):  # what chance explains is still to be taken off
        return None
    covariance, effective = _covariance_along(left, basis, count, noise)
    f, p = _wald(along, covariance, effective - basis.shape[1])
    for _ in range(_ITERATIONS):
        # The noise has a part along the columns too: as much of it is put back as chance would leave there. This only
        # lowers F, so it is skipped where F is unremarkable already.
        if p > _UNREMARKABLE:
            break
        part = min(1.0, np.sqrt(np.trace(covariance) / float(along @ along)))
        covariance, effective = _covariance_along(left + added @ (part * along), basis, count, noise)
        f, p = _wald(along, covariance, effective - basis.shape[1])
    share = (float(along @ along) - float(np.trace(covariance))) / float(residual @ residual)
    return BinTest(f, p, max(0.0, share), basis, left)


def _wald(along: np.ndarray, covariance: np.ndarray, free: float) -> tuple[float, float]:
    """Return F and its probability for a vector (d,) of the given covariance (d, d)."""
    f = float(along @ linalg.solve(covariance, along, assume_a="sym")) / len(along)
    return f, float(f_sf(f, len(along), max(3.0, free)))


def _covariance_along(sample: np.ndarray, basis: np.ndarray, count: int, noise: BinNoise) -> tuple[np.ndarray, float]:
    """Return V (d, d) along the last d columns of a basis, and how many independent samples all are worth."""
    lags = noise.serial.estimate(np.split(sample, np.cumsum(noise.lengths)[:-1]))
    scaled = basis * noise.size[:, None]
    spread = scaled.T @ correlated(scaled, noise.lengths, lags)
    # The sample has no part along the base, which has been fitted before.
    free = max(1.0, float(noise.size @ noise.size) - float(np.trace(spread[:-count, :-count])))
    effective = len(sample) / max(1.0, float(2 * lags.sum() - 1))
    return float(sample @ sample) / free * spread[-count:, -count:], effective


Parity = Literal["odd", "even"]
Shape = Literal["constant", "line", "straight", "slow", "curved"]
# A shape is named if it makes up this much of a curve.
_MOST = 0.8


@dataclass(frozen=True)
class BinProfile:
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

    def inside_worst(self, bins: Bins) -> np.ndarray:
        """Return which samples (n,) lie in the worst range."""
        level = np.searchsorted(np.unique(bins.level), bins.level)[bins.label]
        return (level >= self.first) & (level <= self.last)


def mean_profile(bins: Bins, values: np.ndarray) -> BinProfile:
    """Return the curve of the means of values (n,) over the bins' levels."""
    parity, value, weight, centre, levels = _split(bins, bins.average(values))
    shape = _shape(centre / bins.scale, value, weight, bump=bins.signal == "velocity" and parity == "odd")
    allowed = _slow_levels(bins, levels) if shape == "slow" else np.ones(len(value), bool)
    return _with_worst(bins, parity, levels, value, weight, shape, allowed)


def spread_profile(bins: Bins, values: np.ndarray) -> BinProfile:
    """Return the curve of the mean squares of values (n,) over speed, less their overall mean."""
    square = bins.average(values**2) - float(np.mean(values**2))
    everywhere, slow = np.arange(len(square)), _slow_levels(bins, bins.level)
    excess = bins.count * np.maximum(square, 0.0)
    is_slow = float(excess[slow].sum()) >= 0.5 * float(excess.sum())
    shape: Shape = "slow" if is_slow else "curved"
    allowed = (slow if is_slow else ~slow) & (square > 0)
    allowed = allowed if allowed.any() else square == square.max()
    return _with_worst(bins, "even", everywhere, square, bins.count.astype(float), shape, allowed)


def _split(bins: Bins, means: np.ndarray) -> tuple[Parity, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return parity, values, weights, centres and the first bin of each level that both directions share."""
    undirected = "even", means, bins.count.astype(float), bins.centre, np.arange(len(means))
    if not bins.direction.any():
        return undirected
    negative, positive = np.flatnonzero(bins.direction < 0), np.flatnonzero(bins.direction > 0)
    _, at_negative, at_positive = np.intersect1d(bins.level[negative], bins.level[positive], return_indices=True)
    negative, positive = negative[at_negative], positive[at_positive]
    if len(negative) < 2:
        return undirected
    weight = 1 / (1 / bins.count[negative] + 1 / bins.count[positive])
    odd, even = (means[positive] - means[negative]) / 2, (means[positive] + means[negative]) / 2
    centre = (bins.centre[positive] + bins.centre[negative]) / 2
    if weight @ odd**2 >= weight @ even**2:
        return "odd", odd, weight, centre, positive
    return "even", even, weight, centre, positive


def _slow_levels(bins: Bins, chosen: np.ndarray) -> np.ndarray:
    slow = bins.high[chosen] <= 1.001 * SLOW * bins.scale
    return slow if slow.any() else bins.low[chosen] == bins.low[chosen].min()


def _with_worst(
    bins: Bins,
    parity: Parity,
    chosen: np.ndarray,
    value: np.ndarray,
    weight: np.ndarray,
    shape: Shape,
    allowed: np.ndarray,
) -> BinProfile:
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
    return BinProfile(bins.signal, parity, bins.low[chosen], bins.high[chosen], value, shape, first, last, mean)


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
