"""Fit of the selected unknowns: Gauss-Newton with Levenberg-Marquardt damping and exact derivatives.

Minimised is ``sum (w (measured - predicted))^2 + sum ((x - nominal) / s)^2``, the second part only where a prior is
given. An iteration factors the weighted, column-scaled Jacobian once; trial steps with other damping then cost a
small triangle each. The damping follows the gain ratio (actual over predicted decrease), so that large errors of the
geometry are walked through and the last iterations are those of plain Gauss-Newton (P3 eq. 4, repeated).

Least squares use the triangular factor R of the rows, by Cholesky where they are well conditioned, else by QR. Least
trimmed squares fit the part of the points that agrees best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from ...distributions import chi2_cdf, chi2_ppf
from ...errors import CalibrationError
from ..records import CalibrationProblem

# Columns of unit length at least so far from those before lose no more than six of sixteen digits in a Gram matrix.
_SAFE = 1e-3
_SINGULAR = 1e-14


def triangle_of(rows: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return R (k, k) with ``R^T R = A^T A`` and ``Q^T y`` (k,) of rows A (E, k) and right side y (E,)."""
    norms = np.sqrt(np.einsum("ek,ek->k", rows, rows))
    scale = np.where(norms > 0, norms, 1.0)
    gram = rows.T @ rows / scale / scale[:, None]
    lower = _cholesky(gram)
    if lower is not None:
        return lower.T * scale, solve_triangular(lower, rows.T @ wanted / scale, lower=True, check_finite=False)
    size = len(scale)
    triangle = np.zeros((size + 1, size + 1))
    factor = np.linalg.qr(np.column_stack([rows, wanted]), mode="r")
    triangle[: len(factor)] = factor
    return triangle[:size, :size], triangle[:size, size]


def _cholesky(gram: np.ndarray) -> np.ndarray | None:
    """Return the lower factor; None if the matrix is not safely above singular."""
    try:
        lower = np.linalg.cholesky(gram)
    except np.linalg.LinAlgError:
        return None
    return lower if np.diag(lower).min(initial=1.0) > _SAFE else None


