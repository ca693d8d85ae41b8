"""Validation of an estimate on a recording: predicted against measured torque, both through the evaluation filter.

The relative error is ``100 ||tau - tau_hat|| / ||tau||`` of torques on the joint side at the full rate, nothing
subtracted, both through the same zero-phase Butterworth filter of order 4 and before any decimation, whatever filter
the estimator itself used. Samples in which a joint stands nearly still are judged apart, as stiction is undetermined
there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import casadi as ca
import numpy as np

from ..errors import EstimateError
from ..estimate import Estimate, NoiseModel
from ..kernel import BatchFunction, compile_batch
from ..observe import Equations, PreparedBlock, RowSource, decimator_correlation, gap_advice, prepared_blocks
from ..signals import LowPass, SegmentFilter, evaluation_filter
from .evaluation import ErrorSums, Evaluation, JointError, MotionExtent
from .residuals import ResidualRun, residuals_of, unit_of


@lru_cache(maxsize=8)
def predictor(equations: Equations, loaded: bool) -> BatchFunction:
    """Return the model's inputs and x to the torques of all equations, ``tau_hat = W(q, qd, qdd) x`` (E, N).

    Args:
        equations: The equations; x has a value for each of their base columns, ``equations.names``.
        loaded: Whether the payload's columns count.
    """
    inputs, values = equations.model.inputs, ca.SX.sym("x", len(equations.names))
    torque = ca.cse(ca.densify(ca.mtimes(equations.regressor(loaded), values)))
    names = [*equations.model.input_names, "x"]
    return compile_batch(ca.Function("prediction", [*inputs, values], [torque], names, ["torque"]))


DEFAULT_CUTOFF = 10.0
"""Cut-off of the evaluation filter where positions were not filtered [Hz]."""


def evaluate(
    source: RowSource,
    estimate: Estimate,
    noise: NoiseModel | None = None,
    cutoff: float | None = None,
    *,
    decimated: bool = True,
) -> Evaluation:
    """Validate an estimate on a recording.

    Args:
        source: Rows of the recording, of the equations that were estimated.
        estimate: The parameters; columns that it lacks count as zero.
        noise: A noise model to compare the residuals with. For a recording that it was not fitted to, the deviation of
            an equation is the root mean square of those it was.
        cutoff: Cut-off of the evaluation filter [Hz]; that of the positions if not given, or 10 Hz if they had none.
        decimated: Whether decimated residuals are judged too (Durbin-Watson, noise), which takes another pass.

    Raises:
        EstimateError: If no segment is long enough for the filter.
    """
    return evaluate_each(source, [estimate], noise, cutoff, [decimated])[0]


def evaluate_each(
    source: RowSource,
    estimates: Sequence[Estimate],
    noise: NoiseModel | None,
    cutoff: float | None,
    decimated: Sequence[bool],
) -> list[Evaluation]:
    """Validate estimates on a recording as :func:`evaluate` does, in one pass over it at the full rate."""
    if cutoff is None:
        cutoff = source.resolved.cutoff or DEFAULT_CUTOFF
    low = evaluation_filter(source.resolved.rate, cutoff)
    torques = [_TorqueSums(source, low) for _ in estimates]

    def see(block: PreparedBlock) -> None:
        for torque in torques:
            torque.see(block)

    for each in _filtered_of_each(source, estimates, low, see):
        for torque, filtered in zip(torques, each, strict=True):
            torque.add(filtered)
    if not torques[0].samples:
        raise EstimateError(
            f"recording '{source.label}': none of its {torques[0].segments} segments is long enough for an evaluation "
            f"filter of {cutoff:.3g} Hz; {gap_advice(source.recording, source.resolved.max_gap)}judge by a longer "
            "recording (--validate), or raise a low cut-off with --evaluation-cutoff"
        )
    found = []
    for estimate, torque, also in zip(estimates, torques, decimated, strict=True):
        residual = _ResidualSums(source)
        for run in residuals_of(source, estimate, noise) if also else ():
            residual.add(run)
        found.append(_evaluation(source, cutoff, torque, residual))
    return found


def _evaluation(source: RowSource, cutoff: float, torque: _TorqueSums, residual: _ResidualSums) -> Evaluation:
    equations = source.equations
    assert torque.extent is not None  # there are samples
    speeds = torque.extent.speed_max[equations.joint_index].tolist()
    joints = tuple(
        JointError(kind, joint, unit_of(equations, joint), speed, early + late)
        for (kind, joint), speed, early, late in zip(
            equations.kinds_joints, speeds, torque.sums(), residual.sums, strict=True
        )
    )
    return Evaluation(source.label, cutoff, joints, equations.joints, torque.extent, torque.skipped)


_SUMMED = ("samples", "still_samples", "error", "still_error", "torque", "still_torque", "noise")
_LARGEST = ("maximum", "torque_max")


@dataclass(frozen=True, eq=False)
class FilteredTorques:
    """Torques of neighbouring samples as they are judged.

    Attributes:
        segment: Number of the segment.
        time: Times (k,) [s].
        measured: Measured torque of every equation through the evaluation filter (E, k) [N m or N].
        predicted: Predicted torque through it (E, k).
        moving: Whether the joint moves at standstill speed or faster (E, k).
        raw: Measured torque before that filter (E, k).
    """

    segment: int
    time: np.ndarray
    measured: np.ndarray
    predicted: np.ndarray
    moving: np.ndarray
    raw: np.ndarray


def filtered_torques(
    source: RowSource, estimate: Estimate, low: LowPass, see: Callable[[PreparedBlock], None] = lambda _: None
) -> Iterator[FilteredTorques]:
    """Yield measured and predicted torques of a recording through a filter, block by block.

    Args:
        source: Rows of the recording.
        estimate: The parameters; columns that it lacks count as zero.
        low: The filter.
        see: Called with every block of the motion before it is filtered.
    """
    for (filtered,) in _filtered_of_each(source, [estimate], low, see):
        yield filtered


def _filtered_of_each(
    source: RowSource, estimates: Sequence[Estimate], low: LowPass, see: Callable[[PreparedBlock], None]
) -> Iterator[list[FilteredTorques]]:
    """Yield the torques of :func:`filtered_torques` for several estimates, which share what was measured."""
    equations = source.equations
    predict, values = predictor(equations, source.loaded), [one.full_values(equations.names) for one in estimates]
    segment: SegmentFilter | None = None
    number = -1

    def ready(columns: np.ndarray | None) -> Iterator[list[FilteredTorques]]:
        if columns is not None:
            measured, *predicted, moves, raw = np.split(columns[:-1], len(values) + 3)
            moving = moves > 0
            yield [FilteredTorques(number, columns[-1], measured, one, moving, raw) for one in predicted]

    for block in prepared_blocks(source, rests=True):
        see(block)
        if block.starts or segment is None:
            yield from ready(None if segment is None else segment.flush())
            segment, number = SegmentFilter(low), number + 1
        torques = [predict(*block.motion, one)[0] for one in values]
        moving = block.moving[equations.joint_index].astype(float)
        others = np.concatenate([moving, block.y, block.time[None]])
        yield from ready(segment.push(np.concatenate([block.y, *torques]), others))
    yield from ready(None if segment is None else segment.flush())


class _TorqueSums:
    """Sums over samples at the full rate."""

    def __init__(self, source: RowSource, low: LowPass) -> None:
        equations = source.equations
        self._sums = {name: np.zeros(len(equations.kinds_joints)) for name in (*_SUMMED, *_LARGEST)}
        self._mean_torque, self._mean_error = np.zeros((2, len(equations.kinds_joints)))  # times the moving samples
        # White noise has as much power below the cut-off, per hertz, as above it.
        cutoff, nyquist = low.cutoff or 0.0, source.resolved.rate / 2
        self._below_over_above = cutoff / (nyquist - cutoff)
        self.extent: MotionExtent | None = None
        self.segments = self.samples = 0
        self._judged: set[int] = set()

    def see(self, block: PreparedBlock) -> None:
        """Take the next block of the motion."""
        extent = MotionExtent.of(block.q, block.qd, block.qdd)
        self.segments += block.starts or self.extent is None
        self.extent = extent if self.extent is None else self.extent + extent

    @property
    def skipped(self) -> int:
        """Segments too short for the filter."""
        return self.segments - len(self._judged)

    def add(self, block: FilteredTorques) -> None:
        """Take the next torques."""
        measured, moves, sums = block.measured, block.moving, self._sums
        error = measured - block.predicted
        sums["samples"] += np.count_nonzero(moves, axis=1)
        sums["still_samples"] += np.count_nonzero(~moves, axis=1)
        sums["error"] += np.sum(error**2, axis=1, where=moves)
        sums["still_error"] += np.sum(error**2, axis=1, where=~moves)
        sums["torque"] += np.sum(measured**2, axis=1, where=moves)
        sums["still_torque"] += np.sum(measured**2, axis=1, where=~moves)
        sums["noise"] += self._below_over_above * np.sum((block.raw - measured) ** 2, axis=1, where=moves)
        largest = np.max(np.abs(error), axis=1, where=moves, initial=0.0)
        np.maximum(sums["torque_max"], np.abs(measured).max(axis=1), out=sums["torque_max"])
        np.maximum(sums["maximum"], largest, out=sums["maximum"])
        self._mean_torque += np.sum(measured, axis=1, where=moves)
        self._mean_error += np.sum(error, axis=1, where=moves)
        self.samples += len(block.time)
        self._judged.add(block.segment)

    def sums(self) -> Iterator[ErrorSums]:
        """Yield the sums of every equation."""
        count = np.maximum(self._sums["samples"], 1)
        torque = np.maximum(self._sums["torque"] - self._mean_torque**2 / count, 0.0).tolist()
        error = np.maximum(self._sums["error"] - self._mean_error**2 / count, 0.0).tolist()
        for e, varying in enumerate(zip(torque, error, strict=True)):
            sums: dict[str, Any] = {name: float(values[e]) for name, values in self._sums.items()}
            sums |= {name: int(sums[name]) for name in ("samples", "still_samples")}
            yield ErrorSums(**sums, torque_variation=varying[0], error_variation=varying[1])


class _ResidualSums:
    """Sums over decimated rows: Durbin-Watson's, and those of whitened residuals."""

    def __init__(self, source: RowSource) -> None:
        self.sums = [ErrorSums() for _ in source.equations.kinds_joints]
        self._last = [0.0] * len(self.sums)
        # What a pair of neighbours adds for noise of variance 1 that is white before the decimator.
        self._pair = 2 * (1 - float(decimator_correlation(source)[1]))

    def add(self, found: ResidualRun) -> None:
        """Take the next residuals of an equation."""
        e, residual, white = found.run.equation, found.residual, found.whitened
        joined = residual if found.run.starts else np.concatenate([[self._last[e]], residual])
        self._last[e] = float(residual[-1])
        self.sums[e] += ErrorSums(
            rows=len(residual),
            residual=float(residual @ residual),
            differences=float(np.sum(np.diff(joined) ** 2)),
            expected=self._pair * (len(joined) - 1),
            white_rows=0 if white is None else len(white),
            white=0.0 if white is None else float(white @ white),
        )
