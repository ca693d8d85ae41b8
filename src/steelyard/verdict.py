"""Verdicts: three questions, rows with their limits and grades, reasons with their remedies.

Is the result plausible, does it predict, are its parameters known: a model may predict well although the motion did not
excite every parameter, and a fit without error may describe an arm that cannot exist. The grade of a verdict is the
worse of the first two questions, and that of a question the worst of its rows and of the cautions that carry a grade.
What is measured, its limits and its sentences belong to the package that judges
(identification: :mod:`steelyard.judge.criteria`, calibration: :mod:`steelyard.calibration.fit.verdict`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import isfinite
from types import MappingProxyType
from typing import Any, Literal, TypeVar, get_args

from .errors import SteelyardError
from .text import for_html, html_table, short_repr

Grade = Literal["good", "fair", "poor"]
GRADES: tuple[Grade, ...] = get_args(Grade)
"""From best to worst."""

Question = Literal["plausible", "predicts", "known"]
QUESTIONS: Mapping[Question, str] = MappingProxyType(
    {"plausible": "is it plausible?", "predicts": "does it predict?", "known": "are the parameters known?"}
)
"""The questions of a verdict, each of which has a grade of its own."""

NOT_JUDGED = "not judged"
_NAMED = 3
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
_MOST_DIGITS, _ROUNDED = 9, 0.1
"""Digits of a number at most, and by what part rounding changes it at most."""

_Thresholds = TypeVar("_Thresholds")


def worst_grade(*grades: Grade) -> Grade:
    """Return the worst of some grades; good if there is none."""
    return GRADES[max((GRADES.index(grade) for grade in grades), default=0)]


@dataclass(frozen=True)
class VerdictRow:
    """A row of a verdict: a number with its limits and its grade.

    Attributes:
        name: What is judged.
        value: The number; None if it is not judged.
        text_value: The number as it is printed.
        good: What counts as good.
        fair: What counts as fair; all else is poor.
        grade: The grade; None if the row does not count.
        sentence: What is the case, with figures.
        remedy: What would make it better; empty if it is good.
        question: The question of the verdict to which it belongs.
    """

    name: str
    value: float | None
    text_value: str
    good: str
    fair: str
    grade: Grade | None
    sentence: str
    remedy: str
    question: Question = "predicts"


def graded_row(
    question: Question,
    name: str,
    value: float,
    text: str,
    limits: tuple[str, str],
    grade: Grade,
    sentence: str,
    remedy: str,
) -> VerdictRow:
    """Return a row with a grade that is given; a good one needs no remedy.

    Its text has as many digits as it takes to be on the same side of the limits as the number.
    """
    text = _with_enough_digits(value, text, limits)
    return VerdictRow(name, value, text, *limits, grade, sentence, "" if grade == "good" else remedy, question)


def _with_enough_digits(value: float, text: str, limits: tuple[str, str]) -> str:
    """Return a number's text with more digits where it is on another side of a limit than the number: 10.04 as 10."""
    found = _NUMBER.match(text)
    if found is None or not isfinite(value) or abs(float(found.group()) - value) > _ROUNDED * abs(value):
        return text  # no number, or one in another unit than the value
    finer = (f"{value:.{digits}g}" for digits in range(3, _MOST_DIGITS))
    right = (one for one in (found.group(), *finer) if _sides(float(one), limits) == _sides(value, limits))
    return next(right, found.group()) + text[found.end() :]


def _sides(value: float, limits: tuple[str, str]) -> list[bool]:
    """Return whether a number is beyond each limit: above one of ``<=``, below one of ``>=``, either for a range."""
    sides = []
    for text in limits:
        for limit in map(float, _NUMBER.findall(text)):
            sides += [] if text.startswith(">=") else [value > limit]
            sides += [] if text.startswith("<=") else [value < limit]
    return sides


def small_is_good(value: float, good: float, fair: float) -> Grade:
    """Return the grade of a number that should be small."""
    return "good" if value <= good else "fair" if value <= fair else "poor"


def row_below(
    question: Question,
    name: str,
    value: float,
    text: str,
    limits: tuple[float, float],
    sentence: str,
    remedy: str,
    unit: str = "",
) -> VerdictRow:
    """Return the row of a number that should be small: good up to the first limit, fair up to the second, then poor."""
    grade = small_is_good(value, *limits)
    return graded_row(question, name, value, text, limits_below(limits, unit), grade, sentence, remedy)


def row_above(
    question: Question,
    name: str,
    value: float,
    text: str,
    limits: tuple[float, float],
    sentence: str,
    remedy: str,
    unit: str = "",
) -> VerdictRow:
    """Return the row of a number that should be large: good from the first limit on, fair from the second."""
    good, fair = limits
    grade: Grade = "good" if value >= good else "fair" if value >= fair else "poor"
    bounds = (_limit(">=", good, unit), _limit(">=", fair, unit))
    return graded_row(question, name, value, text, bounds, grade, sentence, remedy)


def limits_below(limits: tuple[float, float], unit: str = "") -> tuple[str, str]:
    """Return upper limits as they are printed."""
    return _limit("<=", limits[0], unit), _limit("<=", limits[1], unit)


def _limit(sign: str, limit: float, unit: str) -> str:
    return f"{sign} {limit:g} {unit}".rstrip()


def row_not_judged(question: Question, name: str, limits: tuple[str, str], why: str) -> VerdictRow:
    """Return a row that does not count."""
    return VerdictRow(name, None, NOT_JUDGED, *limits, None, why, "", question)


