"""A fitted noise model: what is known of the noise of every equation in every recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from ..observe import RowSource
from ..text import short_repr
from .autoregression import autocorrelation, innovation_share
from .lag_products import Equation
from .restricted_likelihood import NoiseFit
from .system import Cell
from .whitening import RowWhitener


@dataclass(frozen=True, eq=False)
class NoiseModel:
    """A fitted noise model.

    Attributes:
        correlation: Autocorrelation of white noise after the decimator (K + 1,).
        coefficients: Autoregressive coefficients of every equation (p,), p from 0 on.
        innovations: Standard deviation of e for every cell.
        deviations: Standard deviation of v for every cell.
    """

    __repr__ = short_repr

    correlation: np.ndarray
    coefficients: Mapping[Equation, np.ndarray]
    innovations: Mapping[Cell, float]
    deviations: Mapping[Cell, float]

    def whitening(self, source: RowSource, e: int) -> RowWhitener:
        """Return what turns rows of an equation into rows with white noise of deviation ``deviations[cell]``."""
        return RowWhitener(self.correlation, self.coefficients[source.equations.kinds_joints[e]])

    def lag_one(self, equation: Equation) -> float:
        """Return the lag-one correlation of the noise beyond the decimator's."""
        return float(autocorrelation(self.coefficients[equation], 1)[1])


def noise_model(fit: NoiseFit, correlation: np.ndarray) -> NoiseModel:
    """Return the noise model of a fit.

    Args:
        fit: The settled fit.
        correlation: Autocorrelation of white noise after the decimator (K + 1,).
    """
    coefficients = {equation: -fit.filters[equation][1 : order + 1] for equation, order in fit.orders.items()}
    innovations = {cell: float(np.sqrt(variance)) for cell, variance in fit.variances.items()}
    deviations = {
        cell: deviation / np.sqrt(innovation_share(coefficients[cell[1:]])) for cell, deviation in innovations.items()
    }
    return NoiseModel(
        correlation, MappingProxyType(coefficients), MappingProxyType(innovations), MappingProxyType(deviations)
    )
