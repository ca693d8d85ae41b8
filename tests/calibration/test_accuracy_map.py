"""The map of predicted uncertainty: what sampled errors of the unknowns do to positions, everywhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from calibrated_stand_in import product_arm, stand_in
from steelyard.calibration.application.calibrated_arm import accuracy_map, random_configurations
from steelyard.calibration.measurement.setup import Load
from steelyard.calibration.records import Unknown
from steelyard.errors import CalibrationError
from steelyard.robot import load_robot

POINT = (0.05, -0.02, 0.15)
LOAD = Load("weight", (0.0, 0.0, -150.0), (0.0, 2.0, 0.0), (0.0, 0.1, 0.05))


@pytest.fixture(scope="module")
def arm():
    return stand_in(load_robot("ur10e"), "ee_link")


def poses(arm, count, seed=3):
    return random_configurations(arm.robot, count, np.random.default_rng(seed))


@pytest.fixture(scope="module")
def product(arm):
    """The same arm by the product's own compiled chain."""
    joints = tuple(body.joint.name for body in arm.robot.actuated)
    found = product_arm(arm.robot, "ee_link", springs=joints)
    assert found.names == arm.names
    return replace(found, values=arm.values, covariance=arm.covariance)


@pytest.mark.large
def test_the_predicted_spread_is_that_of_sampled_errors_over_a_thousand_poses(product):
    q, rng = poses(product, 1000), np.random.default_rng(5)
    found = accuracy_map(product, q, point=POINT, load=LOAD)
    draws = rng.multivariate_normal(product.values, product.covariance, size=600, method="cholesky")
    off = np.empty((len(draws), 1000, 3))
    for number, values in enumerate(draws):
        rotation, position = product.pose(q, LOAD, values)
        off[number] = position + rotation @ np.array(POINT) - found.position
    ratio = found.deviation / np.sqrt(off.var(axis=0).sum(axis=1))
    assert np.abs(ratio - 1).max() < 0.10
    assert np.sqrt((found.deviation**2).mean() / off.var(axis=0).sum(axis=1).mean()) == pytest.approx(1, abs=0.05)


def test_the_map_is_that_of_an_independent_chain(arm, product):
    q = poses(arm, 20)
    ours, theirs = (accuracy_map(each, q, point=POINT) for each in (product, arm))
    np.testing.assert_allclose(ours.sigma, theirs.sigma, rtol=1e-9, atol=1e-20)
    np.testing.assert_allclose(ours.position, theirs.position, atol=1e-12)
    loaded, also = (accuracy_map(each, q, point=POINT, load=LOAD) for each in (product, arm))
    # The stand-in takes the load at the undeflected posture alone.
    np.testing.assert_allclose(loaded.semi_axis, also.semi_axis, rtol=1e-3)
    assert np.abs(loaded.semi_axis / ours.semi_axis - 1).max() > 1e-3  # and it counts


def test_one_joint_offset_moves_the_tool_by_its_lever(arm):
    only = np.array([name == "offset1" for name in arm.names])
    alone = replace(arm, values=np.zeros(len(only)), covariance=np.diag(np.where(only, 1e-8, 0.0)))
    found = accuracy_map(alone, poses(arm, 50), point=POINT)
    lever = np.hypot(found.position[:, 0], found.position[:, 1])
    np.testing.assert_allclose(found.semi_axis, 1e-4 * lever, rtol=1e-9)
    np.testing.assert_allclose(found.sigma[:, 2], 0.0, atol=1e-20)


