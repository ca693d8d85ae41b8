"""The true base parameters of a simulated arm."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..observe import Equations


def true_columns(equations: Equations, truth: Mapping[str, float]) -> dict[str, float]:
    """Return the true value of every base parameter by its column: ``chi_base = chi_1 + K chi_2``.

    Args:
        equations: The equations whose columns they are.
        truth: True standard parameters by name; what a plant does not have is zero in it.
    """
    standard = np.array([truth.get(name, 0.0) for name in equations.model.names])
    return dict(zip(equations.names, (equations.base.regrouping @ standard).tolist(), strict=True))
