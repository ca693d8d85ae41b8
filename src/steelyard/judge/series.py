"""What every residual test asks of its series: contiguous runs at one rate, between which nothing is known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import EstimateError


def checked_runs(runs: Sequence[np.ndarray], what: str = "residuals", least: int = 3) -> list[np.ndarray]:
    """Return the runs that hold samples as finite float64 arrays (n_i,), at least ``least`` samples together.

    Raises:
        EstimateError: If a run is not one-dimensional, holds a value that is not finite, or there are too few samples.
    """
    if isinstance(runs, np.ndarray) and runs.ndim == 1:
        raise EstimateError(f"{what}: got one array, allowed is a list of runs; give a single run as [x]")
    arrays = [np.asarray(run, dtype=np.float64) for run in runs]
    for number, run in enumerate(arrays):
        if run.ndim != 1:
            raise EstimateError(f"{what}: got shape {run.shape} in run {number}, allowed is (samples,)")
        if not np.isfinite(run).all():
            sample = int(np.flatnonzero(~np.isfinite(run))[0])
            raise EstimateError(
                f"{what}: got {run[sample]} in run {number}, sample {sample}, allowed are finite numbers; "
                "leave these rows out before judging"
            )
    total = sum(len(run) for run in arrays)
    if total < least:
        raise EstimateError(f"{what}: got {total} samples, needed are at least {least}")
    return [run for run in arrays if len(run)]


def checked_residuals(residuals: np.ndarray, least: int) -> np.ndarray:
    """Return residuals (r,) that are finite, at least ``least`` of them and not all alike.

    Raises:
        EstimateError: If they are not.
    """
    (values,) = checked_runs([residuals], least=least)
    if np.ptp(values) == 0:
        raise EstimateError(f"residuals: got {len(values)} times {values[0]:g}, allowed are values that differ")
    return values


def squares_of(runs: Sequence[np.ndarray], what: str = "residuals") -> float:
    """Return the sum of squares over all runs, refusing zero."""
    total = float(sum(run @ run for run in runs))
    if total == 0:
        raise EstimateError(f"{what}: all are zero, so there is nothing to judge; is this a recording without noise?")
    return total


def lagged_sum(runs: Sequence[np.ndarray], lag: int) -> float:
    """Return the sum of x[t] x[t - lag] over all runs; no product crosses a break."""
    return float(sum(run[lag:] @ run[: len(run) - lag] for run in runs if len(run) > lag))
