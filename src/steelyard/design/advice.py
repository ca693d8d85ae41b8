"""Which parameters a motion leaves weak, and what would help."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..motion import MotionLimits, Trajectory, at_speed
from .figures import Figures
from .promise import Promise, core_of

WEAK = 0.2
"""Relative sigma from which a parameter counts as weak: the threshold of identification's verdict."""

MOST_REPEATS = 25
"""A recording that would have to be longer than so many times is not worth while."""

FASTER_BY = 1.05
"""Limits that let a motion run by less than this faster count as reached."""

SLOWER = 0.8
"""The same motion at this pace stands for the slower one, and the ratio of sigmas for what speed is worth."""


@dataclass(frozen=True)
class Weak:
    """A parameter that stays weak.

    Attributes:
        name: Its name.
        sigma: Predicted standard deviation.
        relative: Over its size.
        longer: Factor on sigma if the motion is repeated once more.
        faster: Factor on sigma if the motion ran 1.25 times as fast, told from the same motion slowed down.
        others: Factor on sigma if all other parameters were known: near 1 it is not seen, far below it is mistaken
            for others.
        pace_left: How many times faster limits of speed and acceleration would let the motion run.
        payload: How the payload is recorded: ``none``, ``loaded`` or ``paired``.
    """

    name: str
    sigma: float
    relative: float
    longer: float
    faster: float
    others: float
    pace_left: float
    payload: str

    @property
    def remedy(self) -> str:
        """What would help most, in words."""
        if self.others < 0.3 and self.payload == "loaded":
            return "it is mistaken for other parameters: record without the payload too (payload paired)"
        if self.others < 0.3:
            return "it is mistaken for other parameters: more harmonics, or other postures"
        if self.faster < self.longer and self.pace_left > FASTER_BY:
            return f"move faster: 1.25 times the speed makes its sigma {self.faster:.2g} times as large"
        if self.faster < self.longer:
            return (
                f"faster motion would help most (1.25 times the speed: {self.faster:.2g} times its sigma), but limits "
                "of speed are reached: raise them if the arm allows"
            )
        repeats = (self.relative / WEAK) ** 2
        if repeats > MOST_REPEATS:
            return "it is too small beside the noise to be worth finding; finer torques would help, no motion does"
        return f"record longer: about {np.ceil(repeats):.0f} times as long would do"


def weak_parameters(recorded: Trajectory, promise: Promise, figures: Figures, limits: MotionLimits) -> tuple[Weak, ...]:
    """Return the parameters whose predicted relative sigma exceeds 20 %, the weakest first.

    Args:
        recorded: The motion, with its way in and out if it has one.
        promise: Tells what recordings of it know.
        figures: What is promised of it.
        limits: Of speed and acceleration.
    """
    pace_left, payload = _pace_left(core_of(recorded), limits), promise.unknowns.model.payload
    weighted, slower = promise.information(recorded), promise.information(at_speed(recorded, SLOWER))
    earlier = promise.unknowns.earlier
    twice = promise.sigma(2 * weighted) / figures.sigma
    slowed = promise.sigma(SLOWER * slower)
    alone = 1 / np.sqrt(np.diag(weighted if earlier is None else weighted + earlier))
    order = np.argsort(-np.nan_to_num(figures.relative_sigma))
    return tuple(
        Weak(
            figures.names[k], float(figures.sigma[k]), float(figures.relative_sigma[k]), float(twice[k]),
            float(figures.sigma[k] / slowed[k]), float(alone[k] / figures.sigma[k]),
            pace_left, payload,
        )
        for k in order if figures.relative_sigma[k] > WEAK
    )  # fmt: skip


def _pace_left(trajectory: Trajectory, limits: MotionLimits) -> float:
    """Return how many times faster the motion could run before a joint's speed or acceleration is at its limit."""
    extrema = trajectory.in_order(limits.joints).extrema()
    velocity = limits.velocity / np.maximum(extrema.velocity.value, 1e-12)
    acceleration = np.sqrt(limits.acceleration / np.maximum(extrema.acceleration.value, 1e-12))
    return float(min(velocity.min(), acceleration.min()))
