"""The rows of one recording on their way into factors: runs whitened, blocks of time filled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np

from .factor import Factor
from .rows import RowBlock, RowSource
from .time_blocks import TimeBlocks


class RowTransform(Protocol):
    """A linear transform of neighbouring rows, W and y alike: a noise filter that whitens, say."""

    def restart(self) -> None:
        """Forget the rows before: a new run begins."""
        ...

    def push(self, rows: np.ndarray) -> np.ndarray:
        """Take rows (k, c + 1) and return those that are ready (k', c + 1)."""
        ...


Whitening = Callable[[RowSource, int], RowTransform]
"""Gives the transform for a source and the number of an equation."""


def reduced_source(
    source: RowSource, whiten: Whitening | None, blocks: int, pool: ThreadPoolExecutor | None, tell: Callable[[], None]
) -> tuple[Factor, ...]:
    """Return the factors of a recording, equation by equation, block by block.

    Args:
        source: Its rows.
        whiten: The transform of each equation's rows; none by default.
        blocks: How many blocks of time are wanted.
        pool: Threads that share the equations.
        tell: Called after every block of rows.
    """
    count = len(source.equations.kinds_joints)
    reductions = [_EquationReduction(source, e, whiten, blocks) for e in range(count)]
    for block in source:
        tasks = (pool.map if pool else map)(lambda reduction, block=block: reduction.take(block), reductions)
        for _ in tasks:
            pass
        tell()
    return tuple(factor for reduction in reductions for factor in reduction.factors())


class _EquationReduction:
    """The factors of one equation of one recording."""

    def __init__(self, source: RowSource, e: int, whiten: Whitening | None, blocks: int) -> None:
        self._source, self._e = source, e
        self._transform = None if whiten is None else whiten(source, e)
        felt, whole = source.columns[e], source.equations.columns[e]
        # Columns that are zero in all of this recording are left out; merging by name brings them back.
        self._felt = None if felt == whole else [*(whole.index(name) for name in felt), len(whole)]
        self._blocks = TimeBlocks(len(felt) + 1, blocks)
        self._runs_to: tuple[int, int] | None = None  # segment and row number at which the last run may go on

    def take(self, block: RowBlock) -> None:
        """Take the usable rows of a block."""
        at, length = 0, len(block.time)
        for first, rows in block.runs(self._e):
            self._elapse(first - at)
            if self._transform is not None and self._runs_to != (block.segment, block.first + first):
                self._transform.restart()
            self._add(rows)
            at = first + len(rows)
            self._runs_to = (block.segment, block.first + at)
        self._elapse(length - at)

    def _add(self, rows: np.ndarray) -> None:
        while len(rows):
            part = rows[: self._blocks.room]
            rows = rows[len(part) :]
            ready = part if self._transform is None else self._transform.push(part)
            self._blocks.add(ready if self._felt is None else ready[:, self._felt])
            self._blocks.elapse(len(part))

    def _elapse(self, samples: int) -> None:
        while samples > 0:
            step = min(samples, self._blocks.room)
            self._blocks.elapse(step)
            samples -= step

    def factors(self) -> Iterator[Factor]:
        """Yield the factors; blocks without a row are left out."""
        kind, joint = self._source.equations.kinds_joints[self._e]
        columns = self._source.columns[self._e]
        for block, (triangle, count) in enumerate(self._blocks.finish()):
            if count:
                triangle.setflags(write=False)
                yield Factor(self._source.label, kind, joint, block, columns, triangle, count)