def test_the_base_counts_only_where_it_is_asked_for(arm):
    base = tuple(Unknown(f"base_{letter}", "base", "m", 0.0, letter) for letter in ("x", "y", "z", "rx", "ry", "rz"))
    turn = np.array([0.3, -0.2, 0.4])
    size = len(arm.names)

    def pose(values, q, wrench, point):
        return arm.frame_pose(values[:size], q, wrench, point)

    def derivatives(values, q, wrench, point):
        inner = arm.frame_derivatives(values[:size], q, wrench, point)
        return np.concatenate([inner, np.zeros((6, 6, q.shape[1]))], axis=1)

    factor = np.random.default_rng(1).normal(size=(size + 6, size + 6)) * 1e-5
    wider = replace(
        arm, parameters=(*arm.parameters, *base), values=np.array([*arm.values, 0.1, 0.2, 0.3, *turn]),
        covariance=factor @ factor.T, frame_pose=pose, frame_derivatives=derivatives,
    )  # fmt: skip
    q = poses(arm, 4)
    start = Rotation.from_euler("xyz", [1.0, 0.5, -2.0]).as_matrix()

    def measured_point(values):
        rotation, position = arm.pose(q, None, values[:size])
        inner = position + rotation @ np.array(POINT)
        whole = start @ Rotation.from_euler("XYZ", values[size + 3 :]).as_matrix()
        return (inner @ whole.T + values[size : size + 3]).ravel()

    moves = 1e-6 * np.eye(size + 6)
    by_values = np.array(
        [(measured_point(wider.values + move) - measured_point(wider.values - move)) / 2e-6 for move in moves]
    )
    expected = np.einsum("pi,pq,qj->ij", by_values, wider.covariance, by_values).reshape(4, 3, 4, 3)
    found = accuracy_map(wider, q, point=POINT, base_rotation=start)
    for number in range(4):
        np.testing.assert_allclose(found.sigma[number], expected[number, :, number], rtol=1e-6, atol=1e-17)
    without = accuracy_map(replace(arm, covariance=wider.covariance[:size, :size]), q, point=POINT)
    np.testing.assert_allclose(accuracy_map(wider, q, point=POINT).sigma, without.sigma, rtol=1e-12)


def test_the_summary_says_how_bad_and_where(arm):
    found = accuracy_map(arm, poses(arm, 200))
    summary = found.summary()
    assert summary.median < summary.p95 < summary.worst == found.semi_axis.max()
    again = accuracy_map(arm, np.array(summary.worst_q)[:, None])
    np.testing.assert_allclose(again.semi_axis, summary.worst, rtol=1e-12)
    np.testing.assert_allclose(again.position[0], summary.worst_position, rtol=1e-12)
    with pytest.raises(ValueError, match="read-only"):
        found.sigma[0, 0, 0] = 1.0


def test_bad_configurations_points_and_frames_are_refused(arm):
    with pytest.raises(CalibrationError, match=r"got shape \(5, 3\), allowed are finite numbers of shape \(6, N\)"):
        accuracy_map(arm, np.zeros((5, 3)))
    with pytest.raises(CalibrationError, match=r"got shape \(6, 0\)"):
        accuracy_map(arm, np.zeros((6, 0)))
    with pytest.raises(CalibrationError, match=r"shoulder_pan_joint, .*: got nan at \(2, 1\)"):
        accuracy_map(arm, np.where(np.arange(12).reshape(6, 2) == 5, np.nan, 0.0))
    with pytest.raises(CalibrationError, match=r"tool point .*: got inf at \(1,\)"):
        accuracy_map(arm, np.zeros((6, 1)), point=(0.0, np.inf, 0.0))
    with pytest.raises(CalibrationError, match="load 'heavy', force and moment: got nan"):
        accuracy_map(arm, np.zeros((6, 1)), load=Load("heavy", (0, 0, np.nan), (0, 0, 0), (0, 0, 0)))
    with pytest.raises(CalibrationError, match="the orientation of the base is a left-handed frame"):
        accuracy_map(arm, np.zeros((6, 1)), base_rotation=np.diag([1.0, 1.0, -1.0]))
    with pytest.raises(CalibrationError, match=r"covariance of the calibrated arm: got shape \(2, 2\)"):
        replace(arm, covariance=np.eye(2))
