"""Corrected targets as a file: what is read back is what was found, and failed targets cannot be commanded."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from calibrated_stand_in import stand_in
from steelyard.calibration.application.corrected import corrected_csv, corrected_targets, write_corrected
from steelyard.calibration.application.targets import targets_from_poses
from steelyard.errors import CalibrationError
from steelyard.robot import load_robot


@pytest.fixture(scope="module")
def arm():
    return stand_in(load_robot("ur10e"), "ee_link")


@pytest.fixture(scope="module")
def found(arm):
    q = np.radians([[10, -90, 90, -90, 90, 0], [0, -45, 60, -30, 80, 5]]).T
    position = arm.pose(q)[1].copy()
    position[1] = (5.0, 0.0, 0.0)
    return corrected_targets(arm, targets_from_poses(position, joints=q, names=["near", "far, too far"]))


def test_joints_come_back_in_the_declared_unit_and_failed_ones_are_blank(arm, found, tmp_path):
    write_corrected(tmp_path / "out.csv", found, arm.robot, angle="deg")
    near, far = csv.DictReader((tmp_path / "out.csv").read_text(encoding="utf-8").splitlines())
    joints = [body.joint.name for body in arm.robot.actuated]
    np.testing.assert_allclose([float(near[name]) for name in joints], np.degrees(found.q[:, 0]), rtol=1e-14)
    assert near["status"] == "reached"
    assert near["why"] == ""
    assert float(near["uncertainty_mm"]) == pytest.approx(1e3 * found.semi_axis[0], rel=1e-5)
    assert far["name"] == "far, too far"
    assert far["status"] == "out of reach"
    assert {far[name] for name in joints} == {""}
    assert "out of reach" in far["why"]
    assert float(far["residual_mm"]) > 1000


def test_unknown_units_are_refused(arm, found):
    with pytest.raises(CalibrationError, match="unit of angle is 'degree'"):
        corrected_csv(found, arm.robot, angle="degree")
