"""What a reader must know of an estimate by the method that found it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..judge import Evaluation, Reason
from ..observe import Equations
from .fitting import Fit

_FAR, _MANY_FAR = 2.0, 0.2
"""More than this part of the parameters farther than so many sigmas from least squares is worth a sentence."""

ENDOGENOUS = 0.01
"""Least squares is called biased where the test of the instruments has a probability below this."""


WORSE = 1.5
"""A method whose error on unseen motion is this many times that of least squares predicts worse."""


@dataclass(frozen=True)
class UnseenErrors:
    """Relative errors on unseen motion with all parameters [%].

    Attributes:
        method: Of the method that was asked for.
        plain: Of weighted least squares of the same recordings.
    """

    method: float
    plain: float

    @classmethod
    def of(cls, method: Evaluation, plain: Evaluation) -> UnseenErrors:
        """Return the errors of two evaluations of the same recordings."""
        return cls(method.relative_percent, plain.relative_percent)

    @property
    def is_worse(self) -> bool:
        """Whether the method predicts clearly worse than least squares."""
        return self.method > WORSE * self.plain

    @property
    def text(self) -> str:
        """Both in words."""
        return f"{self.method:.3g} % on unseen motion, against {self.plain:.3g} % of weighted least squares"


def method_reasons(equations: Equations, fit: Fit, errors: UnseenErrors | None) -> list[Reason]:
    """Return what the method's own test says, and whether least squares agrees and which of them predicts better.

    Args:
        equations: Model and base parameters.
        fit: The fit.
        errors: Errors of the method and of least squares; None for least squares itself.
    """
    if errors is None or fit.detail is None:
        return []
    found = [*_endogeneity_reasons(equations, fit, errors), *_distance_reasons(equations, fit, errors)]
    if errors.is_worse:
        worse = Reason(
            f"method '{fit.estimate.method}' predicts worse than least squares: its error is {errors.text}",
            "use --method gls (the default); keep this method only for its tests",
            "method",
        )
        return [worse, *found]
    return found


def _endogeneity_reasons(equations: Equations, fit: Fit, errors: UnseenErrors) -> list[Reason]:
    """Return a sentence where the test of the instruments says that least squares is biased."""
    test = fit.detail.endogeneity if fit.detail else None
    if test is None or test.p >= ENDOGENOUS:
        return []
    name = next(base.name for base in equations.base.base if base.kept == test.worst)
    return [
        Reason(
            f"rows and errors correlate (Durbin-Wu-Hausman: F = {test.statistic:.3g}, p = {test.p:.1g}, most for "
            f"{name}): least squares on these rows is biased; a note says by how many sigmas",
            "filter and decimate more and test again: this method predicts worse"
            if errors.is_worse
            else "keep this method, or filter and decimate more and test again",
            "method",
        )
    ]


def _distance_reasons(equations: Equations, fit: Fit, errors: UnseenErrors) -> list[Reason]:
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
            f"recordings, {name} by {z[worst]:.1f}: one of the two is biased, or tells sigmas that are too small; its "
            f"error is {errors.text}",
            "use --method gls unless you know why they differ",
            "method",
        )
    ]
