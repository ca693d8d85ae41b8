"""The covariance of an estimate by name, from the same rows and factors that gave it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..errors import EstimateError, nearest_match
from ..estimate import Estimate, block_scores
from ..observe import Observations, RowSource, RowTransform, Whitening
from .covariance import HacMeat, block_sandwich, default_lags

COVARIANCES = ("model", "classical", "sandwich", "block", "hac")


@dataclass(frozen=True)
class EquationRun:
    """Weighted rows X (k, p) of one equation over all columns, their residuals (k,), and whether a run begins."""

    equation: tuple[str, int]
    begins: bool
    X: np.ndarray
    residual: np.ndarray


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
    | ``classical`` | white, one size for each cell: ``(W_w^T W_w)^-1`` |
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
        EstimateError: If the kind is unknown, or ``model`` is asked for where there is no noise model.
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
    freedom = np.full(len(estimate.columns), float(estimate.system.freedom))
    return replace(
        estimate, covariance=_BY_NAME[kind](estimate, observations, sources, whitening), covariance_kind=kind,
        freedom=freedom,
    )  # fmt: skip


def _classical(estimate: Estimate, *_: object) -> np.ndarray:
    system = estimate.system
    return system.inverse * estimate.unit**2


def _block(estimate: Estimate, observations: Observations, *_: object) -> np.ndarray:
    return block_sandwich(block_scores(estimate, observations), estimate.system.inverse, estimate.system.rows)


def _sandwich(
    estimate: Estimate, _: Observations, sources: Sequence[RowSource], whitening: Whitening | None
) -> np.ndarray:
    bread, root = estimate.system.inverse, estimate.system.inverse_root
    meat = np.zeros_like(bread)
    for run in weighted_runs(estimate, sources, whitening):
        leverage = np.sum((run.X @ root) ** 2, axis=1)
        scores = run.X * (run.residual / np.maximum(1 - leverage, 1e-6))[:, None]
        meat += scores.T @ scores
    return bread @ meat @ bread


def _hac(estimate: Estimate, _: Observations, sources: Sequence[RowSource], whitening: Whitening | None) -> np.ndarray:
    bread = estimate.system.inverse
    lags = default_lags(estimate.system.rows // max(1, len({cell[1:] for cell in estimate.deviations})))
    meats: dict[tuple[str, int], HacMeat] = {}
    for run in weighted_runs(estimate, sources, whitening):
        meat = meats.setdefault(run.equation, HacMeat(lags))
        if run.begins:
            meat.restart()
        meat.push(run.X, run.residual)
    return bread @ np.sum([meat.meat for meat in meats.values()], axis=0) @ bread


_BY_NAME: dict[str, Callable[..., np.ndarray]] = {
    "classical": _classical, "sandwich": _sandwich, "block": _block, "hac": _hac,
}  # fmt: skip


def weighted_runs(
    estimate: Estimate, sources: Sequence[RowSource], whitening: Whitening | None = None
) -> Iterator[EquationRun]:
    """Yield the weighted (and whitened) rows of all equations with their residuals, block by block."""
    place, weights = {name: k for k, name in enumerate(estimate.columns)}, estimate.weights
    for source in sources:
        equations = source.equations
        transforms: list[RowTransform | None] = [
            None if whitening is None else whitening(source, e) for e in range(len(equations.columns))
        ]
        ends = [(-1, -1)] * len(transforms)
        for block in source:
            for e, names in enumerate(equations.columns):
                kept = [k for k, name in enumerate(names) if name in place]
                index = [place[names[k]] for k in kept]
                weight = weights.get((source.label, *equations.kinds_joints[e]), 0.0)
                for first, rows in block.runs(e):
                    at = (block.segment, block.first + first)
                    begins, ends[e] = at != ends[e], (at[0], at[1] + len(rows))
                    ready = _transformed(transforms[e], rows[:, [*kept, -1]], begins) * weight
                    X = np.zeros((len(ready), len(place)))
                    X[:, index] = ready[:, :-1]
                    yield EquationRun((source.label, e), begins, X, ready[:, -1] - X @ estimate.values)


def _transformed(transform: RowTransform | None, rows: np.ndarray, begins: bool) -> np.ndarray:
    if transform is None:
        return rows
    if begins:
        transform.restart()
    return transform.push(rows)
