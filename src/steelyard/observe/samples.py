"""Samples of a recording at the full rate: as they enter the regressor, or as they were measured and made even."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from .decimated import moving_joints
from .equations import measured_torques
from .motion_stream import RawSignals
from .reading import EvenStream, Piece, blocks_of
from .rows import RowSource


@dataclass(frozen=True, eq=False)
class PreparedBlock:
    """Neighbouring samples of one segment.

    Attributes:
        segment: Number of the segment, from 0, as that of :class:`RowBlock`.
        starts: Whether the segment's samples begin here; else the block continues the one before.
        time: Times (k,) [s].
        q: Positions, low-passed (n, k).
        qd: Velocities (n, k).
        qdd: Accelerations (n, k).
        further: What else the regressor depends on: states of friction, temperatures, each (s, k).
        y: Measured side of every equation less known torques, not filtered (E, k) [N m or N].
        moving: Which joints move at standstill speed or faster (n, k).
    """

    segment: int
    starts: bool
    time: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    further: tuple[np.ndarray, ...]
    y: np.ndarray
    moving: np.ndarray

    @property
    def motion(self) -> list[np.ndarray]:
        """What the regressor is a function of."""
        return [np.ascontiguousarray(signal) for signal in (self.q, self.qd, self.qdd, *self.further)]


REST = 0.5
"""A joint that has been slower than its standstill speed for so long is at rest [s],"""
CREEPING = 0.35
"""unless its mean speed meanwhile is more than this part of that speed: noise alone has 0.27, a slow reversal 0.5."""


def prepared_blocks(source: RowSource, *, rests: bool = False) -> Iterator[PreparedBlock]:
    """Yield the samples from which the rows of a recording are made, block by block.

    Args:
        source: The rows; every call is a pass of its own, and memory does not grow with the recording.
        rests: Whether joints at rest have no velocity instead of its noise, whose sign would be taken for a direction
            of friction. Stiction is undetermined there, with a mean of zero.
    """
    rows, before = len(source.equations.kinds_joints), -1
    at_rest = _Rests(source.resolved.standstill, REST * source.resolved.rate)
    inputs = [one.shape[0] for one in source.equations.inputs.values()]
    for segment, columns in source.new_pass().motion():
        if columns is None:
            continue
        columns.setflags(write=False)
        q, qd, qdd, *further, y, _ = np.split(columns, np.cumsum([*inputs, rows]))
        moving = moving_joints(qd, source.resolved.standstill, source.equations.model.robot.motor_coupling())
        moving.setflags(write=False)
        if rests:
            if segment != before:
                at_rest = _Rests(source.resolved.standstill, REST * source.resolved.rate)
            qd = np.where(at_rest.of(qd), 0.0, qd)
        yield PreparedBlock(segment, segment != before, columns[-1], q, qd, qdd, tuple(further), y, moving)
        before = segment


class _Rests:
    """Finds joints at rest: slow for some time, and slower in the mean than one that creeps or reverses slowly.

    Args:
        standstill: Speed of each joint below which it is slow (n,).
        longest: Samples that a joint has to be slow.
    """

    def __init__(self, standstill: np.ndarray, longest: float) -> None:
        self._standstill, self._longest = standstill[:, None], longest
        self._before = np.zeros((2, len(standstill), 1))  # samples of the slow run so far, and the sum of speeds

    def of(self, qd: np.ndarray) -> np.ndarray:
        """Take the next velocities (n, k) of a segment and return which joints are at rest (n, k)."""
        slow = np.abs(qd) < self._standstill
        last_fast = np.maximum.accumulate(np.where(slow, 0, np.arange(1, qd.shape[1] + 1)), axis=1)
        found = []
        for values, before in zip((np.ones_like(qd), np.abs(qd)), self._before, strict=True):
            total = np.cumsum(np.where(slow, values, 0.0), axis=1)
            found.append(total - np.take_along_axis(np.concatenate([-before, total], axis=1), last_fast, axis=1))
        self._before = np.array([one[:, -1:] for one in found])
        count, way = found
        return (count > self._longest) & (way < CREEPING * count * self._standstill)


@dataclass(frozen=True, eq=False)
class RawBlock:
    """Neighbouring samples of one segment, evenly spaced at the rate of the preparation.

    Attributes:
        starts: Whether a segment begins here: a recording, or what follows a gap; else the block continues the one
            before.
        time: Times (k,) [s].
        q: Positions (n, k), behind elastic joints if the preparation says so.
        qd: Recorded velocities (n, k), None unless they were requested.
        y: Measured side of every equation less known torques (E, k) [N m or N].
    """

    starts: bool
    time: np.ndarray
    q: np.ndarray
    qd: np.ndarray | None
    y: np.ndarray


def raw_samples(source: RowSource, *, velocity: bool = False) -> Iterator[RawBlock]:
    """Yield the samples behind the rows of a recording, block by block; memory does not grow with the recording.

    Args:
        source: The rows; every call is a pass of its own.
        velocity: Whether recorded velocities are wanted.

    Raises:
        ObservationError: If a channel is missing, or a sample is no number.
    """
    chosen = replace(source.resolved.chosen, velocity="recorded" if velocity else "differentiated")
    torques = measured_torques(source.equations, source.template, source.label)
    signals = RawSignals(source.template, chosen, torques, source.label, source.delays)
    joints, starts = len(source.equations.joints), False
    speeds = joints if velocity else 0
    used = joints + speeds + len(source.equations.kinds_joints)
    for piece in signals.in_time(_even_pieces(source, signals), source.resolved.rate):
        starts = starts or piece.starts
        if len(piece.time):
            values = piece.values[:used]
            values.setflags(write=False)
            q, qd, y = np.split(values, np.cumsum([joints, speeds]))
            y = source.equations.net(y, q, source.label)
            yield RawBlock(starts, piece.time, q, qd if velocity else None, y)
            starts = False


def _even_pieces(source: RowSource, signals: RawSignals) -> Iterator[Piece]:
    even = EvenStream(source.resolved)
    for block in blocks_of(source.recording):
        yield from even.push(block.time, signals.of(block))
    yield from even.flush()
