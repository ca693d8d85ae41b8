"""The history of an estimate, thinned while it grows: memory does not depend on the length of the log."""

from __future__ import annotations

import numpy as np

from ..evidence import History
from .information import Solved


class Track:
    """Estimates at every so many instants; when there are too many, every second one goes and the step doubles.

    Args:
        most: Largest number of instants.

    Attributes:
        step: Instants from one that is kept to the next.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.step = 1
        self._kept: list[tuple[int, float, np.ndarray, np.ndarray]] = []

    def add(self, instant: int, time: float, solved: Solved) -> None:
        """Keep what is known at an instant, numbered from 1."""
        if self._kept and self._kept[-1][0] == instant:
            return
        if len(self._kept) == self._most:
            self.step *= 2
            self._kept = [each for each in self._kept if each[0] % self.step == 0]
        self._kept.append((instant, time, solved.values, solved.sigma))

    def history(self, columns: tuple[str, ...]) -> History:
        """Return the history of these columns."""
        time = np.array([time for _, time, _, _ in self._kept])
        values = np.array([values for _, _, values, _ in self._kept]).T
        sigma = np.array([sigma for _, _, _, sigma in self._kept]).T
        for array in (time, values, sigma):
            array.setflags(write=False)
        return History(columns, time, values, sigma)
