"""The samples of a recording as they were measured, made even: neither low-passed nor decimated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from .raw_signals import RawSignals
from .reading import blocks_of, template_of
from .regular import EvenStream, Piece
from .rows import RowSource
from .torques import measured_torques


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
    chosen = replace(source.settled.chosen, velocity="recorded" if velocity else "differentiated")
    template = template_of(source.recording)
    torques = measured_torques(source.equations, template, source.label)
    signals = RawSignals(template, chosen, torques, source.label, source.delays)
    starts = False
    for piece in signals.in_time(_even_pieces(source, signals), source.settled.rate):
        starts = starts or piece.starts
        if len(piece.time):
            yield _block(source, replace(piece, starts=starts), velocity)
            starts = False


def _even_pieces(source: RowSource, signals: RawSignals) -> Iterator[Piece]:
    even = EvenStream(source.settled)
    for block in blocks_of(source.recording):
        yield from even.push(block.time, signals.of(block))
    yield from even.flush()


def _block(source: RowSource, piece: Piece, velocity: bool) -> RawBlock:
    joints, rows = len(source.equations.joints), len(source.equations.kinds_joints)
    speeds = joints if velocity else 0
    q, qd, y = np.split(piece.values[: joints + speeds + rows], np.cumsum([joints, speeds]))
    for array in (q, qd, y):
        array.setflags(write=False)
    return RawBlock(piece.starts, piece.time, q, qd if velocity else None, y)
