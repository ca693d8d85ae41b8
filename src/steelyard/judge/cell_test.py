"""Do the means of residuals differ between cells by more than their serial correlation allows?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ..distributions import f_sf
from .serial import SerialCorrelation, correlated

_DEPENDENT = 1e-8
_ROUNDS = 3
_UNREMARKABLE = 0.05


@dataclass(frozen=True)
class CellTest:
    """A test of columns beyond a base.

    Attributes:
        f: Wald statistic over its degrees of freedom.
        p: Its probability, from F.
        share: Share of the residual's variance that the columns explain, less what chance explains.
        basis: Orthonormal basis of base and columns together (n, q).
        left: Residuals less the part in that basis (n,).
    """

    f: float
    p: float
    share: float
    basis: np.ndarray
    left: np.ndarray


@dataclass(frozen=True)
class Noise:
    """What is known of the noise of residuals.

    Attributes:
        lengths: Samples of each run.
        size: Standard deviation at each sample (n,), up to a factor: larger near reversals, for instance.
        serial: How its serial correlation is estimated.
    """

    lengths: Sequence[int]
    size: np.ndarray
    serial: SerialCorrelation


def wald_test(residual: np.ndarray, base: np.ndarray, columns: np.ndarray, noise: Noise) -> CellTest | None:
    """Test whether residuals e (n,) have a part along columns (n, m) beyond an orthonormal base (n, k).

    With Q an orthonormal basis of what the columns add, ``t = Q^T e`` has the covariance ``V = s^2 Q^T D C D Q``,
    where D holds the noise's size and C its correlation matrix, run by run, and ``F = t^T V^-1 t / d``. Means are those
    of least squares, so that a pattern that is not quite a step costs nothing but a little power.

    Returns:
        The test, or None if the columns add nothing to the base or the samples are too few for it.
    """
    extra = columns - base @ (base.T @ columns)
    left_vectors, sizes, _ = linalg.svd(extra, full_matrices=False)
    added = left_vectors[:, sizes > _DEPENDENT * np.linalg.norm(columns)]
    basis = np.concatenate([base, added], axis=1)
    left = residual - basis @ (basis.T @ residual)
    if added.shape[1] == 0 or len(residual) < 3 * basis.shape[1] or left @ left <= 1e-20 * (residual @ residual):
        return None
    along, count = added.T @ residual, added.shape[1]
    covariance, effective = _covariance_along(left, basis, count, noise)
    f, p = _wald(along, covariance, effective - basis.shape[1])
    for _ in range(_ROUNDS):
        # The noise has a part along the columns too: as much of it is put back as chance would leave there. This only
        # lowers F, so it is spared where F is unremarkable already.
        if p > _UNREMARKABLE:
            break
        kept = min(1.0, np.sqrt(np.trace(covariance) / float(along @ along)))
        covariance, effective = _covariance_along(left + added @ (kept * along), basis, count, noise)
        f, p = _wald(along, covariance, effective - basis.shape[1])
    share = (float(along @ along) - float(np.trace(covariance))) / float(residual @ residual)
    return CellTest(f, p, max(0.0, share), basis, left)


def _wald(along: np.ndarray, covariance: np.ndarray, free: float) -> tuple[float, float]:
    """Return F and its probability for a vector (d,) of the given covariance (d, d)."""
    f = float(along @ linalg.solve(covariance, along, assume_a="sym")) / len(along)
    return f, float(f_sf(f, len(along), max(3.0, free)))


def _covariance_along(sample: np.ndarray, basis: np.ndarray, count: int, noise: Noise) -> tuple[np.ndarray, float]:
    """Return V (d, d) along the last d columns of a basis, and how many independent samples all are worth."""
    lags = noise.serial.estimate(np.split(sample, np.cumsum(noise.lengths)[:-1]))
    scaled = basis * noise.size[:, None]
    spread = scaled.T @ correlated(scaled, noise.lengths, lags)
    # The sample has no part along the base, which has been fitted before.
    free = max(1.0, float(noise.size @ noise.size) - float(np.trace(spread[:-count, :-count])))
    effective = len(sample) / max(1.0, float(2 * lags.sum() - 1))
    return float(sample @ sample) / free * spread[-count:, -count:], effective
