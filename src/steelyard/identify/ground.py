"""Where every method begins: rows reduced, weighted least squares of them, and what was asked in names of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..errors import EstimateError
from ..estimate import Estimate, Evidence, System, stacked_system, weighted, with_correlated_noise
from ..model import resolve_name
from ..observe import Equations, Observations, RowSource, SettledPreparation, reduce_rows, row_source
from ..progress import Progress, silent
from .inputs import Labelled
from .methods import Prior
from .settings import Settings


@dataclass(frozen=True, eq=False)
class Ground:
    """Where every method begins: rows, their factors, and weighted least squares of them.

    Attributes:
        sources: The rows of every recording.
        equations: Model, base parameters and rows.
        observations: Factors of the rows.
        raw: The stack of all rows, unweighted.
        plain: Weighted least squares.
    """

    sources: tuple[RowSource, ...]
    equations: Equations
    observations: Observations
    raw: System
    plain: Estimate


def ground_of(
    sources: Sequence[RowSource], equations: Equations, settings: Settings, progress: Progress = silent
) -> Ground:
    """Reduce the rows.

    Raises:
        EstimateError: If a joint never moves, or there are fewer rows than parameters.
    """
    observations = reduce_rows(sources, threads=settings.threads, progress=progress)
    check_motion(sources)
    raw = stacked_system(observations, equations.names)
    return Ground(tuple(sources), equations, observations, raw, weighted(observations, raw.columns))


def evidence_of(ground: Ground) -> Evidence:
    """Return what a method gets that sees more than the factors: rows in time, or the samples themselves."""
    held = with_correlated_noise(ground.sources, ground.plain, ground.observations)
    return Evidence(ground.sources, ground.equations, ground.plain, held.noise, held.estimate)


@dataclass(frozen=True)
class Asked:
    """Settings and prior with the names of columns, for methods that get evidence."""

    settings: Settings
    prior: Prior


def asked_of(equations: Equations, settings: Settings) -> Asked:
    """Return settings and prior; base names and aliases become names of columns."""
    locked = tuple(column_name(equations, name) for name in settings.ekf.locked)
    return Asked(replace(settings, ekf=replace(settings.ekf, locked=locked)), resolved_prior(equations, settings))


def sources_of(recordings: Sequence[Labelled], equations: Equations, settled: SettledPreparation) -> list[RowSource]:
    """Return the rows of recordings with their labels."""
    return [row_source(recording, equations, settled, label) for label, recording in recordings]


def resolved_prior(equations: Equations, settings: Settings) -> dict[str, tuple[float, float]]:
    """Return the prior by column name; base names (``ZZ2R``) and aliases (``ZZ[link]``) are understood."""
    return {column_name(equations, name): value for name, value in settings.prior.items()}


def column_name(equations: Equations, name: str) -> str:
    """Return the column of a base parameter from its own name, its kept parameter's, or an alias."""
    for base in equations.base.base:
        if name in (base.name, base.kept):
            return base.kept
    return resolve_name(equations.model.robot, equations.model.parameters, name)


def check_motion(sources: Sequence[RowSource]) -> None:
    """Refuse recordings in which a joint never moves at all, unless its equations are left out already."""
    judged = {joint for _, joint in sources[0].equations.kinds_joints}
    still = judged.intersection(*(source.still_joints for source in sources))
    if still:
        joint = sorted(still)[0]
        raise EstimateError(
            f"joint '{joint}' never moves in any recording: its friction and inertia cannot be seen; record motion of "
            f"it, or identify the others alone with --lock {joint}=POSITION, where it was held"
        )
