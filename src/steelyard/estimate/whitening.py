"""Rows freed of the correlation of their noise: that of an autoregression seen through the decimator.

The spectrum of the noise is that of the autoregression times that of the decimator, so their autocorrelations are
convolved, and one predictor frees rows of both. Freeing them of one after the other is not the same near the start of
a run, where a predictor has few rows to go by: sigmas of offsets would come out up to 15 % low.

Products of an equation's rows with its own earlier rows: all that an autoregressive noise model needs of them.

Autoregressive noise: coefficients, stationarity, autocorrelation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

import numpy as np

from ..observe import RowSource
from ..signals import LevinsonWhitener
from ..signals.recursive import autoregression_filter
from .system import NoiseGroup

LARGEST_REFLECTION = 0.995
"""Noise more persistent than this cannot be told from a drift; it is held there."""

_SHRINKINGS = 30


def stationary(coefficients: np.ndarray, longest: float = np.inf) -> np.ndarray:
    """Return the nearest coefficients (p,) of ``v[t] = sum_k a_k v[t-k] + e[t]`` within bounds.

    Reflection coefficients are at most 0.995: down the Levinson recursion to them, and up again from those held. The
    correlation length (:func:`correlation_length`) is at most ``longest`` rows: poles are drawn towards 0, all by one
    factor, until it is.
    """
    held = _held_reflections(coefficients)
    if len(held) == 0 or correlation_length(held) <= longest:
        return held
    powers, low, high = np.arange(1, len(held) + 1), 0.0, 1.0
    for _ in range(_SHRINKINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if correlation_length(held * middle**powers) <= longest else (low, middle)
    return held * low**powers


def correlation_length(coefficients: np.ndarray) -> float:
    """Return how many rows count as one where the noise is strongest: its largest spectral density over its variance.

    At frequency 0 this is the sum of all autocorrelations, by which the variance of a mean exceeds that of white noise.
    """
    full = np.concatenate([[1.0], -np.asarray(coefficients, dtype=float)])
    smallest = np.min(np.abs(full @ _waves(len(full))) ** 2)
    return innovation_share(coefficients) / max(float(smallest), 1e-300)


@cache
def _waves(count: int) -> np.ndarray:
    """Return ``exp(-i w k)`` (count, frequencies) from frequency 0 to half the rate of rows."""
    return np.exp(-1j * np.outer(np.arange(count), np.linspace(0, np.pi, 513)))


def _held_reflections(coefficients: np.ndarray) -> np.ndarray:
    reflections = _reflections(np.asarray(coefficients, dtype=float))
    held = np.clip(reflections, -LARGEST_REFLECTION, LARGEST_REFLECTION)
    if np.array_equal(held, reflections):
        return np.asarray(coefficients, dtype=float)
    built = np.zeros(0)
    for reflection in held:
        built = np.concatenate([built - reflection * built[::-1], [reflection]])
    return built


def _reflections(coefficients: np.ndarray) -> np.ndarray:
    found = np.zeros(len(coefficients))
    current = coefficients.copy()
    for order in range(len(coefficients), 0, -1):
        last = current[-1]
        found[order - 1] = last
        # Beyond 1 the recursion has no meaning; what is below is judged as if at the bound.
        bounded = np.clip(last, -LARGEST_REFLECTION, LARGEST_REFLECTION)
        current = (current[:-1] + bounded * current[-2::-1]) / (1 - bounded**2) if order > 1 else current[:0]
    return found


def autocorrelation(coefficients: np.ndarray, lags: int) -> np.ndarray:
    """Return the autocorrelation (lags + 1,) of the noise, from the Yule-Walker equations."""
    order = len(coefficients)
    if order == 0:
        return np.eye(1, lags + 1)[0]
    # Unknown r(0..p): r(k) - sum_j a_j r(|k-j|) = variance of e at k = 0, 0 elsewhere.
    system = np.zeros((order + 1, order + 1))
    full = np.concatenate([[1.0], -coefficients])
    for k in range(order + 1):
        for j in range(order + 1):
            system[k, abs(k - j)] += full[j]
    start = np.linalg.solve(system, np.eye(order + 1)[0])
    if lags <= order:
        return start[: lags + 1] / start[0]
    further = autoregression_filter(coefficients, np.zeros((1, lags - order)), start[None, order:0:-1])
    return np.concatenate([start, further[0]]) / start[0]


def innovation_share(coefficients: np.ndarray) -> float:
    """Return the variance of e over that of v: what the past leaves unexplained."""
    return float(np.prod(1 - _reflections(np.asarray(coefficients, dtype=float)) ** 2))


FLOOR = 1e-6
"""Added to the decimator's variance, which is nearly nothing at its Nyquist frequency."""

