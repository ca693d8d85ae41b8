"""Decimated residuals in the order of time, in runs without a break, with the signals that may explain them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from ..estimate import Estimate, NoiseModel
from ..observe import Equations, RowRun, RowSource
from ..signals import RowWhitener
from ..text import short_repr

MOST_ROWS = 50_000
"""Rows of each equation in memory at most: some 3 MB with all their signals."""

PIECE = 1024
"""Rows that are stored or left out together."""


@dataclass(frozen=True, eq=False)
class ResidualRun:
    """Residuals of neighbouring usable rows of one equation.

    Attributes:
        run: The rows.
        model: ``W x`` (k,).
        residual: ``y - W x`` (k,).
        whitened: The residuals whitened, of variance 1 if the noise is as its model says (k,); None without a model
            of this equation's noise.
    """

    run: RowRun
    model: np.ndarray
    residual: np.ndarray
    whitened: np.ndarray | None


def residuals_of(source: RowSource, estimate: Estimate, noise: NoiseModel | None = None) -> Iterator[ResidualRun]:
    """Yield the residuals of a recording's rows, block by block, all equations in turn.

    Args:
        source: The rows.
        estimate: The parameters; columns that it lacks count as zero.
        noise: The noise model by which residuals are whitened.
    """
    values = [estimate.full_values(columns) for columns in source.equations.columns]
    whiteners = {} if noise is None else _whiteners(source, noise)
    for run in source.runs():
        model = run.rows[:, :-1] @ values[run.equation]
        residual, whitened = run.rows[:, -1] - model, None
        if run.equation in whiteners:
            whitener, deviation = whiteners[run.equation]
            if run.starts:
                whitener.restart()
            whitened = whitener.push(residual[:, None])[:, 0] / deviation
        yield ResidualRun(run, model, residual, whitened)


def _whiteners(source: RowSource, noise: NoiseModel) -> dict[int, tuple[RowWhitener, float]]:
    """Return whitener and standard deviation of every equation that the noise model knows."""
    known = [(e, k) for e, k in enumerate(source.equations.kinds_joints) if k in noise.coefficients]
    return {e: (noise.whitening.whitener(k), _expected_deviation(noise, source.label, k)) for e, k in known}


def _expected_deviation(noise: NoiseModel, label: str, equation: tuple[str, str]) -> float:
    """Return the noise's deviation for an equation: that of the recording, or the root mean square of all known."""
    own = noise.deviations.get((label, *equation))
    if own is not None:
        return own
    known = [value for group, value in noise.deviations.items() if group[1:] == equation]
    return float(np.sqrt(np.mean(np.square(known))))


class RunCollector:
    """Stores runs of columns in bounded memory.

    Runs are cut into pieces of at most 1024 rows. Whenever more than ``limit`` rows are stored, every second piece is
    deleted, and from then on only every second new one is stored. What is left is spread evenly over everything;
    neighbouring pieces are joined again.

    Args:
        limit: Rows stored at most.
    """

    def __init__(self, limit: int = MOST_ROWS) -> None:
        self._limit, self._every, self._number = limit, 1, 0
        self._stored: list[tuple[int, bool, np.ndarray]] = []
        self._open: list[np.ndarray] = []
        self._filled, self._continues = 0, False

    def add(self, columns: np.ndarray, starts: bool) -> None:
        """Take columns (m, k) that begin a run or continue it."""
        if starts:
            self._close()
            self._continues = False
        while columns.shape[1]:
            part = columns[:, : PIECE - self._filled]
            columns = columns[:, part.shape[1] :]
            self._open.append(part.copy())
            self._filled += part.shape[1]
            if self._filled == PIECE:
                self._close()
                self._continues = True

    def runs(self) -> list[np.ndarray]:
        """Return the runs (m, n_i) stored."""
        self._close()
        groups: list[list[np.ndarray]] = []
        before = -1
        for number, continues, columns in self._stored:
            if continues and number == before + 1 and groups:
                groups[-1].append(columns)
            else:
                groups.append([columns])
            before = number
        return [np.concatenate(group, axis=1) for group in groups]

    def _close(self) -> None:
        if not self._filled:
            return
        if self._number % self._every == 0:
            self._stored.append((self._number, self._continues, np.concatenate(self._open, axis=1)))
        self._number += 1
        self._open, self._filled = [], 0
        while len(self._stored) > 1 and sum(columns.shape[1] for *_, columns in self._stored) > self._limit:
            self._every *= 2
            self._stored = [piece for piece in self._stored if piece[0] % self._every == 0]


@dataclass(frozen=True, eq=False)
class EquationRuns:
    """Residuals of one equation with what they may depend on: what :func:`explain_residuals` takes.

    Attributes:
        kind: Torque kind.
        joint: Name of the joint.
        unit: ``N m`` or ``N``.
        residual: Residuals (n_i,) of every run [N m or N].
        signals: ``velocity``, ``acceleration``, ``position`` of the joint, ``load`` (the model's torque), ``time``, and
            ``temperature`` where it is known throughout; runs as those of the residuals.
    """

    __repr__ = short_repr

    kind: str
    joint: str
    unit: str
    residual: tuple[np.ndarray, ...]
    signals: Mapping[str, tuple[np.ndarray, ...]]


_SIGNALS = ("position", "velocity", "acceleration", "load", "time", "temperature")


def residual_runs(
    source: RowSource, estimate: Estimate, also: Callable[[ResidualRun], None] | None = None
) -> tuple[EquationRuns, ...]:
    """Return the residuals of every equation with the signals beside them.

    Args:
        source: Rows of a recording; of a long one, those that a :class:`RunCollector` retains.
        estimate: The parameters; columns that it lacks count as zero.
        also: Called with every run of residuals, so that one pass over the rows serves other sums too.
    """
    equations = source.equations
    collectors = [RunCollector() for _ in equations.kinds_joints]
    joint_index = equations.joint_index
    for found in residuals_of(source, estimate):
        if also is not None:
            also(found)
        equation = found.run.equation
        collectors[equation].add(_columns(found, int(joint_index[equation])), found.run.starts)
    return tuple(_equation_runs(equations, equation, collector.runs()) for equation, collector in enumerate(collectors))


def _columns(found: ResidualRun, joint: int) -> np.ndarray:
    block, places = found.run.block, found.run.places
    unknown = np.full(len(found.residual), np.nan)
    temperature = unknown if block.temperature is None else block.temperature[joint, places]
    motion = [signal[joint, places] for signal in (block.q, block.qd, block.qdd)]
    return np.array([found.residual, *motion, found.model, block.time[places], temperature])


def _equation_runs(equations: Equations, equation: int, runs: Sequence[np.ndarray]) -> EquationRuns:
    kind, joint = equations.kinds_joints[equation]
    signals = {name: tuple(run[row] for run in runs) for row, name in enumerate(_SIGNALS, start=1)}
    if not all(np.isfinite(run).all() for run in signals["temperature"]):
        del signals["temperature"]
    for run in runs:
        run.setflags(write=False)
    residual = tuple(run[0] for run in runs)
    return EquationRuns(kind, joint, unit_of(equations, joint), residual, MappingProxyType(signals))


def unit_of(equations: Equations, joint: str) -> str:
    """Return the unit of a joint's torque or force."""
    return "N" if equations.model.robot.joint(joint).kind == "prismatic" else "N m"
