"""The design problem: family, information, objective and constraints on one grid, with exact gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..motion import MotionLimits, Trajectory
from .constraints import ConstraintBlock, Samples, TorqueBlock, motion_of
from .cramer_rao import NoisyPositions
from .criteria import Weighting
from .family import MotionFamily
from .information import Information
from .objective import Objective


@dataclass(frozen=True, eq=False)
class Multipliers:
    """Weights of the augmented Lagrangian.

    Attributes:
        values: Multipliers of each block (k, N), not below 0.
        penalty: Weight of the squares.
        margins: By how much each row of a block is tightened (k,).
    """

    values: tuple[np.ndarray, ...]
    penalty: float
    margins: tuple[np.ndarray, ...]


@dataclass(frozen=True, eq=False)
class Problem:
    """The problem of the search: minimise the objective subject to all constraints.

    The variables z are coefficients in a basis of which unit vectors use up about as much of the joints' limits each,
    ``x_j = x_centre + shape_j z_j``, and, where the duration is free, the log of the time scale.

    Attributes:
        family: The motions.
        information: Their information matrix.
        objective: What is minimised.
        blocks: The constraints.
        torques: The block whose torques goals are about; None if no torques are known.
        limits: Limits of the joints.
        grid: Number of instants.
        time_scale: Smallest and largest factor on the duration; both 1 if it is fixed.
    """

    family: MotionFamily
    information: Information | NoisyPositions
    objective: Objective
    blocks: tuple[ConstraintBlock, ...]
    torques: TorqueBlock | None
    limits: MotionLimits
    grid: int
    time_scale: tuple[float, float] = (1.0, 1.0)

    @property
    def is_duration_free(self) -> bool:
        """Whether the duration is free."""
        return self.time_scale[0] < self.time_scale[1]

    @property
    def variables(self) -> int:
        """Number of variables."""
        return len(self.limits.joints) * self.family.size + self.is_duration_free

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of the variables, low and high, infinite but for the time scale."""
        high = np.full(self.variables, np.inf)
        low = -high
        if self.is_duration_free:
            low[-1], high[-1] = np.log(self.time_scale)
        return low, high

    def variables_of(self, coefficients: np.ndarray, time_scale: float = 1.0) -> np.ndarray:
        """Return z of coefficients X (n, m)."""
        away = coefficients - self._still
        z = np.array([np.linalg.solve(shape, row) for shape, row in zip(self._shapes, away, strict=True)]).ravel()
        return np.append(z, np.log(time_scale)) if self.is_duration_free else z

    def coefficients(self, z: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the coefficients X (n, m) and the time scale of variables z."""
        time_scale = float(np.exp(z[-1])) if self.is_duration_free else 1.0
        rows = z[: self._still.size].reshape(self._still.shape)
        return self._still + np.einsum("jkl,jl->jk", self._shapes, rows), time_scale

    def trajectory(self, z: np.ndarray) -> Trajectory:
        """Return the motion of variables z."""
        return self.family.trajectory(*self.coefficients(z))

    def samples(self, z: np.ndarray) -> Samples:
        """Return the motion on the grid."""
        return self.finer_samples(z, 1)

    def finer_samples(self, z: np.ndarray, finer: int) -> Samples:
        """Return the motion on a grid of so many times more instants."""
        coefficients, time_scale = self.coefficients(z)
        samples = coefficients @ self._bases[finer]
        return samples / _powers(time_scale) if self.is_duration_free else samples

    def no_multipliers(self, penalty: float, margins: Sequence[np.ndarray] | None = None) -> Multipliers:
        """Return multipliers of zero."""
        zeros = tuple(np.zeros((len(block.names), block.finer * self.grid)) for block in self.blocks)
        none = tuple(np.zeros(len(block.names)) for block in self.blocks)
        return Multipliers(zeros, penalty, none if margins is None else tuple(margins))

    def constraints(self, z: np.ndarray) -> list[np.ndarray]:
        """Return the values of all constraints, block by block (k, N), each on the grid of its block."""
        samples = {finer: self.finer_samples(z, finer) for finer in self._bases}
        return [block.values(samples[block.finer]) for block in self.blocks]

    def exact(self, z: np.ndarray) -> float:
        """Return the exact objective on the grid."""
        return self.objective.exact(GridView(self, z))

    def lagrangian(
        self, z: np.ndarray, multipliers: Multipliers, sharpness: float, weight: float = 1.0
    ) -> tuple[float, np.ndarray]:
        """Return the augmented Lagrangian and its gradient by z.

        ``weight * f + sum (max(0, lambda + rho (c + margin))^2 - lambda^2) / (2 rho)``.
        """
        view = GridView(self, z)
        samples = {finer: view.samples if finer == 1 else self.finer_samples(z, finer) for finer in self._bases}
        back = {finer: np.zeros_like(rows) for finer, rows in samples.items()}
        value = by_time_scale = 0.0
        if weight:
            value, by_time_scale = view.objective(sharpness, weight, back[1])
        for block, given, margin in zip(self.blocks, multipliers.values, multipliers.margins, strict=True):
            pushed = given + multipliers.penalty * (block.values(samples[block.finer]) + margin[:, None])
            active = np.maximum(pushed, 0.0)
            pressure = float(np.vdot(active, active))
            value += (pressure - float(np.vdot(given, given))) / (2 * multipliers.penalty)
            if pressure:
                block.pull_back(samples[block.finer], active, back[block.finer])
        gradient = np.zeros(self.variables)
        for finer, rows in samples.items():
            gradient += self._gradient(rows, back[finer], finer, view.time_scale)
        if self.is_duration_free:
            gradient[-1] += by_time_scale
        return value, gradient

    def _gradient(self, samples: Samples, back: np.ndarray, finer: int, time_scale: float) -> np.ndarray:
        """Return the gradient by z from that by positions, velocities, accelerations and jerks on a grid (4, n, N)."""
        by_order = back @ self._bases[finer].transpose(0, 2, 1)
        total = (by_order / _powers(time_scale)).sum(axis=0)
        gradient = np.einsum("jkl,jk->jl", self._shapes, total).ravel()
        if not self.is_duration_free:
            return gradient
        slower = -sum(order * float((back[order] * samples[order]).sum()) for order in range(1, 4))
        return np.append(gradient, slower)

    @cached_property
    def _bases(self) -> dict[int, np.ndarray]:
        """B on the grid, and on the finer grids of the blocks."""
        return {
            finer: self.family.basis(self.family.grid(finer * self.grid))
            for finer in sorted({1, *(block.finer for block in self.blocks)})
        }

    @cached_property
    def _still(self) -> np.ndarray:
        return self.family.still((self.limits.lower + self.limits.upper) / 2)

    @cached_property
    def _shapes(self) -> np.ndarray:
        """For each joint a basis (m, m) in which mean squares of motion over limits are those of the variables."""
        shapes = []
        for row in range(len(self.limits.joints)):
            sizes = [(self.limits.upper[row] - self.limits.lower[row]) / 2]
            sizes += [getattr(self.limits, what)[row] for what in ("velocity", "acceleration", "jerk")]
            used = sum(
                basis @ basis.T / (self.grid * size**2)
                for basis, size in zip(self._bases[1], sizes, strict=True)
                if np.isfinite(size)
            )
            shapes.append(np.linalg.inv(np.linalg.cholesky(used)).T)
        return np.array(shapes)


def _powers(time_scale: float) -> np.ndarray:
    """Return by what a longer duration divides positions, velocities, accelerations and jerks (4, 1, 1)."""
    return time_scale ** np.arange(4.0)[:, None, None]


class GridView:
    """Information and torques of one motion on the grid, each computed when first used."""

    def __init__(self, problem: Problem, z: np.ndarray) -> None:
        self._problem = problem
        self.time_scale = problem.coefficients(z)[1]
        self.samples = problem.samples(z)

    @cached_property
    def _rows(self) -> Any:
        return self._problem.information.sampled(motion_of(self.samples))

    @property
    def _count(self) -> float:
        return self._problem.information.unknowns.rate * self._problem.family.duration * self.time_scale

    def information(self, weighting: Weighting) -> np.ndarray:
        """Return the information matrix (c, c), with that of earlier recordings."""
        fresh = self._problem.information.matrix(self._rows, weighting, self._count)
        earlier = self._problem.information.unknowns.earlier
        return fresh if earlier is None else fresh + earlier

    def torques(self) -> np.ndarray:
        """Return the torques (n, N) of the run with payload, or of the only run."""
        block = self._problem.torques
        assert block is not None  # goals about torques are refused where none are known
        return block.function(motion_of(self.samples))[0]

    def objective(self, sharpness: float, weight: float, back: np.ndarray) -> tuple[float, float]:
        """Return the objective and its gradient by the log of the time scale; add that by the motion to ``back``."""
        outcome = self._problem.objective.smooth(self, sharpness)
        motion = motion_of(self.samples)
        parts: list[Sequence[np.ndarray]] = []
        by_time_scale = 0.0
        if outcome.by_information:
            mapping = self._problem.information
            parts.append(mapping.pull_back(motion, self._rows, outcome.by_information, self._count))
            if self._problem.is_duration_free:
                by_time_scale = sum(
                    float((gradient * mapping.matrix(self._rows, weighting, self._count)).sum())
                    for weighting, gradient in outcome.by_information.items()
                )
        if outcome.by_torque is not None and self._problem.torques is not None:
            parts.append(self._problem.torques.function.pull_back(motion, [outcome.by_torque]))
        for part in parts:
            for order, gradient in enumerate(part):
                back[order] += weight * gradient
        return weight * outcome.value, weight * by_time_scale
