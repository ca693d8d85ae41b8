"""Generalised least squares: a noise model is fitted to the rows, the rows are whitened, their factors solved.

That the noise is estimated widens the covariance (after Kenward and Roger) and gives t intervals (after Satterthwaite).
With ``Phi = A^-1`` for the true noise, plugging in an estimated noise adds twice
``Phi (sum_ij C_ij (Q_ij - P_i Phi P_j)) Phi``: C is the covariance of the noise parameters, ``P_i`` the derivative of A
by the i-th of them, and ``Q_ij = W^T S'_i S S'_j W`` with ``S'_i`` the derivative of the inverse covariance of the
noise. For a variance, Q is the group's information itself. For autoregressive coefficients Q lies between 0 and 4 times
the lag product ``G[i, j] / s^2``; the upper bound is taken, which errs on the safe side and needs no further pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..observe import Observations, RowSource, decimator_correlation, reduce_rows
from ..progress import Progress, silent
from ..text import short_repr
from .evidence import Estimate
from .lag_products import Equation, GroupProducts, lag_products
from .noise import NoiseFit, NoiseModel, fit_noise, noise_model
from .system import group_of, stacked_system

LEAST_FREEDOM = 3.0


def corrected_covariance(fit: NoiseFit) -> tuple[np.ndarray, np.ndarray]:
    """Return the covariance (size, size) for scaled columns and the degrees of freedom (size,) of its diagonal.

    ``freedom_i = 2 / var(log V_i)``, with the variance of ``log V_i`` carried over from the noise parameters.
    """
    plain = fit.covariance
    excess = np.zeros_like(plain)
    spread = np.zeros(len(plain))
    for group in fit.groups:
        spread += _add_variance(fit, group, excess)
    for equation, order in fit.orders.items():
        if order:
            spread += _add_coefficients(fit, equation, order, excess)
    widened = plain + 2 * plain @ ((excess + excess.T) / 2) @ plain
    # The correction is a small one; where rounding or few rows make it negative, the plain value stands.
    gain = np.sqrt(np.maximum(np.diag(widened) / np.diag(plain), 1.0))
    return plain * gain[:, None] * gain, np.maximum(2 / np.maximum(spread, 1e-12), LEAST_FREEDOM)


def _add_variance(fit: NoiseFit, group: GroupProducts, excess: np.ndarray) -> np.ndarray:
    """Add the cost of a noise group's variance; return its part of the variance of every log V."""
    place = group.place
    information, covariance = fit.information(group), fit.covariance[place]
    freedom = max(group.count - float(np.sum(covariance * information)), 1.0)
    excess[place] += 2 / freedom * (information - information @ covariance @ information)
    return _share(fit, group.index, information) ** 2 * 2 / freedom


def _add_coefficients(fit: NoiseFit, equation: Equation, order: int, excess: np.ndarray) -> np.ndarray:
    """Add the cost of an equation's coefficients; return their part of the variance of every log V."""
    inner = slice(1, order + 1)
    uncertainty = np.linalg.inv(fit.normal_matrix(equation)[inner, inner])
    slopes = np.zeros((order, *excess.shape))
    for group in fit.groups_of(equation):
        place, variance = group.place, fit.variances[group.group]
        weights = np.zeros((group.lags, group.lags))
        weights[inner, inner] = 4 * uncertainty
        excess[place] += group.gram(weights)[:-1, :-1] / variance
        for k in range(order):
            slope = group.gram(np.outer(np.eye(group.lags)[k + 1], fit.filters[equation]))[:-1, :-1] / variance
            slopes[k][place] += 2 * slope
    everything = np.arange(len(excess))
    change = np.array([_share(fit, everything, slopes[k]) for k in range(order)])
    for k in range(order):
        for m in range(order):
            excess -= uncertainty[k, m] * slopes[k] @ fit.covariance @ slopes[m]
    return np.einsum("ki,km,mi->i", change, uncertainty, change)


def _share(fit: NoiseFit, index: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return ``(Phi M Phi)_ii / Phi_ii`` for a matrix on some of the columns."""
    part = fit.covariance[:, index]
    return np.einsum("ij,ij->i", part @ matrix, part) / np.diag(fit.covariance)


@dataclass(frozen=True, eq=False)
class GlsFit:
    """Generalised least squares with what it rests on.

    Attributes:
        estimate: The parameters, with the small-sample covariance of the noise model.
        noise: The noise model.
        whitened: Factors of the whitened rows: unit-free noise, for reduction and tests.
    """

    __repr__ = short_repr

    estimate: Estimate
    noise: NoiseModel
    whitened: Observations


def generalised(
    sources: Sequence[RowSource], plain: Estimate, *, threads: int = 1, progress: Progress = silent
) -> GlsFit:
    """Estimate with the noise's own correlation: ``x = (W^T S^-1 W)^-1 W^T S^-1 y``.

    Args:
        sources: The rows of all recordings.
        plain: A least-squares estimate from the same rows: which columns they excite, and how long these are.
        threads: Threads that share the reduction.
        progress: Progress callback of the reduction.
    """
    columns, scale = plain.columns, plain.system.scale
    correlation = decimator_correlation(sources[0])
    fit = fit_noise(lag_products(sources, columns, correlation, scale), len(columns))
    noise = noise_model(fit, correlation)
    whitened = reduce_rows(sources, noise.whitening, threads=threads, progress=progress)
    weights = {group: 1 / deviation for group, deviation in noise.deviations.items()}
    system = stacked_system(whitened, columns, weights, lambda factor: group_of(factor) in weights)
    covariance, freedom = corrected_covariance(fit)
    # Rows at the start of a run, which the fit leaves out, count in the system: the covariance is its own, widened.
    gain = np.sqrt(np.diag(covariance) / np.diag(fit.covariance))
    widened = system.inverse * gain[:, None] * gain
    estimate = Estimate("gls", system, system.values, widened, "model", freedom, noise.deviations)
    return GlsFit(estimate, noise, whitened)
