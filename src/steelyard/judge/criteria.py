"""Rows of the verdict on an identification: each compares a figure with its limits and has a sentence and a remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isnan, log10

from ..errors import EstimateError
from ..verdict import (
    Grade,
    Reason,
    Verdict,
    VerdictRow,
    first_named,
    graded_row,
    limits_below,
    row_above,
    row_below,
    row_not_judged,
    small_is_good,
    verdict_of,
)
from .plausibility import Plausibility
from .thresholds import Thresholds
from .whiteness import ResidualCorrelation

# Relative errors below this [%] are those of rounding: their ratio says nothing.
_ROUNDING_PERCENT = 1e-6
_NAMED = 3

HEAVINESS = (0.03, 3000.0)
"""Inertias of arms over the fifth power of their reach [kg/m^3]: those we know lie between 3 and 40."""

LACKS = "model lacks"
"""Mark of a parameter whose joint has residuals that a pattern explains."""

EFFORT, SCALE, RATIO = "torque over effort limit", "size against the robot file", "unseen error over fit"
"""Names of rows: two that judge the size of the torques, and that of unseen motion against the fit."""


@dataclass(frozen=True)
class IdentificationEvidence:
    """The figures that a verdict on an identification judges.

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
        is_robust: Whether outliers hardly count in the fit; they count in its error.
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
    is_robust: bool = False


def judge(
    evidence: IdentificationEvidence, thresholds: Thresholds | None = None, cautions: Sequence[Reason] = ()
) -> Verdict:
    """Return the verdict on an identification.

    Args:
        evidence: The numbers.
        thresholds: Where good ends and poor begins; the product's own if not given.
        cautions: Further sentences: patterns in residuals, unseen motion that is faster, parameters with bias. They do
            not change a grade unless they carry one.

    Raises:
        EstimateError: If a number is missing.
    """
    numbers = {
        "relative error of the fit": evidence.fit_percent,
        "unseen relative error": evidence.unseen_percent,
        "condition number": evidence.condition,
        "spread of recordings": evidence.spread,
    }
    for name, value in numbers.items():
        if value is not None and (isnan(value) or value < 0):
            raise EstimateError(f"verdict: got {value} as {name}, needed is a number of 0 and above")
    limits = thresholds or Thresholds()
    rows = [*plausible_rows(evidence.plausibility, limits), *(row(evidence, limits) for row in _ROWS)]
    return verdict_of(rows, cautions)


def plausible_rows(found: Plausibility, limits: Thresholds) -> list[VerdictRow]:
    """Return the rows of the question whether an estimate is plausible.

    Args:
        found: What speaks for or against it.
        limits: Where good ends and poor begins.
    """
    return [row(found, limits) for row in (_impossible, _effort, _scale, _joint)]


def _impossible(found: Plausibility, limits: Thresholds) -> VerdictRow:
    """Judge values that no arm can have: negative friction, drive inertia, mass, inertia matrix."""
    material = [one for one in found.material if 100 * one.share > limits.impossible_fair]
    grade: Grade = "poor" if material else "fair" if found.impossible else "good"
    named = [
        f"{one.what} {one.value:.3g} +- {one.sigma:.1g}, {100 * one.share:.2g} % of the torque of {one.joint}"
        for one in material or found.impossible
    ]
    sentence = "no value is one that no arm can have"
    if named:
        sentence = f"no arm can have these values: {first_named(named, '; ')}"
    remedy = "check signs, order, units and gains of the torque and position columns in the set-up"
    if grade == "fair":
        remedy += "; values this small may also be what the model lacks"
    count, bounds = len(found.impossible), ("none", f"<= {limits.impossible_fair:g} %")
    name = "impossible parameter values"
    return graded_row("plausible", name, count, f"{count}", bounds, grade, sentence, remedy)


