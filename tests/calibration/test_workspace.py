"""Accuracy over the workspace: what a calibration predicts is what many calibrations of the same arm really do.

The base is known, so that nothing is left to convention: an arm is where it is. All placements of its joints are wrong,
also those that are indistinguishable from others.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from steelyard.calibration import (
    CalibratedArm,
    CalibrationSettings,
    CalibrationSetup,
    ElasticSetup,
    FrameSetup,
    Load,
    MarkerSetup,
    MeasuredProblem,
    accuracy_map,
    calibrated_arm,
    corrected_targets,
    identifiability,
    measured_problem,
    random_configurations,
    targets_from_joints,
)
from steelyard.calibration.chain.simulated import planned_measurements
from steelyard.calibration.fit.covariances import covariance_of
from steelyard.calibration.fit.stages import weighted_fit
from steelyard.robot import load_robot

POINT = np.array([0.05, 0.0, 0.1])
LOAD = Load("weight", (0.0, 0.0, -200.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.1))
PLACES = {"a": (0.15, 0.0, 0.05), "b": (-0.1, 0.1, 0.1), "c": (0.0, -0.1, 0.2)}
NOISE = np.array([30e-6, 50e-6, 80e-6])
SETTINGS = CalibrationSettings()
REFITS = 150


class Calibrations:
    """An arm whose errors are known, calibrated again and again with new noise."""

    def __init__(self) -> None:
        robot = load_robot("ur10e")
        setup = CalibrationSetup(
            link="ee_link", base=FrameSetup((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), known=True), loads=(LOAD,),
            markers=tuple(MarkerSetup(name, place, known=True) for name, place in PLACES.items()),
            elastic=ElasticSetup(joints=("shoulder_lift_joint", "elbow_joint", "wrist_1_joint")),
        )  # fmt: skip
        rng = np.random.default_rng(7)
        planned = planned_measurements(robot, setup, random_configurations(robot, 60, rng), loads=("", "weight"))
        self.problem = measured_problem(robot, setup, planned)
        springs = np.array([parameter.group == "compliance" for parameter in self.problem.parameters])
        self.truth = np.where(springs, 3e-6, rng.normal(scale=5e-4, size=len(springs)))
        jacobian = self.problem.at(self.problem.start).jacobian
        self.columns = identifiability(self.problem.parameters, jacobian).columns
        # From here on a fit has only the noise to walk through.
        self.start = weighted_fit(self.measured(None), self.columns, SETTINGS).fit.values

    def measured(self, rng: np.random.Generator | None) -> MeasuredProblem:
        equations = self.problem.equations
        exact = equations.measured - self.problem.residual(self.truth)
        noise = 0.0 if rng is None else NOISE[equations.coordinate] * rng.standard_normal(equations.size)
        return replace(self.problem, equations=replace(equations, measured=exact + noise))

    def arm(self, seed: int) -> CalibratedArm:
        """Return the arm as it is after a calibration with the noise of a seed."""
        problem = self.measured(np.random.default_rng(seed))
        found = weighted_fit(problem, self.columns, SETTINGS, self.start)
        covariance = np.zeros((len(self.truth), len(self.truth)))
        own = covariance_of(found.fit, problem.equations, found.sigmas, SETTINGS.covariance)
        covariance[np.ix_(self.columns, self.columns)] = own.matrix
        return calibrated_arm(problem, found.fit.values, covariance)

    def true_position(self, arm: CalibratedArm, q: np.ndarray) -> np.ndarray:
        rotation, position = arm.pose(q, LOAD, self.truth)
        return position + rotation @ POINT


@pytest.fixture(scope="module")
def calibrations() -> Calibrations:
    return Calibrations()


@pytest.mark.large
def test_the_map_of_one_calibration_is_the_spread_of_many_over_a_thousand_poses(calibrations):
    first = calibrations.arm(0)
    q = random_configurations(first.robot, 1000, np.random.default_rng(3))
    predicted = accuracy_map(first, q, point=tuple(POINT), load=LOAD).deviation
    true, squares = calibrations.true_position(first, q), np.zeros(1000)
    for seed in range(1, REFITS + 1):
        arm = calibrations.arm(seed)
        rotation, position = arm.pose(q, LOAD)
        squares += ((position + rotation @ POINT - true) ** 2).sum(axis=1)
    ratio = predicted / np.sqrt(squares / REFITS)
    assert abs(np.median(ratio) - 1) < 0.10
    assert (np.abs(ratio - 1) < 0.10).mean() > 0.95


@pytest.mark.large
def test_corrected_targets_bring_the_true_arm_within_twice_the_predicted_uncertainty(calibrations):
    q = random_configurations(calibrations.problem.robot, 60, np.random.default_rng(4))
    within, before, after = [], [], []
    # The targets of one calibration share its error: only many calibrations show a share.
    for seed in range(20):
        arm = calibrations.arm(1000 + seed)
        targets = targets_from_joints(arm, q, point=tuple(POINT))
        found = corrected_targets(arm, targets, load=LOAD)
        assert found.reached.mean() > 0.6  # others are near singularities, and named
        off = np.linalg.norm(calibrations.true_position(arm, found.q) - targets.wanted.position, axis=1)
        uncorrected = np.linalg.norm(calibrations.true_position(arm, q) - targets.wanted.position, axis=1)
        predicted = np.sqrt(np.trace(found.sigma, axis1=1, axis2=2))
        within.append((off < 2 * predicted)[found.reached])
        before.append(uncorrected[found.reached])
        after.append(off[found.reached])
    assert np.concatenate(within).mean() >= 0.95
    assert np.median(np.concatenate(before)) > 20 * np.median(np.concatenate(after))
