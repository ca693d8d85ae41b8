"""Least trimmed squares of linear equations: the fit that most points agree with, whatever the others say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...distributions import chi2_cdf, chi2_ppf
from .fit import Fit

LEAST_EXCESS = 1.5
"""Equations for every unknown without which there is nothing to judge a point by."""

_STARTS, _REFINED, _FIRST_STEPS, _STEPS = 60, 5, 3, 20
# Sets of configurations are drawn from so many at most: enough to start from, and the time does not grow.
_DRAWN_FROM = 120


def trimmed_step(fit: Fit, point: np.ndarray, pose: np.ndarray, kept: int, seed: int) -> np.ndarray:
    """Return the step (k,) from a fit to the least trimmed squares of its equations, linear as they are there.

    Random sets of configurations are fitted, each set is replaced by the points that lie nearest, and so on; the best
    few of many such starts are followed to their end.

    Args:
        fit: Residuals and derivatives.
        point: Number of the point of each equation (E,).
        pose: Number of the configuration of each point (n,).
        kept: How many points are to agree.
        seed: Of the random sets.
    """
    random = np.random.default_rng(seed)
    norms = np.linalg.norm(fit.jacobian, axis=0)
    scale = np.where(norms > 0, norms, 1.0)
    count = np.bincount(point)
    drawn = random.permutation(np.unique(pose))[:_DRAWN_FROM]
    part = np.isin(pose, drawn)
    linear = _Linear(fit.jacobian / scale, fit.residual, point, count, part, int(np.ceil(kept * part.mean())))
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
    kept: int

    def refined(self, points: np.ndarray, steps: int) -> tuple[float, np.ndarray, np.ndarray]:
        """Return objective, kept points (n,) and step (k,) after fitting and ranking some times."""
        step, objective = self._solved(points), np.inf
        for _ in range(steps):
            distance = np.bincount(self.point, (self.residual - self.rows @ step) ** 2) / self.count
            distance[~self.part] = np.inf
            nearest = np.argsort(distance, kind="stable")[: self.kept]
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
        # A little of the diagonal keeps what a set cannot tell where it is.
        gram[np.diag_indices_from(gram)] += 1e-9 * np.trace(gram) / len(gram)
        return np.linalg.solve(gram, own.T @ self.residual[chosen])
