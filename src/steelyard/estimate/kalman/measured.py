"""The measured motion beside raw samples: positions smoothed by local cubics, and their derivatives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, pairwise

import numpy as np

from ...observe import RawBlock

PERIODS = 2.0
"""Length of the cubics, in periods of the cut-off."""

SHORTEST = 5
"""Samples of a cubic, at least."""


@dataclass(frozen=True, eq=False)
class MovingBlock:
    """A block of samples with its measured motion.

    Attributes:
        samples: The block, k samples.
        motion: Positions, velocities and accelerations (3n, k), one below the other; none (0, k) if not wanted.
    """

    samples: RawBlock
    motion: np.ndarray


def without_motion(blocks: Iterable[RawBlock]) -> Iterator[MovingBlock]:
    """Yield samples alone."""
    for block in blocks:
        yield MovingBlock(block, np.zeros((0, len(block.time))))


def with_motion(blocks: Iterable[RawBlock], rate: float, cutoff: float) -> Iterator[MovingBlock]:
    """Yield samples with their measured motion, block by block; cubics reach across the seams of blocks.

    What stands alone and is shorter than a cubic is left out: its accelerations would be noise.

    Args:
        blocks: Blocks of a recording.
        rate: Rate of the samples [Hz].
        cutoff: Cut-off [Hz].
    """
    from scipy.signal import savgol_filter  # imported when used: its import takes longer than a command's start

    window = max(2 * int(PERIODS * rate / cutoff / 2) + 1, SHORTEST)
    past, is_left_out = np.zeros((0, 0)), False
    for block, following in pairwise(chain(blocks, [None])):
        if block is None:
            return
        starts = block.starts or is_left_out
        past = np.zeros((len(block.q), 0)) if starts else past
        ahead = block.q[:, :0] if following is None or following.starts else following.q[:, :window]
        q = np.concatenate([past, block.q, ahead], axis=1)
        own = slice(past.shape[1], past.shape[1] + block.q.shape[1])
        past, is_left_out = q[:, : own.stop][:, -window:], q.shape[1] < window
        if not is_left_out:
            orders = [savgol_filter(q, window, 3, deriv=order, delta=1 / rate, axis=1) for order in range(3)]
            motion = np.concatenate([np.asarray(signals)[:, own] for signals in orders])
            yield MovingBlock(replace(block, starts=starts), motion)
