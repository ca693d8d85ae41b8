"""The rows of the verdict: a number, its limits, a grade, one sentence and one remedy each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .residual_correlation import ResidualCorrelation
from .thresholds import Grade, Thresholds

# Relative errors below this [%] are those of rounding: their ratio says nothing.
_ROUNDING_PERCENT = 1e-6
_NAMED = 3
# Residuals up to so many times the noise are mostly noise.
_NOISE_ALONE = 1.2


@dataclass(frozen=True)
class Criterion:
    """A row of the verdict.

    Attributes:
        name: What is judged.
        value: The number; None if it is not judged.
        text_value: The number in words.
        good: What counts as good.
        fair: What counts as fair; all else is poor.
        grade: The grade; None if the row does not count.
        sentence: What is the case, with figures.
        remedy: What would make it better; empty if it is good.
        question: Which question it answers: ``plausible``, ``predicts`` or ``known``; empty if none in particular.
    """

    name: str
    value: float | None
    text_value: str
    good: str
    fair: str
    grade: Grade | None
    sentence: str
    remedy: str
    question: str = ""


def small_is_good(value: float, good: float, fair: float) -> Grade:
    """Return the grade of a number that should be small."""
    return "good" if value <= good else "fair" if value <= fair else "poor"


def _row(
    name: str, value: float, text: str, limits: tuple[str, str], grade: Grade, sentence: str, remedy: str
) -> Criterion:
    return Criterion(name, value, text, *limits, grade, sentence, "" if grade == "good" else remedy)


def ratio_criterion(fit: float, unseen: float, limits: Thresholds) -> Criterion:
    """Judge unseen against fitted relative error [%]."""
    ratio = max(unseen, _ROUNDING_PERCENT) / max(fit, _ROUNDING_PERCENT)
    return _row(
        "unseen relative error over fit",
        ratio,
        f"{ratio:.2f}",
        (f"<= {limits.ratio_good:g}", f"<= {limits.ratio_fair:g}"),
        small_is_good(ratio, limits.ratio_good, limits.ratio_fair),
        f"the relative error on unseen motion, {unseen:.3g} %, is {ratio:.2f} times that of the fit, {fit:.3g} %",
        "record more and more varied motion to fit, or leave out parameters that the data do not need",
    )


def error_criterion(
    unseen: float, joints: Mapping[str, float], noise_ratio: float | None, limits: Thresholds
) -> Criterion:
    """Judge the unseen relative error over all joints [%]; the worst joints are named, and what the noise allows."""
    known = {joint: value for joint, value in joints.items() if value == value}
    worst = sorted(known, key=lambda joint: -known[joint])[:_NAMED]
    named = f"; worst: {', '.join(f'{joint} {known[joint]:.3g} %' for joint in worst)}" if worst else ""
    noise = "" if noise_ratio is None else f"; residuals are {noise_ratio:.2f} times what the noise of the fit allows"
    look = f"look at {worst[0]} first: " if worst else ""
    remedy = f"{look}what its residuals depend on says which effect to add or which signal to mend"
    if noise_ratio is not None and noise_ratio <= _NOISE_ALONE:
        remedy = "measure with less noise, or judge at a lower cut-off: the model is as good as this noise can show"
    return _row(
        "unseen relative error, all joints",
        unseen,
        f"{unseen:.3g} %",
        (f"<= {limits.error_good:g} %", f"<= {limits.error_fair:g} %"),
        small_is_good(unseen, limits.error_good, limits.error_fair),
        f"the relative error on unseen motion is {unseen:.3g} %{named}{noise}",
        remedy,
    )


def condition_criterion(condition: float, limits: Thresholds) -> Criterion:
    """Judge the condition number of the equations with columns of unit length."""
    return _row(
        "condition number, columns normalised",
        condition,
        f"{condition:.3g}",
        (f"<= {limits.condition_good:g}", f"<= {limits.condition_fair:g}"),
        small_is_good(condition, limits.condition_good, limits.condition_fair),
        f"the condition number with normalised columns is {condition:.3g}"
        + ("" if condition <= limits.condition_good else ": some parameters are hardly told apart"),
        "design a better motion (steelyard design), or record longer with all joints moving at once",
    )


def known_criterion(relative_sigmas: Mapping[str, float], limits: Thresholds) -> Criterion:
    """Judge how many essential parameters are well known; the weakest are named."""
    weak = sorted(
        (name for name, value in relative_sigmas.items() if not value <= limits.relative_sigma),
        key=lambda name: -relative_sigmas[name],
    )
    total = len(relative_sigmas)
    share = 100 * (total - len(weak)) / total if total else 0.0
    named = ", ".join(f"{name} {relative_sigmas[name]:.3g} %" for name in weak[:_NAMED])
    further = f" and {len(weak) - _NAMED} more" if len(weak) > _NAMED else ""
    grade: Grade = "good" if share >= limits.known_good else "fair" if share >= limits.known_fair else "poor"
    return _row(
        f"essential parameters with relative sigma <= {limits.relative_sigma:g} %",
        share,
        f"{share:.3g} %",
        (f">= {limits.known_good:g} %", f">= {limits.known_fair:g} %"),
        grade,
        f"{total - len(weak)} of {total} essential parameters have a relative sigma of at most "
        f"{limits.relative_sigma:g} %" + (f"; weak: {named}{further}" if weak else ""),
        "record longer or excite them more (higher accelerations, a heavier payload), or reduce the model further",
    )


def correlation_criterion(
    equations: Sequence[ResidualCorrelation], limits: Thresholds, *, in_sigmas: bool = True
) -> Criterion:
    """Judge whether the noise model explains the correlation of the residuals; the worst equation is named.

    Args:
        equations: Correlation of the residuals, for every equation.
        limits: Where good ends and poor begins.
        in_sigmas: Whether the sigmas that are told know of it.
    """
    left = [e for e in equations if not (e.largest < limits.leftover or e.p > limits.leftover_p)]
    strong = [e for e in equations if abs(e.lag_one) > limits.lag_one]
    largest = max((abs(e.lag_one) for e in equations), default=0.0)
    grade: Grade = "poor" if left else "fair" if strong else "good"
    text = {"good": "modelled", "fair": "modelled, strong", "poor": "not explained"}[grade]
    good = f"modelled, <= {limits.lag_one:g}"
    return _row(
        "residual correlation beyond the decimator's",
        largest,
        text,
        (good, "modelled, strong"),
        grade,
        _correlation_sentence(left, strong, largest, in_sigmas),
        "decimate more, or add the friction terms that the residuals ask for",
    )


def _correlation_sentence(
    left: Sequence[ResidualCorrelation], strong: Sequence[ResidualCorrelation], largest: float, in_sigmas: bool
) -> str:
    if left:
        worst = max(left, key=lambda e: e.largest)
        return (
            f"the noise model does not explain the residuals of {_names(left)}: whitened, they still correlate by up "
            f"to {worst.largest:.2g} ({worst.joint})"
        )
    if strong:
        told = "and the sigmas are as much larger" if in_sigmas else "but the sigmas told do not: they are too small"
        return (
            f"neighbouring residuals of {_names(strong)} correlate by up to {largest:.2g} beyond the decimator; the "
            f"noise model has it, {told}"
        )
    return f"neighbouring residuals correlate by at most {largest:.2g} beyond the decimator, and the noise model has it"


def _names(equations: Sequence[ResidualCorrelation]) -> str:
    names = [f"{e.joint} ({e.kind})" for e in equations]
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def spread_criterion(spread: float | None, names: tuple[str, str], limits: Thresholds) -> Criterion:
    """Judge whether recordings agree; with one recording the row does not count."""
    name = "recordings agree (spread over sigma)"
    bounds = (f"<= {limits.spread_good:g}", f"<= {limits.spread_fair:g}")
    if spread is None:
        text = "one recording: not judged"
        return Criterion(name, None, text, *bounds, None, f"{text}; a second one would show whether it repeats", "")
    column, recording = names
    most = f"; {column} in '{recording}' disagrees most" if column else ""
    return _row(
        name,
        spread,
        f"{spread:.2f}",
        bounds,
        small_is_good(spread, limits.spread_good, limits.spread_fair),
        f"recordings fitted alone differ by {spread:.2f} times what their sigmas allow{most}",
        "warm the arm up before recording, and check that payload and temperature were as declared in all recordings",
    )
