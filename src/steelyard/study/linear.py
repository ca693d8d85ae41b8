"""Many runs of weighted least squares at once: with exact positions all runs share their rows.

``y_r = W chi + e_r`` with the noise of run r as a column of one right-hand side, ``x_r = chi + R^-1 Q^T e_r / sigma``:
one QR and one product for all runs. So P4's study of 200 runs can itself be repeated a hundred times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ..errors import EstimateError
from ..text import short_repr

_NUMBERS_AT_ONCE = 4_000_000


@dataclass(frozen=True, eq=False)
class LinearStudy:
    """Runs that share their rows.

    Attributes:
        estimates: Estimates (c, R).
        covariance: ``(W^T S^-1 W)^-1`` (c, c): their covariance, and the Cramer-Rao bound.
    """

    __repr__ = short_repr

    estimates: np.ndarray
    covariance: np.ndarray

    @property
    def sigma(self) -> np.ndarray:
        """Standard deviations (c,)."""
        return np.sqrt(np.diag(self.covariance))


def linear_study(rows: np.ndarray, values: np.ndarray, deviations: np.ndarray, runs: int, seed: int = 0) -> LinearStudy:
    """Return weighted least squares of many runs with white noise.

    Args:
        rows: W (r, c), unweighted; joint-major as everywhere.
        values: True values chi (c,).
        deviations: Standard deviation of every row's noise (r,).
        runs: Number of runs R.
        seed: Of the noise; run k has the same noise whatever the number of runs.

    Raises:
        EstimateError: If shapes do not fit, a deviation is not above 0, or not all parameters are identifiable.
    """
    rows, values, deviations = (np.asarray(array, dtype=float) for array in (rows, values, deviations))
    _check(rows, values, deviations, runs)
    basis, triangle = np.linalg.qr(rows / deviations[:, None])
    size = np.abs(np.diag(triangle))
    if not size.min() > 1e-12 * size.max():
        raise EstimateError("not all parameters are identifiable; take base parameters and a richer motion")
    projected = np.empty((rows.shape[1], runs))
    generator = np.random.default_rng(seed)
    together = max(1, _NUMBERS_AT_ONCE // len(rows))
    for first in range(0, runs, together):
        noise = generator.standard_normal((min(together, runs - first), len(rows)))
        projected[:, first : first + len(noise)] = basis.T @ noise.T
    inverse = linalg.solve_triangular(triangle, np.eye(len(values)))
    estimates, covariance = values[:, None] + inverse @ projected, inverse @ inverse.T
    for array in (estimates, covariance):
        array.setflags(write=False)
    return LinearStudy(estimates, covariance)


def _check(rows: np.ndarray, values: np.ndarray, deviations: np.ndarray, runs: int) -> None:
    if rows.ndim != 2 or values.shape != rows.shape[1:] or deviations.shape != rows.shape[:1]:
        raise EstimateError(
            f"rows {rows.shape}, values {values.shape}, deviations {deviations.shape}; needed are (r, c), (c,), (r,)"
        )
    if rows.shape[0] < rows.shape[1] or not rows.shape[1]:
        raise EstimateError(f"{rows.shape[0]} rows for {rows.shape[1]} parameters: at least as many rows are needed")
    if not (np.isfinite(rows).all() and np.isfinite(values).all()):
        raise EstimateError("rows or values are not finite; are there NaNs in the motion?")
    if not (np.isfinite(deviations) & (deviations > 0)).all():
        raise EstimateError("deviations: allowed are finite numbers above 0, one a row")
    if runs < 1:
        raise EstimateError(f"runs: got {runs}, needed is at least 1")
