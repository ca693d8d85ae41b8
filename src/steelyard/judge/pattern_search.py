"""Which signals explain residuals: the strongest first, each beyond those before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from .bins import CROSSED, Cells, cells_of, speed_cells
from .cell_test import CellTest, Noise, wald_test
from .serial import SerialCorrelation

SIGNALS = ("velocity", "acceleration", "position", "load", "temperature", "time")
LEVEL = 0.05
"""Chance of any false pattern for residuals that depend on nothing."""
LEAST_SHARE = 0.01
"""Patterns that explain less of the residual's variance than this are not worth a sentence."""
# Time moves with everything that changes slowly: it is named only where it explains clearly more than they do.
_HANDICAP = {"time": 0.8}


class PatternSearch:
    """Forward selection: what has been found becomes part of the base of the next tests."""

    def __init__(
        self, runs: Sequence[np.ndarray], signals: Mapping[str, np.ndarray], serial: SerialCorrelation
    ) -> None:
        self.residual = np.concatenate(runs)
        self.signals = signals
        self.left = self.residual
        self._base = np.zeros((len(self.residual), 0))
        self._open: dict[str, Cells | None] = {name: cells_of(name, signals) for name in SIGNALS if name in signals}
        self.tests = len(self._open) + 2  # those of the mean itself and of the spread
        self._noise = Noise([len(run) for run in runs], np.ones(len(self.residual)), serial)
        cells = self._open.get("velocity")
        if cells is not None:
            self._noise = replace(self._noise, size=self._size_by_speed(cells))

    def strongest(self) -> tuple[str, Cells | None, CellTest, np.ndarray] | None:
        """Return the next pattern with its test and the residual less the base, or None if nothing is left."""
        if self._base.shape[1] == 0:
            found = self._constant()
            if found is not None:
                return found
        tested = {name: self._tested(name, cells) for name, cells in self._open.items() if cells is not None}
        worth = {name: (test, before) for name, (test, before) in tested.items() if test and self._holds(test)}
        if not worth:
            return None
        best = max(worth, key=lambda name: worth[name][0].share * _HANDICAP.get(name, 1.0))
        test, before = worth[best]
        cells = self._open.pop(best)
        self._base, self.left = test.basis, test.left
        return best, cells, test, before

    def spread(self, cells: Cells) -> CellTest | None:
        """Test whether the size of what is left depends on the cells (Levene's test, correlated samples)."""
        return self._levene(self.left, cells)

    def _levene(self, values: np.ndarray, cells: Cells) -> CellTest | None:
        size = np.abs(values)
        base = np.full((len(size), 1), len(size) ** -0.5)
        # The decimator's correlation is that of the residuals, not of their sizes.
        noise = Noise(self._noise.lengths, np.ones(len(size)), SerialCorrelation())
        return wald_test(size - size.mean(), base, cells.columns(), noise)

    def _size_by_speed(self, cells: Cells) -> np.ndarray:
        """Return the noise's size at each sample (n,): that of its speed class, if classes differ at all.

        A spread that is wider near reversals would otherwise pass for a mean that differs there.
        """
        centred = self.residual - cells.average(self.residual)[cells.label]
        speeds = speed_cells(self.signals["velocity"])
        test = None if speeds is None else self._levene(centred, speeds)
        if speeds is None or test is None or test.p * self.tests >= LEVEL:
            return self._noise.size
        size = np.sqrt(speeds.average(centred**2))
        return np.maximum(size, 1e-3 * size.max())[speeds.label]

    def _constant(self) -> tuple[str, None, CellTest, np.ndarray] | None:
        ones = np.ones((len(self.residual), 1))
        test = wald_test(self.residual, self._base, ones, self._noise)
        # Found or not, all other tests are about differences from the mean.
        self._base = ones / np.sqrt(len(ones))
        self.left = self.residual - self.residual.mean()
        return ("constant", None, test, self.residual) if test and self._holds(test) else None

    def _tested(self, name: str, cells: Cells) -> tuple[CellTest | None, np.ndarray]:
        base = self._base
        if name in CROSSED and "velocity" in self.signals:
            direction = cells.direction[cells.label]
            extra = direction - base @ (base.T @ direction)
            size = float(np.linalg.norm(extra))
            base = np.column_stack([base, extra / size]) if size > 1e-6 * np.sqrt(len(extra)) else base
        test = wald_test(self.residual, base, cells.columns(), self._noise)
        return test, self.residual - base @ (base.T @ self.residual)

    def _holds(self, test: CellTest) -> bool:
        return test.p * self.tests < LEVEL and test.share >= LEAST_SHARE
