"""Recursive least squares: the weighted estimate as a function of time (P1.8), recordings one after the other.

The square root of the information is updated by orthogonal reduction, and older rows are forgotten. With lambda the
forgetting factor, after instant k

    R_k^T R_k = sum_i lambda^(k-i) [W_i y_i]^T [W_i y_i],    R_k = triangle of [sqrt(lambda) R_{k-1}; W_k y_k].

Rows with white noise of unit variance give the estimate ``x = R^-1 z`` the covariance ``P S P``, ``P = (R^T R)^-1`` and
``S = sum_i lambda^(2(k-i)) W_i^T W_i``: a second triangle, with lambda in the place of its root, tracks S. Without
forgetting S is the information itself and ``P S P = P``. The history of the estimate is thinned while it grows, so that
memory does not depend on the length of the log.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from ..configuration import number, whole_number
from ..errors import EstimateError
from ..observe import RowSource, check_fields, weighted_runs
from ..progress import Progress, silent
from .evidence import Estimate, Estimated, Evidence, History, Prior, checked_prior, estimate_of
from .system import DEPENDENT, System

_PANEL = 16
_NOTHING = 1e-150


@dataclass(frozen=True)
class RecursiveSettings:
    """Settings of recursive least squares.

    Attributes:
        start: ``square``: the solution of the first rows from which all parameters are identifiable (P1.8), no prior
            being used; ``prior``: from the prior; None: from the prior if there is one, else square.
        forgetting: By how much the weight of older rows shrinks at every instant, above 0 and at most 1; 1 forgets
            nothing.
        memory: Time in which the weight of a row falls to 1/e [s], instead of ``forgetting``; None: none.
        wide: Start ``prior``: standard deviation of parameters that have no prior, about zero, SI units.
        most_instants: Instants of the history, at most.
    """

    start: Literal["square", "prior"] | None = None
    forgetting: float = 1.0
    memory: float | None = None
    wide: float = 1e3
    most_instants: int = 2000

    def __post_init__(self) -> None:
        above_zero, part = number(above=0, largest=math.inf), number(above=0, most=1)
        kinds = {"forgetting": part, "memory": above_zero, "wide": above_zero, "most_instants": whole_number(2)}
        check_fields(self, kinds, "rls", EstimateError)
        if self.memory is not None and self.forgetting != 1.0:
            raise EstimateError(
                f"rls forgetting {self.forgetting:g} and memory {self.memory:g} s say the same thing twice; give one"
            )

    def factor(self, interval: float) -> float:
        """Return the forgetting factor of instants that are an interval [s] apart."""
        return self.forgetting if self.memory is None else math.exp(-interval / self.memory)


@dataclass(frozen=True, eq=False)
class RecursiveSolution:
    """What is known at one instant.

    Attributes:
        triangle: R of ``[W y]`` (c + 1, c + 1).
        spread: Triangle of S (c, c); None without forgetting.
    """

    triangle: np.ndarray
    spread: np.ndarray | None

    @cached_property
    def _scale(self) -> np.ndarray:
        return np.linalg.norm(self.triangle[:-1, :-1], axis=0)

    def dependent(self, limit: float) -> int | None:
        """Return the first column that is zero or nearer to those before it than this part of its length, if any."""
        distance = np.abs(np.diag(self.triangle)[:-1])
        bad = np.flatnonzero(distance <= limit * np.maximum(self._scale, _NOTHING))
        return int(bad[0]) if len(bad) else None

    @cached_property
    def values(self) -> np.ndarray:
        """The estimate (c,)."""
        return self._solved(self.triangle[:-1, -1])

    @cached_property
    def root(self) -> np.ndarray:
        """A square root G (c, c) of the covariance, ``G G^T``."""
        inverse = self._solved(np.eye(len(self._scale)))
        return inverse if self.spread is None else inverse @ (inverse.T @ self.spread.T)

    @property
    def sigma(self) -> np.ndarray:
        """Standard deviations (c,)."""
        return np.linalg.norm(self.root, axis=1)

    def _solved(self, right: np.ndarray) -> np.ndarray:
        scaled = self.triangle[:-1, :-1] / self._scale
        solution = linalg.solve_triangular(scaled, right, check_finite=False)
        return (solution.T / self._scale).T


class RecursiveInformation:
    """The triangles while rows come in.

    Args:
        start: Rows ``[W y]`` known before the first instant (k, c + 1), of unit variance; none: (0, c + 1).
        forgetting: The forgetting factor.

    Attributes:
        rows: Rows that came in after the start.
    """

    def __init__(self, start: np.ndarray, forgetting: float) -> None:
        width = start.shape[1]
        self._forgetting = forgetting
        self._triangle = updated(np.zeros((width, width), order="F"), start)
        self._spread = updated(np.zeros((width - 1, width - 1), order="F"), start[:, :-1]) if forgetting < 1 else None
        self.rows = 0

    def take(self, rows: np.ndarray, bounds: np.ndarray) -> None:
        """Take the rows (m, c + 1) of neighbouring instants; those of instant i are ``bounds[i]`` to ``bounds[i + 1]``.

        One reduction for all of them is the same as one for each: rows of an instant that is followed by j others
        are forgotten j times on the way in.
        """
        self.rows += len(rows)
        if self._spread is None:
            self._triangle = updated(self._triangle, rows)
            return
        instants = len(bounds) - 1
        age = np.repeat(np.arange(instants)[::-1], np.diff(bounds))[:, None]
        self._triangle = updated(
            self._triangle * self._forgetting ** (instants / 2), rows * self._forgetting ** (age / 2)
        )
        self._spread = updated(self._spread * self._forgetting**instants, rows[:, :-1] * self._forgetting**age)

    def solved(self) -> RecursiveSolution:
        """Return what is known now."""
        return RecursiveSolution(self._triangle, self._spread)


def updated(triangle: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the triangle of ``[triangle; rows]``: Householder reflections that leave the zeros below it alone."""
    if not len(rows):
        return triangle
    panel = min(_PANEL, len(triangle))
    return lapack.dtpqrt(0, panel, triangle, rows)[0]  # pyright: ignore[reportAttributeAccessIssue]


