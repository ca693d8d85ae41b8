"""An estimate tried on a recording: predicted against measured torque, both through the evaluation filter.

The relative error is ``100 ||tau - tau_hat|| / ||tau||`` of torques on the joint side at the full rate, nothing
subtracted, both through the same zero-phase Butterworth filter of order 4 and before any decimation, whatever filter
the estimator itself used. Samples in which a joint stands nearly still are judged apart, as stiction is undetermined
there.

Torques that a model predicts: its equations with the parameters as an input, compiled once for each model.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import casadi as ca
import numpy as np

from ..errors import EstimateError
from ..estimate import Estimate, NoiseModel
from ..kernel import BatchFunction, compile_batch
from ..observe import Equations, PreparedBlock, RowSource, decimator_correlation, prepared_blocks
from ..signals import LowPass, SegmentFilter, evaluation_filter
from .evaluation import ErrorSums, Evaluation, JointError, MotionExtent
from .residuals import ResidualRun, residuals_of, unit_of


@lru_cache(maxsize=8)
def predictor(equations: Equations, loaded: bool) -> BatchFunction:
    """Return ``(q, qd, qdd, x)`` to the torques of all equations, ``tau_hat = W(q, qd, qdd) x`` (E, N).

    Args:
        equations: The equations; x has a value for each of their base columns, ``equations.names``.
        loaded: Whether the payload's columns count.
    """
    model = equations.model
    regressor = model.regressor if loaded or model.payload == "none" else model.unloaded_regressor
    motion = model.motion
    columns = list(equations.base.base_columns)
    rows = [model.rows.index(row) for row in equations.kinds_joints]
    matrix = ca.sparsify(regressor(motion.q, motion.qd, motion.qdd)[rows, columns])
    values = ca.SX.sym("x", len(columns))
    torque = ca.cse(ca.densify(ca.mtimes(matrix, values)))
    inputs = [motion.q, motion.qd, motion.qdd, values]
    return compile_batch(ca.Function("prediction", inputs, [torque], ["q", "qd", "qdd", "x"], ["torque"]))


DEFAULT_CUTOFF = 10.0
"""Cut-off of the evaluation filter where positions were not filtered [Hz]."""


def evaluate(
    source: RowSource, estimate: Estimate, noise: NoiseModel | None = None, cutoff: float | None = None
) -> Evaluation:
    """Try an estimate on a recording.

    Args:
        source: Rows of the recording, of the equations that were estimated.
        estimate: The parameters; columns that it lacks count as zero.
        noise: A noise model to compare the residuals with. For a recording that it was not fitted to, the deviation of
            an equation is the root mean square of those it was.
        cutoff: Cut-off of the evaluation filter [Hz]; that of the positions if not given, or 10 Hz if they had none.

    Raises:
        EstimateError: If no segment is long enough for the filter.
    """
    if cutoff is None:
        cutoff = source.resolved.cutoff or DEFAULT_CUTOFF
    low = evaluation_filter(source.resolved.rate, cutoff)
    torque = _TorqueSums(source, estimate, low)
    for block in prepared_blocks(source):
        torque.add(block)
    torque.end_segment()
    if not torque.samples:
        raise EstimateError(
            f"recording '{source.label}': none of its {torque.segments} segments is long enough for an evaluation "
            f"filter of {cutoff:g} Hz; raise it with --evaluation-cutoff, or judge by a longer recording"
        )
    residual = _ResidualSums(source)
    for found in residuals_of(source, estimate, noise):
        residual.add(found)
    index = source.equations.joint_index
    assert torque.extent is not None  # there are samples
    extent = torque.extent
    joints = tuple(
        JointError(kind, joint, unit_of(source.equations, joint), float(extent.speed_max[index[e]]), part)
        for e, ((kind, joint), part) in enumerate(
            zip(source.equations.kinds_joints, _both(torque, residual), strict=True)
        )
    )
    return Evaluation(source.label, cutoff, joints, source.equations.joints, extent, torque.skipped)


def _both(torque: _TorqueSums, residual: _ResidualSums) -> Iterator[ErrorSums]:
    return (early + late for early, late in zip(torque.sums(), residual.sums(), strict=True))


class _TorqueSums:
    """Sums over samples at the full rate."""

    def __init__(self, source: RowSource, estimate: Estimate, low: LowPass) -> None:
        equations = source.equations
        self._predict = predictor(equations, source.loaded)
        self._values = estimate.full_values(equations.names)
        self._index, self._low = equations.joint_index, low
        self._segment: SegmentFilter | None = None
        count = len(equations.kinds_joints)
        self._error, self._torque, self._maximum = np.zeros(count), np.zeros(count), np.zeros(count)
        self._still_error, self._largest, self._noise = np.zeros(count), np.zeros(count), np.zeros(count)
        self._sum_of_torque, self._sum_of_error = np.zeros(count), np.zeros(count)
        # White noise has as much power below the cut-off, per hertz, as above it.
        cutoff, nyquist = low.cutoff or 0.0, source.resolved.rate / 2
        self._below_over_above = cutoff / (nyquist - cutoff)
        self._moving, self._still = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        self.extent: MotionExtent | None = None
        self.segments = self.skipped = self.samples = 0
        self._before = 0

    def add(self, block: PreparedBlock) -> None:
        """Take the next block."""
        if block.starts or self._segment is None:
            self.end_segment()
            self._segment = SegmentFilter(self._low)
            self.segments, self._before = self.segments + 1, self.samples
        extent = MotionExtent.of(block.q, block.qd, block.qdd)
        self.extent = extent if self.extent is None else self.extent + extent
        motion = (np.ascontiguousarray(signal) for signal in (block.q, block.qd, block.qdd))
        (torque,) = self._predict(*motion, self._values)
        moving = block.moving[self._index].astype(float)
        self._sum(self._segment.push(np.concatenate([block.y, torque]), np.concatenate([moving, block.y])))

    def end_segment(self) -> None:
        """End the segment at hand, if there is one."""
        if self._segment is None:
            return
        self._sum(self._segment.flush())
        self.skipped += self.samples == self._before
        self._segment = None

    def _sum(self, columns: np.ndarray | None) -> None:
        if columns is None:
            return
        measured, predicted, moving, raw = np.split(columns, 4)
        signed, moves = measured - predicted, moving > 0
        error, square = np.abs(signed), signed**2
        self._error += np.sum(square, axis=1, where=moves)
        self._still_error += np.sum(square, axis=1, where=~moves)
        self._torque += np.sum(measured**2, axis=1, where=moves)
        self._sum_of_torque += np.sum(measured, axis=1, where=moves)
        self._sum_of_error += np.sum(signed, axis=1, where=moves)
        self._noise += self._below_over_above * np.sum((raw - measured) ** 2, axis=1, where=moves)
        np.maximum(self._largest, np.abs(measured).max(axis=1), out=self._largest)
        np.maximum(self._maximum, np.max(error, axis=1, where=moves, initial=0.0), out=self._maximum)
        self._moving += np.count_nonzero(moves, axis=1)
        self._still += np.count_nonzero(~moves, axis=1)
        self.samples += columns.shape[1]

    def sums(self) -> Iterator[ErrorSums]:
        """Yield the sums of every equation."""
        count = np.maximum(self._moving, 1)
        torque = np.maximum(self._torque - self._sum_of_torque**2 / count, 0.0)
        error = np.maximum(self._error - self._sum_of_error**2 / count, 0.0)
        for e in range(len(count)):
            yield ErrorSums(
                samples=int(self._moving[e]),
                error=float(self._error[e]),
                torque=float(self._torque[e]),
                maximum=float(self._maximum[e]),
                still_samples=int(self._still[e]),
                still_error=float(self._still_error[e]),
                torque_variation=float(torque[e]),
                error_variation=float(error[e]),
                torque_max=float(self._largest[e]),
                noise=float(self._noise[e]),
            )


class _ResidualSums:
    """Sums over decimated rows: Durbin-Watson's, and those of whitened residuals."""

    def __init__(self, source: RowSource) -> None:
        self._sums = [ErrorSums() for _ in source.equations.kinds_joints]
        self._last = [0.0] * len(self._sums)
        # What a pair of neighbours adds for noise of variance 1 that is white before the decimator.
        self._pair = 2 * (1 - float(decimator_correlation(source)[1]))

    def add(self, found: ResidualRun) -> None:
        """Take the next residuals of an equation."""
        e, residual, white = found.run.equation, found.residual, found.whitened
        joined = residual if found.run.starts else np.concatenate([[self._last[e]], residual])
        self._last[e] = float(residual[-1])
        self._sums[e] += ErrorSums(
            rows=len(residual),
            residual=float(residual @ residual),
            differences=float(np.sum(np.diff(joined) ** 2)),
            expected=self._pair * (len(joined) - 1),
            white_rows=0 if white is None else len(white),
            white=0.0 if white is None else float(white @ white),
        )

    def sums(self) -> list[ErrorSums]:
        """Return the sums of every equation."""
        return self._sums
