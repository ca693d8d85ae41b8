"""Inverse and forward dynamics equal MuJoCo's to 1e-10 on every arm."""

from __future__ import annotations

import numpy as np
import pytest

from arms import ALL_ARMS, arm, inertias_of, motion_of
from oracles import NO_MUJOCO, mujoco_model
from steelyard.physics import forward_dynamics_function, inverse_dynamics_function
from steelyard.robot import inertia_from_parameters

mujoco = pytest.importorskip("mujoco", reason=NO_MUJOCO)


@pytest.mark.parametrize("name", ALL_ARMS)
def test_inverse_and_forward_dynamics_equal_mujoco(name):
    robot = arm(name)
    model = mujoco_model(robot)
    data = mujoco.MjData(model)
    chi, size = inertias_of(robot), len(robot.actuated)
    inverse, forward = inverse_dynamics_function(robot), forward_dynamics_function(robot)
    coupling, offset = robot.coupling()
    for q, qd, qdd in zip(*(part.T for part in motion_of(robot, 5)), strict=True):
        data.qpos[:], data.qvel[:], data.qacc[:] = coupling @ q + offset, coupling @ qd, coupling @ qdd
        mujoco.mj_inverse(model, data)
        tau = data.qfrc_inverse.copy()
        ours = np.array(inverse(q, qd, qdd, chi)).ravel()
        np.testing.assert_allclose(ours, coupling.T @ tau, rtol=0, atol=1e-10 * np.abs(tau).max())
        data.qfrc_applied[:] = tau
        mujoco.mj_forward(model, data)
        accelerations = np.array(forward(q, qd, coupling.T @ tau, chi, np.zeros(size))).ravel()
        np.testing.assert_allclose(coupling @ accelerations, data.qacc, rtol=0, atol=1e-10 * np.abs(data.qacc).max())


@pytest.mark.parametrize("name", ALL_ARMS)
def test_mujoco_took_our_masses_as_they_are(name):
    robot = arm(name)
    masses = [inertia_from_parameters(np.array(body.inertia))[2] for body in robot.bodies]
    np.testing.assert_allclose(mujoco_model(robot).body_mass[1:], masses, rtol=1e-14)
