"""Which joints move."""

from __future__ import annotations

import numpy as np

from steelyard.observe import coupled_motors, moving_joints
from steelyard.robot import load_robot

STANDSTILL = np.array([0.1, 0.1, 0.2])


def test_a_joint_moves_at_its_standstill_speed_and_faster():
    qd = np.array([[0.1, 0.05, -0.3], [0.0, -0.1, 0.2], [0.2, 0.19, -0.2]])
    expected = [[True, False, True], [False, True, True], [True, False, True]]
    np.testing.assert_array_equal(moving_joints(qd, STANDSTILL, np.eye(3)), expected)
    assert coupled_motors(np.eye(3)) == []


def test_where_a_coupled_motor_stands_still_both_its_joints_do():
    coupling = np.eye(3)
    coupling[2, 1] = -2.0  # the third motor turns with twice the second joint, backwards
    qd = np.array([[1.0, 1.0, 1.0], [0.5, 0.5, 0.5], [0.9, 1.0, 1.3]])
    expected = [[True, True, True], [False, False, True], [False, False, True]]
    np.testing.assert_array_equal(moving_joints(qd, STANDSTILL, coupling), expected)
    assert coupled_motors(coupling) == [(2, 1)]


def test_the_wrist_of_a_tx40_is_coupled():
    assert coupled_motors(load_robot("staubli_tx40").motor_coupling()) == [(5, 4)]
