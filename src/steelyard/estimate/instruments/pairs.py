"""Rows of the real recordings beside those of the simulated ones, reduced to one triangle.

Rows are left out where the simulated arm is near standstill: a choice that no noise of the recording enters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...errors import EstimateError
from ...observe import (
    MIN_SHARE,
    Gate,
    Gates,
    RowRun,
    RowSource,
    RowStack,
    moving_joints,
    prepared_blocks,
    row_source,
    weighted_runs,
)
from ...recording.cache import CachedColumns
from ...signals import half_kernel
from ...signals.recursive import RunningConvolution
from ..evidence import Evidence
from ..noise import NoiseModel

# Velocities differ from simulated ones by more than this many times their rms in 3 of 1000 samples.
_SURELY = 3.0
# Not more than this part of a joint's own rms speed is left out, whatever the simulation is like.
_MOST = 0.5
# Rows of an iteration up to so many bytes stay in memory, real and simulated ones each; three passes read them.
_CACHED_BYTES = 32_000_000
# A threshold from the data follows the simulation for so many iterations, then stays, so that these converge.
_ITERATIONS = 8


@dataclass(frozen=True, eq=False)
class Velocities:
    """The prepared velocities of a recording, before decimation.

    Attributes:
        columns: All of them (n rows), segments one after the other.
        starts: Where each segment begins, by its number; a segment too short for the filter has none.
    """

    columns: CachedColumns
    starts: Mapping[int, int]

    def gates(self, limits: np.ndarray, coupling: np.ndarray) -> Gates:
        """Return which samples are at least as fast as limits (n,), by segment; see :func:`.moving_joints`."""

        def gate(begin: int) -> Gate:
            return lambda first, last: moving_joints(self.columns.read(begin + first, begin + last), limits, coupling)

        nothing = self.columns.count
        return defaultdict(lambda: gate(nothing), {segment: gate(begin) for segment, begin in self.starts.items()})


@dataclass(frozen=True, eq=False)
class Twins:
    """Rows of the recordings, real and simulated, near the simulated arm's standstill left out of both alike.

    Attributes:
        real: Rows of the recordings.
        simulated: Rows of the same recordings with simulated motion; measured torques are the real ones.
        standstill: Simulated speed of each joint below which its own equations are left out (n,) [rad/s or m/s].
    """

    real: tuple[RowSource, ...]
    simulated: tuple[RowSource, ...]
    standstill: np.ndarray


class MovingRows:
    """Leaves out a joint's own equations where the simulated arm is near standstill, of real and simulated rows.

    The sign of a noisy velocity near a reversal is wrong in a way that depends on that very velocity: no instrument
    mends it. A mask by the noisy velocity would choose samples by their noise; the simulated one knows nothing of it.

    Args:
        evidence: The real recordings.
        standstill: Speeds [rad/s or m/s], one a joint or one for all; None: three times the rms difference between
            recorded and simulated velocities, at least the preparation's own, at most half the rms speed.
    """

    def __init__(self, evidence: Evidence, standstill: tuple[float, ...] | None) -> None:
        self._sources = evidence.sources
        joints = len(evidence.equations.joints)
        if standstill is not None and len(standstill) not in (1, joints):
            raise EstimateError(
                f"standstill: got {len(standstill)} speeds for {joints} joints; give one a joint, or one"
            )
        self._given = None if standstill is None else np.array(standstill, dtype=float)
        self._recorded = [velocities_of(source) for source in evidence.sources]
        self._last: np.ndarray | None = None
        self._count = 0

    def twins(self, simulated: Sequence[RowSource]) -> Twins:
        """Return the rows of the recordings and of simulated motions that count."""
        speeds = [velocities_of(source) for source in simulated]
        limits = self._limits(speeds)
        coupling = self._sources[0].equations.model.robot.motor_coupling()
        gates = [of_recording.gates(limits, coupling) for of_recording in speeds]
        real, others = (
            tuple(_gated(source, gate, limits) for source, gate in zip(rows, gates, strict=True))
            for rows in (self._sources, simulated)
        )
        return Twins(real, others, limits)

    def _limits(self, simulated: Sequence[Velocities]) -> np.ndarray:
        own = self._sources[0].resolved.standstill
        if self._given is not None:
            return np.broadcast_to(self._given, own.shape)
        squares, apart, count = np.zeros(len(own)), np.zeros(len(own)), 0
        for real, other in zip(self._recorded, simulated, strict=True):
            whole = other.columns.count
            for qd, recorded in zip(other.columns.blocks(0, whole), real.columns.blocks(0, whole), strict=True):
                squares += np.sum(qd**2, axis=1)
                apart += np.sum((recorded - qd) ** 2, axis=1)
            count += whole
        wanted = np.minimum(_SURELY * np.sqrt(apart), _MOST * np.sqrt(squares)) / np.sqrt(max(count, 1))
        if self._count < _ITERATIONS or self._last is None:
            self._last = np.maximum(wanted, own)
        self._count += 1
        return self._last


def _gated(source: RowSource, gates: Gates, limits: np.ndarray) -> RowSource:
    """Return the rows of a recording with the samples that the gates name."""
    resolved = replace(source.resolved, standstill=limits)
    return row_source(source.recording, source.equations, resolved, source.label, _CACHED_BYTES, gates)


def velocities_of(source: RowSource) -> Velocities:
    """Return the prepared velocities of every segment, before decimation."""
    columns, starts = CachedColumns(len(source.equations.joints)), dict[int, int]()
    for block in prepared_blocks(source):
        starts.setdefault(block.segment, columns.count)
        columns.put(block.qd)
    return Velocities(columns, starts)


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


def whitened_pairs(
    twins: Twins, columns: Sequence[str], noise: NoiseModel, least_share: float = MIN_SHARE
) -> PairedRows:
    """Stack the rows, freed of correlation and weighted by one over their deviation.

    Args:
        twins: Rows ``[W y]`` of the real recordings, and ``[Z y]`` of the same ones with simulated motion.
        columns: Names of the unknowns.
        noise: Deviation and correlation of every equation.
        least_share: Rows of which a smaller part of the decimation window is usable are left out.

    Raises:
        EstimateError: If fewer rows than unknowns are usable.
    """
    stack = RowStack(2 * len(columns) + 1)
    whiteners = {group: noise.whitening.whitener(group[1:]) for group in noise.deviations}
    for run, rows in _pairs(twins, columns, noise, least_share):
        if run.starts:
            whiteners[run.group].restart()
        stack.push(whiteners[run.group].push(rows) / noise.deviations[run.group])
    return _paired(columns, stack, None)


def plain_pairs(twins: Twins, columns: Sequence[str], noise: NoiseModel) -> PairedRows:
    """Stack the same rows weighted but as they are, with what their noise's correlation does to sums of them."""
    stack = RowStack(2 * len(columns) + 1)
    spread = np.zeros((len(columns),) * 2)
    smoothers = {
        group: RunningConvolution(half_kernel(noise.correlation, noise.coefficients[group[1:]]))
        for group in noise.deviations
    }
    for run, pairs in _pairs(twins, columns, noise):
        rows = pairs / noise.deviations[run.group]
        stack.push(rows)
        if run.starts:
            smoothers[run.group].restart()
        instruments = rows[:, : len(columns)]
        half = instruments.T @ smoothers[run.group].push(instruments)
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


def _pairs(
    twins: Twins, columns: Sequence[str], noise: NoiseModel, least_share: float = MIN_SHARE
) -> Iterator[tuple[RowRun, np.ndarray]]:
    """Yield unbroken rows ``[Z W y]`` (k, 2 c + 1) of every equation whose noise is known, with the real rows' run."""
    size = len(columns)
    for source, twin in zip(twins.real, twins.simulated, strict=True):
        groups = enumerate((source.label, *equation) for equation in source.equations.kinds_joints)
        known = [e for e, group in groups if group in noise.deviations]
        # Both leave out the same samples, so that their runs are alike.
        runs = (weighted_runs(rows.runs(known, least_share), columns) for rows in (source, twin))
        for real, other in zip(*runs, strict=True):
            rows = np.zeros((len(real.rows), 2 * size + 1))
            rows[:, other.index] = other.rows[:, :-1]
            rows[:, size + real.index] = real.rows[:, :-1]
            rows[:, -1] = real.rows[:, -1]
            yield real.run, rows
