"""The extended Kalman filter on ``[qd, q, chi]`` (P1.7): recordings in, parameters and their history out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...errors import EstimateError
from ...observe import AnyRecording
from ...progress import Progress, silent
from ...recording import Recording
from ..evidence import Estimated, Evidence
from .engines import is_compiled_whole
from .passes import Passed, filtered, shape_of
from .plan import Plan, plan_of
from .result import estimated
from .settings import KalmanSettings

NARROWER = (2.0, 1.0)
"""Factors on the start's deviations with which a filter that lost the arm is run again."""

Prior = Mapping[str, tuple[float, float]]


def kalman_filter(
    evidence: Evidence,
    settings: KalmanSettings,
    prior: Prior,
    progress: Progress = silent,
) -> Estimated:
    """Estimate parameters sample by sample, beside positions and velocities.

    State ``z = [qd; q; chi]``, ``z' = [M(q, chi)^-1 (tau - N(q, qd, chi)); qd; 0]`` (P1.7), tau the measured torque,
    held over each step; observed are raw positions, or velocities too, at the full rate. Parameters are carried on
    from recording to recording, the state starts anew at each and after every gap.

    Args:
        evidence: The recordings, a start and the noise.
        settings: Integrator, noise, start.
        prior: Value and standard deviation by name; they override those of the start.
        progress: Told how far the pass is.

    Raises:
        EstimateError: If settings, prior and model do not fit each other, or the filter diverges: the message says
            when and why.
    """
    plan = plan_of(evidence, settings, prior)
    passed = filtered([plan], progress)
    found = _found(plan, passed, 0, progress)
    if isinstance(found, EstimateError):
        found = _again(plan, found, prior, progress)
    if isinstance(found, EstimateError):
        raise found
    return found


def kalman_filters(
    evidences: Sequence[Evidence],
    settings: KalmanSettings,
    prior: Prior,
    progress: Progress = silent,
) -> list[Estimated | EstimateError]:
    """Run the filter on many experiments of the same arm, side by side where their stamps agree.

    A run does not depend on those beside it: each gives the numbers that it gives alone.

    Args:
        evidences: The experiments, one a seed for instance.
        settings: Settings of all of them.
        prior: Prior of all of them.
        progress: Told how many are done.

    Returns:
        For each what :func:`kalman_filter` returns, or the error that it raises.
    """
    plans = [_tried(evidence, settings, prior) for evidence in evidences]
    results: list[Estimated | EstimateError | None] = [
        plan if isinstance(plan, EstimateError) else None for plan in plans
    ]
    waiting = {k: plan for k, plan in enumerate(plans) if isinstance(plan, Plan)}
    while waiting:
        first = next(iter(waiting.values()))
        group = {k: plan for k, plan in waiting.items() if _fit_together(first, plan)}
        _run_group(group, results, prior)
        waiting = {k: plan for k, plan in waiting.items() if k not in group}
        progress(len(plans) - len(waiting), len(plans))
    return [result for result in results if result is not None]


def _tried(evidence: Evidence, settings: KalmanSettings, prior: Prior) -> Plan | EstimateError:
    try:
        return plan_of(evidence, settings, prior)
    except EstimateError as error:
        return error


def _run_group(group: Mapping[int, Plan], results: list[Estimated | EstimateError | None], prior: Prior) -> None:
    passed = filtered(list(group.values()), silent)
    for column, (k, plan) in enumerate(group.items()):
        found = _found(plan, passed, column, silent)
        results[k] = _again(plan, found, prior, silent) if isinstance(found, EstimateError) else found


def _again(plan: Plan, error: EstimateError, prior: Prior, progress: Progress) -> Estimated | EstimateError:
    """Run a filter that lost the arm again, from a start of its own choice that it trusts more; else its error."""
    settings = plan.settings
    for widen in NARROWER if settings.start == "auto" else ():
        closer = plan_of(plan.evidence, replace(settings, widen=min(widen, settings.widen)), prior)
        found = _found(closer, filtered([closer], progress), 0, progress)
        if isinstance(found, Estimated):
            note = (
                f"with deviations of the start widened {settings.widen:g} times the filter lost the arm; it was run "
                f"again with {closer.settings.widen:g} times: what the motion shows little rests on the start"
            )
            return replace(found, notes=(note, *found.notes))
    return error


def _found(plan: Plan, passed: Passed, column: int, progress: Progress) -> Estimated | EstimateError:
    """Return what a filter found; one whose parameters made no possible arm is run again with more care, alone."""
    if column in passed.impossible and plan.least.any():
        passed, column = filtered([plan], progress, careful=True), 0
    try:
        return passed.failures[column] or estimated(plan, passed, column)
    except EstimateError as error:
        return error


def _fit_together(one: Plan, other: Plan) -> bool:
    """Return whether two filters can run side by side: same columns, same stamps, small enough to be compiled."""
    if one is other:
        return True
    a, b = one.evidence, other.evidence
    if not is_compiled_whole(shape_of(one)):
        return False
    same = a.equations is b.equations and a.columns == b.columns and one.rate == other.rate
    if not same or len(a.sources) != len(b.sources):
        return False
    return all(
        x.loaded == y.loaded and _same_stamps(x.recording, y.recording)
        for x, y in zip(a.sources, b.sources, strict=True)
    )


def _same_stamps(a: AnyRecording, b: AnyRecording) -> bool:
    if not (isinstance(a, Recording) and isinstance(b, Recording)):
        return False
    return a.time is b.time or np.array_equal(a.time, b.time)
