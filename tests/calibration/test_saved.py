"""A calibration in a folder gives the same arm when it is read back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from calibration.small_problems import joined
from steelyard.calibration import (
    CalibrationSettings,
    CalibrationSetup,
    FrameSetup,
    MarkerSetup,
    calibrated,
    calibrated_arm,
    calibration_to_json,
    fill_calibration,
    measured_problem,
    random_configurations,
    read_calibration,
    simulated_measurements,
)
from steelyard.errors import CalibrationError
from steelyard.export import export_model, exporting
from steelyard.export.new_urdf import new_urdf
from steelyard.robot import load_robot
from steelyard.run import RunFolder

ROBOT = load_robot("ur10e")
TEXT = '[measurement]\nlink = "ee_link"\n[markers.a]\nposition = [0.1, 0, 0]\n[markers.b]\nposition = [0, 0.1, 0]\n'


def saved_run(folder: Path, kinds: tuple[str, ...]):
    setup = CalibrationSetup(
        link="ee_link", base=FrameSetup((0.2, 0.1, 0.4), (0.0, 0.1, 0.5)), tool=FrameSetup((0, 0, 0), (0, 0, 0)),
        markers=(MarkerSetup("a", (0.1, 0.0, 0.0)), MarkerSetup("b", (0.0, 0.1, 0.0))),
    )  # fmt: skip
    q = random_configurations(ROBOT, 25, np.random.default_rng(3)) / 3
    truth = {"offset2": 1e-3, "z3": 5e-4}
    parts = [
        simulated_measurements(ROBOT, setup, q, truth, kind=kind, sigma=3e-5, angle_sigma=3e-5, seed=k)  # type: ignore[arg-type]
        for k, kind in enumerate(kinds)
    ]
    measured = parts[0] if len(parts) == 1 else joined(*parts)
    problem = measured_problem(ROBOT, setup, measured)
    found = calibrated(problem, settings=CalibrationSettings(screen=False, folds=2))
    content = {**calibration_to_json(found), "setup": TEXT}
    with RunFolder(folder, "calibrate") as run:
        run.save({"robot": "ur10e"}, {}, content, lambda place, _: fill_calibration(place, found))
    return problem, found


@pytest.mark.parametrize(
    "kinds", [("position",), pytest.param(("pose",), marks=pytest.mark.large), ("position", "pose")]
)
def test_the_arm_read_back_is_the_arm_that_was_calibrated(tmp_path, kinds):
    problem, found = saved_run(tmp_path, kinds)
    arm = calibrated_arm(problem, found.values, found.covariance)
    back = read_calibration(tmp_path)
    q = random_configurations(ROBOT, 10, np.random.default_rng(4))
    for ours, theirs in zip(arm.pose(q), back.arm.pose(q), strict=True):
        np.testing.assert_allclose(theirs, ours, atol=1e-12)
    np.testing.assert_array_equal(back.arm.covariance, found.covariance)
    np.testing.assert_allclose(np.array(back.setup.base.xyz), problem.base_pose(found.values)[1], atol=1e-12)


def test_damage_is_reported_in_one_line(tmp_path):
    saved_run(tmp_path, ("position",))
    content = json.loads((tmp_path / "result.json").read_text())
    (tmp_path / content["files"]["calibration"]).write_bytes(b"PK broken")
    with pytest.raises(CalibrationError, match="missing or not as it was written"):
        read_calibration(tmp_path)
    (tmp_path / "result.json").write_text("{}")
    with pytest.raises(CalibrationError, match="no result of steelyard"):
        read_calibration(tmp_path)
    (tmp_path / "result.json").write_text("{")
    with pytest.raises(CalibrationError, match="is not JSON"):
        read_calibration(tmp_path)
    with pytest.raises(CalibrationError, match="no run in"):
        read_calibration(tmp_path / "nowhere")


def test_a_new_result_leaves_no_arrays_of_the_old_one(tmp_path):
    saved_run(tmp_path, ("position",))
    saved_run(tmp_path, ("position", "pose"))
    assert len(list(tmp_path.glob("calibration.*.npz"))) == 1


def test_a_forced_export_of_a_poor_calibration_says_so(tmp_path, monkeypatch):
    saved_run(tmp_path / "run", ("position",))
    file = tmp_path / "ur10e.urdf"
    file.write_bytes(new_urdf(ROBOT))
    back = read_calibration(tmp_path / "run")
    poor = {"grade": "poor", "criteria": [], "reasons": [{"text": "the base moved", "about": "base"}]}
    changed = replace(back, robot_name=str(file), content={**back.content, "verdict": poor})
    monkeypatch.setattr(exporting, "_calibration", lambda *_: changed)
    written = export_model(tmp_path / "run", ["urdf", "yaml"], tmp_path / "out", force=True)
    assert written.notes == ("forced: the verdict of the run is poor: the base moved",)
    assert all(written.notes[0] in path.read_text() for path in written.paths)
