"""The extended Kalman filter on ``[qd, q, chi]`` (P1.7): from recordings to parameters and their history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ...errors import EstimateError
from ...observe import AnyRecording
from ...progress import Progress, silent
from ...recording import Recording
from ..evidence import Estimate, Estimated, Evidence, History, Prior, estimate_of
from .engines import is_compiled_whole
from .passes import Passed, filtered, shape_of
from .settings import KalmanSettings
from .start import FilterPlan, plan_of
from .state import parameter_root

OVERCONFIDENT = 0.9
"""A filter with fewer of its innovations inside their 95 % bound than this trusts itself too much."""

CAUTIOUS = 0.1
"""A filter whose normalised innovations are smaller than this on average was given far too much noise."""

NEAR = 2.0
"""Sigmas within which an estimate agrees with least squares of all rows."""

MANY = 0.1
"""Share of parameters away from least squares of all rows above which a reason is looked for."""

PERSISTENT = 0.5
"""Residuals with more correlation from row to row than this are no noise alone."""

CONVERGED = 0.05
"""Part of its last value within which a parameter counts as converged."""


def estimated(plan: FilterPlan, passed: Passed, column: int) -> Estimated:
    """Return the result of one filter.

    The covariance is that of the filter times the mean normalised innovation squared where that is above 1: noise,
    start and covariance of a linear filter may all be scaled by one factor, and this is the factor that the
    innovations ask for.

    Args:
        plan: Its plan.
        passed: The filters after their passes; this one got through.
        column: Which of them it is.

    Raises:
        EstimateError: If the covariance is not positive definite in numbers.
    """
    shape, evidence, free = passed.shape, plan.evidence, list(plan.free)
    _, values, _, _, _, tally = shape.split(passed.vectors[:, column])
    count = max(tally[0], 1) * shape.observed
    mean_square, inside = tally[1] / count, tally[2] / max(tally[0], 1)
    inflation = max(1.0, mean_square)
    found, covariance = plan.start.values.copy(), np.diag(np.diag(plan.start.covariance))
    found[free] = values
    root = parameter_root(shape, passed.vectors[:, column])
    covariance[np.ix_(free, free)] = inflation * (root @ root.T)
    history = _history(plan, passed, column, np.sqrt(inflation))
    estimate = estimate_of("ekf", "filter", evidence, found, covariance, max(count - len(free), 1.0))
    notes = [
        _way(plan), *_consistency(plan, mean_square, inside), *_settling(history),
        *_possibility(plan, tally[5] / max(tally[0], 1)), *_against_batch(plan, estimate),
    ]  # fmt: skip
    if plan.settings.locked:
        notes.append(f"locked at their start, deviations as there: {', '.join(plan.settings.locked)}")
    return Estimated(estimate, history, notes=tuple(notes))


def _history(plan: FilterPlan, passed: Passed, column: int, widening: float) -> History:
    shape, free = passed.shape, list(plan.free)
    time = np.concatenate(passed.times)
    qd, q, values, sigma = np.split(
        np.concatenate([part[:, :, column] for part in passed.recorded]).T,
        np.cumsum([shape.joints, shape.joints, shape.free]).tolist(),
    )
    all_values = np.repeat(plan.start.values[:, None], len(time), axis=1)
    all_sigma = np.repeat(np.sqrt(np.diag(plan.start.covariance))[:, None], len(time), axis=1)
    all_values[free], all_sigma[free] = values, widening * sigma
    for array in (time, all_values, all_sigma, q, qd):
        array.setflags(write=False)
    return History(plan.evidence.columns, time, all_values, all_sigma, q, qd)


def _way(plan: FilterPlan) -> str:
    settings = plan.settings
    between = "held until the next sample" if settings.torque == "held" else "taken as the mean of both samples"
    friction = f"Coulomb friction is smooth over {plan.sign_width:.3g} rad/s (tanh)"
    if settings.sign_width is None:
        friction = "the direction of Coulomb friction is held over each step"
    along = "predicted" if plan.smoothing_cutoff is None else "measured"
    return (
        f"torques are {between}; {friction}; integrator {settings.integrator} at {plan.rate:.4g} Hz, derivatives along "
        f"the {along} motion"
    )


def _consistency(plan: FilterPlan, mean_square: float, inside: float) -> Iterator[str]:
    """Yield what the innovations say of the filter."""
    is_limited = plan.settings.position_noise is None and plan.settings.process == "torque"
    verdict = "no sign that the filter trusts itself too much"
    if inside < OVERCONFIDENT:
        verdict = "the filter is over-confident: the noise is larger or more persistent than its settings say"
    elif mean_square < CAUTIOUS and not is_limited:
        verdict = "the settings have far more noise than there is: deviations are too wide"
    elif mean_square < CAUTIOUS:
        verdict = "small, because what is faster than twice the cut-off is filtered out"
    lie = f"{100 * inside:.1f} % of the innovations lie inside their 95 % bound"
    yield f"{lie}, mean square {mean_square:.3g}: {verdict}"
    if mean_square > 1.0:
        yield f"sigmas are inflated by {np.sqrt(mean_square):.3g}, to agree with the innovations"


def _possibility(plan: FilterPlan, share: float) -> Iterator[str]:
    """Yield how often the parameters had to be moved to remain those of a possible arm."""
    if share > 0:
        yield (
            f"parameters were moved at {100 * share:.1f} % of the steps to keep the inertia matrix positive definite: "
            "data and model together pull towards an impossible arm there"
        )


def _against_batch(plan: FilterPlan, estimate: Estimate) -> Iterator[str]:
    """Yield how far least squares of all rows is, and why if that is known."""
    plain, free = plan.evidence.plain, list(plan.free)
    away = (estimate.values - plain.values)[free] / estimate.sigma[free]
    k = int(np.abs(away).argmax())
    name, at = estimate.columns[free[k]], free[k]
    yield (
        f"{int((np.abs(away) <= NEAR).sum())} of {len(free)} parameters lie within {NEAR:g} of their sigmas of "
        f"weighted least squares of all rows; the farthest is {name}: "
        f"{estimate.values[at]:.3g} +- {estimate.sigma[at]:.2g} against {plain.values[at]:.3g} +- {plain.sigma[at]:.2g}"
    )
    worst = int(plan.impossible.argmax())
    if plan.impossible[worst] > 0:
        yield (
            f"least squares of all rows is no possible arm (inertia of joint '{plan.evidence.equations.joints[worst]}' "
            f"not positive at {100 * plan.impossible[worst]:.0f} % of the postures); the filter's is, so the two "
            "must differ"
        )
    noise = plan.evidence.noise
    equation = max(noise.coefficients, key=noise.lag_one)
    if (np.abs(away) > NEAR).mean() > MANY and noise.lag_one(equation) > PERSISTENT:
        yield (
            f"residuals of least squares persist from row to row (correlation {noise.lag_one(equation):.2f} at joint "
            f"'{equation[1]}'): the model lacks something that the two methods weigh differently; sigmas count the "
            "power that it has at low frequency"
        )


def _settling(history: History) -> Iterator[str]:
    """Yield when the parameters converged, of those that are known to better than half of their value."""
    last, sigma = history.values[:, -1], history.sigma[:, -1]
    times = {
        name: history.converged_after(name, value, CONVERGED)
        for name, value, deviation in zip(history.columns, last, sigma, strict=True)
        if abs(value) > 2 * deviation
    }
    converged = {name: time - history.time[0] for name, time in times.items() if time is not None}
    if converged:
        slowest = max(converged, key=lambda name: converged[name])
        yield (
            f"within {100 * CONVERGED:.0f} % of their last values: half of the parameters after "
            f"{np.median(list(converged.values())):.3g} s, the last ({slowest}) after {converged[slowest]:.3g} s"
        )


NARROWER = (2.0, 1.0)
"""Factors on the start's deviations with which a filter that lost the arm is run again."""


