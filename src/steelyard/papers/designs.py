"""Motions designed for the papers: certified searches that report progress and can be interrupted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ..excitation import (
    Certificate,
    DesignLimits,
    DesignSettings,
    Figures,
    Known,
    SearchProgress,
    SearchStart,
    assembled,
)
from ..excitation.assembly import Assembled
from ..excitation.motion_design import RecordedView
from ..excitation.problem import Problem
from ..excitation.search import search
from ..model import Model
from ..motion import Trajectory
from ..progress import Progress, silent
from ..workers import Shared, open_workers
from .claim import Entry


@dataclass(frozen=True, eq=False)
class Arm:
    """A paper's arm: model, limits, known values and default settings of a design."""

    model: Model
    limits: DesignLimits
    known: Known
    settings: DesignSettings

    def ready(self, settings: DesignSettings, known: Known | None = None) -> Assembled:
        """Return the design problem for other settings, and for other known values if given."""
        return assembled(self.model, self.limits, settings, known or self.known)


@dataclass(frozen=True, eq=False)
class Designed:
    """The best motion of a search, with its proof.

    Attributes:
        trajectory: The motion.
        figures: What it gives at the recording's own samples.
        value: The objective there.
        torques: Torques (n, N) of the run with payload, or of the only run; none of them (n, 0) if unknown [N m].
        rate: Their rate [Hz].
        certificate: The proof that every limit is kept at every instant.
        starts: What became of each start.
    """

    trajectory: Trajectory
    figures: Figures
    value: float
    torques: np.ndarray
    rate: float
    certificate: Certificate
    starts: tuple[SearchStart, ...]

    @property
    def mean_torques(self) -> np.ndarray:
        """Mean absolute torques (n,) [N m]; NaN if unknown."""
        if not self.torques.size:
            return np.full(len(self.torques), np.nan)
        return np.abs(self.torques).mean(axis=1)

    @property
    def spread(self) -> str:
        """Objectives of the starts after the coarse iterations, smallest to largest."""
        values = sorted(start.value for start in self.starts)
        return f"{values[0]:.4g} to {values[-1]:.4g}" if len(values) > 1 else f"{values[0]:.4g}"


def designed(
    ready: Assembled, settings: DesignSettings, progress: Progress = silent, problem: Problem | None = None
) -> Designed:
    """Search for the best motion of a problem.

    Args:
        ready: The problem with its certifier and forecast.
        settings: Starts, seed and threads of the search.
        progress: Progress callback, called with done and total.
        problem: The problem, where it differs from that of ``ready``.

    Raises:
        DesignError: If no motion keeps the limits.
        KeyboardInterrupt: If the search was interrupted: a paper is reproduced as a whole or not at all.
    """

    def callback(update: SearchProgress) -> None:
        progress(update.done, update.total)

    shared = Shared(lambda: ready if problem is None else replace(ready, problem=problem))
    with open_workers(workers=settings.threads, threads=True) as workers:
        found = search(shared, workers, starts=settings.starts, seed=settings.seed, callback=callback)
    if found.is_interrupted:
        raise KeyboardInterrupt
    trajectory = found.problem.trajectory(found.best.z)
    forecast = ready.forecast()
    view = RecordedView(forecast, trajectory, found.problem.torques)
    torques = np.zeros((len(trajectory.joints), 0)) if found.problem.torques is None else view.torques()
    return Designed(
        trajectory, forecast(trajectory), found.problem.objective.exact(view), torques, forecast.unknowns.rate,
        found.best.certificate, found.starts,
    )  # fmt: skip


def part_of(progress: Progress, number: int, count: int) -> Progress:
    """Rescale the progress of one of several equal parts to the total."""
    return lambda done, total: progress(number + done / total, count)


def count_within_limits(motions: Mapping[str, Designed]) -> str:
    """Return the number of motions whose limits are all proven at every instant, as text."""
    return f"{sum(each.certificate.holds for each in motions.values())} of {len(motions)}"


def with_starts(settings: DesignSettings, starts: int, threads: int) -> DesignSettings:
    """Return settings with another number of starts and threads."""
    return replace(settings, starts=starts, threads=threads)


def constraint_rows(motions: Mapping[str, Designed]) -> list[list[Entry]]:
    """Return each motion's constraints that are nearest to their limits, over continuous time."""
    rows: list[list[Entry]] = []
    for name, each in motions.items():
        for finding in sorted(each.certificate.findings, key=lambda found: abs(found.limit - found.worst))[:4]:
            rows.append([name, finding.name, finding.worst, finding.limit, finding.instant, finding.violation])
    return rows


CONSTRAINT_COLUMNS = ("motion", "constraint", "worst over continuous time", "limit", "instant s", "violation")
