"""The likelihood of several recordings: its cost at a state, the start, and the step from there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .elimination import Step, eliminated
from .linearised import RunLikelihood
from .problem import LikelihoodProblem, fitted_motion
from .reversals import turned_directions


@dataclass(frozen=True, eq=False)
class State:
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

    def at(self, theta: np.ndarray, coefficients: Sequence[np.ndarray], directions: Sequence[np.ndarray]) -> State:
        """Return a state with its cost; infinite where torques overflow."""
        parts = zip(self.runs, coefficients, directions, strict=True)
        cost = sum(run.cost(delta, held, theta) for run, delta, held in parts)
        return State(theta, tuple(coefficients), tuple(directions), cost if np.isfinite(cost) else np.inf)

    def start(self) -> State:
        """Return weighted least squares at the fitted motion: exact in one step, torques are linear in theta."""
        coefficients = [run.fitted.coefficients for run in self.runs]
        directions = [run.motion(delta)[1] for run, delta in zip(self.runs, coefficients, strict=True)]
        zero = np.zeros(len(self.columns))
        triangles = self.triangles(State(zero, tuple(coefficients), tuple(directions), np.inf))
        # Without the columns of the motions the triangles are those of positions taken as exact.
        sizes = [run.size for run in self.runs]
        fixed = [
            np.asarray(np.linalg.qr(part[:, size:], mode="r")) for part, size in zip(triangles, sizes, strict=True)
        ]
        return self.at(eliminated(fixed, self.columns).theta, coefficients, directions)

    def step(self, state: State, triangles: Sequence[np.ndarray], damping: float) -> State:
        """Return the state after a damped step."""
        step = eliminated(triangles, self.columns, damping)
        moved = zip(self.runs, state.coefficients, step.motions, strict=True)
        coefficients = [run.moved(delta, change) for run, delta, change in moved]
        return self.at(state.theta + step.theta, coefficients, state.directions)

    def turned(self, state: State) -> State:
        """Return the state with the signs of friction that its torques want; it costs no more."""
        parts = list(zip(self.runs, state.coefficients, state.directions, strict=True))
        found = [turned_directions(run, delta, held, state.theta) for run, delta, held in parts]
        if all(each is None for each in found):
            return state
        directions = [held if new is None else new for (_, _, held), new in zip(parts, found, strict=True)]
        return self.at(state.theta, state.coefficients, directions)

    def triangles(self, state: State) -> list[np.ndarray]:
        """Return the triangle of every recording at a state."""
        parts = zip(self.runs, state.coefficients, state.directions, strict=True)
        return [run.triangle(delta, held, state.theta) for run, delta, held in parts]

    def linearised(self, state: State) -> tuple[list[np.ndarray], Step]:
        """Return the triangles at a state and the whole step from there."""
        triangles = self.triangles(state)
        return triangles, eliminated(triangles, self.columns)
