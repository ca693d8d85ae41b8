"""Recordings to the most likely parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...errors import EstimateError
from ...progress import Progress, silent
from ...signals import FourierFit, fit_fourier
from ..evidence import Estimated, Evidence, estimate_of
from .basis import motion_basis
from .fit import LikelihoodFit
from .periodic import PeriodicSamples, periodic_samples
from .problem import LikelihoodProblem, LikelihoodRun
from .settings import LikelihoodSettings
from .torque_noise import fit_with_unknown_noise, torque_deviations

NOT_NOISE = 1.5
"""Residuals larger than this many deviations of the noise are not noise alone."""

LEFT_OVER = 0.01
"""Part of a joint's motion that its Fourier series may leave, if what is left is smooth."""

_EXACT = 1e-10


def maximum_likelihood(
    evidence: Evidence,
    settings: LikelihoodSettings,
    prior: Mapping[str, tuple[float, float]],
    progress: Progress = silent,
) -> Estimated:
    """Estimate parameters and motion together from periodic recordings, noise being on torques and positions (P4.2).

    Args:
        evidence: The recordings; their samples are used as they were measured, neither low-passed nor decimated.
        settings: What is known of the motion and the noise.
        prior: Not used: an estimate is drawn towards a prior afterwards, by its covariance.
        progress: Told how far it is.

    Raises:
        EstimateError: If a recording is not periodic, or the parameters cannot be told apart.
    """
    del prior
    samples = []
    for done, source in enumerate(evidence.sources):
        samples.append(periodic_samples(source, settings))
        progress(done + 1, len(evidence.sources) + 1)
    noise = [_torque_deviation(each, settings) for each in samples]
    runs = tuple(
        _run(each, settings, known, evidence.equations.joints) for each, known in zip(samples, noise, strict=True)
    )
    problem = LikelihoodProblem(evidence.equations, evidence.columns, runs, settings.sign_width)
    problem, fit = fit_with_unknown_noise(problem, tuple(known is None for known in noise), settings)
    progress(1, 1)
    freedom = problem.rows - len(problem.columns)
    estimate = estimate_of("ml", "cramer_rao", evidence, fit.values, fit.covariance, freedom)
    notes = [*(each.note for each in samples), *_cautions(problem, fit)]
    return Estimated(estimate, notes=tuple(notes))


def _run(
    samples: PeriodicSamples, settings: LikelihoodSettings, torque: np.ndarray | None, joints: Sequence[str]
) -> LikelihoodRun:
    """Return a recording with its noise; that of torques is 1 where it is not known yet."""
    positions = fit_fourier(samples.q, samples.time, samples.period, samples.lines)
    _check_series(samples, positions, joints)
    basis = motion_basis(samples.time, samples.period, samples.lines)
    if settings.position_noise is None:
        position = _position_deviation(samples, positions)
    else:
        position = _spread_out("position_noise", settings.position_noise, len(joints)) / np.sqrt(samples.averaged)
    torque = np.ones(len(samples.y)) if torque is None else torque
    return LikelihoodRun(samples.q, samples.y, basis, position, torque, samples.loaded, samples.label)


def _torque_deviation(samples: PeriodicSamples, settings: LikelihoodSettings) -> np.ndarray | None:
    """Return the noise of the torques (E,) as given or as periods tell it; None where only residuals can tell it."""
    if settings.torque_noise is not None:
        given = _spread_out("torque_noise", settings.torque_noise, len(samples.y))
        return given / np.sqrt(samples.averaged)
    if samples.spread is None:
        return None
    spread = samples.spread[len(samples.q) :]
    # Periods that are alike to the last digits are those of a simulation, and tell no noise.
    return spread if (spread > _EXACT * np.abs(samples.y).max()).all() else None


def _position_deviation(samples: PeriodicSamples, fit: FourierFit) -> np.ndarray:
    """Return the noise of the positions (n,); what the series cannot follow counts as noise, rounding does not."""
    left = np.sqrt(fit.residual_variance)
    if samples.spread is not None:
        spread = samples.spread[: len(left)]
        left = np.where(left > NOT_NOISE * spread, left, spread)
    return np.where(left <= _EXACT * np.abs(samples.q).max(), 0.0, left)


def _spread_out(what: str, given: tuple[float, ...], count: int) -> np.ndarray:
    if len(given) not in (1, count):
        raise EstimateError(f"ml {what}: got {len(given)} deviations, allowed is one, or one for each of {count}")
    return np.broadcast_to(np.array(given, dtype=float), count).copy()


def _check_series(samples: PeriodicSamples, fit: FourierFit, joints: Sequence[str]) -> None:
    """Refuse a motion that is smooth and yet not the series: another period, more lines, or not periodic."""
    rest = samples.q - fit.evaluate(samples.time)[0]
    motion = np.maximum(samples.q.std(axis=1), np.finfo(float).tiny)
    square = np.maximum((rest**2).mean(axis=1), np.finfo(float).tiny)
    # Von Neumann's ratio: 1 for white noise, near 0 for what is motion.
    ratio = 0.5 * (np.diff(rest, axis=1) ** 2).mean(axis=1) / square
    part = np.where(ratio < 0.5, np.sqrt(square) / motion, 0.0)
    worst = int(np.argmax(part))
    if part[worst] > LEFT_OVER:
        raise EstimateError(
            f"recording '{samples.label}': {100 * part[worst]:.3g} % of the motion of joint '{joints[worst]}' is no "
            f"Fourier series of {samples.period:g} s with {len(samples.lines)} harmonics; give its period and "
            "harmonics, or use gls or iv"
        )


def _cautions(problem: LikelihoodProblem, fit: LikelihoodFit) -> list[str]:
    notes = []
    if not fit.converged:
        notes.append(
            f"the iteration stopped after {fit.iterations} steps, {fit.gradient:.2g} standard deviations from where "
            "the gradient is zero"
        )
    for run, found in zip(problem.runs, torque_deviations(problem, fit), strict=True):
        ratio = found / run.torque_deviation
        worst = int(np.argmax(ratio))
        if ratio[worst] > NOT_NOISE:
            kind, joint = problem.equations.kinds_joints[worst]
            notes.append(
                f"recording '{run.label}': residuals of the {kind} torque of '{joint}' are {ratio[worst]:.3g} times "
                "the noise: the model lacks something there, and these sigmas are too small"
            )
    return notes
