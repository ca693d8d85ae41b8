"""From a simulated calibration to corrected targets: the true arm goes where it should, as nearly as was predicted."""

from __future__ import annotations

import numpy as np
import pytest

from calibrated_stand_in import NumpyChain
from steelyard.calibration.application.calibrated_arm import accuracy_map, calibrated_arm, random_configurations
from steelyard.calibration.application.corrected import corrected_targets
from steelyard.calibration.application.targets import targets_from_joints
from steelyard.calibration.chain.problem import measured_problem
from steelyard.calibration.chain.simulated import simulated_measurements
from steelyard.calibration.fit.calibration import calibrated
from steelyard.calibration.measurement.setup import (
    CalibrationSetup,
    ElasticSetup,
    FrameSetup,
    Load,
    MarkerSetup,
)
from steelyard.robot import load_robot

POINT = np.array([0.05, 0.0, 0.1])
LOAD = Load("weight", (0.0, 0.0, -200.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.1))
MARKERS = {"a": (0.15, 0.0, 0.05), "b": (-0.1, 0.1, 0.1), "c": (0.0, -0.1, 0.2)}


@pytest.fixture(scope="module")
def fitted():
    robot = load_robot("ur10e")
    setup = CalibrationSetup(
        link="ee_link", base=FrameSetup((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), known=True), loads=(LOAD,),
        markers=tuple(MarkerSetup(name, place, known=True) for name, place in MARKERS.items()),
        elastic=ElasticSetup(joints=("shoulder_lift_joint", "elbow_joint", "wrist_1_joint")),
    )  # fmt: skip
    rng = np.random.default_rng(7)
    truth = {name: float(rng.normal(scale=1e-3)) for name in (p.name for p in NumpyChain(robot, "ee_link").parameters)}
    truth |= {"k1": 0.0, "k2": 2e-6, "k3": 3e-6, "k4": 5e-6, "k5": 0.0, "k6": 0.0}
    q = random_configurations(robot, 40, rng)
    unknown = {name: value for name, value in truth.items() if name not in ("k1", "k5", "k6")}
    measured = simulated_measurements(robot, setup, q, unknown, loads=("", "weight"), sigma=5e-5, seed=1)
    problem = measured_problem(robot, setup, measured)
    found = calibrated(problem, "ols")
    return calibrated_arm(problem, found.values, found.covariance), truth


def true_position(truth, arm, q, load):
    """Return where the true arm's tool point is: plain numpy, its springs loaded at the undeflected posture."""
    chain = NumpyChain(arm.robot, "ee_link")
    wrench = np.repeat(np.array([*load.force, *load.moment])[:, None], q.shape[1], axis=1)
    values = np.array([truth[parameter.name] for parameter in chain.parameters])
    rotation, position = chain.frame_pose(values, q, wrench, np.array(load.point))
    return position + rotation @ POINT


def test_corrected_targets_bring_the_true_arm_within_twice_the_predicted_uncertainty(fitted):
    arm, truth = fitted
    q = random_configurations(arm.robot, 200, np.random.default_rng(3))
    targets = targets_from_joints(arm, q, point=tuple(POINT))
    found = corrected_targets(arm, targets, load=LOAD)
    good = found.reached
    assert good.mean() > 0.6  # others are near singularities, and named
    assert all(found.why[k] for k in np.flatnonzero(~good))
    before = np.linalg.norm(true_position(truth, arm, q, LOAD) - targets.wanted.position, axis=1)[good]
    after = np.linalg.norm(true_position(truth, arm, found.q, LOAD) - targets.wanted.position, axis=1)[good]
    predicted = np.sqrt(np.trace(found.sigma, axis1=1, axis2=2))[good]
    assert np.median(before) > 20 * np.median(after)
    assert (after < 2 * predicted).mean() > 0.9
    assert after.max() < 4 * predicted.max()


def test_the_map_of_a_calibration_bounds_the_true_errors(fitted):
    arm, truth = fitted
    q = random_configurations(arm.robot, 500, np.random.default_rng(4))
    found = accuracy_map(arm, q, point=tuple(POINT), load=LOAD)
    off = np.linalg.norm(true_position(truth, arm, q, LOAD) - found.position, axis=1)
    assert 1e-6 < found.summary().median < 1e-4
    assert (off < 2 * found.deviation).mean() > 0.9
    assert 0.4 < np.sqrt(np.mean((off / found.deviation) ** 2)) < 1.6
