"""Simulated measurements: exact ones of a perfect instrument, and noise of the requested size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from steelyard.calibration.chain.simulated import (
    exact_measurements,
    planned_measurements,
    simulated_measurements,
    with_noise,
)
from steelyard.calibration.measurement.nominal import nominal_poses
from steelyard.calibration.measurement.setup import (
    CalibrationSetup,
    ElasticSetup,
    FrameSetup,
    Load,
    MarkerSetup,
)
from steelyard.errors import CalibrationError
from steelyard.robot import load_robot

MARKERS = (MarkerSetup("a", (0.1, 0.2, -0.2)), MarkerSetup("b"))
FORCE = np.array([0.0, 0.0, -2500.0])
POINT = np.array([0.15, 0.0, -0.4])


@pytest.fixture(scope="module")
def robot():
    return load_robot("kuka_kr270")


@pytest.fixture(scope="module")
def q():
    return np.random.default_rng(1).uniform(-1.5, 1.5, (6, 7))


@pytest.fixture
def setup():
    base = FrameSetup((1.0, 2.0, 3.0), (0.1, -0.2, 0.3), False)
    return CalibrationSetup("tool", base=base, markers=MARKERS, sigma=(1e-5, 2e-5, 3e-5))


def in_the_world(base: FrameSetup, points: np.ndarray) -> np.ndarray:
    return points @ Rotation.from_euler("xyz", base.rpy).as_matrix().T + base.xyz


def test_positions_are_those_of_the_arm_with_its_errors(robot, setup, q):
    truth = {"offset2": 2e-3, "base_x": 0.1, "x[b]": 0.3, "z[b]": -0.1}
    found = exact_measurements(robot, setup, planned_measurements(robot, setup, q), truth)
    # An error of joint 2 about its own axis is a displaced zero.
    displaced = found.q + np.array([[0], [2e-3], [0], [0], [0], [0]])
    rotation, position = nominal_poses(robot, "tool", displaced)
    local = np.array([[0.1, 0.2, -0.2], [0.3, 0, -0.1]])[found.marker]
    points = position + np.einsum("nij,nj->ni", rotation, local)
    np.testing.assert_allclose(found.value, in_the_world(setup.base, points) + np.array([0.1, 0, 0]), atol=1e-12)
    assert np.isnan(found.rotation).all()


def test_poses_are_those_of_the_tool(robot, setup, q):
    tooled = replace(setup, tool=FrameSetup((0, 0, 0.1), (0.3, 0.2, 0.1), False))
    found = exact_measurements(robot, tooled, planned_measurements(robot, tooled, q, kind="pose"), {})
    rotation, position = nominal_poses(robot, "tool", q)
    base = Rotation.from_euler("xyz", setup.base.rpy).as_matrix()
    np.testing.assert_allclose(found.value, in_the_world(setup.base, position + 0.1 * rotation[:, :, 2]), atol=1e-12)
    tool = Rotation.from_euler("xyz", [0.3, 0.2, 0.1]).as_matrix()
    np.testing.assert_allclose(found.rotation, base @ rotation @ tool, atol=1e-12)
    assert (found.kind, found.markers) == (("pose",) * 7, ())


def test_deflections_are_those_of_springs_at_the_joints(robot, setup, q):
    loaded = replace(
        setup, loads=(Load("heavy", tuple(FORCE), (0.0, 0.0, 0.0), tuple(POINT)),), geometry="none",
        elastic=ElasticSetup(joints=("joint_3",)), markers=MARKERS[:1], base=FrameSetup((0, 0, 0), (0, 0, 0), True),
    )  # fmt: skip
    plan = planned_measurements(robot, loaded, q, kind="difference", loads=("heavy",))
    compliance = 1e-9
    rigid = replace(robot, values={})  # the file's own springs would bend the other joints
    found = exact_measurements(rigid, loaded, plan, {"k3": compliance}).value
    step = np.zeros((6, 1))
    step[2] = 1e-6

    def point_at(positions, local):
        rotation, position = nominal_poses(robot, "tool", positions)
        return position + rotation @ local

    # dp = J k J_load^T F (P3 eq. 2), Jacobians by central differences.
    by_joint = (point_at(q + step, np.array([0.1, 0.2, -0.2])) - point_at(q - step, np.array([0.1, 0.2, -0.2]))) / 2e-6
    torque = ((point_at(q + step, POINT) - point_at(q - step, POINT)) / 2e-6) @ FORCE
    np.testing.assert_allclose(found, by_joint * compliance * torque[:, np.newaxis], rtol=1e-4, atol=1e-10)


def test_every_configuration_load_marker_and_repeat_has_a_row(robot, setup, q):
    loaded = replace(setup, loads=(Load("heavy", (0, 0, -10), (0, 0, 0), (0, 0, 0)),))
    plan = planned_measurements(robot, loaded, q, loads=("", "heavy"), repeats=3)
    assert plan.rows == 7 * 2 * 2 * 3
    rows = {tuple(row) for row in np.column_stack([plan.pose, plan.load, plan.marker, plan.repeat]).tolist()}
    assert len(rows) == plan.rows
    assert {row[1] for row in rows} == {-1, 0}


def test_noise_has_the_sizes_asked_for_and_is_the_same_for_the_same_seed(robot, setup, q):
    plan = planned_measurements(robot, setup, q, repeats=1500)
    exact = exact_measurements(robot, setup, plan, {})
    noise = simulated_measurements(robot, setup, q, {}, repeats=1500, seed=3).value - exact.value
    np.testing.assert_allclose(noise.std(axis=0), [1e-5, 2e-5, 3e-5], rtol=0.03)
    again = simulated_measurements(robot, setup, q, {}, repeats=1500, seed=3).value - exact.value
    np.testing.assert_array_equal(noise, again)
    by_row = np.where(plan.pose[:, np.newaxis] == 2, 5e-5, 1e-6) * np.ones(3)
    noise = with_noise(exact, by_row, seed=4).value - exact.value
    assert noise[plan.pose == 2].std() == pytest.approx(5e-5, rel=0.03)
    assert noise[plan.pose != 2].std() == pytest.approx(1e-6, rel=0.03)


def test_orientations_get_noise_of_their_own(robot, setup, q):
    poses = planned_measurements(robot, setup, q, kind="pose", repeats=1500)
    turned = with_noise(poses, 0.0, angle_sigma=1e-3, seed=1)
    angles = Rotation.from_matrix(turned.rotation).as_rotvec()
    np.testing.assert_allclose(angles.std(axis=0), 1e-3, rtol=0.03)


def test_missing_coordinates_stay_missing(robot, setup, q):
    plan = planned_measurements(robot, setup, q)
    value = np.array(plan.value)
    value[3, 1] = np.nan
    found = exact_measurements(robot, setup, replace(plan, value=value), {})
    assert np.flatnonzero(np.isnan(found.value).any(axis=1)).tolist() == [3]


def test_what_cannot_be_simulated_is_refused(robot, setup, q):
    plan = planned_measurements(robot, setup, q)
    with pytest.raises(CalibrationError, match=r"'ofset2' is no unknown of this set-up; .*did you mean 'offset2'"):
        exact_measurements(robot, setup, plan, {"ofset2": 1.0})
    with pytest.raises(CalibrationError, match=r"q has shape \(7, 6\); \(6, configurations\)"):
        planned_measurements(robot, setup, q.T)
    with pytest.raises(CalibrationError, match="0 markers are planned"):
        planned_measurements(robot, replace(setup, markers=()), q)
    with pytest.raises(CalibrationError, match="load: got 'heavy', the set-up has none"):
        planned_measurements(robot, setup, q, loads=("heavy",))
    with pytest.raises(CalibrationError, match="how noisy the instrument is"):
        simulated_measurements(robot, replace(setup, sigma=None), q, {})
    with pytest.raises(CalibrationError, match=r"sigma has shape \(2,\)"):
        with_noise(plan, np.ones(2))
