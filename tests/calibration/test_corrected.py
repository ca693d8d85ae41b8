"""Corrected targets: the command that brings the calibrated, loaded arm where the nominal one should have gone."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from calibrated_stand_in import product_arm, stand_in
from steelyard.calibration.application.calibrated_arm import joint_range, random_configurations
from steelyard.calibration.application.corrected import corrected_targets
from steelyard.calibration.application.targets import targets_from_joints, targets_from_poses
from steelyard.calibration.measurement.setup import Load
from steelyard.errors import CalibrationError
from steelyard.physics import frame_jacobian
from steelyard.robot import load_robot

POINT = (0.02, 0.0, 0.1)
LOAD = Load("tool", (10.0, 0.0, -120.0), (0.0, 1.0, 0.0), (0.0, 0.0, 0.1))


@pytest.fixture(scope="module")
def six():
    return stand_in(load_robot("ur10e"), "ee_link")


@pytest.fixture(scope="module")
def seven():
    return stand_in(load_robot("franka_panda"), load_robot("franka_panda").payload_link or "", seed=1)


def any_posture(count: int, seed: int = 2) -> np.ndarray:
    """Return postures (6, count) of the UR10e with bent elbow and wrist."""
    rng = np.random.default_rng(seed)
    low, high = np.radians([[-180, -160, 40, -150, 40, -180], [180, -20, 130, -30, 140, 180]])
    return rng.uniform(low[:, None], high[:, None], (6, count))


def bent_elbows(count: int, seed: int = 2) -> np.ndarray:
    """Return those of them that are away from all singularities."""
    q, symbol = any_posture(2 * count + 5, seed), ca.SX.sym("q", 6)
    jacobian = ca.Function("J", [symbol], [frame_jacobian(load_robot("ur10e"), "ee_link", symbol)])
    smallest = [np.linalg.svd(np.array(jacobian(column)), compute_uv=False)[-1] for column in q.T]
    return q[:, np.array(smallest) > 0.1][:, :count]


def point_at(arm, q, load):
    rotation, position = arm.pose(q, load)
    return rotation, position + rotation @ np.array(POINT)


def test_the_calibrated_arm_reaches_where_the_nominal_one_should_have_been(six):
    q = bent_elbows(80)
    targets = targets_from_joints(six, q, point=POINT)
    nominal_rotation, nominal = six.pose(q, None, np.zeros(len(six.names)))
    np.testing.assert_allclose(targets.wanted.position, nominal + nominal_rotation @ np.array(POINT), atol=1e-14)
    found = corrected_targets(six, targets, load=LOAD)
    assert set(found.status) == {"reached"}
    rotation, position = point_at(six, found.q, LOAD)
    np.testing.assert_allclose(position, targets.wanted.position, atol=1e-9)
    np.testing.assert_allclose(rotation, targets.wanted.rotation, atol=1e-9)
    np.testing.assert_array_equal(found.nominal, q)
    assert found.uncorrected.min() > 1e-4
    assert 1e-4 < np.abs(found.correction).max() < 0.2


def test_corrected_targets_reach_the_wanted_pose_in_a_true_arm_within_twice_the_predicted_uncertainty(six):
    rng = np.random.default_rng(11)
    targets = targets_from_joints(six, bent_elbows(40), point=POINT)
    found = corrected_targets(six, targets, load=LOAD)
    ratios = []
    for truth in rng.multivariate_normal(six.values, six.covariance, size=60, method="cholesky"):
        rotation, position = six.pose(found.q, LOAD, truth)
        off = np.linalg.norm(position + rotation @ np.array(POINT) - targets.wanted.position, axis=1)
        ratios.append(off / np.sqrt(np.trace(found.sigma, axis1=1, axis2=2)))
    assert (np.array(ratios) < 2).mean() > 0.95
    assert np.sqrt(np.mean(np.square(ratios))) == pytest.approx(1.0, abs=0.1)


def test_without_errors_and_load_nothing_is_corrected(six):
    exact = replace(six, values=np.zeros(len(six.names)))
    q = bent_elbows(5)
    found = corrected_targets(exact, targets_from_joints(exact, q))
    np.testing.assert_allclose(found.q, q, atol=1e-12)
    np.testing.assert_allclose(found.uncorrected, 0.0, atol=1e-15)


def test_the_load_is_made_up_for(six):
    targets = targets_from_joints(six, bent_elbows(10))
    free, loaded = corrected_targets(six, targets), corrected_targets(six, targets, load=LOAD)
    sag = np.linalg.norm(six.pose(free.q, LOAD)[1] - targets.wanted.position, axis=1)
    assert sag.min() > 1e-6
    assert np.abs(loaded.q - free.q).max() > 1e-5
    assert loaded.residual.max() < 1e-9


@pytest.mark.large
def test_a_redundant_arm_moves_least(seven):
    rng = np.random.default_rng(4)
    lower, upper = joint_range(seven.robot)
    middle = (lower + upper) / 2
    q = middle[:, None] + 0.3 * (upper - lower)[:, None] * rng.uniform(-1, 1, (7, 20))
    targets = targets_from_joints(seven, q)
    found = corrected_targets(seven, targets)
    assert found.residual.max() < 1e-9
    for number in range(20):
        moved = found.correction[:, number]
        lateral = _null_direction(seven, found.q[:, number])
        # Along the solutions no motion leads nearer to the nominal joints: the correction is normal to them.
        assert abs(moved @ lateral) < 1e-4 * np.linalg.norm(moved) + 1e-9


def _null_direction(arm, q):
    columns = []
    for joint in range(7):
        move = np.zeros((7, 1))
        move[joint] = 1e-6
        (ahead, there), (behind, here) = (arm.pose(q[:, None] + sign * move) for sign in (1, -1))
        turn = Rotation.from_matrix(ahead[0] @ behind[0].T).as_rotvec()
        columns.append(np.concatenate([there[0] - here[0], turn]) / 2e-6)
    return np.linalg.svd(np.array(columns).T)[2][-1]


def test_a_position_alone_leaves_the_orientation_free(six):
    q = bent_elbows(10)
    full = targets_from_joints(six, q, point=POINT)
    targets = targets_from_poses(full.wanted.position, joints=q, point=POINT)
    found = corrected_targets(six, targets, load=LOAD)
    np.testing.assert_allclose(point_at(six, found.q, LOAD)[1], targets.wanted.position, atol=1e-9)
    with_turn = corrected_targets(six, full, load=LOAD)
    assert (np.linalg.norm(found.correction, axis=0) < np.linalg.norm(with_turn.correction, axis=0)).all()
    assert (found.residual_rotation == 0).all()


@pytest.mark.large
def test_wanted_poses_without_joints_get_nominal_joints_first(six):
    q = bent_elbows(4)
    full = targets_from_joints(six, q)
    targets = targets_from_poses(full.wanted.position, full.wanted.rotation)
    found = corrected_targets(six, targets, load=LOAD)
    assert found.reached.all()
    reached = found.reached
    nominal = six.pose(found.nominal, None, np.zeros(len(six.names)))[1]
    np.testing.assert_allclose(nominal[reached], targets.wanted.position[reached], atol=1e-8)
    np.testing.assert_allclose(six.pose(found.q, LOAD)[1][reached], targets.wanted.position[reached], atol=1e-8)
    near = corrected_targets(six, targets, load=LOAD, start=q[:, 0])
    np.testing.assert_allclose(near.nominal[:, 0], q[:, 0], atol=1e-8)
    again = corrected_targets(six, targets, load=LOAD)
    np.testing.assert_array_equal(found.q, again.q)


def test_targets_out_of_reach_are_named_and_finite(six):
    q = bent_elbows(3)
    position = targets_from_joints(six, q).wanted.position.copy()
    position[1] = (3.0, 0.0, 0.5)
    found = corrected_targets(six, targets_from_poses(position, joints=q))
    assert found.status == ("reached", "out of reach", "reached")
    assert "mm" in found.why[1]
    assert found.why[0] == ""
    assert found.residual[1] > 1.0
    for array in (found.q, found.residual, found.residual_rotation, found.sigma, found.semi_axis, found.uncorrected):
        assert np.isfinite(array).all()


@pytest.mark.large
def test_what_is_left_of_a_target_out_of_reach_is_the_least_that_can_be(six):
    q = any_posture(200)[:, [11, 145, 161]]  # at the edge of the hole round the first axis
    targets = targets_from_joints(six, q)
    found = corrected_targets(six, targets)
    for number in range(3):

        def error(joints, number=number):
            rotation, position = six.pose(joints[:, None])
            turn = Rotation.from_matrix(targets.wanted.rotation[number] @ rotation[0].T).as_rotvec()
            return np.concatenate([targets.wanted.position[number] - position[0], turn])

        least = least_squares(error, q[:, number], xtol=1e-15, ftol=1e-15, gtol=1e-15)
        left = np.hypot(found.residual[number], found.residual_rotation[number])
        assert found.status[number] == "out of reach"
        assert left == pytest.approx(np.linalg.norm(least.fun), rel=1e-3)


def test_limits_are_kept_and_the_joint_that_meets_one_is_named(six):
    upper = joint_range(six.robot)[1]
    q = bent_elbows(2)
    q[2] = upper[2] - np.array([1e-9, 0.5])
    moved = np.array([0.01 if name == "offset3" else 0.0 for name in six.names])
    away = replace(six, values=-moved)  # the elbow must go 0.01 rad further
    found = corrected_targets(away, targets_from_joints(away, q))
    assert found.status == ("limit", "reached")
    assert "elbow_joint at 3.15" in found.why[0]
    assert (found.q <= upper[:, None] + 1e-15).all()
    assert found.residual[0] > 1e-6


def test_near_a_singularity_a_large_correction_is_not_called_one(six):
    q = bent_elbows(1)
    q[4] = 0.001  # wrist straight
    found = corrected_targets(six, targets_from_joints(six, q))
    assert found.status[0] in ("far", "out of reach")
    assert found.why[0]


def test_random_configurations_stay_within_limits(six):
    lower, upper = joint_range(six.robot)
    q = random_configurations(six.robot, 500, np.random.default_rng(0))
    assert (q >= lower[:, None]).all()
    assert (q <= upper[:, None]).all()
    assert (q.max(axis=1) > lower + 0.95 * (upper - lower)).all()
    kuka = random_configurations(load_robot("kuka_kr270"), 500, np.random.default_rng(0))
    assert np.abs(kuka).max() <= np.pi


def test_bad_targets_are_refused(six):
    with pytest.raises(CalibrationError, match=r"wanted positions \[m\]: got shape \(0, 3\)"):
        targets_from_poses(np.zeros((0, 3)))
    with pytest.raises(CalibrationError, match="wanted positions"):
        targets_from_poses(np.array([[0.0, np.nan, 1.0]]))
    with pytest.raises(CalibrationError, match="orientation of target number 1 is a left-handed frame"):
        targets_from_poses(np.zeros((2, 3)), np.array([np.eye(3), np.diag([1.0, 1.0, -1.0])]))
    with pytest.raises(CalibrationError, match="names of the targets: got 1"):
        targets_from_poses(np.zeros((2, 3)), names=["a"])
    with pytest.raises(CalibrationError, match="one column for each of 2"):
        targets_from_poses(np.zeros((2, 3)), joints=np.zeros((6, 3)))


def test_an_arm_without_limits_is_corrected_from_its_middle_posture():
    arm = product_arm(load_robot("kuka_kr270"), "tool")
    wanted = arm.pose(np.radians([[20.0], [-60.0], [70.0], [10.0], [40.0], [0.0]]))[1]
    found = corrected_targets(arm, targets_from_poses(wanted))
    assert found.reached.all()
    assert found.residual.max() < 1e-9
