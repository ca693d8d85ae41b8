"""Estimation from prepared rows by the chosen method, with a noise model; many experiments of one arm together.

Every method begins with the factors of the rows and their weighted least squares (:mod:`steelyard.estimators`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ..errors import SteelyardError
from ..estimate import (
    TRUSTED,
    Estimate,
    Estimated,
    Evidence,
    NoiseModel,
    RobustFit,
    System,
    misfit,
    noise_explains,
    robust_fit,
    stacked_system,
    towards_prior,
    weighted,
    with_correlated_noise,
)
from ..estimators import ESTIMATORS
from ..judge import with_covariance
from ..model import resolve_name
from ..observe import (
    Equations,
    Observations,
    ResolvedPreparation,
    RowSource,
    Whitening,
    equations_of,
    reduce_rows,
    resolve_preparation,
)
from ..progress import Progress, silent
from ..recording import Recording, RecordingsLike, load_recordings
from ..robot import AnyRobot, Robot, load_robot
from ..text import short_repr
from .inputs import check_motion, labels_of, model_of, settings_of, sources_of, with_found_inertias, without_locked
from .settings import Settings, refuse_nonlinear

Prior = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, eq=False)
class PreparedRows:
    """Where every method begins: rows, their factors, and weighted least squares of them.

    Attributes:
        sources: The rows of every recording; with robust weights, those with pseudo-observations.
        equations: Model, base parameters and rows.
        observations: Factors of the rows.
        raw: The stack of all rows, unweighted.
        plain: Weighted least squares.
        robust: The robust estimate that made the pseudo-observations; None without robust weights.
    """

    sources: tuple[RowSource, ...]
    equations: Equations
    observations: Observations
    raw: System
    plain: Estimate
    robust: RobustFit | None = None


def prepare_rows(
    sources: Sequence[RowSource], equations: Equations, settings: Settings, progress: Progress = silent
) -> PreparedRows:
    """Reduce the rows.

    Raises:
        EstimateError: If a joint never moves, or there are fewer rows than parameters.
    """
    observations = reduce_rows(sources, threads=settings.threads, progress=progress)
    check_motion(sources)
    raw = stacked_system(observations, equations.names)
    plain = weighted(observations, raw.columns)
    if settings.robust is None:
        return PreparedRows(tuple(sources), equations, observations, raw, plain)
    robust = robust_fit(sources, plain, settings.robust, threads=settings.threads)
    return PreparedRows(robust.sources, equations, robust.observations, raw, robust.estimate, robust)


def evidence_of(prepared: PreparedRows) -> Evidence:
    """Return what estimators get that work on rows in time, or on the samples themselves."""
    held = with_correlated_noise(prepared.sources, prepared.plain, prepared.observations)
    return Evidence(prepared.sources, prepared.equations, prepared.plain, held.noise, held.estimate)


def method_inputs(equations: Equations, settings: Settings) -> tuple[Any, Prior]:
    """Return the settings of the method and the prior, with names of columns in place of base names and aliases."""
    own = settings.of_method
    if hasattr(own, "locked"):
        own = replace(own, locked=tuple(column_name(equations, name) for name in own.locked))
    return own, resolved_prior(equations, settings)


def resolved_prior(equations: Equations, settings: Settings) -> dict[str, tuple[float, float]]:
    """Return the prior by column name; base names (``ZZ2R``) and aliases (``ZZ[link]``) are understood."""
    return {column_name(equations, name): value for name, value in settings.prior.items()}


def column_name(equations: Equations, name: str) -> str:
    """Return the column of a base parameter from its own name, that of its base column, or an alias."""
    for base in equations.base.base:
        if name in (base.name, base.column):
            return base.column
    return resolve_name(equations.model.robot, equations.model.parameters, name)


@dataclass(frozen=True, eq=False)
class ArmFit:
    """An estimate with what it rests on.

    Attributes:
        estimate: All base parameters that the data excite.
        observations: Factors of the rows as they are.
        used: The factors that gave the estimate: of whitened rows for ``gls``, else ``observations``.
        noise: The noise model.
        raw: The stack of all rows, unweighted: for the raw condition number.
        distrust: Where generalised least squares was requested and not used: how much worse it fitted; else 0.
        slow_noise: Whether slow noise alone explains that it fitted worse.
        detail: Further results of a method beyond least squares: its history in time, its tests, its notes.
        plain: Weighted least squares of the same recordings, for such a method; None otherwise.
        without_prior: The estimate before it was drawn towards a prior; None if there was none.
        links_open: The estimate with chosen effects drawn to zero and links not drawn; None if neither was.
        robust: How rows were down-weighted; None without robust weights. All factors are then of pseudo-observations.
        constants_held: The estimate with nonlinear parameters held at the values found, of the same factors; None if
            none were estimated.
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
    links_open: Estimate | None = None
    robust: RobustFit | None = None
    constants_held: Estimate | None = None

    @property
    def of_links(self) -> Estimate:
        """What data say of links: consistent parameters have a reference of their own."""
        return self.links_open or self.estimate

    @property
    def of_data(self) -> Estimate:
        """What the data alone say: a prior must not hide a reversed sign."""
        return self.without_prior or self.estimate

    @property
    def of_rows(self) -> Estimate:
        """Least squares of the rows themselves, nonlinear parameters and all else held: what refits compare with."""
        return self.constants_held or (self.estimate if self.links_open is None else self.of_data)

    @property
    def method_text(self) -> str:
        """The method as ``--method`` names it, and whether priors of chosen effects were added to it."""
        return self.estimate.method if self.links_open is None else f"{self.of_data.method} with priors"

    @property
    def whitening(self) -> Whitening | None:
        """How the rows of the estimate were whitened, if they were."""
        return None if self.used is self.observations else self.noise.whitening


