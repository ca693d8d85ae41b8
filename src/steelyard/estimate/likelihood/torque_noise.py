"""The noise of the torques where nothing but the fit itself tells it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...errors import EstimateError
from ...observe import RowStack
from .fit import LikelihoodFit, likelihood_fit
from .likelihood import Likelihood
from .linearised import RunLikelihood
from .problem import LikelihoodProblem, LikelihoodRun, fitted_motion
from .settings import LikelihoodSettings

MOST_ROUNDS = 10
SETTLED = 1e-3
"""Relative change of the deviations below which they have settled: far below what they are known to."""


def fit_with_unknown_noise(
    problem: LikelihoodProblem, unknown: tuple[bool, ...], settings: LikelihoodSettings
) -> tuple[LikelihoodProblem, LikelihoodFit]:
    """Fit, and take the torques' deviations from the residuals where they are unknown, until they settle.

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
    for _ in range(MOST_ROUNDS if any(unknown) else 0):
        residual = torque_deviations(problem, fit)
        new = tuple(
            _above_zero(mine, run) if is_unknown else run.torque_deviation
            for mine, run, is_unknown in zip(residual, problem.runs, unknown, strict=True)
        )
        change = max(np.abs(np.log(a / b)).max() for a, b in zip(new, found, strict=True))
        problem, found = _with_deviations(problem, new), new
        fit = likelihood_fit(problem, settings, fit)
        if change < SETTLED:
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
    felt = np.any(triangle[:, :-1], axis=0)
    freedom = rows - int(felt.sum())
    if freedom < 1:
        raise EstimateError(f"ml, {label}: {rows} instants for {felt.sum()} parameters; record longer")
    smaller = np.asarray(np.linalg.qr(triangle[:, np.append(felt, True)], mode="r"))
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
