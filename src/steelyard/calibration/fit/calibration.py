"""Calibration of a problem: its stages, the evidence they give, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from types import NoneType
from typing import Any

import numpy as np

from ...distributions import chi2_ppf
from ...errors import CalibrationError, require_type
from ...text import short_repr
from ...verdict import Question, Reason, Verdict, first_named
from ..chain.hypotheses import likely_cause
from ..chain.problem import MeasuredProblem
from ..measurement.nominal import reach
from ..records import COORDINATES, FRAMES, CalibrationProblem, MeasurementEquations
from .accuracy import Accuracy, Outlier
from .covariances import Covariance, intervals
from .fit import Iteration
from .identifiable import Invisible
from .settings import WIDE, CalibrationSettings, Method
from .stages import MOSTLY_SHARED, Stages, run_stages
from .verdict import MUCH_NOISE, CalibrationEvidence, Deviation, judge_calibration
from .weights import Sigmas, independent_part, is_shared_observed

# A rigid tool has six degrees of freedom, however many markers it carries.
_RIGID = 6
_NAMED = 5
NOISE_FALSE_ALARM = 0.001
"""Chance that noise as declared is said to differ from it."""


@dataclass(frozen=True, eq=False)
class Calibration(Stages):
    """A calibrated arm: the values found, how far they can be trusted, and how accurate the arm is with them.

    Attributes:
        verdict: Whether the result can be trusted.
    """

    __repr__ = short_repr

    verdict: Verdict

    @property
    def values(self) -> np.ndarray:
        """Values of all unknowns (p,); those that are not identifiable stay at their start."""
        return self.fit.values

    @property
    def fitted(self) -> tuple[str, ...]:
        """Names of the fitted unknowns."""
        return self.identifiability.names

    @property
    def invisible(self) -> tuple[Invisible, ...]:
        """The other unknowns, with reasons."""
        return self.identifiability.invisible

    @cached_property
    def covariance(self) -> np.ndarray:
        """Covariance of all unknowns (p, p), zero for those that are not fitted."""
        covariance = np.zeros((len(self.problem.parameters),) * 2)
        covariance[np.ix_(self.fit.columns, self.fit.columns)] = self.fit_covariance.matrix
        covariance.setflags(write=False)
        return covariance

    @property
    def sigma(self) -> np.ndarray:
        """Standard deviations of all unknowns (p,), 0 for those that are not fitted."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def freedom(self) -> np.ndarray:
        """Degrees of freedom of all unknowns (p,), ``inf`` for those that are not fitted."""
        freedom = np.full(len(self.problem.parameters), np.inf)
        freedom[self.fit.columns] = self.fit_covariance.freedom
        return freedom

    @property
    def weights(self) -> Sigmas:
        """Sigmas by noise group, of the equations that remain."""
        return self.weighted.sigmas

    @property
    def used(self) -> np.ndarray:
        """Which equations remain when gross errors are left out (E,)."""
        return self.screening.good

    @property
    def outliers(self) -> tuple[Outlier, ...]:
        """Gross errors, by configuration and marker."""
        return self.screening.outliers

    @property
    def residual(self) -> np.ndarray:
        """Measured minus predicted, of all equations (E,)."""
        return self.problem.residual(self.values)

    @property
    def held_out(self) -> Accuracy | None:
        """Cross-validated accuracy; None if no configuration could be held out."""
        return self.cross_validation.accuracy

    @property
    def iterations(self) -> tuple[Iteration, ...]:
        """Steps of all fits."""
        return self.weighted.iterations

    @property
    def history(self) -> np.ndarray:
        """Values of all unknowns after each fit (fits, p): first with equal weights, then reweighted."""
        return self.weighted.history

    def interval(self, level: float | None = None) -> np.ndarray:
        """Return two-sided intervals (p, 2) of all unknowns at a level, the settings' own if none is given."""
        covariance = Covariance(self.settings.covariance, self.covariance, self.freedom)
        return intervals(self.values, covariance, self.settings.level if level is None else level)


