"""Torques, rows and slopes against physics written out by hand and complex steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from arms import arm
from estimate.likelihood.periodic_arms import SCARA, WIDTH, scara_equations, scara_motion, scara_torques
from independent import complex_step
from steelyard.estimate.likelihood import motion_basis, torque_functions
from steelyard.model import build_model
from steelyard.observe import equations_of
from written_out import rows_at


def test_torques_and_slopes_of_p1_s_arm_are_those_of_its_printed_equations():
    coefficients, basis = scara_motion()
    motion = coefficients @ basis
    functions = torque_functions(scara_equations(), scara_equations().names)
    np.testing.assert_allclose(
        functions.torques(motion, motion[1], SCARA), scara_torques(motion, SCARA), rtol=1e-12, atol=1e-12
    )
    rows, slopes = functions.rows_and_slopes(motion, motion[1], SCARA)
    np.testing.assert_allclose(np.einsum("ect,c->et", rows, SCARA), scara_torques(motion, SCARA), atol=1e-12)
    for t in (0, 17, 40):
        at = motion[:, :, t]
        jacobian = complex_step(lambda x: scara_torques(x.reshape(3, 2, 1), SCARA)[:, 0], at.ravel())
        np.testing.assert_allclose(slopes[:, :, :, t].reshape(2, 6), jacobian, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("name", "measured"), [("kuka_ir361", "motor"), ("kuka_lwr4", "both")])
def test_slopes_are_those_of_an_independent_physics(name, measured):
    model = build_model(arm(name), measured=measured, sign_width=0.1)
    equations = equations_of(model)
    rng, joints = np.random.default_rng(1), len(equations.joints)
    columns = tuple(name for name in equations.names if name[0] != "I")[::5]
    theta, motion = rng.standard_normal(len(columns)), rng.standard_normal((3, joints, 2))
    rows, slopes = torque_functions(equations, columns).rows_and_slopes(motion, motion[1], theta)
    for t in range(2):

        def torques(x):
            q, qd, qdd = x.reshape(3, joints, 1)
            return rows_at(model, columns, (q, qd, qdd), loaded=False)[:, :, 0] @ theta

        at = motion[:, :, t].ravel()
        np.testing.assert_allclose(rows[:, :, t] @ theta, torques(at.astype(complex)).real, rtol=1e-9, atol=1e-9)
        jacobian = complex_step(torques, at)
        np.testing.assert_allclose(slopes[:, :, :, t].reshape(len(slopes), -1), jacobian, rtol=1e-9, atol=1e-9)


def test_the_exact_sign_is_taken_from_the_directions_and_has_no_slope():
    equations = scara_equations(0.0)
    coefficients, basis = scara_motion()
    motion = coefficients @ basis
    functions = torque_functions(equations, equations.names)
    assert functions.steps
    assert not torque_functions(scara_equations(WIDTH), equations.names).steps
    turned = motion[1] * [[1.0], [-1.0]]
    change = functions.torques(motion, turned, SCARA) - functions.torques(motion, motion[1], SCARA)
    np.testing.assert_allclose(change[1], -2 * SCARA[7] * np.sign(motion[1, 1]), rtol=1e-12)
    np.testing.assert_array_equal(change[0], 0)
    without = SCARA.copy()
    without[6:] = 0
    slopes = [functions.rows_and_slopes(motion, motion[1], theta)[1] for theta in (SCARA, without)]
    np.testing.assert_array_equal(slopes[0], slopes[1])


def test_functions_are_compiled_once_for_each_choice():
    equations = replace(scara_equations())
    first = torque_functions(equations, equations.names)
    assert torque_functions(equations, equations.names, sign_width=WIDTH) is first
    assert torque_functions(equations, equations.names, loaded=False) is first  # no payload, no difference
    assert torque_functions(equations, equations.names, sign_width=0.0) is not first
    assert torque_functions(equations, equations.names[:4]).columns == equations.names[:4]


def test_the_basis_differentiates_exactly():
    time = np.linspace(0, 3, 50)
    basis = motion_basis(time, 2.5, (1, 2, 4))
    assert basis.shape == (3, 7, 50)
    for order in range(2):
        slope = complex_step_in_time(time, order)
        np.testing.assert_allclose(basis[order + 1], slope, atol=1e-10)
    np.testing.assert_array_equal(basis[:, 0], [np.ones(50), np.zeros(50), np.zeros(50)])


def complex_step_in_time(time, order):
    """Return the derivative of sines and cosines, or of their derivatives written out."""
    moved = time + 1e-30j
    angular = 2 * np.pi / 2.5 * np.array([[1.0], [2.0], [4.0]])
    sines, cosines = np.sin(angular * moved), np.cos(angular * moved)
    one = np.ones((1, len(time)))
    rows = [one, sines, cosines] if order == 0 else [0 * one, angular * cosines, -angular * sines]
    return np.imag(np.concatenate(rows)) / 1e-30
