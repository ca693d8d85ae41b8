"""Joint positions of elastic joints."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.errors import SignalError
from steelyard.signals import joint_positions


def test_the_joint_lags_the_motor_by_torque_over_stiffness():
    q = np.array([[0.1, 0.2], [1.0, 1.0], [0.0, 0.5]])
    torque = np.array([[100.0, -50.0], [7.5, 0.0], [3.0, 3.0]])
    expected = [[0.09, 0.205], [0.999, 1.0], [0.0, 0.5]]
    np.testing.assert_allclose(joint_positions(q, torque, np.array([1e4, 7500.0, np.inf])), expected)


@pytest.mark.parametrize("stiffness", [[0.0, 1.0], [-1.0, 1.0], [np.nan, 1.0], [1.0]])
def test_impossible_stiffness_is_refused(stiffness):
    with pytest.raises(SignalError, match="stiffness"):
        joint_positions(np.zeros((2, 3)), np.zeros((2, 3)), np.array(stiffness))


def test_torques_must_fit_the_positions():
    with pytest.raises(SignalError, match=r"got shape \(2, 4\), allowed is that of the positions \(2, 3\)"):
        joint_positions(np.zeros((2, 3)), np.zeros((2, 4)), np.ones(2))
