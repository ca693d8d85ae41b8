"""The verdict: every row with its thresholds, the worst row decides, and every reason comes with a remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan

from ..errors import EstimateError
from .criteria import (
    Criterion,
    condition_criterion,
    correlation_criterion,
    error_criterion,
    known_criterion,
    ratio_criterion,
    spread_criterion,
)
from .residual_correlation import ResidualCorrelation
from .thresholds import Grade, Thresholds, worst_grade


@dataclass(frozen=True)
class Reason:
    """A sentence that the reader of a verdict should know.

    Attributes:
        text: What is the case, with figures.
        remedy: What to do about it.
        criterion: Name of the row it belongs to; empty for a caution that stands by itself.
        grade: If given, the verdict is no better than this; None: the sentence changes nothing.
    """

    text: str
    remedy: str
    criterion: str = ""
    grade: Grade | None = None


@dataclass(frozen=True)
class Figures:
    """What a verdict is made of, as plain numbers.

    Attributes:
        fit_percent: Relative error over all joints on the recordings of the fit [%].
        unseen_percent: The same on unseen motion [%].
        condition: Condition number of the weighted equations, columns normalised.
        relative_sigmas: Relative sigma of every essential parameter [%], by name.
        correlation: Correlation of the residuals, for every equation.
        spread: Spread of recordings fitted alone over their sigmas; None if there is one recording only.
        unseen_joints: Relative error of every joint on unseen motion [%], by what sentences call it; NaN if unknown.
        spread_names: Column and recording that disagree most, to name them.
        noise_ratio: Whitened residuals of unseen motion over the noise's deviation; None if not known.
        correlation_in_sigmas: Whether the sigmas know that residuals correlate.
    """

    fit_percent: float
    unseen_percent: float
    condition: float
    relative_sigmas: Mapping[str, float]
    correlation: Sequence[ResidualCorrelation]
    spread: float | None
    unseen_joints: Mapping[str, float] = field(default_factory=dict)
    spread_names: tuple[str, str] = ("", "")
    noise_ratio: float | None = None
    correlation_in_sigmas: bool = True


@dataclass(frozen=True)
class Verdict:
    """May you believe it.

    Attributes:
        grade: ``good``, ``fair`` or ``poor``: that of the worst row.
        criteria: Every row, with its thresholds.
        reasons: A sentence with a remedy for every row that is not good, then the cautions.
    """

    grade: Grade
    criteria: tuple[Criterion, ...]
    reasons: tuple[Reason, ...]


def judge(figures: Figures, thresholds: Thresholds | None = None, cautions: Sequence[Reason] = ()) -> Verdict:
    """Return the verdict on an identification.

    Args:
        figures: The numbers.
        thresholds: Where good ends and poor begins; the product's own if not given.
        cautions: Further sentences: patterns in residuals, unseen motion that is faster, parameters with bias. They do
            not change the grade unless they carry one.

    Raises:
        EstimateError: If a number is missing.
    """
    limits = thresholds or Thresholds()
    _check_numbers(figures)
    criteria = (
        ratio_criterion(figures.fit_percent, figures.unseen_percent, limits),
        error_criterion(figures.unseen_percent, figures.unseen_joints, figures.noise_ratio, limits),
        condition_criterion(figures.condition, limits),
        known_criterion(figures.relative_sigmas, limits),
        correlation_criterion(figures.correlation, limits, in_sigmas=figures.correlation_in_sigmas),
        spread_criterion(figures.spread, figures.spread_names, limits),
    )
    own = (Reason(row.sentence, row.remedy, row.name) for row in criteria if row.grade in ("fair", "poor"))
    grades: list[Grade] = [item.grade for item in (*criteria, *cautions) if item.grade is not None]
    return Verdict(worst_grade(*grades), criteria, (*own, *cautions))


def _check_numbers(figures: Figures) -> None:
    numbers = {
        "relative error of the fit": figures.fit_percent,
        "unseen relative error": figures.unseen_percent,
        "condition number": figures.condition,
        "spread of recordings": 0.0 if figures.spread is None else figures.spread,
    }
    for name, value in numbers.items():
        if isnan(value) or value < 0:
            raise EstimateError(f"verdict: got {value} as {name}, needed is a number of 0 and above")
