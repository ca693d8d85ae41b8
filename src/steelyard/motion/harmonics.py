"""Trigonometric polynomials: values, derivatives, and where they can be extreme."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import eigvals

# Newton steps from a companion root; it doubles the digits, and the root has most of them already.
POLISHING_STEPS = 3


def differentiated(sin: np.ndarray, cos: np.ndarray, frequency: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the coefficients (n, nf) of sines and cosines of the derivative with respect to time."""
    factors = frequency * np.arange(1, sin.shape[-1] + 1)
    return -cos * factors, sin * factors


def series_values(phase: np.ndarray, series: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
    """Return ``sum_k sin_k sin(k x) + cos_k cos(k x)`` (n, N) of several series at phases x (N,) [rad]."""
    angles = np.arange(1, series[0][0].shape[-1] + 1)[:, None] * phase
    sines, cosines = np.sin(angles), np.cos(angles)
    return [sin @ sines + cos @ cosines for sin, cos in series]


def series_candidates(sin: np.ndarray, cos: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the phases (c,) in [0, 2 pi) at which one series (nf,) can be extreme, and its values (c,) there.

    Every extreme is a root of the derivative g. With ``z = exp(i x)``, ``z^m g`` is a polynomial of degree 2 m in z
    whose roots on the unit circle are the roots of g. The phase of every root is a candidate, those off the circle
    too: a value of the series never lies beyond its extreme, so they can do no harm, and no tolerance decides what
    counts as on the circle. Rounding of a root costs the value nothing to first order; Newton's method removes the
    rest.
    """
    slope = differentiated(sin, cos, 1.0)
    curvature = differentiated(*slope, 1.0)
    phases = np.concatenate([[0.0], _root_phases(*slope)])
    polished = phases
    for _ in range(POLISHING_STEPS):
        g, dg = series_values(polished, [slope, curvature])
        step = np.divide(g, dg, out=np.zeros_like(g), where=dg != 0)
        # A long step leaves the root's neighbourhood (a multiple root, or a phase that is no root): cut it.
        polished = polished - np.clip(step, -0.1 / len(sin), 0.1 / len(sin))
    both = np.remainder(np.concatenate([phases, polished]), 2 * np.pi)
    return both, series_values(both, [(sin, cos)])[0]


def _root_phases(sin: np.ndarray, cos: np.ndarray) -> np.ndarray:
    """Return the phases of the roots of ``z^m sum_k sin_k sin(k x) + cos_k cos(k x)`` in ``z = exp(i x)``.

    The companion matrix is taken as a pencil (A, B): a small leading coefficient is then not divided by.
    """
    there = np.flatnonzero((sin != 0) | (cos != 0))
    if len(there) == 0:
        return np.zeros(0)
    half = (cos - 1j * sin)[: there[-1] + 1] / 2
    half = half / np.abs(half).max()
    polynomial = np.concatenate([half[::-1], [0.0], half.conj()])  # highest power first
    size = len(polynomial) - 1
    companion = np.eye(size, k=-1, dtype=complex)
    companion[0] = -polynomial[1:]
    scale = np.eye(size, dtype=complex)
    scale[0, 0] = polynomial[0]
    roots = np.asarray(eigvals(companion, scale))
    return np.angle(roots[np.isfinite(roots) & (roots != 0)])