Instants = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Neighbouring instants that have at least one usable row.

Their times on the recording's clock (k,) [s], bounds (k + 1,), and ``[W y]`` over the deviations of their noise groups
(m, c + 1), columns as those of the estimate: rows of instant i are ``bounds[i]`` to ``bounds[i + 1]``.
"""


def instants_of(source: RowSource, plain: Estimate) -> Iterator[Instants]:
    """Yield the rows of a recording, weighted, block by block; columns that are not estimated count as zero.

    Args:
        source: The recording.
        plain: The estimate whose columns and weights are used.
    """
    for block, runs in source.block_runs():
        usable = list(weighted_runs(runs, plain.columns, plain.weights))
        if usable:
            instant = np.concatenate([np.arange(one.run.places.start, one.run.places.stop) for one in usable])
            order = np.argsort(instant, kind="stable")
            present, first = np.unique(instant[order], return_index=True)
            rows = np.concatenate([one.spread(len(plain.columns)) for one in usable])
            yield block.time[present], np.append(first, len(order)), rows[order]


class Track:
    """Estimates at every so many instants; when there are too many, every second one goes and the step doubles.

    Args:
        most: Largest number of instants.

    Attributes:
        step: Instants from one that is recorded to the next.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.step = 1
        self._recorded: list[tuple[int, float, np.ndarray, np.ndarray]] = []

    def add(self, instant: int, time: float, solved: RecursiveSolution) -> None:
        """Record the estimate at an instant, numbered from 1."""
        if self._recorded and self._recorded[-1][0] == instant:
            return
        if len(self._recorded) == self._most:
            self.step *= 2
            self._recorded = [each for each in self._recorded if each[0] % self.step == 0]
        self._recorded.append((instant, time, solved.values, solved.sigma))

    def history(self, columns: tuple[str, ...]) -> History:
        """Return the history of these columns."""
        _, *parts = zip(*self._recorded, strict=True)
        time, values, sigma = (np.array(part).T for part in parts)
        for array in (time, values, sigma):
            array.setflags(write=False)
        return History(columns, time, values, sigma)


_DEPENDENT = {"square": DEPENDENT, "prior": 1e-15}
"""Part of its length by which a column must differ from those before it; with a prior none needs to differ by rows."""