def calibrated(
    problem: CalibrationProblem, method: Method | None = None, settings: CalibrationSettings | None = None,
    validation: CalibrationProblem | None = None,
) -> Calibration:  # fmt: skip
    """Calibrate an arm; the same problem and settings give the same numbers.

    Args:
        problem: Unknowns and measured numbers.
        method: ``wls``, ``ols``, ``eq14``, ``declared`` or ``robust``; that of the settings if not given.
        settings: Everything else that may be chosen.
        validation: Measurements that are not fitted and decide on the verdict's prediction, all their points counted:
            ``problem.for_validation(measurements)``.

    Raises:
        CalibrationError: If the measurements do not suffice for the chosen settings.
    """
    if not callable(getattr(problem, "residual", None)):
        raise CalibrationError(
            f"problem: got a {type(problem).__name__}; allowed: what measured_problem(robot, setup, measurements) "
            "returns"
        )
    allowed = (CalibrationSettings, NoneType)
    require_type(settings, allowed, "settings", "CalibrationSettings(...) or None", CalibrationError)
    chosen = settings or CalibrationSettings()
    stages = run_stages(problem, chosen if method is None else replace(chosen, method=method), validation)
    verdict = judge_calibration(evidence_of(stages), stages.settings.thresholds, cautions_of(stages, validation))
    return Calibration(**vars(stages), verdict=verdict)


def evidence_of(stages: Stages) -> CalibrationEvidence:
    """Return the numbers on which the verdict rests."""
    parameters, fit = stages.problem.parameters, stages.fit
    names, sigma = stages.identifiability.names, stages.fit_covariance.sigma
    arm = [k for k, column in enumerate(fit.columns) if parameters[column].group not in FRAMES]
    deviation = np.abs(fit.values[fit.columns] - [parameters[column].nominal for column in fit.columns])
    small = sorted((k for k in arm if sigma[k] > deviation[k]), key=lambda k: float(deviation[k] / sigma[k]))
    remaining, points = stages.remaining.equations, len(np.unique(stages.problem.equations.row))
    return CalibrationEvidence(
        before=stages.before,
        after=stages.after,
        held_out=stages.cross_validation.accuracy,
        condition=stages.identifiability.condition,
        configurations=len(np.unique(remaining.pose)),
        numbers=independent_numbers(remaining),
        unknowns=len(fit.columns),
        points=points,
        left_out=points - len(np.unique(remaining.row)),
        small=tuple(names[k] for k in small),
        arm_unknowns=len(arm),
        before_held_out=stages.before_held_out,
        validation=stages.validation,
        reach_mm=_reach_mm(stages.problem),
        deviation=_largest_deviation(stages),
        joint_unknowns=sum(parameters[fit.columns[k]].group == "joint" for k in arm),
        **_compliance_signs(stages),
        ranges=tuple(each.text for each in stages.ranges),
        worst_range=max((each.ratio for each in stages.ranges), default=1.0),
        **_declared_noise(stages),
        finds_nothing=not arm and any(each.group not in FRAMES for each in parameters),
    )


def _reach_mm(problem: CalibrationProblem) -> float | None:
    if not isinstance(problem, MeasuredProblem):
        return None
    return 1e3 * reach(problem.robot, problem.setup.link, problem.measurements.q)


def _largest_deviation(stages: Stages) -> Deviation | None:
    found = []
    for column, sigma in zip(stages.fit.columns, stages.fit_covariance.sigma, strict=True):
        each = stages.problem.parameters[column]
        if each.group == "joint":
            value = float(stages.fit.values[column] - each.nominal)
            over = max(abs(value) - 2 * float(sigma), 0.0) / WIDE[each.unit]
            found.append(Deviation(each.name, value, each.unit, over))
    return max(found, key=lambda each: each.over_usual, default=None)


