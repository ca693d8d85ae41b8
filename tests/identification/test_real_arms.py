"""Real arms by one command each: a first taste, with the errors of plain least squares as the bound."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.io import loadmat

from data_folder import data_folder
from steelyard.cli import main
from steelyard.identification import Settings, fit_arm
from steelyard.observe import Preparation
from steelyard.recording import Recording, TorqueChannel
from steelyard.robot import load_robot

SETUPS = Path(__file__).parents[2] / "benchmarks" / "data"

pytestmark = pytest.mark.data


def identified(capsys, robot: str, setup: str, *arguments: str) -> dict:
    where = ["--config", str(SETUPS / f"{setup}.toml"), "--root", str(data_folder())]
    assert main(["identify", robot, *arguments, *where, "--plain", "--json"]) in (0, 2)
    return json.loads(capsys.readouterr().out)


@pytest.mark.large
def test_the_panda_s_last_part_is_predicted_to_1_3_percent(capsys):
    """Plain weighted least squares with hand-picked filters: 1.15 %."""
    result = identified(capsys, "franka_panda", "franka_panda")
    assert result["validation"]["held_out"] == 0.4
    assert result["validation"]["relative_error_percent"] < 1.3
    assert len(result["parameters"]) == 64


@pytest.mark.parametrize(
    ("train", "unseen", "percent"),
    [
        ((2, 3), 1, 2.8),
        ((1,), 2, 2.3),
        pytest.param((1,), 3, 16.4, marks=pytest.mark.large),
        pytest.param((3,), 1, 7.0, marks=pytest.mark.large),
    ],
)
@pytest.mark.large
def test_runs_of_the_lwr4_predict_each_other(capsys, train, unseen, percent):
    """Plain weighted least squares: 2.43, 2.02, 16.4 and 7.0 %."""
    logs = [f"kuka_lwr4/measurements_{number}.npz" for number in train]
    result = identified(capsys, "kuka_lwr4", "kuka_lwr4", *logs, "--validate", f"kuka_lwr4/measurements_{unseen}.npz")
    assert result["validation"]["relative_error_percent"] < percent
    # Friction with memory is no noise: generalised least squares must not be trusted here.
    assert result["method"] == "wls"
    assert result["covariance"] == "model"


@pytest.mark.large
def test_the_ur10e_s_residuals_are_said_to_depend_on_the_load(capsys):
    result = identified(
        capsys, "ur10e", "ur10e", "ur10e/identification/ur-20_02_10-30sec_12harm.csv", "--validate",
        "ur10e/identification/ur-20_02_12-40sec_12harm.csv",
    )  # fmt: skip
    assert result["validation"]["relative_error_percent"] < 4.13
    patterns = [pattern["text"] for test in result["tests"] for pattern in test["patterns"]]
    assert any("load-dependent friction on elbow_joint" in text for text in patterns)


ONE_JOINT = '[robot]\nname = "one_joint"\ngravity = [0, 0, -9.81]\n\n[[joint]]\nxyz = [0, 0, 0]\naxis = [0, 0, 1]\n'


@pytest.mark.parametrize(
    ("name", "viscous", "coulomb"),
    [
        ("g03_l_hip_pitch", -0.080, -1.77),
        ("g03_l_knee", -0.026, -1.47),
        ("g03_r_ankle_roll", -0.018, -0.50),
        ("g01_l_hip_pitch", -0.118, -2.26),
    ],
)
def test_the_friction_of_icub_s_idle_joints_is_that_of_its_description(name, viscous, coulomb, tmp_path):
    """``tau = kv v + kc sign v + c`` where joints moved by hand are faster than 1 deg/s; kv in N m s/deg, kc in N m."""
    matlab = loadmat(data_folder() / "icub_joint_friction" / "raw" / f"{name}_idle.mat")
    degrees, speed, torque = matlab["out"][:, :3].T
    (tmp_path / "joint.toml").write_text(ONE_JOINT)
    robot = load_robot(tmp_path / "joint.toml")
    recording = Recording(
        robot.joint_names, matlab["time"].ravel(), np.radians(degrees)[None], np.radians(speed)[None],
        (TorqueChannel("joint_torque", torque[None]),),
    )  # fmt: skip
    preparation = Preparation(velocity="recorded", standstill=float(np.radians(1.0)), mode="none", decimation=1)
    effects = ("Fvl", "Fcl", "offl")
    settings = Settings(method="wls", measured="joint", effects=effects, preparation=preparation)
    estimate = fit_arm(robot, recording, settings).fit.estimate
    found = dict(zip(estimate.columns, estimate.values, strict=True))
    assert np.radians(found["Fvl1"]) == pytest.approx(viscous, abs=6e-4)
    assert found["Fcl1"] == pytest.approx(coulomb, abs=6e-3)
