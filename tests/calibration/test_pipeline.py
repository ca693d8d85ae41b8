"""From files to a calibrated arm, and from an arm to the poses to measure, in one call each."""

from __future__ import annotations

import json

import numpy as np
import pytest

from steelyard.calibration import (
    CalibrationResult,
    CalibrationSettings,
    CalibrationSetup,
    MarkerSetup,
    calibrate,
    choose_poses,
    export_calibration,
    random_configurations,
    read_setup,
    simulated_measurements,
    write_measurements,
)
from steelyard.cli import main
from steelyard.errors import CalibrationError
from steelyard.robot import load_robot

ROBOT = load_robot("ur10e")
SETUP = """
[measurement]
link = "ee_link"
sigma = [5e-5, 5e-5, 5e-5]
[markers.a]
position = [0.1, 0, 0.05]
[markers.b]
position = [0, 0.1, 0.05]
"""
FAST = CalibrationSettings(folds=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calibration")
    (folder / "setup.toml").write_text(SETUP, encoding="utf-8")
    setup = read_setup(folder / "setup.toml", ROBOT)
    for name, seed, count in (("points", 1, 30), ("others", 2, 10)):
        q = random_configurations(ROBOT, count, np.random.default_rng(seed)) / 2
        measured = simulated_measurements(ROBOT, setup, q, {"offset2": 2e-3, "z3": 8e-4}, sigma=5e-5, seed=seed)
        write_measurements(folder / f"{name}.csv", measured)
    return folder


@pytest.fixture(scope="module")
def found(folder) -> CalibrationResult:
    files = {"setup": folder / "setup.toml", "validate": str(folder / "others.csv")}
    return calibrate("ur10e", folder / "points.csv", settings=FAST, workspace=20, **files)


def test_the_command_and_the_function_give_the_same_numbers(folder, found, capsys):
    files = [str(folder / "points.csv"), "--config", str(folder / "setup.toml")]
    others = ["--validate", str(folder / "others.csv")]
    assert main(["calibrate", "ur10e", *files, *others, "--folds", "3", "--workspace", "20", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert {key: content[key] for key in found.to_json()} == json.loads(json.dumps(found.to_json()))
    assert content["workspace"]["configurations"] == 20


def test_the_result_holds_arm_map_and_verdict(found):
    names = [parameter.name for parameter in found.calibration.problem.parameters]
    assert found.calibration.values[names.index("offset2")] == pytest.approx(2e-3, abs=2e-4)
    assert found.calibration.verdict.grade == "good"
    assert found.calibration.validation is not None
    assert found.arm.names == tuple(names)
    assert len(repr(found)) < 300


def test_exports_are_written_where_they_are_wanted(found, tmp_path):
    assert export_calibration(found, tmp_path) == ["calibration.yaml", "workspace.csv"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["calibration.yaml", "workspace.csv"]
    with pytest.raises(CalibrationError, match="export urdf: the robot's URDF is not given"):
        export_calibration(found, tmp_path, ["urdf"])


def test_declared_sigmas_come_from_the_set_up(folder):
    found = calibrate(ROBOT, folder / "points.csv", setup=folder / "setup.toml", method="declared", workspace=0)
    assert found.calibration.settings.method == "declared"
    assert found.workspace is None
    np.testing.assert_allclose(np.asarray(found.calibration.settings.sigma, dtype=float), 5e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"workspace": -1}, "workspace: got -1"),
        ({"load": "anvil"}, "load"),
        ({"validate": "points.csv"}, "is the file that is fitted"),
    ],
)
def test_what_makes_no_sense_is_refused(folder, change, message, monkeypatch):
    monkeypatch.chdir(folder)
    with pytest.raises(CalibrationError, match=message):
        calibrate(ROBOT, "points.csv", setup="setup.toml", settings=FAST, **change)


def test_poses_are_chosen_from_numbers_arrays_or_files(tmp_path):
    setup = CalibrationSetup(
        "ee_link", markers=(MarkerSetup("a", (0.1, 0.0, 0.05)), MarkerSetup("b", (0.0, 0.1, 0.05)))
    )
    chosen = choose_poses("ur10e", 15, setup=setup, candidates=40, keep=True, seed=3)
    given = random_configurations(ROBOT, 40, np.random.default_rng(3))
    again = choose_poses(ROBOT, 15, setup=setup, candidates=given, keep=True)
    np.testing.assert_array_equal(chosen.design.q, again.design.q)
    assert set(chosen.design.q[0]) <= set(given[0])
    (tmp_path / "poses.csv").write_text(chosen.to_csv(), encoding="utf-8")
    from_file = choose_poses(ROBOT, 15, setup=setup, candidates=tmp_path / "poses.csv", keep=True)
    np.testing.assert_allclose(np.sort(from_file.design.q), np.sort(chosen.design.q), rtol=1e-8)
    content = json.loads(json.dumps(chosen.to_json()))
    assert content["predicted_sigma"] == chosen.predicted_sigma
    assert len(content["configurations"]) == 15
    assert list(content["units"]) == list(chosen.names)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": 0}, "count is 0; allowed are whole numbers from 1 on"),
        ({"candidates": 0}, "candidates is 0"),
        ({"repeats": -2}, "repeats is -2"),
        ({"sigma": 0.0}, "sigma is 0.0; allowed is a number above 0"),
        ({"candidates": 10}, "20 configurations cannot be chosen from 10 candidates"),
        ({"fixed": ["elbow"]}, "fixed: no joint 'elbow'; joints: "),
    ],
)
def test_choices_that_make_no_sense_are_refused(change, message):
    with pytest.raises(CalibrationError, match=message):
        choose_poses(ROBOT, **{"count": 20, **change})
