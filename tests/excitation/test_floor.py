"""The floor and the links as capsules, where nobody gives them: from what they are taken, and what is said of it."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.errors import DesignError
from steelyard.excitation import design_limits
from steelyard.excitation.space.capsules import Capsule
from steelyard.excitation.space.fitting import link_capsules, lowest_height
from steelyard.excitation.space.self_collision import Floor, floor_of, floor_rules
from steelyard.robot import (
    BoxShape,
    CapsuleShape,
    CylinderShape,
    Robot,
    SphereShape,
    catalogue_names,
    load_robot,
    origin_placement,
    read_table,
    read_urdf,
)

LIMIT = '<limit lower="-2.4" upper="2.4" velocity="1.5" effort="40"/>'
ARM = """<robot name="arm"><link name="base">{base}</link><link name="upper"/><link name="fore"/>
  <joint name="pan" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 0.3"/><axis xyz="0 0 1"/>
    {limit}</joint>
  <joint name="lift" type="revolute"><parent link="upper"/><child link="fore"/><axis xyz="0 1 0"/>
    <origin xyz="0 0 0.2"/>{limit}</joint></robot>"""
BOX = '<collision><origin xyz="0 0 0.1"/><geometry><box size="0.2 0.2 0.3"/></geometry></collision>'
WALL, CEILING = (9.81, 0.0, 0.0), (0.0, 0.0, 9.81)
ROW = b"[[joint]]\nalpha = 0\nd = 0\ntheta = 0\nr = 0.5\nvelocity = 1\n"


def arm(base: str = "") -> Robot:
    return read_urdf(ARM.format(base=base, limit=LIMIT).encode())


@pytest.mark.parametrize("name", catalogue_names())
def test_every_arm_of_the_catalogue_knows_its_floor(name):
    robot = load_robot(name)
    assert robot.floor is not None
    assert floor_of(robot).height == robot.floor
    assert floor_of(robot).origin == "by the robot's description"


def test_the_floor_is_a_fact_of_each_arm():
    floors = {name: load_robot(name).floor for name in ("ur10e", "kuka_lwr4", "scara_2r")}
    assert floors["ur10e"] == 0
    assert floors["kuka_lwr4"] == -0.31
    assert floors["scara_2r"] is not None
    assert floors["scara_2r"] < -0.1


@pytest.mark.parametrize("gravity", [WALL, CEILING, (0.0, 0.3, -9.8)])
def test_an_arm_mounted_another_way_has_no_false_floor(gravity):
    for robot in (load_robot("ur10e").with_gravity(gravity), arm(BOX).with_gravity(gravity)):
        limits = design_limits(robot)
        assert not any(rule.name.startswith("floor") for rule in limits.rules)
        (text,) = (text for text in limits.not_checked if text.startswith("floor"))
        assert text == "floor (the arm does not stand upright; give its height by --floor HEIGHT)"
    assert load_robot("ur10e").with_gravity((0, 0, -9.80665)).floor == 0
    assert load_robot("kuka_lwr4").with_gravity((0, 0, 0)).floor is None


def test_a_floor_that_is_given_lies_against_gravity():
    limits = design_limits(load_robot("ur10e").with_gravity(WALL), floor=-1.5)
    rule = next(rule for rule in limits.rules if rule.name == "floor - wrist_3_link (end)")
    below = np.array([[[1.6], [0.0], [0.0]]])
    assert rule.clearance(below)[0][0] < -0.1
    assert rule.clearance(-below)[0][0] > 2.9
    assert "floor at -1.5 m (as given)" in limits.checked


def test_without_gravity_no_direction_is_up():
    robot = arm(BOX).with_gravity((0, 0, 0))
    assert "floor (without gravity no direction is up)" in design_limits(robot).not_checked
    with pytest.raises(DesignError, match="floor is 0, but gravity is zero: no direction is up; leave the floor out"):
        design_limits(robot, floor=0.0)


def test_a_urdf_stands_on_the_lowest_point_of_its_base():
    limits = design_limits(arm(BOX))
    assert "floor at -0.05 m (the lowest point of the base's collision shapes)" in limits.checked
    unknown = design_limits(arm())
    assert "floor (its height is unknown; give it by --floor HEIGHT)" in unknown.not_checked
    assert not any(text.startswith("floor") for text in unknown.checked)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (SphereShape(origin_placement((0, 0, 0.3), (0, 0, 0)), 0.1), 0.2),
        (CylinderShape(origin_placement((0, 0, 0.3), (0, 0, 0)), 0.1, 0.4), 0.1),
        (CylinderShape(origin_placement((0, 0, 0.3), (np.pi / 2, 0, 0)), 0.1, 0.4), 0.2),
        (CylinderShape(origin_placement((0, 0, 0.3), (np.pi / 4, 0, 0)), 0.1, 0.4), 0.3 - 0.3 / np.sqrt(2)),
        (CapsuleShape(origin_placement((0, 0, 0.3), (0, 0, 0)), 0.1, 0.4), 0.0),
        (BoxShape(origin_placement((0, 0, 0.3), (np.pi / 4, 0, 0)), (1, 0.2, 0.2)), 0.3 - 0.1 * np.sqrt(2)),
    ],
)
def test_the_lowest_point_of_a_shape(shape, expected):
    assert lowest_height(shape, np.array([0.0, 0.0, 1.0])) == pytest.approx(expected, abs=1e-12)


def test_an_end_near_the_base_that_no_joint_lifts_is_left_out_and_named():
    low = read_table(b"[robot]\nname = 'low'\nfloor = 0.48\n" + ROW + ROW.replace(b"alpha = 0", b"alpha = 1.5"))
    limits = design_limits(low)
    assert "floor below capsule ends that no joint lifts: link_1 (start)" in limits.not_checked
    assert "floor - link_1 (start)" not in [rule.name for rule in limits.rules]
    with pytest.raises(DesignError, match=r"'floor - link_1 \(start\)' cannot be kept: .* by --floor, or --floor none"):
        design_limits(low, floor=0.48)


def test_an_end_that_joints_lift_by_a_hundredth_of_its_radius_is_left_out_too():
    """As on a UR5, whose upper arm begins a little off the shoulder's axis, in a capsule that reaches the floor."""
    capsules = (Capsule("fore", (0.001, 0.0, 0.0), (0.4, 0.0, 0.0), 0.085),)
    ranges = (np.array([-2.4, -2.4]), np.array([2.4, 2.4]))
    rules, left_out = floor_rules(arm(), Floor(0.43, "the base's shapes"), capsules, 0.01, ranges)
    assert left_out == ["fore (start)"]
    assert [rule.name for rule in rules] == ["floor - fore (end)"]


