"""Gauss-Newton iteration from linear least squares at the fitted motion to the most likely motion and parameters.

In a step the motions of all recordings are eliminated, the parameters solved, and the motions solved after them. Each
recording's triangle ``[R_dd R_dt z_d; 0 R_tt z_t]`` holds its information on the parameters when its own motion is
free: ``R_tt``. These are stacked; the inverse of ``R_tt^T R_tt`` of the stack is the parameters' part of the inverse
Fisher information, the Cramer-Rao bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ...errors import EstimateError
from ...observe.factor import reduced
from ...signals.checks import frozen
from ..system import DEPENDENT, System
from .linearised import RunLikelihood, turned_directions
from .problem import LikelihoodProblem, LikelihoodSettings, fitted_motion


@dataclass(frozen=True, eq=False)
class LikelihoodStep:
    """A step of all unknowns.

    Attributes:
        theta: Of the parameters (c,).
        motions: Of every recording's coefficients (size,).
        system: Equations of the parameters' step when all motions are free.
        gain: By how much the linearised cost falls with the whole step: the squared length of the gradient in
            standard deviations.
    """

    theta: np.ndarray
    motions: tuple[np.ndarray, ...]
    system: System
    gain: float


def eliminated(triangles: Sequence[np.ndarray], columns: tuple[str, ...], damping: float = 0.0) -> LikelihoodStep:
    """Return the step that minimises the linearised cost, damped by Levenberg and Marquardt's diagonal.

    Args:
        triangles: Of every recording, columns delta, theta, residual.
        columns: Names of theta.
        damping: mu of ``(J^T J + mu diag(J^T J)) step = J^T r``; 0: Gauss and Newton's.

    Raises:
        EstimateError: If not all parameters are identifiable from the recordings.
    """
    unknowns = len(columns) + 1
    heads: list[np.ndarray] = []
    tails: list[np.ndarray] = []
    for triangle in triangles:
        size = len(triangle) - unknowns
        whole = triangle
        if damping:  # rows that hold the motion's coefficients back, the first columns
            lengths = np.linalg.norm(triangle[:, :size], axis=0)
            held = np.eye(size, triangle.shape[1]) * (np.sqrt(damping) * lengths[:, None])
            whole = reduced(np.vstack([triangle, held]))
        heads.append(whole[:size])
        tails.append(whole[size:, size:])
    stack = np.vstack(tails)
    if damping:
        own = np.sqrt(sum(np.sum(triangle[:, -unknowns:-1] ** 2, axis=0) for triangle in triangles))
        stack = np.vstack([stack, np.column_stack([np.diag(np.sqrt(damping) * own), np.zeros(len(columns))])])
    merged = reduced(stack)
    lengths = np.linalg.norm(merged[:, :-1], axis=0)
    bad = np.flatnonzero(np.abs(np.diag(merged)[:-1]) <= DEPENDENT * np.maximum(lengths, 1e-150))
    if len(bad):
        raise EstimateError(
            f"ml: with noise on torques and positions, '{columns[int(bad[0])]}' is indistinguishable from the "
            "parameters before it; record a more exciting motion, give a smaller position_noise, or use gls"
        )
    system = System(columns, merged, len(stack))
    theta = system.values
    motions = tuple(_solved(head, theta) for head in heads)
    gain = float(np.sum(merged[:-1, -1] ** 2)) + sum(float(np.sum(head[:, -1] ** 2)) for head in heads)
    return LikelihoodStep(theta, motions, system, gain)


def _solved(head: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Return the coefficients' step from the head ``[R_dd R_dt z_d]`` of a triangle and the parameters' step."""
    size = len(head)
    right = head[:, -1] - head[:, size:-1] @ theta
    return linalg.solve_triangular(head[:, :size], right) if size else right


@dataclass(frozen=True, eq=False)
class LikelihoodState:
    """Where an iteration is: parameters (c,), every recording's coefficients (n, m) and directions (n, N), the cost."""

    theta: np.ndarray
    coefficients: tuple[np.ndarray, ...]
    directions: tuple[np.ndarray, ...]
    cost: float


