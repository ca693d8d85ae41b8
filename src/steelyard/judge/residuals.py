"""Decimated residuals in the order of time: runs without a break, with the signals that may explain them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from ..estimate import Estimate, NoiseModel
from ..observe import Equations, RowBlock, RowSource
from ..text import short_repr

ROWS_KEPT = 50_000
"""Rows of each equation kept in memory at most: some 3 MB with all their signals."""

STRETCH = 1024
"""Rows that are kept or left out together."""


@dataclass(frozen=True, eq=False)
class RunPiece:
    """Usable rows of one equation within a block.

    Attributes:
        equation: Number of the equation.
        starts: Whether a new run begins; else it continues the equation's piece before.
        residual: ``y - W x`` (k,).
        model: ``W x`` (k,).
        block: The block.
        places: Where in the block the rows stand.
    """

    equation: int
    starts: bool
    residual: np.ndarray
    model: np.ndarray
    block: RowBlock
    places: slice


def run_pieces(source: RowSource, estimate: Estimate) -> Iterator[RunPiece]:
    """Yield the residuals of a recording's rows, piece by piece, all equations in turn."""
    values = [estimate.full_values(columns) for columns in source.equations.columns]
    ends = [(-1, -1)] * len(values)
    for block in source:
        for equation, x in enumerate(values):
            for first, rows in block.runs(equation):
                starts = ends[equation] != (block.segment, block.first + first)
                ends[equation] = (block.segment, block.first + first + len(rows))
                model = rows[:, :-1] @ x
                places = slice(first, first + len(rows))
                yield RunPiece(equation, starts, rows[:, -1] - model, model, block, places)


class ResidualWhitener:
    """Frees residuals of the correlation that a noise model says they have, and of their size.

    Args:
        source: The rows the residuals are of.
        noise: The noise model; equations it does not know are left out.
    """

    def __init__(self, source: RowSource, noise: NoiseModel) -> None:
        equations = source.equations.kinds_joints
        known = [e for e, equation in enumerate(equations) if equation in noise.coefficients]
        self._whiteners = {e: noise.whitening(source, e) for e in known}
        self._deviations = {e: _expected_deviation(noise, source.label, equations[e]) for e in known}

    def push(self, piece: RunPiece) -> np.ndarray | None:
        """Return whitened residuals (k,), of variance 1 if the noise is as the model says; None if it knows nothing."""
        whitener = self._whiteners.get(piece.equation)
        if whitener is None:
            return None
        if piece.starts:
            whitener.restart()
        return whitener.push(piece.residual[:, None])[:, 0] / self._deviations[piece.equation]


def _expected_deviation(noise: NoiseModel, label: str, equation: tuple[str, str]) -> float:
    """Return the noise's deviation for an equation: that of the recording, or the root mean square of all known."""
    own = noise.deviations.get((label, *equation))
    if own is not None:
        return own
    known = [value for group, value in noise.deviations.items() if group[1:] == equation]
    return float(np.sqrt(np.mean(np.square(known))))


class RunCollector:
    """Keeps runs of columns in bounded memory.

    Runs are cut into stretches of at most 1024 rows. Whenever more than ``limit`` rows are kept, every second stretch
    goes, and from then on only every second of those that come is kept. What is left is spread evenly over all that
    came; stretches that follow each other are joined again.

    Args:
        limit: Rows kept at most.
    """

    def __init__(self, limit: int = ROWS_KEPT) -> None:
        self._limit, self._every, self._number = limit, 1, 0
        self._kept: list[tuple[int, bool, np.ndarray]] = []
        self._open: list[np.ndarray] = []
        self._filled, self._continues = 0, False

    def add(self, columns: np.ndarray, starts: bool) -> None:
        """Take columns (m, k) that begin a run or continue it."""
        if starts:
            self._close()
            self._continues = False
        while columns.shape[1]:
            part = columns[:, : STRETCH - self._filled]
            columns = columns[:, part.shape[1] :]
            self._open.append(part.copy())
            self._filled += part.shape[1]
            if self._filled == STRETCH:
                self._close()
                self._continues = True

    def runs(self) -> list[np.ndarray]:
        """Return the runs (m, n_i) kept."""
        self._close()
        groups: list[list[np.ndarray]] = []
        before = -1
        for number, continues, columns in self._kept:
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
            self._kept.append((self._number, self._continues, np.concatenate(self._open, axis=1)))
        self._number += 1
        self._open, self._filled = [], 0
        while len(self._kept) > 1 and sum(columns.shape[1] for *_, columns in self._kept) > self._limit:
            self._every *= 2
            self._kept = [stretch for stretch in self._kept if stretch[0] % self._every == 0]


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


def residual_runs(source: RowSource, estimate: Estimate, limit: int = ROWS_KEPT) -> tuple[EquationRuns, ...]:
    """Return the residuals of every equation with the signals beside them.

    Args:
        source: Rows of a recording.
        estimate: The parameters; columns that it lacks count as zero.
        limit: Rows of each equation kept at most; see :class:`RunCollector` for which.
    """
    equations = source.equations
    collectors = [RunCollector(limit) for _ in equations.kinds_joints]
    joint_index = equations.joint_index
    for piece in run_pieces(source, estimate):
        collectors[piece.equation].add(_columns(piece, int(joint_index[piece.equation])), piece.starts)
    return tuple(_equation_runs(equations, equation, collector.runs()) for equation, collector in enumerate(collectors))


def _columns(piece: RunPiece, joint: int) -> np.ndarray:
    block, places = piece.block, piece.places
    unknown = np.full(len(piece.residual), np.nan)
    temperature = unknown if block.temperature is None else block.temperature[joint, places]
    motion = [signal[joint, places] for signal in (block.q, block.qd, block.qdd)]
    return np.array([piece.residual, *motion, piece.model, block.time[places], temperature])


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