def test_a_floor_above_the_arm_is_refused_with_what_to_do():
    with pytest.raises(DesignError, match=r"cannot be kept: .*the floor is at 3 m \(as given\): give another"):
        design_limits(load_robot("ur10e"), floor=3.0)


def test_links_without_shapes_get_capsules_from_joint_to_joint_and_say_so():
    robot = load_robot("kuka_lwr4")
    found = link_capsules(robot, range(8))
    length = 0.4 + 0.39 + 0.078
    mass = sum(body.inertia[9] for body in robot.bodies if body.inertia is not None)
    assert found.radius == pytest.approx(np.sqrt(mass / (1200 * np.pi * length)))
    lengths = {capsule.link: np.linalg.norm(np.subtract(capsule.end, capsule.start)) for capsule in found.capsules}
    expected = dict.fromkeys(lengths, 0.0) | {"base": 0.31, "link_2": 0.4, "link_4": 0.39, "link_7": 0.078}
    assert lengths == pytest.approx(expected)
    limits = design_limits(robot)
    assert limits.capsules.startswith(
        f"assumed along all links, radius {found.radius:.3f} m from the moving links' mass"
    )
    (left_out,) = (text for text in limits.not_checked if "overlap" in text)
    assert "link_2 - link_4 (100 %)" in left_out
    assert "neighbouring links" in limits.not_checked


def test_the_radius_without_masses_and_without_length():
    bare = read_table(b"[robot]\nname = 'bare'\n" + ROW + ROW)
    assert link_capsules(bare, [1]).radius == pytest.approx(0.06 * 0.5)
    point = read_table(b"[robot]\nname = 'point'\n" + ROW.replace(b"r = 0.5", b"r = 0"))
    assert link_capsules(point, [1]).radius == 0.05
    assert link_capsules(point, [1], balls=False).capsules == ()


def test_a_slide_carries_its_link_from_where_it_may_be():
    slide = ROW.replace(b"velocity", b"type = 'prismatic'\nlower = 0.2\nupper = 0.5\nvelocity")
    robot = read_table(b"[robot]\nname = 'slide'\n" + ROW + slide)
    (capsule,) = link_capsules(robot, [1]).capsules
    np.testing.assert_allclose(capsule.end, [0, 0, 0.7])


def test_shapes_of_a_file_come_first_and_capsules_of_the_limits_file_before_them(tmp_path):
    limits = design_limits(arm(BOX))
    assert limits.capsules.startswith("around the collision shapes of the robot's file; assumed along upper, radius")
    assert "links without shape or length: fore" in limits.not_checked
    (tmp_path / "slim.toml").write_text('[[capsule]]\nlink = "fore"\nstart = [0, 0, 0]\nradius = 0.02\n')
    given = design_limits(arm(BOX), tmp_path / "slim.toml")
    assert "of the limits file" in given.capsules
    assert not any(text.startswith("links without") for text in given.not_checked)


def test_a_torque_limit_that_is_lowered_does_not_change_what_the_drives_are_rated_for(tmp_path):
    robot = load_robot("scara_2r")
    (tmp_path / "less.toml").write_text("[joints]\ntorque = [50, 50]\ntorque_scale = 0.8\n")
    limits = design_limits(robot, tmp_path / "less.toml")
    np.testing.assert_allclose(limits.torque, [40, 40])
    assert limits.rated_torque is not None
    np.testing.assert_allclose(limits.rated_torque, [100, 20])
