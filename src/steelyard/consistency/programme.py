"""The semidefinite programme: standard parameters of an arm that can exist, nearest to what the data say.

Unknowns are, for each link, its pseudo-inertia in units of a reference body (:mod:`.pseudo_inertia`), and the values of
friction, drive inertia and offsets in units of their own size. Minimised is

    1/2 ||L (K theta - beta)||^2  +  sum_b w_b d(X_b)  +  1/2 sum_k w_k (u_k - u_k0)^2

with L the root of the information that the factors hold (independent of the length of the logs), beta the estimate of
the base parameters and d the divergence of the link from its reference. ``log det X`` is the largest ``sum log z_ii``
of lower triangular Z with ``[[X, Z], [Z^T, diag Z]]`` positive semi-definite, an exponential cone each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import clarabel as _clarabel
import numpy as np
from scipy import linalg, sparse

from ..errors import EstimateError
from ..files import silent_panics
from .pseudo_inertia import ENTRIES, IDENTITY, smat

_TOLERANCE = 1e-9
_ATTEMPTS = ((1.0, 1.0), (1e-2, 1.0), (1e-4, 1.0), (1.0, 100.0))
"""Scale of the residuals, and of the tolerance, tried in turn."""
_RIDGE = 1e-6
_SOLVED = ("Solved", "AlmostSolved")


clarabel: Any = _clarabel  # its names come from a compiled module, which type checkers do not see


class InfeasibleError(Exception):
    """The bounds of a programme contradict each other."""


@dataclass(frozen=True, eq=False)
class Programme:
    """A convex problem in the unknowns x, of which ten in a row are a link's ``svec X``.

    Attributes:
        rows: L K in the unknowns (c, n).
        target: L beta (c,).
        bodies: First unknown of each link.
        weights: Weight of the divergence of each link from its centre; 0 leaves it free.
        centres: ``svec`` of the inverse of each link's centre (b, 10): the identity for the reference itself.
        pull: Weight of ``(x - pull_to)^2 / 2`` for every unknown (n,).
        pull_to: Where that draws (n,).
        upper: ``upper @ x <= bound`` (m, n): bounds, non-negative friction and the like.
        bound: Right-hand side (m,).
        equal: ``equal @ x == value`` (e, n): pinned links, a total mass.
        value: Right-hand side (e,).
        margin: Least eigenvalue of each link's X, less what is fixed to it.
        fixed: ``svec`` of what is fixed to each link (b, 10), which the link has to exceed.
    """

    rows: np.ndarray
    target: np.ndarray
    bodies: tuple[int, ...]
    weights: np.ndarray
    centres: np.ndarray
    pull: np.ndarray
    pull_to: np.ndarray
    upper: np.ndarray
    bound: np.ndarray
    equal: np.ndarray
    value: np.ndarray
    margin: float
    fixed: np.ndarray

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return self.rows.shape[1]


@dataclass(frozen=True, eq=False)
class Solution:
    """The solution of a programme.

    Attributes:
        x: The unknowns (n,).
        bound_prices: Multiplier of every inequality (m,); above 0 where it is active.
    """

    x: np.ndarray
    bound_prices: np.ndarray


def _lifted_rows() -> tuple[np.ndarray, np.ndarray]:
    """Return how ``svec [[X, Z], [Z^T, diag Z]]`` (36,) depends on ``svec X`` (36, 10) and on Z, lower triangular."""
    of_x, of_z = np.zeros((36, 10)), np.zeros((36, 10))
    lower = [(i, j) for j in range(4) for i in range(j, 4)]
    upper = [(i, j) for j in range(8) for i in range(j + 1)]
    for row, (i, j) in enumerate(upper):
        if j < 4:
            of_x[row, ENTRIES.index((i, j))] = 1.0
        elif j - 4 <= i < 4:
            of_z[row, lower.index((i, j - 4))] = np.sqrt(2)
        elif i == j:
            of_z[row, lower.index((i - 4, i - 4))] = 1.0
    return of_x, of_z


_OF_X, _OF_Z = _lifted_rows()
_DIAGONAL = (0, 4, 7, 9)
"""Places of ``z_ii`` in the lower triangle by columns."""
_LOG_DET = np.concatenate([np.zeros(36), np.tile([0.0, 1.0, 0.0], 4)])
"""Right-hand sides of the cones of a ``log det``."""


class Solver:
    """Solves programmes that differ in targets and centres only: matrices are set up and factored once.

    Args:
        programme: One of them.
        tolerance: Of gap and feasibility.
        refined: Whether linear solutions are refined, which takes a third of the time and only small tolerances need.
    """

    def __init__(self, programme: Programme, tolerance: float = _TOLERANCE, *, refined: bool = True) -> None:
        self._programme, self._tolerance, self._refined = programme, tolerance, refined
        self._attempts: dict[int, _Attempt] = {}

    def solve(self, programme: Programme) -> Solution:
        """Solve a programme with the rows, weights and bounds of the first.

        Raises:
            InfeasibleError: If no arm fulfils the bounds.
            EstimateError: If the solver fails.
        """
        status = ""
        for k, (scale, looser) in enumerate(_ATTEMPTS):
            if k not in self._attempts:
                scaled = _scaled(self._programme, scale)
                self._attempts[k] = _Attempt(scaled, looser * self._tolerance, self._refined or k > 0)
            solution, status = self._attempts[k].solve(_scaled(programme, scale))
            if solution is not None:
                return replace(solution, bound_prices=solution.bound_prices / scale**2)
        if "Infeasible" in status:
            raise InfeasibleError
        raise EstimateError(
            f"the semidefinite programme was not solved (clarabel says {status}); leave bounds out, or give a prior"
        )


def solve(programme: Programme) -> Solution:
    """Solve one programme; see :meth:`Solver.solve`."""
    return Solver(programme).solve(programme)


def _scaled(programme: Programme, scale: float) -> Programme:
    """Return the programme with its objective times ``scale^2``: data far from any arm look infeasible otherwise."""
    if scale == 1:
        return programme
    return replace(
        programme, rows=scale * programme.rows, target=scale * programme.target, pull=scale**2 * programme.pull,
        weights=scale**2 * programme.weights,
    )  # fmt: skip


class _Attempt:
    """A programme in the solver's form, ``A v + s = b`` with s in cones, ready for other targets and centres."""

    def __init__(self, programme: Programme, tolerance: float, refined: bool) -> None:
        size, data = programme.size, len(programme.target)
        self._lifted = [k for k, weight in enumerate(programme.weights) if weight > 0]
        columns = size + data + 14 * len(self._lifted)
        matrices, self._cones = [], []
        for blocks, cone in self._rows_in_cones(programme):
            matrix = np.zeros((len(next(iter(blocks.values()))), columns))
            for first, block in blocks.items():
                matrix[:, first : first + block.shape[1]] = block
            matrices.append(matrix)
            self._cones.append(cone)
        self._matrix = sparse.csc_matrix(np.vstack(matrices))
        self._of_unknowns = self._matrix[:, :size]
        self._quadratic = np.concatenate([programme.pull, np.ones(data), np.zeros(14 * len(self._lifted))])
        # What data and quadratic terms leave open is put near what it is drawn to.
        self._ridge = np.sqrt(np.maximum(programme.pull, _RIDGE))
        self._orthogonal, self._triangle = np.linalg.qr(np.vstack([programme.rows, np.diag(self._ridge)]))
        self._settings = clarabel.DefaultSettings()
        self._settings.verbose = False
        # Data of a solver that presolves or decomposes cannot be changed; dense cones have nothing to decompose.
        self._settings.presolve_enable = self._settings.chordal_decomposition_enable = False
        self._settings.iterative_refinement_enable = refined
        self._settings.tol_gap_abs = self._settings.tol_gap_rel = self._settings.tol_feas = tolerance
        self._solver: Any = None

    def solve(self, programme: Programme) -> tuple[Solution | None, str]:
        """Return the solution, None if it was not found, and the solver's status."""
        size, data, equal, bounds = (
            programme.size, len(programme.target), len(programme.value), len(programme.bound)
        )  # fmt: skip
        # Unknowns are counted from where the data alone would put them: residuals are small, data are not.
        drawn = np.concatenate([programme.target, self._ridge * programme.pull_to])
        start = linalg.solve_triangular(self._triangle, self._orthogonal.T @ drawn)
        least = programme.fixed + programme.margin * IDENTITY
        right = np.concatenate(
            [programme.target, programme.value, programme.bound, -least.ravel(), np.tile(_LOG_DET, len(self._lifted))]
        )
        try:
            with silent_panics():
                found = self._solved(self._linear(programme, start), right - self._of_unknowns @ start)
        except BaseException as error:  # a panic of the solver, as of rows without noise, is no Exception
            if type(error).__name__ != "PanicException":
                raise
            self._solver = None
            return None, "Panicked"
        status = str(found.status)
        if status not in _SOLVED:
            return None, status
        prices = np.array(found.z)[data + equal : data + equal + bounds]
        return Solution(start + np.array(found.x)[:size], prices), status

    def _solved(self, linear: np.ndarray, right: np.ndarray) -> Any:
        if self._solver is None:
            quadratic = sparse.diags(self._quadratic).tocsc()
            self._solver = clarabel.DefaultSolver(quadratic, linear, self._matrix, right, self._cones, self._settings)
        else:
            self._solver.update(q=linear, b=right)
        return self._solver.solve()

    def _linear(self, programme: Programme, start: np.ndarray) -> np.ndarray:
        """Return the linear terms of the objective."""
        size, data = programme.size, len(programme.target)
        linear = np.zeros(len(self._quadratic))
        linear[:size] = programme.pull * (start - programme.pull_to)
        for place, k in enumerate(self._lifted):
            first = programme.bodies[k]
            linear[first : first + 10] += programme.weights[k] * programme.centres[k]
            logs = size + data + 14 * place + 10
            linear[logs : logs + 4] = -programme.weights[k]
        return linear

    def _rows_in_cones(self, programme: Programme) -> Iterator[tuple[dict[int, np.ndarray], object]]:
        """Yield each cone with the blocks of its rows by their first column, in the order of the right-hand sides."""
        size, data = programme.size, len(programme.target)
        if data:
            yield {0: programme.rows, size: -np.eye(data)}, clarabel.ZeroConeT(data)
        if len(programme.value):
            yield {0: programme.equal}, clarabel.ZeroConeT(len(programme.value))
        if len(programme.bound):
            yield {0: programme.upper}, clarabel.NonnegativeConeT(len(programme.bound))
        for first in programme.bodies:
            yield {first: -np.eye(10)}, clarabel.PSDTriangleConeT(4)
        for place, k in enumerate(self._lifted):
            yield from _log_det_cones(programme.bodies[k], size + data + 14 * place)


def smallest_eigenvalues(programme: Programme, x: np.ndarray) -> np.ndarray:
    """Return the smallest eigenvalue (b,) of each link's X less what is fixed to it, at given unknowns (n,)."""
    links = [x[first : first + 10] - fixed for first, fixed in zip(programme.bodies, programme.fixed, strict=True)]
    return np.array([np.linalg.eigvalsh(smat(own))[0] for own in links])


def _log_det_cones(body: int, first: int) -> Iterator[tuple[dict[int, np.ndarray], object]]:
    """Yield ``[[X, Z], [Z^T, diag Z]] >= 0`` and ``t_i <= log z_ii``; Z, then t, stand at ``first``."""
    yield {body: -_OF_X, first: -_OF_Z}, clarabel.PSDTriangleConeT(8)
    for i, diagonal in enumerate(_DIAGONAL):
        of_z, of_t = np.zeros((3, 10)), np.zeros((3, 4))
        of_z[2, diagonal], of_t[0, i] = -1.0, -1.0
        yield {first: of_z, first + 10: of_t}, clarabel.ExponentialConeT()
