"""The stages of a calibration, each from records to a record.

Fit, sigmas from its residuals, weights from these, and again until the values rest (P3.4, Fig. 3).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...errors import CalibrationError
from ..records import CalibrationProblem, MeasurementEquations
from .accuracy import Accuracy, CrossValidation, accuracy_of, cross_validated, point_distances
from .covariances import Covariance, covariance_of
from .fit import CalibrationFit, Iteration, fitted
from .identifiable import IdentifiableUnknowns, identifiability, nonzero_columns
from .joint_ranges import JointRange
from .outliers import Screening, screened, tukey_factors
from .settings import CalibrationSettings, prior_sigmas
from .validation import Validation, validated
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

    fit: CalibrationFit
    sigmas: Sigmas
    iterations: tuple[Iteration, ...]
    rounds: np.ndarray
    converged: bool


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
    iterations, rounds, converged = [*fit.iterations], [fit.values], declared
    sigmas = sigmas or estimated_sigmas(fit, equations, settings.grouping, settings.least)
    for _ in range(0 if declared else settings.rounds):
        before = fit.weight
        fit = fitted(problem, columns, _weights(fit, equations, sigmas, settings), start=fit.values, prior=prior)
        iterations += fit.iterations
        rounds.append(fit.values)
        sigmas = estimated_sigmas(fit, equations, settings.grouping, settings.least)
        converged = np.allclose(fit.weight, before, rtol=_SETTLED, atol=_SETTLED * before.mean())
        if converged:
            break
    values = np.array(rounds)
    values.setflags(write=False)
    return WeightedFit(fit, sigmas, tuple(iterations), values, converged)


def _completed(
    problem: CalibrationProblem, columns: np.ndarray, settings: CalibrationSettings, start: np.ndarray | None
) -> CalibrationSettings:
    """Return settings whose sigmas are all there: those not declared are estimated by a fit of their own."""
    given = np.array(np.nan if settings.sigma is None else settings.sigma, dtype=float)
    if given.shape != (problem.equations.size,) or not np.isnan(given).any():
        return settings
    estimated = weighted_fit(problem, columns, replace(settings, method="ols", sigma=None), start).sigmas.sigma
    return replace(settings, sigma=np.where(np.isnan(given), estimated, given))


def _declared(equations: MeasurementEquations, settings: CalibrationSettings) -> Sigmas:
    if settings.sigma is None:
        raise CalibrationError("method 'declared': no sigma is given; give one an equation or one for x, y and z")
    return declared_sigmas(equations, settings.sigma)


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


FRAMES = ("base", "tool", "marker")
"""Groups of unknowns that belong to the set-up, not to the arm."""

MOSTLY_SHARED = 0.5
"""From this part of the variance on what a configuration shares, the model's error, is more than the noise."""

# Unknowns without an effect at the start, as a first moment beside a compliance of 0, may come to life so often.
_AWAKENINGS = 3


@dataclass(frozen=True, eq=False)
class Stages:
    """What the stages of a calibration found.

    Attributes:
        problem: What was measured.
        settings: How it is done.
        screening: Gross errors.
        remaining: The problem without them.
        identifiability: Which unknowns can be found, and which not and why.
        weighted: Fit and sigmas.
        covariance: Of the fitted unknowns.
        before: Accuracy of the nominal arm with base, tool and markers fitted.
        after: Accuracy of the fit.
        held_out: Cross-validation.
        before_held_out: As ``before``, at the points that cross-validation predicts; None if there are none.
        validation: Accuracy on measurements of their own, if there are any.
        ranges: Ranges of joints in which the model lacks something, with the errors held out there.
        unmodelled: Error elsewhere that the configurations share and the model lacks, rms [m]; 0 if noise prevails.
    """

    problem: CalibrationProblem
    settings: CalibrationSettings
    screening: Screening
    remaining: CalibrationProblem
    identifiability: IdentifiableUnknowns
    weighted: WeightedFit
    covariance: Covariance
    before: Accuracy
    after: Accuracy
    held_out: CrossValidation
    before_held_out: Accuracy | None
    validation: Validation | None
    ranges: tuple[JointRange, ...] = ()
    unmodelled: float = 0.0


