"""The stages of a calibration, each from records to a record."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...errors import CalibrationError
from ..records import CalibrationProblem, Equations
from .accuracy import Accuracy, accuracy_of, point_distances
from .calibration_settings import CalibrationSettings, prior_sigmas
from .covariances import Covariance, covariance_of
from .cross_validation import CrossValidation, cross_validated
from .fit import fitted
from .identifiable import Identifiability, felt_columns, identifiability
from .joint_ranges import JointRange
from .outliers import Screening, screened
from .reweighting import WeightedFit, weighted_fit
from .validation import Validation, validated
from .weights import estimated_sigmas, inverse_weights

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
        told: What can be told.
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
    told: Identifiability
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
    told, weighted = _told_and_fitted(remaining, own, start)
    covariance = covariance_of(weighted.fit, remaining.equations, weighted.sigmas, settings.covariance)
    after = accuracy_of(remaining.equations, weighted.fit.residual)
    prior = prior_sigmas(settings, problem.parameters)
    held_out = cross_validated(remaining, weighted.fit, settings.folds, settings.seed, prior)
    nominal = nominal_values(remaining, weighted)
    residual = remaining.residual(nominal)
    seen = np.isfinite(held_out.residual)
    expected = after if held_out.accuracy is None else held_out.accuracy
    validation = None
    if others is not None:
        validation = validated(others, weighted.fit.values, nominal, expected.rms_mm, settings.validation_base)
    ranges, unmodelled = _unmodelled(
        screening.ranges, remaining.equations, held_out.residual, weighted.sigmas.correlation
    )
    return Stages(
        problem, settings, screening, remaining, told, weighted, covariance,
        before=accuracy_of(remaining.equations, residual),
        after=after,
        held_out=held_out,
        before_held_out=accuracy_of(remaining.equations.taken(seen), residual[seen]) if seen.any() else None,
        validation=validation,
        ranges=ranges,
        unmodelled=unmodelled,
    )  # fmt: skip


def check_equations(equations: Equations) -> None:
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
    told = _told(problem, settings)
    if settings.screen:
        return screened(problem, told.columns, settings.seed)
    return Screening(np.ones(problem.equations.size, dtype=bool), (), problem.start, judged=True)


def _told(problem: CalibrationProblem, settings: CalibrationSettings) -> Identifiability:
    """Return what can be told at the start, where the geometry is exact."""
    told = identifiability(problem.parameters, problem.at(problem.start).jacobian, settings.tolerance)
    if problem.equations.size <= len(told.columns) and not settings.prior:
        raise CalibrationError(
            f"calibration: got {problem.equations.size} equations for {len(problem.parameters)} unknowns, needed are "
            f"more than the {len(told.columns)} that they can tell; measure more configurations, let fewer joints have "
            "errors, or give a prior"
        )
    return told


def _unmodelled(
    ranges: tuple[JointRange, ...], equations: Equations, residual: np.ndarray, shared: float
) -> tuple[tuple[JointRange, ...], float]:
    """Return ranges of joints with the errors in them, and the error elsewhere [m] that is no noise.

    Args:
        ranges: The ranges.
        equations: The equations that remain.
        residual: At configurations held out (E,), NaN where there is none.
        shared: The part of the residuals' variance that the points of a configuration share.
    """
    seen = np.isfinite(residual)
    rows, distance = point_distances(equations.taken(seen), residual[seen])
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


def _told_and_fitted(
    problem: CalibrationProblem, settings: CalibrationSettings, start: np.ndarray
) -> tuple[Identifiability, WeightedFit]:
    """Fit what can be told; unknowns that have an effect only at the solution join, and the fit is repeated."""
    told = _told(problem, settings)
    weighted = weighted_fit(problem, told.columns, settings, start)
    for _ in range(_AWAKENINGS):
        wider = awakened(problem, told, weighted.fit.values, settings.tolerance)
        if wider is None:
            break
        told, before = wider, told
        if len(told.columns) == len(before.columns):
            break
        weighted = weighted_fit(problem, told.columns, settings, weighted.fit.values)
    return told, weighted


def awakened(
    problem: CalibrationProblem, told: Identifiability, values: np.ndarray, tolerance: float
) -> Identifiability | None:
    """Return what can be told at some values if unknowns without effect at the start have one there, else None.

    Those that could be told at the start stay. Of a compliance and the weights behind it, for one, only the products
    show without a load: the compliance then has an effect, and stays where it is.
    """
    parameters = problem.parameters
    names = [parameter.name for parameter in parameters]
    asleep = [names.index(item.name) for item in told.invisible if not item.combination]
    jacobian = problem.at(values).jacobian
    awake = np.array([column for column in asleep if felt_columns(parameters, jacobian)[column]], dtype=int)
    if not len(awake):
        return None
    among = np.sort(np.concatenate([told.columns, awake]))
    settled = np.isin(among, told.columns)
    wider = identifiability([parameters[column] for column in among], jacobian[:, among], tolerance, settled)
    columns = among[wider.columns]
    regrouping = np.zeros((len(columns), len(parameters)))
    regrouping[:, among] = wider.regrouping
    spanned = np.array([names.index(item.name) for item in told.invisible if item.combination], dtype=int)
    # Those spanned before are combinations of what was kept then, of which some may be spanned now.
    regrouping[:, spanned] = regrouping[:, told.columns] @ told.regrouping[:, spanned]
    regrouping.setflags(write=False)
    left = [item for item in told.invisible if names.index(item.name) not in awake]
    invisible = sorted([*left, *wider.invisible], key=lambda item: names.index(item.name))
    return replace(wider, columns=columns, invisible=tuple(invisible), regrouping=regrouping)


def nominal_values(problem: CalibrationProblem, weighted: WeightedFit) -> np.ndarray:
    """Return the nominal arm (p,) with base, tool and markers fitted, as far as they are unknown."""
    parameters, fit = problem.parameters, weighted.fit
    frames = np.array([parameter.group in FRAMES for parameter in parameters])
    nominal = np.array([parameter.nominal for parameter in parameters])
    values = np.where(frames, fit.values, nominal)
    jacobian = problem.at(values).jacobian
    felt = frames & felt_columns(parameters, jacobian)
    if not felt.any():
        return values
    among = np.flatnonzero(felt)
    told = identifiability([parameters[int(column)] for column in among], jacobian[:, among])
    weight = inverse_weights(estimated_sigmas(fit, problem.equations, "kind").sigma)
    return fitted(problem, among[told.columns], weight, start=values).values
