"""Earlier runs as further rows: a run's weighted triangle stands for all its recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..errors import EstimateError
from ..estimate import Estimate, System, cell_of, independent
from ..observe import Equations, Observations, load_observations, merge_observations, merged_triangle
from ..run import file_of
from .fitting import Fit
from .payload_body import COLUMNS
from .run_files import SavedRun
from .settings import FACTOR_METHODS


def check_joinable(method: str) -> None:
    """Raise an EstimateError unless earlier runs can be counted with a method's estimate."""
    if method not in FACTOR_METHODS:
        raise EstimateError(
            f"earlier runs count as rows, and method '{method}' is not made of rows alone; give all recordings, or use "
            f"one of {', '.join(FACTOR_METHODS)}"
        )


def run_rows(run: SavedRun, names: Sequence[str], *, keep_payload: bool = False) -> np.ndarray:
    """Return what a run knows as weighted rows (k, c + 1) in other columns.

    Columns of the run's payload are projected out unless they are kept: what the others say remains.

    Raises:
        EstimateError: If the run knows a parameter of the arm that is not among the columns.
    """
    known = run.estimate
    gone = [] if keep_payload else [name for name in known.columns if name in COLUMNS]
    others = [name for name in known.columns if name not in gone]
    missing = [name for name in others if name not in names]
    if missing:
        raise EstimateError(
            f"the run knows {', '.join(missing[:4])}, which this robot's model has not; is it another arm?"
        )
    order = [known.columns.index(name) for name in [*gone, *others]]
    triangle = np.asarray(np.linalg.qr(known.system.triangle[:, [*order, -1]], mode="r"))
    part = triangle[len(gone) : len(gone) + len(others), len(gone) : -1]
    # Sigmas that were widened, for a small sample or correlated noise, count in full; values stay.
    widened = part / known.widening[order][len(gone) :]
    rows = np.zeros((len(part), len(names) + 1))
    rows[:, [list(names).index(name) for name in others]] = widened
    rows[:, -1] = widened @ known.full_values(tuple(others))
    return rows


def joined(fit: Fit, rows: np.ndarray, equations: Equations) -> Estimate:
    """Return the estimate from the rows of a fit and further weighted rows (k, c + 1), over all columns.

    Columns that the fit's recordings alone could not tell apart are tried again with the further rows.
    """
    names, new = equations.names, fit.estimate
    weights = {cell: 1 / deviation for cell, deviation in new.deviations.items()}
    factors = [factor for factor in fit.used.factors if cell_of(factor) in weights]
    # What correlated noise, or estimating it, costs: the median over the parameters.
    gain = float(np.median(new.widening))
    triangle, count = merged_triangle(factors, names, lambda factor: weights[cell_of(factor)] / gain)
    stacked = np.asarray(np.linalg.qr(np.vstack([triangle, rows]), mode="r"))
    system = independent(System(names, stacked, count))
    freedom = np.full(len(system.columns), float(np.median(new.freedom)))
    return Estimate(new.method, system, system.values, system.inverse, new.covariance_kind, freedom, new.deviations)


def with_earlier_runs(fit: Fit, equations: Equations, runs: Sequence[SavedRun]) -> Estimate:
    """Return the estimate of a fit together with what earlier runs knew.

    Raises:
        ObservationError: If a run is one of another geometry, filter, units or unknowns, or a recording comes twice.
        EstimateError: If a run has no factors.
    """
    merged = fit.observations
    rows = []
    carried = {info.payload for info in merged.recordings} - {None}
    for run in runs:
        earlier = _observations(run)
        merged = merge_observations(merged, earlier)
        same_payload = carried == {info.payload for info in earlier.recordings} - {None}
        rows.append(run_rows(run, equations.names, keep_payload=same_payload))
    return joined(fit, np.vstack(rows), equations)


def _observations(run: SavedRun) -> Observations:
    path = file_of(run.folder, run.content, "observations", EstimateError)
    return _relabelled(load_observations(path), run.folder.name)


def _relabelled(observations: Observations, prefix: str) -> Observations:
    """Return observations whose recordings carry the run's name, so that two runs may have a ``log`` each."""
    factors = tuple(replace(factor, recording=f"{prefix}/{factor.recording}") for factor in observations.factors)
    recordings = tuple(replace(info, label=f"{prefix}/{info.label}") for info in observations.recordings)
    return Observations(observations.fingerprint, factors, recordings)
