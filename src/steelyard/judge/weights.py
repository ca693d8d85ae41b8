"""By what the rows of a cell were multiplied in an estimate."""

from __future__ import annotations

from ..estimate import Cell, Estimate


def row_weight(estimate: Estimate, cell: Cell) -> float:
    """Return the weight of a cell's rows in the system; rows the system does not use weigh nothing."""
    if estimate.method == "ols":
        return 1.0
    deviation = estimate.deviations.get(cell)
    return 0.0 if deviation is None else 1 / deviation
