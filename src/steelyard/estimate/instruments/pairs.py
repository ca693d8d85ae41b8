"""Rows of the real recordings beside those of the simulated ones, reduced to one triangle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import EstimateError
from ...observe import MIN_SHARE, RowBlock, RowSource, RowStack
from ...signals.convolution import RunningConvolution
from ..lag_products import Equation
from ..noise import NoiseModel
from ..whitening import noise_autocovariance
from .moving import Twins

# Correlation of the noise is followed until it has died out to this part, or over so many rows.
_DIED_OUT = 1e-3
_LONGEST = 2000


@dataclass(frozen=True, eq=False)
class PairedRows:
    """Weighted rows ``[Z W y]`` of all recordings as a triangle.

    Attributes:
        columns: Names of the unknowns, c of them.
        triangle: Upper triangular (2 c + 1, 2 c + 1).
        rows: Number of rows behind it.
        spread: ``Z^T S Z`` (c, c), S the covariance of the weighted rows' noise; None where rows are whitened.
    """

    columns: tuple[str, ...]
    triangle: np.ndarray
    rows: int
    spread: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class _Run:
    """Unbroken rows ``[Z W y]`` (k, 2 c + 1) of an equation; ``starts``: they do not continue the run before."""

    e: int
    starts: bool
    rows: np.ndarray


def whitened_pairs(
    twins: Twins, columns: Sequence[str], noise: NoiseModel, least_share: float = MIN_SHARE
) -> PairedRows:
    """Stack the rows, freed of correlation and weighted by one over their deviation.

    Args:
        twins: Rows ``[W y]`` of the real recordings, and ``[Z y]`` of the same ones with simulated motion.
        columns: Names of the unknowns.
        noise: Deviation and correlation of every equation.
        least_share: Rows of which a smaller part of the decimation window was kept are left out.

    Raises:
        EstimateError: If fewer rows than unknowns are usable.
    """
    stack = RowStack(2 * len(columns) + 1)
    for source, twin in zip(twins.real, twins.simulated, strict=True):
        deviations = _deviations(source, noise)
        whiteners = {e: noise.whitening(source, e) for e in deviations}
        for run in _runs(source, twin, columns, deviations, least_share):
            if run.starts:
                whiteners[run.e].restart()
            stack.push(whiteners[run.e].push(run.rows) / deviations[run.e])
    return _paired(columns, stack, None)


def plain_pairs(twins: Twins, columns: Sequence[str], noise: NoiseModel) -> PairedRows:
    """Stack the same rows weighted but as they are, with what their noise's correlation does to sums of them."""
    stack = RowStack(2 * len(columns) + 1)
    spread = np.zeros((len(columns),) * 2)
    for source, twin in zip(twins.real, twins.simulated, strict=True):
        deviations = _deviations(source, noise)
        smoothers = {e: RunningConvolution(_half_kernel(noise, source.equations.kinds_joints[e])) for e in deviations}
        for run in _runs(source, twin, columns, deviations):
            rows = run.rows / deviations[run.e]
            stack.push(rows)
            if run.starts:
                smoothers[run.e].restart()
            instruments = rows[:, : len(columns)]
            half = instruments.T @ smoothers[run.e].push(instruments)
            spread += half + half.T
    return _paired(columns, stack, spread)


def _paired(columns: Sequence[str], stack: RowStack, spread: np.ndarray | None) -> PairedRows:
    if stack.count <= len(columns):
        raise EstimateError(
            f"in {stack.count} rows the simulated arm moves faster than standstill, for {len(columns)} parameters; "
            "give the gains of the real controller, or a smaller standstill"
        )
    rows, triangle = stack.count, stack.triangle()
    triangle.setflags(write=False)
    return PairedRows(tuple(columns), triangle, rows, spread)


def _deviations(source: RowSource, noise: NoiseModel) -> dict[int, float]:
    """Return the deviation of every equation whose noise is known, by number."""
    cells = enumerate((source.label, *equation) for equation in source.equations.kinds_joints)
    return {e: noise.deviations[cell] for e, cell in cells if cell in noise.deviations}


def _half_kernel(noise: NoiseModel, equation: Equation) -> np.ndarray:
    """Return the covariance of a row's noise with later ones, until it has died out; half of it at lag 0."""
    lags = noise_autocovariance(noise.correlation, noise.coefficients[equation], _LONGEST)
    alive = np.flatnonzero(np.abs(lags) > _DIED_OUT * lags[0])
    kernel = lags[: max(int(alive[-1]) + 1, 2)].copy()
    kernel[0] /= 2
    return kernel


def _runs(
    source: RowSource,
    twin: RowSource,
    columns: Sequence[str],
    equations: Sequence[int] | dict[int, float],
    least_share: float = MIN_SHARE,
) -> Iterator[_Run]:
    place = {name: k for k, name in enumerate(columns)}
    names = source.equations.columns
    kept = {e: [k for k, name in enumerate(names[e]) if name in place] for e in equations}
    index = {e: np.array([place[names[e][k]] for k in kept[e]], dtype=np.intp) for e in equations}
    ends: dict[int, tuple[int, int]] = {}
    for real, other in zip(source, twin, strict=True):
        for e in equations:
            for first, usable in _unbroken(real, e, least_share):
                last = first + len(usable)
                rows = np.zeros((len(usable), 2 * len(columns) + 1))
                rows[:, index[e]] = other.rows[e][first:last, kept[e]]
                rows[:, len(columns) + index[e]] = usable[:, kept[e]]
                rows[:, -1] = usable[:, -1]
                starts = ends.get(e) != (real.segment, real.first + first)
                ends[e] = (real.segment, real.first + last)
                yield _Run(e, starts, rows)


def _unbroken(block: RowBlock, e: int, least_share: float) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (place of the first row, rows) of every unbroken run of an equation's rows with such a share."""
    for start, usable in block.runs(e):
        kept = np.concatenate([[False], block.share[e][start : start + len(usable)] >= least_share, [False]])
        bounds = np.flatnonzero(kept[1:] != kept[:-1])
        for first, last in zip(bounds[::2], bounds[1::2], strict=True):
            yield start + int(first), usable[first:last]
