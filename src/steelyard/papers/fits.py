"""Weighted least squares as in the papers, and the figures that they print of a fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..estimate import Estimate, generalised, weighted
from ..judge import DurbinWatson, Reduction, durbin_watson, kolmogorov_smirnov, reduce_parameters, residual_runs
from ..observe import (
    Equations,
    Factor,
    Observations,
    ResolvedPreparation,
    RowSource,
    merged_triangle,
    reduce_rows,
    row_source,
)
from ..recording import Recording

CORRELATION_LAGS = 40
"""Lags of the decimator's own correlation that Durbin and Watson's statistic is compared with."""


@dataclass(frozen=True, eq=False)
class PaperFit:
    """Weighted least squares (P1.3) of all base parameters, and the essential parameters by both rules.

    Attributes:
        sources: The rows of every recording.
        observations: Their factors.
        estimate: All base parameters.
        by_f: Essential parameters by the F statistic (P5.6).
        by_rsd: Essential parameters by relative sigmas of at most 20 %.
    """

    sources: tuple[RowSource, ...]
    observations: Observations
    estimate: Estimate
    by_f: Reduction
    by_rsd: Reduction

    @property
    def rows(self) -> int:
        """Number of equations."""
        return self.estimate.system.rows


def paper_fit(
    recordings: Mapping[str, Recording],
    equations: Equations,
    resolved: ResolvedPreparation,
    *,
    protected: Sequence[str] = (),
    threads: int = 1,
) -> PaperFit:
    """Fit a model to recordings by their labels.

    Args:
        recordings: The recordings.
        equations: The model's equations.
        resolved: Filters and decimation.
        protected: Columns that the reduction must not remove (P2.7).
        threads: Threads that share the reduction.
    """
    sources = tuple(row_source(recording, equations, resolved, label) for label, recording in recordings.items())
    observations = reduce_rows(sources, threads=threads)
    estimate = weighted(observations, equations.names)
    by_f, by_rsd = (reduce_parameters(estimate, rule, protected) for rule in ("stepwise", "rsd"))
    return PaperFit(sources, observations, estimate, by_f, by_rsd)


def relative_error(
    observations: Observations, estimate: Estimate, chosen: Callable[[Factor], bool] = lambda factor: True
) -> float:
    """Return ``100 ||y - W x|| / ||y||`` [%] over decimated rows, unweighted, of the factors chosen."""
    factors = [factor for factor in observations.factors if chosen(factor)]
    triangle, _ = merged_triangle(factors, estimate.columns)
    residual = triangle @ np.append(-estimate.values, 1.0)
    return 100 * float(np.linalg.norm(residual) / np.linalg.norm(triangle[:, -1]))


def coverage(estimate: Estimate, true: Mapping[str, float]) -> float:
    """Return the share of parameters whose true value lies within two sigmas."""
    errors = estimate.values - np.array([true[name] for name in estimate.columns])
    return float(np.mean(np.abs(errors) <= 2 * estimate.sigma))


def coverage_with_noise_model(fit: PaperFit, true: Mapping[str, float]) -> float:
    """Return the same for generalised least squares on the same rows, the product's default estimate."""
    return coverage(generalised(fit.sources, fit.estimate).estimate, true)


def weighted_residuals(fit: PaperFit) -> list[np.ndarray]:
    """Return the residuals of all equations in units of their deviations, run by run."""
    found = []
    for source in fit.sources:
        for runs in residual_runs(source, fit.estimate):
            deviation = fit.estimate.deviations[source.label, runs.kind, runs.joint]
            found += [run / deviation for run in runs.residual]
    return found


def watson(fit: PaperFit) -> DurbinWatson:
    """Return Durbin and Watson's statistic of all residuals, against what white noise has after this decimator."""
    correlation = fit.sources[0].resolved.decimation_filter.noise_correlation(CORRELATION_LAGS)
    return durbin_watson(weighted_residuals(fit), correlation)


def normality(fit: PaperFit) -> float:
    """Return the probability of residuals as far from normal as these (Kolmogorov and Smirnov, P5.6)."""
    return kolmogorov_smirnov(np.concatenate(weighted_residuals(fit))).p
