"""The rows of the verdict on a calibration: each has a figure, its limits, one sentence and one remedy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import degrees

from ...verdict import (
    Reason,
    Verdict,
    VerdictRow,
    first_named,
    graded_row,
    limits_below,
    row_above,
    row_below,
    row_not_judged,
    verdict_of,
)
from .accuracy import Accuracy, Validation
from .settings import CalibrationThresholds

# Errors below these are those of rounding: their ratio says nothing.
_ROUNDING_MM, _ROUNDING_DEG = 1e-9, 1e-9
_COMPARE = "compare how the two files were measured (station, markers, load, joint columns); if alike, "

MUCH_NOISE = 1.5
"""Noise that differs from the declared one by more than this factor, and more than by chance, is said."""


@dataclass(frozen=True)
class Deviation:
    """The unknown of a joint that differs most from the robot's file.

    Attributes:
        name: Its name.
        value: Its deviation [m or rad].
        unit: ``m`` or ``rad``.
        over_usual: The deviation, less two sigmas, over the largest that is usual.
    """

    name: str
    value: float
    unit: str
    over_usual: float


@dataclass(frozen=True)
class CalibrationEvidence:
    """The numbers on which the verdict on a calibration rests.

    Attributes:
        before: Accuracy of the nominal arm, base and markers fitted.
        after: Accuracy of the fit.
        held_out: Accuracy at configurations held out; None if none could be.
        condition: Condition number of the fitted columns, each of unit length.
        configurations: How many configurations remain.
        numbers: Independent numbers: equations, but no more than six for a configuration of one rigid tool.
        unknowns: How many are fitted.
        points: How many points there were.
        left_out: How many of them were left out as gross errors.
        small: Unknowns of the arm (not base, tool, markers) whose sigma is larger than their deviation from nominal.
        arm_unknowns: Unknowns of the arm that are fitted.
        before_held_out: As ``before``, at the points that are held out; ``before`` if not given.
        validation: Accuracy on measurements of their own: if there are any, they decide instead of what is held out.
        reach_mm: How far the arm reaches [mm], if known.
        deviation: The largest error of a joint, if joints have errors.
        joint_unknowns: How many of these are errors of joints.
        negative: Compliances whose interval holds no positive value.
        doubtful: Compliances that came out negative and may be positive.
        compliances: How many compliances are fitted.
        ranges: Ranges of joints in which the model lacks something, as text.
        worst_range: How many times worse the points of the worst of them are.
        noise_ratio: Noise found over the noise that the instrument's maker states; None if none is stated.
        noise_agrees: Whether chance explains that they differ.
        finds_nothing: Whether the arm has unknowns and none of them is identifiable.
    """

    before: Accuracy
    after: Accuracy
    held_out: Accuracy | None
    condition: float
    configurations: int
    numbers: int
    unknowns: int
    points: int
    left_out: int
    small: tuple[str, ...]
    arm_unknowns: int
    before_held_out: Accuracy | None = None
    validation: Validation | None = None
    reach_mm: float | None = None
    deviation: Deviation | None = None
    joint_unknowns: int = 1
    negative: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()
    compliances: int = 0
    ranges: tuple[str, ...] = ()
    worst_range: float = 1.0
    noise_ratio: float | None = None
    noise_agrees: bool = True
    finds_nothing: bool = False


def judge_calibration(
    evidence: CalibrationEvidence, limits: CalibrationThresholds | None = None, cautions: Sequence[Reason] = ()
) -> Verdict:
    """Return the verdict on a calibration: its grade is the worse of ``plausible`` and ``predicts``.

    Args:
        evidence: The numbers.
        limits: Where good ends and poor begins; the product's own if not given.
        cautions: Further sentences: a likely mistake, a fit that did not converge, unknowns that are weak. They change
            the grade only if they carry one, for their own question. Poor ones come first.
    """
    limits = limits or CalibrationThresholds()
    known = (_condition(evidence, limits), _enough(evidence, limits), _known(evidence, limits))
    return verdict_of((*_plausible(evidence, limits), *_predicts(evidence, limits), *known), cautions)


def _plausible(evidence: CalibrationEvidence, limits: CalibrationThresholds) -> list[VerdictRow]:
    rows = []
    if evidence.reach_mm:
        rows.append(_size(evidence.after.rms_mm, evidence.reach_mm, limits))
    if evidence.after.rotation_rms_deg is not None:
        rows.append(_orientation(evidence.after.rotation_rms_deg, limits))
    if evidence.deviation is not None:
        rows.append(_deviation(evidence.deviation, limits))
    return [*rows, _outliers(evidence, limits), *_compliances(evidence), *_noise(evidence)]


def _size(error: float, reach: float, limits: CalibrationThresholds) -> VerdictRow:
    part = 100 * error / reach
    return row_below(
        "plausible", "error after fit over reach", part, f"{part:.2g} %", (limits.size_good, limits.size_fair),
        f"after the fit the error is still {error:.3g} mm (rms), {part:.2g} % of the arm's reach of {reach:.4g} mm",
        "the robot, the joint columns ([joints]) or the markers are not those that were measured: look at them first",
        "%",
    )  # fmt: skip


def _orientation(error: float, limits: CalibrationThresholds) -> VerdictRow:
    return row_below(
        "plausible", "orientation error after fit", error, f"{error:.2g} deg",
        (limits.rotation_good, limits.rotation_fair),
        f"after the fit the orientation error is still {error:.3g} deg (rms)",
        "check how orientations are written: quaternions w, x, y, z, or roll, pitch, yaw as in a URDF", "deg",
    )  # fmt: skip


def _deviation(largest: Deviation, limits: CalibrationThresholds) -> VerdictRow:
    size = abs(largest.value)
    shown = f"{size:.3g} rad ({degrees(size):.3g} deg)" if largest.unit == "rad" else f"{1e3 * size:.3g} mm"
    return row_below(
        "plausible", "joint error / (0.1 rad or 20 mm)", largest.over_usual, f"{largest.over_usual:.2g}",
        (limits.deviation_good, limits.deviation_fair),
        f"{largest.name} differs from the robot's file by {shown}, far more than arms do",
        "check the robot's file, and sign, zero and column of this joint and its neighbours ([joints] in the set-up)",
    )  # fmt: skip


def _predicts(evidence: CalibrationEvidence, limits: CalibrationThresholds) -> list[VerdictRow]:
    """Judge by the validation file, all its points counted; without one by configurations held out.

    The error of the fit flatters, more so the fewer points there are: a validation file is compared with what
    cross-validation leads to expect.
    """
    own, inside, named = evidence.validation, evidence.after, "the fit"
    if own is not None and evidence.held_out is not None:
        inside, named = evidence.held_out, "cross-validation"
    if own is not None:
        where = f"on the validation file ({own.after.points} points)"
        unseen = _Unseen("validation error", where, own.before, own.after, _COMPARE)
    else:
        before = evidence.before_held_out or evidence.before
        unseen = _Unseen("held-out error", "at configurations held out", before, evidence.held_out)
    rows = [_gain(unseen, evidence, limits), _ratio(unseen, inside, named, evidence, limits)]
    if unseen.after is not None and unseen.after.rotation_rms_deg is not None:
        rows += _turned(unseen, inside, named, limits)
    return [*rows, *_ranges(evidence)]


@dataclass(frozen=True)
class _Unseen:
    """Errors at points that were not fitted: what they are called, nominal and calibrated arm, and what to do first."""

    name: str
    where: str
    before: Accuracy
    after: Accuracy | None
    first: str = ""


def _fewer(evidence: CalibrationEvidence) -> str:
    """Return the remedy to fit fewer unknowns, where there are any that could be left out."""
    if evidence.joint_unknowns:
        return "let fewer joints have errors ([geometry] joints), or "
    return "name fewer joints in [elastic], or " if evidence.arm_unknowns else ""


def _gain(unseen: _Unseen, evidence: CalibrationEvidence, limits: CalibrationThresholds) -> VerdictRow:
    name, bounds = f"{unseen.name} over nominal", (limits.gain_good, limits.gain_fair)
    if unseen.after is None or not evidence.arm_unknowns:
        why = "no configuration could be held out: not judged"
        if unseen.after is not None:
            why = "no unknown of the arm is fitted, it stays nominal: not judged"
        return row_not_judged("predicts", name, limits_below(bounds), why)
    error, before = unseen.after.rms_mm, unseen.before.rms_mm
    ratio = max(error, _ROUNDING_MM) / max(before, _ROUNDING_MM)
    better = "; the nominal arm does better" if ratio > 1 else ""
    return row_below(
        "predicts", name, ratio, f"{ratio:.2f}", bounds,
        f"{unseen.where} the error is {error:.3g} mm (rms), {ratio:.2f} times that of the nominal arm with base and "
        f"markers fitted, {before:.3g} mm{better}",
        f"{unseen.first}{_fewer(evidence)}give a prior (--prior); if the nominal arm is as good as the instrument, "
        "leave it",
    )  # fmt: skip


def _ratio(
    unseen: _Unseen, fit: Accuracy, named: str, evidence: CalibrationEvidence, limits: CalibrationThresholds
) -> VerdictRow:
    name, bounds = f"{unseen.name} over {named.removeprefix('the ')}", (limits.ratio_good, limits.ratio_fair)
    if unseen.after is None:
        return VerdictRow(
            name, None, "unknown", *limits_below(bounds), "poor",
            "no configuration can be left out without an unknown being lost: nothing says what this calibration does "
            "at a configuration that was not measured",
            f"{_fewer(evidence)}measure more configurations, or others to judge by (--validate)", "predicts",
        )  # fmt: skip
    error = unseen.after.rms_mm
    ratio = max(error, _ROUNDING_MM) / max(fit.rms_mm, _ROUNDING_MM)
    return row_below(
        "predicts", name, ratio, f"{ratio:.2f}", bounds,
        f"{unseen.where} the error is {error:.3g} mm (rms), {ratio:.2f} times that of {named}, {fit.rms_mm:.3g} mm",
        f"{unseen.first}{_fewer(evidence)}measure more and more varied configurations",
    )  # fmt: skip


def _turned(unseen: _Unseen, fit: Accuracy, named: str, limits: CalibrationThresholds) -> list[VerdictRow]:
    """Judge orientations: they may not get worse than the nominal arm's, nor than those of the fit."""
    error, before, inside = (
        max(each.rotation_rms_deg or 0.0, _ROUNDING_DEG) for each in (unseen.after or fit, unseen.before, fit)
    )
    gain, ratio = error / before, error / inside
    what = f"{unseen.where} the orientation error is {error:.3g} deg (rms)"
    return [
        row_below(
            "predicts", "orientation over nominal", gain, f"{gain:.2f}",
            (limits.rotation_gain_good, limits.rotation_gain_fair),
            f"{what}, {gain:.2f} times that of the nominal arm, {before:.3g} deg",
            "let fewer joints have errors, or check how orientations are measured and written",
        ),
        row_below(
            "predicts", f"orientation over {named.removeprefix('the ')}", ratio, f"{ratio:.2f}",
            (limits.ratio_good, limits.ratio_fair),
            f"{what}, {ratio:.2f} times that of {named}, {inside:.3g} deg",
            "measure more and more varied configurations, or let fewer joints have errors",
        ),
    ]  # fmt: skip


