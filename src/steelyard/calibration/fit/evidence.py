"""What the verdict on a calibration looks at, gathered from its stages."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...distributions import chi2_ppf
from ...verdict import Question, Reason
from ..chain.hypotheses import likely_cause
from ..chain.problem import MeasuredProblem
from ..measurement.nominal import reach
from ..records import COORDINATES, CalibrationProblem, MeasurementEquations
from .covariances import intervals
from .settings import WIDE
from .stages import FRAMES, MOSTLY_SHARED, Stages
from .validation import Validation
from .verdict import MUCH_NOISE, CalibrationEvidence, Deviation
from .weights import independent_part, is_shared_observed

# A rigid tool has six degrees of freedom, however many markers it carries.
_RIGID = 6
_NAMED = 5
NOISE_FALSE_ALARM = 0.001
"""Chance that noise as declared is said to differ from it."""


def evidence_of(stages: Stages) -> CalibrationEvidence:
    """Return the numbers of the verdict."""
    parameters, fit = stages.problem.parameters, stages.weighted.fit
    sigma = stages.covariance.sigma
    arm = [k for k, column in enumerate(fit.columns) if parameters[column].group not in FRAMES]
    deviation = fit.values[fit.columns] - np.array([parameters[column].nominal for column in fit.columns])
    small = [k for k in arm if sigma[k] > abs(deviation[k])]
    small.sort(key=lambda k: float(abs(deviation[k]) / sigma[k]))
    equations, remaining = stages.problem.equations, stages.remaining.equations
    points = len(np.unique(equations.row))
    return CalibrationEvidence(
        before=stages.before,
        after=stages.after,
        held_out=stages.held_out.accuracy,
        condition=stages.identifiability.condition,
        configurations=len(np.unique(remaining.pose)),
        numbers=independent_numbers(remaining),
        unknowns=len(fit.columns),
        points=points,
        left_out=points - len(np.unique(remaining.row)),
        small=tuple(stages.identifiability.kept[k] for k in small),
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
    fit, found = stages.weighted.fit, []
    for column, sigma in zip(fit.columns, stages.covariance.sigma, strict=True):
        each = stages.problem.parameters[column]
        if each.group == "joint":
            value = float(fit.values[column] - each.nominal)
            over = max(abs(value) - 2 * float(sigma), 0.0) / WIDE[each.unit]
            found.append(Deviation(each.name, value, each.unit, over))
    return max(found, key=lambda each: each.over_usual, default=None)


def _compliance_signs(stages: Stages) -> dict[str, Any]:
    """Return which compliances are negative, beyond doubt (the whole interval) or by their value alone.

    The intervals hold for all compliances together (Bonferroni).
    """
    parameters, fit = stages.problem.parameters, stages.weighted.fit
    found = [k for k, column in enumerate(fit.columns) if parameters[column].group == "compliance"]
    level = 1 - (1 - stages.settings.level) / max(len(found), 1)
    bounds = intervals(fit.values[fit.columns], stages.covariance, level)
    below = [k for k in found if fit.values[fit.columns[k]] < 0]
    names = stages.identifiability.kept
    return {
        "compliances": len(found),
        "negative": tuple(names[k] for k in below if bounds[k, 1] < 0),
        "doubtful": tuple(names[k] for k in below if bounds[k, 1] >= 0),
    }


def _declared_noise(stages: Stages) -> dict[str, Any]:
    """Return the noise found over the declared one, and whether a chi-square test of both sides lets it pass.

    Numbers that share an error count as the fewer that they are worth.
    """
    equations, fit = stages.remaining.equations, stages.weighted.fit
    if equations.declared is None:
        return {}
    stated = np.isfinite(equations.declared) & (fit.weight > 0)
    left = (1 - fit.leverage)[stated]
    if left.sum() < 1:
        return {}
    variance = float(np.sum((fit.residual[stated] / equations.declared[stated]) ** 2) / left.sum())
    freedom = max(float(left @ independent_part(equations, stages.weighted.sigmas.correlation)[stated]), 1.0)
    low, high = chi2_ppf([NOISE_FALSE_ALARM / 2, 1 - NOISE_FALSE_ALARM / 2], freedom) / freedom
    return {"noise_ratio": float(np.sqrt(variance)), "noise_agrees": bool(low <= variance <= high)}


def independent_numbers(equations: MeasurementEquations) -> int:
    """Return how many numbers are measured: repeats count once, and a configuration of a rigid tool six at most."""
    size = len(COORDINATES)
    key = (equations.pose * (equations.marker.max() + 1) + equations.marker) * size + equations.coordinate
    pose = equations.pose[np.unique(key, return_index=True)[1]]
    return int(np.minimum(np.bincount(pose), _RIGID).sum())


def cautions_of(stages: Stages, others: CalibrationProblem | None = None) -> tuple[Reason, ...]:
    """Return the sentences that stand by themselves: likely mistakes, what did not converge, what is weak."""
    return (
        *_mistakes(stages), *_validation(stages, others), *_unfinished(stages), *_unjudged(stages), *_weak(stages),
        *_shared(stages), *_quiet(stages), *_estimated_sigmas(stages),
    )  # fmt: skip


def _mistakes(stages: Stages) -> list[Reason]:
    """Name the mistake in set-up or file that explains errors far above those of a nominal arm.

    Where points were left out as gross errors, they may be what shows it: then all are looked at.
    """
    used, every = (np.unique(each.equations.row) for each in (stages.remaining, stages.problem))
    found = _mistake_in(stages.problem, used, "plausible", "")
    return found if found or len(used) == len(every) else _mistake_in(stages.problem, every, "plausible", "")


def _mistake_in(problem: CalibrationProblem, rows: np.ndarray, question: Question, where: str) -> list[Reason]:
    if not isinstance(problem, MeasuredProblem):
        return []
    cause = likely_cause(problem.robot, problem.setup, problem.measurements.taken(rows))
    return [] if cause is None else [Reason(f"{where}{cause.text}", cause.remedy, "likely cause", "poor", question)]


def _validation(stages: Stages, others: CalibrationProblem | None) -> list[Reason]:
    """Say of a validation file whether its frame has moved, and which of its points are far off."""
    own, found = stages.validation, []
    if own is None or others is None:
        return []
    if own.moved and own.registered is not None and own.motion is not None:
        text = (
            f"the tracker or the base seems to have moved by {own.motion.shift_mm:.3g} mm and "
            f"{own.motion.turn_deg:.2g} deg between the files: with a registration of its own the validation file is "
            f"off by {own.registered.rms_mm:.3g} mm (rms) instead of {own.after.rms_mm:.3g} mm"
        )
        remedy = "measure both files from one station, or judge with --validate-base own if it was moved on purpose"
        found.append(Reason(text, remedy, "validation", "poor", "predicts"))
    elif own.after.rms_mm > stages.settings.thresholds.ratio_fair * stages.after.rms_mm:
        found += _mistake_in(others, np.unique(others.equations.row), "predicts", "in the validation file, ")
    if own.gross:
        found.append(_gross_of_validation(own))
    return found


def _gross_of_validation(own: Validation) -> Reason:
    named = "; ".join(each.text for each in own.gross[:_NAMED])
    further = f" and {len(own.gross) - _NAMED} more" if len(own.gross) > _NAMED else ""
    text = f"points of the validation file are far off, and count: {named}{further}"
    return Reason(text, "look at them: a beam that was cut, swapped markers, joint angles written down wrongly")


def _estimated_sigmas(stages: Stages) -> list[Reason]:
    """Say which sigmas of method 'declared' are not declared."""
    settings = stages.settings
    if settings.method != "declared" or not np.isnan(np.asarray(settings.sigma, dtype=float)).any():
        return []
    found = [group for group in stages.weighted.sigmas.groups if group.name in ("rx", "ry", "rz")]
    sizes = ", ".join(f"{group.name} {1e3 * group.sigma:.3g} mrad" for group in found)
    text = f"no sigma of orientations is declared; it is estimated from the residuals: {sizes}"
    return [Reason(text, "declare sigma_rotation [rad] under [measurement] in the set-up")]


def _unfinished(stages: Stages) -> list[Reason]:
    found, fit = [], stages.weighted.fit
    if not fit.converged:
        remedy = "start from a better base and markers, or let fewer joints have errors"
        found.append(Reason(f"the fit did not converge: {fit.reason}", remedy, "convergence", "poor", "plausible"))
    if not stages.weighted.converged and stages.settings.rounds:
        text = f"sigmas and weights still change after {len(stages.weighted.rounds) - 1} rounds"
        found.append(Reason(text, "group by direction, or allow more rounds", "weights", "fair", "known"))
    return found


def _unjudged(stages: Stages) -> list[Reason]:
    found = []
    if not stages.screening.judged:
        text = "there are too few equations to look for gross errors"
        found.append(Reason(text, "measure more configurations", "gross errors", "fair", "plausible"))
    if stages.held_out.unpredicted:
        named = ", ".join(stages.held_out.unpredicted[:_NAMED])
        text = f"held-out accuracy leaves out {named}: some unknown is told by these alone"
        found.append(Reason(text, "measure every marker and every axis at more configurations"))
    return found


def _weak(stages: Stages) -> list[Reason]:
    remedy = "move the joints between these configurations more, or leave one of them out"
    return [
        Reason(
            f"{weak.name} is hardly told from {', '.join(weak.resembles)}: its sigma is {weak.inflation:.3g} times "
            "what it would be alone",
            remedy,
        )
        for weak in stages.identifiability.weak[:_NAMED]
    ]


def _quiet(stages: Stages) -> list[Reason]:
    """Say so where the residuals are far below the declared noise."""
    found = _declared_noise(stages)
    if not found or found["noise_agrees"] or found["noise_ratio"] >= 1 / MUCH_NOISE:
        return []
    text = (
        f"the residuals are {found['noise_ratio']:.3g} times the declared noise: the instrument is better than declared"
    )
    return [Reason(text, "correct sigma in the set-up: steelyard poses and --method declared count on it")]


def _shared(stages: Stages) -> list[Reason]:
    """Say so where the numbers of a configuration share most of their error: the model is then what is missing."""
    correlation = stages.weighted.sigmas.correlation
    if correlation < MOSTLY_SHARED or not is_shared_observed(stages.remaining.equations):
        return []
    text = (
        f"{100 * correlation:.0f} % of the variance of the residuals is shared by all numbers of a configuration: more "
        "markers or repeats will not help"
    )
    remedy = "measure more configurations, or add what the model lacks (compliance, coupled axes, wrong joint angles)"
    return [Reason(text, remedy)]
