"""Moves with a trapezoidal acceleration."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import cumulative_simpson, cumulative_trapezoid

from steelyard.errors import MotionError
from steelyard.motion import trapezoidal, trapezoidal_profile

SHAPES = [(0.125, 0.0), (0.25, 0.0), (0.05, 0.0), (0.1, 0.2), (0.15, 0.4), (0.01, 0.9)]


@pytest.mark.parametrize(("ramp", "cruise"), SHAPES)
def test_the_acceleration_is_a_trapezoid_up_and_one_down(ramp, cruise):
    distance, duration = -1.5, 2.0
    motion = trapezoidal([[0.5, 0.5 + distance]], duration, ["a"], ramp=ramp, cruise=cruise)
    hold = (1 - cruise - 4 * ramp) / 2
    knots = duration * np.cumsum([0, ramp, hold, ramp, cruise, ramp, hold, ramp])
    level = distance / duration**2 / (ramp + hold) * 2 / (1 + cruise)
    times = np.linspace(0, duration, 2001)
    expected = np.interp(times, knots, level * np.array([0, 1, 1, 0, 0, -1, -1, 0]))
    np.testing.assert_allclose(motion.at(times).qdd[0], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("ramp", "cruise"), SHAPES)
def test_velocity_and_position_are_integrals_of_the_acceleration(ramp, cruise):
    motion = trapezoidal([[0.3, 1.7]], 1.6, ["a"], ramp=ramp, cruise=cruise)
    # On a grid through the breaks both rules are exact: the acceleration is linear between them.
    times = np.concatenate([[0], *(np.linspace(a, b, 11)[1:] for a, b in pairwise(motion.breaks))])
    samples = motion.at(times)
    velocity = cumulative_trapezoid(samples.qdd[0], times, initial=0)
    np.testing.assert_allclose(samples.qd[0], velocity, rtol=0, atol=1e-12)
    position = 0.3 + cumulative_simpson(samples.qd[0], x=times, initial=0)
    np.testing.assert_allclose(samples.q[0, ::2], position[::2], rtol=0, atol=1e-12)


@pytest.mark.parametrize(("ramp", "cruise"), SHAPES)
def test_a_move_begins_and_ends_at_rest(ramp, cruise):
    points = np.random.default_rng(1).normal(size=(3, 5))
    motion = trapezoidal(points, [0.5, 1.0, 2.0, 0.7], ["a", "b", "c"], ramp=ramp, cruise=cruise)
    samples = motion.at([0, 0.5, 1.5, 3.5, 4.2])
    np.testing.assert_allclose(samples.q, points, rtol=0, atol=1e-13)
    np.testing.assert_allclose(samples.qd, 0, atol=1e-12)
    np.testing.assert_allclose(samples.qdd, 0, atol=1e-10)


@pytest.mark.parametrize(("ramp", "cruise"), SHAPES)
def test_the_peaks_are_those_of_the_profile(ramp, cruise):
    profile = trapezoidal_profile(ramp, cruise)
    extrema = trapezoidal([[0, 3.0]], 2.0, ["a"], ramp=ramp, cruise=cruise).extrema()
    assert extrema.velocity.value[0] == pytest.approx(profile.velocity * 3 / 2, rel=1e-12)
    assert extrema.acceleration.value[0] == pytest.approx(profile.acceleration * 3 / 4, rel=1e-12)
    assert extrema.jerk.value[0] == pytest.approx(profile.jerk * 3 / 8, rel=1e-12)
    assert profile.velocity == pytest.approx(2 / (1 + cruise))


def test_joints_move_in_step():
    motion = trapezoidal([[0, 1], [2, -1], [0.5, 0.5]], 1.0, ["a", "b", "c"])
    q = motion.sample(50).q
    np.testing.assert_allclose(q[1], 2 - 3 * q[0], rtol=0, atol=1e-14)
    assert (q[2] == 0.5).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ramp": 0.0}, "ramp is 0.0; allowed: a finite number above 0"),
        ({"ramp": 0.26}, r"ramp is 0.26 with cruise 0; allowed is at most \(1 - cruise\) / 4 = 0.25"),
        ({"ramp": 0.2, "cruise": 0.4}, "at most .* = 0.15"),
        ({"ramp": np.nan}, "ramp is nan; allowed: a finite number"),
        ({"ramp": "short"}, "ramp is 'short'; allowed: a finite number"),
        ({"cruise": 1.0}, "cruise is 1; allowed is from 0 to below 1"),
        ({"cruise": -0.1}, "cruise is -0.1"),
        ({"cruise": np.inf}, "cruise is inf; allowed: a finite number"),
        ({"durations": -1.0}, "durations is -1 s for move 1"),
        ({"points": [[0.0]]}, "at least 2"),
    ],
)
def test_bad_input_is_refused(changes, message):
    with pytest.raises(MotionError, match=message):
        trapezoidal(**{"points": [[0, 1]], "durations": 1.0, "joints": ["a"], **changes})
