"""Random via points within limits, and durations from limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.errors import MotionError
from steelyard.motion import (
    limit_violations,
    limits_of,
    motion_limits,
    move_durations,
    quintic,
    quintic_profile,
    random_points,
    trapezoidal,
    trapezoidal_profile,
)
from steelyard.robot import load_robot


def test_the_motion_of_p5_keeps_its_limits():
    robot = load_robot("kuka_lwr4")
    limits = limits_of(robot)
    for seed in range(20):
        points = random_points(limits, 44, 2.0, trapezoidal_profile(), np.random.default_rng(seed))
        assert points.shape == (7, 46)
        assert (points[:, [0, -1]] == 0).all()
        assert (np.abs(points) <= 0.9 * limits.upper[:, None] * (1 + 1e-12)).all()
        motion = trapezoidal(points, 2.0, limits.joints)
        assert motion.duration == 90.0
        assert limit_violations(motion, robot) == ()
        used = motion.extrema().velocity.value / limits.velocity
        assert (used <= 0.95 * (1 + 1e-12)).all()
        assert used.max() == pytest.approx(0.95, rel=1e-12)


def test_points_fill_the_range_uniformly_where_no_step_is_cut():
    limits = motion_limits(["a"], lower=-1.0, upper=3.0)
    points = random_points(limits, 20_000, 1.0, quintic_profile(), np.random.default_rng(1))
    inner = (points[0, 1:-1] - 1.0) / (0.9 * 2)  # in -1 to 1
    assert np.abs(inner).max() <= 1 + 1e-12
    # Mean 0 and variance 1/3 of the uniform law, within four standard errors.
    assert abs(inner.mean()) < 4 * np.sqrt(1 / 3 / 20_000)
    assert abs((inner**2).mean() - 1 / 3) < 4 * np.sqrt(4 / 45 / 20_000)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_no_limit_is_broken_whatever_the_durations(seed):
    rng = np.random.default_rng(seed)
    middle, half = rng.normal(size=3), rng.uniform(0.5, 3, 3)
    rates = rng.uniform(0.5, 3, (3, 3)) * [[1], [5], [50]]
    limits = motion_limits(
        ["a", "b", "c"],
        lower=middle - half,
        upper=middle + half,
        velocity=rates[0],
        acceleration=rates[1],
        jerk=rates[2],
    )
    count = int(rng.integers(1, 12))
    durations = rng.uniform(0.3, 2.0, count + 1)
    start = middle + half * rng.uniform(-1, 1, 3)
    kinds = ((quintic_profile(), quintic), (trapezoidal_profile(), trapezoidal))
    profile, kind = kinds[rng.integers(2)]
    points = random_points(limits, count, durations, profile, rng, start=start)
    np.testing.assert_array_equal(points[:, [0, -1]], np.column_stack([start, start]))
    extrema = kind(points, durations, limits.joints).extrema()
    assert (extrema.lower.value >= limits.lower - 1e-12).all()
    assert (extrema.upper.value <= limits.upper + 1e-12).all()
    for name in ("velocity", "acceleration", "jerk"):
        assert (getattr(extrema, name).value <= 0.95 * getattr(limits, name) * (1 + 1e-9)).all(), name


def test_the_same_seed_gives_the_same_points():
    limits = limits_of(load_robot("kuka_lwr4"))
    first, second = (random_points(limits, 5, 1.0, quintic_profile(), np.random.default_rng(7)) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_a_stop_elsewhere_is_reached():
    limits = motion_limits(["a"], lower=-2, upper=2, velocity=1.0)
    points = random_points(limits, 3, 1.0, quintic_profile(), np.random.default_rng(0), start=[-0.9], stop=[0.9])
    steps = np.abs(np.diff(points))
    assert points[0, -1] == 0.9
    assert (steps <= 0.95 * 8 / 15 * (1 + 1e-12)).all()


@pytest.mark.parametrize(
    ("profile", "kind"),
    [
        (quintic_profile(), quintic),
        (trapezoidal_profile(), trapezoidal),
    ],
)
@pytest.mark.parametrize("rate", ["velocity", "acceleration", "jerk"])
def test_durations_from_limits_use_each_limit_fully(profile, kind, rate):
    points = np.array([[0, 1.0, -0.5], [0, 0.2, 2.0]])
    limits = motion_limits(["a", "b"], **{rate: [2.0, 3.0]})
    durations = move_durations(points, limits, profile, speed_fraction=0.5)
    for move in range(2):
        extrema = kind(points[:, move : move + 2], durations[move], ["a", "b"]).extrema()
        used = getattr(extrema, rate).value / [2.0, 3.0]
        assert used.max() == pytest.approx(0.5, rel=1e-12)


def test_the_tightest_of_all_limits_decides():
    points = [[0, 1.0]]
    loose = move_durations(points, motion_limits(["a"], velocity=1.0), quintic_profile())
    tight = move_durations(points, motion_limits(["a"], velocity=1.0, acceleration=0.1), quintic_profile())
    assert loose[0] == pytest.approx(15 / 8)
    assert tight[0] == pytest.approx(np.sqrt(10 / np.sqrt(3) / 0.1))
    longer = move_durations(points, motion_limits(["a"], velocity=1.0), quintic_profile(), shortest=5.0)
    assert longer[0] == 5.0


def test_a_move_that_goes_nowhere_needs_a_duration():
    limits = motion_limits(["a"], velocity=1.0)
    with pytest.raises(MotionError, match=r"move 2 takes no time.*give 'shortest'"):
        move_durations([[0, 1, 1]], limits, quintic_profile())
    with pytest.raises(MotionError, match="move 1 takes no time"):
        move_durations([[0, 1]], motion_limits(["a"]), quintic_profile())
    assert move_durations([[0, 1, 1]], limits, quintic_profile(), shortest=0.1)[1] == 0.1
    with pytest.raises(MotionError, match=r"shortest \[s\] is -1; allowed: a finite number of 0 or more"):
        move_durations([[0, 1, 1]], limits, quintic_profile(), shortest=-1)


GOOD = motion_limits(["a", "b"], lower=-1, upper=1, velocity=1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"limits": motion_limits(["a", "b"], velocity=1)}, "joint 'a': position limits are -inf and inf"),
        ({"count": 0}, "count is 0; allowed: a whole number from 1"),
        ({"durations": [1.0]}, r"durations has shape \(1,\); allowed is one number or \(4,\)"),
        ({"range_fraction": 1.1}, "range_fraction is 1.1; allowed: a finite number above 0 and at most 1"),
        ({"speed_fraction": 0}, "speed_fraction is 0"),
        ({"start": [0, 2]}, "start of joint 'b' is 2; its limits are -1 to 1"),
        ({"start": [0]}, r"start has shape \(1,\)"),
        ({"start": [-1, 0], "stop": [1, 0], "durations": 0.1}, "joint 'a': stop is 2 from start, but the moves reach"),
    ],
)
def test_bad_input_is_refused(changes, message):
    arguments = {
        "limits": GOOD,
        "count": 3,
        "durations": 1.0,
        "profile": quintic_profile(),
        "rng": np.random.default_rng(0),
        **changes,
    }
    with pytest.raises(MotionError, match=message):
        random_points(**arguments)
