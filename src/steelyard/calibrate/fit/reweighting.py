"""Fit, sigmas from its residuals, weights from these, and again until the values rest (P3.4, Fig. 3)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...errors import CalibrationError
from ..records import CalibrationProblem, Equations
from .calibration_settings import CalibrationSettings, prior_sigmas
from .fit import Fit, Iteration, fitted
from .outliers import tukey_factors
from .weights import Sigmas, damped_weights, declared_sigmas, estimated_sigmas, inverse_weights

# Until the residuals say more, a number is as good as this [m or rad]; it matters only beside a prior.
_FIRST_SIGMA = 1e-4
# Sigmas have settled when a further round changes none of them by more than this part.
_SETTLED = 1e-3


@dataclass(frozen=True, eq=False)
class WeightedFit:
    """A fit and the noise that its weights assume.

    Attributes:
        fit: The last fit.
        sigmas: Standard deviations of its equations.
        iterations: Steps of all fits.
        rounds: Values of all unknowns after each round (rounds, p).
        settled: Whether the last round changed the sigmas no more.
    """

    fit: Fit
    sigmas: Sigmas
    iterations: tuple[Iteration, ...]
    rounds: np.ndarray
    settled: bool


def weighted_fit(
    problem: CalibrationProblem, columns: np.ndarray, settings: CalibrationSettings, start: np.ndarray | None = None
) -> WeightedFit:
    """Fit some unknowns with the weights that a method asks for, sigmas estimated again after every fit.

    Args:
        problem: Unknowns and equations.
        columns: Numbers of the unknowns to fit (k,).
        settings: Method, grouping, rounds, prior.
        start: Values to begin with (p,).
    """
    equations, prior = problem.equations, prior_sigmas(settings, problem.parameters)
    declared = settings.method == "declared"
    if declared:
        settings = _completed(problem, columns, settings, start)
    sigmas = _declared(equations, settings) if declared else None
    weight = np.full(equations.size, 1 / _FIRST_SIGMA) if sigmas is None else inverse_weights(sigmas.sigma)
    fit = fitted(problem, columns, weight, start=start, prior=prior)
    iterations, rounds, settled = [*fit.iterations], [fit.values], declared
    sigmas = sigmas or estimated_sigmas(fit, equations, settings.grouping, settings.least)
    for _ in range(0 if declared else settings.rounds):
        before = fit.weight
        fit = fitted(problem, columns, _weights(fit, equations, sigmas, settings), start=fit.values, prior=prior)
        iterations += fit.iterations
        rounds.append(fit.values)
        sigmas = estimated_sigmas(fit, equations, settings.grouping, settings.least)
        settled = np.allclose(fit.weight, before, rtol=_SETTLED, atol=_SETTLED * before.mean())
        if settled:
            break
    values = np.array(rounds)
    values.setflags(write=False)
    return WeightedFit(fit, sigmas, tuple(iterations), values, settled)


def _completed(
    problem: CalibrationProblem, columns: np.ndarray, settings: CalibrationSettings, start: np.ndarray | None
) -> CalibrationSettings:
    """Return settings whose sigmas are all there: those not declared are estimated by a fit of their own."""
    given = np.array(np.nan if settings.sigma is None else settings.sigma, dtype=float)
    if given.shape != (problem.equations.size,) or not np.isnan(given).any():
        return settings
    estimated = weighted_fit(problem, columns, replace(settings, method="ols", sigma=None), start).sigmas.sigma
    return replace(settings, sigma=np.where(np.isnan(given), estimated, given))


def _declared(equations: Equations, settings: CalibrationSettings) -> Sigmas:
    if settings.sigma is None:
        raise CalibrationError("method 'declared': no sigma is given; give one an equation or one for x, y and z")
    return declared_sigmas(equations, settings.sigma)


def _weights(fit: Fit, equations: Equations, sigmas: Sigmas, settings: CalibrationSettings) -> np.ndarray:
    if settings.method == "ols":
        return inverse_weights(estimated_sigmas(fit, equations, "kind").sigma)
    if settings.method == "eq14":
        return damped_weights(sigmas.sigma, settings.sigma0, settings.eta)
    plain = inverse_weights(sigmas.sigma)
    if settings.method == "robust":
        return plain * tukey_factors(equations, fit.residual * plain)
    return plain
