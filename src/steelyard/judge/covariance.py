"""Covariances of a weighted least-squares estimate: classical, sandwich, block sandwich and Newey-West.

X (r, p) and the residual e (r,) are already weighted; ``B = (X^T X)^-1`` is the bread. Only ``classical`` needs equal
and uncorrelated noise; ``sandwich`` allows unequal, ``block_sandwich`` and ``hac`` correlated noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Literal

import numpy as np
from scipy import linalg

from ..errors import EstimateError, nearest_match
from ..estimate import Estimate, NoiseGroup, block_scores
from ..observe import Observations, RowRun, RowSource, Whitening, weighted_runs
from ..signals.recursive import RunningConvolution

SandwichKind = Literal["HC0", "HC1", "HC2", "HC3"]
SANDWICHES: tuple[SandwichKind, ...] = ("HC0", "HC1", "HC2", "HC3")
# Below this the smallest pivot of the scaled columns is rounding.
_DEPENDENT = 1e-11


def classical(X: np.ndarray, e: np.ndarray) -> np.ndarray:
    """Return ``s^2 (X^T X)^-1`` (p, p) with ``s^2 = e^T e / (r - p)``: white noise of one size."""
    rows, residual = _checked(X, e)
    _, inverse = _factor(rows)
    return float(residual @ residual) / (rows.shape[0] - rows.shape[1]) * (inverse @ inverse.T)


def sandwich(X: np.ndarray, e: np.ndarray, kind: SandwichKind = "HC3") -> np.ndarray:
    """Return ``B X^T diag(u^2) X B`` (p, p): noise of unequal size, uncorrelated (P3, eq. 8).

    With the leverage ``h = diag(X B X^T)``: HC0 ``u = e``; HC1 ``u = e sqrt(r / (r - p))``; HC2
    ``u = e / sqrt(1 - h)``; HC3 ``u = e / (1 - h)``, nearly a jackknife.

    Raises:
        EstimateError: If the kind is unknown, shapes do not fit, or columns are dependent.
    """
    if kind not in SANDWICHES:
        allowed = ", ".join(SANDWICHES)
        raise EstimateError(f"sandwich: got '{kind}', allowed are {allowed}{nearest_match(str(kind), SANDWICHES)}")
    rows, residual = _checked(X, e)
    triangle, inverse = _factor(rows)
    basis = rows @ inverse
    free = 1 - np.einsum("ij,ij->i", basis, basis)
    if kind in ("HC2", "HC3") and free.min() < 1e-12:
        raise EstimateError(
            f"sandwich: row {int(free.argmin())} alone fixes a parameter (leverage 1), so {kind} is undefined; take HC1"
        )
    if kind in ("HC0", "HC1"):
        scale = 1.0 if kind == "HC0" else np.sqrt(len(rows) / (len(rows) - len(triangle)))
    else:
        scale = free**-0.5 if kind == "HC2" else 1 / free
    half = inverse @ (basis * (residual * scale)[:, None]).T
    return half @ half.T


def block_sandwich(
    scores: np.ndarray, bread: np.ndarray, rows: int | None = None, *, correction: bool = True
) -> np.ndarray:
    """Return ``c B (sum_b s_b s_b^T) B`` (p, p) from the score ``s_b = X_b^T e_b`` of each time block (cluster-robust).

    Rows may be correlated within a block in any way, not between blocks. With ``correction``
    ``c = G / (G - 1) (r - 1) / (r - p)`` for G blocks and r rows, otherwise 1.

    Args:
        scores: X_b^T e_b (G, p).
        bread: (X^T X)^-1 (p, p).
        rows: Number of rows r; needed for the correction.
        correction: Small-sample factor c.

    Raises:
        EstimateError: If shapes do not fit, or there are fewer than two blocks.
    """
    blocks, inverse = np.asarray(scores, dtype=np.float64), np.asarray(bread, dtype=np.float64)
    if blocks.ndim != 2 or inverse.shape != (blocks.shape[1], blocks.shape[1]):
        raise EstimateError(
            f"block covariance: got scores {blocks.shape} and bread {inverse.shape}, allowed are (blocks, p) and (p, p)"
        )
    if not (np.isfinite(blocks).all() and np.isfinite(inverse).all()):
        raise EstimateError("block covariance: got scores or bread that are not finite")
    count, columns = blocks.shape
    if count < 2:
        raise EstimateError(f"block covariance: got {count} block, needed are at least 2; take shorter blocks")
    factor = 1.0
    if correction:
        if rows is None or rows <= columns:
            raise EstimateError(f"block covariance: got {rows} rows, needed are more than the {columns} parameters")
        factor = count / (count - 1) * (rows - 1) / (rows - columns)
    half = inverse @ blocks.T
    return factor * half @ half.T


def default_lags(rows: int) -> int:
    """Return Newey and West's lag length ``floor(4 (r / 100)^(2/9))``."""
    return int(np.floor(4 * (rows / 100) ** (2 / 9)))


