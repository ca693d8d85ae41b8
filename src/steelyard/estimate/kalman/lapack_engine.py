"""Filters of large arms: compiled physics, and LAPACK for the information root, in buffers that are reused.

The step is that of :func:`.loop_step`. Matrices are stored transposed, so that rows of an array are the columns that
LAPACK wants side by side.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import get_blas_funcs, get_lapack_funcs

from ...kernel import compile_batch
from ...observe import coupled_motors
from .discrete import Integrator, StepDerivative, stage_points
from .dynamics import ArmGraph, possible_move
from .loop_engine import SLOW_NOISE
from .state import LARGEST, LOST, RELATIVE_PIVOT, Shape, Trouble, upper_entries, upper_triangle

BLOCK = 8
"""Columns that LAPACK reflects at once."""

_GETRF, _GETRI, _GEQRF, _TPQRT = get_lapack_funcs(("getrf", "getri", "geqrf", "tpqrt"), dtype=np.float64)
_TRMM, _TRSV = get_blas_funcs(("trmm", "trsv"), dtype=np.float64)


class InformationRoot:
    """The root ``[R_xx R_xp; 0 R_pp]`` of the information on x and the parameters, and one step of it.

    Args:
        shape: Sizes of the filter.
    """

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        states, free, noises, observed = shape.states, shape.free, shape.noises, shape.observed
        self._stack = np.zeros((noises + states + free + 1, noises + states + observed))
        self._blank = np.zeros_like(self._stack)
        self._corner = np.zeros((free + 1, free + 1), order="F")
        self._spilled = min(observed, free + 1)
        self._spill = np.zeros((self._spilled, free + 1), order="F")
        self._block = min(BLOCK, free + 1)
        self._unit = np.zeros(free + 1)
        self._unit[-1] = 1.0
        self._state = slice(noises, noises + states)
        self._after = noises + states

    def begin(
        self, R_xx: np.ndarray, R_xp: np.ndarray, R_pp: np.ndarray, noise: np.ndarray, deviation: np.ndarray
    ) -> None:
        """Take the roots over; R_xp is transposed (f, 2n)."""
        shape = self._shape
        self._minus_noise, self._weight = -noise[:, None], 1 / deviation
        self._corner[:-1, :-1] = R_pp
        self._stack[self._state, self._state] = R_xx.T
        self._stack[self._after : -1, self._state] = R_xp
        blank = self._blank
        blank[:] = 0.0
        blank[: shape.noises, : shape.noises] = np.eye(shape.noises)
        rows = np.arange(shape.observed)
        blank[self._after - shape.observed + rows, self._after + rows] = self._weight

    @property
    def of_state(self) -> np.ndarray:
        """R_xx, upper triangle (2n, 2n)."""
        return np.triu(self._stack[self._state, self._state].T)

    @property
    def cross(self) -> np.ndarray:
        """R_xp, transposed (f, 2n)."""
        return self._stack[self._after : -1, self._state].copy()

    @property
    def of_parameters(self) -> np.ndarray:
        """R_pp, upper triangle (f, f)."""
        return np.triu(self._corner[:-1, :-1])

    def state_moved(self, move: np.ndarray) -> np.ndarray:
        """Return how x follows when the parameters are moved (f,): as they are known together."""
        return -np.asarray(_TRSV(self._stack[self._state, self._state].T, move @ self.cross))

    def corrected(
        self, derivative: np.ndarray, innovation: np.ndarray, factors: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Take one step.

        Args:
            derivative: Of x after by x, tau and the parameters, transposed (3n + f, 2n).
            innovation: (m,).
            factors: On the deviations of the noise (noises,); None for ones.

        Returns:
            Corrections of x and of the parameters, and the normalised innovation squared; NaN if the step cannot be
            turned back, because x after it does not depend on all of x before.
        """
        shape, stack = self._shape, self._stack
        states, noises = shape.states, shape.noises
        parts, swaps, _ = _GETRF(derivative[:states].T)
        inverse, singular = _GETRI(parts, swaps, overwrite_lu=1)
        if singular:
            return np.zeros(states), np.zeros(shape.free), np.nan
        back = _TRMM(1.0, stack[self._state, self._state].T, inverse, overwrite_b=1).T
        moved = derivative[states:] @ back
        entering = moved[:noises] if noises == shape.joints else back
        R_xp = stack[self._after : -1, self._state] - moved[shape.joints :]
        np.copyto(stack, self._blank)
        noise = self._minus_noise if factors is None else self._minus_noise * factors[:, None]
        np.multiply(entering, noise, out=stack[:noises, self._state])
        stack[self._state, self._state] = back
        stack[self._after : -1, self._state] = R_xp
        np.multiply(innovation, self._weight, out=stack[-1, self._after :])
        _GEQRF(stack.T, overwrite_a=1)
        return self._merged()

    def _merged(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Merge what the state left over into the parameters' triangle."""
        stack, corner = self._stack, self._corner
        np.copyto(self._spill, stack[self._after :, self._after : self._after + self._spilled].T)
        _TPQRT(self._spilled, self._block, corner, self._spill, overwrite_a=1, overwrite_b=1)
        squared = corner[-1, -1] ** 2
        corner[-1, -1] = 1.0
        dp = -_TRSV(corner, self._unit)[:-1]
        corner[:, -1] = 0.0
        right = stack[-1, self._state] - dp @ stack[self._after : -1, self._state]
        dx = _TRSV(stack[self._state, self._state].T, right)
        return dx, dp, squared


(_TRTRI,) = get_lapack_funcs(("trtri",), dtype=np.float64)


class CompiledArm:
    """The physics of an arm as machine code.

    Args:
        graph: The arm.
        integrator: How a step in time is taken.

    Attributes:
        points: See :func:`.stage_points`.
        sensitivity: See :class:`.ArmGraph`.
    """

    def __init__(self, graph: ArmGraph, integrator: Integrator) -> None:
        self.graph = graph
        self.integrator: Integrator = integrator
        self.points = compile_batch(stage_points(graph, integrator))
        self.sensitivity = compile_batch(graph.sensitivity)


class LapackEngine:
    """Advances one filter after the other, and keeps its parameters those of a possible arm.

    Args:
        arm: The arm.
        shape: Sizes of the filter.
        free: Which parameters are estimated.
        measured: Whether derivatives are taken along the measured motion, see :func:`.loop_step`.
    """

    def __init__(self, arm: CompiledArm, shape: Shape, free: tuple[int, ...], *, measured: bool) -> None:
        self._measured = measured
        self._graph, self._shape, self._free = arm.graph, shape, list(free)
        self._derivative = StepDerivative(arm.graph, arm.sensitivity, arm.integrator)
        self._x, self._torque = np.zeros((shape.states, 1)), np.zeros((shape.joints, 1))
        self._chi, self._turn, self._dt = np.zeros((shape.parameters, 1)), np.zeros((shape.joints, 1)), np.zeros((1, 1))
        self._following = np.zeros((shape.states, 1))
        self._pivots = np.zeros((arm.points.output_sparsity[4].shape[0], 1))
        flat = [motion.reshape(-1, 1) for motion in self._derivative.motion]
        inputs = [self._x, self._torque, self._chi, self._turn, self._dt]
        self._predict = arm.points.bind(inputs, [*flat, self._following, self._pivots])
        self._root = InformationRoot(shape)
        self._coupled = coupled_motors(arm.graph.coupling)

    def advance(
        self, vectors: np.ndarray, given: np.ndarray, fixed: np.ndarray, before: int, stride: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Take T steps of C filters; see :meth:`.LoopEngine.advance`."""
        filters = range(vectors.shape[1])
        results = [self._one(vectors[:, k].copy(), given[:, :, k], fixed[:, k], before, stride) for k in filters]
        return np.column_stack([vector for vector, _ in results]), np.stack(
            [recorded for _, recorded in results], axis=-1
        )

    def _one(
        self, vector: np.ndarray, given: np.ndarray, fixed: np.ndarray, before: int, stride: int
    ) -> tuple[np.ndarray, np.ndarray]:
        shape = self._shape
        values, noise, deviation, bound, dt, self._width, self._standstill, self._least = np.split(
            fixed, np.cumsum(shape.given[:-1]).tolist()
        )
        self._chi[:, 0], self._dt[:] = values, dt
        self._derivative.begin(float(dt[0]))
        self._begin(vector, noise, deviation)
        tally = shape.split(vector)[5]
        recorded = np.zeros((len(range(-before % stride, len(given), stride)), shape.recorded))
        for step, row in enumerate(given):
            if (before + step) % stride == 0:
                recorded[(before + step) // stride - -(-before // stride)] = self._instant()
            squared, is_moved = self._step(row)
            trouble = self._trouble(squared)
            if trouble:
                tally[3:5] = tally[0], trouble
                tally[0] += len(given) - step
                recorded[:] = np.nan
                break
            tally[:3] += 1.0, squared, squared <= bound[0]
            tally[5] += is_moved
        self._end(vector)
        return vector, recorded

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

    def _step(self, row: np.ndarray) -> tuple[float, bool]:
        """Predict and correct; return the normalised innovation squared, and whether parameters had to be moved."""
        shape, n = self._shape, self._shape.joints
        self._torque[:, 0] = row[:n]
        self._motion = row[n + shape.observed :].reshape(-1, n)
        self._predict_onwards()
        is_moved = not (self._pivots[:n, 0] >= self._least).all() and self._moved()
        following, factors = self._following[:, 0], self._unsure()
        self._innovation = row[n : n + shape.observed] - following[shape.states - shape.observed :]
        if self._measured:
            q, before, after, qdd = self._motion
            for stages, measured in zip(self._derivative.motion, (q, (before + after) / 2, qdd), strict=True):
                stages[:] = measured[:, None]
        derivative = self._derivative.at(self._chi, self._turn)
        dx, dp, squared = self._root.corrected(derivative, self._innovation, factors)
        np.add(following, dx, out=self._x[:, 0])
        self._chi[self._free, 0] += dp
        return squared, is_moved

    def _predict_onwards(self) -> None:
        speed = self._speeds()[0][:, None] if self._graph.held else 1.0
        np.divide(speed, self._width, out=self._turn)
        self._predict()

    def _speeds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return velocities before and after the step (n,): the measured ones, or those of the filter."""
        if self._measured:
            return self._motion[1], self._motion[2]
        return self._x[: self._shape.joints, 0], self._following[: self._shape.joints, 0]

    def _moved(self) -> bool:
        """Move the parameters to those of a possible arm, and the state with them; return whether that was possible."""
        if not self._least.any():
            return False
        inverse, _ = _TRTRI(self._root.of_parameters)
        q, chi = self._x[self._shape.joints :, 0], self._chi[:, 0]
        dp = possible_move(self._graph, self._free, q, chi, self._least, inverse)
        if dp is None:
            return False
        self._chi[self._free, 0] += dp
        self._x[:, 0] += self._root.state_moved(dp)
        self._predict_onwards()
        return True

    def _unsure(self) -> np.ndarray | None:
        """Return factors on the noise of torques whose joint stands still or turns back; None if all are one."""
        shape = self._shape
        if shape.noises != shape.joints:
            return None
        v, w = self._speeds()
        is_slow = _slow(v, w, self._standstill)
        for motor, other in self._coupled:
            turning = self._graph.coupling[motor]
            if _slow(turning @ v, turning @ w, self._standstill[motor]):
                is_slow[[motor, other]] = True
        return np.where(is_slow, SLOW_NOISE, 1.0) if is_slow.any() else None

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


def _slow(v: np.ndarray, w: np.ndarray, standstill: np.ndarray) -> np.ndarray:
    """Return what stands still at velocities v or w, or turns back between them."""
    return (np.minimum(np.abs(v), np.abs(w)) < standstill) | ((v * w < 0) & (standstill > 0))
