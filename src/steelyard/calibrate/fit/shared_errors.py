"""Errors that all numbers of one configuration and direction share: repeats with the same wrong joint angles."""

from __future__ import annotations

import numpy as np

from ..records import COORDINATES, Equations
from .fit import Fit

# The two sums of squares are the same if their system is this near to singular.
_SAME = 1e-9


def configuration_groups(equations: Equations) -> np.ndarray:
    """Return the number of the configuration and direction that each equation belongs to (E,), 0, 1, ..."""
    return np.unique(equations.pose * len(COORDINATES) + equations.coordinate, return_inverse=True)[1]


def is_shared_seen(equations: Equations) -> bool:
    """Return whether any configuration has two numbers of one direction, so that a shared error can be estimated."""
    return bool((np.bincount(configuration_groups(equations)) > 1).any())


def group_sums(rows: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return the sums (groups, k) of rows (E, k) by number of their group (E,)."""
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    return np.add.reduceat(rows[order], starts, axis=0)


def independent_part(equations: Equations, correlation: float) -> np.ndarray:
    """Return what each equation is worth (E,) if n of a group have correlation r: ``1 / (1 + r (n - 1))``."""
    group = configuration_groups(equations)
    return 1 / (1 + correlation * (np.bincount(group)[group] - 1))


def shared_correlation(fit: Fit, equations: Equations, sigma: np.ndarray) -> float:
    """Return the correlation r of equations of one configuration and direction, between 0 and 1.

    Residuals over their sigmas are ``u = P e`` with ``P = I - A C^T``, ``A = B / sigma``, ``C = sigma W^2 B M``: what a
    fit of any weights leaves of errors e of unit variance. With ``cov(e) = a I + b Z Z^T``, Z the indicator of the
    groups, the expectations of ``|u|^2`` and ``|Z^T u|^2`` are linear in a and b; ``r = b / (a + b)``.
    """
    used = fit.weight > 0
    group = configuration_groups(equations)
    count = np.bincount(group, used)
    seen = fit.jacobian * np.where(used, 1 / sigma, 0.0)[:, None]
    taken = (fit.jacobian * (fit.weight**2 * sigma)[:, None]) @ fit.inverse
    seen_sums, taken_sums = group_sums(seen, group), group_sums(taken, group)
    inner_seen, inner_taken = seen.T @ seen, taken.T @ taken
    outer_seen, outer_taken = seen_sums.T @ seen_sums, taken_sums.T @ taken_sums
    once = count.sum() - 2 * (seen_sums * taken_sums).sum()
    twice = (count**2).sum() - 2 * count @ (seen_sums * taken_sums).sum(axis=1)
    system = np.array([
        [count.sum() - 2 * (seen * taken).sum() + (inner_seen * inner_taken).sum(),
         once + (outer_taken * inner_seen).sum()],
        [once + (outer_seen * inner_taken).sum(), twice + (outer_seen * outer_taken).sum()],
    ])  # fmt: skip
    whitened = np.where(used, fit.residual / sigma, 0.0)
    observed = np.array([whitened @ whitened, (np.bincount(group, whitened) ** 2).sum()])
    # With one equation a group the two sums are the same: nothing can be seen to be shared.
    if np.linalg.det(system) <= _SAME * system[0, 0] * system[1, 1]:
        return 0.0
    alone, shared = np.linalg.solve(system, observed)
    return float(np.clip(shared / (alone + shared), 0.0, 1.0)) if alone + shared > 0 else 0.0