class HacMeat:
    """Newey-West meat with Bartlett's kernel, from rows that come in blocks; memory does not grow.

    With ``s[t] = X[t] e[t]`` and ``w(l) = 1 - l / (L + 1)``:
    ``S = sum_t s[t] s[t]^T + sum_l w(l) sum_t (s[t] s[t-l]^T + s[t-l] s[t]^T)``; no product crosses a break.

    Attributes:
        lags: L.
        meat: S so far (p, p).
        rows: Rows so far.
    """

    def __init__(self, lags: int) -> None:
        if int(lags) != lags or lags < 0:
            raise EstimateError(f"HAC lags: got {lags}, allowed are whole numbers of 0 and above")
        self.lags = int(lags)
        self.rows = 0
        self.meat = np.zeros((0, 0))
        # Half of the product at lag 0, so that adding the transpose completes it.
        kernel = np.concatenate([[0.5], 1 - np.arange(1, self.lags + 1) / (self.lags + 1)])
        self._smoother = RunningConvolution(kernel)

    def restart(self) -> None:
        """Begin after a break: the next row has no neighbours before it."""
        self._smoother.restart()

    def push(self, X: np.ndarray, e: np.ndarray) -> None:
        """Add rows X (k, p) with their residuals e (k,), the neighbours of those before unless restarted."""
        rows, residual = _shaped(X, e)
        scores = rows * residual[:, None]
        if not self.meat.size:
            self.meat = np.zeros((scores.shape[1], scores.shape[1]))
        if scores.shape[1] != len(self.meat):
            raise EstimateError(f"HAC: got {scores.shape[1]} columns, the rows before had {len(self.meat)}")
        half = scores.T @ self._smoother.push(scores)
        self.meat = self.meat + half + half.T
        self.rows += len(scores)


def hac(
    runs: Sequence[tuple[np.ndarray, np.ndarray]], lags: int | None = None, *, correction: bool = False
) -> np.ndarray:
    """Return Newey and West's covariance ``c B S B`` (p, p) for noise correlated over a few lags.

    Args:
        runs: (X, e) of each contiguous segment; no product crosses a break.
        lags: L; ``floor(4 (r / 100)^(2/9))`` by default.
        correction: ``c = r / (r - p)`` instead of 1.

    Raises:
        EstimateError: If there are no runs, shapes do not fit, or columns are dependent.
    """
    pairs = [_shaped(X, e) for X, e in runs]
    if not pairs:
        raise EstimateError("HAC: got no runs, needed is at least one pair of rows and residuals")
    total = sum(len(e) for _, e in pairs)
    meat = HacMeat(default_lags(total) if lags is None else lags)
    for X, e in pairs:
        meat.restart()
        meat.push(X, e)
    columns = len(meat.meat)
    _check_more_rows(total, columns)
    triangle = np.zeros((0, columns))
    for X, _ in pairs:
        triangle = np.linalg.qr(np.vstack([triangle, X]), mode="r")
    _, inverse = _factor(np.asarray(triangle))
    bread = inverse @ inverse.T
    return (total / (total - columns) if correction else 1.0) * bread @ meat.meat @ bread


