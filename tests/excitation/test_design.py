"""A whole design: its parts agree with each other, and so does its JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from steelyard.errors import DesignError
from steelyard.excitation import Design, DesignSettings, design_limits, design_to_json
from steelyard.excitation import design as design_experiment
from steelyard.motion import at_speed, fourier, motion_limits
from steelyard.robot import load_robot

SCARA = load_robot("scara_2r")
QUICK = DesignSettings(starts=1, harmonics=3, duration=8.0)
START = [1.0, -1.0]


@pytest.fixture(scope="module")
def design() -> Design:
    return design_experiment(SCARA, QUICK, start=START)


def test_a_start_posture_gets_a_way_in_and_out_that_keeps_every_limit(design):
    trajectory = design.trajectory
    ends = trajectory.at([0.0, trajectory.duration])
    np.testing.assert_allclose(ends.q, np.array([START, START]).T, atol=1e-12)
    np.testing.assert_allclose(ends.qd, 0.0, atol=1e-12)
    begin, end = trajectory.core_interval
    assert 0 < begin < end < trajectory.duration
    assert end - begin == pytest.approx(8.0)
    assert design.certificate.holds
    design.check(trajectory)
    assert design.certifier(trajectory).findings == design.certificate.findings


def test_slower_is_allowed_and_more_is_not(design):
    design.check(at_speed(design.trajectory, 0.5))
    large = fourier([0.0, 0.0], [[0.0], [0.0]], [[3.0], [0.1]], 20.0, ("joint_1", "joint_2"))
    with pytest.raises(DesignError, match=r"the motion of 20 s does not keep '.* of joint_1': .* it was not written"):
        design.check(large)


def test_the_value_told_is_that_of_the_recording(design):
    assert design.objective == "d"
    assert design.value == pytest.approx(design.figures.log10_det_covariance)
    assert design.goals == ()
    finals = [start.final for start in design.starts if start.final is not None]
    assert min(finals) == pytest.approx(design.value, abs=0.5)


def test_it_is_told_as_json(design):
    content = json.loads(json.dumps(design_to_json(design), allow_nan=False))
    assert content["criterion"] == "d"
    assert set(content["condition_number"]) == {"raw", "normalised", "weighted"}
    assert content["predicted_sigma"] == pytest.approx(
        dict(zip(design.figures.names, design.figures.sigma, strict=True))
    )
    assert {row["name"] for row in content["constraints"]} == {one.name for one in design.certificate.findings}
    assert all(row["violation"] == 0 for row in content["constraints"])
    assert set(content["random_baseline"]) >= {"condition_number", "log10_det_covariance", "predicted_sigma"}
    assert [start["origin"] for start in content["starts"]] == [None]


def test_goals_are_told_with_what_was_reached():
    settings = replace(QUICK, goals=(("condition", 10.0), ("mean_torque of joint_2", 15.0)))
    design = design_experiment(SCARA, settings)
    assert design.objective == "goals"
    misses = [(reached - wanted) / wanted for _, wanted, reached in design.goals]
    assert design.value == pytest.approx(max(misses))
    assert {name: reached for name, _, reached in design.goals}["condition"] == pytest.approx(design.figures.raw)


def test_a_free_duration_lies_within_its_bounds():
    design = design_experiment(SCARA, replace(QUICK, duration=(6.0, 9.0), criterion="condition_weighted"))
    assert 6.0 - 1e-9 <= design.trajectory.duration <= 9.0 + 1e-9
    assert design.certificate.holds
    assert design.value == pytest.approx(design.figures.weighted)


@pytest.mark.large
def test_a_straight_way_that_breaks_a_limit_is_left_out_and_this_is_said():
    limits = replace(
        design_limits(SCARA),
        motion=motion_limits(("joint_1", "joint_2"), lower=-1, upper=1, velocity=1e-3, acceleration=50.0),
    )
    design = design_experiment(SCARA, replace(QUICK, duration=30.0), limits=limits, start=[0.99, -0.99])
    assert any(
        "no straight way from the start posture into the motion keeps 'velocity of" in note for note in design.notes
    )
    assert design.trajectory.duration == pytest.approx(30.0)
    assert design.certificate.holds
