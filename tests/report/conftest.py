"""The report of an arm whose names try to get out of the page."""

from __future__ import annotations

import pytest

from hostile_arm import URDF, jolted
from steelyard.identification import Identification, Settings, identify, save_run
from steelyard.robot import load_robot


@pytest.fixture(scope="session")
def found(tmp_path_factory) -> Identification:
    path = tmp_path_factory.mktemp("robot") / "arm.urdf"
    path.write_text(URDF)
    settings = Settings(method="wls", reduction="f", bias_repeats=0, effects=("inertia", "Fvm", "Fcm"))
    return identify(load_robot(path), [jolted(1)], [jolted(2)], settings)


@pytest.fixture(scope="session")
def page(found, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    save_run(found, folder)
    return folder / "report.html"
