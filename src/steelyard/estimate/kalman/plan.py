"""All that a filter needs to know before the first sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...observe import raw_samples
from ..evidence import Evidence
from .arm_graph import arm_graph
from .noises import Noises, noises_of
from .settings import KalmanSettings
from .start import Start, free_columns, start_of

STIFFEST = 1.0
"""Most of its speed that friction may take within one step at standstill: both integrators follow that."""

_LOOKED_AT = 50
_LEAST = 1e-4


@dataclass(frozen=True, eq=False)
class Plan:
    """A filter before it runs.

    Attributes:
        evidence: The recordings.
        settings: The settings.
        start: Where the parameters start.
        free: Which of them are estimated.
        noises: Deviations for each recording.
        sign_width: Width of the smooth sign [rad/s or m/s].
    """

    evidence: Evidence
    settings: KalmanSettings
    start: Start
    free: tuple[int, ...]
    noises: tuple[Noises, ...]
    sign_width: float

    @property
    def joints(self) -> int:
        """Number of joints n."""
        return len(self.evidence.equations.joints)

    @property
    def rate(self) -> float:
        """Rate of the samples [Hz]."""
        return self.evidence.sources[0].settled.rate


def plan_of(evidence: Evidence, settings: KalmanSettings, prior: Mapping[str, tuple[float, float]]) -> Plan:
    """Return the plan of a filter: everything that was left open found from the data.

    Raises:
        EstimateError: If settings, prior and evidence do not fit each other.
    """
    free = free_columns(evidence.columns, settings.locked)
    start = start_of(evidence, settings, prior)
    width = settings.sign_width or default_width(evidence, start.values)
    noises = tuple(noises_of(evidence, source, settings) for source in evidence.sources)
    return Plan(evidence, settings, start, tuple(free), noises, width)


def default_width(evidence: Evidence, values: np.ndarray) -> float:
    """Return a width of the smooth sign that data and time step can follow [rad/s or m/s].

    Not below the slowest joint's standstill speed, where the sign is not known; and so wide that Coulomb friction
    takes no more than the whole speed within a step: its rate at standstill is the spectral radius of dqdd/dqd, which
    goes with one over the width. Poses at which the start is no possible arm say nothing of that.

    Args:
        evidence: The recordings.
        values: The parameters at the start (c,).
    """
    source = evidence.sources[0]
    settled, columns = source.settled, evidence.columns
    graph = arm_graph(evidence.equations.model, columns, [0], loaded=source.loaded, sign_width=1.0)
    q = next(raw_samples(source)).q
    n = graph.joints
    still, rates = np.zeros(n), []
    for k in np.linspace(0, q.shape[1] - 1, _LOOKED_AT).astype(int):
        if np.asarray(graph.acceleration(q[:, k], still, still, values)[1]).min() > 0:
            A = np.asarray(graph.sensitivity(q[:, k], still, still, values))[:, :n]
            rates.append(float(np.abs(np.linalg.eigvals(A)).max()))
    stiff = float(np.median(rates)) / settled.rate / STIFFEST if rates else 0.0
    seen = settled.standstill[settled.standstill > 0]
    return max(stiff, float(seen.min()) if len(seen) else 0.0, _LEAST)