def kalman_filter(evidence: Evidence, settings: KalmanSettings, prior: Prior, progress: Progress = silent) -> Estimated:
    """Estimate parameters sample by sample, beside positions and velocities.

    State ``z = [qd; q; chi]``, ``z' = [M(q, chi)^-1 (tau - N(q, qd, chi)); qd; 0]`` (P1.7), tau the measured torque,
    held over each step; observed are raw positions, or velocities too, at the full rate. Parameters are carried on
    from recording to recording, the state starts anew at each and after every gap.

    Args:
        evidence: The recordings, a start and the noise.
        settings: Integrator, noise, start.
        prior: Value and standard deviation by name; they override those of the start.
        progress: Progress callback of the pass.

    Raises:
        EstimateError: If settings, prior and model do not fit each other, or the filter diverges: the message says
            when and why.
    """
    plan = plan_of(evidence, settings, prior)
    passed = filtered([plan], progress)
    found = _retried(plan, passed, 0, prior, progress)
    if isinstance(found, EstimateError):
        raise found
    return found


def kalman_filters(
    evidences: Sequence[Evidence], settings: KalmanSettings, prior: Prior, progress: Progress = silent
) -> list[Estimated | EstimateError]:
    """Run the filter on many experiments of the same arm, side by side where their stamps agree.

    A run does not depend on those beside it: each gives the numbers that it gives alone.

    Args:
        evidences: The experiments, one a seed for instance.
        settings: Settings of all of them.
        prior: Prior of all of them.
        progress: Progress callback, counting what is done.

    Returns:
        For each what :func:`kalman_filter` returns, or the error that it raises.
    """
    results: dict[int, Estimated | EstimateError] = {}
    waiting: dict[int, FilterPlan] = {}
    for k, evidence in enumerate(evidences):
        try:
            waiting[k] = plan_of(evidence, settings, prior)
        except EstimateError as error:
            results[k] = error
    while waiting:
        first = next(iter(waiting.values()))
        group = {k: plan for k, plan in waiting.items() if _fit_together(first, plan)}
        passed = filtered(list(group.values()), silent)
        for column, (k, plan) in enumerate(group.items()):
            results[k] = _retried(plan, passed, column, prior, silent)
        waiting = {k: plan for k, plan in waiting.items() if k not in group}
        progress(len(evidences) - len(waiting), len(evidences))
    return [results[k] for k in range(len(evidences))]


