"""Decimated rows of one segment: the regressor's non-zeros and y, samples near standstill left out.

Rows are decimated in place: the regressor writes them straight into the filter's buffer, a few hundred samples at a
time, which stay in the cache. Stages and outputs are those of :class:`steelyard.signals.Decimator`, which takes arrays
of any origin. Near standstill friction is neither Coulomb's nor viscous, so these samples do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from ..signals import ColumnQueue, Decimator, FirStage
from .equations import CompiledRows, Equations
from .preparation import ResolvedPreparation

# Numbers in a line of the cache.
_LINE = 8
# Outputs of one matrix product: more would multiply more zeros, fewer leave BLAS idle.
_TOGETHER = 8


def in_place_decimator(resolved: ResolvedPreparation, rows: int, width: int) -> _Mirroring | _Dropping:
    """Return the decimator of a preparation for so many rows, at most ``width`` samples at a time.

    Samples are written to its ``inputs`` (rows, width). ``advance(count, outputs)`` takes the first ``count`` columns
    of them, writes what they complete and returns how many outputs it is; outputs may have waited, so that ``outputs``
    needs room for as many as ``count`` and the filter's length give.
    """
    if resolved.decimates and resolved.chosen.ends == "mirror":
        return _Mirroring(resolved, rows, width)
    return _Dropping(resolved.decimation_filter.stages, rows, width)


def decimator_of(resolved: ResolvedPreparation) -> Decimator:
    """Return the decimator of a preparation for arrays."""
    filter_, chosen = resolved.decimation_filter, resolved.chosen
    return Decimator(filter_.rate, filter_.factor, filter_.cutoff, attenuation=filter_.attenuation, ends=chosen.ends)


class _Dropping:
    """Outputs nearer to an end than the filter's half length are dropped; without stages samples just pass."""

    def __init__(self, stages: tuple[FirStage, ...], rows: int, width: int) -> None:
        self._stages: list[_Stage] = []
        first = 0
        for stage in stages:
            self._stages.append(_Stage(stage, rows, width, first))
            width, first = width // stage.factor + 1, self._stages[-1].first_output
        self.inputs = self._stages[0].inputs if stages else np.empty((rows, width))

    def advance(self, count: int, outputs: np.ndarray) -> int:
        if not self._stages:
            outputs[:, :count] = self.inputs[:, :count]
            return count
        for stage, place in zip(self._stages, [*(later.inputs for later in self._stages[1:]), outputs], strict=True):
            count = stage.advance(count, place)
        return count

    def flush(self) -> np.ndarray:
        return self.inputs[:, :0]


class _Mirroring:
    """The signal is mirrored at its ends."""

    def __init__(self, resolved: ResolvedPreparation, rows: int, width: int) -> None:
        self.inputs = np.empty((rows, width))
        self._decimator = decimator_of(resolved)

    def advance(self, count: int, outputs: np.ndarray) -> int:
        ready = self._decimator.push(self.inputs[:, :count].copy())
        outputs[:, : ready.shape[1]] = ready
        return ready.shape[1]

    def flush(self) -> np.ndarray:
        return self._decimator.flush()


