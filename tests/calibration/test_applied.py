"""Edited URDFs: any reader gets the calibrated geometry, and everything else is as it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from arms import SKEWED_CHAIN, SLIDING_TREE
from calibrated_stand_in import product_arm
from data_folder import data_folder
from steelyard.calibration.application.calibrated_arm import CalibratedArm, random_configurations
from steelyard.calibration.application.exports import edited_urdf, joint_error, write_urdf
from steelyard.calibration.measurement.setup import moving_chain
from steelyard.errors import CalibrationError, RobotError
from steelyard.robot import load_robot, read_urdf, roll_pitch_yaw

PLAIN = """<?xml version="1.0"?>
<!-- a small arm -->
<robot name="small" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <link name="base"/>
  <link name="upper"/>  <!-- the upper arm -->
  <link name="fore"/>
  <link name="tip"/>
  <gazebo reference="upper"><odd attribute="kept"/></gazebo>
  <joint name="shoulder" type="revolute">
    <parent link="base"/>
    <child link="upper"/>
    <axis xyz="0 0 1"/>
    <limit lower="-2" upper="2" velocity="1" effort="1"/>
  </joint>
  <joint name="elbow" type="revolute">
    <origin xyz="0 0.1 0.4" rpy="0 1.5708 0"/>
    <parent link="upper"/>
    <child link="fore"/>
    <axis xyz="0 -1 0"/>
    <limit lower="-2" upper="2" velocity="1" effort="1"/>
  </joint>
  <joint name="flange" type="fixed">
    <origin rpy="-1.5708 0 3.1416" xyz="0.5 0 0"/>
    <parent link="fore"/>
    <child link="tip"/>
  </joint>
