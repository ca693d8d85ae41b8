"""What estimating the noise costs: a wider covariance (after Kenward and Roger) and t intervals (after Satterthwaite).

With ``Phi = A^-1`` for the true noise, plugging in an estimated noise adds twice
``Phi (sum_ij C_ij (Q_ij - P_i Phi P_j)) Phi``: C is the covariance of the noise parameters, ``P_i`` the derivative of A
by the i-th of them, and ``Q_ij = W^T S'_i S S'_j W`` with ``S'_i`` the derivative of the inverse covariance of the
noise. For a variance, Q is the cell's information itself. For autoregressive coefficients Q lies between 0 and 4 times
the lag product ``G[i, j] / s^2``; the upper bound is taken, which errs on the safe side and needs no further pass.
"""

from __future__ import annotations

import numpy as np

from .lag_products import CellProducts, Equation
from .restricted_likelihood import NoiseFit

LEAST_FREEDOM = 3.0


def corrected_covariance(fit: NoiseFit) -> tuple[np.ndarray, np.ndarray]:
    """Return the covariance (size, size) for scaled columns and the degrees of freedom (size,) of its diagonal.

    ``freedom_i = 2 / var(log V_i)``, with the variance of ``log V_i`` carried over from the noise parameters.
    """
    plain = fit.covariance
    excess = np.zeros_like(plain)
    spread = np.zeros(len(plain))
    for cell in fit.cells:
        spread += _add_variance(fit, cell, excess)
    for equation, order in fit.orders.items():
        if order:
            spread += _add_coefficients(fit, equation, order, excess)
    widened = plain + 2 * plain @ ((excess + excess.T) / 2) @ plain
    # The correction is a small one; where rounding or few rows make it negative, the plain value stands.
    gain = np.sqrt(np.maximum(np.diag(widened) / np.diag(plain), 1.0))
    return plain * gain[:, None] * gain, np.maximum(2 / np.maximum(spread, 1e-12), LEAST_FREEDOM)


def _add_variance(fit: NoiseFit, cell: CellProducts, excess: np.ndarray) -> np.ndarray:
    """Add the cost of a cell's variance; return its part of the variance of every log V."""
    place = cell.place
    information = cell.gram(np.outer(*[fit.filters[cell.equation]] * 2))[:-1, :-1] / fit.variances[cell.cell]
    covariance = fit.covariance[place]
    freedom = max(cell.count - float(np.sum(covariance * information)), 1.0)
    excess[place] += 2 / freedom * (information - information @ covariance @ information)
    return _share(fit, cell.index, information) ** 2 * 2 / freedom


def _add_coefficients(fit: NoiseFit, equation: Equation, order: int, excess: np.ndarray) -> np.ndarray:
    """Add the cost of an equation's coefficients; return their part of the variance of every log V."""
    inner = slice(1, order + 1)
    uncertainty = np.linalg.inv(fit.normal_matrix(equation)[inner, inner])
    slopes = np.zeros((order, *excess.shape))
    for cell in fit.cells_of(equation):
        place, variance = cell.place, fit.variances[cell.cell]
        weights = np.zeros((cell.lags, cell.lags))
        weights[inner, inner] = 4 * uncertainty
        excess[place] += cell.gram(weights)[:-1, :-1] / variance
        for k in range(order):
            slope = cell.gram(np.outer(np.eye(cell.lags)[k + 1], fit.filters[equation]))[:-1, :-1] / variance
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
