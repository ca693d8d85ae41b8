"""Covariances of the fitted unknowns, and their intervals.

With weights W and noise Sigma the estimate ``X = (B^T W^2 B)^-1 B^T W^2 dp`` has the covariance of P3 eq. 11,
``M B^T W^2 Sigma^2 W^2 B M`` with ``M = (B^T W^2 B)^-1``. Equal weights make it eq. 8, ``W Sigma = I`` makes it eq. 13,
``M``. They differ in what is taken as Sigma:

- ``shared``: sigmas by group, and one correlation of the numbers of one configuration and direction, estimated from
  the residuals. If nothing is shared this is eq. 11. The default: its 95 % intervals hold the truth 93 to 97 times in
  a hundred with equal noise, with unequal noise and with noise that repeats share.
- ``groups``: sigmas by group, all equations independent (eq. 8 and eq. 11). Too small where repeats share an error.
- ``model``: ``M`` itself (eq. 13): right if the weights are one over the true sigmas.
- ``classical``: ``s^2 M`` with ``s^2 = sum (w r)^2 / (E - k)``: right if the weights are so up to a factor.
- ``cluster``: nothing is assumed within a configuration; only configurations are independent. Residuals are corrected
  for what the fit took (Bell and McCaffrey), and t intervals have Satterthwaite's degrees of freedom. For errors that
  turn markers about each other; wide, and itself uncertain, with few configurations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from ...distributions import t_ppf
from ...errors import CalibrationError
from ..records import MeasurementEquations
from .fit import CalibrationFit, square_root
from .weights import Sigmas, configuration_groups, group_sums

CovarianceKind = Literal["shared", "groups", "model", "classical", "cluster"]
COVARIANCES: tuple[CovarianceKind, ...] = get_args(CovarianceKind)

# Directions of a configuration that the fit took whole have no residual to correct.
_TAKEN_WHOLE = 1e-9


@dataclass(frozen=True, eq=False)
class Covariance:
    """Covariance of the fitted unknowns.

    Attributes:
        kind: How it was found.
        matrix: (k, k).
        freedom: Degrees of freedom of the t distribution of each unknown (k,); ``inf`` for the normal one.
    """

    kind: CovarianceKind
    matrix: np.ndarray
    freedom: np.ndarray

    @property
    def sigma(self) -> np.ndarray:
        """Standard deviations (k,)."""
        return np.sqrt(np.maximum(np.diag(self.matrix), 0.0))


def covariance_of(
    fit: CalibrationFit, equations: MeasurementEquations, sigmas: Sigmas, kind: CovarianceKind = "shared"
) -> Covariance:
    """Return the covariance of the fitted unknowns.

    A prior counts as a measurement of the unknown with its sigma.

    Raises:
        CalibrationError: If there are too few equations or configurations for it.
    """
    if kind == "cluster":
        return _cluster(fit, equations)
    size = len(fit.columns)
    left = float((fit.weight > 0).sum() - fit.leverage.sum())
    if kind == "model":
        return _frozen(kind, fit.inverse.copy(), np.full(size, np.inf))
    if left < 1:
        raise CalibrationError(
            f"{kind} covariance: {fit.weight.size} equations leave no degree of freedom beside {size} unknowns; "
            "measure more, or declare sigmas and take 'model'"
        )
    if kind == "classical":
        variance = float(np.sum((fit.weight * fit.residual) ** 2)) / left
        return _frozen(kind, variance * fit.inverse, np.full(size, left))
    correlation = sigmas.correlation if kind == "shared" else 0.0
    matrix = _sandwich(fit, equations, sigmas.sigma, correlation)
    gain = _cost_of_sigmas(fit, equations, sigmas)
    return _frozen(kind, matrix * np.outer(gain, gain), _freedom(fit, sigmas))


def _frozen(kind: CovarianceKind, matrix: np.ndarray, freedom: np.ndarray) -> Covariance:
    matrix = (matrix + matrix.T) / 2
    matrix.setflags(write=False)
    freedom.setflags(write=False)
    return Covariance(kind, matrix, freedom)


def _sandwich(
    fit: CalibrationFit, equations: MeasurementEquations, sigma: np.ndarray, correlation: float
) -> np.ndarray:
    """Return eq. 11 with ``Sigma_g = sigma_i sigma_j ((1 - r) delta_ij + r)`` within a configuration and direction."""
    # Influences first, then their squares: no variance comes out negative, however alike unknowns are.
    influence = fit.jacobian * (fit.weight**2 * sigma)[:, None] @ fit.inverse
    prior = np.sqrt(fit.precision)[:, None] * fit.inverse
    matrix = (1 - correlation) * influence.T @ influence + prior.T @ prior
    if correlation > 0:
        sums = group_sums(influence, configuration_groups(equations))
        matrix += correlation * sums.T @ sums
    return matrix


def _cost_of_sigmas(fit: CalibrationFit, equations: MeasurementEquations, sigmas: Sigmas) -> np.ndarray:
    """Return the factor (k,) by which sigmas grow because the weights follow estimated sigmas (Kenward and Roger).

    With ``Phi = (B^T W^2 B)^-1`` and ``I_g`` a group's part of its inverse, a sigma that is estimated from n equations
    adds ``2 Phi (2 / n (I_g - I_g Phi I_g)) Phi``. Weights that are equal for all numbers of a kind cost nothing.
    """
    kind = equations.coordinate // 3
    if all(np.ptp(fit.weight[kind == each]) == 0 for each in np.unique(kind)):
        return np.ones(len(fit.columns))
    lower = square_root(fit.inverse)
    rows = fit.jacobian * fit.weight[:, None] @ lower
    part = 2 / sigmas.worth
    excess = (rows * part[sigmas.group][:, None]).T @ rows
    order = np.argsort(sigmas.group, kind="stable")
    for number, own in enumerate(np.split(order, np.cumsum(np.bincount(sigmas.group))[:-1])):
        block = rows[own]
        excess -= part[number] * (block.T @ block) @ (block.T @ block)
    added = 2 * np.einsum("ij,jk,ik->i", lower, excess, lower) / np.diag(fit.inverse)
    return np.sqrt(1 + np.maximum(added, 0.0))


def _freedom(fit: CalibrationFit, sigmas: Sigmas) -> np.ndarray:
    """Return Satterthwaite's degrees of freedom (k,): ``V^2 / sum (V_g^2 / n_g)``, V_g a group's part of a variance."""
    influence = (fit.jacobian @ fit.inverse) * (fit.weight**2 * sigmas.sigma)[:, None]
    parts = group_sums(influence**2, sigmas.group)
    spread = (parts**2 / sigmas.worth[:, None]).sum(axis=0)
    return np.maximum(parts.sum(axis=0) ** 2 / np.maximum(spread, np.finfo(float).tiny), 1.0)


def _cluster(fit: CalibrationFit, equations: MeasurementEquations) -> Covariance:
    poses, pose = np.unique(equations.pose, return_inverse=True)
    if len(poses) < 3:
        raise CalibrationError(f"cluster covariance: got {len(poses)} configurations, needed are 3 and more")
    rows = fit.jacobian * fit.weight[:, None]
    weighted = fit.weight * fit.residual
    scores = np.zeros((len(poses), rows.shape[1]))
    # For the degrees of freedom: influence of each configuration on each unknown, squared, and projected on B.
    squares = np.zeros((len(poses), rows.shape[1]))
    through = np.zeros((len(poses), rows.shape[1], rows.shape[1]))
    for members, own in clusters_by_size(pose):
        block = rows[members]
        corrected = _corrected(block, fit.inverse)
        scores[own] = np.einsum("gek,gef,gf->gk", block, corrected, weighted[members])
        influence = corrected @ block @ fit.inverse
        squares[own] = (influence**2).sum(axis=1)
        through[own] = np.einsum("gej,gek->gjk", influence, block)
    matrix = fit.inverse @ (scores.T @ scores + np.diag(fit.precision)) @ fit.inverse
    return _frozen("cluster", matrix, _satterthwaite(squares, through, fit.inverse))


def clusters_by_size(number: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return, for each size of a cluster, the equations (g, n) of the clusters of that size, and their numbers (g,)."""
    order, count = np.argsort(number, kind="stable"), np.bincount(number)
    starts = np.cumsum(count) - count
    sizes = [np.flatnonzero(count == size) for size in np.unique(count)]
    return [(order[starts[own][:, None] + np.arange(int(count[own[0]]))], own) for own in sizes]


