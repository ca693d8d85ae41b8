import re

import numpy as np
import pytest

from steelyard.errors import RobotError
from steelyard.robot import load_robot, read_urdf
from steelyard.robot.tree import renumbered


def test_bodies_are_numbered_depth_first_in_file_order(branched: bytes) -> None:
    robot = read_urdf(branched)
    assert [body.joint.name for body in robot.bodies] == ["slide", "right_joint", "left_joint"]
    assert [body.parent for body in robot.bodies] == [0, 1, 1]
    assert robot.root == "world"


def test_fixed_links_ride_on_the_body_that_carries_them(branched: bytes) -> None:
    frames = read_urdf(branched).frames
    assert {name: frame.body for name, frame in frames.items()} == {
        "world": 0,
        "rail": 0,
        "carriage": 1,
        "right": 2,
        "left": 3,
        "left_tool": 3,
        "left_tip": 3,
        "sensor": 1,
    }


def test_a_mimic_joint_enters_the_coupling_matrix_and_is_not_actuated(branched: bytes) -> None:
    robot = read_urdf(branched)
    matrix, offset = robot.coupling()
    assert [body.joint.name for body in robot.actuated] == ["slide", "left_joint"]
    np.testing.assert_array_equal(matrix, [[1, 0], [0, -2], [0, 1]])
    np.testing.assert_array_equal(offset, [0, 0.2, 0])


def test_a_locked_joint_is_merged_into_its_parent(branched: bytes, poses) -> None:
    robot = read_urdf(branched)
    locked = robot.with_locked({"left_joint": 0.4})
    assert [body.joint.name for body in locked.bodies] == ["slide"]
    expected = poses.of_link(robot, "left_tip", np.array([0.1, -2 * 0.4 + 0.2, 0.4]))
    np.testing.assert_allclose(poses.of_link(locked, "left_tip", np.array([0.1])), expected, atol=1e-15)


def test_a_joint_that_follows_a_locked_one_is_held_too(branched: bytes) -> None:
    locked = read_urdf(branched).with_locked({"left_joint": 0.4})
    assert locked.joint("right_joint").locked_at == pytest.approx(-0.6)
    assert locked.coupling()[0].shape == (1, 1)


def test_a_follower_can_be_locked_by_itself(branched: bytes) -> None:
    locked = read_urdf(branched).with_locked({"right_joint": 0.1})
    assert [body.joint.name for body in locked.bodies] == ["slide", "left_joint"]


@pytest.mark.parametrize(("joint", "position"), [("mount", 0.0), ("slide", float("nan"))])
def test_a_fixed_joint_or_no_position_cannot_be_locked(branched: bytes, joint: str, position: float) -> None:
    with pytest.raises(RobotError, match="cannot lock"):
        read_urdf(branched).with_locked({joint: position})


def test_locking_an_unknown_joint_offers_the_nearest(branched: bytes) -> None:
    with pytest.raises(RobotError, match="did you mean 'slide'"):
        read_urdf(branched).with_locked({"slid": 0.0})


def test_other_parameters_go_onto_the_moving_link_and_fixed_links_stay(branched: bytes) -> None:
    robot = read_urdf(branched)
    wanted = {name: 1.1 * value for name, value in robot.parameters.items() if name.endswith("3")}
    changed = robot.with_parameters({**wanted, "Fvm1": 4.0})
    assert changed.parameters == pytest.approx({**robot.parameters, **wanted, "Fvm1": 4.0})
    before, after = ({link.name: link.inertia for link in one.links} for one in (robot, changed))
    assert {name for name in before if before[name] != after[name]} == {"left"}
    assert robot.with_parameters(robot.parameters).parameters == pytest.approx(robot.parameters, rel=1e-14)


def test_a_link_without_inertia_needs_all_ten_parameters() -> None:
    links = b'<link name="a"/><link name="b"/>'
    joint = b'<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>'
    robot = read_urdf(b'<robot name="r">' + links + joint + b"</robot>")
    with pytest.raises(RobotError, match=r"link 'b': XX1, XY1.* neither given nor known"):
        robot.with_parameters({"ZZ1": 1.0})


def test_values_follow_their_joints_when_others_are_locked(two_joint: bytes) -> None:
    robot = read_urdf(two_joint)
    assert robot.values == {"Fvm1": 1.5, "Fvm2": 0.4, "Fcm2": 0.7}
    assert robot.with_locked({"shoulder": 0.2}).values == {"Fvm1": 0.4, "Fcm1": 0.7}
    assert robot.with_locked({"elbow": 0.2}).values == {"Fvm1": 1.5}


def test_compliances_at_nodes_and_payloads_are_renumbered_too() -> None:
    values = {"k2": 1.0, "k21": 2.0, "k3_1": 3.0, "k3x": 4.0, "XXL": 5.0, "drive_gain1": 6.0, "Iac12": 7.0}
    numbers = {1: None, 2: 1, 3: 2, 12: 11}
    assert renumbered(values, numbers) == {"k1": 1.0, "k11": 2.0, "k2_1": 3.0, "k2x": 4.0, "XXL": 5.0, "Iac11": 7.0}


def test_values_go_with_their_joints_when_others_are_held():
    robot = load_robot("ur10e")
    locked = robot.with_locked({"shoulder_lift_joint": 0.1})
    assert locked.bodies[1].joint.name == "elbow_joint"
    for symbol in ("Ia", "Fcm", "drive_gain"):
        known = [robot.values[f"{symbol}{number}"] for number in (1, 3, 4, 5, 6)]
        assert [locked.values[f"{symbol}{number}"] for number in range(1, 6)] == known
        assert f"{symbol}6" not in locked.values


@pytest.mark.parametrize(
    ("gravity", "expected"),
    [
        ((0.0, 0.0, -1.0), "gravity 0,0,-1 has size 1 m/s^2; allowed are 9.7 to 9.9 and 0"),
        ((0.0, 0.0, -1.0), "the same direction at 9.81 is 0,0,-9.81"),
        ((981.0, 0.0, 0.0), "the same direction at 9.81 is 9.81,0,0"),
    ],
)
def test_a_mounting_has_the_size_of_gravity_as_masses_scale_with_it(gravity, expected) -> None:
    with pytest.raises(RobotError, match=re.escape(expected)):
        load_robot("scara_2r").mounted(gravity)


def test_a_mounting_may_have_the_size_of_the_robots_own_gravity_or_none() -> None:
    on_earth = load_robot("scara_2r")
    on_moon = on_earth.with_gravity((0.0, 0.0, -1.62))
    assert on_moon.mounted((0.0, -1.62, 0.0)).gravity == (0.0, -1.62, 0.0)
    assert on_moon.mounted((0.0, 0.0, -9.81)).gravity == (0.0, 0.0, -9.81)
    assert on_earth.mounted((0.0, 0.0, 0.0)).up is None
    with pytest.raises(RobotError, match=r"9\.9, 1\.62 as in robot 'scara_2r', and 0 .* at 1\.62 is 0,-1\.62,0"):
        on_moon.mounted((0.0, -1.0, 0.0))
