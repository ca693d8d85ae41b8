"""The iteration: from linear least squares at the fitted motion to the most likely motion and parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import EstimateError
from .likelihood import Likelihood, State
from .problem import LikelihoodProblem
from .settings import LikelihoodSettings

ROUNDING = 1e-12
"""Part of the cost below which a change is rounding."""

_LEAST_DAMPING, _MOST_DAMPING = 1e-4, 1e10


@dataclass(frozen=True, eq=False)
class LikelihoodFit:
    """The most likely parameters and motions.

    Attributes:
        columns: Names of the parameters, c of them.
        values: theta (c,).
        covariance: Cramer and Rao's bound at the estimate (c, c): theta's part of the inverse Fisher information.
        coefficients: delta of every recording (n, m).
        directions: Velocities of every recording by which the exact sign of friction was taken (n, N).
        costs: The cost at the start and after every step; none is larger than the one before but for rounding.
        gradient: Length of the step that is left, in standard deviations, all unknowns together.
        converged: Whether that is below the tolerance.
    """

    columns: tuple[str, ...]
    values: np.ndarray
    covariance: np.ndarray
    coefficients: tuple[np.ndarray, ...]
    directions: tuple[np.ndarray, ...]
    costs: tuple[float, ...]
    gradient: float
    converged: bool

    @property
    def sigma(self) -> np.ndarray:
        """Standard deviations (c,)."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def iterations(self) -> int:
        """Steps taken."""
        return len(self.costs) - 1


def likelihood_fit(
    problem: LikelihoodProblem, settings: LikelihoodSettings | None = None, start: LikelihoodFit | None = None
) -> LikelihoodFit:
    """Find the most likely parameters and motions (P4.2).

    Gauss and Newton's step is taken whole where it lowers the cost and damped (Levenberg and Marquardt) where it does
    not. While a step is taken the exact sign of friction is held; afterwards it is turned next to reversals where
    torques want it, which lowers the cost too. At the end the gradient is zero with the signs held.

    Args:
        problem: What was measured, with its noise.
        settings: ``algorithm``, ``tolerance`` and ``most_iterations`` are used; the problem says the rest.
        start: A fit of the same recordings to start from; weighted least squares at the fitted motion by default.

    Raises:
        EstimateError: If the recordings do not tell all parameters apart, or the cost is not finite.
    """
    settings = settings or LikelihoodSettings()
    least = _LEAST_DAMPING if settings.algorithm == "levenberg_marquardt" else 0.0
    likelihood, damping = Likelihood(problem), 10 * least
    first = likelihood.at(start.values, start.coefficients, start.directions) if start else likelihood.start()
    state = likelihood.turned(first)
    if not np.isfinite(state.cost):
        raise EstimateError("ml: torques at the fitted motion are not finite; check positions, period and harmonics")
    costs = [state.cost]
    triangles, whole = likelihood.linearised(state)
    while whole.gain > settings.tolerance**2 and len(costs) <= settings.most_iterations:
        found, damping = _lower(likelihood, state, triangles, damping)
        if found is None:
            break
        state = likelihood.turned(found)
        damping = damping / 10 if damping > 10 * _LEAST_DAMPING else least
        costs.append(state.cost)
        triangles, whole = likelihood.linearised(state)
    gradient = float(np.sqrt(whole.gain))
    return LikelihoodFit(
        problem.columns, _frozen(state.theta), _frozen(whole.system.inverse), tuple(map(_frozen, state.coefficients)),
        tuple(map(_frozen, state.directions)), tuple(costs), gradient, gradient <= settings.tolerance,
    )  # fmt: skip


def _lower(
    likelihood: Likelihood, state: State, triangles: Sequence[np.ndarray], damping: float
) -> tuple[State | None, float]:
    """Return a state that costs no more, and the damping that led there; None if there is none."""
    while damping <= _MOST_DAMPING:
        found = likelihood.step(state, triangles, damping)
        if found.cost <= state.cost * (1 + ROUNDING):
            return found, damping
        damping = max(10 * damping, _LEAST_DAMPING)
    return None, damping


def _frozen(array: np.ndarray) -> np.ndarray:
    array = np.array(array)
    array.setflags(write=False)
    return array