def _shaped(X: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows, residual = np.asarray(X, dtype=np.float64), np.asarray(e, dtype=np.float64)
    if rows.ndim != 2 or residual.shape != (len(rows),) or rows.shape[1] == 0:
        raise EstimateError(
            f"covariance: got rows of shape {rows.shape} and residuals {residual.shape}, allowed are (r, p) and (r,)"
        )
    if not (np.isfinite(rows).all() and np.isfinite(residual).all()):
        raise EstimateError("covariance: got rows or residuals that are not finite; leave these rows out")
    return rows, residual


def _checked(X: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows, residual = _shaped(X, e)
    _check_more_rows(*rows.shape)
    return rows, residual


def _check_more_rows(rows: int, columns: int) -> None:
    if rows <= columns:
        raise EstimateError(f"covariance: got {rows} rows, needed are more than the {columns} parameters")


def _factor(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return R of ``X = Q R`` and its inverse, columns scaled inside so that units do not matter."""
    scale = np.linalg.norm(rows, axis=0)
    if scale.min() == 0:
        raise EstimateError(f"covariance: column {int(scale.argmin())} is zero; leave this parameter out")
    triangle = np.asarray(np.linalg.qr(rows / scale, mode="r"))
    pivots = np.abs(np.diag(triangle))
    if pivots.min() < _DEPENDENT:
        raise EstimateError(
            f"covariance: column {int(pivots.argmin())} depends on those before it; reduce to base parameters first"
        )
    inverse = linalg.solve_triangular(triangle, np.eye(len(triangle)))
    return triangle * scale, inverse / scale[:, None]


COVARIANCES = ("model", "classical", "sandwich", "block", "hac")


def with_covariance(
    kind: str,
    estimate: Estimate,
    observations: Observations,
    sources: Sequence[RowSource],
    whitening: Whitening | None = None,
) -> Estimate:
    """Return the estimate with another covariance.

    | kind | holds for noise that is |
    |---|---|
    | ``model`` | as the fitted noise model says; see :func:`steelyard.estimate.with_correlated_noise` |
    | ``classical`` | white, one size for each noise group: ``(W_w^T W_w)^-1`` |
    | ``sandwich`` | white, of any size (HC3) |
    | ``block`` | correlated within blocks of time, not between them |
    | ``hac`` | correlated over a few rows (Newey and West) |

    Args:
        kind: Name of the covariance.
        estimate: The estimate.
        observations: The factors behind it (whitened ones for ``gls``).
        sources: The rows behind them.
        whitening: How the rows were whitened, if they were.

    Raises:
        EstimateError: If the kind is unknown, or ``model`` is requested where there is no noise model.
    """
    if kind not in COVARIANCES:
        raise EstimateError(
            f"covariance: got '{kind}', allowed are {', '.join(COVARIANCES)}{nearest_match(kind, COVARIANCES)}"
        )
    if kind == estimate.covariance_kind:
        return estimate
    if kind == "model":
        raise EstimateError(
            f"covariance 'model' belongs to method 'gls'; method '{estimate.method}' has no noise model"
        )
    system = estimate.system
    if kind == "classical":
        covariance = system.inverse * estimate.unit**2
    elif kind == "block":
        covariance = block_sandwich(block_scores(estimate, observations), system.inverse, system.rows)
    else:
        covariance = (_sandwich if kind == "sandwich" else _hac)(estimate, sources, whitening)
    freedom = np.full(len(estimate.columns), float(system.freedom))
    return replace(estimate, covariance=covariance, covariance_kind=kind, freedom=freedom)


def _sandwich(estimate: Estimate, sources: Sequence[RowSource], whitening: Whitening | None) -> np.ndarray:
    bread, root = estimate.system.inverse, estimate.system.inverse_root
    meat = np.zeros_like(bread)
    for _run, X, residual in weighted_residuals(estimate, sources, whitening):
        leverage = np.sum((X @ root) ** 2, axis=1)
        scores = X * (residual / np.maximum(1 - leverage, 1e-6))[:, None]
        meat += scores.T @ scores
    return bread @ meat @ bread


def _hac(estimate: Estimate, sources: Sequence[RowSource], whitening: Whitening | None) -> np.ndarray:
    bread = estimate.system.inverse
    lags = default_lags(estimate.system.rows // max(1, len({group[1:] for group in estimate.deviations})))
    meats: dict[NoiseGroup, HacMeat] = {}
    for run, X, residual in weighted_residuals(estimate, sources, whitening):
        meat = meats.setdefault(run.group, HacMeat(lags))
        if run.starts:
            meat.restart()
        meat.push(X, residual)
    return bread @ np.sum([meat.meat for meat in meats.values()], axis=0) @ bread


def weighted_residuals(
    estimate: Estimate, sources: Sequence[RowSource], whitening: Whitening | None = None
) -> Iterator[tuple[RowRun, np.ndarray, np.ndarray]]:
    """Yield weighted (and whitened) rows X (k, p) over all columns with their residuals (k,), block by block."""
    runs = chain.from_iterable(source.runs() for source in sources)
    for weighted in weighted_runs(runs, estimate.columns, estimate.weights, whitening):
        X = weighted.spread(len(estimate.columns))[:, :-1]
        yield weighted.run, X, weighted.rows[:, -1] - X @ estimate.values
