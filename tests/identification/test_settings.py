"""Settings as a flat table, and back: a run saved from Python is used later with the settings it was made with."""

from __future__ import annotations

import os

import pytest

from simulated_experiments import lwr4
from steelyard import save_run
from steelyard.cli.check import _settings as check_settings
from steelyard.cli.identify import settings_table
from steelyard.errors import EstimateError
from steelyard.estimators import ESTIMATORS
from steelyard.identification import Settings, identify, settings_from_table, settings_to_table
from steelyard.judge import Thresholds
from steelyard.observe import Preparation


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings(measured="joint", effects=("inertia", "viscous"), sign_width=0.01, gravity=(0.0, 9.81, 0.0)),
        Settings(lock={"joint_3": 0.5}, protected=("ZZ2",), prior={"Fv1": (1.0, 0.1)}, covariance="hac", hold_out=0.4),
        Settings(preparation=Preparation(cutoff=8.0, decimation=4, stiffness=(1e4, 2e4)), reduction="none", seed=3),
        Settings(thresholds=Thresholds(pattern=7.0), evaluation_cutoff=20.0, bias_repeats=0),
        Settings(method="ekf", options={"ekf": ESTIMATORS["ekf"].load_settings()(integrator="euler")}),
    ],
    ids=["defaults", "model", "priors", "preparation", "thresholds", "method"],
)
def test_settings_come_back_from_their_table(settings):
    assert settings_from_table(settings_to_table(settings)) == settings


def test_threads_are_no_part_of_a_result():
    assert settings_to_table(Settings(threads=7)) == {}


@pytest.mark.parametrize("threads", [0, -3, 1.5])
def test_fewer_threads_than_one_are_refused(threads):
    with pytest.raises(EstimateError, match=f"threads is {threads}.*a whole number from 1"):
        Settings(threads=threads)


def test_threads_of_the_configuration_count_and_the_flag_wins(tmp_path):
    config = tmp_path / "steelyard.toml"
    config.write_text("[identify]\nthreads = 3\n")
    assert settings_table({}, config)["threads"] == 3
    assert settings_table({"threads": 2}, config)["threads"] == 2
    assert settings_table({"threads": 0}, config)["threads"] == 0  # refused by the settings, as any number below 1
    assert settings_table({}, None)["threads"] == (os.cpu_count() or 1)
    checked = check_settings(config)
    assert checked is not None
    assert checked.threads == 3


def test_a_run_saved_from_python_knows_its_robot_logs_and_settings(tmp_path):
    settings = Settings(method="wls", reduction="none", bias_repeats=0, preparation=Preparation(cutoff=6.0))
    run = save_run(identify("kuka_lwr4", lwr4(1), settings=settings), tmp_path / "run")
    assert run.settings["robot"] == "kuka_lwr4"
    assert settings_from_table({k: v for k, v in run.settings.items() if k not in ("robot", "logs")}) == settings
