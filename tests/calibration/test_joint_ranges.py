"""Errors that gather in a range of a joint are distinguished from scattered ones at a stated false-alarm rate."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.calibration.fit.joint_ranges import (
    CLUSTER_FALSE_ALARM,
    JointRange,
    clustered_ranges,
    joint_range_from_json,
    joint_range_to_json,
)
from steelyard.calibration.records import MeasuredJoint


def joints(seed: int, count: int = 60) -> list[MeasuredJoint]:
    q = np.random.default_rng(seed).uniform(-3, 3, (6, count))
    return [MeasuredJoint(f"joint_{k + 1}", "rad", row) for k, row in enumerate(q)]


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda q: q > 1.2, "joint_3 above "),
        (lambda q: q < -1.5, "joint_3 below -"),
        (lambda q: np.abs(q) > 2.0, "joint_3 outside -"),
        (lambda q: np.abs(q) < 0.8, "joint_3 between -"),
    ],
)
def test_wrong_configurations_of_a_range_are_found_with_joint_and_ends(wrong, text):
    places = joints(0)
    (found,), chosen = clustered_ranges(places, wrong(places[2].q))
    assert found.where.startswith(text)
    assert found.p_value <= CLUSTER_FALSE_ALARM
    assert chosen.sum() >= 0.9 * wrong(places[2].q).sum()
    assert not chosen[~wrong(places[2].q)].any()


@pytest.mark.parametrize("share", [0.1, 0.2, 0.4])
def test_scattered_ones_are_in_no_range(share):
    for seed in range(4):
        wrong = np.random.default_rng(100 + seed).random(60) < share
        assert clustered_ranges(joints(seed), wrong)[0] == ()


@pytest.mark.large
def test_the_false_alarm_rate_holds():
    alarms = [
        len(clustered_ranges(joints(seed), np.random.default_rng(5000 + seed).random(60) < 0.2)[0]) > 0
        for seed in range(1500)
    ]
    assert np.mean(alarms) <= 2 * CLUSTER_FALSE_ALARM


def test_two_ranges_are_found_one_after_the_other():
    places = joints(1, 120)
    wrong = (places[0].q > 2.0) | (places[4].q < -2.0)
    found, chosen = clustered_ranges(places, wrong)
    assert {each.joint for each in found} == {"joint_1", "joint_5"}
    assert chosen.sum() >= 0.9 * wrong.sum()


def test_joints_that_stand_still_and_positions_that_repeat_do_no_harm():
    q = np.repeat(np.linspace(-1, 1, 10), 6)
    places = [MeasuredJoint("still", "rad", np.zeros(60)), MeasuredJoint("steps", "m", q)]
    (found,), _ = clustered_ranges(places, q > 0.5)
    assert found.where == "steps above 0.444 m"
    assert clustered_ranges([], q > 0.5)[0] == ()


def test_the_error_follows_the_joint_and_goes_on_growing():
    q = np.linspace(-2, 3, 51)
    error = np.where(q > 1.0, 1e-3 * (q - 1.0), 1e-5)
    found = JointRange("elbow", "rad", 1.05, np.inf).fitted(q, error)
    np.testing.assert_allclose(found.error_at(np.array([2.0, 2.5])), [1e-3, 1.5e-3], rtol=0.05)
    np.testing.assert_allclose(found.error_at(np.array([4.0])), 3e-3, rtol=0.1)
    assert not found.error_at(np.array([-2.0, 0.0, 1.0])).any()


def test_a_range_survives_json():
    first = JointRange("elbow", "rad", -np.inf, -1.5, False, 0.001, 12, 2.0, 0.1, (-2.0, -1.6), (2e-3, 1e-3))
    content = joint_range_to_json(first)
    assert (content["low"], content["high"]) == (None, -1.5)
    assert content["text"] == "points with elbow below -1.5 rad are 20 times worse than the others (2 against 0.1 mm)"
    assert vars(joint_range_from_json(content)) == vars(first)
