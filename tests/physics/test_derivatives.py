"""Compiled derivatives equal those of an independent numpy statement of the physics, by complex step, to 1e-9.

Central differences of the compiled function itself are the second witness (to what they can give).
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np
import pytest

import independent
from arms import ALL_ARMS, arm, inertias_of, motion_of
from steelyard.kernel import compile_batch
from steelyard.physics import (
    forward_dynamics_function,
    gravity_function,
    inertia_matrix_function,
    inertial_regressor_function,
    inverse_dynamics_function,
    pose_function,
    symbolic_geometry,
)
from steelyard.robot import catalogue_names


def compiled_jacobian(function: ca.Function, inputs: list[np.ndarray], by: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return value (m,) and dense Jacobian (m, k) by some inputs, both from compiled code."""
    symbols = [ca.SX.sym(f"x{k}", function.size1_in(k)) for k in range(function.n_in())]
    value = ca.vec(ca.densify(function(*symbols)))
    jacobian = ca.cse(ca.jacobian(value, ca.vertcat(*(symbols[k] for k in by))))
    kernel = compile_batch(ca.Function("derivative", symbols, [value, jacobian]))
    got, slopes = kernel.dense(*(np.asarray(x, float)[:, None] for x in inputs))
    return got[:, 0, 0], slopes[:, :, 0]


def assert_close(got: np.ndarray, wanted: np.ndarray, tolerance: float) -> None:
    np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance * max(np.abs(wanted).max(), 1e-6))


def split(x: np.ndarray, sizes: list[int]) -> list[np.ndarray]:
    return np.split(x, np.cumsum(sizes)[:-1])


IN_EVERY_RUN = ("scara_2r", "ur10e", *(name for name in ALL_ARMS if name not in catalogue_names()))
"""Arms of every kind; the others are tried by ``make test-all``."""


def arms_with(in_every_run: Sequence[str]) -> list:
    """Return all arms as parameters, all but these for ``make test-all``."""
    return [pytest.param(name, marks=() if name in in_every_run else pytest.mark.large) for name in ALL_ARMS]


@pytest.fixture(params=arms_with(IN_EVERY_RUN))
def case(request):
    return case_of(request.param)


@pytest.fixture(params=arms_with([name for name in IN_EVERY_RUN if name != "ur10e"]))
def small_case(request):
    """For what takes seconds with six joints; the longest arm of each run is in ``case``."""
    return case_of(request.param)


def case_of(name: str):
    robot = arm(name)
    q, qd, qdd = (part[:, 0] for part in motion_of(robot, 1, seed=2))
    return robot, q, qd, qdd, inertias_of(robot)


def test_inverse_dynamics_by_motion_and_parameters(case):
    robot, q, qd, qdd, chi = case
    function = inverse_dynamics_function(robot)
    got, slopes = compiled_jacobian(function, [q, qd, qdd, chi], [0, 1, 2, 3])
    sizes = [len(q), len(q), len(q), len(chi)]

    def theirs(x):
        return independent.inverse_dynamics(robot, *split(x, sizes))

    point = np.concatenate([q, qd, qdd, chi])
    assert_close(got, np.real(theirs(point)), 1e-12)
    assert_close(slopes, independent.complex_step(theirs, point), 1e-9)
    differences = independent.central_difference(lambda x: np.array(function(*split(x, sizes))), point)
    assert_close(slopes, differences, 1e-6)


def test_regressor_is_the_derivative_by_the_parameters_and_has_right_slopes_itself(small_case):
    robot, q, qd, qdd, chi = small_case
    got, slopes = compiled_jacobian(inertial_regressor_function(robot), [q, qd, qdd], [0, 1, 2])
    shape = (len(q), len(chi))

    def regressor(x):
        a, b, c = split(x, [len(q)] * 3)
        return np.column_stack([independent.inverse_dynamics(robot, a, b, c, unit) for unit in np.eye(len(chi))])

    point = np.concatenate([q, qd, qdd])
    assert_close(got.reshape(shape, order="F"), np.real(regressor(point)), 1e-12)
    theirs = independent.complex_step(lambda x: regressor(x).ravel(order="F"), point)
    assert_close(slopes, theirs, 1e-9)


def test_inertia_matrix_and_gravity_by_position(case):
    robot, q, _, _, chi = case
    still = np.zeros(len(q))
    got, slopes = compiled_jacobian(inertia_matrix_function(robot), [q, chi], [0])
    assert_close(got, np.real(independent.inertia_matrix(robot, q, chi)).ravel(order="F"), 1e-12)
    theirs = independent.complex_step(lambda x: independent.inertia_matrix(robot, x, chi).ravel(order="F"), q)
    assert_close(slopes, theirs, 1e-9)
    got, slopes = compiled_jacobian(gravity_function(robot), [q, chi], [0])
    assert_close(got, np.real(independent.inverse_dynamics(robot, q, still, still, chi)), 1e-12)
    theirs = independent.complex_step(lambda x: independent.inverse_dynamics(robot, x, still, still, chi), q)
    assert_close(slopes, theirs, 1e-9)


def test_forward_dynamics_by_state_and_torque(small_case):
    robot, q, qd, qdd, chi = small_case
    drive = np.zeros(len(q))
    tau = np.real(independent.inverse_dynamics(robot, q, qd, qdd, chi))
    got, slopes = compiled_jacobian(forward_dynamics_function(robot), [q, qd, tau, chi, drive], [0, 1, 2])
    assert_close(got, qdd, 1e-9)

    def theirs(x):
        a, b, c = split(x, [len(q)] * 3)
        return independent.forward_dynamics(robot, a, b, c, chi)

    assert_close(slopes, independent.complex_step(theirs, np.concatenate([q, qd, tau])), 1e-9)


def test_pose_by_position_and_geometry(case):
    robot, q, _, _, _ = case
    geometry = symbolic_geometry(robot)
    body = robot.bodies[-1]
    nominal = np.array(geometry.nominal)
    got, slopes = compiled_jacobian(pose_function(robot, body.link, geometry), [q, nominal], [0, 1])
    places = [(row, k) for row, each in enumerate(robot.bodies) for k in range(len(each.placement))]

    def theirs(x):
        values = dict(zip(places, x[len(q) :], strict=False))
        return independent.poses(robot, x[: len(q)], values)[body.number - 1][:3].ravel(order="F")

    point = np.concatenate([q, nominal])
    assert_close(got, np.real(theirs(point)), 1e-12)
    assert_close(slopes, independent.complex_step(theirs, point), 1e-9)
