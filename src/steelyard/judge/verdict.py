"""The verdict: three questions, each with its rows and thresholds, and a remedy for every reason.

Is it plausible, does it predict, are the parameters known: a model may predict well although its motion did not show
every parameter, and a fit without error may be one of an arm that cannot exist. The verdict's grade is the worse of the
first two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from types import MappingProxyType

from ..errors import EstimateError
from ..text import short_repr
from .criteria import (
    QUESTIONS,
    Criterion,
    Question,
    condition_criterion,
    correlation_criterion,
    effort_criterion,
    error_criterion,
    impossible_criterion,
    joint_criterion,
    known_criterion,
    pattern_criterion,
    ratio_criterion,
    scale_criterion,
    spread_criterion,
)
from .plausibility import Plausibility
from .thresholds import Grade, Thresholds, worst_grade
from .whiteness import ResidualCorrelation


@dataclass(frozen=True)
class Reason:
    """A sentence that the reader of a verdict should know.

    Attributes:
        text: What is the case, with figures.
        remedy: What to do about it.
        criterion: Name of the row it belongs to; empty for a caution that stands by itself.
        grade: If given, its question is answered no better than this; None: the sentence changes nothing.
        question: The question it belongs to.
    """

    text: str
    remedy: str
    criterion: str = ""
    grade: Grade | None = None
    question: Question = "plausible"


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
        noise_limited: Whether noise of the torques alone explains the unseen error.
        correlation_in_sigmas: Whether the sigmas know that residuals correlate.
        plausibility: What speaks for or against an arm that can exist.
        patterns: Largest share of the residual's variance that a pattern explains [%], by joint.
    """

    fit_percent: float
    unseen_percent: float
    condition: float
    relative_sigmas: Mapping[str, float]
    correlation: Sequence[ResidualCorrelation]
    spread: float | None
    unseen_joints: Mapping[str, float] = field(default_factory=dict)
    spread_names: tuple[str, str] = ("", "")
    noise_limited: bool = False
    correlation_in_sigmas: bool = True
    plausibility: Plausibility = field(default_factory=Plausibility)
    patterns: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """May you believe it.

    Attributes:
        grade: ``good``, ``fair`` or ``poor``: the worse of the grades of ``plausible`` and ``predicts``.
        criteria: Every row, with its thresholds.
        reasons: Cautions that carry a grade, a sentence with a remedy for every row that is not good, other cautions.
        questions: Grade of each question: ``plausible``, ``predicts``, ``known``.
    """

    __repr__ = short_repr

    grade: Grade
    criteria: tuple[Criterion, ...]
    reasons: tuple[Reason, ...]
    questions: Mapping[Question, Grade]


def verdict_of(criteria: Sequence[Criterion], cautions: Sequence[Reason] = ()) -> Verdict:
    """Return the verdict that rows and cautions amount to.

    Args:
        criteria: The rows.
        cautions: Further sentences; one that carries a grade counts for its question.
    """
    questions: dict[Question, Grade] = {}
    for question in QUESTIONS:
        grades: list[Grade | None] = [row.grade for row in criteria if row.question == question]
        grades.extend(reason.grade for reason in cautions if reason.question == question)
        given: list[Grade] = [grade for grade in grades if grade is not None]
        questions[question] = worst_grade(*given)
    own = (
        Reason(row.sentence, row.remedy, row.name, question=row.question)
        for row in criteria
        if row.grade in ("fair", "poor")
    )
    grade = worst_grade(questions["plausible"], questions["predicts"])
    first = sorted((one for one in cautions if one.grade is not None), key=lambda one: one.grade != "poor")
    last = [reason for reason in cautions if reason.grade is None]
    return Verdict(grade, tuple(criteria), (*first, *own, *last), MappingProxyType(questions))


def judge(figures: Figures, thresholds: Thresholds | None = None, cautions: Sequence[Reason] = ()) -> Verdict:
    """Return the verdict on an identification.

    Args:
        figures: The numbers.
        thresholds: Where good ends and poor begins; the product's own if not given.
        cautions: Further sentences: patterns in residuals, unseen motion that is faster, parameters with bias. They do
            not change a grade unless they carry one.

    Raises:
        EstimateError: If a number is missing.
    """
    limits = thresholds or Thresholds()
    _check_numbers(figures)
    return verdict_of(
        (
            impossible_criterion(figures.plausibility, limits),
            effort_criterion(figures.plausibility, limits),
            scale_criterion(figures.plausibility, limits),
            joint_criterion(figures.plausibility, limits),
            error_criterion(figures.unseen_percent, figures.unseen_joints, figures.noise_limited, limits),
            ratio_criterion(figures.fit_percent, figures.unseen_percent, limits),
            condition_criterion(figures.condition, limits),
            known_criterion(figures.relative_sigmas, limits),
            correlation_criterion(figures.correlation, limits, in_sigmas=figures.correlation_in_sigmas),
            spread_criterion(figures.spread, figures.spread_names, limits),
            pattern_criterion(figures.patterns, limits),
        ),
        cautions,
    )


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
