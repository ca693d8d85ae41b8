"""Parameters that stay those of a possible arm: an inertia matrix that is positive definite, with a margin.

``u^T M(q, chi) u`` is linear in chi. Where the k-th pivot of ``M = L D L^T`` is too small, that form is d_k with
``u = L^-T e_k``, and ``a^T chi >= d`` with ``a = d(u^T M u)/dchi`` is an inequality that every possible arm obeys. The
parameters are moved onto it by as little as can be in the measure of their own information,
``dchi = P a (d - d_k) / (a^T P a)`` (projection of a constrained Kalman filter): what the data know well stays.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from .arm_graph import ArmGraph

TARGET = 1.2
"""Pivots that are too small are raised to this many times the least."""

TRIES = 20
"""Pivots that are raised one after the other at a posture, at most."""


def possible_move(
    graph: ArmGraph, free: list[int], q: np.ndarray, chi: np.ndarray, least: np.ndarray, root: np.ndarray
) -> np.ndarray | None:
    """Return how the free parameters must move (f,) for M(q) to have pivots of at least ``least``; None if none helps.

    Args:
        graph: The arm.
        free: Which parameters are free.
        q: Posture (n,).
        chi: All parameters (c,).
        least: Least pivots (n,).
        root: ``R_pp^-1`` (f, f), the root of their covariance.
    """
    values = chi.copy()
    for _ in range(TRIES):
        M = np.asarray(graph.inertia(q, values)[0])
        pivots, u = _worst(M, least)
        if u is None:
            return values[free] - chi[free]
        a = root.T @ np.asarray(graph.inertia_row(q, u)).ravel()
        weight = a @ a
        if not (np.isfinite(weight) and weight > 0):
            return None
        values[free] += root @ a * (pivots[1] - pivots[0]) / weight
    return None


def _worst(M: np.ndarray, least: np.ndarray) -> tuple[tuple[float, float], np.ndarray | None]:
    """Return the first pivot that is too small with its target, and the direction that shows it; None if none is."""
    size = len(M)
    low, pivots = np.eye(size), np.zeros(size)
    for k in range(size):
        pivots[k] = M[k, k] - (low[k, :k] ** 2) @ pivots[:k]
        if not pivots[k] >= least[k]:
            unit = np.zeros(k + 1)
            unit[k] = 1.0
            u = np.zeros(size)
            u[: k + 1] = solve_triangular(low[: k + 1, : k + 1].T, unit)
            return (float(pivots[k]), TARGET * float(least[k])), u
        low[k + 1 :, k] = (M[k + 1 :, k] - low[k + 1 :, :k] @ (low[k, :k] * pivots[:k])) / pivots[k]
    return (0.0, 0.0), None
