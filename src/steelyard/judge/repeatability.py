"""Do recordings agree: each fitted alone from its own factors, against all together.

A part of the data gives an estimate ``x_r`` with covariance ``C_r``, all of them together ``x`` with C. As x is the
best combination, ``cov(x_r - x) = C_r - C``, so that ``z = (x_r - x) / sqrt(diag(C_r - C))`` has variance 1 if the
recordings are of one arm and the sigmas are right. Another temperature, payload or noise than assumed makes it larger.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from ..estimate import Cell, Estimate, cell_of
from ..observe import Observations, merged_triangle

WEAKEST = 10.0
"""A recording tells something of a column if its own sigma is at most so many times that of all recordings."""

# Directions that a recording does not excite get sigmas so large that no column they touch is compared.
_UNSEEN = 1e-10
# Where a recording has all but this part of the information there is nothing left to compare it with.
_LEAST_OTHERS = 1e-6


@dataclass(frozen=True)
class Repeatability:
    """How far recordings agree.

    Attributes:
        spread: ``sqrt(mean z^2)`` over columns and recordings: 1 is what the sigmas promise.
        recordings: The same for each recording, by label; those that tell of no column are left out.
        compared: How many columns of each recording were compared, by label.
        worst_column: Column with the largest ``|z|``.
        worst_recording: Recording of that z.
        worst_z: That z, with its sign.
    """

    spread: float
    recordings: Mapping[str, float]
    compared: Mapping[str, int]
    worst_column: str
    worst_recording: str
    worst_z: float


def repeatability(whitened: Observations, estimate: Estimate, weights: Mapping[Cell, float]) -> Repeatability | None:
    """Compare each recording's own estimate with that of all recordings.

    A recording is compared in the columns of which it alone tells something: those it does not excite, or only together
    with others (the payload and the last links of a loaded recording), have sigmas without end there and drop out by
    themselves. Sigmas carry the small-sample gain of the estimate.

    Args:
        whitened: Factors of the rows that gave the estimate.
        estimate: The estimate of all recordings.
        weights: Weight of every cell, one over the deviation of its noise, as in the estimate.

    Returns:
        The comparison; None if there are fewer than two recordings that can be compared.
    """
    # A deviation of the bare system is 1; the gain turns it into the sigma that is told.
    bare = np.diag(estimate.system.inverse)
    gain = np.diag(estimate.covariance) / bare
    scores = {info.label: _scores(whitened, estimate, weights, info.label, bare, gain) for info in whitened.recordings}
    told = {label: z for label, z in scores.items() if np.isfinite(z).any()}
    if len(whitened.recordings) < 2 or not told:
        return None
    label, column = max(
        ((label, int(np.nanargmax(np.abs(z)))) for label, z in told.items()), key=lambda at: abs(told[at[0]][at[1]])
    )
    everything = np.concatenate(list(told.values()))
    return Repeatability(
        _root_mean_square(everything),
        MappingProxyType({label: _root_mean_square(z) for label, z in told.items()}),
        MappingProxyType({label: int(np.isfinite(z).sum()) for label, z in told.items()}),
        estimate.columns[column],
        label,
        float(told[label][column]),
    )


def _scores(
    whitened: Observations,
    estimate: Estimate,
    weights: Mapping[Cell, float],
    label: str,
    bare: np.ndarray,
    gain: np.ndarray,
) -> np.ndarray:
    """Return z of every column (c,), NaN where the recording is not compared."""
    factors = [factor for factor in whitened.factors if factor.recording == label and cell_of(factor) in weights]
    triangle, _ = merged_triangle(factors, estimate.columns, lambda factor: weights[cell_of(factor)])
    values, variance = _alone(triangle)
    beyond = variance - bare
    compared = (variance <= WEAKEST**2 * bare) & (beyond > _LEAST_OTHERS * bare)
    z = np.full(len(bare), np.nan)
    z[compared] = (values - estimate.values)[compared] / np.sqrt((gain * beyond)[compared])
    return z


def _alone(triangle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the solution (c,) and its variances (c,), those of columns that are not determined without end."""
    norms = np.linalg.norm(triangle[:, :-1], axis=0)
    excited = norms > 1e-13 * norms.max(initial=0.0)
    values, variance = np.zeros(len(norms)), np.full(len(norms), np.inf)
    if not excited.any():
        return values, variance
    scale = norms[excited]
    left, sizes, right = np.linalg.svd(triangle[:, :-1][:, excited] / scale, full_matrices=False)
    held = np.maximum(sizes, _UNSEEN * sizes[0])
    values[excited] = right.T @ ((left.T @ triangle[:, -1]) / held) / scale
    variance[excited] = np.sum((right.T / held) ** 2, axis=1) / scale**2
    return values, variance


def _root_mean_square(z: np.ndarray) -> float:
    return float(np.sqrt(np.nanmean(z**2)))
