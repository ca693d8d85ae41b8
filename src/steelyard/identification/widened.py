"""Widened intervals of a fit: the parts of its data, and the effects of its choice, that disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..distributions import norm_sf
from ..estimate import Estimate
from ..judge import MotionExtent, StateSums, Widening, factor_parts, widened
from ..observe import Equations
from ..text import counted
from ..verdict import Reason
from .fitting import ArmFit
from .folds import Folds
from .inputs import Labelled
from .regularisation import shrinkage
from .selection import SelectionStep
from .settings import FACTOR_METHODS, Settings

TIME_PARTS = 8
"""Stretches of time into which a motion is cut: longer than a movement, so that neighbours are nearly independent."""

MUCH = 1.5
"""From this factor on widened intervals are worth a sentence."""

_CAUSES = {
    "time": "by stretches of time",
    "recordings": "by recordings",
    "speed": "by classes of speed",
    "position": "by classes of position",
    "base": "by classes of position of the first joint",
    "effects": "by the last effects chosen",
    "reduction": "by parameters that were left out",
}

LAST_STEPS = 3
"""Last steps of a choice of effects whose models are compared."""


def state_sums(fit: ArmFit, equations: Equations, extent: MotionExtent, settings: Settings) -> StateSums | None:
    """Return where residuals are to be summed by the state of their joint; None where nothing will be widened.

    Methods beyond least squares do not use these rows, and rows of earlier runs are not at hand.
    """
    if settings.method not in FACTOR_METHODS or not set(fit.of_data.columns) >= set(fit.estimate.columns):
        return None
    return StateSums(fit.of_data, equations, extent, fit.whitening)


def widening_of(
    fit: ArmFit,
    judged: Estimate,
    states: StateSums,
    recordings: Sequence[Labelled],
    equations: Equations,
    steps: Sequence[SelectionStep] = (),
) -> Widening:
    """Return the widened intervals of the estimate that is judged.

    Args:
        fit: The fit.
        judged: Its estimate with the essential parameters, whose residuals were summed.
        states: These sums.
        recordings: The recordings.
        equations: Model and base parameters.
        steps: The choice of effects.
    """
    is_drawn = fit.links_open is not None
    of_data = fit.of_data if is_drawn else judged
    stretches = Folds(recordings, TIME_PARTS).numbered(fit.used)[0]
    partitions = factor_parts(of_data, fit.used, stretches) | states.parts(of_data, judged)
    if not is_drawn:
        return widened(of_data, partitions, hidden=hidden_variance(fit.estimate, judged))
    return widened(of_data, partitions, judged, shrinkage(fit), effect_variance(judged, equations, steps))


def hidden_variance(whole: Estimate, judged: Estimate) -> np.ndarray | None:
    """Return the variance (c,) that parameters hide which were left out of a model; None if none were.

    They could not be told from zero, which does not make them zero: all that they may be is in the sigmas of the whole
    model. On a simulated arm a motor offset of three quarters of a newton metre was left out, and a first moment then
    33 of its sigmas from the truth.

    Args:
        whole: The estimate with all parameters.
        judged: That of the parameters that were kept.
    """
    if len(judged.columns) == len(whole.columns):
        return None
    place = [whole.columns.index(name) for name in judged.columns]
    return np.maximum(whole.sigma[place] ** 2 - judged.sigma**2, 0.0)


def effect_variance(judged: Estimate, equations: Equations, steps: Sequence[SelectionStep]) -> np.ndarray:
    """Return what the last models of a choice differ by (c,), each by the probability that its step was chance.

    A step that improves the prediction of left-out blocks by z standard errors improves nothing with the probability
    of a normal variable above z; the model without it, and without those after it, is then as good.

    Args:
        judged: The estimate with all effects chosen.
        equations: Model and base parameters.
        steps: The choice of effects, in order.
    """
    found, gone = np.zeros(len(judged.columns)), set[str]()
    parameters = [one for one in equations.model.parameters if one.name in judged.columns]
    for step in list(steps)[: -LAST_STEPS - 1 : -1]:
        gone |= {one.name for one in parameters if step.effect in (one.effect, f"{one.effect}{one.number}")}
        left = [name for name in judged.columns if name not in gone]
        index = [judged.columns.index(name) for name in left]
        change = judged.system.restricted(left).values - judged.values[index]
        found[index] += float(norm_sf(step.standard_errors)) * change**2
    return found


def relative_sigmas(judged: Estimate, widening: Widening | None) -> np.ndarray:
    """Return the sigmas of an estimate in per cent of its values (c,), widened ones where there are any."""
    return judged.relative_sigma * (1.0 if widening is None else widening.factor)


def widening_reasons(widening: Widening | None, names: Mapping[str, str]) -> list[Reason]:
    """Return how far intervals are widened, and by what, where it is much.

    Args:
        widening: The widened intervals, if there are any.
        names: Base names by column.
    """
    if widening is None or widening.factor.max(initial=1.0) < MUCH:
        return []
    most, count = int(np.argmax(widening.factor)), int(np.sum(widening.factor >= MUCH))
    all_of_them = counted(len(widening.columns), "parameter")
    text = (
        f"parts of the data disagree beyond their noise: intervals of {count} of {all_of_them} are "
        f"widened by {MUCH:g} times or more, that of {names[widening.columns[most]]} most ({widening.factor[most]:.2g} "
        f"times, {_CAUSES[widening.cause[most]]})"
    )
    remedy = "take the widened intervals; adding the effects that residuals point to would narrow them"
    return [Reason(text, remedy, "widening")]


def sigma_to_json(widening: Widening | None, column: str, value: float | None) -> dict[str, Any]:
    """Return the widened sigma of a parameter, its interval and what widened it; null where there is none."""
    if widening is None or value is None or column not in widening.columns:
        return {"sigma_widened": None, "interval_95_widened": None, "widened_by": None}
    k = widening.columns.index(column)
    half = float(widening.half_width()[k])
    return {
        "sigma_widened": float(widening.sigma[k]),
        "interval_95_widened": [value - half, value + half],
        "widened_by": widening.cause[k] or None,
    }


def widening_to_json(widening: Widening | None, names: Mapping[str, str]) -> dict[str, Any] | None:
    """Return how far intervals are widened over all; null where none are."""
    if widening is None:
        return None
    most = int(np.argmax(widening.factor))
    return {
        "median_factor": float(np.median(widening.factor)),
        "largest": {
            "parameter": names[widening.columns[most]],
            "factor": float(widening.factor[most]),
            "by": None if widening.cause[most] == "reduction" else widening.cause[most] or None,
        },
        "parts": dict(widening.parts),
    }