def recursive_least_squares(
    evidence: Evidence, settings: RecursiveSettings, prior: Prior, progress: Progress = silent
) -> Estimated:
    """Estimate row by row in the order of time (P1.8), in square-root form.

    Every row is weighted by one over the deviation of its noise group, as in ``evidence.plain``. Without forgetting the
    last estimate is that of weighted least squares. Sigmas are those of constant parameters; they are widened, at all
    instants alike, by what correlated noise does to those of weighted least squares. Beside a prior all rows count less
    by the median of that instead.

    Args:
        evidence: Rows, and the estimate whose columns and weights are used.
        settings: Start and forgetting.
        prior: Value and standard deviation by column; not used with the start ``square``.
        progress: Progress callback, called with done and total.

    Raises:
        EstimateError: If not all parameters are identifiable from the rows, or from those not yet forgotten.
    """
    interval = evidence.sources[0].resolved.decimation / evidence.sources[0].resolved.rate
    forgetting = settings.factor(interval)
    start = settings.start or ("prior" if prior else "square")
    information = RecursiveInformation(_start(evidence.columns, start, settings.wide, prior), forgetting)
    # Beside a prior rows count less; without one correlated noise only widens the sigmas.
    share = float(np.median(evidence.widening)) if start == "prior" else 1.0
    widening = np.ones(len(evidence.columns)) if start == "prior" else evidence.widening
    track, limit = Track(settings.most_instants), _DEPENDENT[start]
    instant, now = 0, 0.0
    for times, starts, rows in _in_time(evidence, interval, progress):
        first, count = 0, len(times)
        while first < count:
            last = min(count, first + track.step - instant % track.step)
            bounds = starts[first : last + 1]
            information.take(rows[bounds[0] : bounds[-1]] / share, bounds)
            instant, first, now = instant + last - first, last, float(times[last - 1])
            # The history begins with the first estimate that there is, and has gaps where too much is forgotten.
            if instant % track.step == 0 and (known := information.solved()).dependent(limit) is None:
                track.add(instant, now, known)
    solved = information.solved()
    if (dependent := solved.dependent(limit)) is not None:
        cure = "forget more slowly" if forgetting < 1 else "record a more exciting motion"
        raise EstimateError(
            f"rls: in the last rows '{evidence.columns[dependent]}' is indistinguishable from the parameters before it "
            f"(forgetting {forgetting:.6g} an instant); {cure}, or use wls"
        )
    track.add(instant, now, solved)
    estimate = _estimate(evidence, solved, information.rows, widening)
    history = track.history(evidence.columns)
    history = replace(history, sigma=history.sigma * widening[:, None])
    return Estimated(estimate, history, notes=_notes(start, prior, forgetting, interval))


def _in_time(evidence: Evidence, interval: float, progress: Progress) -> Iterator[Instants]:
    """Yield the instants of all recordings, the times of each recording behind those of the one before."""
    end: float | None = None
    for k, source in enumerate(evidence.sources):
        shift: float | None = None
        for time, bounds, rows in instants_of(source, evidence.plain):
            if shift is None:
                shift = 0.0 if end is None else end + interval - float(time[0])
            end = shift + float(time[-1])
            yield time + shift, bounds, rows
            progress(k + source.read, len(evidence.sources))
        progress(k + 1, len(evidence.sources))


def _start(columns: Sequence[str], start: str, wide: float, prior: Prior) -> np.ndarray:
    """Return the rows (k, c + 1) that are known before the first instant."""
    if start == "square":
        return np.zeros((0, len(columns) + 1))
    rows = np.zeros((len(columns), len(columns) + 1))
    np.fill_diagonal(rows, 1 / wide)
    for place, value, deviation in checked_prior(prior, columns):
        rows[place, place], rows[place, -1] = 1 / deviation, value / deviation
    return rows


def _estimate(evidence: Evidence, solved: RecursiveSolution, rows: int, widening: np.ndarray) -> Estimate:
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


def _notes(start: str, prior: Prior, forgetting: float, interval: float) -> tuple[str, ...]:
    first = {"square": "the first rows from which all parameters are identifiable", "prior": "the prior"}[start]
    unused = "; the prior is not used" if prior and start == "square" else ""
    if forgetting == 1:
        return (f"started from {first}{unused}",)
    return (
        f"started from {first}{unused}",
        f"rows are forgotten by {forgetting:.6g} an instant, to 1/e in {-interval / np.log(forgetting):.4g} s; "
        "sigmas are those of constant parameters",
    )
