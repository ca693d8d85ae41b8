"""What a filter found, told as every estimator tells it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..evidence import Estimated, History, estimate_of
from .passes import Passed
from .plan import Plan
from .state import parameter_root

OVERCONFIDENT = 0.9
"""A filter with fewer of its innovations inside their 95 % bound than this trusts itself too much."""

CAUTIOUS = 0.1
"""A filter whose normalised innovations are smaller than this on average was told far too much noise."""

SETTLED = 0.05
"""Part of its last value within which a parameter counts as settled."""


def estimated(plan: Plan, passed: Passed, column: int) -> Estimated:
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
    return Estimated(estimate, history, notes=tuple(_notes(plan, history, mean_square, inside)))


def _history(plan: Plan, passed: Passed, column: int, widening: float) -> History:
    shape, free = passed.shape, list(plan.free)
    time = np.concatenate(passed.times)
    qd, q, values, sigma = np.split(
        np.concatenate([part[:, :, column] for part in passed.kept]).T,
        np.cumsum([shape.joints, shape.joints, shape.free]).tolist(),
    )
    all_values = np.repeat(plan.start.values[:, None], len(time), axis=1)
    all_sigma = np.repeat(np.sqrt(np.diag(plan.start.covariance))[:, None], len(time), axis=1)
    all_values[free], all_sigma[free] = values, widening * sigma
    for array in (time, all_values, all_sigma, q, qd):
        array.setflags(write=False)
    return History(plan.evidence.columns, time, all_values, all_sigma, q, qd)


def _notes(plan: Plan, history: History, mean_square: float, inside: float) -> Iterator[str]:
    settings = plan.settings
    between = "held until the next sample" if settings.torque == "held" else "taken as the mean of both samples"
    yield (
        f"torques are {between}; Coulomb friction is smooth over {plan.sign_width:.3g} rad/s (tanh); "
        f"integrator {settings.integrator} at {plan.rate:g} Hz"
    )
    verdict = "as they should"
    if inside < OVERCONFIDENT:
        verdict = "the filter is over-confident: its noise is larger or more persistent than it was told"
    elif mean_square < CAUTIOUS:
        verdict = "the filter was told far more noise than there is: its deviations are too wide"
    yield f"{inside:.1%} of the innovations lie inside their 95 % bound, mean square {mean_square:.3g}: {verdict}"
    if mean_square > 1.0:
        yield f"sigmas are inflated by {np.sqrt(mean_square):.3g}, to agree with the innovations"
    yield from _settling(history)
    if settings.locked:
        yield f"locked at their start, deviations as there: {', '.join(settings.locked)}"


def _settling(history: History) -> Iterator[str]:
    """Tell when the parameters settled, of those that are known to better than half of their value."""
    last, sigma = history.values[:, -1], history.sigma[:, -1]
    times = {
        name: history.settled_after(name, value, SETTLED)
        for name, value, deviation in zip(history.columns, last, sigma, strict=True)
        if abs(value) > 2 * deviation
    }
    settled = {name: time - history.time[0] for name, time in times.items() if time is not None}
    if settled:
        slowest = max(settled, key=lambda name: settled[name])
        yield (
            f"within {SETTLED:.0%} of their last values: half of the parameters after "
            f"{np.median(list(settled.values())):.3g} s, the last ({slowest}) after {settled[slowest]:.3g} s"
        )
