"""P3's weights over many simulated experiments: what each claims, and what is true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..calibrate.fit.calibration_settings import CalibrationSettings
from ..calibrate.fit.covariances import covariance_of, overlap
from ..calibrate.fit.fit import Fit, fitted
from ..calibrate.fit.reweighting import weighted_fit
from ..calibrate.records import CalibrationProblem, Equations, Linearised, Parameter
from ..progress import Progress
from .p3_arm import SIGMA0, Experiment3

ETAS = (0.5, 1.0, 2.0)
# A residual of zero would be an infinite weight.
_LEAST_RESIDUAL = 1e-9
OWN_ROUNDS = 4
"""Rounds of weights by own residuals; they never settle."""

Outcome = tuple[np.ndarray, np.ndarray]
"""Values and claimed sigmas, each (k,)."""


@dataclass(frozen=True, eq=False)
class Runs3:
    """Estimates over simulated experiments.

    Attributes:
        truth: True compliances (k,).
        values: Estimates (runs, k) by method.
        sigmas: Sigmas that each claims (runs, k), by method.
    """

    truth: np.ndarray
    values: Mapping[str, np.ndarray]
    sigmas: Mapping[str, np.ndarray]

    @property
    def methods(self) -> Sequence[str]:
        """Names of the methods."""
        return tuple(self.values)

    @property
    def count(self) -> int:
        """Number of experiments."""
        return len(self.values["ols"])

    def has_claim(self, method: str) -> bool:
        """Whether the method says how sure it is."""
        return method in self.sigmas

    def mean(self, method: str) -> np.ndarray:
        """Return the mean estimates (k,)."""
        return self.values[method].mean(axis=0)

    def spread(self, method: str) -> np.ndarray:
        """Return the standard deviations of the estimates over the runs (k,)."""
        return self.values[method].std(axis=0, ddof=1)

    def claimed(self, method: str) -> np.ndarray:
        """Return the claimed sigmas (k,), root mean square over the runs."""
        return np.sqrt(np.mean(self.sigmas[method] ** 2, axis=0))

    def coverage(self, method: str) -> np.ndarray:
        """Return how often three sigmas about the estimate hold the truth (k,)."""
        return (np.abs(self.values[method] - self.truth) <= 3 * self.sigmas[method]).mean(axis=0)

    def moved_by_eta(self) -> np.ndarray:
        """Return by how many sigmas the smallest and the largest eta move the estimates, mean over runs (2, k)."""
        middle = self.values["eta 1"]
        moves = [np.abs(self.values[f"eta {eta:g}"] - middle) for eta in (ETAS[0], ETAS[-1])]
        return np.array([(move / self.sigmas["eta 1"]).mean(axis=0) for move in moves])


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """P3 eq. 4: deflections are linear in the compliances, ``dp = B X``, with the B of the problem's start.

    Attributes:
        parameters: The unknowns (p).
        equations: The measured numbers (E).
        start: Where B holds (p,).
        there: Residuals of exact numbers at the start, and B.
        noise: What is added to exact numbers (E,).
    """

    parameters: tuple[Parameter, ...]
    equations: Equations
    start: np.ndarray
    there: Linearised
    noise: np.ndarray

    def at(self, values: np.ndarray) -> Linearised:
        """Return residuals and B."""
        return Linearised(self.residual(values), self.there.jacobian)

    def residual(self, values: np.ndarray) -> np.ndarray:
        """Return the residuals."""
        return self.there.residual + self.noise - self.there.jacobian @ (values - self.start)

    def taken(self, chosen: np.ndarray) -> LinearProblem:
        """Return some of the equations."""
        part = Linearised(self.there.residual[chosen], self.there.jacobian[chosen])
        return LinearProblem(self.parameters, self.equations.taken(chosen), self.start, part, self.noise[chosen])


def linear_problem(experiment: Experiment3, seed: int) -> LinearProblem:
    """Return P3's linear form with the noise of a seed."""
    problem = experiment.problem
    return LinearProblem(
        tuple(problem.parameters), problem.equations, problem.start, experiment.there, experiment.noise(seed)
    )


