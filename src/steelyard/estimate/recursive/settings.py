"""What may be chosen for recursive least squares."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...errors import EstimateError, nearest_match

STARTS = ("square", "prior")


@dataclass(frozen=True)
class RecursiveSettings:
    """Choices of recursive least squares.

    Attributes:
        start: ``square``: the solution of the first rows that tell all parameters apart (P1.8), no prior being used;
            ``prior``: from the prior; None: from the prior if there is one, else square.
        forgetting: By how much the weight of older rows shrinks at every instant, above 0 and at most 1; 1 forgets
            nothing.
        memory: Time in which the weight of a row falls to 1/e [s], instead of ``forgetting``; None: none.
        wide: Start ``prior``: standard deviation of parameters that have no prior, about zero, SI units.
        most_instants: Instants of the history that are kept, at most.
    """

    start: str | None = None
    forgetting: float = 1.0
    memory: float | None = None
    wide: float = 1e3
    most_instants: int = 2000

    def __post_init__(self) -> None:
        if self.start is not None and self.start not in STARTS:
            allowed = ", ".join(STARTS)
            raise EstimateError(
                f"rls start: got '{self.start}', allowed are {allowed}{nearest_match(self.start, STARTS)}"
            )
        if not 0 < self.forgetting <= 1:
            raise EstimateError(
                f"rls forgetting: got {self.forgetting}, allowed is above 0 and at most 1, such as 0.999"
            )
        if self.memory is not None and not (math.isfinite(self.memory) and self.memory > 0):
            raise EstimateError(f"rls memory: got {self.memory}, allowed is a time above 0 [s]")
        if self.memory is not None and self.forgetting != 1.0:
            raise EstimateError(
                f"rls forgetting {self.forgetting:g} and memory {self.memory:g} s say the same thing twice; give one"
            )
        if not (math.isfinite(self.wide) and self.wide > 0):
            raise EstimateError(f"rls wide: got {self.wide}, allowed is a standard deviation above 0")
        if int(self.most_instants) != self.most_instants or self.most_instants < 2:
            raise EstimateError(f"rls most_instants: got {self.most_instants}, allowed are whole numbers from 2 on")

    def factor(self, interval: float) -> float:
        """Return the forgetting factor of instants that are an interval [s] apart."""
        return self.forgetting if self.memory is None else math.exp(-interval / self.memory)
