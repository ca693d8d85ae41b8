"""Consistent arms from real recordings: their errors on unseen motion, and files that other programs load."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from data_folder import data_folder
from steelyard import export_model
from steelyard.cli import main
from steelyard.robot import is_consistent, load_robot

SETUPS = Path(__file__).parents[2] / "benchmarks" / "data"

pytestmark = [pytest.mark.data, pytest.mark.large]


def identified(folder: Path, robot: str, setup: str, *arguments: str) -> dict:
    data = data_folder()
    command = ["identify", robot, *arguments, "--config", str(SETUPS / f"{setup}.toml"), "--root", str(data)]
    assert main([*command, "--out", str(folder), "--quiet"]) in (0, 2)
    return json.loads((folder / "result.json").read_text())


def check_export(folder: Path, robot: str) -> None:
    """Export the arm, and load it again: every body can exist, and the files' torques are the arm's."""
    written = export_model(folder, ["urdf", "mjcf"], folder / "exported", force=True)
    for file in written.files:
        assert file.comparisons
        assert all(one.largest < 1e-9 for one in file.comparisons if one.states)
        # MuJoCo does not load the LWR4's own file either, which has two origins in one element.
        assert not any(one.reason and "repeated element" not in one.reason for one in file.comparisons)
    loaded = load_robot(written.paths[0])
    assert all(is_consistent(np.array(body.inertia)) for body in loaded.bodies)
    assert len(loaded.bodies) == len(load_robot(robot).bodies)


def errors(result: dict) -> tuple[float, float]:
    free = result["validation"]["relative_error_percent_of_all_parameters"]
    return result["consistency"]["validation"]["relative_error_percent"], free


def test_the_panda(tmp_path):
    consistent, _ = errors(identified(tmp_path, "franka_panda", "franka_panda"))
    assert consistent <= 1.25
    check_export(tmp_path, "franka_panda")


def test_the_tx40(tmp_path):
    consistent, free = errors(identified(tmp_path, "staubli_tx40", "staubli_tx40"))
    assert consistent <= 1.1 * free
    check_export(tmp_path, "staubli_tx40")


def test_the_ur10e(tmp_path):
    logs = ("ur10e/identification/ur-20_02_10-30sec_12harm.csv", "ur10e/identification/ur-20_02_12-40sec_12harm.csv")
    consistent, free = errors(identified(tmp_path, "ur10e", "ur10e", logs[0], "--validate", logs[1]))
    assert consistent <= 1.1 * free
    check_export(tmp_path, "ur10e")


def test_a_slow_run_of_the_lwr4_with_its_a_priori_urdf_predicts_a_fast_one(tmp_path):
    """Plain least squares: 16.4 %; a slow run does not excite inertias, and the prior fills in."""
    urdf = str(data_folder() / "kuka_lwr4" / "kuka_lwr4.urdf")
    logs = ("kuka_lwr4/measurements_1.npz", "kuka_lwr4/measurements_3.npz")
    arguments = (logs[0], "--validate", logs[1], "--plain", "--torque", "joint", "--inertia-source", "cad")
    result = identified(tmp_path, urdf, "kuka_lwr4", *arguments)
    consistent, free = errors(result)
    assert consistent <= 5.5
    assert free > 10
    assert result["consistency"]["prior"]["chosen"]
    check_export(tmp_path, urdf)
