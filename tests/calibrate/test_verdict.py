"""The verdict: the worst row decides, and every reason comes with a remedy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from calibrate.small_problems import laid_out, linear_problem, noise_like
from steelyard.calibrate.fit.accuracy import Accuracy
from steelyard.calibrate.fit.calibration import calibrated
from steelyard.calibrate.fit.calibration_evidence import independent_numbers
from steelyard.calibrate.fit.calibration_settings import CalibrationSettings
from steelyard.calibrate.fit.calibration_thresholds import CalibrationThresholds
from steelyard.calibrate.fit.verdict import CalibrationEvidence, judge_calibration
from steelyard.errors import CalibrationError
from steelyard.judge import Reason


def accuracy(rms: float) -> Accuracy:
    return Accuracy(0.9 * rms, rms, 2 * rms, 3 * rms, 90)


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
    ("change", "grade", "words"),
    [
        ({"held_out": accuracy(1.5), "after": accuracy(1.4)}, "fair", "0.75 times that of the nominal arm"),
        ({"held_out": accuracy(2.5), "after": accuracy(2.4)}, "poor", "1.25 times that of the nominal arm"),
        ({"held_out": accuracy(0.2)}, "fair", "2.00 times that of the fit"),
        ({"held_out": accuracy(0.3)}, "poor", "3.00 times that of the fit"),
        ({"condition": 500.0}, "fair", "condition number with normalised columns is 500"),
        ({"condition": 5000.0}, "poor", "hardly told apart"),
        ({"numbers": 80}, "fair", "80 independent numbers for 33 unknowns"),
        ({"numbers": 40}, "poor", "1.21 each"),
        ({"left_out": 9}, "fair", "9 of 90 points were left out"),
        ({"left_out": 30}, "poor", "30 of 90 points were left out"),
        ({"small": tuple("abcdefghijklmn")}, "fair", "not so: a, b, c and 11 more"),
    ],
)
def test_each_row_can_decide(change, grade, words):
    verdict = judge_calibration(replace(GOOD, **change))
    assert verdict.grade == grade
    (reason,) = verdict.reasons
    assert words in reason.text
    assert reason.remedy


def test_without_held_out_configurations_two_rows_do_not_count():
    verdict = judge_calibration(replace(GOOD, held_out=None))
    assert [row.grade for row in verdict.criteria][:2] == [None, None]
    assert verdict.grade == "good"


def test_a_caution_with_a_grade_counts():
    verdict = judge_calibration(GOOD, cautions=(Reason("the fit did not converge", "start nearer", grade="poor"),))
    assert verdict.grade == "poor"
    assert verdict.reasons[-1].remedy == "start nearer"


def test_limits_may_be_set_and_must_be_in_order():
    assert judge_calibration(GOOD, CalibrationThresholds(condition_good=10)).grade == "fair"
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


def test_weights_that_have_not_settled_are_said():
    problem, _ = linear_problem(noise_like("unequal", 1e-4, 15, 3, 6, 3), 15, 3, 6)
    verdict = calibrated(problem, settings=CalibrationSettings(rounds=1)).verdict
    assert any("still change after 1 rounds" in reason.text for reason in verdict.reasons)
    assert verdict.grade != "good"
