"""State of a filter as one vector (estimate, roots of the information, tally), and the errors that stop a filter."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from ...errors import EstimateError
from ..evidence import Evidence

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
        """Length of what is recorded of an instant: x, free parameters and their deviations."""
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
    """Begin a segment of samples: x (2n,) is known anew and apart from the parameters, which carry on."""
    state, _, root, cross, _, _ = shape.split(vector)
    state[:] = x
    root[:] = upper_entries(np.diag(1 / deviation))
    cross[:] = 0.0


def parameter_root(shape: Shape, vector: np.ndarray) -> np.ndarray:
    """Return ``R_pp^-1`` (f, f): the covariance of the parameters is ``R_pp^-1 R_pp^-T``."""
    return np.linalg.inv(upper_triangle(shape.split(vector)[4], shape.free))


LOST = 10.0
"""A predicted position farther than this from the measured one [rad or m]: the filter no longer follows the arm."""

RELATIVE_PIVOT = 1e-12
"""An inertia matrix whose smallest pivot is below this part of its largest is singular."""

LARGEST = 1e200
"""Sums of squares above this count as not finite."""


class Trouble(IntEnum):
    """Why a filter stopped."""

    INERTIA = 1
    LOST = 2
    STATE = 3


def divergence(trouble: Trouble, time: float, label: str, step: int, start: str, *, is_empty: bool) -> EstimateError:
    """Return the error that says when a filter stopped, why, and what to do.

    Args:
        trouble: What happened.
        time: When [s].
        label: In which recording.
        step: At which prediction, from 0.
        start: Where the settings let it start: what has been tried is not recommended.
        is_empty: Whether all parameters are zero.
    """
    number = "the first prediction" if step == 0 else f"prediction {step + 1}"
    nearer = "start from a possible arm (--option start=auto)"
    if start == "auto":
        nearer = "trust the start more (--option widen=1)"
    why = f"state or parameters are not finite; {nearer}, widen sign_width, or use integrator 'rk4'"
    if is_empty:
        why = (
            "the inertia matrix is singular because all parameters are zero; no factorisation cures that: give a "
            f"prior, or {nearer}"
        )
    elif trouble is Trouble.INERTIA:
        why = (
            f"the inertia matrix of its parameters is singular or not positive definite; {nearer}, give a prior with "
            "smaller deviations, or lock small parameters (option locked)"
        )
    elif trouble is Trouble.LOST:
        why = (
            f"its prediction is more than {LOST:g} rad or m off the measured position; {nearer}, or smooth the sign of "
            "friction with a larger sign_width"
        )
    return EstimateError(f"the filter stopped at {time:.6g} s of recording '{label}' ({number}): {why}")


def impossible_joint(evidence: Evidence, pivots: np.ndarray) -> str | None:
    """Return the first joint whose pivot of M (n,) is not above zero; None if all are."""
    bad = np.flatnonzero(~(pivots > RELATIVE_PIVOT * np.abs(pivots).max()))
    return evidence.equations.joints[int(bad[0])] if len(bad) else None