</robot>
"""


def example_robot(name: str) -> Path:
    pin = pytest.importorskip("pinocchio")
    found = sorted((Path(pin.__file__).parents[4] / "share" / "example-robot-data").rglob(name))
    if not found:
        pytest.skip("the package example-robot-data is not installed")
    return found[0]


def compare(path: Path, arm: CalibratedArm, tolerance: float = 1e-9) -> None:
    """Compare a file, as Pinocchio and as Steelyard read it, with the calibrated model."""
    q = random_configurations(arm.robot, 30, np.random.default_rng(3))
    rotation, position = arm.pose(q)
    again = product_arm(load_robot(path), arm.link, size=0.0).pose(q)
    np.testing.assert_allclose(again[0], rotation, atol=tolerance)
    np.testing.assert_allclose(again[1], position, atol=tolerance)
    pin = pytest.importorskip("pinocchio")
    model = pin.buildModelFromUrdf(str(path))
    data, frame = model.createData(), model.getFrameId(arm.link)
    for column in range(30):
        full = pin.neutral(model)
        for body, value in zip(arm.robot.actuated, q[:, column], strict=True):
            joint = model.joints[model.getJointId(body.joint.name)]
            full[joint.idx_q : joint.idx_q + joint.nq] = value if joint.nq == 1 else (np.cos(value), np.sin(value))
        pin.framesForwardKinematics(model, data, full)
        np.testing.assert_allclose(data.oMf[frame].translation, position[column], atol=tolerance)
        np.testing.assert_allclose(data.oMf[frame].rotation, rotation[column], atol=tolerance)


def test_the_ur10e_file_becomes_the_calibrated_arm(tmp_path):
    source = data_folder() / "ur10e" / "ref" / "ur10e.urdf"
    robot = load_robot(source)
    arm = product_arm(robot, "ee_link")
    done = write_urdf(source, arm, tmp_path / "calibrated.urdf")
    assert set(done.joints) >= {body.joint.name for body in robot.actuated}
    compare(tmp_path / "calibrated.urdf", arm)


@pytest.mark.parametrize(
    ("name", "link"), [("panda.urdf", "panda_link8"), ("ur10_robot.urdf", "tool0"), ("xarm7.urdf", "link_eef")]
)
def test_files_of_others_become_the_calibrated_arm(name, link, tmp_path):
    source = example_robot(name)
    robot = load_robot(source)
    arm = product_arm(robot, link, seed=4)
    write_urdf(source, arm, tmp_path / name)
    compare(tmp_path / name, arm)


@pytest.mark.parametrize(("text", "link"), [(SKEWED_CHAIN, "hand"), (SLIDING_TREE, "right_hand"), (PLAIN, "tip")])
def test_skewed_axes_slides_and_trees_are_written_too(text, link, tmp_path):
    arm = product_arm(read_urdf(text.encode()), link)
    write_urdf(text.encode(), arm, tmp_path / "arm.urdf")
    compare(tmp_path / "arm.urdf", arm)


def test_all_else_stays_as_it_was():
    arm = product_arm(read_urdf(PLAIN.encode()), "tip", size=0.0)
    done = edited_urdf(PLAIN.encode(), arm)
    before, after = PLAIN.splitlines(), done.content.decode().splitlines()
    changed = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
    # Only the angles that were read as right ones: they are written as what they were taken for.
    assert done.joints == ("elbow", "flange")
    assert [a for a, _ in changed] == [line for line in before if "1.5708" in line]
    assert "1.5707963267948966" in changed[0][1]
    exact = PLAIN.replace("1.5708", "1.5707963267948966").replace("3.1416", "3.141592653589793")
    untouched = edited_urdf(exact.encode(), product_arm(read_urdf(exact.encode()), "tip", size=0.0))
    assert untouched.content == exact.encode()
    assert untouched.joints == ()


def test_what_stands_in_quotes_or_comments_is_not_taken_for_a_tag():
    odd = PLAIN.replace(
        '<joint name="elbow" type="revolute">',
        '<!-- <joint name="elbow"><origin xyz="9 9 9"/> --><joint odd=\'a > "b"\' name="elbow"\n    type="revolute">',
    ).replace('<origin xyz="0 0.1 0.4" rpy="0 1.5708 0"/>', "<origin\n  xyz = '0 0.1 0.4' rpy='0 1.5708 0'></origin>")
    arm = product_arm(read_urdf(odd.encode()), "tip")
    done = edited_urdf(odd.encode(), arm).content.decode()
    assert '<!-- <joint name="elbow"><origin xyz="9 9 9"/> --><joint odd=\'a > "b"\' name="elbow"' in done
    assert "<origin\n  xyz = '" in done
    same = product_arm(read_urdf(PLAIN.encode()), "tip")
    np.testing.assert_array_equal(arm.values, same.values)


def test_text_in_utf_16_is_not_edited():
    text = PLAIN.replace('version="1.0"', 'version="1.0" encoding="utf-16"').encode("utf-16")
    with pytest.raises(RobotError, match="UTF-16"):
        edited_urdf(text, product_arm(read_urdf(text), "tip"))


def test_windows_line_ends_and_comments_stay():
    text = PLAIN.replace("\n", "\r\n").encode()
    done = edited_urdf(text, product_arm(read_urdf(text), "tip"))
    assert done.content.count(b"\r\n") == done.content.count(b"\n") == text.count(b"\n") + 1  # a new origin
    assert b"<!-- the upper arm -->" in done.content
    assert b'<odd attribute="kept"/>' in done.content
    assert done.content.startswith(b'<?xml version="1.0"?>')


def test_joints_beside_the_path_are_left_alone():
    arm = product_arm(read_urdf(SLIDING_TREE.encode()), "right_hand")
    done = edited_urdf(SLIDING_TREE.encode(), arm)
    assert done.joints == ("lift", "right_shoulder", "right_slide")
    before, after = read_urdf(SLIDING_TREE.encode()), read_urdf(done.content)
    assert before.joint("left_shoulder") == after.joint("left_shoulder")
    assert len(moving_chain(before, "right_hand")) == 3


def test_an_offset_is_the_angle_added_to_the_joint():
    robot = read_urdf(PLAIN.encode())
    arm = product_arm(robot, "tip", size=0.0)
    values = np.where([name == "offset2" for name in arm.names], 0.01, 0.0)
    moved = CalibratedArm(robot, "tip", arm.parameters, values, arm.covariance, arm.frame_pose, arm.frame_derivatives)
    rotation, shift = joint_error(moved, robot.joint("elbow"))
    np.testing.assert_allclose(rotation, Rotation.from_rotvec([0, -0.01, 0]).as_matrix(), atol=1e-15)
    assert not shift.any()
    edited = read_urdf(edited_urdf(PLAIN.encode(), moved).content)
    q = np.array([[0.3], [0.5]])
    there = product_arm(edited, "tip", size=0.0).pose(q)[1]
    np.testing.assert_allclose(there, arm.pose(q + np.array([[0.0], [0.01]]))[1], atol=1e-14)


def test_angles_too_small_for_a_reader_of_right_angles_are_noted():
    arm = product_arm(read_urdf(PLAIN.encode()), "tip", size=4e-6)
    notes = edited_urdf(PLAIN.encode(), arm).notes
    assert len(notes) == 1
    assert "right_angle_tolerance=0" in notes[0]
    springy = product_arm(read_urdf(PLAIN.encode()), "tip", springs=("elbow",))
    assert "compliances have no place" in edited_urdf(PLAIN.encode(), springy).notes[0]


def test_a_file_that_was_calibrated_before_or_is_another_is_refused():
    arm = product_arm(read_urdf(PLAIN.encode()), "tip")
    done = edited_urdf(PLAIN.encode(), arm)
    with pytest.raises(CalibrationError, match="joint 'shoulder' stands elsewhere in the URDF"):
        edited_urdf(done.content, arm)
    with pytest.raises(CalibrationError, match="the URDF has no joint 'shoulder'"):
        edited_urdf(PLAIN.replace("shoulder", "hip").encode(), arm)
    with pytest.raises(RobotError, match="DOCTYPE"):
        edited_urdf(PLAIN.replace("<robot", '<!DOCTYPE robot [<!ENTITY a "b">]><robot', 1).encode(), arm)


@pytest.mark.parametrize("pitch", [0.0, 0.4, np.pi / 2, np.pi / 2 - 1e-9, -np.pi / 2 + 1e-4, -np.pi / 2])
def test_roll_pitch_and_yaw_give_the_rotation_back_at_any_pitch(pitch):
    for yaw, roll in np.random.default_rng(0).uniform(-3, 3, (50, 2)):
        rotation = Rotation.from_euler("ZYX", [yaw, pitch, roll]).as_matrix()
        again = roll_pitch_yaw(rotation)
        np.testing.assert_allclose(Rotation.from_euler("ZYX", again[::-1]).as_matrix(), rotation, atol=2e-15)