def inverse_of(triangle: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Return ``(R^T R)^-1`` (k, k) for unknowns of these names.

    Raises:
        CalibrationError: If a column is zero or a combination of others.
    """
    norms = np.linalg.norm(triangle, axis=0)
    if not (norms > 0).all():
        name = names[int(np.argmin(norms))]
        raise CalibrationError(
            f"fit: {name} has no effect on a measured number at the values reached; give it a prior "
            f"(--prior {name}=SIGMA), or take it out of the set-up"
        )
    unit = triangle / norms
    distance = np.abs(np.diag(unit))
    if distance.min(initial=1.0) < _SINGULAR:
        name = names[int(np.argmin(distance))]
        raise CalibrationError(
            f"fit: {name} is not identifiable beside the other unknowns at the values reached; give it a prior "
            f"(--prior {name}=SIGMA), take it out of the set-up, or measure more configurations"
        )
    inverse = solve_triangular(unit, np.eye(len(norms))) if len(norms) else unit
    return inverse @ inverse.T / np.outer(norms, norms)


def square_root(matrix: np.ndarray) -> np.ndarray:
    """Return F (k, k) with ``F F^T`` a matrix that is positive semidefinite up to rounding."""
    scale = np.sqrt(np.diag(matrix))
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    return scale[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))


CONVERGED = 1e-7
"""A step is the last one if it changes the weighted residuals by this part of their size."""

# Changes of measured numbers below this [m or rad] are those of rounding.
_ROUNDING = 1e-13
_FIRST_DAMPING, _NO_DAMPING, _LARGEST_DAMPING = 1e-4, 1e-9, 1e12
# A step is taken if it lowers the objective by this part of what the linear model predicts.
_LEAST_GAIN = 1e-4
_HIDDEN = 1e-9


@dataclass(frozen=True)
class Iteration:
    """A step of the fit.

    Attributes:
        objective: Weighted sum of squares after the step.
        step: Change of the weighted residuals by the step over their size before it.
        damping: Levenberg-Marquardt parameter for columns of unit length.
    """

    objective: float
    step: float
    damping: float


@dataclass(frozen=True, eq=False)
class CalibrationFit:
    """The result of a fit.

    Attributes:
        values: All unknowns (p,); those not fitted at their start.
        columns: Numbers of the fitted unknowns (k,).
        residual: Measured minus predicted (E,).
        jacobian: Derivatives of the predicted numbers by the fitted unknowns (E, k), at the solution.
        weight: Weight of each equation (E,).
        precision: One over the square of the prior's sigma of each fitted unknown (k,); 0 without one.
        inverse: ``(B^T W^2 B + P)^-1`` (k, k).
        iterations: Every step that was taken.
        converged: Whether the last step was small enough.
        reason: Why it ended.
    """

    values: np.ndarray
    columns: np.ndarray
    residual: np.ndarray
    jacobian: np.ndarray
    weight: np.ndarray
    precision: np.ndarray
    inverse: np.ndarray
    iterations: tuple[Iteration, ...]
    converged: bool
    reason: str

    @property
    def leverage(self) -> np.ndarray:
        """Part of each equation that the fit takes to itself (E,): ``h_i = w_i^2 b_i (B^T W^2 B + P)^-1 b_i^T``."""
        return self.weight**2 * np.einsum("ei,ei->e", self.jacobian @ self.inverse, self.jacobian)


def fitted(
    problem: CalibrationProblem, columns: np.ndarray, weight: np.ndarray | None = None, *,
    start: np.ndarray | None = None, prior: np.ndarray | None = None, most_iterations: int = 100,
) -> CalibrationFit:  # fmt: skip
    """Fit some unknowns of a problem.

    Args:
        problem: Unknowns and equations.
        columns: Numbers of the unknowns to fit (k,).
        weight: Weight of each equation (E,); all equal if not given.
        start: Values to begin with (p,); the problem's if not given.
        prior: Sigma of each unknown about its nominal value (p,), ``inf`` for none; weights should then be one over
            the standard deviations of the equations.
        most_iterations: Steps after which the fit ends without having converged; ``reason`` says so.

    Raises:
        CalibrationError: If there are fewer equations than unknowns, or something is not finite at the start.
    """
    search = _Search(problem, np.asarray(columns, dtype=int), weight, prior)
    values = np.array(problem.start if start is None else start, dtype=float)
    return search.run(values, most_iterations)


@dataclass(frozen=True, eq=False)
class _Point:
    """Values (p,), residuals and derivatives there, and the triangle R (k, k) of weighted rows with ``Q^T r`` (k,)."""

    values: np.ndarray
    residual: np.ndarray
    jacobian: np.ndarray
    objective: float
    triangle: np.ndarray
    projected: np.ndarray

    @property
    def distance(self) -> float:
        """How far the full Gauss-Newton step would change the weighted residuals."""
        return float(np.linalg.norm(self.projected))


class _Search:
    """The state that all iterations of a fit share."""

    def __init__(
        self, problem: CalibrationProblem, columns: np.ndarray, weight: np.ndarray | None, prior: np.ndarray | None
    ) -> None:
        self.problem, self.columns = problem, columns
        self.weight = np.ones(problem.equations.size) if weight is None else np.array(weight, dtype=float)
        sigma = np.full(len(problem.parameters), np.inf) if prior is None else np.asarray(prior, dtype=float)
        self.precision = sigma[columns] ** -2.0
        self.nominal = np.array([problem.parameters[column].nominal for column in columns])
        count = int((self.weight > 0).sum() + (self.precision > 0).sum())
        if count < len(columns):
            raise CalibrationError(
                f"fit: got {count} equations for {len(columns)} unknowns, needed are at least as many; measure more "
                "configurations, or let fewer joints have errors"
            )
        self.rounding = _ROUNDING * float(np.linalg.norm(self.weight))

    def run(self, values: np.ndarray, most_iterations: int) -> CalibrationFit:
        here, iterations, damping = self._linearised(values), [], 0.0
        for _ in range(most_iterations):
            if here.distance <= CONVERGED * np.sqrt(here.objective) + self.rounding:
                return self._result(here, iterations, True, "converged")
            step = self._step(here, damping)
            if step is None:
                reason = "no step lowers the objective although its gradient is not zero; check the derivatives"
                return self._result(here, iterations, False, reason)
            values, damping, change = step
            size = change / float(np.sqrt(here.objective))
            here = self._linearised(values)
            iterations.append(Iteration(here.objective, size, damping))
        return self._result(here, iterations, False, f"{most_iterations} iterations were not enough")

    def _step(self, here: _Point, damping: float) -> tuple[np.ndarray, float, float] | None:
        """Return values of a smaller objective, the damping for the next step and ``|B dx|``; None if there is none."""
        growth = 2.0
        while damping < _LARGEST_DAMPING:
            step, predicted, change = _damped_step(here.triangle, here.projected, damping)
            values = here.values.copy()
            values[self.columns] += step
            lowered = here.objective - self._objective(values)
            if lowered > _LEAST_GAIN * predicted:
                damping *= max(1 / 3, 1 - (2 * lowered / predicted - 1) ** 3)
                return values, damping if damping > _NO_DAMPING else 0.0, change
            # So near the end the objective's own rounding hides what a step gains.
            if max(here.distance**2, abs(lowered)) < _HIDDEN * here.objective:
                return values, damping, change
            damping, growth = max(damping, _FIRST_DAMPING) * growth, growth * 2
        return None

    def _objective(self, values: np.ndarray) -> float:
        weighted = self.weight * self.problem.residual(values)
        total = float(weighted @ weighted + self.precision @ (values[self.columns] - self.nominal) ** 2)
        return total if np.isfinite(total) else np.inf

    def _linearised(self, values: np.ndarray) -> _Point:
        here = self.problem.at(values)
        jacobian = here.jacobian[:, self.columns]
        if not (np.isfinite(jacobian).all() and np.isfinite(here.residual).all()):
            raise CalibrationError("fit: residuals or derivatives are not finite; check the measurements and the start")
        root = np.sqrt(self.precision)
        rows = np.vstack([jacobian * self.weight[:, None], np.diag(root)[root > 0]])
        pulled = (root * (self.nominal - values[self.columns]))[root > 0]
        wanted = np.concatenate([here.residual * self.weight, pulled])
        return _Point(values, here.residual, jacobian, float(wanted @ wanted), *triangle_of(rows, wanted))

    def _result(self, here: _Point, iterations: list[Iteration], converged: bool, reason: str) -> CalibrationFit:
        inverse = inverse_of(here.triangle, [self.problem.parameters[column].name for column in self.columns])
        for array in (here.values, here.residual, here.jacobian, self.weight, self.precision, inverse):
            array.setflags(write=False)
        return CalibrationFit(
            here.values, self.columns, here.residual, here.jacobian, self.weight, self.precision, inverse,
            tuple(iterations), converged, reason,
        )  # fmt: skip


def _damped_step(triangle: np.ndarray, projected: np.ndarray, damping: float) -> tuple[np.ndarray, float, float]:
    """Return the step, the decrease of the objective that the linear model predicts, and ``|B dx|``."""
    norms = np.linalg.norm(triangle, axis=0)
    scale = np.where(norms > 0, norms, 1.0)
    k = len(scale)
    system, wanted = triangle / scale, projected
    if damping > 0:
        system = np.vstack([system, np.sqrt(damping) * np.eye(k)])
        wanted = np.concatenate([projected, np.zeros(k)])
    scaled = np.linalg.lstsq(system, wanted, rcond=1e-13)[0]
    change = system[:k] @ scaled
    return scaled / scale, float(change @ (2 * projected - change)), float(np.linalg.norm(change))


LEAST_EXCESS = 1.5
"""Equations for every unknown without which there is nothing to judge a point by."""

_STARTS, _REFINED, _FIRST_STEPS, _STEPS = 60, 5, 3, 20
# Sets of configurations are drawn from so many at most: enough to start from, and the time does not grow.
_DRAWN_FROM = 120


def trimmed_step(fit: CalibrationFit, point: np.ndarray, pose: np.ndarray, core: int, seed: int) -> np.ndarray:
    """Return the step (k,) from a fit to the least trimmed squares of its equations, linear as they are there.

    Random sets of configurations are fitted, each set is replaced by the points that lie nearest, and so on; the best
    few of many such starts are followed to their end.

    Args:
        fit: Residuals and derivatives.
        point: Number of the point of each equation (E,).
        pose: Number of the configuration of each point (n,).
        core: Number of points that are fitted.
        seed: Of the random sets.
    """
    random = np.random.default_rng(seed)
    norms = np.linalg.norm(fit.jacobian, axis=0)
    scale = np.where(norms > 0, norms, 1.0)
    count = np.bincount(point)
    drawn = random.permutation(np.unique(pose))[:_DRAWN_FROM]
    part = np.isin(pose, drawn)
    linear = _Linear(fit.jacobian / scale, fit.residual, point, count, part, int(np.ceil(core * part.mean())))
    each = int(np.ceil(LEAST_EXCESS * len(scale) / (count[part].sum() / len(drawn)))) + 1
    found = []
    for _ in range(_STARTS):
        own = random.choice(drawn, min(each, len(drawn)), replace=False)
        found.append(linear.refined(np.isin(pose, own), _FIRST_STEPS))
    found.sort(key=lambda item: item[0])
    ends = [linear.refined(points, _STEPS) for _, points, _ in found[:_REFINED]]
    return min(ends, key=lambda item: item[0])[2] / scale


def trimmed_variance(share: float, size: float) -> float:
    """Return the mean square of the nearest share of normal points in some coordinates, over that of all."""
    if share >= 1:
        return 1.0
    return float(chi2_cdf(chi2_ppf(share, size), size + 2) / share)


@dataclass(frozen=True, eq=False)
class _Linear:
    """Linear equations of some of the points, for least trimmed squares: unit columns (E, k), residuals (E,)."""

    rows: np.ndarray
    residual: np.ndarray
    point: np.ndarray
    count: np.ndarray
    part: np.ndarray
    core: int

    def refined(self, points: np.ndarray, steps: int) -> tuple[float, np.ndarray, np.ndarray]:
        """Return objective, fitted points (n,) and step (k,) after fitting and ranking some times."""
        step, objective = self._solved(points), np.inf
        for _ in range(steps):
            distance = np.bincount(self.point, (self.residual - self.rows @ step) ** 2) / self.count
            distance[~self.part] = np.inf
            nearest = np.argsort(distance, kind="stable")[: self.core]
            if distance[nearest].sum() >= objective:
                break
            objective = float(distance[nearest].sum())
            points = np.zeros(len(distance), dtype=bool)
            points[nearest] = True
            step = self._solved(points)
        return objective, points, step

    def _solved(self, points: np.ndarray) -> np.ndarray:
        chosen = points[self.point]
        own = self.rows[chosen]
        gram = own.T @ own
        # A little of the diagonal holds unknowns that a set leaves free.
        gram[np.diag_indices_from(gram)] += 1e-9 * np.trace(gram) / len(gram)
        return np.linalg.solve(gram, own.T @ self.residual[chosen])
