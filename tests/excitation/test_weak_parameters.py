"""Weak parameters and what would help, against figures computed anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from random_motions import random_trajectory
from steelyard.excitation.information import unknowns
from steelyard.excitation.predicted_accuracy import (
    SLOWER,
    WEAK,
    Figures,
    Forecast,
    PredictedAccuracy,
    WeakParameter,
    weak_parameters,
)
from steelyard.model import build_model
from steelyard.motion import MotionLimits, Trajectory, at_speed, motion_limits, with_approach
from steelyard.robot import load_robot


def limits_at(trajectory: Trajectory, pace: float) -> MotionLimits:
    """Return limits that the first joint reaches at so many times the pace."""
    extrema = trajectory.extrema()
    return motion_limits(
        trajectory.joints, velocity=[pace * extrema.velocity.value[0], 1e3],
        acceleration=[3 * pace**2 * extrema.acceleration.value[0], 1e3],
    )  # fmt: skip


@pytest.fixture(scope="module")
def made() -> tuple[Trajectory, PredictedAccuracy, Figures, MotionLimits]:
    model = build_model(load_robot("scara_2r"))
    chosen = unknowns(model, np.array([3.0, 0.3]), 100.0, values=dict.fromkeys(model.names, 0.1))
    trajectory = random_trajectory("fourier", ("joint_1", "joint_2"), seed=2)
    accuracy = PredictedAccuracy(Forecast(chosen))
    return trajectory, accuracy, accuracy(trajectory), limits_at(trajectory, 1.5)


def test_the_weakest_come_first_and_the_strong_are_left_out(made):
    weak = weak_parameters(*made)
    relative = dict(zip(made[2].names, made[2].relative_sigma, strict=True))
    assert {one.name for one in weak} == {name for name, value in relative.items() if value > WEAK}
    assert 0 < len(weak) < len(relative)
    assert [one.relative for one in weak] == sorted((one.relative for one in weak), reverse=True)
    assert all(one.pace_left == pytest.approx(1.5) and one.payload == "none" for one in weak)


def test_each_factor_is_that_of_the_changed_experiment(made):
    trajectory, accuracy, figures, _ = made
    weighted = accuracy.information(trajectory)
    slow = accuracy.information(at_speed(trajectory, SLOWER)) * SLOWER
    for one in weak_parameters(*made):
        row = figures.names.index(one.name)
        assert one.longer == pytest.approx(1 / np.sqrt(2))
        slower = np.sqrt(np.linalg.inv(slow)[row, row])
        assert one.faster == pytest.approx(one.sigma / slower, rel=1e-8)
        assert one.others == pytest.approx(1 / np.sqrt(weighted[row, row]) / one.sigma, rel=1e-8)
        assert one.others <= 1 + 1e-12


def test_with_earlier_recordings_a_repetition_is_worth_less(made):
    trajectory, accuracy, _, limits = made
    weighted = accuracy.information(trajectory)
    informed = PredictedAccuracy(Forecast(replace(accuracy.unknowns, earlier=3 * weighted)))
    for one in weak_parameters(trajectory, informed, informed(trajectory), limits):
        assert one.longer == pytest.approx(np.sqrt(4 / 5))


def test_the_pace_left_is_that_of_the_motion_proper(made):
    trajectory, accuracy, _, limits = made
    # A way in that is faster than the motion itself would be reported as a limit that is reached.
    hasty = with_approach(trajectory, [0.0, 0.0], 0.3, 0.3)
    assert hasty.extrema().velocity.value.max() > trajectory.extrema().velocity.value.max()
    weak = weak_parameters(hasty, accuracy, accuracy(hasty), limits)
    assert weak
    assert all(one.pace_left == pytest.approx(1.5) for one in weak)


@pytest.mark.parametrize(
    ("weak", "message"),
    [
        (WeakParameter("ZZ1", 1.0, 0.5, 0.7, 0.9, 0.1, 1.5, "paired"), "mistaken for other parameters: more harmonics"),
        (WeakParameter("ZZ1", 1.0, 0.5, 0.7, 0.9, 0.1, 1.5, "loaded"), "record without the payload too"),
        (WeakParameter("ZZ1", 1.0, 0.5, 0.7, 0.6, 0.9, 1.0, "none"), "limits of speed are reached: raise them"),
        (
            WeakParameter("ZZ1", 1.0, 0.5, 0.7, 0.6, 0.9, 1.5, "none"),
            "move faster: 1.25 times the speed makes its sigma 0.6 times",
        ),
        (WeakParameter("ZZ1", 1.0, 0.5, 0.7, 0.9, 0.9, 1.5, "none"), "record longer: about 7 times as long"),
        (WeakParameter("ZZ1", 1.0, 5.0, 0.7, 0.9, 0.9, 1.5, "none"), "too small beside the noise"),
    ],
)
def test_the_remedy_is_what_helps_most(weak, message):
    assert message in weak.remedy
