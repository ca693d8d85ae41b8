"""Plan of a filter: its start, its free parameters and its noise, resolved before the first sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import EstimateError
from ..evidence import Evidence, Prior
from .engines import Arms
from .noises import Noises, band_limited, noises_of
from .settings import KalmanSettings
from .start import FilterStart, RecordedPostures, free_columns, start_of

SIGN_PART = 1 / 3
"""Width of the sign of a direction that is held, as a part of the slowest joint's speed of standstill."""

LEAST_WIDTH = 1e-4
"""Where no speed counts as standstill [rad/s or m/s]."""


@dataclass(frozen=True, eq=False)
class FilterPlan:
    """A filter before it runs.

    Attributes:
        evidence: The recordings.
        settings: The settings.
        start: Where the parameters start.
        free: Which of them are estimated.
        noises: Deviations for each recording.
        sign_width: Width of the sign [rad/s or m/s].
        standstill: Speed of each joint below which its friction is not trusted (n,) [rad/s or m/s]; 0 for none.
        least: Least pivots of the inertia matrix that count as a possible arm (n,); 0: positive ones.
        impossible: Share of the postures at which least squares of all rows has no positive pivot, by joint (n,).
    """

    evidence: Evidence
    settings: KalmanSettings
    start: FilterStart
    free: tuple[int, ...]
    noises: tuple[Noises, ...]
    sign_width: float
    standstill: np.ndarray
    least: np.ndarray
    impossible: np.ndarray

    @property
    def joints(self) -> int:
        """Number of joints n."""
        return len(self.evidence.equations.joints)

    @property
    def smoothing_cutoff(self) -> float | None:
        """Where the measured motion is smoothed [Hz]; None if derivatives are not taken along it."""
        settings, resolved = self.settings, self.evidence.sources[0].resolved
        if settings.derivatives == "predicted" or settings.process == "state":
            return None
        return resolved.cutoff or resolved.proposed_cutoff

    @property
    def rate(self) -> float:
        """Rate of the samples [Hz]."""
        return self.evidence.sources[0].resolved.rate


def plan_of(evidence: Evidence, settings: KalmanSettings, prior: Prior) -> FilterPlan:
    """Return the plan of a filter: everything that was left open found from the data.

    Raises:
        EstimateError: If settings, prior and evidence do not fit each other.
    """
    for source in evidence.sources:
        if settings.observe == "q_qd" and source.template.qd is None:
            raise EstimateError(
                f"ekf observe 'q_qd': recording '{source.label}' has no recorded velocity; observe q, or declare the "
                "qd channel"
            )
    free = tuple(free_columns(evidence.columns, settings.locked))
    postures = RecordedPostures(evidence, free, held=settings.sign_width is None)
    start = start_of(evidence, settings, prior, postures)
    least = postures.least_pivots(start.values, evidence.plain.values)
    noises = [noises_of(evidence, source, settings) for source in evidence.sources]
    if settings.process == "torque" and least.any():
        cutoff = evidence.sources[0].resolved.cutoff
        pushed = [postures.accelerations(start.values, each.process) for each in noises]
        noises = [band_limited(each, settings, a, cutoff) for each, a in zip(noises, pushed, strict=True)]
    impossible = (postures.pivots(evidence.plain.values) <= 0).mean(axis=1)
    width, standstill = settings.sign_width, np.zeros(len(evidence.equations.joints))
    if width is None:
        standstill = evidence.sources[0].resolved.standstill
        known = standstill[standstill > 0]
        width = max(SIGN_PART * float(known.min()) if len(known) else 0.0, LEAST_WIDTH)
    return FilterPlan(evidence, settings, start, free, tuple(noises), width, standstill, least, impossible)


def arms_of(plan: FilterPlan, index: int) -> Arms:
    """Return what is made of a plan's arm in one of its recordings."""
    evidence = plan.evidence
    return Arms(
        evidence.equations, evidence.columns, plan.free, loaded=evidence.sources[index].loaded,
        held=plan.settings.sign_width is None,
    )  # fmt: skip
