"""The samples of a recording as they enter the regressor: at the full rate, before decimation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .rows import RowSource
from .standstill import moving_joints


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
    moving = moving_joints(qd, source.settled.standstill, source.equations.model.robot.motor_coupling())
    for array in (columns, q, qd, qdd, y, moving):
        array.setflags(write=False)
    time = columns[-1]
    return PreparedBlock(segment, starts, time, q, qd, qdd, y, moving)
