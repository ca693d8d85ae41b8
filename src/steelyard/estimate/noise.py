"""Noise model of every equation: the decimator's own correlation, an autoregression, and a size for each recording.

Rows are first freed of the decimator's correlation, which is known. What is left of the noise is taken as
``v[t] = sum_k a_k v[t-k] + e[t]``, with coefficients of each equation (torque kind and joint) and a variance of e for
each recording. Both are fitted by restricted likelihood: the likelihood of what the parameters cannot explain, so that
fitting many parameters does not make the noise look small. With the parameters x as missing data (flat prior), the EM
steps are closed:

* expectation: x given the noise model has mean ``x`` and covariance ``A^-1``, ``A = sum_e W_e^T W_e / s_e^2`` of the
  whitened rows; ``E_e[k, l] = sum_t E(r[t-k] r[t-l])`` follows from the lag products of the rows;
* maximisation: ``a`` solves the normal equations of ``sum E_e / s_e^2``, ``s_e^2 = a^T E_e a / n_e``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from ..errors import EstimateError
from ..observe import Whitening
from ..signals.whitening import autoregressive_correlation, innovation_share, stationary
from ..text import short_repr
from .lag_products import Equation, GroupProducts
from .system import NoiseGroup

ROWS_PER_ORDER = 15
"""At least so many rows for each order tried."""

LEAST_INDEPENDENT = 10
"""The rows of an equation in a recording are taken to be worth at least so many independent ones: correlation that is
longer than this part of a recording is indistinguishable from a trend."""

_MOST_STEPS = 200
_CONVERGED = 1e-6
_ROUNDING = 1e-13
"""Part of the mean square torque below which residuals are rounding errors of products: simulated, without noise."""
_TINY = 1e-300


@dataclass
class NoiseFit:
    """A fit, while it is iterated and when it has converged.

    Attributes:
        groups: Lag products of every noise group, columns scaled.
        orders: Order of every equation's autoregression.
        filters: ``(1, -a_1, ... -a_p, 0 ...)`` (L + 1,) of every equation.
        variances: Variance of e of every noise group.
        mean: Parameters given this noise (size,), for scaled columns.
        covariance: Their covariance (size, size), for scaled columns.
        expected: ``E[k, l]`` (L + 1, L + 1) of every noise group.
        steps: Steps taken.
    """

    groups: tuple[GroupProducts, ...]
    orders: Mapping[Equation, int]
    filters: dict[Equation, np.ndarray]
    variances: dict[NoiseGroup, float]
    mean: np.ndarray
    covariance: np.ndarray
    expected: dict[NoiseGroup, np.ndarray]
    steps: int = 0

    def groups_of(self, equation: Equation) -> list[GroupProducts]:
        """Return the noise groups of an equation, one for each recording."""
        return [group for group in self.groups if group.equation == equation]

    def normal_matrix(self, equation: Equation) -> np.ndarray:
        """Return ``sum E / variance`` (L + 1, L + 1) over the recordings: its inner part is the information on a."""
        return np.sum(
            [self.expected[group.group] / self.variances[group.group] for group in self.groups_of(equation)], axis=0
        )

    def effective_rows(self, equation: Equation) -> float:
        """Return the rows of an equation less what the parameters take of them, ``n - tr(A^-1 W^T W / s^2)``."""
        groups = self.groups_of(equation)
        left = (group.count - float(np.sum(self.covariance[group.place] * self.information(group))) for group in groups)
        return max(sum(left), 1.0)

    def information(self, group: GroupProducts) -> np.ndarray:
        """Return ``W^T W / s^2`` (c, c) of the whitened rows of a noise group."""
        return self._moments(group)[:-1, :-1]

    def expect(self) -> None:
        """Compute mean and covariance of the parameters and the expected moments, given the noise."""
        information, moment = np.zeros_like(self.covariance), np.zeros_like(self.mean)
        for group in self.groups:
            gram = self._moments(group)
            information[group.place] += gram[:-1, :-1]
            moment[group.index] += gram[:-1, -1]
        try:
            self.covariance = np.linalg.inv(information)
        except np.linalg.LinAlgError:
            raise EstimateError("the equations are singular: these recordings do not excite all parameters") from None
        self.mean = self.covariance @ moment
        self.expected = {group.group: group.expected(self.mean, self.covariance) for group in self.groups}

    def maximise(self) -> None:
        """Compute coefficients and variances of the noise, given the expected moments."""
        for equation, order in self.orders.items():
            if order:
                longest = max(group.count for group in self.groups_of(equation)) / LEAST_INDEPENDENT
                found = predictor(self.normal_matrix(equation), order)
                self.filters[equation][1 : order + 1] = -stationary(found, max(longest, 1.0))
            filter_ = self.filters[equation]
            for group in self.groups_of(equation):
                squares = float(filter_ @ self.expected[group.group] @ filter_)
                self.variances[group.group] = max(squares / group.count, _least_variance(group))

    def restart(self, orders: Mapping[Equation, int]) -> None:
        """Set the orders of the autoregressions, and take the noise as white."""
        self.orders = orders
        self.filters = {equation: np.eye(1, self.groups[0].lags)[0] for equation in orders}

    def _moments(self, group: GroupProducts) -> np.ndarray:
        filter_ = self.filters[group.equation]
        return group.gram(np.outer(filter_, filter_)) / self.variances[group.group]


def fit_noise(groups: Sequence[GroupProducts], size: int) -> NoiseFit:
    """Fit the noise by restricted likelihood; the order of every equation is chosen by BIC.

    Args:
        groups: Lag products of all noise groups.
        size: Number of unknowns.

    Raises:
        EstimateError: If there are no rows, or they do not excite all unknowns.
    """
    used = _used(groups, size)
    variances = {group.group: max(float(group.products[0, -1]) / group.count, _TINY) for group in used}
    fit = NoiseFit(used, {}, {}, variances, np.zeros(size), np.zeros((size, size)), {})
    fit.restart(_highest_orders(used))
    fit.expect()
    _iterate(fit)
    # What the parameters hide of the noise is expected to be as the model says, so a high order confirms itself: again.
    while (orders := {equation: _best_order(fit, equation) for equation in fit.orders}) != fit.orders:
        fit.restart(orders)
        _iterate(fit)
    return fit


def fit_noise_around(groups: Sequence[GroupProducts], mean: np.ndarray, covariance: np.ndarray) -> NoiseFit:
    """Fit the noise with the parameters held: for an estimate that the noise model must not move.

    Args:
        groups: Lag products of all noise groups.
        mean: The parameters (size,), for scaled columns.
        covariance: Their covariance (size, size), for scaled columns, which keeps the noise from looking small.
    """
    fit = NoiseFit(_used(groups, len(mean)), {}, {}, {}, mean, covariance, {})
    fit.expected = {group.group: group.expected(mean, covariance) for group in fit.groups}
    fit.variances = {
        group.group: max(float(fit.expected[group.group][0, 0]) / group.count, _least_variance(group))
        for group in fit.groups
    }
    fit.restart(_highest_orders(fit.groups))
    fit.orders = {equation: _best_order(fit, equation) for equation in fit.orders}
    for fit.steps in range(1, 4):  # variances and coefficients depend on each other where recordings differ
        fit.maximise()
    return fit


def _least_variance(group: GroupProducts) -> float:
    return max(_ROUNDING * float(group.products[0, -1]) / group.count, _TINY)


def _used(groups: Sequence[GroupProducts], size: int) -> tuple[GroupProducts, ...]:
    used = tuple(group for group in groups if group.count > 0)
    rows = sum(group.count for group in used)
    if rows <= size:
        raise EstimateError(
            f"{rows} rows with enough rows before them to estimate the noise, for {size} parameters: more are needed; "
            "record longer or decimate less"
        )
    return used


def _highest_orders(groups: Sequence[GroupProducts]) -> dict[Equation, int]:
    equations = dict.fromkeys(group.equation for group in groups)
    rows = {equation: sum(c.count for c in groups if c.equation == equation) for equation in equations}
    highest = groups[0].lags - 1
    return {equation: min(highest, rows[equation] // ROWS_PER_ORDER) for equation in equations}


def _iterate(fit: NoiseFit) -> None:
    """Repeat both steps until nothing changes; the expectation is computed before and after."""
    before = np.array([])
    for fit.steps in range(1, _MOST_STEPS + 1):
        fit.maximise()
        fit.expect()
        now = np.concatenate([*fit.filters.values(), np.log(list(fit.variances.values()))])
        if len(before) and np.abs(now - before).max() < _CONVERGED:
            break
        before = now


def _best_order(fit: NoiseFit, equation: Equation) -> int:
    """Return the order with the smallest ``n log(variance of e) + order log n`` (BIC).

    n counts what the parameters leave of the rows: the rest of the expected moments is what the model itself expects.
    """
    normal, rows = fit.normal_matrix(equation), fit.effective_rows(equation)
    criteria = []
    for order in range(min(fit.orders[equation], int(rows / ROWS_PER_ORDER)) + 1):
        left = normal[0, 0] - normal[0, 1 : order + 1] @ predictor(normal, order)
        criteria.append(rows * np.log(left) + order * np.log(rows) if left > 0 else np.inf)
    return int(np.argmin(criteria))


def predictor(normal: np.ndarray, order: int) -> np.ndarray:
    """Return the coefficients (order,) that predict a row best from those before it; zeros if none are identifiable.

    Args:
        normal: Moments of a row and those before it (L + 1, L + 1); all zero where residuals are nothing at all.
        order: How many rows before count.
    """
    try:
        return np.linalg.solve(normal[1 : order + 1, 1 : order + 1], normal[1 : order + 1, 0])
    except np.linalg.LinAlgError:
        return np.zeros(order)


@dataclass(frozen=True, eq=False)
class NoiseModel:
    """A fitted noise model.

    Attributes:
        correlation: Autocorrelation of white noise after the decimator (K + 1,).
        coefficients: Autoregressive coefficients of every equation (p,), p from 0 on.
        innovations: Standard deviation of e for every noise group.
        deviations: Standard deviation of v for every noise group.
    """

    __repr__ = short_repr

    correlation: np.ndarray
    coefficients: Mapping[Equation, np.ndarray]
    innovations: Mapping[NoiseGroup, float]
    deviations: Mapping[NoiseGroup, float]

    @property
    def whitening(self) -> Whitening:
        """What turns rows into rows with white noise, of the standard deviation ``deviations`` of their group."""
        return Whitening(self.correlation, self.coefficients)

    def lag_one(self, equation: Equation) -> float:
        """Return the lag-one correlation of the noise beyond the decimator's."""
        return float(autoregressive_correlation(self.coefficients[equation], 1)[1])


def noise_model(fit: NoiseFit, correlation: np.ndarray) -> NoiseModel:
    """Return the noise model of a fit.

    Args:
        fit: The converged fit.
        correlation: Autocorrelation of white noise after the decimator (K + 1,).
    """
    coefficients = {equation: -fit.filters[equation][1 : order + 1] for equation, order in fit.orders.items()}
    innovations = {group: float(np.sqrt(variance)) for group, variance in fit.variances.items()}
    shares = {equation: np.sqrt(innovation_share(found)) for equation, found in coefficients.items()}
    deviations = {group: deviation / shares[group[1:]] for group, deviation in innovations.items()}
    return NoiseModel(
        correlation, MappingProxyType(coefficients), MappingProxyType(innovations), MappingProxyType(deviations)
    )
