"""Rigid-body terms equal Pinocchio's to 1e-10 on every arm; coupled joints by projection of the uncoupled model."""

from __future__ import annotations

import numpy as np
import pytest

from arms import ALL_ARMS, URDFS, arm, inertias_of, motion_of
from oracles import NO_PINOCCHIO, pinocchio_model
from steelyard.physics import (
    energy_function,
    forward_dynamics_function,
    gravity_function,
    inertia_matrix_function,
    inertial_regressor_function,
    inverse_dynamics_function,
    jacobian_function,
    pose_function,
    velocity_function,
)

pin = pytest.importorskip("pinocchio", reason=NO_PINOCCHIO)
SAMPLES = 5


def assert_equal(got, wanted) -> None:
    got, wanted = np.asarray(got, float).ravel(), np.asarray(wanted, float).ravel()
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-10 * max(np.abs(wanted).max(initial=0.0), 1e-3))


@pytest.fixture(params=[*ALL_ARMS, "staubli_tx40 by its motors"])
def case(request):
    name, _, by_motors = request.param.partition(" ")
    robot = arm(name).in_motor_coordinates() if by_motors else arm(name)
    model = pinocchio_model(robot)
    coupling, offset = robot.coupling()
    samples = zip(*(part.T for part in motion_of(robot, SAMPLES)), strict=True)
    joints = [(q, qd, qdd, coupling @ q + offset, coupling @ qd, coupling @ qdd) for q, qd, qdd in samples]
    return robot, model, model.createData(), coupling, joints


def test_inverse_dynamics_equals_rnea(case):
    robot, model, data, coupling, samples = case
    function, chi = inverse_dynamics_function(robot), inertias_of(robot)
    for q, qd, qdd, jq, jqd, jqdd in samples:
        assert_equal(function(q, qd, qdd, chi), coupling.T @ pin.rnea(model, data, jq, jqd, jqdd))


def test_regressor_equals_the_joint_torque_regressor_in_our_parameter_order(case):
    robot, model, data, coupling, samples = case
    function = inertial_regressor_function(robot)
    # Pinocchio orders m, m c (3), Ixx Ixy Iyy Ixz Iyz Izz about the joint frame's origin.
    ours_from_theirs = [4, 5, 7, 6, 8, 9, 1, 2, 3, 0]
    for q, qd, qdd, jq, jqd, jqdd in samples:
        theirs = pin.computeJointTorqueRegressor(model, data, jq, jqd, jqdd)
        blocks = [theirs[:, 10 * k : 10 * k + 10][:, ours_from_theirs] for k in range(len(robot.bodies))]
        assert_equal(function(q, qd, qdd), coupling.T @ np.hstack(blocks))


def test_inertia_matrix_equals_the_composite_body_algorithm(case):
    robot, model, data, coupling, samples = case
    function, chi = inertia_matrix_function(robot), inertias_of(robot)
    for q, _, _, jq, _, _ in samples:
        upper = np.triu(pin.crba(model, data, jq))
        assert_equal(function(q, chi), coupling.T @ (upper + np.triu(upper, 1).T) @ coupling)


def test_gravity_and_velocity_terms_equal_theirs(case):
    robot, model, data, coupling, samples = case
    gravity, velocity, chi = gravity_function(robot), velocity_function(robot), inertias_of(robot)
    for q, qd, _, jq, jqd, _ in samples:
        weight = pin.computeGeneralizedGravity(model, data, jq)
        assert_equal(gravity(q, chi), coupling.T @ weight)
        bias = pin.nonLinearEffects(model, data, jq, jqd)
        scale = max(np.abs(bias).max(), 1.0)
        assert_equal(np.array(velocity(q, qd, chi)).ravel() / scale, coupling.T @ (bias - weight) / scale)


def test_forward_dynamics_inverts_rnea_with_drive_inertia(case):
    robot, model, data, coupling, samples = case
    function, chi = forward_dynamics_function(robot), inertias_of(robot)
    drive = np.linspace(0.1, 0.5, len(robot.actuated))
    for q, qd, qdd, jq, jqd, jqdd in samples:
        tau = coupling.T @ pin.rnea(model, data, jq, jqd, jqdd) + drive * qdd
        np.testing.assert_allclose(np.array(function(q, qd, tau, chi, drive)).ravel(), qdd, rtol=1e-9, atol=1e-9)


def test_energies_equal_theirs(case):
    robot, model, data, _, samples = case
    function, chi = energy_function(robot), inertias_of(robot)
    for q, qd, _, jq, jqd, _ in samples:
        kinetic, potential = np.array(function(q, qd, chi)).ravel()
        assert_equal(kinetic, pin.computeKineticEnergy(model, data, jq, jqd))
        assert_equal(potential, pin.computePotentialEnergy(model, data, jq))


def test_pose_and_jacobian_of_every_body_equal_theirs(case):
    robot, model, data, coupling, samples = case
    for body in robot.bodies:
        pose, jacobian = pose_function(robot, body.link), jacobian_function(robot, body.link)
        for q, _, _, jq, _, _ in samples[:2]:
            pin.computeJointJacobians(model, data, jq)
            placed = data.oMi[body.number]
            assert_equal(pose(q, []), np.column_stack([placed.rotation, placed.translation]).T.T)
            theirs = pin.getJointJacobian(model, data, body.number, pin.LOCAL_WORLD_ALIGNED)
            assert_equal(jacobian(q, []), theirs @ coupling)


@pytest.mark.parametrize("name", ["skewed_chain", "sliding_tree"])
def test_a_urdf_read_by_pinocchio_itself_gives_the_same_torques(name):
    robot, model = arm(name), pin.buildModelFromXML(URDFS[name])
    data, chi = model.createData(), inertias_of(robot)
    function = inverse_dynamics_function(robot)
    model.gravity.linear = np.array(robot.gravity)
    for q, qd, qdd in zip(*(part.T for part in motion_of(robot, SAMPLES)), strict=True):
        theirs = _in_their_order(robot, model, q, qd, qdd)
        tau = pin.rnea(model, data, *theirs)
        ours = [tau[model.joints[model.getJointId(body.joint.name)].idx_v] for body in robot.bodies]
        assert_equal(function(q, qd, qdd, chi), ours)


def _in_their_order(robot, model, q, qd, qdd):
    """Their continuous joints are a point on the unit circle; their siblings are sorted by name."""
    position, velocity, acceleration = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
    for row, body in enumerate(robot.bodies):
        joint = model.joints[model.getJointId(body.joint.name)]
        if joint.nq == 2:
            position[joint.idx_q : joint.idx_q + 2] = np.cos(q[row]), np.sin(q[row])
        else:
            position[joint.idx_q] = q[row]
        velocity[joint.idx_v], acceleration[joint.idx_v] = qd[row], qdd[row]
    return position, velocity, acceleration
