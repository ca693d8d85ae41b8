"""Generalised least squares, and weighted least squares with a covariance for correlated noise.

For generalised least squares a noise model is fitted to the rows, the rows are whitened, and their factors solved. That
the noise is estimated widens the covariance (after Kenward and Roger) and gives t intervals (after Satterthwaite). With
``Phi = A^-1`` for the true noise, plugging in an estimated noise adds twice
``Phi (sum_ij C_ij (Q_ij - P_i Phi P_j)) Phi``: C is the covariance of the noise parameters, ``P_i`` the derivative of A
by the i-th of them, and ``Q_ij = W^T S'_i S S'_j W`` with ``S'_i`` the derivative of the inverse covariance of the
noise. For a variance, Q is the group's information itself. For autoregressive coefficients Q lies between 0 and 4 times
the lag product ``G[i, j] / s^2``; the upper bound is taken, which errs on the safe side and needs no further pass.

Generalised least squares trusts the noise model with the estimate itself. Where the residuals are not noise but what a
model lacks (friction with memory, a spring, a wrong gain), that is too much trust: persistent residuals give quick
changes all the weight and gravity little. Then the weighted estimate stands and only its covariance is that of the
noise model: ``C = A^-1 (W^T S W) A^-1``, ``A = W^T W`` of the weighted rows, S the correlation of the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..distributions import chi2_isf
from ..observe import Observations, RowSource, decimator_correlation, reduce_rows, weighted_runs
from ..progress import Progress, silent
from ..signals import half_kernel
from ..signals.recursive import RunningConvolution
from ..text import short_repr
from .evidence import Estimate
from .lag_products import HIGHEST_ORDER, Equation, GroupProducts, lag_products
from .noise import NoiseFit, NoiseModel, fit_noise, fit_noise_around, noise_model
from .system import System, group_of, stacked_system

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
    excited = [columns.index(name) for name in system.columns]  # those of the whitened rows
    gain = np.sqrt(np.diag(covariance) / np.diag(fit.covariance))[excited]
    widened = system.inverse * gain[:, None] * gain
    estimate = Estimate("gls", system, system.values, widened, "model", freedom[excited], noise.deviations)
    return GlsFit(estimate, noise, whitened)


TRUSTED = 1.02
"""Generalised least squares may fit worse than weighted by this factor (noise alone, lag-one 0.8: 1.02 at most). More
comes from noise as slow as the motion (1.03 to 1.11, pole 0.998 at 500 Hz) or from what the model lacks (real arms:
1.03 to 11)."""

CHANCE = 0.001
"""Probability below which a difference of both is no longer put down to the noise."""

BLOCK_FACTOR = 1.4
"""Sigmas of the noise model are held within this factor of those of blocks of time."""

_LEAST_BLOCKS = 10


@dataclass(frozen=True, eq=False)
class CorrelatedFit:
    """A weighted estimate with the covariance of a noise model.

    Attributes:
        estimate: The same values, with sigmas for correlated noise.
        noise: The noise model of its residuals.
    """

    __repr__ = short_repr

    estimate: Estimate
    noise: NoiseModel


def misfit(plain: Estimate, other: Estimate) -> float:
    """Return how much larger the weighted residuals of another estimate are than those of the weighted one."""
    return float(np.sqrt(plain.system.squares_at(other.full_values(plain.columns)) / plain.system.squares))


def noise_explains(sources: Sequence[RowSource], plain: Estimate, gls: GlsFit) -> bool:
    """Return whether noise alone makes generalised and weighted least squares differ as much as they do.

    With ``d`` their difference, ``d^T A d`` has mean ``tr L`` and variance ``2 tr L^2``, ``L = A (C_w - C_g)``, if the
    noise is what its model says: slow noise moves the weighted estimate far, and this is no sign of a wrong model. Its
    distribution is taken as that of a chi-square with the same mean and variance (Satterthwaite).

    Args:
        sources: The rows of all recordings.
        plain: The weighted estimate.
        gls: Generalised least squares of the same rows.
    """
    root, bread = plain.system.triangle[:-1, :-1], plain.system.inverse
    meat = np.sum([_meat(source, plain, gls.noise)[0] for source in sources], axis=0)
    index = [plain.columns.index(name) for name in gls.estimate.columns]
    between = bread @ meat @ bread
    between[np.ix_(index, index)] -= gls.estimate.covariance
    sizes = np.linalg.eigvalsh(root @ between @ root.T)
    moved = np.sum((root @ (gls.estimate.full_values(plain.columns) - plain.values)) ** 2)
    sizes = sizes[sizes > 0]
    if not len(sizes):
        return False
    scale = np.sum(sizes**2) / sizes.sum()
    return bool(moved <= scale * chi2_isf(CHANCE, sizes.sum() / scale))


def with_correlated_noise(
    sources: Sequence[RowSource], plain: Estimate, observations: Observations | None = None
) -> CorrelatedFit:
    """Return a weighted estimate with the covariance that the correlation of its residuals gives it.

    Args:
        sources: The rows of all recordings.
        plain: The weighted estimate.
        observations: Factors of the same rows: blocks of time against which the sigmas are checked.
    """
    bread = plain.system.inverse
    noise = noise_around(sources, plain.system, plain.values, plain.unit**2 * bread)
    meat, effective = np.zeros_like(plain.covariance), 0.0
    for source in sources:
        part, rows = _meat(source, plain, noise)
        meat += part
        effective += rows
    covariance = bread @ meat @ bread
    if observations is not None:
        covariance = _near_blocks(covariance, plain, observations)
    freedom = np.full(len(plain.columns), max(effective - len(plain.columns), 3.0))
    return CorrelatedFit(replace(plain, covariance=covariance, covariance_kind="model", freedom=freedom), noise)


def noise_around(
    sources: Sequence[RowSource], system: System, values: np.ndarray, covariance: np.ndarray, order: int = HIGHEST_ORDER
) -> NoiseModel:
    """Return the noise model of the residuals of rows at an estimate that it does not move.

    Args:
        sources: The rows.
        system: Which columns are estimated, and how long they are.
        values: The estimate (c,).
        covariance: Its covariance (c, c).
        order: Highest order of the autoregressions that are tried.
    """
    correlation, scale = decimator_correlation(sources[0]), system.scale
    groups = lag_products(sources, system.columns, correlation, scale, order)
    fit = fit_noise_around(groups, values * scale, covariance * scale[:, None] * scale)
    return noise_model(fit, correlation)


def block_scores(estimate: Estimate, observations: Observations) -> np.ndarray:
    """Return ``X_b^T e_b`` of every block of time (G, c), from its factors: ``R_W^T (r_y - R_W x)``."""
    scores: dict[tuple[str, int], np.ndarray] = {}
    place, weights = {name: k for k, name in enumerate(estimate.columns)}, estimate.weights
    for factor in observations.factors:
        known = [k for k, name in enumerate(factor.columns) if name in place]
        index = [place[factor.columns[k]] for k in known]
        weight = weights.get(group_of(factor), 0.0)
        part = factor.triangle[:, known] * weight
        residual = factor.triangle[:, -1] * weight - part @ estimate.values[index]
        score = scores.setdefault((factor.recording, factor.block), np.zeros(len(place)))
        score[index] += part.T @ residual
    return np.array(list(scores.values()))


def block_sigma(estimate: Estimate, observations: Observations) -> np.ndarray | None:
    """Return the sigmas (c,) that blocks of time give, whatever the noise is within one; None for too few blocks."""
    scores = block_scores(estimate, observations)
    count = len(scores)
    if count < _LEAST_BLOCKS:
        return None
    return np.sqrt(np.sum((estimate.system.inverse @ scores.T) ** 2, axis=1) * count / (count - 1))


def _near_blocks(covariance: np.ndarray, plain: Estimate, observations: Observations) -> np.ndarray:
    """Return the covariance with every sigma within a factor of that which blocks of time give it."""
    sigma = block_sigma(plain, observations)
    if sigma is None:
        return covariance
    ratio = sigma / np.sqrt(np.diag(covariance))
    gain = ratio / np.clip(ratio, 1 / BLOCK_FACTOR, BLOCK_FACTOR)
    return covariance * gain[:, None] * gain


def _meat(source: RowSource, plain: Estimate, noise: NoiseModel) -> tuple[np.ndarray, float]:
    """Return ``W^T S W`` (c, c) of one recording's weighted rows, and how many independent rows they are worth."""
    meat, effective = np.zeros_like(plain.covariance), 0.0
    own = [group for group in noise.deviations if group[0] == source.label]
    weights = {group: noise.deviations[group] * plain.weights[group] ** 2 for group in own}
    kernels = {group: half_kernel(noise.correlation, noise.coefficients[group[1:]]) for group in weights}
    smoothers = {group: RunningConvolution(kernel) for group, kernel in kernels.items()}
    for weighted in weighted_runs(source.runs(), plain.columns, weights):
        group, W = weighted.run.group, weighted.rows[:, :-1]
        if weighted.run.starts:
            smoothers[group].restart()
        half = W.T @ smoothers[group].push(W)
        meat[np.ix_(weighted.index, weighted.index)] += half + half.T
        effective += len(W) * min(1.0, float(kernels[group][0] / kernels[group].sum()))
    return meat, effective
