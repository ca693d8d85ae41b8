"""Does the residual's spread depend on what the arm does (Breusch and Pagan)?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..distributions import chi2_sf, f_sf
from ..errors import EstimateError
from .series import checked_residuals


class BreuschPagan(NamedTuple):
    """Breusch-Pagan test in Koenker's form.

    Attributes:
        lm: ``r R^2`` of the squared residuals on the regressors.
        p: Its probability, chi-square with as many degrees of freedom as regressors.
        f: F statistic of the same regression; better for few rows.
        f_p: Its probability.
    """

    lm: float
    p: float
    f: float
    f_p: float


def breusch_pagan(residuals: np.ndarray, regressors: np.ndarray) -> BreuschPagan:
    """Regress squared residuals on what might drive their size.

    ``e^2 = c_0 + c^T x + u``; under equal variance ``r R^2`` is chi-square. Koenker's form needs no normal residuals.

    Args:
        residuals: Residuals (r,).
        regressors: Rows such as |qd|, |tau| or temperature (k, r); the constant is added here.

    Raises:
        EstimateError: If shapes do not fit, a value is not finite, or the regressors are constant or dependent.
    """
    values = checked_residuals(residuals, least=4)
    rows = np.asarray(regressors, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != len(values) or rows.shape[0] == 0:
        raise EstimateError(
            f"regressors of the variance: got shape {rows.shape}, allowed is (k, {len(values)}): one row each, as long "
            "as the residuals"
        )
    if not np.isfinite(rows).all():
        raise EstimateError("regressors of the variance: got values that are not finite; leave these samples out")
    return _regression_test(values**2, _normalised(rows))


def _normalised(rows: np.ndarray) -> np.ndarray:
    centred = rows - rows.mean(axis=1, keepdims=True)
    size = np.linalg.norm(centred, axis=1, keepdims=True)
    constant = np.flatnonzero(size[:, 0] <= 1e-12 * np.linalg.norm(rows, axis=1))
    if constant.size:
        raise EstimateError(f"regressors of the variance: row {constant[0]} is constant; leave it out")
    return centred / size


def _regression_test(squares: np.ndarray, rows: np.ndarray) -> BreuschPagan:
    samples, count = len(squares), len(rows)
    free = samples - 1 - count
    if free < 1:
        raise EstimateError(f"Breusch-Pagan: got {samples} residuals, needed are at least {count + 2}")
    centred = squares - squares.mean()
    solution, _, rank, _ = np.linalg.lstsq(rows.T, centred, rcond=1e-10)
    if rank < count:
        raise EstimateError(f"regressors of the variance: got {count} rows of rank {rank}; leave dependent ones out")
    left, total = float(np.sum((centred - solution @ rows) ** 2)), float(centred @ centred)
    if total == 0:
        raise EstimateError("residuals: all have the same size, so their spread cannot be explained")
    lm = samples * (1 - left / total)
    f = (total - left) / count / (left / free) if left > 0 else np.inf
    return BreuschPagan(lm, float(chi2_sf(lm, count)), float(f), float(f_sf(f, count, free)))