class Likelihood:
    """The cost of a problem and its linearisation.

    Args:
        problem: What was measured.

    Attributes:
        columns: Names of the parameters.
        runs: The recordings.
    """

    def __init__(self, problem: LikelihoodProblem) -> None:
        self.columns = problem.columns
        self.runs = [RunLikelihood(run, problem.functions(run), fitted_motion(run)) for run in problem.runs]

    def at(
        self, theta: np.ndarray, coefficients: Sequence[np.ndarray], directions: Sequence[np.ndarray]
    ) -> LikelihoodState:
        """Return a state with its cost; infinite where torques overflow."""
        parts = zip(self.runs, coefficients, directions, strict=True)
        cost = sum(run.cost(delta, held, theta) for run, delta, held in parts)
        return LikelihoodState(theta, tuple(coefficients), tuple(directions), cost if np.isfinite(cost) else np.inf)

    def start(self) -> LikelihoodState:
        """Return weighted least squares at the fitted motion: exact in one step, torques are linear in theta."""
        coefficients = [run.fitted.coefficients for run in self.runs]
        directions = [run.motion(delta)[1] for run, delta in zip(self.runs, coefficients, strict=True)]
        zero = np.zeros(len(self.columns))
        triangles = self.triangles(LikelihoodState(zero, tuple(coefficients), tuple(directions), np.inf))
        # Without the columns of the motions the triangles are those of positions taken as exact.
        pairs = zip(triangles, self.runs, strict=True)
        fixed = [np.asarray(np.linalg.qr(part[:, run.size :], mode="r")) for part, run in pairs]
        return self.at(eliminated(fixed, self.columns).theta, coefficients, directions)

    def step(self, state: LikelihoodState, triangles: Sequence[np.ndarray], damping: float) -> LikelihoodState:
        """Return the state after a damped step."""
        step = eliminated(triangles, self.columns, damping)
        moved = zip(self.runs, state.coefficients, step.motions, strict=True)
        coefficients = [run.moved(delta, change) for run, delta, change in moved]
        return self.at(state.theta + step.theta, coefficients, state.directions)

    def turned(self, state: LikelihoodState) -> LikelihoodState:
        """Return the state with the signs of friction that fit its torques best; it costs no more."""
        parts = list(zip(self.runs, state.coefficients, state.directions, strict=True))
        found = [turned_directions(run, delta, held, state.theta) for run, delta, held in parts]
        if all(each is None for each in found):
            return state
        directions = [held if new is None else new for (_, _, held), new in zip(parts, found, strict=True)]
        return self.at(state.theta, state.coefficients, directions)

    def triangles(self, state: LikelihoodState) -> list[np.ndarray]:
        """Return the triangle of every recording at a state."""
        parts = zip(self.runs, state.coefficients, state.directions, strict=True)
        return [run.triangle(delta, held, state.theta) for run, delta, held in parts]

    def linearised(self, state: LikelihoodState) -> tuple[list[np.ndarray], LikelihoodStep]:
        """Return the triangles at a state and the whole step from there."""
        triangles = self.triangles(state)
        return triangles, eliminated(triangles, self.columns)


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
    that lowers the cost too. At the end the gradient is zero with the signs held.

    Args:
        problem: What was measured, with its noise.
        settings: ``algorithm``, ``tolerance`` and ``most_iterations`` are used; the problem says the rest.
        start: A fit of the same recordings to start from; weighted least squares at the fitted motion by default.

    Raises:
        EstimateError: If not all parameters are identifiable from the recordings, or the cost is not finite.
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
    theta, covariance, *others = (
        frozen(np.array(part)) for part in (state.theta, whole.system.inverse, *state.coefficients, *state.directions)
    )
    count = len(state.coefficients)
    return LikelihoodFit(
        problem.columns, theta, covariance, tuple(others[:count]), tuple(others[count:]), tuple(costs), gradient,
        gradient <= settings.tolerance,
    )  # fmt: skip


def _lower(
    likelihood: Likelihood, state: LikelihoodState, triangles: Sequence[np.ndarray], damping: float
) -> tuple[LikelihoodState | None, float]:
    """Return a state that costs no more, and the damping that led there; None if there is none."""
    while damping <= _MOST_DAMPING:
        found = likelihood.step(state, triangles, damping)
        if found.cost <= state.cost * (1 + ROUNDING):
            return found, damping
        damping = max(10 * damping, _LEAST_DAMPING)
    return None, damping