WHITENING_ORDER = 80
"""Rows from which the next is predicted: enough for a decimator's sharp edge."""


class RowWhitener:
    """Frees rows of the correlation of their noise.

    Rows come out with white noise of the standard deviation that the autoregression has before the decimator.

    Args:
        correlation: Autocorrelation of white noise after the decimator (K + 1,).
        coefficients: Autoregressive coefficients (p,).
    """

    def __init__(self, correlation: np.ndarray, coefficients: np.ndarray) -> None:
        self._whitener, self._size = _whitener_of(correlation, coefficients)

    def restart(self) -> None:
        """Begin a new run."""
        self._whitener.restart()

    def push(self, rows: np.ndarray) -> np.ndarray:
        """Return the next rows (k, m) whitened."""
        return self._whitener.push(rows) / self._size


def decimator_whitener(correlation: np.ndarray) -> LevinsonWhitener:
    """Return a whitener of the decimator's own correlation (K + 1,), at the start of a run."""
    return _whitener_of(correlation, np.zeros(0))[0]


def noise_autocovariance(correlation: np.ndarray, coefficients: np.ndarray, lags: int) -> np.ndarray:
    """Return the autocovariance (lags + 1,) of an autoregression of variance 1 that went through the decimator.

    Args:
        correlation: Autocorrelation of white noise after the decimator (K + 1,).
        coefficients: Autoregressive coefficients (p,).
        lags: Largest lag.
    """
    persistent = autocorrelation(coefficients, lags + len(correlation) - 1)
    both_sides = [np.concatenate([part[:0:-1], part]) for part in (persistent, correlation)]
    total = np.convolve(*both_sides, mode="same")
    middle = len(persistent) - 1
    return total[middle : middle + lags + 1]


def _whitener_of(correlation: np.ndarray, coefficients: np.ndarray) -> tuple[LevinsonWhitener, float]:
    parts = (np.asarray(part, dtype=float).tobytes() for part in (correlation, coefficients))
    fresh, size = _fresh_whitener(*parts)
    whitener = copy(fresh)
    whitener.restart()
    return whitener, size


@lru_cache(maxsize=64)
def _fresh_whitener(correlation: bytes, coefficients: bytes) -> tuple[LevinsonWhitener, float]:
    """Return a whitener that nobody uses, and the size of the noise: recordings share them, and they take a while."""
    decimator, persistent = np.frombuffer(correlation).copy(), np.frombuffer(coefficients)
    if np.any(np.abs(decimator[1:]) > 1e-12):
        decimator[0] += FLOOR
        order = WHITENING_ORDER
    else:
        decimator, order = np.ones(1), len(persistent)
    lags = noise_autocovariance(decimator / decimator[0], persistent, order)
    return LevinsonWhitener(lags / lags[0], order), float(np.sqrt(lags[0]))


Equation = tuple[str, str]
"""Torque kind and joint."""

HIGHEST_ORDER = 4
"""Of the autoregressive noise models that are tried, unless told otherwise."""

_CHUNK = 4096


class LagProducts:
    """``G[k, l] = sum_t x[t-k] x[t-l]^T`` of rows ``x = [W y]`` for lags 0 to ``order``, within runs.

    Only instants with ``order`` rows before them count, so that models of different orders see the same data.

    Args:
        order: Largest lag.
        columns: Number of columns of the rows.

    Attributes:
        count: Number of instants.
    """

    def __init__(self, order: int, columns: int) -> None:
        self._order, self._columns = order, columns
        self._sum = np.zeros(((order + 1) * columns,) * 2)
        self.count = 0
        self.restart()

    def restart(self) -> None:
        """Begin a new run: products never reach across a break."""
        self._tail = np.empty((0, self._columns))

    def push(self, rows: np.ndarray) -> None:
        """Add the next rows (k, columns) of the run."""
        for first in range(0, len(rows), _CHUNK):
            joined = np.concatenate([self._tail, rows[first : first + _CHUNK]])
            fresh = len(joined) - self._order
            if fresh > 0:
                lagged = np.concatenate([joined[self._order - k :][:fresh] for k in range(self._order + 1)], axis=1)
                self._sum += lagged.T @ lagged
                self.count += fresh
            self._tail = joined[max(0, len(joined) - self._order) :]

    def products(self) -> np.ndarray:
        """Return G (order + 1, order + 1, columns, columns)."""
        lags, columns = self._order + 1, self._columns
        return self._sum.reshape(lags, columns, lags, columns).transpose(0, 2, 1, 3).copy()


