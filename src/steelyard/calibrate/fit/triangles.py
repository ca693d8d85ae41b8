"""Least squares by a triangle: R of the rows, fast by Cholesky where they are well conditioned, else by QR."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import solve_triangular

from ...errors import CalibrationError

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
