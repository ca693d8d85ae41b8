"""Checks of arrays, rates and choices, and what streams share: blocks of the same rows, columns that wait."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..errors import SignalError, nearest_match


def as_rows(values: np.ndarray, what: str = "signal", least: int = 1) -> np.ndarray:
    """Return a finite float64 array (rows, N) of at least ``least`` samples.

    Raises:
        SignalError: If the shape is not (rows, N), the signal is too short or a value is not finite.
    """
    rows = shaped_rows(values, what)
    if rows.shape[1] < least:
        raise SignalError(f"{what}: got {rows.shape[1]} samples, needed are at least {least}")
    check_finite(rows, what)
    return rows


def shaped_rows(values: np.ndarray, what: str = "signal") -> np.ndarray:
    """Return a float64 array (rows, N), contiguous along samples, without looking at its values."""
    rows = np.asarray(values, dtype=np.float64)
    if rows.ndim != 2:
        hint = "; give one signal as x[None, :]" if rows.ndim == 1 else ""
        raise SignalError(f"{what}: got shape {rows.shape}, allowed is (rows, samples){hint}")
    return rows if rows.strides[1] == 8 or rows.size == 0 else np.ascontiguousarray(rows)


def check_finite(rows: np.ndarray, what: str, first: int = 0, first_row: int = 0) -> None:
    """Raise a SignalError that says where the first NaN or infinite value lies; samples count from ``first``."""
    bad = ~np.isfinite(rows)
    if bad.any():
        row, column = (int(k) for k in np.argwhere(bad)[0])
        raise SignalError(
            f"{what}: got {rows[row, column]} at row {first_row + row}, sample {first + column} ("
            f"{int(bad.sum())} such values in all), allowed are finite numbers; cut these samples out"
        )


def check_positive(value: float, what: str, unit: str = "Hz") -> float:
    """Return a finite positive number or raise a SignalError."""
    number = float(value)
    if not (math.isfinite(number) and number > 0):
        raise SignalError(f"{what}: got {value} {unit}, allowed are finite numbers above 0")
    return number


def check_cutoff(cutoff: float, rate: float, what: str = "cut-off") -> float:
    """Return a cut-off [Hz] between 0 and half the rate [Hz], or raise a SignalError that says both."""
    rate = check_positive(rate, "sampling rate")
    cutoff = check_positive(cutoff, what)
    if cutoff >= rate / 2:
        raise SignalError(
            f"{what}: got {cutoff:g} Hz, allowed is below the Nyquist frequency {rate / 2:g} Hz (half of {rate:g} Hz)"
        )
    return cutoff


def check_order(order: int, highest: int = 16) -> int:
    """Return a filter order from 1 to ``highest`` or raise a SignalError."""
    if int(order) != order or not 1 <= order <= highest:
        raise SignalError(f"filter order: got {order}, allowed are whole numbers from 1 to {highest}")
    return int(order)


def check_choice(got: str, allowed: Sequence[str], what: str) -> None:
    """Raise a SignalError unless a choice is among those allowed."""
    if got not in allowed:
        raise SignalError(f"{what}: got '{got}', allowed are {', '.join(allowed)}{nearest_match(got, allowed)}")


def joined(before: np.ndarray | None, samples: np.ndarray) -> np.ndarray:
    """Return samples (rows, m) after those before, if there are any."""
    return samples if before is None else np.concatenate([before, samples], axis=1)


def frozen(array: np.ndarray) -> np.ndarray:
    """Return the array, no longer writeable."""
    array.setflags(write=False)
    return array


class RowMemory:
    """Checks that every block of a stream has the rows of the first."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._rows: int | None = None

    def check(self, block: np.ndarray) -> np.ndarray:
        """Return the block as (rows, m) or raise a SignalError."""
        rows = shaped_rows(block, self._what)
        if self._rows is None:
            self._rows = rows.shape[0]
        if rows.shape[0] != self._rows:
            raise SignalError(f"{self._what}: got a block of {rows.shape[0]} rows, the blocks before had {self._rows}")
        return rows

    def none(self) -> np.ndarray:
        """Return an empty block of the right number of rows."""
        return np.empty((self._rows or 0, 0))


class ColumnQueue:
    """Columns of signals that come in blocks and are used later: what a stream holds between two blocks.

    Attributes:
        count: Number of columns held.
    """

    def __init__(self) -> None:
        self._parts: list[np.ndarray] = []
        self.count = 0

    def put(self, columns: np.ndarray) -> None:
        """Add columns (rows, m) at the end."""
        if columns.shape[1] or not self._parts:
            self._parts.append(columns)
            self.count += columns.shape[1]

    def all(self) -> np.ndarray:
        """Return all columns (rows, count)."""
        if len(self._parts) > 1:
            self._parts = [np.concatenate(self._parts, axis=1)]
        return self._parts[0]

    def drop(self, count: int) -> None:
        """Forget the first ``count`` columns."""
        # A copy, so that a small rest does not keep a large block alive.
        self._parts = [self.all()[:, count:].copy()]
        self.count -= count

    def take(self, count: int) -> np.ndarray:
        """Return the first ``count`` columns and forget them."""
        taken = self.all()[:, :count]
        self.drop(count)
        return taken