def run_stages(
    problem: CalibrationProblem, settings: CalibrationSettings, others: CalibrationProblem | None = None
) -> Stages:
    """Find what can be told, gross errors, the fit, its covariance and its accuracy.

    Args:
        problem: What was measured.
        settings: How it is done.
        others: Measurements to validate with: the same unknowns and registration, other equations.

    Raises:
        CalibrationError: If the measurements cannot give what is asked for.
    """
    check_equations(problem.equations)
    screening = _screening(problem, settings)
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
    observed = np.isfinite(held_out.residual)
    expected = after if held_out.accuracy is None else held_out.accuracy
    validation = None
    if others is not None:
        validation = validated(others, weighted.fit.values, nominal, expected.rms_mm, settings.validation_base)
    ranges, unmodelled = _unmodelled(
        screening.ranges, remaining.equations, held_out.residual, weighted.sigmas.correlation
    )
    return Stages(
        problem, settings, screening, remaining, identified, weighted, covariance,
        before=accuracy_of(remaining.equations, residual),
        after=after,
        held_out=held_out,
        before_held_out=None if not observed.any()
        else accuracy_of(remaining.equations.taken(observed), residual[observed]),
        validation=validation,
        ranges=ranges,
        unmodelled=unmodelled,
    )  # fmt: skip


def check_equations(equations: MeasurementEquations) -> None:
    """Refuse equations from which no calibration can be made.

    Raises:
        CalibrationError: If a number is not finite, or there are fewer than two configurations.
    """
    if not np.isfinite(equations.measured).all():
        row = int(equations.row[np.flatnonzero(~np.isfinite(equations.measured))[0]])
        raise CalibrationError(f"measured numbers: row {row} holds a value that is not finite; leave it out")
    count = len(np.unique(equations.pose))
    if count < 2:
        raise CalibrationError(
            f"calibration: got {count} configuration(s), needed are 2 and more, better one for each unknown; measure "
            "the markers at other joint angles"
        )


def _screening(problem: CalibrationProblem, settings: CalibrationSettings) -> Screening:
    identified = _identified(problem, settings)
    if settings.screen:
        return screened(problem, identified.columns, settings.seed)
    return Screening(np.ones(problem.equations.size, dtype=bool), (), problem.start, judged=True)


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
    """Fit what can be told; unknowns that have an effect only at the solution join, and the fit is repeated."""
    identified = _identified(problem, settings)
    weighted = weighted_fit(problem, identified.columns, settings, start)
    for _ in range(_AWAKENINGS):
        wider = newly_identifiable(problem, identified, weighted.fit.values, settings.tolerance)
        if wider is None:
            break
        identified, before = wider, identified
        if len(identified.columns) == len(before.columns):
            break
        weighted = weighted_fit(problem, identified.columns, settings, weighted.fit.values)
    return identified, weighted


def newly_identifiable(
    problem: CalibrationProblem, identified: IdentifiableUnknowns, values: np.ndarray, tolerance: float
) -> IdentifiableUnknowns | None:
    """Return what can be told at some values if unknowns without effect at the start have one there, else None.

    Those that could be told at the start stay. Of a compliance and the weights behind it, for one, only the products
    show without a load: the compliance then has an effect, and stays where it is.
    """
    parameters = problem.parameters
    names = [parameter.name for parameter in parameters]
    asleep = [names.index(item.name) for item in identified.invisible if not item.combination]
    jacobian = problem.at(values).jacobian
    awake = np.array([column for column in asleep if nonzero_columns(parameters, jacobian)[column]], dtype=int)
    if not len(awake):
        return None
    among = np.sort(np.concatenate([identified.columns, awake]))
    decided = np.isin(among, identified.columns)
    wider = identifiability([parameters[column] for column in among], jacobian[:, among], tolerance, decided)
    columns = among[wider.columns]
    regrouping = np.zeros((len(columns), len(parameters)))
    regrouping[:, among] = wider.regrouping
    spanned = np.array([names.index(item.name) for item in identified.invisible if item.combination], dtype=int)
    # Those spanned before are combinations of what was kept then, of which some may be spanned now.
    regrouping[:, spanned] = regrouping[:, identified.columns] @ identified.regrouping[:, spanned]
    regrouping.setflags(write=False)
    left = [item for item in identified.invisible if names.index(item.name) not in awake]
    invisible = sorted([*left, *wider.invisible], key=lambda item: names.index(item.name))
    return replace(wider, columns=columns, invisible=tuple(invisible), regrouping=regrouping)


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
