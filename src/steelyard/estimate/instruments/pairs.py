"""Rows of the real recordings beside those of the simulated ones, reduced to one triangle.

Rows left out where the simulated arm is near standstill: a choice that no noise of the recording enters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...errors import EstimateError
from ...observe import MIN_SHARE, Gate, Gates, RowBlock, RowSource, RowStack, moving_joints, prepared_blocks, row_source
from ...recording.cache import CachedColumns
from ...signals.recursive import RunningConvolution
from ..evidence import Evidence
from ..noise import NoiseModel
from ..whitening import Equation, noise_autocovariance

# Velocities differ from simulated ones by more than this many times their rms in 3 of 1000 samples.
_SURELY = 3.0
# Not more than this part of a joint's own rms speed is left out, whatever the simulation is like.
_MOST = 0.5
# Rows of a round up to so many bytes stay in memory, real and simulated ones each; they are gone through three times.
_KEPT_ROWS = 32_000_000
# A threshold from the data follows the simulation for so many rounds, then stays, so that rounds settle.
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
        own = self._sources[0].settled.standstill
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
    settled = replace(source.settled, standstill=limits)
    return row_source(source.recording, source.equations, settled, source.label, _KEPT_ROWS, gates)


def velocities_of(source: RowSource) -> Velocities:
    """Return the prepared velocities of every segment, before decimation."""
    columns, starts = CachedColumns(len(source.equations.joints)), dict[int, int]()
    for block in prepared_blocks(source):
        starts.setdefault(block.segment, columns.count)
        columns.put(block.qd)
    return Velocities(columns, starts)


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
    groups = enumerate((source.label, *equation) for equation in source.equations.kinds_joints)
    return {e: noise.deviations[group] for e, group in groups if group in noise.deviations}


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