class _Stage:
    """A FIR stage with a buffer: samples still needed stand right before the place where new ones are written.

    Samples carry numbers from ``first`` on; outputs lie at multiples of the stage's factor.
    """

    def __init__(self, stage: FirStage, rows: int, width: int, first: int) -> None:
        self._stage, self.factor, self._taps = stage, stage.factor, len(stage.taps)
        self._front = -(-self._taps // _LINE) * _LINE
        lines = -(-(self._front + width) // _LINE)
        # An odd number of lines from row to row: neighbours do not fall on the same sets of the cache.
        self._buffer = np.empty((rows, _LINE * (lines + 1 - lines % 2)))
        self.inputs = self._buffer[:, self._front : self._front + width]
        self._held = 0
        # Samples to throw away before the window of the next output begins.
        self.first_output = -(-(first + stage.half) // self.factor)
        self._skip = self.first_output * self.factor - stage.half - first
        self._band = stage.band(_TOGETHER)

    def advance(self, count: int, outputs: np.ndarray) -> int:
        """Take ``count`` new samples, write the outputs that they complete and return how many these are."""
        first, last = self._front - self._held, self._front + count
        thrown = min(self._skip, last - first)
        self._skip -= thrown
        first += thrown
        ready = max(0, (last - first - self._taps) // self.factor + 1)
        self._stage.write(self._buffer[:, first:], self._band, outputs[:, :ready])
        first += ready * self.factor
        self._skip += max(0, first - last)
        self._held = max(0, last - first)
        self._buffer[:, self._front - self._held : self._front] = self._buffer[:, last - self._held : last]
        return ready


def moving_joints(qd: np.ndarray, standstill: np.ndarray, coupling: np.ndarray) -> np.ndarray:
    """Return which joints move at standstill speed or faster (n, N).

    A motor that turns with two joints has friction in the equations of both, whose direction is that of the motor:
    where it stands still, neither counts as moving.

    Args:
        qd: Velocities (n, N) [rad/s or m/s].
        standstill: Speed of each joint, and of the motor that is named after it (n,).
        coupling: C (n, n) with ``q_motor = C q``, see :meth:`steelyard.robot.Robot.motor_coupling`.
    """
    moving = np.abs(qd) >= standstill[:, None]
    for motor, other in coupled_motors(coupling):
        turns = np.abs(coupling[motor] @ qd) >= standstill[motor]
        moving[motor] &= turns
        moving[other] &= turns
    return moving


def coupled_motors(coupling: np.ndarray) -> list[tuple[int, int]]:
    """Return the coupled motors, each with the joint other than its own that it turns with, as rows of C."""
    rows, columns = np.nonzero(coupling - np.diag(np.diag(coupling)))
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


_IN_CACHE = 110_000
"""Numbers in the buffer between regressor and filter: they stay in the second-level cache."""

Gate = Callable[[int, int], np.ndarray]
"""From a first sample of a segment to before a last one: which of them count for each joint's own equations (n, m)."""

_ROWS = 1024
"""Decimated columns returned at once, at most about."""


@dataclass(frozen=True)
class Layout:
    """Where quantities stand in the arrays on the way.

    Attributes:
        joints: Number of joints n.
        equations: For each equation, the rows of ``[W_e; y_e]``, one equation after the other; then q, qd, qdd and
            what else the regressor depends on.
        joint_index: Joint of each equation (E,).
        temperatures: Number of temperatures, n or 0.
        coupling: C (n, n) with ``q_motor = C q``.
        further: Sizes of the inputs that the regressor has besides: states of friction, temperatures.
        values: For each equation, values x of its columns; its rows are then ``[W_e; -d(W_e x)/dt; y_e]``. None: rows
            without that derivative.
    """

    joints: int
    equations: tuple[slice, ...]
    joint_index: np.ndarray
    temperatures: int
    coupling: np.ndarray
    further: tuple[int, ...] = ()
    values: tuple[np.ndarray, ...] | None = None

    @property
    def added(self) -> int:
        """Rows of an equation besides those of W: y, and the derivative if there is one."""
        return 1 if self.values is None else 2

    @property
    def inputs(self) -> tuple[int, ...]:
        """Sizes of all inputs of the regressor: q, qd, qdd and what else it depends on."""
        return (self.joints, self.joints, self.joints, *self.further)

    @property
    def motion(self) -> slice:
        """Rows of these inputs after the equations."""
        first = self.equations[-1].stop
        return slice(first, first + sum(self.inputs))

    def split_motion(self, rows: np.ndarray) -> list[np.ndarray]:
        """Return the inputs of the regressor from their rows."""
        ends = np.cumsum(self.inputs)
        return [rows[end - size : end] for end, size in zip(ends.tolist(), self.inputs, strict=True)]

    @property
    def share(self) -> slice:
        """Rows of each joint's share after the motion, once decimated."""
        return slice(self.motion.stop, self.motion.stop + self.joints)

    @property
    def temperature(self) -> slice:
        """Rows of the temperatures after the shares; the times come last."""
        return slice(self.share.stop, self.share.stop + self.temperatures)


def layout_of(
    compiled: CompiledRows, equations: Equations, temperatures: int, values: Mapping[str, float] | None = None
) -> Layout:
    """Return the layout of rows of a compiled regressor; with values of its columns, rows have the derivative too."""
    known = None
    if values is not None:
        known = tuple(np.array([values.get(name, 0.0) for name in names]) for names in compiled.columns)
    sizes = [len(columns) + (1 if known is None else 2) for columns in compiled.columns]
    parts = tuple(slice(int(end) - size, int(end)) for end, size in zip(np.cumsum(sizes), sizes, strict=True))
    coupling = equations.model.robot.motor_coupling()
    further = tuple(one.shape[0] for one in equations.inputs.values())[3:]
    return Layout(len(equations.joints), parts, equations.joint_index, temperatures, coupling, further, known)


class DecimatedSegment:
    """Decimated rows of one segment, block by block.

    Columns that come in are ``[inputs of the regressor; y (E); temperature; time]``. Near standstill the own
    equations of a joint are bridged before decimation, W and y alike: samples there become the mean of those just
    before. The equation stays exact, nothing of standstill enters it, and noise that persists passes through as it is.

    Args:
        resolved: The preparation.
        compiled: The compiled regressor.
        layout: Where things stand.
        gate: Which samples count, instead of those that move at standstill speed or faster.

    Attributes:
        samples: Samples that came in.
        masked: How many of them were near standstill (n,).
        fastest: Highest speed of each joint (n,).
    """

    def __init__(
        self, resolved: ResolvedPreparation, compiled: CompiledRows, layout: Layout, gate: Gate | None = None
    ) -> None:
        self._resolved, self._layout, self._gate = resolved, layout, gate
        filter_ = resolved.decimation_filter
        self._width = max(64, min(4096, _IN_CACHE // layout.motion.stop // 8 * 8))
        self._decimator = in_place_decimator(resolved, layout.motion.stop, self._width)
        leaves_out = gate is not None or resolved.standstill.any()
        self._window = _window_decimator(resolved) if resolved.decimates and leaves_out else None
        rows = self._decimator.inputs
        outputs = [rows[part.start : part.stop - layout.added] for part in layout.equations]
        self._regressor = compiled.function.bind(layout.split_motion(rows[layout.motion]), outputs)
        self._measured = [part.stop - 1 for part in layout.equations]
        self._to_skip = filter_.outputs(0).start // filter_.factor if resolved.chosen.ends == "drop" else 0
        self._picked = ColumnQueue()
        self._before = [np.zeros((part.stop - part.start, 1)) for part in layout.equations]
        self.samples = 0
        self.masked = np.zeros(layout.joints, dtype=np.int64)
        self.fastest = np.zeros(layout.joints)

    def push(self, columns: np.ndarray) -> Iterator[np.ndarray]:
        """Take columns (rows, m) and yield the decimated arrays that are ready; see :meth:`_completed`."""
        together = _ROWS * self._resolved.decimation
        for first in range(0, columns.shape[1], together):
            yield from self._push_some(columns[:, first : first + together])

    def flush(self) -> Iterator[np.ndarray]:
        """End the segment and yield its last outputs; none if it was too short for the decimator."""
        if self._resolved.decimates and self.samples >= _least(self._resolved):
            values = self._decimator.flush()
            outputs = np.empty((self._layout.temperature.stop + 1, values.shape[1]))
            outputs[: len(values)] = values
            yield from self._completed(outputs, self._window.flush() if self._window else None)

    def _push_some(self, columns: np.ndarray) -> Iterator[np.ndarray]:
        size, equations = self._layout.joints, len(self._layout.equations)
        first_torque = sum(self._layout.inputs)
        motion, measured, others = np.split(columns, [first_torque, first_torque + equations])
        moving = self._moving(motion[size : 2 * size])
        filter_, count = self._resolved.decimation_filter, 0
        # Outputs may have waited for as many samples as the filter is long.
        room = (columns.shape[1] + 2 * filter_.half) // filter_.factor + 2
        outputs = np.empty((self._layout.temperature.stop + 1, room))
        for first in range(0, columns.shape[1], self._width):
            part = slice(first, first + self._width)
            # Where a joint goes on moving, the mean just before is not needed.
            stops = ~moving[:, part.stop] if part.stop < columns.shape[1] else np.ones(size, dtype=bool)
            few = self._prepare(motion[:, part], measured[:, part], moving[:, part], stops)
            count += self._decimator.advance(few, outputs[: self._layout.motion.stop, count:])
        self._pick(others)
        self.samples += columns.shape[1]
        share = self._window.push(moving.astype(float)) if self._window else None
        yield from self._completed(outputs[:, :count], share if self._resolved.decimates else moving)

    def _prepare(self, motion: np.ndarray, measured: np.ndarray, moving: np.ndarray, stops: np.ndarray) -> int:
        """Write the rows of a few samples where the decimator reads them; return how many samples they are.

        Joints of which ``stops`` (n,) is true may be near standstill in the sample that follows.
        """
        count = motion.shape[1]
        rows = self._decimator.inputs[:, :count]
        rows[self._layout.motion] = motion
        self._regressor(0, count)
        rows[self._measured] = measured
        for part, values in zip(self._layout.equations, self._layout.values or (), strict=False):
            torque = values @ rows[part.start : part.stop - 2]
            rows[part.stop - 2] = -self._resolved.rate * np.gradient(torque) if count > 1 else 0.0
        for e, joint in enumerate(self._layout.joint_index):
            self._bridge(e, rows[self._layout.equations[e]], moving[joint], bool(stops[joint]))
        return count

    def _bridge(self, e: int, rows: np.ndarray, moving: np.ndarray, stops: bool) -> None:
        """Put the mean of the moving samples just before in the place of those near standstill."""
        longest = self._resolved.decimation
        if not moving.all():
            edges = np.flatnonzero(np.diff(np.concatenate([[True], moving, [True]]).astype(np.int8))).tolist()
            for first, last in zip(edges[::2], edges[1::2], strict=True):
                start = max(0, first - longest)
                if first > start:
                    self._before[e] = _mean(rows[:, start:first])
                rows[:, first:last] = self._before[e]
        if self._window is not None and stops:
            self._before[e] = _mean(rows[:, -longest:])

    def _moving(self, qd: np.ndarray) -> np.ndarray:
        """Return which joints move (n, m), or which of the next samples count."""
        np.maximum(self.fastest, np.abs(qd).max(axis=1), out=self.fastest)
        if self._gate is None:
            moving = moving_joints(qd, self._resolved.standstill, self._layout.coupling)
        else:
            moving = self._gate(self.samples, self.samples + qd.shape[1])
        self.masked += (~moving).sum(axis=1)
        return moving

    def _pick(self, others: np.ndarray) -> None:
        """Keep temperatures and times of the samples at which outputs lie."""
        factor = self._resolved.decimation
        picked = others[:, -self.samples % factor :: factor]
        skipped = min(self._to_skip, picked.shape[1])
        self._to_skip -= skipped
        self._picked.put(picked[:, skipped:].copy())

    def _completed(self, outputs: np.ndarray, share: np.ndarray | None) -> Iterator[np.ndarray]:
        """Yield decimated columns ``[equations; motion; share (n); temperature; time]``, if there are any."""
        count = outputs.shape[1]
        if count:
            outputs[self._layout.share] = 1.0 if share is None else share
            outputs[self._layout.temperature.start :] = self._picked.take(count)
            yield outputs


def _mean(rows: np.ndarray) -> np.ndarray:
    """Return the mean of each row (n, 1); ``ndarray.mean`` takes longer for its own checks than for so few columns."""
    return np.add.reduce(rows, axis=1, keepdims=True) / rows.shape[1]


def _window_decimator(resolved: ResolvedPreparation) -> Decimator:
    """Return a decimator whose weights are the squares of the filter's: white noise counts by them."""
    decimator = decimator_of(resolved)
    weights = resolved.decimation_filter.impulse_response() ** 2
    decimator.filter = replace(decimator.filter, stages=(FirStage(weights / weights.sum(), resolved.decimation),))
    return decimator


def _least(resolved: ResolvedPreparation) -> int:
    """Return how many samples the decimator needs for one output."""
    filter_ = resolved.decimation_filter
    return filter_.outputs(0).start + (1 if resolved.chosen.ends == "mirror" else filter_.half + 1)
