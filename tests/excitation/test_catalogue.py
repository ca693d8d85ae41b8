"""Every arm gets a proven design: those of the catalogue, and ten of example-robot-data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from oracles import NO_PINOCCHIO
from steelyard.errors import DesignError
from steelyard.excitation import DesignSettings
from steelyard.excitation import design as design_experiment
from steelyard.robot import Robot, catalogue_names, load_robot, read_catalogue, read_urdf

ARMS = [name for name in catalogue_names() if "inertias" in read_catalogue(name).carries]
EXAMPLES = (
    "panda.urdf", "ur3_robot.urdf", "ur5_robot.urdf", "ur10_robot.urdf", "xarm7.urdf", "kinova.urdf", "z1.urdf",
    "so100.urdf", "so101.urdf", "tiago_no_hand.urdf",
)  # fmt: skip


def example(name: str) -> Robot:
    pin = pytest.importorskip("pinocchio", reason=NO_PINOCCHIO)
    found = sorted((Path(pin.__file__).parents[4] / "share" / "example-robot-data").rglob(name))
    if not found:
        pytest.skip("the package example-robot-data is not installed: run 'make test-all'")
    return read_urdf(found[0])


def assert_designed(robot: Robot, settings: DesignSettings) -> None:
    design = design_experiment(robot, settings)
    assert design.certificate.holds
    assert all(finding.violation == 0 for finding in design.certificate.findings)
    names = {finding.name for finding in design.certificate.findings}
    for body in robot.actuated:
        assert {f"{what} of {body.joint.name}" for what in ("lower", "upper", "velocity", "acceleration")} <= names
    figures = design.figures
    assert np.isfinite([figures.raw, figures.normalised, figures.weighted, figures.log10_det_covariance]).all()
    assert (figures.sigma > 0).all()
    assert design.baseline is not None
    assert figures.log10_det_covariance < design.baseline.log10_det_covariance
    assert design.value == pytest.approx(figures.log10_det_covariance)
    assert not design.is_interrupted
    if robot.floor is not None:
        assert any(text.startswith(f"floor at {robot.floor:g} m") for text in design.checked)
    assert any(text.startswith("self-collision (") for text in design.checked)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "scara_2r" else pytest.mark.large) for name in ARMS]
)
def test_an_arm_of_the_catalogue_gets_a_proven_design(name):
    assert_designed(load_robot(name), DesignSettings(starts=1, duration=10.0, harmonics=3))


@pytest.mark.large
@pytest.mark.parametrize("name", ARMS)
def test_an_arm_of_the_catalogue_gets_a_proven_design_of_default_length(name):
    assert_designed(load_robot(name), DesignSettings(starts=2))


@pytest.mark.parametrize("name", [name for name in catalogue_names() if name not in ARMS])
def test_an_arm_without_velocity_limits_is_refused_with_what_to_write(name):
    with pytest.raises(DesignError, match=r"no velocity limit is known for any joint; write velocity = \.\.\. under"):
        design_experiment(load_robot(name), DesignSettings(starts=1))


@pytest.mark.large
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_robot_gets_a_proven_design(name):
    assert_designed(example(name), DesignSettings(starts=2))


@pytest.mark.large
def test_a_joint_whose_friction_is_as_large_as_its_torque_limit_is_named():
    """The gripper of that file has a Coulomb friction of 1 N m and may push with 1 N m."""
    with pytest.raises(
        DesignError, match="torque of gripper_left_joint: its Coulomb friction 1 alone reaches the limit 1"
    ):
        design_experiment(example("talos_left_arm.urdf"), DesignSettings(starts=1))