def _retried(
    plan: FilterPlan, passed: Passed, column: int, prior: Prior, progress: Progress
) -> Estimated | EstimateError:
    """Return what a filter found; one that lost the arm is run again, from a start that it trusts more."""
    result, settings = _found(plan, passed, column, progress), plan.settings
    if isinstance(result, Estimated):
        return result
    for widen in NARROWER if settings.start == "auto" else ():
        closer = plan_of(plan.evidence, replace(settings, widen=min(widen, settings.widen)), prior)
        found = _found(closer, filtered([closer], progress), 0, progress)
        if isinstance(found, Estimated):
            note = (
                f"with deviations of the start widened {settings.widen:g} times the filter lost the arm; it was run "
                f"again with {closer.settings.widen:g} times: what the motion shows little rests on the start"
            )
            return replace(found, notes=(note, *found.notes))
    return result


def _found(plan: FilterPlan, passed: Passed, column: int, progress: Progress) -> Estimated | EstimateError:
    """Return what a filter found; one whose parameters made no possible arm is run again with more care, alone."""
    if column in passed.impossible and plan.least.any():
        passed, column = filtered([plan], progress, careful=True), 0
    try:
        return passed.failures[column] or estimated(plan, passed, column)
    except EstimateError as error:
        return error


def _fit_together(one: FilterPlan, other: FilterPlan) -> bool:
    """Return whether two filters can run side by side: same columns, same stamps, small enough to be compiled."""
    if one is other:
        return True
    a, b = one.evidence, other.evidence
    if not is_compiled_whole(shape_of(one)):
        return False
    same = a.equations is b.equations and a.columns == b.columns and one.rate == other.rate
    return (
        same
        and len(a.sources) == len(b.sources)
        and all(
            x.loaded == y.loaded and _same_stamps(x.recording, y.recording)
            for x, y in zip(a.sources, b.sources, strict=True)
        )
    )


def _same_stamps(a: AnyRecording, b: AnyRecording) -> bool:
    if not (isinstance(a, Recording) and isinstance(b, Recording)):
        return False
    return a.time is b.time or np.array_equal(a.time, b.time)
