"""Recursive least squares over the recordings, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...errors import EstimateError, nearest_match
from ...progress import Progress, silent
from ..evidence import Estimated, Evidence, estimate_of
from ..record import Estimate
from ..system import DEPENDENT, System
from .information import Information, Solved
from .instants import Instants, instants_of
from .settings import RecursiveSettings
from .track import Track

_DEPENDENT = {"square": DEPENDENT, "prior": 1e-15}
"""Part of its length by which a column must differ from those before it; with a prior none needs to differ by rows."""


def recursive_least_squares(
    evidence: Evidence,
    settings: RecursiveSettings,
    prior: Mapping[str, tuple[float, float]],
    progress: Progress = silent,
) -> Estimated:
    """Estimate row by row in the order of time (P1.8), in square-root form.

    Every row is weighted by one over the deviation of its cell, as in ``evidence.plain``. Without forgetting the last
    estimate is that of weighted least squares. Sigmas are those of constant parameters; they are widened, at all
    instants alike, by what correlated noise does to those of weighted least squares. Beside a prior all rows count less
    by the median of that instead.

    Args:
        evidence: Rows, and the estimate whose columns and weights are used.
        settings: Start and forgetting.
        prior: Value and standard deviation by column; not used with the start ``square``.
        progress: Told how far it is.

    Raises:
        EstimateError: If the rows, or those not yet forgotten, do not tell all parameters apart.
    """
    interval = evidence.sources[0].settled.decimation / evidence.sources[0].settled.rate
    forgetting = settings.factor(interval)
    start = settings.start or ("prior" if prior else "square")
    information = Information(_start(evidence.columns, start, settings.wide, prior), forgetting)
    # Beside a prior rows count less; without one correlated noise only widens the sigmas.
    share = float(np.median(evidence.widening)) if start == "prior" else 1.0
    widening = np.ones(len(evidence.columns)) if start == "prior" else evidence.widening
    track, limit = Track(settings.most_instants), _DEPENDENT[start]
    instant, now = 0, 0.0
    for shift, part in _in_time(evidence, interval, progress):
        first, count = 0, len(part.time)
        while first < count:
            last = min(count, first + track.step - instant % track.step)
            bounds = part.bounds[first : last + 1]
            information.take(part.rows[bounds[0] : bounds[-1]] / share, bounds)
            instant, first, now = instant + last - first, last, float(part.time[last - 1] + shift)
            # The history begins with the first estimate that there is, and has gaps where too much is forgotten.
            if instant % track.step == 0 and (known := information.solved()).dependent(limit) is None:
                track.add(instant, now, known)
    solved = information.solved()
    _check_told_apart(solved.dependent(limit), evidence.columns, forgetting)
    track.add(instant, now, solved)
    estimate = _estimate(evidence, solved, information.rows, widening)
    history = track.history(evidence.columns)
    history = replace(history, sigma=history.sigma * widening[:, None])
    return Estimated(estimate, history, notes=_notes(start, prior, forgetting, interval))


def _in_time(evidence: Evidence, interval: float, progress: Progress) -> Iterator[tuple[float, Instants]]:
    """Yield the instants of all recordings, with what brings their clocks behind the recording before."""
    end: float | None = None
    for k, source in enumerate(evidence.sources):
        shift: float | None = None
        for part in instants_of(source, evidence.plain):
            if shift is None:
                shift = 0.0 if end is None else end + interval - float(part.time[0])
            end = shift + float(part.time[-1])
            yield shift, part
            progress(k + source.read, len(evidence.sources))
        progress(k + 1, len(evidence.sources))


def _start(columns: Sequence[str], start: str, wide: float, prior: Mapping[str, tuple[float, float]]) -> np.ndarray:
    """Return the rows (k, c + 1) that are known before the first instant."""
    if start == "square":
        return np.zeros((0, len(columns) + 1))
    rows = np.zeros((len(columns), len(columns) + 1))
    np.fill_diagonal(rows, 1 / wide)
    for name, (value, deviation) in prior.items():
        if name not in columns:
            raise EstimateError(
                f"prior for '{name}', which is not estimated; estimated are {', '.join(columns[:8])} ..."
                f"{nearest_match(name, columns)}"
            )
        if not (np.isfinite(value) and np.isfinite(deviation) and deviation > 0):
            raise EstimateError(f"prior for '{name}': got {value} +- {deviation}, needed is a deviation above 0")
        place = columns.index(name)
        rows[place, place], rows[place, -1] = 1 / deviation, value / deviation
    return rows


def _check_told_apart(dependent: int | None, columns: Sequence[str], forgetting: float) -> None:
    if dependent is None:
        return
    cure = "forget more slowly" if forgetting < 1 else "record a more exciting motion"
    raise EstimateError(
        f"rls: the last rows do not tell '{columns[dependent]}' from the parameters before it (forgetting "
        f"{forgetting:.6g} an instant); {cure}, or use wls"
    )


def _estimate(evidence: Evidence, solved: Solved, rows: int, widening: np.ndarray) -> Estimate:
    plain, correlated = evidence.plain, evidence.correlated
    kind, freedom = ("classical", plain.freedom) if correlated is None else ("model", correlated.freedom)
    gain = np.outer(widening, widening)
    if solved.spread is None:
        triangle = solved.triangle.copy()
        triangle.setflags(write=False)
        system = System(plain.columns, triangle, rows)
        return Estimate("rls", system, system.values, system.inverse * gain, kind, freedom, plain.deviations)
    covariance = solved.root @ solved.root.T
    return estimate_of("rls", kind, evidence, solved.values, covariance * gain, float(freedom.min()))


def _notes(start: str, prior: Mapping[str, tuple[float, float]], forgetting: float, interval: float) -> tuple[str, ...]:
    words = {"square": "the first rows that tell all parameters apart", "prior": "the prior"}
    unused = "; the prior is not used" if prior and start == "square" else ""
    notes = [f"started from {words[start]}{unused}"]
    if forgetting < 1:
        notes.append(
            f"rows are forgotten by {forgetting:.6g} an instant, to 1/e in {-interval / np.log(forgetting):.4g} s; "
            "sigmas are those of constant parameters"
        )
    return tuple(notes)
