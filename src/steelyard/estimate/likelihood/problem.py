"""What is measured of periodic motions, as arrays: the problem that maximum likelihood solves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ...errors import EstimateError
from ...observe import Equations
from .torques import TorqueFunctions, torque_functions


@dataclass(frozen=True, eq=False)
class LikelihoodRun:
    """One recording: n joints, E equations, N instants, m coefficients a joint.

    Attributes:
        q: Measured positions (n, N) [rad or m].
        y: Measured torques (E, N) [N m or N].
        basis: B (3, m, N) of the motions, see :func:`motion_basis`.
        position_deviation: Standard deviation of a sample of each position (n,); 0: the fitted motion is taken as it
            is.
        torque_deviation: Standard deviation of a sample of each torque (E,), above 0.
        loaded: Whether it carries the payload of the model.
        label: Name, for messages.
    """

    q: np.ndarray
    y: np.ndarray
    basis: np.ndarray
    position_deviation: np.ndarray
    torque_deviation: np.ndarray
    loaded: bool = True
    label: str = "recording"

    def __post_init__(self) -> None:
        joints, count = self.q.shape
        size = self.basis.shape[1] if self.basis.ndim == 3 else 0
        for what, got, wanted in (
            ("basis", self.basis.shape, (3, size, count)),
            ("y", self.y.shape, (len(self.y), count)),
            ("position_deviation", self.position_deviation.shape, (joints,)),
            ("torque_deviation", self.torque_deviation.shape, (len(self.y),)),
        ):
            if got != wanted:
                raise EstimateError(f"ml, {self.label}: {what} has shape {got}, needed is {wanted}")
        for what in ("q", "y", "basis", "position_deviation", "torque_deviation"):
            if not np.isfinite(getattr(self, what)).all():
                raise EstimateError(f"ml, {self.label}: {what} has values that are not finite; cut them out")
        if (self.position_deviation < 0).any() or (self.torque_deviation <= 0).any():
            raise EstimateError(
                f"ml, {self.label}: noise of positions {self.position_deviation.tolist()}, of torques "
                f"{self.torque_deviation.tolist()}; allowed are deviations from 0 on, and above 0 for torques"
            )

    @property
    def free(self) -> np.ndarray:
        """Joints whose motion is unknown (n,): those with noise on their positions."""
        return self.position_deviation > 0


@dataclass(frozen=True, eq=False)
class LikelihoodProblem:
    """Minimise ``sum (q - q(delta))^2 / sigma_q^2 + sum (y - W(q(delta), ...) theta)^2 / sigma_y^2`` (P4.2).

    Attributes:
        equations: The model's equations.
        columns: The unknowns theta, of ``equations.names``; the others are zero.
        runs: The recordings; each has a motion delta of its own.
        sign_width: Width of the smooth sign in friction; None: the model's.
    """

    equations: Equations
    columns: tuple[str, ...]
    runs: tuple[LikelihoodRun, ...]
    sign_width: float | None = None

    def __post_init__(self) -> None:
        if not self.runs:
            raise EstimateError("ml: no recording is given; at least one is needed")
        shape = (len(self.equations.joints), len(self.equations.kinds_joints))
        for run in self.runs:
            if (len(run.q), len(run.y)) != shape:
                raise EstimateError(
                    f"ml, {run.label}: {len(run.q)} positions and {len(run.y)} torques; the model has {shape[0]} "
                    f"joints and {shape[1]} equations"
                )

    @property
    def rows(self) -> int:
        """Number of measured torques."""
        return sum(run.y.size for run in self.runs)

    def functions(self, run: LikelihoodRun) -> TorqueFunctions:
        """Return the compiled torques of a recording."""
        return torque_functions(self.equations, self.columns, loaded=run.loaded, sign_width=self.sign_width)


@dataclass(frozen=True, eq=False)
class FittedMotion:
    """What positions alone tell of a motion's coefficients: ``q = delta B0`` by least squares, one triangle.

    Attributes:
        coefficients: delta (n, m).
        triangle: R (m, m) of ``B0^T``.
        squares: Sum of squared residuals of each joint (n,).
    """

    coefficients: np.ndarray
    triangle: np.ndarray
    squares: np.ndarray


def fitted_motion(run: LikelihoodRun) -> FittedMotion:
    """Fit the motion of a recording to its positions alone.

    Raises:
        EstimateError: If the instants do not tell the coefficients apart.
    """
    basis = run.basis[0].T
    orthogonal, triangle = np.linalg.qr(basis)
    smallest = np.abs(np.diag(triangle)).min(initial=np.inf) if basis.shape[0] >= basis.shape[1] else 0.0
    if smallest < 1e-9 * np.sqrt(len(basis)):
        raise EstimateError(
            f"ml, {run.label}: {len(basis)} instants do not tell the {basis.shape[1]} coefficients of a joint's motion "
            "apart; record longer, or take fewer harmonics"
        )
    coefficients = linalg.solve_triangular(triangle, orthogonal.T @ run.q.T).T
    squares = np.sum((run.q - coefficients @ run.basis[0]) ** 2, axis=1)
    return FittedMotion(coefficients, triangle, squares)
