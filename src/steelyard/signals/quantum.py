"""The step of an encoder or converter, found from the values it gave."""

from __future__ import annotations

import numpy as np

from .checks import as_rows

# Fraction of the differences that must be whole multiples of the step.
_AGREEMENT = 0.99
_LEAST_VALUES = 3


def find_quantum(values: np.ndarray) -> np.ndarray:
    """Return the quantisation step of each row (rows,); 0 where the values are not on a grid.

    The smallest difference between distinct values is a candidate; it counts if nearly all differences are whole
    multiples of it. Fewer than three distinct values show no grid.
    """
    return np.array([_quantum(row) for row in as_rows(values)])


def _quantum(row: np.ndarray) -> float:
    levels = np.unique(row)
    if len(levels) < _LEAST_VALUES:
        return 0.0
    # Equal values may differ by rounding of a unit conversion; a step that small would not matter anyway.
    rounding = max(16 * np.spacing(np.abs(levels).max()), 1e-10 * (levels[-1] - levels[0]))
    steps = np.diff(levels)
    steps = steps[steps > rounding]
    if not len(steps) or len(steps) > 0.9 * len(row):
        return 0.0  # every sample is a value of its own: no grid, or one too fine to matter
    candidate = float(np.median(steps[steps < 1.5 * steps.min()]))
    multiples = np.round(steps / candidate)
    off = np.abs(steps - multiples * candidate)
    near = off <= np.maximum(0.05 * candidate, rounding)
    if near.mean() < _AGREEMENT:
        return 0.0
    return float(steps[near].sum() / multiples[near].sum())
