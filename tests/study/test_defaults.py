"""A motion and a noise for every arm that can be simulated."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.errors import SimulationError
from steelyard.motion import limit_violations
from steelyard.robot import catalogue_names, load_robot
from steelyard.study import StudySettings, default_motion, default_noise, montecarlo, study_configuration

SIMULATED = [name for name in catalogue_names() if "inertias" in load_robot(name).carries]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.large if name in ("kuka_lwr4", "franka_panda") else ())
        for name in SIMULATED
    ],
)
def test_every_arm_has_a_motion_within_its_limits_that_tells_all_its_parameters(name):
    robot = load_robot(name)
    motion = default_motion(robot)
    assert limit_violations(motion, robot) == ()
    noise = default_noise(robot, motion)
    assert set(noise) <= {"motor_noise", "joint_noise"}
    assert all(len(one["std"]) == len(robot.actuated) and min(one["std"]) > 0 for one in noise.values())
    settings = {**noise, "record_rate": 50.0, "control_rate": 50.0, "plant": "ideal"}
    (verdict,) = montecarlo(study_configuration(name, motion, settings, {}), StudySettings(("wls",), seeds=2)).verdicts
    assert verdict.failures == 0
    assert verdict.not_estimated == ()
    assert verdict.rms_over_bound is not None
    assert verdict.rms_over_bound < 3


def test_the_motion_is_the_same_every_time_and_another_for_another_seed():
    robot = load_robot("scara_2r")
    np.testing.assert_array_equal(default_motion(robot).sin, default_motion(robot).sin)
    assert not np.array_equal(default_motion(robot).sin, default_motion(robot, seed=1).sin)


def test_an_arm_without_inertias_is_refused():
    with pytest.raises(SimulationError, match=r"cannot be simulated: no inertia of link"):
        default_motion(load_robot("kuka_kr270"))
