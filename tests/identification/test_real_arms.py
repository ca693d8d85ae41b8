"""Real arms by one command each: a first taste, with the errors of plain least squares as the bound."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from data_folder import data_folder
from steelyard.cli import main

SETUPS = Path(__file__).parents[2] / "benchmarks" / "data"

pytestmark = pytest.mark.data


def identified(capsys, robot: str, setup: str, *arguments: str) -> dict:
    data = data_folder()
    command = ["identify", robot, *arguments, "--config", str(SETUPS / f"{setup}.toml"), "--root", str(data), "--json"]
    assert main(command) in (0, 2)
    return json.loads(capsys.readouterr().out)


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


def test_the_ur10e_s_residuals_are_said_to_depend_on_the_load(capsys):
    result = identified(
        capsys, "ur10e", "ur10e", "ur10e/identification/ur-20_02_10-30sec_12harm.csv", "--validate",
        "ur10e/identification/ur-20_02_12-40sec_12harm.csv",
    )  # fmt: skip
    assert result["validation"]["relative_error_percent"] < 4.13
    patterns = [pattern["text"] for test in result["tests"] for pattern in test["patterns"]]
    assert any("load-dependent friction on elbow_joint" in text for text in patterns)
