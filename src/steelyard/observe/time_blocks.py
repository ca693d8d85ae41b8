"""Rows of one equation cut into blocks of time, though nobody knows beforehand how many there will be.

Blocks begin small. Whenever there are twice as many as wanted, neighbours merge and the next are twice as long, so that
at the end there are between the number wanted and twice that. A block counts time, not usable rows: all equations of a
recording have the same bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .triangle import RowStack

SHORTEST = 8
"""Decimated samples of the first blocks."""


@dataclass(frozen=True, eq=False)
class TimeBlock:
    """What is left of a block of time: rows (m, c) that stand for ``count`` ones."""

    rows: np.ndarray
    count: int


class TimeBlocks:
    """Collects the rows of one equation in blocks of time.

    Args:
        columns: Number of columns, y included.
        wanted: How many blocks are wanted at least, if there are enough samples.
    """

    def __init__(self, columns: int, wanted: int) -> None:
        self._columns, self._wanted = columns, wanted
        self._length = SHORTEST
        self._blocks: list[TimeBlock] = []
        self._open = RowStack(columns)
        self._elapsed = 0

    @property
    def room(self) -> int:
        """Samples until the open block ends."""
        return self._length - self._elapsed

    def add(self, rows: np.ndarray) -> None:
        """Take rows (m, c) that belong to the open block; time does not pass by this."""
        self._open.push(rows)

    def elapse(self, samples: int) -> None:
        """Let time pass, at most to the end of the open block."""
        self._elapsed += samples
        if self._elapsed == self._length:
            self._close()

    def finish(self) -> list[tuple[np.ndarray, int]]:
        """Return the triangle (c, c) and the number of rows of every block; a short last one joins its neighbour."""
        if self._elapsed:
            elapsed, self._elapsed = self._elapsed, 0
            self._blocks.append(self._closed())
            if 2 * elapsed < self._length and len(self._blocks) > 1:
                last = self._blocks.pop()
                self._blocks[-1] = self._joined(self._blocks[-1], last)
        return [(_triangle(block, self._columns), block.count) for block in self._blocks]

    def _closed(self) -> TimeBlock:
        block = TimeBlock(self._open.compact(), self._open.count)
        self._open = RowStack(self._columns)
        return block

    def _close(self) -> None:
        self._blocks.append(self._closed())
        self._elapsed = 0
        if len(self._blocks) == 2 * self._wanted:
            pairs = zip(self._blocks[::2], self._blocks[1::2], strict=True)
            self._blocks = [self._joined(early, late) for early, late in pairs]
            self._length *= 2

    def _joined(self, early: TimeBlock, late: TimeBlock) -> TimeBlock:
        stack = RowStack(self._columns)
        stack.push(early.rows)
        stack.push(late.rows)
        return TimeBlock(stack.compact(), early.count + late.count)


def _triangle(block: TimeBlock, columns: int) -> np.ndarray:
    stack = RowStack(columns)
    stack.push(block.rows)
    return stack.triangle()
