"""What the verdict on a calibration looks at, gathered from its stages."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from ...judge import Reason
from ..records import COORDINATES, Equations
from .calibration_stages import FRAMES, MOSTLY_SHARED, Stages
from .covariances import intervals
from .shared_errors import independent_part
from .verdict import MUCH_NOISE, CalibrationEvidence

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
        condition=stages.told.condition,
        configurations=len(np.unique(remaining.pose)),
        numbers=independent_numbers(remaining),
        unknowns=len(fit.columns),
        points=points,
        left_out=points - len(np.unique(remaining.row)),
        small=tuple(stages.told.kept[k] for k in small),
        arm_unknowns=len(arm),
        joint_unknowns=sum(parameters[fit.columns[k]].group == "joint" for k in arm),
        **_compliance_signs(stages),
        ranges=tuple(each.text for each in stages.ranges),
        worst_range=max((each.ratio for each in stages.ranges), default=1.0),
        **_declared_noise(stages),
    )


def _compliance_signs(stages: Stages) -> dict[str, Any]:
    """Return which compliances are negative, beyond doubt (the whole interval) or by their value alone.

    The intervals hold for all compliances together (Bonferroni).
    """
    parameters, fit = stages.problem.parameters, stages.weighted.fit
    found = [k for k, column in enumerate(fit.columns) if parameters[column].group == "compliance"]
    level = 1 - (1 - stages.settings.level) / max(len(found), 1)
    bounds = intervals(fit.values[fit.columns], stages.covariance, level)
    below = [k for k in found if fit.values[fit.columns[k]] < 0]
    names = stages.told.kept
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
    low, high = stats.chi2.ppf([NOISE_FALSE_ALARM / 2, 1 - NOISE_FALSE_ALARM / 2], freedom) / freedom
    return {"noise_ratio": float(np.sqrt(variance)), "noise_agrees": bool(low <= variance <= high)}


def independent_numbers(equations: Equations) -> int:
    """Return how many numbers are measured: repeats count once, and a configuration of a rigid tool six at most."""
    size = len(COORDINATES)
    key = (equations.pose * (equations.marker.max() + 1) + equations.marker) * size + equations.coordinate
    pose = equations.pose[np.unique(key, return_index=True)[1]]
    return int(np.minimum(np.bincount(pose), _RIGID).sum())


def cautions_of(stages: Stages) -> tuple[Reason, ...]:
    """Return the sentences that stand by themselves: what did not converge, what is weak, what was not judged."""
    return (*_unfinished(stages), *_unjudged(stages), *_weak(stages), *_shared(stages), *_quiet(stages))


def _unfinished(stages: Stages) -> list[Reason]:
    found, fit = [], stages.weighted.fit
    if not fit.converged:
        remedy = "start from a better base and markers, or let fewer joints have errors"
        found.append(Reason(f"the fit did not converge: {fit.reason}", remedy, grade="poor"))
    if not stages.weighted.settled and stages.settings.rounds:
        text = f"sigmas and weights still change after {len(stages.weighted.rounds) - 1} rounds"
        found.append(Reason(text, "group by direction, or allow more rounds", grade="fair"))
    return found


def _unjudged(stages: Stages) -> list[Reason]:
    found = []
    if not stages.screening.judged:
        text = "there are too few equations to look for gross errors"
        found.append(Reason(text, "measure more configurations", grade="fair"))
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
        for weak in stages.told.weak[:_NAMED]
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
    if correlation < MOSTLY_SHARED:
        return []
    text = (
        f"{100 * correlation:.0f} % of the variance of the residuals is shared by all numbers of a configuration: more "
        "markers or repeats will not help"
    )
    remedy = "measure more configurations, or add what the model lacks (compliance, coupled axes, wrong joint angles)"
    return [Reason(text, remedy)]
