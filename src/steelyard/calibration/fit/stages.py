"""The stages of a calibration: gross errors, identifiable unknowns, iteratively reweighted fit, covariance, accuracy.

A fit gives residuals, these give sigmas and weights for the next fit, until the weights converge (P3.4, Fig. 3).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...errors import CalibrationError
from ...text import short_repr
from ..records import FRAMES, CalibrationProblem, MeasurementEquations
from .accuracy import Accuracy, CrossValidation, Validation, accuracy_of, cross_validated, point_distances, validated
from .covariances import Covariance, covariance_of
from .fit import CalibrationFit, Iteration, fitted
from .identifiable import IdentifiableUnknowns, identifiability, newly_identifiable, nonzero_columns
from .joint_ranges import JointRange
from .outliers import Screening, screened, tukey_factors
from .settings import CalibrationSettings, prior_sigmas
from .weights import Sigmas, damped_weights, declared_sigmas, estimated_sigmas, inverse_weights

# Until the residuals say more, a number is as good as this [m or rad]; it matters only beside a prior.
_FIRST_SIGMA = 1e-4
# Weights have converged when another fit changes none of them by more than this part.
_CONVERGED = 1e-3


@dataclass(frozen=True, eq=False)
class WeightedFit:
    """A fit and the noise that its weights assume.

    Attributes:
        fit: The last fit.
        sigmas: Standard deviations of its equations.
        iterations: Steps of all fits.
        history: Values of all unknowns after each fit (fits, p).
        converged: Whether the weights have converged.
    """

    fit: CalibrationFit
    sigmas: Sigmas
    iterations: tuple[Iteration, ...]
    history: np.ndarray
    converged: bool


def weighted_fit(
    problem: CalibrationProblem, columns: np.ndarray, settings: CalibrationSettings, start: np.ndarray | None = None
) -> WeightedFit:
    """Fit some unknowns with the weights of a method; sigmas are estimated again after every fit.

    Args:
        problem: Unknowns and equations.
        columns: Numbers of the unknowns to fit (k,).
        settings: Method, grouping, number of reweightings, prior.
        start: Values to begin with (p,).
    """
    equations, prior = problem.equations, prior_sigmas(settings, problem.parameters)
    sigmas, weight = None, np.full(equations.size, 1 / _FIRST_SIGMA)
    if settings.method == "declared":
        sigmas = _declared_sigmas(problem, columns, settings, start)
        weight = inverse_weights(sigmas.sigma)
    fit = fitted(problem, columns, weight, start=start, prior=prior)
    iterations, history, converged = [*fit.iterations], [fit.values], sigmas is not None
    if sigmas is None:
        sigmas = estimated_sigmas(fit, equations, settings.grouping, settings.least)
        for _ in range(settings.reweightings):
            before = fit.weight
            fit = fitted(problem, columns, _weights(fit, equations, sigmas, settings), start=fit.values, prior=prior)
            iterations += fit.iterations
            history.append(fit.values)
            sigmas = estimated_sigmas(fit, equations, settings.grouping, settings.least)
            converged = np.allclose(fit.weight, before, rtol=_CONVERGED, atol=_CONVERGED * before.mean())
            if converged:
                break
    values = np.array(history)
    values.setflags(write=False)
    return WeightedFit(fit, sigmas, tuple(iterations), values, converged)


def _declared_sigmas(
    problem: CalibrationProblem, columns: np.ndarray, settings: CalibrationSettings, start: np.ndarray | None
) -> Sigmas:
    """Return the declared sigmas; those that are not declared are estimated by a fit of their own."""
    given = np.array(np.nan if settings.sigma is None else settings.sigma, dtype=float)
    if given.shape == (problem.equations.size,) and np.isnan(given).any():
        estimated = weighted_fit(problem, columns, replace(settings, method="ols", sigma=None), start).sigmas.sigma
        given = np.where(np.isnan(given), estimated, given)
    return declared_sigmas(problem.equations, given)


def _weights(
    fit: CalibrationFit, equations: MeasurementEquations, sigmas: Sigmas, settings: CalibrationSettings
) -> np.ndarray:
    if settings.method == "ols":
        return inverse_weights(estimated_sigmas(fit, equations, "kind").sigma)
    if settings.method == "eq14":
        return damped_weights(sigmas.sigma, settings.sigma0, settings.eta)
    plain = inverse_weights(sigmas.sigma)
    if settings.method == "robust":
        return plain * tukey_factors(equations, fit.residual * plain)
    return plain


MOSTLY_SHARED = 0.5
"""From this part of the variance on, the error that a configuration shares (the model's) exceeds the noise."""

# Unknowns without an effect at the start, as a first moment beside a compliance of 0, are added at most so often.
_MOST_ADDITIONS = 3


@dataclass(frozen=True, eq=False)
class Stages:
    """Results of the stages of a calibration.

    Attributes:
        problem: What was measured, gross errors included.
        settings: How it is calibrated.
        screening: Gross errors.
        remaining: The problem without them.
        identifiability: Which unknowns are identifiable, and which are not and why.
        weighted: Fit and sigmas.
        fit_covariance: Covariance of the fitted unknowns.
        before: Accuracy of the nominal arm with base, tool and markers fitted, gross errors left out.
        after: Accuracy of the fit.
        cross_validation: Prediction of configurations that are held out.
        before_held_out: As ``before``, at the points that cross-validation predicts; None if there are none.
        validation: Accuracy on measurements that were not fitted, before and after; None if there are none.
        ranges: Ranges of joints in which the model lacks something, with the held-out errors there.
        unmodelled: Error elsewhere that the configurations share and the model lacks, rms [m]; 0 if noise prevails.
    """

    __repr__ = short_repr

    problem: CalibrationProblem
    settings: CalibrationSettings
    screening: Screening
    remaining: CalibrationProblem
    identifiability: IdentifiableUnknowns
    weighted: WeightedFit
    fit_covariance: Covariance
    before: Accuracy
    after: Accuracy
    cross_validation: CrossValidation
    before_held_out: Accuracy | None
    validation: Validation | None
    ranges: tuple[JointRange, ...]
    unmodelled: float

    @property
    def fit(self) -> CalibrationFit:
        """The last fit."""
        return self.weighted.fit


def run_stages(
    problem: CalibrationProblem, settings: CalibrationSettings, others: CalibrationProblem | None = None
) -> Stages:
    """Find gross errors, identifiable unknowns, the fit, its covariance and its accuracy.

    Args:
        problem: What was measured.
        settings: How it is done.
        others: Measurements to validate with: the same unknowns and registration, other equations.

    Raises:
        CalibrationError: If there are too few equations or configurations.
    """
    if (count := len(np.unique(problem.equations.pose))) < 2:
        raise CalibrationError(
            f"calibration: got {count} configuration(s), needed are 2 and more, better one for each unknown; measure "
            "the markers at other joint angles"
        )
    identified = _identified(problem, settings)
    screening = Screening(np.ones(problem.equations.size, dtype=bool), (), problem.start, judged=True)
    if settings.screen:
        screening = screened(problem, identified.columns, settings.seed)
    remaining = problem.taken(screening.good)
    own = _with_remaining_sigma(settings, screening.good)
    # The whole way from the start is worth recording, but only where nothing lies in it.
    start = screening.values if screening.outliers else problem.start
    identified, weighted = _identified_and_fitted(remaining, own, start)
    covariance = covariance_of(weighted.fit, remaining.equations, weighted.sigmas, settings.covariance)
    after = accuracy_of(remaining.equations, weighted.fit.residual)
    prior = prior_sigmas(settings, problem.parameters)
    held_out = cross_validated(remaining, weighted.fit, settings.folds, settings.seed, prior)
    nominal = nominal_values(remaining, weighted)
    residual = remaining.residual(nominal)
    predicted = np.isfinite(held_out.residual)
    before_held_out = validation = None
    if predicted.any():
        before_held_out = accuracy_of(remaining.equations.taken(predicted), residual[predicted])
    if others is not None:
        expected = held_out.accuracy or after
        validation = validated(others, weighted.fit.values, nominal, expected.rms_mm, settings.validation_base)
    lacking = _unmodelled(screening.ranges, remaining.equations, held_out.residual, weighted.sigmas.correlation)
    return Stages(
        problem, settings, screening, remaining, identified, weighted, covariance,
        accuracy_of(remaining.equations, residual), after, held_out, before_held_out, validation, *lacking,
    )  # fmt: skip


def _identified(problem: CalibrationProblem, settings: CalibrationSettings) -> IdentifiableUnknowns:
    """Return the unknowns that are identifiable at the start, where the geometry is exact."""
    identified = identifiability(problem.parameters, problem.at(problem.start).jacobian, settings.tolerance)
    if problem.equations.size <= len(identified.columns) and not settings.prior:
        raise CalibrationError(
            f"calibration: got {problem.equations.size} equations for {len(problem.parameters)} unknowns, needed are "
            f"more than the {len(identified.columns)} identifiable unknowns; measure more configurations, let fewer "
            "joints have errors, or give a prior"
        )
    return identified


def _unmodelled(
    ranges: tuple[JointRange, ...], equations: MeasurementEquations, residual: np.ndarray, shared: float
) -> tuple[tuple[JointRange, ...], float]:
    """Return ranges of joints with the errors in them, and the error elsewhere [m] that is no noise.

    Args:
        ranges: The ranges.
        equations: The equations that remain.
        residual: At configurations held out (E,), NaN where there is none.
        shared: The part of the residuals' variance that the points of a configuration share.
    """
    observed = np.isfinite(residual)
    rows, distance = point_distances(equations.taken(observed), residual[observed])
    at, first = np.unique(equations.row, return_index=True)
    pose = equations.pose[first][np.searchsorted(at, rows)]
    where = {each.name: each.q[pose] for each in equations.joints}
    elsewhere = np.ones(len(rows), dtype=bool)
    for each in ranges:
        elsewhere &= ~each.holds(where[each.joint])
    found = tuple(each.fitted(where[each.joint], distance) for each in ranges)
    if not elsewhere.any() or not (ranges or shared >= MOSTLY_SHARED):
        return found, 0.0
    return found, float(np.sqrt(shared * np.mean(distance[elsewhere] ** 2)))


def _with_remaining_sigma(settings: CalibrationSettings, good: np.ndarray) -> CalibrationSettings:
    """Return settings whose declared sigmas are those of the equations that remain."""
    if settings.sigma is None or np.shape(settings.sigma) != good.shape:
        return settings
    return replace(settings, sigma=np.asarray(settings.sigma)[good])


def _identified_and_fitted(
    problem: CalibrationProblem, settings: CalibrationSettings, start: np.ndarray
) -> tuple[IdentifiableUnknowns, WeightedFit]:
    """Fit the identifiable unknowns; those that have an effect only at the solution are added and fitted too."""
    identified = _identified(problem, settings)
    weighted = weighted_fit(problem, identified.columns, settings, start)
    for _ in range(_MOST_ADDITIONS):
        wider = newly_identifiable(problem, identified, weighted.fit.values, settings.tolerance)
        fitted_before = len(identified.columns)
        identified = wider or identified
        if len(identified.columns) == fitted_before:
            break
        weighted = weighted_fit(problem, identified.columns, settings, weighted.fit.values)
    return identified, weighted


def nominal_values(problem: CalibrationProblem, weighted: WeightedFit) -> np.ndarray:
    """Return the nominal arm (p,) with base, tool and markers fitted, as far as they are unknown."""
    parameters, fit = problem.parameters, weighted.fit
    frames = np.array([parameter.group in FRAMES for parameter in parameters])
    nominal = np.array([parameter.nominal for parameter in parameters])
    values = np.where(frames, fit.values, nominal)
    jacobian = problem.at(values).jacobian
    nonzero = frames & nonzero_columns(parameters, jacobian)
    if not nonzero.any():
        return values
    among = np.flatnonzero(nonzero)
    identified = identifiability([parameters[int(column)] for column in among], jacobian[:, among])
    weight = inverse_weights(estimated_sigmas(fit, problem.equations, "kind").sigma)
    return fitted(problem, among[identified.columns], weight, start=values).values
