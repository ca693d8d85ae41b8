"""P5's four models fitted to one seed's recordings, and the figures that the paper prints of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..observe import Equations, Preparation, settle
from ..recording import Recording
from .fits import (
    PaperFit,
    coverage,
    coverage_with_noise_model,
    normality,
    paper_fit,
    relative_error,
    watson,
)
from .lwr4 import STIFFNESS, Prototype

PREPARATION = Preparation(cutoff=10.0, decimation=500, standstill=0)
"""Butterworth at 10 Hz, decimation at 0.8 Hz: 0.8 of the new Nyquist frequency of 1 Hz."""


LINKS = ("XX2", "MY2", "XX4", "ZZ4", "MY4", "MY5", "MY6", "XXL", "XZL", "MXL", "MYL", "MZL", "ML")
"""Link and payload parameters that Table II prints of models A and B and that mean the same in both.

ZZ2R is not among them: in model A it holds the drive's inertia.
"""


@dataclass(frozen=True)
class ModelFigures:
    """What is told of one model and one seed.

    Attributes:
        rows: Number of equations.
        relative_error: ``100 ||y - W x|| / ||y||`` over decimated rows [%].
        essential_f: Essential parameters by the F rule.
        essential_rsd: Essential parameters by relative sigmas of at most 20 %.
        payload_error: Error of the payload's mass [%], all base parameters estimated; NaN without payload.
        durbin_watson: Statistic of all residuals.
        expected_durbin_watson: What white noise gives after this decimator.
        normality: Probability of Kolmogorov and Smirnov's distance for normal residuals.
        coverage: Share of base parameters within two sigmas of the truth.
        coverage_noise_model: The same of generalised least squares, the product's default.
        coverage_selected_f: The same of the essential ones by the F rule.
        coverage_selected_rsd: The same of the essential ones by relative sigmas.
        link_errors: Errors of the parameters ``LINKS``, those that the model has, all base parameters estimated.
    """

    rows: int
    relative_error: float
    essential_f: int
    essential_rsd: int
    payload_error: float
    durbin_watson: float
    expected_durbin_watson: float
    normality: float
    coverage: float
    coverage_noise_model: float
    coverage_selected_f: float
    coverage_selected_rsd: float
    link_errors: Mapping[str, float]


def figures_of(fit: PaperFit, truth: Mapping[str, float]) -> ModelFigures:
    """Return the figures of a fit."""
    true = fit.sources[0].equations.base_values(truth)
    statistic = watson(fit)
    values = dict(zip(fit.estimate.columns, fit.estimate.values, strict=True))
    return ModelFigures(
        rows=fit.rows,
        relative_error=relative_error(fit.observations, fit.estimate),
        essential_f=len(fit.by_f.estimate.columns),
        essential_rsd=len(fit.by_rsd.estimate.columns),
        payload_error=100 * (float(values.get("ML", np.nan)) / truth["ML"] - 1),
        durbin_watson=statistic.statistic,
        expected_durbin_watson=statistic.expected,
        normality=normality(fit),
        coverage=coverage(fit.estimate, true),
        coverage_noise_model=coverage_with_noise_model(fit, true),
        coverage_selected_f=coverage(fit.by_f.estimate, true),
        coverage_selected_rsd=coverage(fit.by_rsd.estimate, true),
        link_errors={name: float(values[name]) - true[name] for name in LINKS if name in values},
    )


def fitted_models(
    recordings: Mapping[str, Recording], equations: Mapping[str, Equations], threads: int
) -> dict[str, PaperFit]:
    """Fit models A to D to one seed's recordings."""
    settled = settle(PREPARATION, list(recordings.values()))
    return {model: paper_fit(recordings, each, settled, threads=threads) for model, each in equations.items()}


def position_fits(
    arm: Prototype, equations: Equations, seeds: Sequence[int], threads: int
) -> list[tuple[PaperFit, PaperFit]]:
    """Fit model B of an elastic arm with motor positions and with joint positions, for every seed (P5.8)."""
    found = []
    for seed in seeds:
        recordings = arm.recordings(seed, STIFFNESS)
        pair = []
        for stiffness in (None, STIFFNESS):
            preparation = Preparation(cutoff=10.0, decimation=500, standstill=0, stiffness=stiffness)
            settled = settle(preparation, list(recordings.values()))
            pair.append(paper_fit(recordings, equations, settled, threads=threads))
        found.append((pair[0], pair[1]))
    return found
