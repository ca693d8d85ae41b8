"""What a verdict says of torques that come late or early, and of parameters with bias."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..errors import EstimateError
from ..estimate import weighted
from ..judge import LARGEST_DELAY, Bias, Delays, Thresholds, estimate_delays
from ..observe import reduce_rows
from ..verdict import Reason, first_named
from .result import Identification

_MOST_NAMED = 6
_MOST_UNSEEN = 3
"""Validation recordings whose own delay is compared with that of the fit."""

_INTERVAL = 1.96
"""Half of a 95 % interval, over sigma."""

_LOOKS_LIKE = "inertia then looks like viscous friction"


def bias_reasons(found: Identification) -> Iterator[Reason]:
    """Yield delays with their remedies, parameters that delays would bias, and parameters with bias."""
    bias, names = found.bias, found.equations.base.name_of
    if bias is None:
        return
    yield from _late(bias.delays, found.settings.thresholds, _unlike(found, bias.delays))
    if is_late(bias.delays, found.settings.thresholds):
        yield from _moved(found, bias)
    if bias.exposed and not bias.delays.has_common:
        exposure = dict(zip(bias.columns, bias.delays.exposure, strict=True))
        named = ", ".join(f"{names[name]} ({exposure[name]:.1f} sigma)" for name in bias.exposed[:_MOST_NAMED])
        yield Reason(
            f"a common delay of {1e3 * bias.delays.common[1]:.2g} ms between torques and positions is not detectable "
            f"in these recordings, and would bias {named}",
            "trust them only if you know that torques and positions are in time; more varied accelerations help",
            "delay",
        )
    if bias.named:
        ratio = dict(zip(bias.columns, bias.over_sigma, strict=True))
        named = first_named([f"{names[name]} ({ratio[name]:+.1f} sigma)" for name in bias.named], most=_MOST_NAMED)
        yield Reason(
            f"bias by position errors, wrong signs near reversals, filter or delay is estimated for {named}",
            f"read positions more finely, move faster or change the low-pass cut-off{_cure(bias.delays)}",
            "bias",
        )


def is_late(delays: Delays, thresholds: Thresholds) -> bool:
    """Return whether torques are late or early by so much, and so certainly, that a result is fair at best."""
    if delays.has_common:
        return abs(delays.common[0]) >= thresholds.delay
    return any(abs(delays.delay[e]) >= thresholds.delay for e in delays.certain)


def _unlike(found: Identification, delays: Delays) -> list[str]:
    """Return validation recordings whose torques have another delay than those of the fit."""
    if found.held_out or not delays.has_common or abs(delays.common[0]) < found.settings.thresholds.delay:
        return []
    unlike = []
    for source in found.unseen[:_MOST_UNSEEN]:
        try:
            own = weighted(reduce_rows([source]), found.fit.raw.columns)
            common, sigma = estimate_delays([source], own, None).common
        except EstimateError:  # too short to be fitted alone
            continue
        if abs(common - delays.common[0]) > max(3 * np.hypot(sigma, delays.common[1]), abs(delays.common[0]) / 2):
            unlike.append(source.label)
    return unlike


def _late(delays: Delays, thresholds: Thresholds, unlike: Sequence[str]) -> Iterator[Reason]:
    if delays.has_common:
        text = f"torques seem {_when(*delays.common, ' against positions,')} on all joints together"
        text += f"{'' if delays.common[0] > 0 else ', or positions late'}: {_LOOKS_LIKE}"
        remedy = common_remedy(delays, unlike)
    elif delays.late_positions:
        joint, late = next(iter(delays.late_positions.items()))
        text = f"the position of {joint} is {_when(late, _sigma_of(delays, joint), ' against all torques,')}"
        text += ", which explains more than a torque of that joint that is not in time"
        remedy = (
            f"mend its stamps, or the filter of its column, in every log: shift it by {-1e3 * late:.3g} ms; no "
            "--joint-delay corrects this, which moves its torque"
        )
    elif delays.significant:
        worst = sorted(delays.significant, key=lambda e: -abs(delays.delay[e]) / delays.sigma[e])
        named = [f"{_called(delays, e)} {_when(delays.delay[e], delays.sigma[e])}" for e in worst]
        text = f"not all torques are in time with positions, {first_named(named)}: {_LOOKS_LIKE}"
        remedy = (
            "check how that torque is stamped and filtered; if it is not in time, identify with "
            f"{delays.joint_remedy(worst[0])}; if it is, the model lacks something there"
        )
        if delays.corrected:
            remedy = (
                f"identify without --delay, which moved all torques by {1e3 * delays.corrected:.3g} ms; the torque "
                "that is not in time is named then, with its --joint-delay"
            )
    else:
        return
    yield Reason(text, remedy, "delay", "fair" if is_late(delays, thresholds) else None)


def common_remedy(delays: Delays, unlike: Sequence[str] = ()) -> str:
    """Return what to do about a common delay.

    Args:
        delays: The delays.
        unlike: Validation recordings that do not have it.
    """
    if unlike:
        named = first_named([f"'{label}'" for label in unlike])
        return f"mend the stamps of the recordings of the fit: {delays.remedy} would move {named} too, which is not so"
    if delays.common[0] > 0:
        return f"identify with {delays.remedy}, which puts the torques back in time; or mend the log's stamps"
    return (
        "look for a late stamp or filter of the positions first, since torques are rarely early, and mend it; or "
        f"identify with {delays.remedy}, which gives the same parameters if positions and velocities of all joints are "
        "late alike in all logs, those to predict too"
    )


def _sigma_of(delays: Delays, joint: str) -> float:
    return float(min(delays.sigma[e] for e, (_, name) in enumerate(delays.equations) if name == joint))


def _when(delay: float, sigma: float, against: str = "") -> str:
    """Return whether a torque is late or early, and by how much."""
    size = f"{1e3 * abs(delay):.2g} +- {1e3 * sigma:.1g} ms"
    if abs(delay) >= LARGEST_DELAY:
        size = f"{1e3 * LARGEST_DELAY:.0f} ms or more"
    return f"{'late' if delay > 0 else 'early'}{against} by {size}"


def _called(delays: Delays, e: int) -> str:
    kind, joint = delays.equations[e]
    return f"{joint} ({kind})"


def _cure(delays: Delays) -> str:
    if delays.has_common:
        return "; correct the delay (--delay)"
    if delays.late_positions:
        return "; mend the position that is not in time"
    return "; mend the torques that are not in time" if delays.significant else ""


def _moved(found: Identification, bias: Bias) -> Iterator[Reason]:
    """Yield which parameters the delay moves out of their intervals."""
    ratio = bias.delays.bias / found.fit.of_rows.sigma
    worst = [int(k) for k in np.argsort(-np.abs(ratio)) if abs(ratio[k]) > _INTERVAL]
    if worst:
        names = found.equations.base.name_of
        named = first_named([f"{names[bias.columns[k]]} ({ratio[k]:+.1f} sigma)" for k in worst], most=_MOST_NAMED)
        yield Reason(
            f"torques that are not in time move parameters out of their 95 % intervals: {named}",
            "correct the delay and identify again; until then do not use them as physical constants",
            "delay",
            "fair",
            "known",
        )
