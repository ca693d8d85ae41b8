"""Generalised least squares: the noise model fitted on the rows, the rows whitened, their factors solved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..observe import Observations, RowSource, reduce_rows
from ..progress import Progress, silent
from ..text import short_repr
from .lag_products import lag_products
from .noise import NoiseModel, noise_model
from .record import Estimate
from .restricted_likelihood import fit_noise
from .small_sample import corrected_covariance
from .system import cell_of, stacked_system

CORRELATION_LAGS = 160
"""Lags of the decimator's correlation that are kept: it has died out long before."""


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
    sources: Sequence[RowSource],
    plain: Estimate,
    *,
    threads: int = 1,
    progress: Progress = silent,
) -> GlsFit:
    """Estimate with the noise's own correlation: ``x = (W^T S^-1 W)^-1 W^T S^-1 y``.

    Args:
        sources: The rows of all recordings.
        plain: A least-squares estimate from the same rows: which columns they excite, and how long these are.
        threads: Threads that share the reduction.
        progress: Told how far the reduction is.
    """
    columns, scale = plain.columns, plain.system.scale
    correlation = decimator_correlation(sources[0])
    fit = fit_noise(lag_products(sources, columns, correlation, scale), len(columns))
    noise = noise_model(fit, correlation)
    whitened = reduce_rows(sources, noise.whitening, threads=threads, progress=progress)
    weights = {cell: 1 / deviation for cell, deviation in noise.deviations.items()}
    system = stacked_system(whitened, columns, weights, lambda factor: cell_of(factor) in weights)
    covariance, freedom = corrected_covariance(fit)
    # Rows at the start of a run, which the fit leaves out, count in the system: the covariance is its own, widened.
    gain = np.sqrt(np.diag(covariance) / np.diag(fit.covariance))
    widened = system.inverse * gain[:, None] * gain
    estimate = Estimate("gls", system, system.values, widened, "model", freedom, noise.deviations)
    return GlsFit(estimate, noise, whitened)


def decimator_correlation(source: RowSource) -> np.ndarray:
    """Return the autocorrelation (K + 1,) that the decimator gives to white noise."""
    return source.settled.decimation_filter.noise_correlation(CORRELATION_LAGS)
