"""An estimate: named values with a covariance, and how it came about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..distributions import t_ppf
from ..text import short_repr
from .system import Cell, System


@dataclass(frozen=True, eq=False)
class Estimate:
    """Parameters with their uncertainty.

    Attributes:
        method: ``ols``, ``wls``, ``iterated``, ``ridge`` or ``gls``.
        system: The weighted system that was solved (for ``gls`` whitened too).
        values: Value of every column of the system (c,), SI units.
        covariance: Covariance of the values (c, c).
        covariance_kind: ``model`` (noise model, small-sample corrected), ``classical``, ``sandwich``, ``block`` or
            ``hac``.
        freedom: Degrees of freedom of each value's t interval (c,).
        deviations: Standard deviation of every cell's noise, as used in the weights.
        unweighted: Whether rows count alike in the system (``ols``) instead of by one over their deviation.
        after_selection: Whether columns were left out because these data said so: intervals are then too narrow.
    """

    __repr__ = short_repr

    method: str
    system: System
    values: np.ndarray
    covariance: np.ndarray
    covariance_kind: str
    freedom: np.ndarray
    deviations: Mapping[Cell, float]
    unweighted: bool = False
    after_selection: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the values: standard names of the kept columns."""
        return self.system.columns

    @property
    def weights(self) -> dict[Cell, float]:
        """By what the rows of every cell were multiplied; rows of other cells are not in the system."""
        return {cell: 1.0 if self.unweighted else 1 / deviation for cell, deviation in self.deviations.items()}

    @property
    def unit(self) -> float:
        """Standard deviation of a row of the system as its deviations say: 1 unless it is unweighted."""
        return next(iter(self.deviations.values())) if self.unweighted else 1.0

    @property
    def widening(self) -> np.ndarray:
        """By how much each sigma exceeds that of white noise of these deviations (c,), at least 1."""
        return np.maximum(self.sigma / (self.unit * np.sqrt(np.diag(self.system.inverse))), 1.0)

    @property
    def sigma(self) -> np.ndarray:
        """Standard deviations (c,)."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def relative_sigma(self) -> np.ndarray:
        """Standard deviations in per cent of the absolute values (c,); infinite for a value of zero (P1.3)."""
        size = np.abs(self.values)
        return 100 * np.divide(self.sigma, size, out=np.full(size.shape, np.inf), where=size > 0)

    def half_width(self, level: float = 0.95) -> np.ndarray:
        """Return half the width of every t interval of this level (c,)."""
        return self.sigma * t_ppf(0.5 + level / 2, self.freedom)

    def full_values(self, columns: tuple[str, ...]) -> np.ndarray:
        """Return values for other columns, by name; 0 for those that are not among the estimate's."""
        known = dict(zip(self.columns, self.values, strict=True))
        return np.array([known.get(name, 0.0) for name in columns])
