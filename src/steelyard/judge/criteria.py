"""The rows of the verdict on an identification: what is measured, its limits, one sentence and one remedy each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan, log10

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
from .thresholds import IdentificationEvidence, Thresholds
from .whiteness import ResidualCorrelation

# Relative errors below this [%] are those of rounding: their ratio says nothing.
_ROUNDING_PERCENT = 1e-6
_NAMED = 3

HEAVINESS = (0.03, 3000.0)
"""Inertias of arms over the fifth power of their reach [kg/m^3]: those we know lie between 3 and 40."""

LACKS = "model lacks"
"""Mark of a parameter whose joint has residuals that a pattern explains."""

EFFORT, SCALE = "torque over effort limit", "size against the robot file"
"""Names of the rows that judge the size of the torques."""


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
    limits = thresholds or Thresholds()
    _check_numbers(evidence)
    return verdict_of(
        (
            _impossible(evidence.plausibility, limits),
            _effort(evidence.plausibility, limits),
            _scale(evidence.plausibility, limits),
            _joint(evidence.plausibility, limits),
            _error(evidence.unseen_percent, evidence.unseen_joints, evidence.noise_limited, limits),
            _ratio(evidence.fit_percent, evidence.unseen_percent, limits),
            _condition(evidence.condition, limits),
            _known(evidence.relative_sigmas, limits),
            _correlation(evidence.correlation, limits, in_sigmas=evidence.correlation_in_sigmas),
            _spread(evidence.spread, evidence.spread_names, limits),
            _pattern(evidence.patterns, limits),
        ),
        cautions,
    )


def _check_numbers(evidence: IdentificationEvidence) -> None:
    numbers = {
        "relative error of the fit": evidence.fit_percent,
        "unseen relative error": evidence.unseen_percent,
        "condition number": evidence.condition,
        "spread of recordings": 0.0 if evidence.spread is None else evidence.spread,
    }
    for name, value in numbers.items():
        if isnan(value) or value < 0:
            raise EstimateError(f"verdict: got {value} as {name}, needed is a number of 0 and above")


def _impossible(found: Plausibility, limits: Thresholds) -> VerdictRow:
    """Judge values that no arm can have: negative friction, drive inertia, mass, inertia matrix."""
    material = [one for one in found.material if 100 * one.share > limits.impossible_fair]
    grade: Grade = "poor" if material else "fair" if found.impossible else "good"
    named = [
        f"{one.what} {one.value:.3g} +- {one.sigma:.1g}, {100 * one.share:.2g} % of the torque of {one.joint}"
        for one in material or found.impossible
    ]
    remedy = "check signs, order, units and gains of the torque and position columns in the set-up"
    if grade == "fair":
        remedy += "; values this small may also be what the model lacks"
    return graded_row(
        "plausible",
        "impossible parameter values",
        len(found.impossible),
        f"{len(found.impossible)}",
        ("none", f"<= {limits.impossible_fair:g} %"),
        grade,
        f"no arm can have these values: {first_named(named, '; ')}"
        if named
        else "no value is one that no arm can have",
        remedy,
    )


def _effort(found: Plausibility, limits: Thresholds) -> VerdictRow:
    """Judge the largest torque against the robot file's effort limits."""
    bounds = (limits.effort_good, limits.effort_fair)
    if found.effort is None:
        return row_not_judged("plausible", EFFORT, limits_below(bounds), "the robot file has no effort limits")
    joint, ratio = found.effort
    return row_below(
        "plausible",
        EFFORT,
        ratio,
        f"{ratio:.3g}",
        bounds,
        f"the torque of {joint} is up to {ratio:.3g} times its effort limit",
        "check the unit and the gain of the torque columns (mA or A, N mm or N m, before or after the gears)",
    )


def _scale(found: Plausibility, limits: Thresholds) -> VerdictRow:
    """Judge the size of the rigid-body torques against those of the robot file's inertias."""
    scale = found.scale
    if scale is None:
        return _heaviness(found.heaviness)
    factor = max(scale, 1 / scale) if scale > 0 else float("inf")
    return graded_row(
        "plausible",
        SCALE,
        scale,
        f"{scale:.3g} x",
        (f"within {limits.scale_good:g} x", f"within {limits.scale_fair:g} x"),
        small_is_good(factor, limits.scale_good, limits.scale_fair),
        f"masses and inertias come out about {scale:.3g} times those of the robot file",
        f"check the unit and the gain of the torque columns: a factor of {_likely_factor(scale)}; or the robot file's "
        "inertias are placeholders",
    )


