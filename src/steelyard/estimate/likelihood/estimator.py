"""Maximum likelihood of periodic recordings (P4.2), with the noise of the torques estimated where it is not known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...errors import EstimateError
from ...model import refuse_history
from ...observe import RowStack
from ...progress import Progress, silent
from ...signals import FourierFit, fit_fourier
from ..evidence import Estimated, Evidence, Prior, estimate_of
from .fit import Likelihood, LikelihoodFit, likelihood_fit
from .linearised import RunLikelihood
from .periodic import PeriodicSamples, periodic_samples
from .problem import LikelihoodProblem, LikelihoodRun, LikelihoodSettings, fitted_motion, motion_basis

MOST_ITERATIONS = 10
CONVERGED = 1e-3
"""Relative change of the deviations below which they have converged: far below what they are known to."""


def fit_with_unknown_noise(
    problem: LikelihoodProblem, unknown: tuple[bool, ...], settings: LikelihoodSettings
) -> tuple[LikelihoodProblem, LikelihoodFit]:
    """Fit, and take the torques' deviations from the residuals where they are unknown, until they converge.

    Args:
        problem: What was measured; unknown deviations are any above zero.
        unknown: Which recordings' torque noise is not known.
        settings: Of the iteration.

    Returns:
        The problem with its deviations, and its fit.
    """
    found = tuple(
        own_deviations(problem, run) if is_unknown else run.torque_deviation
        for run, is_unknown in zip(problem.runs, unknown, strict=True)
    )
    problem = _with_deviations(problem, found)
    fit = likelihood_fit(problem, settings)
    for _ in range(MOST_ITERATIONS if any(unknown) else 0):
        residual = torque_deviations(problem, fit)
        new = tuple(
            _above_zero(mine, run) if is_unknown else run.torque_deviation
            for mine, run, is_unknown in zip(residual, problem.runs, unknown, strict=True)
        )
        change = max(np.abs(np.log(a / b)).max() for a, b in zip(new, found, strict=True))
        problem, found = _with_deviations(problem, new), new
        fit = likelihood_fit(problem, settings, fit)
        if change < CONVERGED:
            break
    return problem, fit


def own_deviations(problem: LikelihoodProblem, run: LikelihoodRun) -> np.ndarray:
    """Return the deviation of every equation (E,) at the fitted motion, from its own rows alone (P1.2)."""
    exact = RunLikelihood(
        replace(run, position_deviation=np.zeros(len(run.q)), torque_deviation=np.ones(len(run.y))),
        problem.functions(run), fitted_motion(run),
    )  # fmt: skip
    fitted, zero = exact.fitted.coefficients, np.zeros(len(problem.columns))
    stacks = [RowStack(len(zero) + 1) for _ in run.y]
    for rows in exact.rows(fitted, exact.motion(fitted)[1], zero):
        for stack, part in zip(stacks, rows, strict=True):
            stack.push(part)
    found = np.array([_deviation(stack.triangle(), stack.count, run.label) for stack in stacks])
    return _above_zero(found, run)


def _deviation(triangle: np.ndarray, rows: int, label: str) -> float:
    nonzero = np.any(triangle[:, :-1], axis=0)
    freedom = rows - int(nonzero.sum())
    if freedom < 1:
        raise EstimateError(f"ml, {label}: {rows} instants for {nonzero.sum()} parameters; record longer")
    smaller = np.asarray(np.linalg.qr(triangle[:, np.append(nonzero, True)], mode="r"))
    return abs(float(smaller[-1, -1])) / np.sqrt(freedom)


def torque_deviations(problem: LikelihoodProblem, fit: LikelihoodFit) -> tuple[np.ndarray, ...]:
    """Return the deviation of every recording's torques (E,) from the residuals of a fit.

    ``sigma_e^2 = ||rho_e||^2 / (N - tr H_e)``, H_e the part of the hat matrix that belongs to the equation.
    """
    likelihood = Likelihood(problem)
    state = likelihood.at(fit.values, fit.coefficients, fit.directions)
    triangles, whole = likelihood.linearised(state)
    found = []
    for run, delta, held, triangle in zip(likelihood.runs, fit.coefficients, fit.directions, triangles, strict=True):
        joint = triangle[:-1, :-1].copy()
        joint[run.size :, run.size :] = whole.system.triangle[:-1, :-1]
        inverse = np.linalg.inv(joint)
        leverage = sum(
            np.sum((rows[:, :, :-1] @ inverse) ** 2, axis=(1, 2)) for rows in run.rows(delta, held, fit.values)
        )
        squares = np.sum(run.residual(delta, held, fit.values) ** 2, axis=1)
        found.append(np.sqrt(squares / np.maximum(run.run.y.shape[1] - leverage, 1.0)))
    return tuple(found)


def _above_zero(deviations: np.ndarray, run: LikelihoodRun) -> np.ndarray:
    """Keep a noise-free simulation from giving infinite weights."""
    return np.maximum(deviations, 1e-12 * max(float(np.abs(run.y).max()), 1e-288))


def _with_deviations(problem: LikelihoodProblem, deviations: tuple[np.ndarray, ...]) -> LikelihoodProblem:
    pairs = zip(problem.runs, deviations, strict=True)
    return replace(problem, runs=tuple(replace(run, torque_deviation=each) for run, each in pairs))


NOT_NOISE = 1.5
"""Residuals larger than this many deviations of the noise are not noise alone."""

LEFT_OVER = 0.01
"""Part of a joint's motion that its Fourier series may leave, if what is left is smooth."""

_EXACT = 1e-10


def maximum_likelihood(
    evidence: Evidence, settings: LikelihoodSettings, prior: Prior, progress: Progress = silent
) -> Estimated:
    """Estimate parameters and motion together from periodic recordings, noise being on torques and positions (P4.2).

    Args:
        evidence: The recordings; their samples are used as they were measured, neither low-passed nor decimated.
        settings: What is known of the motion and the noise.
        prior: Not used: an estimate is drawn towards a prior afterwards, by its covariance.
        progress: Progress callback, called with done and total.

    Raises:
        EstimateError: If a recording is not periodic, or not all parameters are identifiable.
    """
    del prior
    refuse_history(evidence.equations.model, "method 'ml'")
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
    """Return the noise of the torques (E,) as given or from the spread between periods; None if neither is there."""
    if settings.torque_noise is not None:
        given = _spread_out("torque_noise", settings.torque_noise, len(samples.y))
        return given / np.sqrt(samples.averaged)
    if samples.spread is None:
        return None
    spread = samples.spread[len(samples.q) :]
    # Periods that are alike to the last digits are those of a simulation, and show no noise.
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
