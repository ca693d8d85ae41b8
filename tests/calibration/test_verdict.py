"""The verdict: the worst row decides, and every reason comes with a remedy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from calibration.small_problems import laid_out, linear_problem, noise_like
from steelyard.calibration.fit.accuracy import Accuracy, Validation
from steelyard.calibration.fit.calibration import calibrated, independent_numbers
from steelyard.calibration.fit.settings import CalibrationSettings, CalibrationThresholds
from steelyard.calibration.fit.verdict import CalibrationEvidence, Deviation, judge_calibration
from steelyard.errors import CalibrationError
from steelyard.verdict import Reason


def accuracy(rms: float) -> Accuracy:
    return Accuracy(0.9 * rms, rms, 2 * rms, 3 * rms, 90)


def validation(before: float, after: float) -> Validation:
    return Validation("same", accuracy(before), accuracy(after), None, None, None, moved=False, gross=())


GOOD = CalibrationEvidence(
    before=accuracy(2.0), after=accuracy(0.1), held_out=accuracy(0.12), condition=40.0, configurations=30, numbers=180,
    unknowns=33, points=90, left_out=1, small=("x3",), arm_unknowns=20,
)  # fmt: skip


def test_good_numbers_give_a_good_verdict_without_reasons():
    verdict = judge_calibration(GOOD)
    assert verdict.grade == "good"
    assert verdict.reasons == ()
    assert len(verdict.criteria) == 6


@pytest.mark.parametrize(
    ("change", "grade", "message"),
    [
        ({"held_out": accuracy(1.5), "after": accuracy(1.4)}, "fair", "0.75 times that of the nominal arm"),
        ({"held_out": accuracy(2.5), "after": accuracy(2.4)}, "poor", "1.25 times that of the nominal arm"),
        ({"held_out": accuracy(0.2)}, "fair", "2.00 times that of the fit"),
        ({"held_out": accuracy(0.3)}, "poor", "3.00 times that of the fit"),
        ({"left_out": 9}, "fair", "9 of 90 points were left out"),
        ({"left_out": 30}, "poor", "30 of 90 points were left out"),
        ({"reach_mm": 19.0}, "fair", "0.53 % of the arm's reach of 19 mm"),
        ({"reach_mm": 4.0}, "poor", "2.5 % of the arm's reach of 4 mm"),
        ({"deviation": Deviation("offset3", -0.16, "rad", 1.5)}, "fair", "offset3 differs from the robot's file by"),
        ({"deviation": Deviation("z3", 0.1, "m", 4.9)}, "poor", "z3 differs from the robot's file by 100 mm"),
        (
            {"validation": validation(1.9, 0.2)},
            "fair",
            "on the validation file (90 points) the error is 0.2 mm",
        ),
        ({"validation": validation(2.0, 0.36)}, "poor", "3.00 times that of cross-validation"),
    ],
)
def test_each_row_can_decide(change, grade, message):
    verdict = judge_calibration(replace(GOOD, **change))
    assert verdict.grade == grade
    (reason,) = verdict.reasons
    assert message in reason.text
    assert reason.remedy


@pytest.mark.parametrize(
    ("change", "grade", "message"),
    [
        ({"condition": 500.0}, "fair", "condition number with normalised columns is 500"),
        ({"condition": 5000.0}, "poor", "nearly indistinguishable"),
        ({"numbers": 80}, "fair", "80 independent numbers for 33 unknowns"),
        ({"numbers": 40}, "poor", "1.21 each"),
        ({"small": tuple("abcdefghijklmn")}, "fair", "not so: a, b, c and 11 more"),
    ],
)
def test_rows_on_parameters_answer_a_question_of_their_own(change, grade, message):
    verdict = judge_calibration(replace(GOOD, **change))
    assert verdict.grade == "good"
    assert dict(verdict.questions) == {"plausible": "good", "predicts": "good", "known": grade}
    (reason,) = verdict.reasons
    assert message in reason.text
    assert reason.remedy


def test_the_validation_file_decides_instead_of_what_is_held_out():
    verdict = judge_calibration(replace(GOOD, held_out=accuracy(9.0), validation=validation(2.0, 0.12)))
    assert verdict.grade == "good"
    worse = judge_calibration(replace(GOOD, validation=validation(0.1, 0.12)))
    assert worse.grade == dict(worse.questions)["predicts"] == "poor"
    assert "the nominal arm does better" in worse.reasons[0].text


def test_the_nominal_arm_is_compared_at_the_points_that_are_held_out():
    verdict = judge_calibration(replace(GOOD, before_held_out=accuracy(0.1)))
    assert verdict.grade == "poor"
    assert "1.20 times that of the nominal arm" in verdict.reasons[0].text


def test_orientations_are_judged_where_they_are_measured():
    small, large = (replace(accuracy(0.1), rotation_rms_deg=angle, rotations=90) for angle in (0.02, 40.0))
    good = judge_calibration(replace(GOOD, before=small, after=small, held_out=small, before_held_out=accuracy(2.0)))
    assert next(row.name for row in good.criteria if "orientation" in row.name) == "orientation error after fit"
    assert dict(good.questions)["plausible"] == "good"
    wrong = judge_calibration(replace(GOOD, before=large, after=large, held_out=large))
    assert dict(wrong.questions)["plausible"] == "poor"
    assert "orientation error is still 40 deg" in wrong.reasons[0].text
    worse = replace(small, rotation_rms_deg=0.05)
    unseen = judge_calibration(replace(GOOD, before=small, after=small, held_out=worse))
    assert [row.grade for row in unseen.criteria if row.name.startswith("orientation over")] == ["poor", "fair"]


def test_where_no_configuration_can_be_held_out_nothing_is_predicted():
    verdict = judge_calibration(replace(GOOD, held_out=None))
    assert [row.grade for row in verdict.criteria if row.question == "predicts"] == [None, "poor"]
    assert verdict.grade == "poor"
    assert "--validate" in verdict.reasons[0].remedy


def test_a_caution_with_a_grade_counts():
    verdict = judge_calibration(GOOD, cautions=(Reason("the fit did not converge", "start nearer", grade="poor"),))
    assert verdict.grade == "poor"
    assert verdict.reasons[-1].remedy == "start nearer"


def test_limits_may_be_set_and_must_be_in_order():
    assert judge_calibration(GOOD, CalibrationThresholds(outliers_good=1)).grade == "fair"
    assert judge_calibration(GOOD, CalibrationThresholds(condition_good=10)).questions["known"] == "fair"
    with pytest.raises(CalibrationError, match="threshold gain_good: got 2, allowed is at most gain_fair, 1"):
        CalibrationThresholds(gain_good=2.0)
    with pytest.raises(CalibrationError, match="threshold ratio_good: got nan"):
        CalibrationThresholds(ratio_good=float("nan"))


def test_markers_of_a_rigid_tool_count_as_six_and_repeats_once():
    assert independent_numbers(laid_out(np.zeros(5 * 3 * 4 * 3), 5, 3, 4, (0, 1, 2))) == 30
    assert independent_numbers(laid_out(np.zeros(5 * 4 * 3), 5, 1, 4, (0, 1, 2))) == 15


def test_an_error_that_configurations_share_is_said():
    problem, _ = linear_problem(noise_like("shared", 1e-4, 15, 3, 2, 3))
    texts = [reason.text for reason in calibrated(problem).verdict.reasons]
    assert any("shared by all numbers of a configuration" in text for text in texts)


def test_weights_that_have_not_converged_are_reported():
    problem, _ = linear_problem(noise_like("unequal", 1e-4, 15, 3, 6, 3), 15, 3, 6)
    verdict = calibrated(problem, settings=CalibrationSettings(reweightings=1)).verdict
    assert any("still change after 1 reweightings" in reason.text for reason in verdict.reasons)
    assert dict(verdict.questions)["known"] != "good"
