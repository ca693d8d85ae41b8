"""From rows to the estimate by the method chosen, with the noise model beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..errors import EstimateError
from ..estimate import (
    TRUSTED,
    Estimate,
    Estimated,
    Evidence,
    NoiseModel,
    System,
    generalised,
    iterated,
    misfit,
    ordinary,
    stacked_system,
    towards_prior,
    weighted,
    with_correlated_noise,
)
from ..judge import with_covariance
from ..model import resolve_name
from ..observe import (
    AnyRecording,
    Equations,
    Observations,
    RowSource,
    SettledPreparation,
    Whitening,
    equations_of,
    reduce_rows,
    row_source,
    settle,
)
from ..progress import Progress, silent
from ..robot import Robot
from .inputs import Labelled, labels_of, model_of
from .methods import ESTIMATORS, PRIOR_IS_START
from .settings import Settings


@dataclass(frozen=True, eq=False)
class Fit:
    """An estimate with what it rests on.

    Attributes:
        estimate: All base parameters that the data excite.
        observations: Factors of the rows as they are.
        used: The factors that gave the estimate: of whitened rows for ``gls``, else ``observations``.
        noise: The noise model.
        raw: The stack of all rows, unweighted: for the raw condition number.
        distrust: Where generalised least squares was asked for and not used: how much worse it fitted; else 0.
        detail: What a method beyond least squares tells besides: its history in time, its tests, its notes.
        plain: Weighted least squares of the same recordings, for such a method; None otherwise.
    """

    estimate: Estimate
    observations: Observations
    used: Observations
    noise: NoiseModel
    raw: System
    distrust: float = 0.0
    detail: Estimated | None = None
    plain: Estimate | None = None

    @property
    def whitening(self) -> Whitening | None:
        """How the rows of the estimate were whitened, if they were."""
        return None if self.used is self.observations else self.noise.whitening


@dataclass(frozen=True, eq=False)
class Fitted:
    """Recordings fitted and not judged.

    Attributes:
        equations: Model, base parameters and rows.
        settled: Filters and decimation.
        sources: The rows of every recording.
        fit: The estimate with what it rests on.
    """

    equations: Equations
    settled: SettledPreparation
    sources: tuple[RowSource, ...]
    fit: Fit


def fit_arm(
    robot: Robot,
    recordings: Sequence[AnyRecording],
    settings: Settings | None = None,
    *,
    payload: str | None = None,
    equations: Equations | None = None,
    progress: Progress = silent,
) -> Fitted:
    """Estimate the parameters from all of the recordings; nothing is held out and nothing judged.

    Args:
        robot: The arm.
        recordings: Recordings to fit.
        settings: Choices; the defaults if not given.
        payload: ``none``, ``loaded`` or ``paired``; None: as the recordings say.
        equations: Those of an earlier fit of the same arm and settings: saves building and compiling them again.
        progress: Told how far it is.
    """
    settings = settings or Settings()
    labelled = tuple(zip(labels_of(recordings), recordings, strict=True))
    if equations is None:
        equations = equations_of(model_of(robot, labelled, (), settings, payload))
    settled = settle(settings.preparation, recordings)
    sources = sources_of(labelled, equations, settled)
    return Fitted(equations, settled, tuple(sources), fit_sources(sources, equations, settings, progress))


def sources_of(recordings: Sequence[Labelled], equations: Equations, settled: SettledPreparation) -> list[RowSource]:
    """Return the rows of recordings with their labels."""
    return [row_source(recording, equations, settled, label) for label, recording in recordings]


def fit_sources(
    sources: Sequence[RowSource], equations: Equations, settings: Settings, progress: Progress = silent
) -> Fit:
    """Reduce the rows and estimate the parameters.

    Raises:
        EstimateError: If a joint never moves, or there are fewer rows than parameters.
    """
    observations = reduce_rows(sources, threads=settings.threads, progress=progress)
    check_motion(sources)
    raw = stacked_system(observations, equations.names)
    plain = weighted(observations, raw.columns)
    if settings.method == "gls":
        fit = _generalised(sources, plain, observations, raw, settings)
    elif settings.method in ESTIMATORS:
        fit = _estimated(sources, equations, plain, observations, raw, settings, progress)
    else:
        chosen = plain if settings.method == "wls" else _OTHERS[settings.method](observations, raw.columns)
        fit = Fit(chosen, observations, observations, with_correlated_noise(sources, plain).noise, raw)
    estimate = fit.estimate
    if settings.covariance is not None:
        estimate = _with_covariance(settings.covariance, fit, sources)
    if settings.prior and settings.method not in PRIOR_IS_START:
        estimate = towards_prior(estimate, resolved_prior(equations, settings))
    return replace(fit, estimate=estimate)


def _generalised(
    sources: Sequence[RowSource], plain: Estimate, observations: Observations, raw: System, settings: Settings
) -> Fit:
    """Return generalised least squares; weighted with correlated noise where the residuals are not noise alone."""
    gls = generalised(sources, plain, threads=settings.threads)
    worse = misfit(plain, gls.estimate)
    if worse <= TRUSTED:
        return Fit(gls.estimate, observations, gls.whitened, gls.noise, raw)
    held = with_correlated_noise(sources, plain)
    return Fit(held.estimate, observations, observations, held.noise, raw, distrust=worse)


def _estimated(
    sources: Sequence[RowSource],
    equations: Equations,
    plain: Estimate,
    observations: Observations,
    raw: System,
    settings: Settings,
    progress: Progress,
) -> Fit:
    """Return the estimate of a method that sees more than the factors: rows in time, or the samples themselves."""
    held = with_correlated_noise(sources, plain)
    evidence = Evidence(tuple(sources), equations, plain, held.noise, held.estimate)
    prior = resolved_prior(equations, settings)
    locked = tuple(column_name(equations, name) for name in settings.ekf.locked)
    chosen = replace(settings, ekf=replace(settings.ekf, locked=locked))
    found = ESTIMATORS[settings.method](evidence, chosen, prior, progress)
    return Fit(found.estimate, observations, observations, held.noise, raw, detail=found, plain=held.estimate)


def _with_covariance(kind: str, fit: Fit, sources: Sequence[RowSource]) -> Estimate:
    if kind == "model" and fit.estimate.covariance_kind != "model":
        return with_correlated_noise(sources, fit.estimate).estimate
    return with_covariance(kind, fit.estimate, fit.used, sources, fit.whitening)


_OTHERS = {"ols": ordinary, "iterated": iterated}


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
    """Refuse recordings in which a joint never moves at all."""
    still = set.intersection(*(set(source.still_joints) for source in sources))
    if still:
        joint = sorted(still)[0]
        raise EstimateError(
            f"joint '{joint}' never moves in any recording: its friction and inertia cannot be seen; record motion of "
            "it, or lock it (robot.with_locked in Python) to identify the others alone"
        )
