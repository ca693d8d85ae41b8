"""Rows to a triangle by orthogonal reduction: ``R^T R = A^T A`` without ever forming ``A^T A``.

Householder QR (LAPACK): the error of each column of R is small relative to that column of A, however the columns are
scaled, and a column of zeros stays one of zeros to the last bit.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

CHUNK = 1024
"""Rows reduced at once."""

# Columns that LAPACK works on together; for tall matrices its recursive routine is twice as fast as the usual one.
_PANEL = 16


def reduced(rows: np.ndarray) -> np.ndarray:
    """Return the upper triangle R (c, c) of rows (m, c); the rows may be overwritten."""
    columns = rows.shape[1]
    triangle = np.zeros((columns, columns))
    top = min(rows.shape)
    if top:
        factored = lapack.dgeqrt(min(_PANEL, top), np.asfortranarray(rows), overwrite_a=1)[0]  # pyright: ignore[reportAttributeAccessIssue]
        triangle[:top] = np.triu(factored[:top])
    return triangle


class RowStack:
    """Rows that come in pieces, held as a triangle and the few rows since. The result does not depend on the pieces.

    Args:
        columns: Number of columns c.

    Attributes:
        count: How many rows came in.
    """

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.count = 0
        self._buffer = np.empty((0, columns), order="F")
        self._filled = 0

    def push(self, rows: np.ndarray) -> None:
        """Take rows (m, c)."""
        self.count += len(rows)
        while len(rows):
            self._make_room(len(rows))
            fitting = min(len(rows), len(self._buffer) - self._filled)
            self._buffer[self._filled : self._filled + fitting] = rows[:fitting]
            self._filled += fitting
            rows = rows[fitting:]

    def _make_room(self, wanted: int) -> None:
        limit = CHUNK + self.columns
        if self._filled == limit:
            self._buffer[: self.columns] = reduced(self._buffer)
            self._filled = self.columns
        elif self._filled + wanted > len(self._buffer) and len(self._buffer) < limit:
            larger = np.empty((min(limit, max(2 * len(self._buffer), self._filled + wanted)), self.columns), order="F")
            larger[: self._filled] = self._buffer[: self._filled]
            self._buffer = larger

    def triangle(self) -> np.ndarray:
        """Return R (c, c) of all rows so far; the stack is empty afterwards but for its count."""
        triangle = reduced(self._buffer[: self._filled])
        self._buffer, self._filled = np.empty((0, self.columns), order="F"), 0
        return triangle

    def compact(self) -> np.ndarray:
        """Return the fewest rows at hand that stand for all: a triangle, or the rows themselves if they are few."""
        if self._filled > self.columns:
            return self.triangle()
        rows = np.ascontiguousarray(self._buffer[: self._filled])
        self._buffer, self._filled = np.empty((0, self.columns), order="F"), 0
        return rows