def _effort(found: Plausibility, limits: Thresholds) -> VerdictRow:
    """Judge the largest torque against the robot file's effort limits."""
    bounds = (limits.effort_good, limits.effort_fair)
    if found.effort is None:
        return row_not_judged("plausible", EFFORT, limits_below(bounds), "the robot file has no effort limits")
    joint, ratio = found.effort
    sentence = f"the torque of {joint} is up to {ratio:.3g} times its effort limit"
    remedy = "check the unit and the gain of the torque columns (mA or A, N mm or N m, before or after the gears)"
    return row_below("plausible", EFFORT, ratio, f"{ratio:.3g}", bounds, sentence, remedy)


def _scale(found: Plausibility, limits: Thresholds) -> VerdictRow:
    """Judge the size of the rigid-body torques against those of the robot file's inertias."""
    scale = found.scale
    if scale is None:
        return _heaviness(found.heaviness)
    grade = small_is_good(max(scale, 1 / scale) if scale > 0 else inf, limits.scale_good, limits.scale_fair)
    decade = round(log10(scale)) if scale > 0 else 0
    likely = f"about {scale:.2g} is a drive gain or a gear ratio left out or taken twice"
    if abs(decade) >= 2:
        likely = f"about {10.0**decade:g} is a unit (mA read as A, N mm read as N m, or the reverse)"
    bounds = (f"within {limits.scale_good:g} x", f"within {limits.scale_fair:g} x")
    sentence = f"masses and inertias come out about {scale:.3g} times those of the robot file"
    remedy = (
        f"check the unit and the gain of the torque columns: a factor of {likely}; or the robot file's inertias are "
        "placeholders"
    )
    return graded_row("plausible", SCALE, scale, f"{scale:.3g} x", bounds, grade, sentence, remedy)


def _heaviness(heaviness: float | None) -> VerdictRow:
    """Judge inertias by the arm's reach where the robot file has none: arms are alike within a factor of a hundred."""
    low, high = HEAVINESS
    name, bounds = "inertia over reach^5, kg/m^3", (f"{low:g} to {high:g}", "")
    if heaviness is None:
        return row_not_judged("plausible", name, bounds, "the robot file has no inertias to compare with")
    sentence = (
        f"an arm of this reach has inertias between {low:g} and {high:g} reach^5 kg/m^3; these are {heaviness:.2g}"
    )
    remedy = (
        "check the units of torques, positions and the robot file's lengths (mA or A, N mm or N m, degrees or radians, "
        "mm or m)"
    )
    grade: Grade = "good" if low <= heaviness <= high else "poor"
    return graded_row("plausible", name, heaviness, f"{heaviness:.2g}", bounds, grade, sentence, remedy)


def _joint(found: Plausibility, limits: Thresholds) -> VerdictRow:
    """Judge the joint that is predicted worst, of those whose torque stands above noise and bias."""
    name, bounds = "worst joint, relative error", (limits.joint_good, limits.joint_fair)
    if found.unexplained is not None and (found.worst_joint is None or found.worst_joint[1] <= limits.joint_fair):
        return _unexplained(name, *found.unexplained, limits_below(bounds, "%"))
    if found.worst_joint is None:
        why = "no torque stands above noise and bias of its sensor"
        return row_not_judged("plausible", name, limits_below(bounds, "%"), why)
    joint, percent = found.worst_joint
    text = f"{percent:.3g} %"
    sentence = f"{text} of the torque of {joint} is not explained, although it stands well above noise and bias"
    own = joint.split(" (")[0]
    remedy = f"check sign, order, unit and gain of the columns of {own} and its neighbours in the set-up"
    return row_below("plausible", name, percent, text, bounds, sentence, remedy, "%")


def _unexplained(name: str, joint: str, percent: float, limits: tuple[str, str]) -> VerdictRow:
    """Return the row of a torque that is too small to be judged, but of which nothing is explained: fair at best."""
    text = f"{percent:.3g} %"
    sentence = (
        f"nothing of the torque of {joint} is explained ({text}); it is so small against the effort limit, or other "
        "torques, that bias and hysteresis may hide the arm"
    )
    remedy = f"check the columns of {joint.split(' (')[0]} in the set-up; do not use its parameters"
    return graded_row("plausible", name, percent, text, limits, "fair", sentence, remedy)


