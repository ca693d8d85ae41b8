"""The state of a filter as one vector: estimate, roots of the information, tally."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

TALLY = 6
"""Steps done, sum of normalised innovations squared, how many of them were inside 95 %, first bad step, its reason,
steps at which the parameters were moved to stay those of a possible arm."""


@dataclass(frozen=True)
class Shape:
    """Sizes of a filter, and where the parts of its state vector lie.

    The parts are x = [qd; q], the free parameters, R_xx (upper triangle, column by column), R_xp (column by column),
    R_pp (upper triangle, column by column) and the tally.

    Attributes:
        joints: n.
        free: Free parameters f.
        parameters: All parameters c.
        observed: Observed quantities m: n for q, 2n for qd and q.
        noises: Sources of noise: n torques, or 2n for the state itself.
    """

    joints: int
    free: int
    parameters: int
    observed: int
    noises: int

    @property
    def states(self) -> int:
        """Length of x."""
        return 2 * self.joints

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of the parts."""
        states, free = self.states, self.free
        return states, free, states * (states + 1) // 2, states * free, free * (free + 1) // 2, TALLY

    @property
    def bounds(self) -> list[int]:
        """Where the parts begin, and where the last one ends."""
        return [0, *np.cumsum(self.sizes).tolist()]

    @property
    def given(self) -> tuple[int, ...]:
        """Sizes of what is the same at every step.

        All parameters, deviations of the noise and of what is observed, 95 % bound of the normalised innovation
        squared, length of a step [s], width of the sign, and for each joint the speed of standstill and the least
        pivot of a possible arm.
        """
        return self.parameters, self.noises, self.observed, 1, 1, 1, self.joints, self.joints

    @property
    def recorded(self) -> int:
        """Length of what is kept of an instant: x, free parameters and their deviations."""
        return self.states + 2 * self.free

    def split(self, vector: np.ndarray) -> list[np.ndarray]:
        """Return views of the parts of a state vector (size,) or (size, C)."""
        return np.split(vector, self.bounds[1:-1])


def upper_entries(matrix: np.ndarray) -> np.ndarray:
    """Return the entries on and above the diagonal of a square matrix, column by column."""
    return matrix.T[np.tril_indices(len(matrix))]


def upper_triangle(entries: np.ndarray, size: int) -> np.ndarray:
    """Return the upper triangle (size, size) of such entries."""
    low = np.zeros((size, size))
    low[np.tril_indices(size)] = entries
    return low.T


def new_vector(shape: Shape, values: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return a state vector (size,) whose parameters are known by values (f,) and covariance (f, f); x is not yet."""
    vector = np.zeros(shape.bounds[-1])
    _, free, _, _, root, tally = shape.split(vector)
    free[:] = values
    scale = np.sqrt(np.diag(covariance))
    factor = np.linalg.cholesky(covariance / np.outer(scale, scale))
    whitening = np.linalg.inv(factor) / scale
    root[:] = upper_entries(np.asarray(np.linalg.qr(whitening, mode="r")))
    tally[3] = -1
    return vector


def restart(shape: Shape, vector: np.ndarray, x: np.ndarray, deviation: np.ndarray) -> None:
    """Begin a stretch of samples: x (2n,) is known anew and apart from the parameters, which carry on."""
    state, _, root, cross, _, _ = shape.split(vector)
    state[:] = x
    root[:] = upper_entries(np.diag(1 / deviation))
    cross[:] = 0.0


def parameter_root(shape: Shape, vector: np.ndarray) -> np.ndarray:
    """Return ``R_pp^-1`` (f, f): the covariance of the parameters is ``R_pp^-1 R_pp^-T``."""
    return np.linalg.inv(upper_triangle(shape.split(vector)[4], shape.free))
