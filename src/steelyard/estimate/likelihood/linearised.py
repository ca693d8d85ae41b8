"""One recording linearised about its motion and the parameters, reduced to a triangle, chunk by chunk.

The weighted residuals have the derivatives ``-[T W] / sigma_y`` by (delta, theta), with

    T_e[j,k](t) = dtau_e/dq_j B0_k + dtau_e/dqd_j B1_k + dtau_e/dqdd_j B2_k,    tau = W theta,

and ``-B0 / sigma_q`` by the delta of their own joint. Positions are linear in delta, so all of them come down to the m
rows ``R (delta_fit - delta) / sigma_q`` of each joint, R the triangle of B0.

Near a reversal noisy positions do not show which way a joint moves, but torques do.
Coulomb friction changes by twice its size when a joint turns. A sample on the wrong side of a reversal costs more than
all that noise does. Moving the motion by as much as puts that sample on the other side costs, as far as positions show,
``(v / sigma_v)^2`` with v the velocity there and ``sigma_v^2 = sigma_q^2 B1^T (B0 B0^T)^-1 B1`` its variance. So a
sign is turned against the motion where that lowers the cost by more than this price, and back where it lowers the cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from scipy import linalg

from ...observe import RowStack
from .problem import FittedMotion, LikelihoodRun, TorqueFunctions

CHUNK = 256
"""Instants that are linearised at once."""


class RunLikelihood:
    """The share of one recording in the cost, and its linearisation.

    Args:
        run: The recording.
        functions: Its compiled torques.
        fitted: Its motion as fitted to the positions alone.
    """

    def __init__(self, run: LikelihoodRun, functions: TorqueFunctions, fitted: FittedMotion) -> None:
        self.run, self.functions, self.fitted = run, functions, fitted
        deviation = run.position_deviation[run.free]
        self._pulls = [fitted.triangle / each for each in deviation]
        self._constant = float(np.sum(fitted.squares[run.free] / deviation**2))

    @property
    def size(self) -> int:
        """Number of unknown coefficients."""
        return int(self.run.free.sum()) * self.run.basis.shape[1]

    @cached_property
    def velocity_deviation(self) -> np.ndarray:
        """Standard deviation of the fitted motion's velocities (n, N)."""
        slopes = linalg.solve_triangular(self.fitted.triangle, self.run.basis[1], trans=1)
        return np.multiply.outer(self.run.position_deviation, np.linalg.norm(slopes, axis=0))

    def motion(self, coefficients: np.ndarray, part: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Return q, qd and qdd (3, n, N) of coefficients (n, m), or some of their instants."""
        return coefficients @ self.run.basis[:, :, part]

    def moved(self, coefficients: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Return coefficients (n, m) after a step of the unknown ones (size,)."""
        result = coefficients.copy()
        result[self.run.free] += step.reshape(-1, coefficients.shape[1])
        return result

    def cost(self, coefficients: np.ndarray, directions: np.ndarray, theta: np.ndarray) -> float:
        """Return the weighted sum of squares of positions and torques."""
        residual = self.residual(coefficients, directions, theta) / self.run.torque_deviation[:, None]
        pulls = self._pull_residuals(coefficients)
        return float(np.sum(residual**2)) + sum(float(pull @ pull) for pull in pulls) + self._constant

    def residual(self, coefficients: np.ndarray, directions: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return measured less computed torques (E, N)."""
        return self.run.y - self.functions.torques(self.motion(coefficients), directions, theta)

    def triangle(self, coefficients: np.ndarray, directions: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return the triangle of ``[T W r; R/sigma_q 0 r]``: columns delta (size), theta (c), residual."""
        stack = RowStack(self.size + len(theta) + 1)
        size, width = self.run.basis.shape[1], stack.columns
        for place, (pull, residual) in enumerate(zip(self._pulls, self._pull_residuals(coefficients), strict=True)):
            rows = np.zeros((size, width))
            rows[:, place * size : (place + 1) * size], rows[:, -1] = pull, residual
            stack.push(rows)
        for rows in self.rows(coefficients, directions, theta):
            stack.push(rows.reshape(-1, width))
        return stack.triangle()

    def rows(self, coefficients: np.ndarray, directions: np.ndarray, theta: np.ndarray) -> Iterator[np.ndarray]:
        """Yield weighted rows ``[T W r]`` (E, k, size + c + 1) of the torques, chunk by chunk."""
        run, count = self.run, self.run.q.shape[1]
        for first in range(0, count, CHUNK):
            part = slice(first, min(first + CHUNK, count))
            by_theta, slopes = self.functions.rows_and_slopes(
                self.motion(coefficients, part), directions[:, part], theta
            )
            by_motion = np.einsum("eojt,omt->etjm", slopes[:, :, run.free], run.basis[:, :, part])
            rows = np.empty((len(run.y), part.stop - first, self.size + len(theta) + 1))
            rows[:, :, : self.size] = by_motion.reshape(*rows.shape[:2], -1)
            rows[:, :, self.size : -1] = by_theta.transpose(0, 2, 1)
            rows[:, :, -1] = run.y[:, part] - rows[:, :, self.size : -1] @ theta
            rows /= run.torque_deviation[:, None, None]
            yield rows

    def _pull_residuals(self, coefficients: np.ndarray) -> list[np.ndarray]:
        off = (self.fitted.coefficients - coefficients)[self.run.free]
        return [pull @ each for pull, each in zip(self._pulls, off, strict=True)]


FARTHEST = 10.0
"""Velocities of more than this many standard deviations have their own sign."""


def turned_directions(
    run: RunLikelihood, coefficients: np.ndarray, directions: np.ndarray, theta: np.ndarray
) -> np.ndarray | None:
    """Return directions (n, N) with signs turned where this lowers the cost of the torques; None if there are none.

    Args:
        run: The recording.
        coefficients: Its motion (n, m).
        directions: Velocities by which signs are taken now (n, N).
        theta: Parameters (c,).
    """
    if not run.functions.steps:
        return None
    velocity = run.motion(coefficients)[1]
    is_turned = np.sign(velocity) != np.sign(directions)
    found, changed = directions.copy(), False
    for joint in np.flatnonzero(run.run.free):
        near = np.abs(velocity[joint]) <= FARTHEST * run.velocity_deviation[joint]
        at = np.flatnonzero(near | is_turned[joint])
        back = is_turned[joint, at]
        other = found[:, at]
        other[joint] = np.where(back, velocity[joint, at], -velocity[joint, at])
        price = np.where(back, 0.0, (velocity[joint, at] / run.velocity_deviation[joint, at]) ** 2)
        now, then = (_squares(run, coefficients, held, theta, at) for held in (found[:, at], other))
        better = now - then > price
        found[joint, at[better]] = other[joint, better]
        changed = changed or bool(better.any())
    return found if changed else None


def _squares(
    run: RunLikelihood, coefficients: np.ndarray, held: np.ndarray, theta: np.ndarray, at: np.ndarray
) -> np.ndarray:
    """Return the weighted squares of the torques' residuals at some instants (k,), all equations together."""
    residual = run.run.y[:, at] - run.functions.torques(run.motion(coefficients, at), held, theta)
    return np.sum((residual / run.run.torque_deviation[:, None]) ** 2, axis=0)