def _error(evidence: IdentificationEvidence, limits: Thresholds) -> VerdictRow:
    """Judge the unseen relative error over all joints [%]; the worst joints are named."""
    unseen = evidence.unseen_percent
    known = {joint: value for joint, value in evidence.unseen_joints.items() if not isnan(value)}
    worst = sorted(known, key=lambda joint: -known[joint])[:_NAMED]
    named = f"; worst: {', '.join(f'{joint} {known[joint]:.3g} %' for joint in worst)}" if worst else ""
    look = f"look at {worst[0]} first: " if worst else ""
    remedy = f"{look}what its residuals depend on says which effect is missing or which signal to mend"
    if unseen > limits.joint_fair:
        remedy = f"{look}the model does not describe these torques; check that robot and log belong together"
    elif evidence.noise_limited:
        remedy = "measure with less noise, or judge at a lower cut-off (--evaluation-cutoff): the noise explains it"
    name, text, bounds = "unseen relative error", f"{unseen:.3g} %", (limits.error_good, limits.error_fair)
    sentence = f"the relative error on unseen motion is {text}{named}"
    return row_below("predicts", name, unseen, text, bounds, sentence, remedy, "%")


def _ratio(evidence: IdentificationEvidence, limits: Thresholds) -> VerdictRow:
    """Judge unseen against fitted relative error [%]; an unseen error that is good is at most fair for its ratio."""
    fit, unseen = evidence.fit_percent, evidence.unseen_percent
    ratio = max(unseen, _ROUNDING_PERCENT) / max(fit, _ROUNDING_PERCENT)
    grade = small_is_good(ratio, limits.ratio_good, limits.ratio_fair)
    if unseen <= limits.error_good and grade != "good":
        grade = "good" if grade == "fair" else "fair"
    sentence = f"the relative error on unseen motion, {unseen:.3g} %, is {ratio:.2f} times that of the fit, {fit:.3g} %"
    remedy = "record more motion to fit, as fast and as wide as the motion you want to predict"
    if fit > limits.error_good and 1 / ratio > limits.ratio_fair and not evidence.is_robust:
        # A recording that the fit does not describe is unlike the others, however well these are predicted.
        grade = "fair" if fit <= limits.error_fair else "poor"
        sentence = (
            f"the relative error of the fit, {fit:.3g} %, is far larger than that on unseen motion, {unseen:.3g} %: a "
            "recording that was fitted is unlike the others"
        )
        remedy = "identify the recordings one by one and compare them (steelyard compare)"
    limited = limits_below((limits.ratio_good, limits.ratio_fair))
    return graded_row("predicts", RATIO, ratio, f"{ratio:.2f}", limited, grade, sentence, remedy)


def _condition(evidence: IdentificationEvidence, limits: Thresholds) -> VerdictRow:
    """Judge the condition number of the equations with columns of unit length."""
    condition, bounds = evidence.condition, (limits.condition_good, limits.condition_fair)
    name, text = "condition number, normalised", f"{evidence.condition:.3g}"
    sentence = f"the condition number with normalised columns is {text}"
    if condition > limits.condition_good:
        sentence += ": some parameters are hardly distinguishable"
    remedy = "record a designed motion (steelyard design ROBOT), or longer with all joints moving at once"
    return row_below("known", name, condition, text, bounds, sentence, remedy)


def _known(evidence: IdentificationEvidence, limits: Thresholds) -> VerdictRow:
    """Judge how many essential parameters are well known; the weakest are named."""
    sigmas, largest = evidence.relative_sigmas, f"{limits.relative_sigma:g} %"
    weak = sorted(
        (name for name, value in sigmas.items() if not value <= limits.relative_sigma), key=lambda name: -sigmas[name]
    )
    total = len(sigmas)
    share = 100 * (total - len(weak)) / total if total else 0.0
    sentence = f"{total - len(weak)} of {total} essential parameters have a relative sigma of at most {largest}"
    if weak:
        sentence += f"; weak: {first_named([f'{name} {sigmas[name]:.3g} %' for name in weak])}"
    remedy = (
        "record longer, or excite them more: a motion designed for what is weak (steelyard design), a heavier payload"
    )
    name, bounds = f"parameters with sigma <= {largest}", (limits.known_good, limits.known_fair)
    return row_above("known", name, share, f"{share:.3g} %", bounds, sentence, remedy, "%")