def _heaviness(heaviness: float | None) -> VerdictRow:
    """Judge inertias by the arm's reach where the robot file has none: arms are alike within a factor of a hundred."""
    low, high = HEAVINESS
    name, bounds = "inertia over reach^5, kg/m^3", (f"{low:g} to {high:g}", "")
    if heaviness is None:
        return row_not_judged("plausible", name, bounds, "the robot file has no inertias to compare with")
    inside = low <= heaviness <= high
    return graded_row(
        "plausible",
        name,
        heaviness,
        f"{heaviness:.2g}",
        bounds,
        "good" if inside else "poor",
        f"an arm of this reach has inertias between {low:g} and {high:g} reach^5 kg/m^3; these are {heaviness:.2g}",
        "check the units of the torque columns and of the robot file's lengths (mA or A, N mm or N m, mm or m)",
    )


def _likely_factor(scale: float) -> str:
    decade = round(log10(scale)) if scale > 0 else 0
    if abs(decade) >= 2:
        return f"about {10.0**decade:g} is a unit (mA read as A, N mm read as N m, or the reverse)"
    return f"about {scale:.2g} is a drive gain or a gear ratio left out or taken twice"


def _joint(found: Plausibility, limits: Thresholds) -> VerdictRow:
    """Judge the joint that is predicted worst, of those whose torque stands above noise and bias."""
    name, bounds = "worst joint, relative error", (limits.joint_good, limits.joint_fair)
    if found.worst_joint is None:
        why = "no torque stands above noise and bias of its sensor"
        return row_not_judged("plausible", name, limits_below(bounds, "%"), why)
    joint, percent = found.worst_joint
    return row_below(
        "plausible",
        name,
        percent,
        f"{percent:.3g} %",
        bounds,
        f"{percent:.3g} % of the torque of {joint} is not explained, although it stands well above noise and bias",
        f"check sign, order, unit and gain of the columns of {joint.split(' (')[0]} and its neighbours in the set-up",
        "%",
    )


def _error(unseen: float, joints: Mapping[str, float], noise_limited: bool, limits: Thresholds) -> VerdictRow:
    """Judge the unseen relative error over all joints [%]; the worst joints are named.

    Args:
        unseen: The error.
        joints: That of every joint, by name.
        noise_limited: Whether noise of the torques, as what they have above the band shows it, explains the error.
        limits: Where good ends and poor begins.
    """
    known = {joint: value for joint, value in joints.items() if not isnan(value)}
    worst = sorted(known, key=lambda joint: -known[joint])[:_NAMED]
    named = f"; worst: {', '.join(f'{joint} {known[joint]:.3g} %' for joint in worst)}" if worst else ""
    look = f"look at {worst[0]} first: " if worst else ""
    remedy = f"{look}what its residuals depend on says which effect is missing or which signal to mend"
    if unseen > limits.joint_fair:
        remedy = f"{look}the model does not describe these torques; check that robot and log belong together"
    elif noise_limited:
        remedy = "measure with less noise, or judge at a lower cut-off (--evaluation-cutoff): the noise explains it"
    return row_below(
        "predicts",
        "unseen relative error",
        unseen,
        f"{unseen:.3g} %",
        (limits.error_good, limits.error_fair),
        f"the relative error on unseen motion is {unseen:.3g} %{named}",
        remedy,
        "%",
    )


def _ratio(fit: float, unseen: float, limits: Thresholds) -> VerdictRow:
    """Judge unseen against fitted relative error [%]; an unseen error that is good is at most fair for its ratio."""
    ratio = max(unseen, _ROUNDING_PERCENT) / max(fit, _ROUNDING_PERCENT)
    bounds = (limits.ratio_good, limits.ratio_fair)
    grade = small_is_good(ratio, *bounds)
    if unseen <= limits.error_good and grade != "good":
        grade = "good" if grade == "fair" else "fair"
    sentence = f"the relative error on unseen motion, {unseen:.3g} %, is {ratio:.2f} times that of the fit, {fit:.3g} %"
    remedy = "record more motion to fit, as fast and as wide as the motion you want to predict"
    if fit > limits.error_good and 1 / ratio > limits.ratio_fair:
        # A recording that the fit does not describe is unlike the others, however well these are predicted.
        grade = "fair" if fit <= limits.error_fair else "poor"
        sentence = (
            f"the relative error of the fit, {fit:.3g} %, is far larger than that on unseen motion, {unseen:.3g} %: a "
            "recording that was fitted is unlike the others"
        )
        remedy = "identify the recordings one by one and compare them (steelyard compare)"
    name, text = "unseen error over fit", f"{ratio:.2f}"
    return graded_row("predicts", name, ratio, text, limits_below(bounds), grade, sentence, remedy)


def _condition(condition: float, limits: Thresholds) -> VerdictRow:
    """Judge the condition number of the equations with columns of unit length."""
    return row_below(
        "known",
        "condition number, normalised",
        condition,
        f"{condition:.3g}",
        (limits.condition_good, limits.condition_fair),
        f"the condition number with normalised columns is {condition:.3g}"
        + ("" if condition <= limits.condition_good else ": some parameters are hardly told apart"),
        "record a designed motion (steelyard design ROBOT), or longer with all joints moving at once",
    )


