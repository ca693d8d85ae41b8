"""Violations of joint limits by a motion."""

from __future__ import annotations

import numpy as np
import pytest

from arms import arm
from steelyard.errors import MotionError
from steelyard.motion import (
    fourier,
    limit_violations,
    limits_of,
    motion_limits,
    move_durations,
    quintic,
    quintic_profile,
)
from steelyard.robot import load_robot


def test_the_limits_are_those_of_the_description():
    limits = limits_of(load_robot("kuka_lwr4"))
    assert limits.joints == tuple(f"joint_{k}" for k in range(1, 8))
    np.testing.assert_allclose(np.rad2deg(limits.upper), [170, 120, 170, 120, 170, 120, 170])
    np.testing.assert_allclose(limits.lower, -limits.upper)
    np.testing.assert_allclose(np.rad2deg(limits.velocity), [110, 110, 128, 128, 180, 180, 180])
    assert (limits.acceleration == np.inf).all()
    assert not limits.velocity.flags.writeable


def test_a_motion_within_limits_breaks_none():
    robot = load_robot("scara_2r")
    assert limit_violations(quintic([[0, 0.4, 0], [0, 2.5, 0]], 1.0, ["joint_1", "joint_2"]), robot) == ()


def test_each_broken_limit_is_told_with_its_size_and_time():
    robot = load_robot("scara_2r")  # 150 deg; 6 and 12 rad/s
    motion = quintic([[0, -3.0, 0], [0, 1.0, 0]], [1.0, 0.5], ["joint_1", "joint_2"])
    lower, velocity = limit_violations(motion, robot)
    assert (lower.joint, lower.quantity, lower.time) == ("joint_1", "lower", pytest.approx(1.0))
    assert (lower.value, lower.limit) == (-3.0, pytest.approx(-np.deg2rad(150)))
    assert velocity == ("joint_1", "velocity", pytest.approx(15 / 8 * 3 / 0.5), 6.0, pytest.approx(1.25))


def test_a_peak_between_samples_is_found():
    robot = load_robot("scara_2r")
    limit = robot.joint("joint_1").limits.velocity
    w = 2 * np.pi
    motion = fourier([0, 0], [[limit * (1 + 1e-6) / w], [0]], [[0], [0]], 1.0, ["joint_1", "joint_2"])
    assert (np.abs(motion.at([0.2, 0.4, 0.6]).qd[0]) < limit).all()
    (found,) = limit_violations(motion, robot)
    assert found.quantity == "velocity"
    assert found.value == pytest.approx(limit * (1 + 1e-6), rel=1e-12)


def test_a_motion_that_just_reaches_its_limit_is_allowed():
    robot = load_robot("scara_2r")
    limits = limits_of(robot)
    for seed in range(50):
        points = np.random.default_rng(seed).uniform(-1, 1, (2, 4))
        motion = quintic(points, move_durations(points, limits, quintic_profile()), limits.joints)
        assert limit_violations(motion, robot) == ()


def test_rows_are_matched_by_name_not_by_place():
    robot = load_robot("scara_2r")
    points = np.array([[0, 0.1, 0], [0, 3.0, 0]])
    straight = limit_violations(quintic(points, 1.0, ["joint_1", "joint_2"]), robot)
    assert straight == limit_violations(quintic(points[::-1], 1.0, ["joint_2", "joint_1"]), robot)
    assert {violation.joint for violation in straight} == {"joint_2"}


def test_a_motion_of_other_joints_is_refused():
    robot = load_robot("scara_2r")
    with pytest.raises(MotionError, match=r"moves joint 'joint_3'.*did you mean 'joint_"):
        limit_violations(quintic([[0, 1], [0, 1], [0, 1]], 1.0, ["joint_1", "joint_2", "joint_3"]), robot)
    with pytest.raises(MotionError, match="has no joint 'joint_2'"):
        limit_violations(quintic([[0, 1]], 1.0, ["joint_1"]), robot)


def test_joints_without_limits_break_none():
    robot = arm("sliding_tree")
    names = limits_of(robot).joints
    motion = quintic(np.tile([0.0, 1e-3], (len(names), 1)), 100.0, names)
    assert limit_violations(motion, robot) == ()


def test_motor_positions_are_not_held_against_joint_limits():
    robot = load_robot("staubli_tx40").in_motor_coordinates()
    motion = quintic(np.zeros((6, 2)), 1.0, limits_of(robot).joints)
    with pytest.raises(MotionError, match="described in motor positions"):
        limit_violations(motion, robot)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"lower": 1.0, "upper": 0.5}, "joint 'a': lower limit 1 is above upper limit 0.5"),
        ({"velocity": [1.0, 0.0]}, "joint 'b': velocity limit is 0; allowed is above 0"),
        ({"jerk": -1.0}, "jerk limit is -1"),
        ({"acceleration": [1.0]}, r"acceleration has shape \(1,\)"),
        ({"velocity": np.nan}, "velocity is nan"),
    ],
)
def test_limits_that_make_no_sense_are_refused(given, message):
    with pytest.raises(MotionError, match=message):
        motion_limits(["a", "b"], **given)


@pytest.mark.parametrize(("excess", "count"), [(1e-10, 0), (1e-8, 1)])
def test_rounding_is_no_violation_and_a_hundred_times_that_is_one(excess, count):
    robot = load_robot("scara_2r")
    limit = robot.joint("joint_1").limits.velocity
    reach = limit * (1 + excess) / (2 * np.pi)
    motion = fourier([0, 0], [[reach], [0]], [[0], [0]], 1.0, ["joint_1", "joint_2"])
    assert len(limit_violations(motion, robot)) == count


def test_motor_positions_of_an_arm_without_coupled_gears_are_its_joint_positions():
    robot = load_robot("scara_2r").in_motor_coordinates()
    motion = quintic(np.zeros((2, 2)), 1.0, limits_of(robot).joints)
    assert limit_violations(motion, robot) == ()


def test_limits_that_are_not_given_are_infinite_and_one_number_is_for_all():
    limits = motion_limits(["a", "b"], velocity=0.5, jerk=[0.1, 7.0])
    assert limits.lower.tolist() == [-np.inf] * 2
    assert limits.upper.tolist() == limits.acceleration.tolist() == [np.inf] * 2
    assert (limits.velocity.tolist(), limits.jerk.tolist()) == ([0.5, 0.5], [0.1, 7.0])


def test_a_joint_may_be_held_in_one_place():
    limits = motion_limits(["a"], lower=0.3, upper=0.3)
    assert (limits.lower.tolist(), limits.upper.tolist()) == ([0.3], [0.3])


@pytest.mark.parametrize(("place", "broken"), [(2.7, "upper"), (-2.7, "lower")])
def test_each_end_of_a_range_is_a_limit_of_its_own(place, broken):
    (found,) = limit_violations(quintic([[0, place], [0, 0]], 2.0, ["joint_1", "joint_2"]), load_robot("scara_2r"))
    assert (found.quantity, found.value) == (broken, pytest.approx(place))
    assert found.limit == pytest.approx(np.sign(place) * np.deg2rad(150))
    assert found.time == pytest.approx(2.0)
