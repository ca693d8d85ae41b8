"""Products of an equation's rows with its own earlier rows: all that an autoregressive noise model needs of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from ..observe import RowSource, Whitening, weighted_runs
from .system import NoiseGroup

Equation = tuple[str, str]
"""Torque kind and joint."""

HIGHEST_ORDER = 4
"""Of the autoregressive noise models that are tried, unless given."""

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
    """Lag products of the rows of one noise group, freed of the decimator's correlation.

    Attributes:
        group: Recording, torque kind, joint.
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
        """Index of this group's block in a matrix over all columns."""
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
    """Return the lag products of every noise group that has rows: one pass over them.

    Args:
        sources: The rows.
        columns: Names of the unknowns; others are left out.
        correlation: Autocorrelation of white noise after the decimator.
        scale: Length of every column, by which it is divided.
        order: Largest lag: that of the highest order to be tried.
    """
    return tuple(group for source in sources for group in _products_of(source, columns, correlation, scale, order))


def _products_of(
    source: RowSource, columns: Sequence[str], correlation: np.ndarray, scale: np.ndarray, order: int
) -> Iterator[GroupProducts]:
    sums: dict[int, tuple[NoiseGroup, np.ndarray, LagProducts]] = {}
    for weighted in weighted_runs(source.runs(), columns, whitening=Whitening(correlation)):
        run = weighted.run
        if run.equation not in sums:
            sums[run.equation] = run.group, weighted.index, LagProducts(order, weighted.rows.shape[1])
        products = sums[run.equation][-1]
        if run.starts:
            products.restart()
        products.push(weighted.rows)
    for group, index, products in (sums[e] for e in sorted(sums)):
        factors = np.append(1 / scale[index], 1.0)
        yield group_products(group, index, products.products() * factors[:, None] * factors, products.count)


def group_products(group: NoiseGroup, index: np.ndarray, products: np.ndarray, count: int) -> GroupProducts:
    """Return the lag products of a noise group from ``G`` (L + 1, L + 1, c + 1, c + 1), columns scaled."""
    symmetric = (products + products.transpose(0, 1, 3, 2)) / 2
    packed = symmetric[_upper_pairs(len(products))].reshape(-1, products.shape[-1] ** 2)
    return GroupProducts(group, index, np.ascontiguousarray(packed), count, len(products))