@dataclass(frozen=True, eq=False)
class GroupProducts:
    """Lag products of the rows of one cell, freed of the decimator's correlation.

    Attributes:
        cell: Recording, kind, joint.
        index: Place of each column among all columns (c,).
        products: The symmetric part of ``G[k, l]``, k <= l, as a matrix ((L + 1)(L + 2) / 2, (c + 1)^2), columns
            scaled; ``G[l, k]`` is the transpose of ``G[k, l]``, so no more is ever needed.
        count: Instants behind it.
        lags: Number of lags L + 1, 0 included.
    """

    group: NoiseGroup
    index: np.ndarray
    products: np.ndarray
    count: int
    lags: int

    @property
    def equation(self) -> Equation:
        """Torque kind and joint."""
        return self.group[1:]

    @cached_property
    def place(self) -> tuple[np.ndarray, ...]:
        """Index of this cell's block in a matrix over all columns."""
        return np.ix_(self.index, self.index)

    def gram(self, weights: np.ndarray) -> np.ndarray:
        """Return the symmetric part of ``sum_kl weights[k, l] G[k, l]`` (c + 1, c + 1)."""
        size = len(self.index) + 1
        upper, lower = _upper_pairs(self.lags)
        paired = weights + weights.T
        paired[np.diag_indices(self.lags)] /= 2
        return (paired[upper, lower] @ self.products).reshape(size, size)

    def expected(self, mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        """Return ``E[k, l] = sum_t E(r[t-k] r[t-l])`` (L + 1, L + 1) for parameters of this mean and covariance."""
        signed = np.append(-mean[self.index], 1.0)
        moments = np.outer(signed, signed)
        moments[:-1, :-1] += covariance[self.place]
        upper, lower = _upper_pairs(self.lags)
        matrix = np.empty((self.lags, self.lags))
        matrix[upper, lower] = matrix[lower, upper] = self.products @ moments.ravel()
        return matrix


@cache
def _upper_pairs(lags: int) -> tuple[np.ndarray, np.ndarray]:
    return np.triu_indices(lags)


def lag_products(
    sources: Sequence[RowSource],
    columns: Sequence[str],
    correlation: np.ndarray,
    scale: np.ndarray,
    order: int = HIGHEST_ORDER,
) -> tuple[GroupProducts, ...]:
    """Return the lag products of every cell: one pass over the rows.

    Args:
        sources: The rows.
        columns: Names of the unknowns; others are left out.
        correlation: Autocorrelation of white noise after the decimator.
        scale: Length of every column, by which it is divided.
        order: Largest lag: that of the highest order to be tried.
    """
    place = {name: k for k, name in enumerate(columns)}
    return tuple(group for source in sources for group in _products_of(source, place, correlation, scale, order))


def _products_of(
    source: RowSource, place: Mapping[str, int], correlation: np.ndarray, scale: np.ndarray, order: int
) -> list[GroupProducts]:
    equations = source.equations
    kept = [[k for k, name in enumerate(names) if name in place] for names in equations.columns]
    sums = [LagProducts(order, len(k) + 1) for k in kept]
    whiteners = [decimator_whitener(correlation) for _ in kept]
    ends = [(-1, -1)] * len(kept)
    for block in source:
        for e, columns in enumerate(kept):
            for first, rows in block.runs(e):
                begins = (block.segment, block.first + first)
                if begins != ends[e]:
                    whiteners[e].restart()
                    sums[e].restart()
                ends[e] = (block.segment, block.first + first + len(rows))
                sums[e].push(whiteners[e].push(rows[:, [*columns, -1]]))
    found = []
    for e, (kind, joint) in enumerate(equations.kinds_joints):
        index = np.array([place[equations.columns[e][k]] for k in kept[e]], dtype=np.intp)
        factors = np.append(1 / scale[index], 1.0)
        products = sums[e].products() * factors[:, None] * factors
        found.append(group_products((source.label, kind, joint), index, products, sums[e].count))
    return found


def group_products(group: NoiseGroup, index: np.ndarray, products: np.ndarray, count: int) -> GroupProducts:
    """Return the lag products of a cell from ``G`` (L + 1, L + 1, c + 1, c + 1), columns scaled."""
    symmetric = (products + products.transpose(0, 1, 3, 2)) / 2
    packed = symmetric[_upper_pairs(len(products))].reshape(-1, products.shape[-1] ** 2)
    return GroupProducts(group, index, np.ascontiguousarray(packed), count, len(products))