def _condition(evidence: CalibrationEvidence, limits: CalibrationThresholds) -> VerdictRow:
    value = evidence.condition
    return row_below(
        "known", "condition number, normalised", value, f"{value:.3g}", (limits.condition_good, limits.condition_fair),
        f"the condition number with normalised columns is {value:.3g}"
        + ("" if value <= limits.condition_good else ": some unknowns are nearly indistinguishable"),
        "measure configurations that spread over the joint ranges, joints moved together, orientations varied",
    )  # fmt: skip


def _enough(evidence: CalibrationEvidence, limits: CalibrationThresholds) -> VerdictRow:
    value = evidence.numbers / max(evidence.unknowns, 1)
    return row_above(
        "known", "independent numbers per unknown", value, f"{value:.2f}", (limits.enough_good, limits.enough_fair),
        f"{evidence.configurations} configurations give {evidence.numbers} independent numbers for {evidence.unknowns} "
        f"unknowns, {value:.2f} each (a rigid tool gives six at most, however many markers it has)",
        f"{_fewer(evidence)}measure more configurations",
    )  # fmt: skip


def _outliers(evidence: CalibrationEvidence, limits: CalibrationThresholds) -> VerdictRow:
    share = 100 * evidence.left_out / max(evidence.points, 1)
    return row_below(
        "plausible", "points left out", share, f"{share:.3g} %", (limits.outliers_good, limits.outliers_fair),
        f"{evidence.left_out} of {evidence.points} points were left out as gross errors",
        "look at the configurations named: joint angles written down wrongly, swapped markers, a beam that was cut",
        "%",
    )  # fmt: skip


