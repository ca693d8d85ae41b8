"""What must hold of any arm: linearity, power balance, a positive definite inertia matrix."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from arms import ALL_ARMS, arm, inertias_of, motion_of
from steelyard.physics import (
    direction,
    energy_function,
    forward_part,
    gravity_function,
    inertia_matrix_function,
    inertial_regressor_function,
    inverse_dynamics_function,
    pose_function,
    symbolic_geometry,
    velocity_function,
)


@pytest.mark.parametrize("name", ALL_ARMS)
def test_torques_are_the_regressor_times_the_parameters(name):
    robot = arm(name)
    chi = np.random.default_rng(3).normal(size=10 * len(robot.bodies))
    regressor, inverse = inertial_regressor_function(robot), inverse_dynamics_function(robot)
    for q, qd, qdd in zip(*(part.T for part in motion_of(robot, 4)), strict=True):
        tau = np.array(inverse(q, qd, qdd, chi)).ravel()
        np.testing.assert_allclose(np.array(regressor(q, qd, qdd)) @ chi, tau, rtol=0, atol=1e-12 * np.abs(tau).max())


@pytest.mark.parametrize("name", ALL_ARMS)
def test_torque_splits_into_inertia_velocity_and_gravity_terms(name):
    robot, chi = arm(name), inertias_of(arm(name))
    matrix, velocity = inertia_matrix_function(robot), velocity_function(robot)
    gravity, inverse = gravity_function(robot), inverse_dynamics_function(robot)
    q, qd, qdd = (part[:, 0] for part in motion_of(robot, 1))
    total = np.array(matrix(q, chi)) @ qdd + np.array(velocity(q, qd, chi) + gravity(q, chi)).ravel()
    tau = np.array(inverse(q, qd, qdd, chi)).ravel()
    np.testing.assert_allclose(total, tau, rtol=0, atol=1e-12 * np.abs(tau).max())


@pytest.mark.parametrize("name", ALL_ARMS)
def test_power_of_the_joints_is_the_rate_of_energy(name):
    """dE/dt along the motion (by the chain rule on our own energies) equals tau . qd without friction."""
    robot, chi = arm(name), inertias_of(arm(name))
    size = len(robot.actuated)
    q, qd, qdd = (ca.SX.sym(word, size) for word in ("q", "qd", "qdd"))
    energy = ca.sum1(energy_function(robot)(q, qd, chi))
    rate = ca.mtimes(ca.jacobian(energy, q), qd) + ca.mtimes(ca.jacobian(energy, qd), qdd)
    power_from_energy = ca.Function("rate", [q, qd, qdd], [rate])
    inverse = inverse_dynamics_function(robot)
    for sample in zip(*(part.T for part in motion_of(robot, 4)), strict=True):
        tau = np.array(inverse(*sample, chi)).ravel()
        scale = np.abs(tau * sample[1]).sum()
        assert abs(float(power_from_energy(*sample)) - tau @ sample[1]) <= 1e-11 * scale


@pytest.mark.parametrize("name", ALL_ARMS)
def test_inertia_matrix_is_symmetric_and_positive_definite(name):
    robot, chi = arm(name), inertias_of(arm(name))
    function = inertia_matrix_function(robot)
    for q in motion_of(robot, 10)[0].T:
        matrix = np.array(function(q, chi))
        np.testing.assert_allclose(matrix, matrix.T, rtol=0, atol=1e-13 * np.abs(matrix).max())
        assert np.linalg.eigvalsh(matrix)[0] > 0


@pytest.mark.parametrize("name", ALL_ARMS)
def test_symbolic_geometry_at_its_nominal_values_is_the_exact_one(name):
    robot = arm(name)
    geometry = symbolic_geometry(robot)
    assert len(set(geometry.names)) == len(geometry.names) == len(geometry.nominal)
    for frame in robot.frames:
        symbolic, exact = pose_function(robot, frame, geometry), pose_function(robot, frame)
        q = motion_of(robot, 1)[0][:, 0]
        np.testing.assert_allclose(
            np.array(symbolic(q, geometry.nominal)), np.array(exact(q, [])), rtol=0, atol=1e-14 * 10
        )


def test_right_angles_leave_no_rounding_in_the_graph():
    """The LWR4+ has right angles only: every structural zero of Newton-Euler drops out."""
    regressor = inertial_regressor_function(arm("kuka_lwr4"))
    assert regressor.nnz_out(0) == 252
    assert regressor.n_instructions() < 2500


def test_the_sign_of_zero_is_zero_and_the_smooth_sign_has_the_stated_width():
    v = ca.SX.sym("v")
    sharp = ca.Function("sharp", [v], [direction(v), forward_part(v)])
    assert [float(value) for value in sharp(0.0)] == [0.0, 0.0]
    assert [float(value) for value in sharp(-2.0)] == [-1.0, 0.0]
    assert [float(value) for value in sharp(1e-300)] == [1.0, 1.0]
    smooth = ca.Function("smooth", [v], [direction(v, 0.1), forward_part(v, 0.1)])
    assert float(smooth(0.1)[0]) == pytest.approx(0.7616, abs=1e-4)
    assert float(smooth(0.2)[0]) == pytest.approx(0.9640, abs=1e-4)
    assert 1 - float(smooth(1.0)[0]) < 1e-8
    assert float(smooth(0.0)[1]) == 0.5
