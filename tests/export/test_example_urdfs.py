"""URDFs of the package example-robot-data: unchanged ones stay as they are, new values load everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from oracles import NO_MUJOCO, NO_PINOCCHIO
from perturbed_arms import identified, other_values
from steelyard.export.urdf import edited_urdf, urdf_file
from steelyard.robot import load_robot

pytestmark = pytest.mark.large
pin = pytest.importorskip("pinocchio", reason=NO_PINOCCHIO)
pytest.importorskip("mujoco", reason=NO_MUJOCO)

# Arms; grippers and hands with mimicking fingers; prismatic torsos; quadrupeds and humanoids.
ROBOTS = (
    "panda.urdf", "ur5_robot.urdf", "ur10_robot.urdf", "ur3_gripper.urdf", "kinova.urdf", "xarm7.urdf", "z1.urdf",
    "so101.urdf", "bravo7_gripper.urdf", "talos_left_arm.urdf", "double_pendulum.urdf", "finger_edu.urdf", "bolt.urdf",
    "baxter.urdf", "icub.urdf", "simple_humanoid.urdf", "g1_29dof_rev_1_0.urdf", "allegro_right_hand.urdf",
    "tiago_no_hand.urdf", "pr2.urdf",
)  # fmt: skip
NOT_FOR_MUJOCO = ("tiago_no_hand.urdf", "pr2.urdf")
"""Fixed links of these have inertias that MuJoCo refuses, in the original files too."""


@pytest.fixture(params=ROBOTS, scope="module")
def path(request) -> Path:
    folder = Path(pin.__file__).parents[4] / "share" / "example-robot-data"
    found = sorted(folder.rglob(request.param))
    if not found:
        pytest.skip("the package example-robot-data is not installed: run 'make test-all'")
    return found[0]


def test_unchanged_parameters_leave_the_bytes_as_they_are(path):
    robot = load_robot(path)
    content = path.read_bytes()
    assert edited_urdf(content, robot.with_parameters(robot.parameters), comment="changed").content == content


def test_new_parameters_have_the_same_torques_in_every_program(path):
    robot = load_robot(path)
    friction = {f"{symbol}{body.number}": 0.1 * body.number for body in robot.actuated for symbol in ("Fvm", "Fcm")}
    done = urdf_file(identified(robot, other_values(robot) | friction))
    assert [comparison.program.split()[0] for comparison in done.comparisons] == ["steelyard", "pinocchio", "mujoco"]
    compared = [comparison for comparison in done.comparisons if not comparison.reason]
    assert len(compared) == (2 if path.name in NOT_FOR_MUJOCO else 3)
    assert max(comparison.largest for comparison in compared) < 1e-11
    assert {comparison.states for comparison in compared} == {1000}
