"""What a reader must know of an estimate by the method that found it."""

from __future__ import annotations

import numpy as np

from ..judge import Reason
from ..observe import Equations
from .fitting import Fit

_FAR, _MANY_FAR = 2.0, 0.2
"""More than this part of the parameters farther than so many sigmas from least squares is worth a sentence."""

ENDOGENOUS = 0.01
"""Least squares is called biased where the test of the instruments has a probability below this."""


def method_reasons(equations: Equations, fit: Fit) -> list[Reason]:
    """Return what the method's own test says, and whether least squares agrees."""
    return [*endogeneity_reasons(equations, fit), *distance_reasons(equations, fit)]


def endogeneity_reasons(equations: Equations, fit: Fit) -> list[Reason]:
    """Return a sentence where the test of the instruments says that least squares is biased."""
    test = fit.detail.endogeneity if fit.detail else None
    if test is None or test.p >= ENDOGENOUS:
        return []
    name = next(base.name for base in equations.base.base if base.kept == test.worst)
    return [
        Reason(
            f"rows and errors correlate (Durbin-Wu-Hausman: F = {test.statistic:.3g}, p = {test.p:.1g}, most for "
            f"{name}): least squares on these rows is biased; a note says by how many sigmas",
            "keep this method, or filter and decimate more and test again",
            "method",
        )
    ]


def distance_reasons(equations: Equations, fit: Fit) -> list[Reason]:
    """Return a sentence where a method and weighted least squares of the same recordings exclude each other."""
    if fit.plain is None:
        return []
    there, here = fit.plain, fit.estimate
    place = [here.columns.index(name) for name in there.columns]
    z = np.abs(here.values[place] - there.values) / np.hypot(here.sigma[place], there.sigma)
    far, worst = int((z > _FAR).sum()), int(np.argmax(z))
    if far <= _MANY_FAR * len(z):
        return []
    name = next(base.name for base in equations.base.base if base.kept == there.columns[worst])
    return [
        Reason(
            f"{far} of {len(z)} parameters lie more than {_FAR:g} sigmas from weighted least squares of the same "
            f"recordings, {name} by {z[worst]:.1f}: one of the two is biased, or tells sigmas that are too small",
            "compare both on unseen motion, and use gls unless you know why they differ",
            "method",
        )
    ]