def _compliance_signs(stages: Stages) -> dict[str, Any]:
    """Return which compliances are negative, beyond doubt (the whole interval) or by their value alone.

    The intervals hold for all compliances together (Bonferroni).
    """
    parameters, fit, names = stages.problem.parameters, stages.fit, stages.identifiability.names
    found = [k for k, column in enumerate(fit.columns) if parameters[column].group == "compliance"]
    level = 1 - (1 - stages.settings.level) / max(len(found), 1)
    bounds = intervals(fit.values[fit.columns], stages.fit_covariance, level)
    below = [k for k in found if fit.values[fit.columns[k]] < 0]
    return {
        "compliances": len(found),
        "negative": tuple(names[k] for k in below if bounds[k, 1] < 0),
        "doubtful": tuple(names[k] for k in below if bounds[k, 1] >= 0),
    }


def _declared_noise(stages: Stages) -> dict[str, Any]:
    """Return the ratio of estimated to declared noise, and whether a two-sided chi-square test accepts it.

    Numbers that share an error count as the fewer independent ones that they are worth.
    """
    equations, fit = stages.remaining.equations, stages.fit
    if equations.declared is None:
        return {}
    declared = np.isfinite(equations.declared) & (fit.weight > 0)
    left = (1 - fit.leverage)[declared]
    if left.sum() < 1:
        return {}
    variance = float(np.sum((fit.residual[declared] / equations.declared[declared]) ** 2) / left.sum())
    freedom = max(float(left @ independent_part(equations, stages.weighted.sigmas.correlation)[declared]), 1.0)
    low, high = chi2_ppf([NOISE_FALSE_ALARM / 2, 1 - NOISE_FALSE_ALARM / 2], freedom) / freedom
    return {"noise_ratio": float(np.sqrt(variance)), "noise_agrees": bool(low <= variance <= high)}


def independent_numbers(equations: MeasurementEquations) -> int:
    """Return how many numbers are measured: repeats count once, and a configuration of a rigid tool six at most."""
    size = len(COORDINATES)
    key = (equations.pose * (equations.marker.max() + 1) + equations.marker) * size + equations.coordinate
    pose = equations.pose[np.unique(key, return_index=True)[1]]
    return int(np.minimum(np.bincount(pose), _RIGID).sum())


def cautions_of(stages: Stages, others: CalibrationProblem | None = None) -> tuple[Reason, ...]:
    """Return the reasons that belong to no row of the verdict: likely mistakes, failed convergence, weak unknowns."""
    return (
        *_mistakes(stages), *_validation(stages, others), *_unfinished(stages), *_unjudged(stages), *_weak(stages),
        *_shared(stages), *_quiet(stages), *_estimated_sigmas(stages),
    )  # fmt: skip


def _mistakes(stages: Stages) -> list[Reason]:
    """Name the mistake in set-up or file that explains errors far above those of a nominal arm.

    Points that were left out as gross errors may be the ones that show it: if none is found without them, all points
    are used.
    """
    used, every = (np.unique(each.equations.row) for each in (stages.remaining, stages.problem))
    found = _mistake_in(stages.problem, used, "plausible", "")
    return found if found or len(used) == len(every) else _mistake_in(stages.problem, every, "plausible", "")


def _mistake_in(problem: CalibrationProblem, rows: np.ndarray, question: Question, where: str) -> list[Reason]:
    if not isinstance(problem, MeasuredProblem):
        return []
    cause = likely_cause(problem.robot, problem.setup, problem.measurements.taken(rows))
    return [] if cause is None else [Reason(f"{where}{cause.text}", cause.remedy, "likely cause", "poor", question)]