def _known(evidence: CalibrationEvidence, limits: CalibrationThresholds) -> VerdictRow:
    """Judge how many unknowns differ from nominal: that some do not is no fault of the measurements."""
    total, bounds = evidence.arm_unknowns, (f">= {limits.known_good:g} %", "any")
    if evidence.finds_nothing:
        return graded_row(
            "known", "unknowns beyond their sigma", 0.0, "none", bounds, "poor",
            "no unknown of the arm is identifiable: these measurements show only where base and markers are",
            "measure configurations in which all joints move, better thirty than ten (steelyard poses chooses them)",
        )  # fmt: skip
    share = 100 * (total - len(evidence.small)) / total if total else 100.0
    return graded_row(
        "known", "unknowns beyond their sigma", share, f"{share:.3g} %", bounds,
        "good" if share >= limits.known_good else "fair",
        f"{total - len(evidence.small)} of {total} unknowns of the arm differ from nominal by more than their sigma"
        + (f"; not so: {first_named(evidence.small)}" if evidence.small else ""),
        "leave out those that do not, or measure more: they add noise to every corrected target",
    )  # fmt: skip


def _compliances(evidence: CalibrationEvidence) -> list[VerdictRow]:
    """A spring gives way in the direction of its load: a compliance that is negative for sure is no spring's."""
    if not evidence.compliances:
        return []
    wrong, grade = evidence.negative, "good"
    sentence, remedy = "all compliances are positive", ""
    if wrong:
        grade, named = "poor", ", ".join(wrong)
        sentence = f"compliances that are negative beyond doubt: {named}; no joint gives way against its load"
        remedy = "check sign and point of the loads and the sign of these joints, or add what is missing "
        remedy += '(own_weight = "model")'
    elif evidence.doubtful:
        grade = "fair"
        sentence = f"compliances that came out negative, within their intervals: {', '.join(evidence.doubtful)}"
        remedy = "leave these joints out of [elastic] joints, or measure with a larger load"
    value = f"{len(wrong)} of {evidence.compliances}"
    limits = ("0", "in doubt")
    return [graded_row("plausible", "negative compliances", float(len(wrong)), value, limits, grade, sentence, remedy)]