@dataclass(frozen=True, eq=False)
class Fitted:
    """Recordings fitted and not judged.

    Attributes:
        equations: Model, base parameters and rows.
        resolved: Filters and decimation.
        sources: The rows of every recording.
        fit: The estimate with what it rests on.
    """

    __repr__ = short_repr

    equations: Equations
    resolved: ResolvedPreparation
    sources: tuple[RowSource, ...]
    fit: ArmFit


def fit_arm(
    robot: AnyRobot,
    recordings: RecordingsLike,
    settings: Settings | None = None,
    *,
    payload: str | None = None,
    equations: Equations | None = None,
    resolved: ResolvedPreparation | None = None,
    progress: Progress = silent,
) -> Fitted:
    """Estimate the parameters from all of the recordings; nothing is held out and nothing judged.

    Args:
        robot: The arm, its catalogue name or the path of its file.
        recordings: Recordings to fit, or the paths of their logs.
        settings: Choices; the defaults if not given.
        payload: ``none``, ``loaded`` or ``paired``; None: as the recordings say.
        equations: Those of an earlier fit of the same arm and settings: saves building and compiling them again.
        resolved: That of an earlier fit of recordings with the very same motion and settings: saves finding it again.
        progress: Progress callback, called with done and total.
    """
    robot, settings = load_robot(robot), settings_of(settings)
    refuse_nonlinear(settings, "fits that are not judged, as those of studies")
    given = load_recordings(robot, recordings)
    labels = labels_of(given)
    moving = [without_locked(one, label, settings.lock) for label, one in zip(labels, given, strict=True)]
    labelled = tuple(zip(labels, moving, strict=True))
    resolved = resolved or resolve_preparation(settings.preparation, moving)
    if equations is None:
        model = model_of(robot, labelled, (), settings, payload)
        equations = equations_of(with_found_inertias(model, labelled, resolved, settings))
    sources = sources_of(labelled, equations, resolved)
    return Fitted(equations, resolved, tuple(sources), fit_sources(sources, equations, settings, progress))


def fit_sources(
    sources: Sequence[RowSource], equations: Equations, settings: Settings, progress: Progress = silent
) -> ArmFit:
    """Reduce the rows and estimate the parameters.

    Raises:
        EstimateError: If a joint never moves, or there are fewer rows than parameters.
    """
    prepared = prepare_rows(sources, equations, settings, progress)
    estimator = ESTIMATORS[settings.method]
    if estimator.data == "rows":
        evidence = evidence_of(prepared)
        found = estimator.load()(evidence, *method_inputs(equations, settings), progress)
        return completed(estimated_fit(prepared, evidence, found), prepared, settings)
    if estimator.data == "whitened":
        return completed(_generalised(prepared, settings), prepared, settings)
    chosen, observations = prepared.plain, prepared.observations
    if settings.method != "wls":
        own = (settings.of_method,) if estimator.settings else ()
        chosen = estimator.load()(observations, prepared.raw.columns, *own)
    noise = with_correlated_noise(prepared.sources, prepared.plain).noise
    return completed(ArmFit(chosen, observations, observations, noise, prepared.raw), prepared, settings)


def estimated_fit(prepared: PreparedRows, evidence: Evidence, found: Estimated) -> ArmFit:
    """Return the fit from what such a method found."""
    observations, noise = prepared.observations, evidence.noise
    return ArmFit(
        found.estimate, observations, observations, noise, prepared.raw, detail=found, plain=evidence.correlated
    )


def completed(fit: ArmFit, prepared: PreparedRows, settings: Settings) -> ArmFit:
    """Return the fit with the requested covariance, drawn towards the prior where that is not its start."""
    fit = replace(fit, robust=prepared.robust)
    estimate = fit.estimate
    if settings.covariance == "model" and estimate.covariance_kind != "model":
        estimate = with_correlated_noise(prepared.sources, estimate, fit.used).estimate
    elif settings.covariance is not None:
        estimate = with_covariance(settings.covariance, estimate, fit.used, prepared.sources, fit.whitening)
    if settings.prior and not ESTIMATORS[settings.method].starts_at_prior:
        drawn = towards_prior(estimate, resolved_prior(prepared.equations, settings))
        return replace(fit, estimate=drawn, without_prior=estimate)
    return replace(fit, estimate=estimate)


