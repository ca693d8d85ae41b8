"""Filters of large arms: compiled physics, and LAPACK for the information root."""

from __future__ import annotations

import numpy as np
from scipy.linalg import get_lapack_funcs

from ...kernel import compile_batch
from .arm_graph import ArmGraph
from .discrete import Integrator, stage_points
from .divergence import LARGEST, LOST, RELATIVE_PIVOT, Trouble
from .information_root import InformationRoot
from .sensitivity import StepDerivative
from .state import Shape, upper_entries, upper_triangle

(_TRTRI,) = get_lapack_funcs(("trtri",), dtype=np.float64)


class LapackEngine:
    """Advances one filter after the other.

    Args:
        graph: The arm.
        shape: Sizes of the filter.
        integrator: How a step in time is taken.
        dt: Its length [s].
        free: Which parameters are estimated.
    """

    def __init__(self, graph: ArmGraph, shape: Shape, integrator: Integrator, dt: float, free: tuple[int, ...]) -> None:
        self._shape, self._free = shape, list(free)
        points = compile_batch(stage_points(graph, integrator, dt))
        self._derivative = StepDerivative(graph, integrator, dt)
        self._x, self._torque = np.zeros((shape.states, 1)), np.zeros((shape.joints, 1))
        self._chi = np.zeros((shape.parameters, 1))
        self._following = np.zeros((shape.states, 1))
        self._pivots = np.zeros((points.output_sparsity[4].shape[0], 1))
        flat = [motion.reshape(-1, 1) for motion in self._derivative.motion]
        self._predict = points.bind([self._x, self._torque, self._chi], [*flat, self._following, self._pivots])
        self._root = InformationRoot(shape)

    def advance(
        self, vectors: np.ndarray, given: np.ndarray, fixed: np.ndarray, before: int, stride: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Take T steps of C filters; see :meth:`.LoopEngine.advance`."""
        results = [
            self._one(vectors[:, k].copy(), given[:, :, k], fixed[:, k], before, stride)
            for k in range(vectors.shape[1])
        ]
        return np.column_stack([vector for vector, _ in results]), np.stack([kept for _, kept in results], axis=-1)

    def _one(
        self, vector: np.ndarray, given: np.ndarray, fixed: np.ndarray, before: int, stride: int
    ) -> tuple[np.ndarray, np.ndarray]:
        shape = self._shape
        values, noise, deviation, bound = np.split(
            fixed, np.cumsum([shape.parameters, shape.noises, shape.observed]).tolist()
        )
        self._chi[:, 0] = values
        self._begin(vector, noise, deviation)
        tally = shape.split(vector)[5]
        kept = np.zeros((len(range(-before % stride, len(given), stride)), shape.recorded))
        for step, row in enumerate(given):
            if (before + step) % stride == 0:
                kept[(before + step) // stride - -(-before // stride)] = self._instant()
            squared = self._step(row)
            trouble = self._trouble(squared)
            if trouble:
                tally[3:] = tally[0], trouble
                tally[0] += len(given) - step
                kept[:] = np.nan
                break
            tally[:3] += 1.0, squared, squared <= bound[0]
        self._end(vector)
        return vector, kept

    def _begin(self, vector: np.ndarray, noise: np.ndarray, deviation: np.ndarray) -> None:
        shape = self._shape
        x, values, R_xx, R_xp, R_pp, _ = shape.split(vector)
        self._x[:, 0], self._chi[self._free, 0] = x, values
        triangle = upper_triangle(R_xx, shape.states), R_xp.reshape(shape.free, shape.states)
        self._root.begin(*triangle, upper_triangle(R_pp, shape.free), noise, deviation)

    def _end(self, vector: np.ndarray) -> None:
        x, values, R_xx, R_xp, R_pp, _ = self._shape.split(vector)
        x[:], values[:] = self._x[:, 0], self._chi[self._free, 0]
        root = self._root
        R_xx[:], R_xp[:], R_pp[:] = upper_entries(root.of_state), root.cross.ravel(), upper_entries(root.of_parameters)

    def _step(self, row: np.ndarray) -> float:
        """Predict and correct; return the normalised innovation squared."""
        shape = self._shape
        self._torque[:, 0] = row[: shape.joints]
        self._predict()
        derivative = self._derivative.at(self._chi)
        following = self._following[:, 0]
        self._innovation = row[shape.joints :] - following[shape.states - shape.observed :]
        dx, dp, squared = self._root.corrected(derivative, self._innovation)
        np.add(following, dx, out=self._x[:, 0])
        self._chi[self._free, 0] += dp
        return squared

    def _trouble(self, squared: float) -> int:
        # A comparison with a value that is no number is false: ask for what must hold.
        pivots = self._pivots
        if not pivots.min() > RELATIVE_PIVOT * pivots.max():
            return Trouble.INERTIA
        if not np.abs(self._innovation[-self._shape.joints :]).max() < LOST:
            return Trouble.LOST
        x = self._x[:, 0]
        return 0 if squared + x @ x < LARGEST else Trouble.STATE

    def _instant(self) -> np.ndarray:
        inverse, _ = _TRTRI(self._root.of_parameters)
        sigma = np.sqrt((inverse**2).sum(axis=1))
        return np.concatenate([self._x[:, 0], self._chi[self._free, 0], sigma])