def _corrected(block: np.ndarray, inverse: np.ndarray) -> np.ndarray:
    """Return ``(I - H_gg)^-1/2`` (g, n, n) of the equations (g, n, k) of some configurations."""
    hat = block @ inverse @ block.transpose(0, 2, 1)
    values, vectors = np.linalg.eigh(np.eye(hat.shape[1]) - hat)
    roots = np.where(values > _TAKEN_WHOLE, np.maximum(values, _TAKEN_WHOLE) ** -0.5, 0.0)
    return vectors * roots[:, None, :] @ vectors.transpose(0, 2, 1)


def _satterthwaite(squares: np.ndarray, through: np.ndarray, inverse: np.ndarray) -> np.ndarray:
    """Return ``(tr M)^2 / tr M^2`` with ``M = diag(d) - V (B^T B)^-1 V^T`` for each unknown (k,)."""
    lower = square_root(inverse)
    freedom = np.zeros(squares.shape[1])
    for unknown in range(squares.shape[1]):
        d, v = squares[:, unknown], through[:, unknown] @ lower
        own = (v**2).sum(axis=1)
        trace = d.sum() - own.sum()
        freedom[unknown] = trace**2 / ((d**2).sum() - 2 * d @ own + ((v.T @ v) ** 2).sum())
    return np.maximum(freedom, 1.0)


def intervals(values: np.ndarray, covariance: Covariance, level: float = 0.95) -> np.ndarray:
    """Return two-sided intervals (k, 2) of values (k,) at a level such as 0.95, by the t distribution.

    Raises:
        CalibrationError: If the level is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise CalibrationError(f"level of an interval: got {level}, allowed is a number between 0 and 1, such as 0.95")
    half = t_ppf((1 + level) / 2, covariance.freedom) * covariance.sigma
    return np.column_stack([values - half, values + half])


def overlap(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return whether the intervals (k, 2) of two estimates have a point in common (k,), as in P3's Fig. 3."""
    return (first[:, 0] <= second[:, 1]) & (second[:, 0] <= first[:, 1])
