"""From rows to the estimate by the method chosen, with the noise model beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
    noise_explains,
    ordinary,
    towards_prior,
    with_correlated_noise,
)
from ..judge import with_covariance
from ..observe import (
    Equations,
    Observations,
    RowSource,
    SettledPreparation,
    Whitening,
    equations_of,
    settle,
)
from ..progress import Progress, silent
from ..recording import RecordingsLike, load_recordings
from ..robot import AnyRobot, load_robot
from ..text import short_repr
from .ground import Ground, asked_of, evidence_of, ground_of, resolved_prior, sources_of
from .inputs import labels_of, model_of, settings_of, without_locked
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
        slow_noise: Whether slow noise alone explains that it fitted worse.
        detail: What a method beyond least squares tells besides: its history in time, its tests, its notes.
        plain: Weighted least squares of the same recordings, for such a method; None otherwise.
        without_prior: The estimate before it was drawn towards a prior; None if there was none.
    """

    __repr__ = short_repr

    estimate: Estimate
    observations: Observations
    used: Observations
    noise: NoiseModel
    raw: System
    distrust: float = 0.0
    slow_noise: bool = False
    detail: Estimated | None = None
    plain: Estimate | None = None
    without_prior: Estimate | None = None

    @property
    def of_data(self) -> Estimate:
        """What the data alone say: a prior must not hide a reversed sign."""
        return self.without_prior or self.estimate

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

    __repr__ = short_repr

    equations: Equations
    settled: SettledPreparation
    sources: tuple[RowSource, ...]
    fit: Fit


def fit_arm(
    robot: AnyRobot,
    recordings: RecordingsLike,
    settings: Settings | None = None,
    *,
    payload: str | None = None,
    equations: Equations | None = None,
    settled: SettledPreparation | None = None,
    progress: Progress = silent,
) -> Fitted:
    """Estimate the parameters from all of the recordings; nothing is held out and nothing judged.

    Args:
        robot: The arm, its catalogue name or the path of its file.
        recordings: Recordings to fit, or the paths of their logs.
        settings: Choices; the defaults if not given.
        payload: ``none``, ``loaded`` or ``paired``; None: as the recordings say.
        equations: Those of an earlier fit of the same arm and settings: saves building and compiling them again.
        settled: That of an earlier fit of recordings with the very same motion and settings: saves finding it again.
        progress: Told how far it is.
    """
    robot, settings = load_robot(robot), settings_of(settings)
    given = load_recordings(robot, recordings)
    labels = labels_of(given)
    moving = [without_locked(one, label, settings.lock) for label, one in zip(labels, given, strict=True)]
    labelled = tuple(zip(labels, moving, strict=True))
    if equations is None:
        equations = equations_of(model_of(robot, labelled, (), settings, payload))
    settled = settled or settle(settings.preparation, moving)
    sources = sources_of(labelled, equations, settled)
    return Fitted(equations, settled, tuple(sources), fit_sources(sources, equations, settings, progress))


def fit_sources(
    sources: Sequence[RowSource], equations: Equations, settings: Settings, progress: Progress = silent
) -> Fit:
    """Reduce the rows and estimate the parameters.

    Raises:
        EstimateError: If a joint never moves, or there are fewer rows than parameters.
    """
    ground = ground_of(sources, equations, settings, progress)
    if settings.method in ESTIMATORS:
        evidence, asked = evidence_of(ground), asked_of(equations, settings)
        found = ESTIMATORS[settings.method](evidence, asked.settings, asked.prior, progress)
        return completed(estimated_fit(ground, evidence, found), ground, settings)
    if settings.method == "gls":
        return completed(_generalised(ground, settings), ground, settings)
    chosen = ground.plain
    if settings.method != "wls":
        chosen = _OTHERS[settings.method](ground.observations, ground.raw.columns)
    noise = with_correlated_noise(sources, ground.plain).noise
    return completed(Fit(chosen, ground.observations, ground.observations, noise, ground.raw), ground, settings)


def estimated_fit(ground: Ground, evidence: Evidence, found: Estimated) -> Fit:
    """Return the fit from what such a method found."""
    observations = ground.observations
    return Fit(
        found.estimate, observations, observations, evidence.noise, ground.raw, detail=found, plain=evidence.correlated
    )


def completed(fit: Fit, ground: Ground, settings: Settings) -> Fit:
    """Return the fit with the covariance that was asked for, drawn towards the prior where that is not its start."""
    estimate = fit.estimate
    if settings.covariance is not None:
        estimate = _with_covariance(settings.covariance, fit, ground.sources)
    if settings.prior and settings.method not in PRIOR_IS_START:
        drawn = towards_prior(estimate, resolved_prior(ground.equations, settings))
        return replace(fit, estimate=drawn, without_prior=estimate)
    return replace(fit, estimate=estimate)


def _generalised(ground: Ground, settings: Settings) -> Fit:
    """Return generalised least squares, or weighted with the covariance of correlated noise where it fits much worse.

    Whether noise explains the difference decides what is said and not what is used: on real arms its answer changes
    with a few seconds more or less, and sigmas with it, by up to nine times.
    """
    gls = generalised(ground.sources, ground.plain, threads=settings.threads)
    worse = misfit(ground.plain, gls.estimate)
    if worse <= TRUSTED:
        return Fit(gls.estimate, ground.observations, gls.whitened, gls.noise, ground.raw)
    held = with_correlated_noise(ground.sources, ground.plain, ground.observations)
    return Fit(
        held.estimate, ground.observations, ground.observations, held.noise, ground.raw,
        distrust=worse, slow_noise=noise_explains(ground.sources, ground.plain, gls),
    )  # fmt: skip


def _with_covariance(kind: str, fit: Fit, sources: Sequence[RowSource]) -> Estimate:
    if kind == "model" and fit.estimate.covariance_kind != "model":
        return with_correlated_noise(sources, fit.estimate, fit.used).estimate
    return with_covariance(kind, fit.estimate, fit.used, sources, fit.whitening)


_OTHERS = {"ols": ordinary, "iterated": iterated}
