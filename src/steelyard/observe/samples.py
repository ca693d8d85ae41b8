"""The samples of a recording as they enter the regressor: at the full rate, before decimation.

The samples of a recording as they were measured, made even: neither low-passed nor decimated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from .decimated import moving_joints
from .equations import measured_torques
from .motion_stream import RawSignals
from .reading import EvenStream, Piece, blocks_of, template_of
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
        y: Measured side of every equation, not filtered (E, k) [N m or N].
        moving: Which joints move at standstill speed or faster (n, k).
    """

    segment: int
    starts: bool
    time: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    y: np.ndarray
    moving: np.ndarray


def prepared_blocks(source: RowSource) -> Iterator[PreparedBlock]:
    """Yield the samples from which the rows of a recording are made, block by block.

    Args:
        source: The rows; every call is a pass of its own, and memory does not grow with the recording.
    """
    segment, pending = -1, False
    for starts, columns in source.new_pass().motion():
        segment += starts
        pending = pending or starts
        if columns is not None:
            yield _block(source, segment, pending, columns)
            pending = False


def _block(source: RowSource, segment: int, starts: bool, columns: np.ndarray) -> PreparedBlock:
    joints, rows = len(source.equations.joints), len(source.equations.kinds_joints)
    q, qd, qdd, y, _ = np.split(columns, np.cumsum([joints, joints, joints, rows]))
    moving = moving_joints(qd, source.resolved.standstill, source.equations.model.robot.motor_coupling())
    for array in (columns, q, qd, qdd, y, moving):
        array.setflags(write=False)
    time = columns[-1]
    return PreparedBlock(segment, starts, time, q, qd, qdd, y, moving)


@dataclass(frozen=True, eq=False)
class RawBlock:
    """Neighbouring samples of one segment, evenly spaced at the settled rate.

    Attributes:
        starts: Whether a segment begins here: a recording, or what follows a gap; else the block continues the one
            before.
        time: Times (k,) [s].
        q: Positions (n, k), behind elastic joints if the preparation says so.
        qd: Recorded velocities (n, k), None unless they were asked for.
        y: Measured side of every equation (E, k) [N m or N].
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
    template = template_of(source.recording)
    torques = measured_torques(source.equations, template, source.label)
    signals = RawSignals(template, chosen, torques, source.label, source.delays)
    starts = False
    for piece in signals.in_time(_even_pieces(source, signals), source.resolved.rate):
        starts = starts or piece.starts
        if len(piece.time):
            yield _raw_block(source, replace(piece, starts=starts), velocity)
            starts = False


def _even_pieces(source: RowSource, signals: RawSignals) -> Iterator[Piece]:
    even = EvenStream(source.resolved)
    for block in blocks_of(source.recording):
        yield from even.push(block.time, signals.of(block))
    yield from even.flush()


def _raw_block(source: RowSource, piece: Piece, velocity: bool) -> RawBlock:
    joints, rows = len(source.equations.joints), len(source.equations.kinds_joints)
    speeds = joints if velocity else 0
    q, qd, y = np.split(piece.values[: joints + speeds + rows], np.cumsum([joints, speeds]))
    for array in (q, qd, y):
        array.setflags(write=False)
    return RawBlock(piece.starts, piece.time, q, qd if velocity else None, y)