def _ranges(evidence: CalibrationEvidence) -> list[VerdictRow]:
    """Errors that gather in a range of a joint are what the model lacks; prediction holds, widened."""
    if not evidence.ranges:
        return []
    return [
        graded_row(
            "predicts", "error in a joint range", evidence.worst_range, f"{evidence.worst_range:.2g}",
            ("none", "any"), "fair",
            f"{'; '.join(evidence.ranges)}: the model lacks something there; these points are fitted and the predicted "
            "uncertainty is wider there",
            "let the joints in question bend ([elastic] joints, own_weight), check their couplings ([joints] in the "
            "set-up), or keep targets out of this range",
        )
    ]  # fmt: skip


def _noise(evidence: CalibrationEvidence) -> list[VerdictRow]:
    """Residuals far above the stated noise: the model lacks something, or the instrument is worse than stated."""
    ratio = evidence.noise_ratio
    if ratio is None:
        return []
    larger, smaller = (not evidence.noise_agrees and is_so for is_so in (ratio > MUCH_NOISE, ratio < 1 / MUCH_NOISE))
    sentence = f"the residuals are {ratio:.3g} times as large as the declared noise of the instrument"
    if larger:
        sentence += ": the model lacks something, or the instrument is worse than declared"
    if smaller:
        sentence += ": the instrument is better than declared"
    remedy = (
        "do not take --method declared, whose intervals would be too narrow; add what the model lacks ([elastic]), or "
        "correct sigma in the set-up"
    )
    return [
        graded_row(
            "plausible", "residuals over the declared noise", ratio, f"{ratio:.3g}",
            (f"{1 / MUCH_NOISE:.2g} to {MUCH_NOISE:g}", "any"), "fair" if larger else "good", sentence, remedy,
        )
    ]  # fmt: skip