def _correlation(evidence: IdentificationEvidence, limits: Thresholds) -> VerdictRow:
    """Judge whether the noise model explains the correlation of the residuals; the worst equation is named."""
    equations, in_sigmas = evidence.correlation, evidence.correlation_in_sigmas
    left = [e for e in equations if not (e.largest < limits.leftover or e.p > limits.leftover_p)]
    strong = [e for e in equations if abs(e.lag_one) > limits.lag_one]
    largest = max((abs(e.lag_one) for e in equations), default=0.0)
    remedy = "use sigmas that include it: --method gls, or --covariance model"
    if in_sigmas:
        remedy = "the intervals include it; modelling what the residuals depend on would narrow them"
    if left:
        remedy = "take the intervals with care: record the motion again and see how far the values repeat"
    grade: Grade = "poor" if left else "fair" if strong else "good"
    text = {"good": "modelled", "fair": "strong", "poor": "unexplained"}[grade]
    name, sentence = "residual correlation", _correlation_sentence(left, strong, largest, in_sigmas)
    return graded_row("known", name, largest, text, ("modelled", "strong"), grade, sentence, remedy)


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
        sigmas = (
            "and the sigmas are as much larger" if in_sigmas else "but the reported sigmas do not: they are too small"
        )
        return (
            f"neighbouring residuals of {_names(strong)} correlate by up to {largest:.2g} beyond the decimator; the "
            f"noise model has it, {sigmas}"
        )
    return f"neighbouring residuals correlate by at most {largest:.2g} beyond the decimator, and the noise model has it"


def _names(equations: Sequence[ResidualCorrelation]) -> str:
    return first_named([f"{e.joint} ({e.kind})" for e in equations])


def _spread(evidence: IdentificationEvidence, limits: Thresholds) -> VerdictRow:
    """Judge whether recordings agree; with one recording the row does not count."""
    spread, name, bounds = evidence.spread, "spread of recordings over sigma", (limits.spread_good, limits.spread_fair)
    if spread is None:
        why = "one recording only; a second one would show whether it repeats"
        return row_not_judged("known", name, limits_below(bounds), why)
    column, recording = evidence.spread_names
    most = f"; {column} in '{recording}' disagrees most" if column else ""
    sentence = f"recordings fitted alone differ by {spread:.2f} times what their sigmas allow{most}"
    remedy = (
        "warm the arm up before recording, and check that payload and temperature were as declared in all recordings"
    )
    return row_below("known", name, spread, f"{spread:.2f}", bounds, sentence, remedy)


def _pattern(evidence: IdentificationEvidence, limits: Thresholds) -> VerdictRow:
    """Judge what the model lacks: the part of a joint's residual variance that one pattern explains [%]."""
    strong = [joint for joint, value in evidence.patterns.items() if value > limits.pattern]
    share = max(evidence.patterns.values(), default=0.0)
    sentence = "no pattern explains a large part of the residuals"
    if strong:
        joints = f"{', '.join(strong[:_NAMED])}{' and more' if len(strong) > _NAMED else ''}"
        sentence = (
            f"the model lacks an effect on {joints}: a pattern explains up to {share:.2g} % of the residual's variance"
            f"; of the parameters marked '{LACKS}' take the widened intervals"
        )
    name, bounds = "residual explained by a pattern", (f"<= {limits.pattern:g} %", f"> {limits.pattern:g} %")
    remedy = "use their values to predict at such speeds and loads, not as physical constants"
    grade: Grade = "fair" if strong else "good"
    return graded_row("known", name, share, f"{share:.2g} %", bounds, grade, sentence, remedy)


_ROWS = (_error, _ratio, _condition, _known, _correlation, _spread, _pattern)