def first_named(names: Sequence[str], separator: str = ", ", most: int = _NAMED) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{separator.join(names[:most])}{more}"


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
class Verdict:
    """Whether a result can be trusted.

    Attributes:
        grade: ``good``, ``fair`` or ``poor``: the worse of the grades of ``plausible`` and ``predicts``.
        criteria: Every row, with its limits.
        reasons: Cautions that carry a grade, a sentence with a remedy for every row that is not good, other cautions.
        questions: Grade of each question: ``plausible``, ``predicts``, ``known``.

    Example:
        >>> from steelyard.judge import IdentificationEvidence, judge
        >>> evidence = IdentificationEvidence(
        ...     fit_percent=4.0, unseen_percent=6.0, condition=12.0, relative_sigmas={"ZZ2": 1.0},
        ...     correlation=[], spread=1.2,
        ... )
        >>> verdict = judge(evidence)
        >>> verdict.grade, verdict.questions["predicts"]
        ('fair', 'fair')
    """

    __repr__ = short_repr

    grade: Grade
    criteria: tuple[VerdictRow, ...]
    reasons: tuple[Reason, ...]
    questions: Mapping[Question, Grade]

    def grade_of(self, reason: Reason) -> Grade | None:
        """Return the grade that a reason carries, by itself or by the row that it is about."""
        return reason.grade or next((row.grade for row in self.criteria if row.name == reason.criterion), None)

    @property
    def answers(self) -> dict[Question, Grade | None]:
        """Grade of each question; None where nothing answers it: no row is judged, no caution carries a grade."""
        judged = {one.question for one in (*self.criteria, *self.reasons) if one.grade is not None}
        return {question: grade if question in judged else None for question, grade in self.questions.items()}

    def _repr_html_(self) -> str:
        """Return grade, criteria and reasons as notebooks show them."""
        rows = [(row.name, row.text_value, row.good, row.fair, row.grade or NOT_JUDGED) for row in self.criteria]
        reasons = "".join(f"<li>{for_html(f'{one.text} {one.remedy}'.strip())}</li>" for one in self.reasons)
        pairs = self.answers.items()
        answers = "; ".join(f"{QUESTIONS[question]} {grade or NOT_JUDGED}" for question, grade in pairs)
        table = html_table(("criterion", "value", "good", "fair", "grade"), rows)
        return f"<p><b>{self.grade}</b>: {for_html(answers)}</p>{table}" + (f"<ol>{reasons}</ol>" if reasons else "")


def verdict_of(criteria: Sequence[VerdictRow], cautions: Sequence[Reason] = ()) -> Verdict:
    """Return the verdict of rows and cautions.

    Args:
        criteria: The rows.
        cautions: Further sentences; one that carries a grade counts for its question.
    """
    questions: dict[Question, Grade] = {}
    for question in QUESTIONS:
        rows = [*criteria, *cautions]
        questions[question] = worst_grade(*(row.grade for row in rows if row.question == question and row.grade))
    own = (
        Reason(row.sentence, row.remedy, row.name, question=row.question)
        for row in criteria
        if row.grade in ("fair", "poor")
    )
    grade = worst_grade(questions["plausible"], questions["predicts"])
    first = sorted((one for one in cautions if one.grade is not None), key=lambda one: one.grade != "poor")
    last = [reason for reason in cautions if reason.grade is None]
    return Verdict(grade, tuple(criteria), (*first, *own, *last), MappingProxyType(questions))


def verdict_to_json(verdict: Verdict) -> dict[str, Any]:
    """Return grade, rows with their limits, and reasons."""
    return {
        "grade": verdict.grade,
        "questions": dict(verdict.questions),
        "criteria": [
            {
                "name": row.name, "question": row.question, "value": row.value, "text": row.text_value,
                "good": row.good, "fair": row.fair, "grade": row.grade,
            }
            for row in verdict.criteria
        ],
        "reasons": [
            {"text": reason.text, "remedy": reason.remedy, "about": reason.criterion, "question": reason.question}
            for reason in verdict.reasons
        ],
    }  # fmt: skip


def deciding_reason(verdict: Mapping[str, Any]) -> str:
    """Return the sentence that decides the grade of a verdict given as JSON; empty if it has none.

    A row that is as bad as the grade decides it; without one it is a caution, and cautions with the worst grade come
    first.
    """
    rows = [
        row["name"] for row in verdict["criteria"] if row["question"] != "known" and row["grade"] == verdict["grade"]
    ]
    reasons = verdict["reasons"]
    return next((one["text"] for one in [*(one for one in reasons if one["about"] in rows), *reasons]), "")


def check_thresholds(thresholds: Any, error: type[SteelyardError], large_is_good: Sequence[str] = ()) -> None:
    """Refuse limits that are no numbers from 0 on, or where fair ends before good does.

    Args:
        thresholds: A dataclass of numbers; ``NAME_good`` and ``NAME_fair`` are the limits of one row.
        error: What is raised.
        large_is_good: Names of rows whose numbers should be large.
    """
    values = {field.name: getattr(thresholds, field.name) for field in fields(thresholds)}
    for name, value in values.items():
        if not (isinstance(value, int | float) and isfinite(value) and value >= 0):
            raise error(f"threshold {name}: got {value}, allowed are finite numbers of 0 and above")
    for row in (name.removesuffix("_good") for name in values if name.endswith("_good")):
        ends = (f"{row}_fair", f"{row}_good") if row in large_is_good else (f"{row}_good", f"{row}_fair")
        smaller, larger = ends
        if f"{row}_fair" in values and values[smaller] > values[larger]:
            raise error(
                f"threshold {smaller}: got {values[smaller]:g}, allowed is at most {larger}, {values[larger]:g}"
            )
