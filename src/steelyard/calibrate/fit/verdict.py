"""May you believe a calibration: every row with its limits, the worst row decides, every reason with a remedy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...judge import Criterion, Grade, Reason, Verdict, verdict_of
from ...judge.criteria import small_is_good
from .accuracy import Accuracy
from .calibration_thresholds import CalibrationThresholds

# Errors below this [mm] are those of rounding: their ratio says nothing.
_ROUNDING_MM = 1e-9
_NAMED = 3


@dataclass(frozen=True)
class CalibrationEvidence:
    """What a verdict on a calibration is made of, as plain numbers.

    Attributes:
        before: Accuracy of the nominal arm, base and markers fitted.
        after: Accuracy of the fit.
        held_out: Accuracy at configurations held out; None if none could be.
        condition: Condition number of the kept columns, each of unit length.
        configurations: How many configurations remain.
        numbers: Independent numbers: equations, but no more than six for a configuration of one rigid tool.
        unknowns: How many are fitted.
        points: How many points there were.
        left_out: How many of them were left out as gross errors.
        small: Unknowns of the arm (not base, tool, markers) whose sigma is larger than their deviation from nominal.
        arm_unknowns: Unknowns of the arm that are fitted.
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


def judge_calibration(
    evidence: CalibrationEvidence, limits: CalibrationThresholds | None = None, cautions: Sequence[Reason] = ()
) -> Verdict:
    """Return the verdict on a calibration.

    Args:
        evidence: The numbers.
        limits: Where good ends and poor begins; the product's own if not given.
        cautions: Further sentences: a fit that did not converge, unknowns that are weak. They change the grade only if
            they carry one.
    """
    limits = limits or CalibrationThresholds()
    rows = (
        _gain(evidence, limits), _ratio(evidence, limits), _condition(evidence, limits), _enough(evidence, limits),
        _outliers(evidence, limits), _known(evidence, limits),
    )  # fmt: skip
    return verdict_of(rows, cautions)


def _row(
    name: str, value: float, text: str, limits: tuple[str, str], grade: Grade, sentence: str, remedy: str
) -> Criterion:
    return Criterion(name, value, text, *limits, grade, sentence, "" if grade == "good" else remedy)


def _unjudged(name: str, limits: tuple[str, str]) -> Criterion:
    text = "no configuration could be held out: not judged"
    return Criterion(name, None, text, *limits, None, text, "")


def _gain(evidence: CalibrationEvidence, limits: CalibrationThresholds) -> Criterion:
    name = "held-out error over that of the nominal arm"
    bounds = (f"<= {limits.gain_good:g}", f"<= {limits.gain_fair:g}")
    if evidence.held_out is None:
        return _unjudged(name, bounds)
    unseen, before = evidence.held_out.rms_mm, evidence.before.rms_mm
    ratio = max(unseen, _ROUNDING_MM) / max(before, _ROUNDING_MM)
    return _row(
        name, ratio, f"{ratio:.2f}", bounds, small_is_good(ratio, limits.gain_good, limits.gain_fair),
        f"at configurations held out the error is {unseen:.3g} mm (rms), {ratio:.2f} times that of the nominal arm "
        f"with base and markers fitted, {before:.3g} mm",
        "let fewer joints have errors, or give a prior; if the nominal arm is as good as the instrument, leave it",
    )  # fmt: skip


def _ratio(evidence: CalibrationEvidence, limits: CalibrationThresholds) -> Criterion:
    name = "held-out error over that of the fit"
    bounds = (f"<= {limits.ratio_good:g}", f"<= {limits.ratio_fair:g}")
    if evidence.held_out is None:
        return _unjudged(name, bounds)
    unseen, fit = evidence.held_out.rms_mm, evidence.after.rms_mm
    ratio = max(unseen, _ROUNDING_MM) / max(fit, _ROUNDING_MM)
    return _row(
        name, ratio, f"{ratio:.2f}", bounds, small_is_good(ratio, limits.ratio_good, limits.ratio_fair),
        f"at configurations held out the error is {unseen:.3g} mm (rms), {ratio:.2f} times that of the fit, "
        f"{fit:.3g} mm",
        "measure more and more varied configurations, or let fewer joints have errors",
    )  # fmt: skip


def _condition(evidence: CalibrationEvidence, limits: CalibrationThresholds) -> Criterion:
    value = evidence.condition
    return _row(
        "condition number, columns normalised", value, f"{value:.3g}",
        (f"<= {limits.condition_good:g}", f"<= {limits.condition_fair:g}"),
        small_is_good(value, limits.condition_good, limits.condition_fair),
        f"the condition number with normalised columns is {value:.3g}"
        + ("" if value <= limits.condition_good else ": some unknowns are hardly told apart"),
        "measure configurations that spread over the joint ranges, joints moved together, orientations varied",
    )  # fmt: skip


def _enough(evidence: CalibrationEvidence, limits: CalibrationThresholds) -> Criterion:
    value = evidence.numbers / max(evidence.unknowns, 1)
    good, fair = limits.enough_good, limits.enough_fair
    return _row(
        "independent numbers for each unknown", value, f"{value:.2f}", (f">= {good:g}", f">= {fair:g}"),
        "good" if value >= good else "fair" if value >= fair else "poor",
        f"{evidence.configurations} configurations give {evidence.numbers} independent numbers for {evidence.unknowns} "
        f"unknowns, {value:.2f} each (a rigid tool gives six at most, however many markers it has)",
        "measure more configurations, or let fewer joints have errors",
    )  # fmt: skip


def _outliers(evidence: CalibrationEvidence, limits: CalibrationThresholds) -> Criterion:
    share = 100 * evidence.left_out / max(evidence.points, 1)
    return _row(
        "points left out as gross errors", share, f"{share:.3g} %",
        (f"<= {limits.outliers_good:g} %", f"<= {limits.outliers_fair:g} %"),
        small_is_good(share, limits.outliers_good, limits.outliers_fair),
        f"{evidence.left_out} of {evidence.points} points were left out as gross errors",
        "look at the configurations named: joint angles written down wrongly, swapped markers, a beam that was cut",
    )  # fmt: skip


def _known(evidence: CalibrationEvidence, limits: CalibrationThresholds) -> Criterion:
    """An unknown that is not told from nominal is no fault of the measurements: the row is never poor."""
    total = evidence.arm_unknowns
    share = 100 * (total - len(evidence.small)) / total if total else 100.0
    named = ", ".join(evidence.small[:_NAMED])
    further = f" and {len(evidence.small) - _NAMED} more" if len(evidence.small) > _NAMED else ""
    return _row(
        "unknowns of the arm that differ from nominal by more than their sigma", share, f"{share:.3g} %",
        (f">= {limits.known_good:g} %", "any"), "good" if share >= limits.known_good else "fair",
        f"{total - len(evidence.small)} of {total} unknowns of the arm differ from nominal by more than their sigma"
        + (f"; not so: {named}{further}" if named else ""),
        "leave out those that do not, or measure more: they add noise to every corrected target",
    )  # fmt: skip
