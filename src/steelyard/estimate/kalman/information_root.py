"""One step of the square-root information filter with LAPACK, in buffers that are used again and again.

The step is that of :mod:`.loop_step`. Matrices are kept transposed, so that rows of an array are the columns that
LAPACK wants side by side.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import get_blas_funcs, get_lapack_funcs

from .state import Shape

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
