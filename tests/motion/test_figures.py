"""Figures of motions: exact extremes and the limits near them."""

from __future__ import annotations

import numpy as np
import pytest

from chart_data import array_of, example_failures
from steelyard.motion import Trajectory, motion_limits, quintic
from steelyard.motion.figures import motion_chart

MOTION = quintic([[0.0, 0.4, -0.3], [0.0, 0.5, 0.1]], 1.0, ["joint_1", "<b>joint</b>"])


def test_the_largest_values_are_drawn_not_those_of_a_grid():
    chart, extrema = motion_chart(MOTION), MOTION.extrema()
    drawn = [array_of(trace["y"]) for trace in chart.data]
    assert len(drawn) == 6
    for row in (0, 1):
        position, velocity, acceleration = drawn[3 * row : 3 * row + 3]
        assert position.max() == pytest.approx(extrema.upper.value[row], abs=1e-7)
        assert np.abs(velocity).max() == pytest.approx(extrema.velocity.value[row], rel=1e-6)
        assert np.abs(acceleration).max() == pytest.approx(extrema.acceleration.value[row], rel=1e-6)


def test_limits_near_the_motion_are_drawn_and_in_view():
    limits = motion_limits(MOTION.joints, lower=-0.5, upper=0.6, velocity=100.0)
    chart = motion_chart(MOTION, limits=limits)
    assert sorted({shape["y0"] for shape in chart.layout["shapes"]}) == [-0.5, 0.6]  # 100 rad/s would hide the motion
    low, high = chart.layout["yaxis"]["range"]
    assert low < -0.5 < 0.6 < high


def test_axes_have_units_and_names_are_text():
    titles = [motion_chart(MOTION, "scara_2r").layout[f"yaxis{k}"]["title"]["text"] for k in ("", 2, 3, 4)]
    assert titles[:3] == ["joint_1<br>[rad]", "[rad/s]", "[rad/s²]"]
    assert "&lt;b&gt;joint&lt;/b&gt;" in titles[3]
    assert motion_chart(MOTION).layout["yaxis2"]["title"]["text"] == "[rad/s or m/s]"


def test_the_example_runs():
    assert not example_failures(Trajectory.plot)