def _generalised(prepared: PreparedRows, settings: Settings) -> ArmFit:
    """Return generalised least squares, or weighted with the covariance of correlated noise where it fits much worse.

    Whether noise explains the difference decides what is said and not what is used: on real arms its answer changes
    with a few seconds more or less, and sigmas with it, by up to nine times.
    """
    own = (settings.of_method,) if ESTIMATORS[settings.method].settings else ()
    gls = ESTIMATORS[settings.method].load()(prepared.sources, prepared.plain, *own, threads=settings.threads)
    worse = misfit(prepared.plain, gls.estimate)
    if worse <= TRUSTED:
        return ArmFit(gls.estimate, prepared.observations, gls.whitened, gls.noise, prepared.raw)
    held = with_correlated_noise(prepared.sources, prepared.plain, prepared.observations)
    return ArmFit(
        held.estimate, prepared.observations, prepared.observations, held.noise, prepared.raw,
        distrust=worse, slow_noise=noise_explains(prepared.sources, prepared.plain, gls),
    )  # fmt: skip


_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class _Begun:
    """An experiment up to where its method begins."""

    resolved: ResolvedPreparation
    prepared: PreparedRows
    evidence: Evidence
    own: Any
    prior: Prior


def fit_arms(
    robot: Robot,
    experiments: Sequence[Sequence[Recording]],
    settings: Settings,
    equations: Equations,
    resolved: ResolvedPreparation | None = None,
) -> list[Fitted | SteelyardError]:
    """Fit many experiments of an arm, each on its own: the same numbers as :func:`fit_arm` gives for each alone.

    Args:
        robot: The arm.
        experiments: The recordings of each experiment, one a seed for instance.
        settings: Choices for all of them.
        equations: Equations of the arm with these choices.
        resolved: Filters and decimation, if all experiments have the very same motion; None finds them for each.

    Returns:
        For each experiment what :func:`fit_arm` returns, or the error that it raises.
    """
    refuse_nonlinear(settings, "fits that are not judged, as those of studies")
    if not ESTIMATORS[settings.method].many:
        return [
            _tried(lambda own=own: fit_arm(robot, own, settings, equations=equations, resolved=resolved))
            for own in experiments
        ]
    begun = [_tried(lambda own=own: _begun(own, settings, equations, resolved)) for own in experiments]
    found = iter(_found([one for one in begun if isinstance(one, _Begun)], settings))
    return [one if isinstance(one, SteelyardError) else _ended(one, next(found), settings) for one in begun]


def _begun(
    recordings: Sequence[Recording], settings: Settings, equations: Equations, resolved: ResolvedPreparation | None
) -> _Begun:
    resolved = resolved or resolve_preparation(settings.preparation, recordings)
    labelled = tuple(zip(labels_of(recordings), recordings, strict=True))
    prepared = prepare_rows(sources_of(labelled, equations, resolved), equations, settings)
    return _Begun(resolved, prepared, evidence_of(prepared), *method_inputs(equations, settings))


def _found(begun: Sequence[_Begun], settings: Settings) -> Sequence[Estimated | SteelyardError]:
    if not begun:
        return []
    estimator, own, prior = ESTIMATORS[settings.method], begun[0].own, begun[0].prior
    together = estimator.load_many()
    found = _tried(lambda: together([one.evidence for one in begun], own, prior))
    if not isinstance(found, SteelyardError):
        return found
    # One of them cannot be estimated at all: each alone says why.
    alone = estimator.load()
    return [_tried(lambda one=one: alone(one.evidence, own, prior, silent)) for one in begun]


def _ended(begun: _Begun, found: Estimated | SteelyardError, settings: Settings) -> Fitted | SteelyardError:
    if isinstance(found, SteelyardError):
        return found
    prepared = begun.prepared
    fit = _tried(lambda: completed(estimated_fit(prepared, begun.evidence, found), prepared, settings))
    return fit if isinstance(fit, SteelyardError) else Fitted(prepared.equations, begun.resolved, prepared.sources, fit)


def _tried(make: Callable[[], _T]) -> _T | SteelyardError:
    try:
        return make()
    except SteelyardError as error:
        return error


def history_to_json(fit: ArmFit, names: Mapping[str, str]) -> dict[str, Any] | None:
    """Return how the estimate came about in time, with base names by column; None for methods without a history."""
    history = fit.detail and fit.detail.history
    return history and {
        "instants": len(history.time),
        "from": history.time[0],
        "to": history.time[-1],
        "settled_after": {
            names[column]: history.converged_after(column, last)
            for column, last in zip(history.columns, history.values[:, -1], strict=True)
        },
    }


def endogeneity_to_json(fit: ArmFit, names: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the test of the instruments; None for methods without."""
    test = fit.detail and fit.detail.endogeneity
    return test and {
        "statistic": test.statistic, "freedom": test.freedom, "p": test.p,
        "worst": names[test.worst], "worst_in_sigmas": test.worst_z,
    }  # fmt: skip
