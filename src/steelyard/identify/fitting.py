"""From rows to the estimate by the method chosen, with the noise model beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..errors import EstimateError
from ..estimate import (
    TRUSTED,
    Estimate,
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
from ..observe import Equations, Observations, RowSource, Whitening, reduce_rows
from ..progress import Progress, silent
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
    """

    estimate: Estimate
    observations: Observations
    used: Observations
    noise: NoiseModel
    raw: System
    distrust: float = 0.0

    @property
    def whitening(self) -> Whitening | None:
        """How the rows of the estimate were whitened, if they were."""
        return None if self.used is self.observations else self.noise.whitening


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
    else:
        chosen = plain if settings.method == "wls" else _OTHERS[settings.method](observations, raw.columns)
        fit = Fit(chosen, observations, observations, with_correlated_noise(sources, plain).noise, raw)
    estimate = fit.estimate
    if settings.covariance is not None:
        estimate = _with_covariance(settings.covariance, fit, sources)
    if settings.prior:
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
