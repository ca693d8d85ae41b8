"""Positions that jump faster than any drive, and encoders that wrap round."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..record import Finding
from ..samples import Samples
from ..tables.table import FEW
from .subject import Subject

LEAST_JUMP = np.array([0.005, 0.02])
"""Steps smaller than this are noise or quantisation, whatever the rate [m, rad]."""
NEAR_A_TURN = 0.1
"""A jump within this part of a turn of a whole turn is a wrap."""


class Jumps:
    """Counts steps too fast to be motion: jumps, and among them those by a turn of the encoder."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._least = LEAST_JUMP[subject.revolute.astype(int)]
        self._counts = {"jump": np.zeros(len(subject.joints), int), "wrap": np.zeros(len(subject.joints), int)}
        self._places: dict[str, list[list[float]]] = {kind: [[] for _ in subject.joints] for kind in self._counts}
        self._largest = np.zeros(len(subject.joints))

    def take(self, block: Samples, fresh: int) -> None:
        """Add the steps of a block."""
        number = self._subject.row("q")
        if number is None or block.count < 2:
            return
        steps, seconds = np.diff(block.channels[number], axis=1), np.diff(block.time)
        size = np.maximum(steps.max(axis=1), -steps.min(axis=1))
        suspect = (size > self._least) & (size > self._subject.fastest * seconds.min())
        for row in map(int, np.flatnonzero(suspect)):
            moves = np.abs(steps[row])
            self._count(
                row, moves, (moves > self._least[row]) & (moves > self._subject.fastest[row] * seconds), block.time
            )

    def _count(self, row: int, moves: np.ndarray, jumps: np.ndarray, time: np.ndarray) -> None:
        turn = self._subject.turn[row]
        # A turn smaller than what counts as a jump (a motor's, behind a large gear) is not told apart.
        wraps = jumps & (np.abs(moves - turn) < NEAR_A_TURN * turn) & (turn > 0)
        for kind, mask in (("wrap", wraps), ("jump", jumps & ~wraps)):
            found = np.flatnonzero(mask)
            self._counts[kind][row] += found.size
            places = self._places[kind][row]
            places += [float(stamp) for stamp in time[found[: FEW - len(places)] + 1]]
        if jumps.any():
            self._largest[row] = max(self._largest[row], float(moves[jumps].max()))

    def findings(self) -> Iterator[Finding]:
        """Yield jumps and wraps of each joint."""
        for row, joint in enumerate(self._subject.joints):
            for kind, cause, remedy in (
                (
                    "wrap",
                    "the encoder starts again after a turn",
                    "declare q = { columns = ..., unwrap = true } in the table [recording] of a file for --config",
                ),
                (
                    "jump",
                    "no drive moves so fast: spikes, lost packets, a reset encoder or a wrong column",
                    'cut these samples out of the log, or use what lies before or after with rows = "first:last" in '
                    "[recording]",
                ),
            ):
                count = int(self._counts[kind][row])
                if count:
                    text = f"{joint} jumps {count} times by up to {self._largest[row]:.4g}: {cause}"
                    places = tuple(self._places[kind][row])
                    values = {"largest": float(self._largest[row])}
                    severity = "bad" if kind == "wrap" else "warning"
                    yield Finding(kind, severity, text, "q", joint, count, places, "s", values, remedy)
