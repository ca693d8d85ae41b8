"""Grades at the edges of every threshold, and reasons with remedies."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan

import pytest

from steelyard.errors import EstimateError
from steelyard.judge import (
    IdentificationEvidence,
    Impossible,
    Plausibility,
    ResidualCorrelation,
    Scale,
    Thresholds,
    judge,
)
from steelyard.verdict import Reason

WHITE = ResidualCorrelation("motor", "joint_1", 0.1, 0.05, 0.5)
GOOD = IdentificationEvidence(
    fit_percent=2.0,
    unseen_percent=2.2,
    condition=12.0,
    relative_sigmas={"ZZ1R": 1.0, "Fvm1": 5.0, "Fcm1": 4.0, "MX2": 8.0, "MY2": 12.0},
    correlation=(WHITE,),
    spread=1.1,
    unseen_joints={"joint_1": 2.0, "joint_2": 3.0, "joint_3": nan},
    plausibility=Plausibility(
        effort=("joint_1", 0.4), scales=(Scale("motor", "joint_1", 1.1, 0.99),), worst_joint=("joint_2 (motor)", 3.0)
    ),
)
IMPOSSIBLE, EFFORT, SCALE, JOINT, ERROR, RATIO, CONDITION, KNOWN, CORRELATION, SPREAD, PATTERN = range(11)
QUESTION = {**dict.fromkeys(range(4), "plausible"), ERROR: "predicts", RATIO: "predicts"}


def plausible(**change):
    return {"plausibility": replace(GOOD.plausibility, **change)}


def negative(share, joint="joint_2", **change):
    return plausible(impossible=(Impossible("Fvm2", joint, -1.0, 0.1, share),), **change)


def of_size(*ratios, likeness=0.95):
    return plausible(scales=tuple(Scale("motor", "joint_1", ratio, likeness) for ratio in ratios))


def sigmas(good, bad):
    return {**{f"G{k}": 20.0 for k in range(good)}, **{f"B{k}": 21.0 + k for k in range(bad)}}


def left(largest, p, lag_one=0.1):
    return {"correlation": (WHITE, ResidualCorrelation("joint", "joint_4", lag_one, largest, p))}


EDGES = [
    (IMPOSSIBLE, negative(0.05), "fair"),
    (IMPOSSIBLE, negative(0.0501), "poor"),
    (IMPOSSIBLE, negative(0.9, hidden=("joint_2",)), "fair"),
    (EFFORT, plausible(effort=("joint_1", 1.05)), "good"),
    (EFFORT, plausible(effort=("joint_1", 1.06)), "fair"),
    (EFFORT, plausible(effort=("joint_1", 1.51)), "poor"),
    (SCALE, of_size(3.0), "good"),
    (SCALE, of_size(-1.0), "good"),
    (SCALE, of_size(0.33), "fair"),
    (SCALE, of_size(1.0, 6.1, 6.1), "poor"),
    (SCALE, of_size(0.16), "poor"),
    (JOINT, plausible(worst_joint=("joint_2 (motor)", 30.0)), "good"),
    (JOINT, plausible(worst_joint=("joint_2 (motor)", 50.0)), "fair"),
    (JOINT, plausible(worst_joint=("joint_2 (motor)", 50.1)), "poor"),
    (JOINT, plausible(unexplained=("joint_2 (motor)", 101.0)), "fair"),
    (JOINT, plausible(unexplained=("joint_2 (motor)", 101.0), worst_joint=("joint_1 (motor)", 50.1)), "poor"),
    (RATIO, {"fit_percent": 1.0, "unseen_percent": 2.0}, "good"),
    (RATIO, {"fit_percent": 1.0, "unseen_percent": 2.0001}, "fair"),
    (PATTERN, {"patterns": {"joint_2": 10.0}}, "good"),
    (PATTERN, {"patterns": {"joint_1": 1.0, "joint_2": 10.1}}, "fair"),
    (RATIO, {"fit_percent": 1e-12, "unseen_percent": 9e-7}, "good"),
    (RATIO, {"fit_percent": 1e-6, "unseen_percent": 9e-6}, "fair"),
    (ERROR, {"fit_percent": 5.0, "unseen_percent": 5.0}, "good"),
    (ERROR, {"fit_percent": 5.0, "unseen_percent": 5.001}, "fair"),
    (ERROR, {"fit_percent": 15.0, "unseen_percent": 15.0}, "fair"),
    (ERROR, {"fit_percent": 15.0, "unseen_percent": 15.001}, "poor"),
    (CONDITION, {"condition": 30.0}, "good"),
    (CONDITION, {"condition": 30.1}, "fair"),
    (CONDITION, {"condition": 100.0}, "fair"),
    (CONDITION, {"condition": 100.1}, "poor"),
    (CONDITION, {"condition": inf}, "poor"),
    (KNOWN, {"relative_sigmas": sigmas(8, 2)}, "good"),
    (KNOWN, {"relative_sigmas": sigmas(79, 21)}, "fair"),
    (KNOWN, {"relative_sigmas": sigmas(5, 5)}, "fair"),
    (KNOWN, {"relative_sigmas": sigmas(49, 51)}, "poor"),
    (KNOWN, {"relative_sigmas": {}}, "poor"),
    (KNOWN, {"relative_sigmas": {"ZZ1R": inf}}, "poor"),
    (CORRELATION, left(0.19, 0.0), "good"),
    (CORRELATION, left(0.3, 0.0011), "good"),
    (CORRELATION, left(0.2, 0.001), "poor"),
    (CORRELATION, left(0.1, 0.5, lag_one=0.5), "good"),
    (CORRELATION, left(0.1, 0.5, lag_one=0.51), "fair"),
    (CORRELATION, left(0.1, 0.5, lag_one=-0.51), "fair"),
    (SPREAD, {"spread": 2.0}, "good"),
    (SPREAD, {"spread": 2.01}, "fair"),
    (SPREAD, {"spread": 4.0}, "fair"),
    (SPREAD, {"spread": 4.01}, "poor"),
]


@pytest.mark.parametrize(("row", "change", "grade"), EDGES)
def test_each_row_is_graded_at_its_edges_and_decides_its_own_question(row, change, grade):
    verdict = judge(replace(GOOD, **change))
    assert verdict.criteria[row].grade == grade
    question = QUESTION.get(row, "known")
    assert verdict.criteria[row].question == question
    assert dict(verdict.questions) == {"plausible": "good", "predicts": "good", "known": "good", question: grade}
    assert verdict.grade == ("good" if question == "known" else grade)
    named = [reason.criterion for reason in verdict.reasons]
    assert named == ([] if grade == "good" else [verdict.criteria[row].name])
    assert all(reason.text and reason.remedy for reason in verdict.reasons)


@pytest.mark.parametrize(
    ("fit", "unseen", "grade"), [(5.0, 6.5, "good"), (5.0, 6.51, "fair"), (4.0, 8.0, "fair"), (4.0, 8.01, "poor")]
)
def test_the_ratio_counts_in_full_where_the_unseen_error_is_not_good_by_itself(fit, unseen, grade):
    assert judge(replace(GOOD, fit_percent=fit, unseen_percent=unseen)).criteria[RATIO].grade == grade


def test_every_row_is_shown_with_its_thresholds():
    verdict = judge(GOOD)
    assert verdict.grade == "good"
    assert [(row.good, row.fair) for row in verdict.criteria] == [
        ("none", "<= 5 %"),
        ("<= 1.05", "<= 1.5"),
        ("within 3 x", "within 6 x"),
        ("<= 30 %", "<= 50 %"),
        ("<= 5 %", "<= 15 %"),
        ("<= 1.3", "<= 2"),
        ("<= 30", "<= 100"),
        (">= 80 %", ">= 50 %"),
        ("modelled", "strong"),
        ("<= 2", "<= 4"),
        ("<= 10 %", "> 10 %"),
    ]
    assert all(row.sentence and not row.remedy for row in verdict.criteria)


def test_one_recording_is_said_and_does_not_count():
    verdict = judge(replace(GOOD, spread=None))
    row = verdict.criteria[SPREAD]
    assert (row.text_value, row.grade, row.value) == ("not judged", None, None)
    assert verdict.grade == "good"
    assert verdict.reasons == ()


def test_sentences_name_the_worst_joints_and_the_weak_parameters():
    bad = replace(
        GOOD,
        unseen_percent=18.0,
        unseen_joints={"joint_1": 4.0, "joint_2": 31.0, "joint_3": nan},
        relative_sigmas=sigmas(1, 5),
        spread=5.0,
        spread_names=("Fvm1", "warm"),
    )
    verdict = judge(bad)
    texts = {reason.criterion: reason for reason in verdict.reasons}
    error = texts["unseen relative error"]
    assert "18 %; worst: joint_2 31 %, joint_1 4 %" in error.text
    assert error.remedy.startswith("look at joint_2 first")
    known = texts["parameters with sigma <= 20 %"]
    assert "1 of 6" in known.text
    assert "weak: B4 25 %, B3 24 %, B2 23 % and 2 more" in known.text
    assert "Fvm1 in 'warm' disagrees most" in texts["spread of recordings over sigma"].text


def test_three_joints_are_named_at_most():
    errors = {"joint_1": 4.0, "joint_2": 31.0, "joint_3": 7.0, "joint_4": 9.0, "joint_5": 5.0}
    named = judge(replace(GOOD, unseen_joints=errors)).criteria[ERROR].sentence
    assert named.endswith("worst: joint_2 31 %, joint_4 9 %, joint_3 7 %")
    three = {"joint_1": 11.0, "joint_2": 30.0, "joint_3": 20.0}
    lacking = [
        judge(replace(GOOD, patterns=one)).criteria[PATTERN].sentence for one in (three, {**three, "joint_4": 12})
    ]
    assert "an effect on joint_1, joint_2, joint_3: a pattern explains up to 30 %" in lacking[0]
    assert "an effect on joint_1, joint_2, joint_3 and more: a pattern explains up to 30 %" in lacking[1]


def test_without_patterns_and_equations_their_rows_show_nothing():
    rows = judge(replace(GOOD, patterns={}, correlation=())).criteria
    assert (rows[PATTERN].value, rows[PATTERN].text_value) == (0.0, "0 %")
    assert rows[CORRELATION].value == 0.0


def test_an_error_that_is_all_noise_has_another_remedy():
    noisy = judge(replace(GOOD, fit_percent=20.0, unseen_percent=20.0, noise_limited=True))
    assert "less noise" in noisy.reasons[0].remedy
    wrong = judge(replace(GOOD, fit_percent=20.0, unseen_percent=20.0))
    assert "joint_2" in wrong.reasons[0].remedy


def test_an_error_as_large_as_the_torque_is_never_called_noise():
    lost = judge(replace(GOOD, fit_percent=90.0, unseen_percent=90.0, noise_limited=True))
    assert "noise" not in lost.reasons[0].remedy
    assert "does not describe" in lost.reasons[0].remedy


@pytest.mark.parametrize(("ratio", "text"), [(1030.0, "mA read as A"), (0.0009, "mA read as A"), (0.08, "drive gain")])
def test_a_wrong_size_names_the_factor(ratio, text):
    (reason,) = judge(replace(GOOD, **of_size(ratio))).reasons
    assert text in reason.remedy


@pytest.mark.parametrize(("heaviness", "grade"), [(0.029, "poor"), (0.03, "good"), (3000.0, "good"), (3001.0, "poor")])
def test_without_inertias_in_the_robot_file_the_reach_tells_the_size(heaviness, grade):
    assert judge(replace(GOOD, **plausible(scales=(), heaviness=heaviness))).criteria[SCALE].grade == grade


def test_torques_unlike_those_of_the_file_say_nothing_of_the_size():
    assert judge(replace(GOOD, **of_size(50.0, likeness=0.5))).criteria[SCALE].grade is None


def test_correlation_that_is_not_explained_names_the_equation():
    verdict = judge(replace(GOOD, **left(0.4, 1e-9)))
    assert verdict.criteria[CORRELATION].text_value == "unexplained"
    assert "joint_4 (joint)" in verdict.reasons[0].text
    assert "record the motion again" in verdict.reasons[0].remedy
    strong = judge(replace(GOOD, correlation=[replace(WHITE, lag_one=0.8)]))
    assert "the intervals include it" in strong.reasons[0].remedy


def test_without_effort_limits_the_torque_is_not_judged():
    row = judge(replace(GOOD, **plausible(effort=None))).criteria[EFFORT]
    assert (row.grade, row.question) == (None, "plausible")
    assert "no effort limits" in row.sentence


def test_cautions_follow_the_reasons_and_change_their_question_only_if_they_say_so():
    caution = Reason("unseen motion is faster", "record faster motion")
    verdict = judge(replace(GOOD, condition=50.0), cautions=[caution])
    assert verdict.questions["known"] == "fair"
    assert verdict.reasons[-1] == caution
    assert len(verdict.reasons) == 2
    assert judge(GOOD, cautions=[caution]).grade == "good"
    poor = replace(caution, grade="poor", question="predicts")
    assert judge(GOOD, cautions=[poor]).questions["predicts"] == "poor"
    assert judge(replace(GOOD, condition=50.0), cautions=[caution, poor]).reasons[0] == poor


def test_thresholds_can_be_set():
    strict = Thresholds(condition_good=5.0, condition_fair=10.0)
    assert judge(GOOD, strict).questions["known"] == "poor"
    assert judge(GOOD, Thresholds(relative_sigma=3.0)).questions["known"] == "poor"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"error_good": nan}, "error_good: got nan"),
        ({"spread_fair": -1.0}, "spread_fair: got -1"),
        ({"ratio_good": 3.0}, "ratio_good: got 3, allowed is at most ratio_fair, 2"),
        ({"known_fair": 90.0}, "known_fair: got 90"),
    ],
)
def test_thresholds_that_make_no_sense_are_refused(change, message):
    with pytest.raises(EstimateError, match=message):
        Thresholds(**change)


@pytest.mark.parametrize("field", ["fit_percent", "unseen_percent", "condition", "spread"])
def test_a_missing_number_is_refused(field):
    with pytest.raises(EstimateError, match="verdict: got nan"):
        judge(replace(GOOD, **{field: nan}))


def test_sigmas_that_do_not_know_of_the_correlation_are_called_too_small():
    strong = replace(GOOD, correlation=[replace(GOOD.correlation[0], lag_one=0.8)])
    sentence = judge(strong).reasons[0].text
    silent = judge(replace(strong, correlation_in_sigmas=False)).reasons[0].text
    assert "as much larger" in sentence
    assert "too small" in silent


def test_of_several_unexplained_equations_the_largest_correlation_is_named():
    several = [
        ResidualCorrelation("joint", f"joint_{k}", 0.1, size, 1e-9) for k, size in ((2, 0.3), (4, 0.6), (5, 0.5))
    ]
    text = judge(replace(GOOD, correlation=several)).reasons[0].text
    assert "by up to 0.6 (joint_4)" in text


def test_values_that_no_arm_can_have_are_named_with_their_share_of_the_torque():
    (poor,) = judge(replace(GOOD, **negative(0.25))).reasons
    assert poor.text == "no arm can have these values: Fvm2 -1 +- 0.1, 25 % of the torque of joint_2"
    assert poor.remedy.endswith("torque and position columns in the set-up")
    (fair,) = judge(replace(GOOD, **negative(0.01))).reasons
    assert fair.remedy.endswith("in the set-up; values this small may also be what the model lacks")
    small = [Impossible(f"Fvm{k}", f"joint_{k}", -1.0, 0.1, 0.01) for k in range(1, 5)]
    row = judge(replace(GOOD, **plausible(impossible=tuple(small)))).criteria[IMPOSSIBLE]
    assert (row.value, row.text_value) == (4, "4")
    assert row.sentence.endswith("of joint_3 and 1 more")
    assert judge(GOOD).criteria[IMPOSSIBLE].sentence == "no value is one that no arm can have"


@pytest.mark.parametrize(
    ("ratio", "likely"),
    [
        (120.0, "about 100 is a unit"),
        (0.009, "about 0.01 is a unit"),
        (28.0, "about 28 is a drive gain or a gear ratio"),
    ],
)
def test_a_size_wrong_by_a_hundred_is_a_unit_and_by_less_a_gain(ratio, likely):
    (reason,) = judge(replace(GOOD, **of_size(ratio))).reasons
    assert f"a factor of {likely}" in reason.remedy


def test_torques_that_follow_from_no_inertia_at_all_are_of_a_wrong_size():
    row = judge(replace(GOOD, **of_size(0.0))).criteria[SCALE]
    assert (row.grade, row.value) == ("poor", 0.0)
    assert "a factor of about 0 is a drive gain" in row.remedy


def test_without_inertias_and_reach_the_size_is_not_judged():
    row = judge(replace(GOOD, **plausible(scales=()))).criteria[SCALE]
    assert (row.name, row.question, row.grade) == ("inertia over reach^5, kg/m^3", "plausible", None)
    assert (row.good, row.sentence) == ("0.03 to 3000", "the robot file has no inertias to compare with")


def test_the_worst_joint_is_named_with_its_columns():
    (reason,) = judge(replace(GOOD, **plausible(worst_joint=("joint_2 (motor)", 40.0)))).reasons
    assert reason.text.startswith("40 % of the torque of joint_2 (motor) is not explained")
    assert "the columns of joint_2 and its neighbours" in reason.remedy


def test_a_torque_of_which_nothing_is_explained_is_told_where_no_other_is_worse():
    unexplained = {"unexplained": ("joint_2 (motor)", 101.0)}
    for worst in (None, ("joint_1 (motor)", 50.0)):
        row = judge(replace(GOOD, **plausible(**unexplained, worst_joint=worst))).criteria[JOINT]
        assert row.sentence.startswith("nothing of the torque of joint_2 (motor) is explained (101 %)")
        assert row.remedy == "check the columns of joint_2 in the set-up; do not use its parameters"
    row = judge(replace(GOOD, **plausible(**unexplained, worst_joint=("joint_1 (motor)", 50.1)))).criteria[JOINT]
    assert row.sentence.startswith("50.1 % of the torque of joint_1 (motor)")


def test_without_a_torque_that_stands_out_no_joint_is_judged():
    row = judge(replace(GOOD, **plausible(worst_joint=None))).criteria[JOINT]
    assert (row.grade, row.value, row.question) == (None, None, "plausible")
    assert row.sentence == "no torque stands above noise and bias of its sensor"


def test_without_errors_of_joints_none_is_named():
    row = judge(replace(GOOD, fit_percent=20.0, unseen_percent=20.0, unseen_joints={"joint_3": nan})).criteria[ERROR]
    assert row.sentence == "the relative error on unseen motion is 20 %"
    assert row.remedy.startswith("what its residuals depend on says which effect")


@pytest.mark.parametrize(
    ("fit", "unseen", "grade"),
    [(5.0, 2.4, "good"), (5.1, 2.6, "good"), (5.1, 2.5, "fair"), (15.0, 2.0, "fair"), (15.1, 2.0, "poor")],
)
def test_a_fit_far_worse_than_unseen_motion_has_a_recording_unlike_the_others(fit, unseen, grade):
    evidence = replace(GOOD, fit_percent=fit, unseen_percent=unseen)
    row = judge(evidence).criteria[RATIO]
    assert row.grade == grade
    assert ("a recording that was fitted is unlike the others" in row.sentence) is (grade != "good")
    assert ("identify the recordings one by one" in row.remedy) is (grade != "good")
    robust = judge(replace(evidence, is_robust=True)).criteria[RATIO]  # outliers count in its error
    assert robust.grade == "good"


def test_a_condition_number_that_is_not_good_says_what_it_means():
    assert judge(GOOD).criteria[CONDITION].sentence == "the condition number with normalised columns is 12"
    (reason,) = judge(replace(GOOD, condition=31.0)).reasons
    assert reason.text.endswith("columns is 31: some parameters are hardly distinguishable")
    assert judge(replace(GOOD, condition=30.0)).criteria[CONDITION].sentence.endswith("columns is 30")


def test_without_essential_parameters_none_is_known():
    row = judge(replace(GOOD, relative_sigmas={})).criteria[KNOWN]
    assert (row.value, row.text_value) == (0.0, "0 %")
    assert row.sentence == "0 of 0 essential parameters have a relative sigma of at most 20 %"
    row = judge(replace(GOOD, relative_sigmas=sigmas(3, 1))).criteria[KNOWN]
    assert (row.value, row.sentence) == (
        75.0,
        "3 of 4 essential parameters have a relative sigma of at most 20 %; weak: B0 21 %",
    )


def test_what_to_do_about_correlated_residuals_depends_on_what_sigmas_know():
    strong = replace(GOOD, correlation=[replace(WHITE, lag_one=-0.8), replace(WHITE, lag_one=0.3)])
    known, unknown = judge(strong).reasons[0], judge(replace(strong, correlation_in_sigmas=False)).reasons[0]
    assert known.text == (
        "neighbouring residuals of joint_1 (motor) correlate by up to 0.8 beyond the decimator; the noise model "
        "has it, and the sigmas are as much larger"
    )
    assert known.remedy.startswith("the intervals include it")
    assert unknown.text.endswith("but the reported sigmas do not: they are too small")
    assert unknown.remedy.startswith("use sigmas that include it: --method gls")
    row = judge(strong).criteria[CORRELATION]
    assert (row.value, row.text_value) == (0.8, "strong")
    assert judge(GOOD).criteria[CORRELATION].sentence.startswith("neighbouring residuals correlate by at most 0.1")


def test_recordings_that_disagree_are_told_with_the_worst_or_without():
    named = replace(GOOD, spread=3.0, spread_names=("Fvm1", "warm"))
    assert judge(named).reasons[0].text.endswith("3.00 times what their sigmas allow; Fvm1 in 'warm' disagrees most")
    assert judge(replace(GOOD, spread=3.0)).reasons[0].text.endswith("3.00 times what their sigmas allow")


@pytest.mark.parametrize("field", ["fit_percent", "unseen_percent", "condition", "spread"])
def test_a_number_below_zero_is_refused_and_zero_is_allowed(field):
    with pytest.raises(EstimateError, match=r"verdict: got -0\.1 as .*, needed is a number of 0 and above"):
        judge(replace(GOOD, **{field: -0.1}))
    judge(replace(GOOD, **{field: 0.0}))