def _known(relative_sigmas: Mapping[str, float], limits: Thresholds) -> VerdictRow:
    """Judge how many essential parameters are well known; the weakest are named."""
    weak = sorted(
        (name for name, value in relative_sigmas.items() if not value <= limits.relative_sigma),
        key=lambda name: -relative_sigmas[name],
    )
    total = len(relative_sigmas)
    share = 100 * (total - len(weak)) / total if total else 0.0
    named = first_named([f"{name} {relative_sigmas[name]:.3g} %" for name in weak])
    return row_above(
        "known",
        f"parameters with sigma <= {limits.relative_sigma:g} %",
        share,
        f"{share:.3g} %",
        (limits.known_good, limits.known_fair),
        f"{total - len(weak)} of {total} essential parameters have a relative sigma of at most "
        f"{limits.relative_sigma:g} %" + (f"; weak: {named}" if weak else ""),
        "record longer, or excite them more: a motion designed for what is weak (steelyard design), a heavier payload",
        "%",
    )


def _correlation(equations: Sequence[ResidualCorrelation], limits: Thresholds, *, in_sigmas: bool = True) -> VerdictRow:
    """Judge whether the noise model explains the correlation of the residuals; the worst equation is named.

    Args:
        equations: Correlation of the residuals, for every equation.
        limits: Where good ends and poor begins.
        in_sigmas: Whether the reported sigmas include it.
    """
    left = [e for e in equations if not (e.largest < limits.leftover or e.p > limits.leftover_p)]
    strong = [e for e in equations if abs(e.lag_one) > limits.lag_one]
    largest = max((abs(e.lag_one) for e in equations), default=0.0)
    grade: Grade = "poor" if left else "fair" if strong else "good"
    return graded_row(
        "known",
        "residual correlation",
        largest,
        {"good": "modelled", "fair": "strong", "poor": "unexplained"}[grade],
        ("modelled", "strong"),
        grade,
        _correlation_sentence(left, strong, largest, in_sigmas),
        _correlation_remedy(bool(left), in_sigmas),
    )


def _correlation_remedy(left: bool, in_sigmas: bool) -> str:
    if left:
        return "take the intervals with care: record the motion again and see how far the values repeat"
    if in_sigmas:
        return "the intervals include it; modelling what the residuals depend on would narrow them"
    return "use sigmas that include it: --method gls, or --covariance model"


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
        sigmas = "and the sigmas are as much larger" if in_sigmas else "but the sigmas told do not: they are too small"
        return (
            f"neighbouring residuals of {_names(strong)} correlate by up to {largest:.2g} beyond the decimator; the "
            f"noise model has it, {sigmas}"
        )
    return f"neighbouring residuals correlate by at most {largest:.2g} beyond the decimator, and the noise model has it"


def _names(equations: Sequence[ResidualCorrelation]) -> str:
    return first_named([f"{e.joint} ({e.kind})" for e in equations])


def _spread(spread: float | None, names: tuple[str, str], limits: Thresholds) -> VerdictRow:
    """Judge whether recordings agree; with one recording the row does not count."""
    name, bounds = "spread of recordings over sigma", (limits.spread_good, limits.spread_fair)
    if spread is None:
        why = "one recording only; a second one would show whether it repeats"
        return row_not_judged("known", name, limits_below(bounds), why)
    column, recording = names
    most = f"; {column} in '{recording}' disagrees most" if column else ""
    return row_below(
        "known",
        name,
        spread,
        f"{spread:.2f}",
        bounds,
        f"recordings fitted alone differ by {spread:.2f} times what their sigmas allow{most}",
        "warm the arm up before recording, and check that payload and temperature were as declared in all recordings",
    )


def _pattern(shares: Mapping[str, float], limits: Thresholds) -> VerdictRow:
    """Judge what the model lacks: the part of a joint's residual variance that one pattern explains [%].

    Args:
        shares: The largest share of every joint in which a pattern was found, by what sentences call it.
        limits: Where good ends.
    """
    worst = max(shares, key=lambda joint: shares[joint], default="")
    share = shares.get(worst, 0.0)
    strong = [joint for joint, value in shares.items() if value > limits.pattern]
    return graded_row(
        "known",
        "residual explained by a pattern",
        share,
        f"{share:.2g} %",
        (f"<= {limits.pattern:g} %", f"> {limits.pattern:g} %"),
        "fair" if strong else "good",
        f"the model lacks an effect on {', '.join(strong[:_NAMED])}{' and more' if len(strong) > _NAMED else ''}: a "
        f"pattern explains up to {share:.2g} % of the residual's variance; intervals of the parameters marked "
        f"'{LACKS}' are too narrow"
        if strong
        else "no pattern explains a large part of the residuals",
        "use their values to predict at such speeds and loads, not as physical constants",
    )