def _validation(stages: Stages, others: CalibrationProblem | None) -> Iterator[Reason]:
    """Report whether the frame of a validation file has moved, and which of its points are far off."""
    own = stages.validation
    if own is None or others is None:
        return
    if own.moved and own.own_registration is not None:
        text = (
            f"the tracker or the base seems to have moved by {own.shift_mm:.3g} mm and {own.turn_deg:.2g} deg between "
            "the files: with a registration of its own the validation file is off by "
            f"{own.own_registration.rms_mm:.3g} mm (rms) instead of {own.after.rms_mm:.3g} mm"
        )
        remedy = "measure both files from one station, or judge with --validate-base own if it was moved on purpose"
        yield Reason(text, remedy, "validation", "poor", "predicts")
    elif own.after.rms_mm > stages.settings.thresholds.ratio_fair * stages.after.rms_mm:
        yield from _mistake_in(others, np.unique(others.equations.row), "predicts", "in the validation file, ")
    if own.gross:
        named = first_named([each.text for each in own.gross], "; ", _NAMED)
        text = f"points of the validation file are far off, and count: {named}"
        yield Reason(text, "look at them: a beam that was cut, swapped markers, joint angles written down wrongly")


def _estimated_sigmas(stages: Stages) -> Iterator[Reason]:
    """Report which sigmas of method 'declared' are not declared."""
    settings = stages.settings
    if settings.method == "declared" and np.isnan(np.asarray(settings.sigma, dtype=float)).any():
        groups = [group for group in stages.weighted.sigmas.groups if group.name in ("rx", "ry", "rz")]
        sizes = ", ".join(f"{group.name} {1e3 * group.sigma:.3g} mrad" for group in groups)
        text = f"no sigma of orientations is declared; it is estimated from the residuals: {sizes}"
        yield Reason(text, "declare sigma_rotation [rad] under [measurement] in the set-up")


def _unfinished(stages: Stages) -> Iterator[Reason]:
    if not stages.fit.converged:
        remedy = "start from a better base and markers, or let fewer joints have errors"
        yield Reason(f"the fit did not converge: {stages.fit.reason}", remedy, "convergence", "poor", "plausible")
    if not stages.weighted.converged and stages.settings.reweightings:
        text = f"sigmas and weights still change after {len(stages.weighted.history) - 1} reweightings"
        yield Reason(text, "group by direction, or allow more reweightings", "weights", "fair", "known")


def _unjudged(stages: Stages) -> Iterator[Reason]:
    if not stages.screening.judged:
        text = "there are too few equations to look for gross errors"
        yield Reason(text, "measure more configurations", "gross errors", "fair", "plausible")
    if stages.cross_validation.unpredicted:
        named = ", ".join(stages.cross_validation.unpredicted[:_NAMED])
        text = f"held-out accuracy leaves out {named}: some unknown is identifiable from these alone"
        yield Reason(text, "measure every marker and every axis at more configurations")


def _weak(stages: Stages) -> Iterator[Reason]:
    for weak in stages.identifiability.weak[:_NAMED]:
        text = f"{weak.name} is nearly indistinguishable from {', '.join(weak.resembles)}: its sigma is "
        text += f"{weak.inflation:.3g} times what it would be alone"
        yield Reason(text, "move the joints between these configurations more, or leave one of them out")


def _quiet(stages: Stages) -> Iterator[Reason]:
    """Report residuals far below the declared noise."""
    noise = _declared_noise(stages)
    if noise and not noise["noise_agrees"] and noise["noise_ratio"] < 1 / MUCH_NOISE:
        ratio = f"{noise['noise_ratio']:.3g}"
        text = f"the residuals are {ratio} times the declared noise: the instrument is better than declared"
        yield Reason(text, "correct sigma in the set-up: steelyard poses and --method declared count on it")


def _shared(stages: Stages) -> Iterator[Reason]:
    """Report that the numbers of a configuration share most of their error, which is then one of the model."""
    correlation = stages.weighted.sigmas.correlation
    if correlation >= MOSTLY_SHARED and is_shared_observed(stages.remaining.equations):
        text = f"{100 * correlation:.0f} % of the variance of the residuals is shared by all numbers of a configuration"
        lacking = "add what the model lacks (compliance, coupled axes, wrong joint angles)"
        yield Reason(f"{text}: more markers or repeats will not help", f"measure more configurations, or {lacking}")
