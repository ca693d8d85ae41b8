"""From the parameters that were simulated to those found, or as far towards them as there are arms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...errors import SimulationError
from .simulated import SimulatedMotion

# Of the margin that the start's inertia matrix has against being singular, this part is kept.
_MARGIN = 0.1
# A step shorter than this part leads nowhere.
_SHORTEST = 1 / 256


class Steps:
    """The parameters of the simulated arm, round after round.

    Args:
        motion: Simulates the recordings.
        start: Base parameters of the first simulation, by column.

    Attributes:
        values: Base parameters of the last simulation, by column.
        simulated: Rows of that simulation.
        shortened: Whether the last step went a part of the way.
        reason: Why a step had to be shortened, None if none was.

    Raises:
        SimulationError: If the start's parameters are those of no arm, or the loop diverges.
    """

    def __init__(self, motion: SimulatedMotion, start: Mapping[str, float]) -> None:
        self._motion = motion
        self.values: Mapping[str, float] = start
        self.simulated = motion.sources(start)
        self._least = _MARGIN * motion.margin(start)
        self.shortened = False
        self.reason: str | None = None

    def vector(self, columns: Sequence[str]) -> np.ndarray:
        """Return the parameters of the last simulation in the order of some columns (c,)."""
        return np.array([self.values.get(name, 0.0) for name in columns])

    def towards(self, columns: Sequence[str], values: np.ndarray) -> bool:
        """Simulate with values (c,) of columns, or halve the step until an arm has the parameters; say if one had."""
        target, part = dict(zip(columns, values.tolist(), strict=True)), 1.0
        while part >= _SHORTEST:
            trial = target if part == 1.0 else self._between(target, part)
            try:
                self._check(trial)
                self.simulated = self._motion.sources(trial)
            except SimulationError as error:
                self.reason = str(error)
                part /= 2
                continue
            self.values, self.shortened = trial, part < 1.0
            return True
        self.shortened = True
        return False

    def note(self, ahead: float) -> tuple[str, ...]:
        """Return what to say of an arm that was simulated with other parameters than those found, by a part."""
        if not self.shortened:
            return ()
        return (f"the arm was simulated with parameters {ahead:.2g} short of those found: {self.reason}",)

    def _check(self, trial: Mapping[str, float]) -> None:
        margin = self._motion.margin(trial)
        if not margin >= self._least:
            raise SimulationError(
                f"the inertia matrix of these is not positive definite, or hardly (least over largest eigenvalue "
                f"{margin:.2g}, needed is {self._least:.2g})"
            )

    def _between(self, target: Mapping[str, float], part: float) -> dict[str, float]:
        names = {**self.values, **target}
        return {name: (1 - part) * self.values.get(name, 0.0) + part * target.get(name, 0.0) for name in names}