@dataclass(frozen=True, eq=False)
class OneRun3:
    """One experiment, as a user has it.

    Attributes:
        rounds: WLS estimates after each estimation of the weights (rounds, k), OLS first.
        ols: 3-sigma intervals of OLS (k, 2).
        wls: 3-sigma intervals of WLS (k, 2).
    """

    rounds: np.ndarray
    ols: np.ndarray
    wls: np.ndarray

    @property
    def overlapping(self) -> int:
        """How many intervals of the two have a point in common."""
        return int(overlap(self.ols, self.wls).sum())

    @property
    def steps(self) -> np.ndarray:
        """Largest change of an estimate by each round, in half widths of the WLS interval (rounds - 1,)."""
        return (np.abs(np.diff(self.rounds, axis=0)) / (np.diff(self.wls).ravel() / 2)).max(axis=1)


def one_run(experiment: Experiment3, columns: np.ndarray, seed: int = 0) -> OneRun3:
    """Return the estimates of one experiment by round, and its intervals."""
    problem = linear_problem(experiment, seed)
    found = {}
    for method in ("ols", "wls"):
        values, sigma = _weighted(problem, columns, CalibrationSettings(method=method, covariance="groups"))
        found[method] = np.column_stack([values - 3 * sigma, values + 3 * sigma])
    rounds = weighted_fit(problem, columns, CalibrationSettings(method="wls")).rounds[:, columns]
    return OneRun3(rounds, found["ols"], found["wls"])


def monte_carlo(experiment: Experiment3, columns: np.ndarray, runs: int, progress: Progress) -> Runs3:
    """Return estimates of the compliances (by number) over experiments with other noise."""
    values: dict[str, list[np.ndarray]] = {}
    sigmas: dict[str, list[np.ndarray]] = {}
    for run in range(runs):
        for method, (found, claimed) in _estimates(linear_problem(experiment, run), columns).items():
            values.setdefault(method, []).append(found)
            if claimed is not None:
                sigmas.setdefault(method, []).append(claimed)
        progress(run + 1, runs)
    return Runs3(
        experiment.truth[columns],
        {name: np.array(rows) for name, rows in values.items()},
        {name: np.array(rows) for name, rows in sigmas.items()},
    )


def _estimates(problem: CalibrationProblem, columns: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray | None]]:
    plain = fitted(problem, columns)
    found: dict[str, tuple[np.ndarray, np.ndarray | None]] = {
        "ols": _weighted(problem, columns, CalibrationSettings(method="ols", covariance="groups")),
        "wls": _weighted(problem, columns, CalibrationSettings(method="wls", covariance="groups")),
        "wls, one round": (
            weighted_fit(problem, columns, CalibrationSettings(method="wls", rounds=1)).fit.values[columns],
            None,
        ),
    }
    found.update(_self_confirmed(problem, columns, plain))
    for eta in ETAS:
        settings = CalibrationSettings(method="eq14", covariance="groups", sigma0=SIGMA0, eta=eta)
        found[f"eta {eta:g}"] = _weighted(problem, columns, settings)
    return found


def _weighted(problem: CalibrationProblem, columns: np.ndarray, settings: CalibrationSettings) -> Outcome:
    weighted = weighted_fit(problem, columns, settings)
    covariance = covariance_of(weighted.fit, problem.equations, weighted.sigmas, settings.covariance)
    return weighted.fit.values[columns], covariance.sigma


def own_residuals(rounds: int) -> str:
    """Return the name of the weights by own residuals after so many rounds."""
    return f"own residuals, round {rounds}"


def _self_confirmed(problem: CalibrationProblem, columns: np.ndarray, fit: Fit) -> dict[str, Outcome]:
    """Return what weights of one over each equation's own residual give, eq. 13, round by round.

    The product refuses these; they are here to show where the paper's figures come from.
    """
    found = {}
    for number in range(1, OWN_ROUNDS + 1):
        weight = 1 / np.maximum(np.abs(fit.residual), _LEAST_RESIDUAL)
        fit = fitted(problem, columns, weight, start=fit.values)
        found[own_residuals(number)] = (fit.values[columns], np.sqrt(np.diag(fit.inverse)))
    return found
