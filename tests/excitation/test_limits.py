"""Limits of a design: from the description, from a file, and every way in which a file can be wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from arms import GRIPPER, SLIDING_TREE
from steelyard.errors import DesignError
from steelyard.excitation.limits.design_limits import DesignLimits, design_limits
from steelyard.excitation.space.capsules import CapsulePair
from steelyard.excitation.space.regions import Box, Cylinder, HalfSpace, Sphere
from steelyard.excitation.space.rules import ArmPlaces, PointRule
from steelyard.robot import Robot, load_robot, read_table, read_urdf

LIMIT = '<limit lower="-2.4" upper="2.4" velocity="1.5" effort="40"/>'
ARM = """<robot name="arm"><link name="base">{base}</link><link name="upper">{upper}</link>
  <link name="fore">{fore}</link><link name="hand">{hand}</link>
  <joint name="pan" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 0.3"/><axis xyz="0 0 1"/>
    {pan}</joint>
  <joint name="lift" type="revolute"><parent link="upper"/><child link="fore"/><axis xyz="0 1 0"/>
    <origin xyz="0 0 0.2"/>{lift}</joint>
  <joint name="bend" type="{kind}"><parent link="fore"/><child link="hand"/><origin xyz="0 0 0.5"/><axis xyz="0 1 0"/>
    {bend}</joint></robot>"""
BODY = '<collision><origin xyz="0 0 0.15"/><geometry><capsule radius="0.05" length="0.3"/></geometry></collision>'


def arm(**given: str) -> Robot:
    plain = {"base": "", "upper": "", "fore": BODY, "hand": BODY, "pan": LIMIT, "lift": LIMIT, "bend": LIMIT}
    return read_urdf(ARM.format(**{**plain, "kind": "revolute", **given}).encode())


def limits_from(text: str, folder: Path, robot: Robot | None = None) -> DesignLimits:
    path = folder / "limits.toml"
    path.write_text(text, encoding="utf-8")
    return design_limits(robot or arm(), path)


def test_without_a_file_the_description_s_limits_are_kept():
    limits = design_limits(load_robot("franka_panda"))
    assert limits.motion.joints[0] == "joint_1"
    np.testing.assert_allclose(limits.motion.lower[3], -3.0718 + 0.025 * (3.0718 - 0.0698))
    np.testing.assert_allclose(limits.motion.velocity[-1], 2.61)
    np.testing.assert_allclose(limits.motion.acceleration[:2], [15, 7.5])
    np.testing.assert_array_equal(limits.torque, [87, 87, 87, 87, 12, 12, 12])
    assert limits.torque_side == "motor"
    assert not limits.torque.flags.writeable
    assert limits.notes == ()


def test_gaps_are_filled_and_said_in_notes():
    free = '<limit velocity="2" effort="0"/>'
    limits = design_limits(arm(pan=free, lift=free))
    np.testing.assert_allclose(limits.motion.lower, [-np.pi, -np.pi, -0.95 * 2.4])
    np.testing.assert_allclose(limits.motion.upper, [np.pi, np.pi, 0.95 * 2.4])
    np.testing.assert_allclose(limits.motion.acceleration, [8, 8, 6])
    assert np.isinf(limits.motion.jerk).all()
    np.testing.assert_array_equal(limits.torque, [np.inf, np.inf, 40])
    assert [note.split(":")[0] for note in limits.notes] == [
        "no position range is known for joints 'pan', 'lift'",
        "no acceleration limit is known for any joint",
        "no torque limit is known for joints 'pan', 'lift'",
    ]


def test_missing_velocities_are_refused_with_the_joints_and_the_key_to_write(tmp_path):
    robot = arm(lift='<limit lower="-1" upper="1" velocity="0" effort="5"/>')
    with pytest.raises(DesignError, match=r"no velocity limit is known for joint 'lift'; write velocity = .*--limits"):
        design_limits(robot)
    limits = limits_from("[joints]\nvelocity = {lift = 0.5}", tmp_path, robot)
    np.testing.assert_allclose(limits.motion.velocity, [1.5, 0.5, 1.5])


def test_a_slide_without_a_range_is_refused_until_a_file_gives_one(tmp_path):
    robot = arm(kind="prismatic", bend='<limit velocity="0.3" effort="5"/>')
    with pytest.raises(DesignError, match=r"no position range is known for joint 'bend', which slides; write position"):
        design_limits(robot)
    limits = limits_from("[joints]\nposition = {bend = [0, 0.2]}", tmp_path, robot)
    assert (limits.motion.lower[2], limits.motion.upper[2]) == (0, 0.2)


def test_a_range_with_one_end_gets_a_turn():
    row = b"[[joint]]\nalpha = 0\nd = 0\ntheta = 0\nr = 0\nvelocity = 1\n"
    robot = read_table(b"[robot]\nname = 'two'\n" + row + b"lower = -1\n" + row + b"upper = 2\n")
    limits = design_limits(robot, position_scale=1.0)
    np.testing.assert_allclose(limits.motion.lower, [-1, 2 - 2 * np.pi])
    np.testing.assert_allclose(limits.motion.upper, [2 * np.pi - 1, 2])


def test_a_range_without_length_is_refused():
    with pytest.raises(DesignError, match="joint 'lift': position range 1 to 1 leaves no room to move"):
        design_limits(arm(lift='<limit lower="1" upper="1" velocity="1" effort="5"/>'))


def test_limits_of_a_mimicking_joint_bind_its_leader():
    robot = read_urdf(GRIPPER.encode())
    limits = design_limits(robot, position_scale=1.0)
    # follow = -1.5 open + 0.1 within -2.5 to 2, and its velocity within 3
    row = limits.motion.joints.index("open")
    np.testing.assert_allclose(limits.motion.lower[row], max(-2.5, (2.0 - 0.1) / -1.5))
    np.testing.assert_allclose(limits.motion.upper[row], min(2.0, (-2.5 - 0.1) / -1.5))
    np.testing.assert_allclose(limits.motion.velocity[row], 2.0)


def test_a_robot_told_in_motor_positions_is_refused():
    with pytest.raises(DesignError, match="motor positions"):
        design_limits(load_robot("staubli_tx40").in_motor_coordinates())


def test_self_collision_can_be_switched_off(tmp_path):
    robot = arm(base=BODY)
    every = design_limits(robot, floor="none")
    assert {rule.name for rule in every.rules} == {"base - fore", "base - hand", "hand - upper"}
    assert not any("self-collision" in text for text in every.not_checked)
    off = design_limits(robot, self_collision=False, floor="none")
    assert off.rules == ()
    assert "self-collision (switched off)" in off.not_checked
    assert limits_from('floor = "none"\n[self_collision]\non = false', tmp_path, robot).rules == ()
    ignore = '[["hand", "base"], ["upper", "hand"]]'
    limits = limits_from(f"[self_collision]\nmargin = 0.03\nignore = {ignore}", tmp_path, robot)
    assert "links to ignore: hand - base, upper - hand" in limits.not_checked
    some = limits.rules
    assert [(rule.name, rule.margin) for rule in some if isinstance(rule, CapsulePair)] == [("base - fore", 0.03)]


@pytest.mark.parametrize(
    ("text", "quantity", "expected"),
    {
        "one number": ("velocity = 0.7", "velocity", [0.7, 0.7, 0.7]),
        "a list": ("acceleration = [1, 2, 3]", "acceleration", [1, 2, 3]),
        "a table": ("jerk = {lift = 9}", "jerk", [np.inf, 9, np.inf]),
        "degrees": ("velocity_deg = 180", "velocity", [np.pi] * 3),
        "a scale": ("velocity_scale = 0.8", "velocity", [1.2] * 3),
        "a value and its scale": ("velocity = 2\nvelocity_scale = {pan = 0.5}", "velocity", [1, 2, 2]),
        "one range": ("position = [-1, 2]", "upper", [2, 2, 2]),
        "ranges": ("position_deg = [[-90, 0], [0, 90], [-180, 180]]", "lower", [-np.pi / 2, 0, -np.pi]),
        "a range by name": ("position = {bend = [0.1, 0.2]}", "lower", [-2.28, -2.28, 0.1]),
        "one end": ("lower = -1", "lower", [-1] * 3),
        "one end in degrees": ("upper_deg = {pan = 90}", "upper", [np.pi / 2, 2.28, 2.28]),
        "a margin": ("position_margin = 0.1", "lower", [-2.3] * 3),
        "a margin in degrees": ("position_margin_deg = {lift = 90}", "upper", [2.28, 2.4 - np.pi / 2, 2.28]),
        "a part of the ranges": ("position_scale = 0.5", "upper", [1.2] * 3),
        "all of one range": ("position_scale = {pan = 1}", "upper", [2.4, 2.28, 2.28]),
        "a range and a part of it": ("position = [0, 2]\nposition_scale = 0.9", "lower", [0.1] * 3),
        "nothing about positions": ("velocity = 1", "lower", [-2.28] * 3),
        "accelerations that follow the new velocities": ("velocity = 3", "acceleration", [12] * 3),
        "no acceleration limit known": ("acceleration = inf", "acceleration", [6] * 3),
    }.values(),
)
def test_a_file_replaces_limits_of_joints(tmp_path, text, quantity, expected):
    limits = limits_from(f"[joints]\n{text}", tmp_path)
    np.testing.assert_allclose(getattr(limits.motion, quantity), expected)


def test_a_file_sets_torques_and_their_side(tmp_path):
    limits = limits_from('torque_side = "joint"\n[joints]\ntorque = [1, 2, inf]\ntorque_scale = 0.5', tmp_path)
    np.testing.assert_array_equal(limits.torque, [0.5, 1, np.inf])
    assert limits.torque_side == "joint"


def test_rules_on_a_point_are_read_with_all_their_keys(tmp_path):
    limits = limits_from(
        """
        [[space]]
        name = "table"
        link = "fore"
        point = [0, 0, 0.1]
        kind = "half_space"
        normal = [0, 0, 2]
        offset = 0.1
        margin = 0.02
        [[space]]
        kind = "cylinder"
        radius = 0.2
        upper = 0.4
        keep = "out"
        [[space]]
        kind = "box"
        lower = [-inf, -2, 0]
        upper = [2, 2, inf]
        keep = "in"
        [[space]]
        kind = "sphere"
        centre = [0, 0, 1]
        radius = 3
        keep = "in"
        """,
        tmp_path,
    )
    rules = [rule for rule in limits.rules if isinstance(rule, PointRule)]
    assert [rule.name for rule in rules] == ["table", "space 2", "space 3", "space 4"]
    assert [rule.point.link for rule in rules] == ["fore", "hand", "hand", "hand"]
    assert [rule.keep for rule in rules] == ["keep_in", "keep_out", "keep_in", "keep_in"]
    assert rules[0].point.offset == (0, 0, 0.1)
    assert rules[0].margin == 0.02
    assert rules[0].region == HalfSpace((0, 0, 2), 0.1)
    assert rules[1].region == Cylinder(0.2, upper=0.4)
    assert rules[2].region == Box((-np.inf, -2, 0), (2, 2, np.inf))
    assert rules[3].region == Sphere(3, (0, 0, 1))


def test_the_last_link_is_the_payload_s_or_the_end_of_the_longest_chain(tmp_path):
    text = '[[space]]\nkind = "half_space"\nnormal = [0, 0, 1]\noffset = -9'
    rule = limits_from(text, tmp_path, read_urdf(SLIDING_TREE.encode())).rules[0]
    assert isinstance(rule, PointRule)
    assert rule.point.link == "right_hand"
    robot = load_robot("kuka_lwr4")
    rule = limits_from(text, tmp_path, robot).rules[0]
    assert isinstance(rule, PointRule)
    assert rule.point.link == (robot.payload_link or robot.bodies[-1].link)


def test_capsules_of_a_file_replace_those_fitted_to_that_link(tmp_path):
    robot = arm(base=BODY)
    text = '[[capsule]]\nlink = "hand"\nstart = [0, 0, 0.2]\nradius = 0.02\n'
    second = '[[capsule]]\nlink = "hand"\nstart = [0, 0, 0]\nend = [0, 0, 0.2]\nradius = 0.01\n'
    pairs = [rule for rule in limits_from(text + second, tmp_path, robot).rules if isinstance(rule, CapsulePair)]
    pairs = [pair for pair in pairs if "upper" not in pair.name]
    assert [pair.name for pair in pairs] == ["base - fore", "base - hand 1", "base - hand 2"]
    assert [pair.first.radius for pair in pairs] == [0.05, 0.02, 0.01]
    assert pairs[1].first.start == pairs[1].first.end == (0, 0, 0.2)


def test_every_moving_capsule_keeps_clear_of_every_obstacle(tmp_path):
    limits = limits_from(
        """
        [[obstacle]]
        name = "pillar"
        kind = "capsule"
        start = [0.8, 0, 0]
        end = [0.8, 0, 1.5]
        radius = 0.1
        margin = 0.02
        [[obstacle]]
        kind = "sphere"
        centre = [0, 0.8, 1]
        radius = 0.1
        ignore = ["fore"]
        [[obstacle]]
        name = "crate"
        kind = "box"
        lower = [-1.2, -0.2, 0]
        upper = [-0.8, 0.2, 0.2]
        [[obstacle]]
        name = "floor"
        kind = "half_space"
        normal = [0, 0, 1]
        [self_collision]
        on = false
        """,
        tmp_path,
        arm(base=BODY),
    )
    assert [rule.name for rule in limits.rules] == [
        *("pillar - fore", "pillar - hand", "pillar - upper", "obstacle 2 - hand", "obstacle 2 - upper"),
        *("crate - fore", "crate - hand", "crate - upper"),
        *("floor - fore (start)", "floor - fore (end)", "floor - hand (start)", "floor - hand (end)"),
        *("floor - upper (start)", "floor - upper (end)"),
    ]
    pillar, _, _, ball, _, crate, _, _, floor, *_ = limits.rules
    assert isinstance(pillar, CapsulePair)
    assert pillar.margin == 0.02
    assert isinstance(ball, CapsulePair)
    assert ball.second.start == ball.second.end == (0, 0.8, 1)
    assert isinstance(crate, CapsulePair)
    assert isinstance(floor, PointRule)
    assert floor.margin == 0.05
    corners = np.array([[x, y, z] for x in (-1.2, -0.8) for y in (-0.2, 0.2) for z in (0, 0.2)])
    start, end = np.array(crate.second.start), np.array(crate.second.end)
    share = np.clip((corners - start) @ (end - start) / max((end - start) @ (end - start), 1e-12), 0, 1)
    gaps = np.linalg.norm(corners - start - share[:, None] * (end - start), axis=1)
    assert gaps.max() <= crate.second.radius


def test_a_floor_is_kept_exactly_by_capsules_at_their_radius(tmp_path):
    robot = arm()
    limits = limits_from('[[obstacle]]\nkind = "half_space"\nnormal = [0, 0, 1]\noffset = 0.1', tmp_path, robot)
    floor = [rule for rule in limits.rules if isinstance(rule, PointRule) and "hand" in rule.name]
    q = np.array([[0.0], [2.0], [0.3]])
    arm_places = ArmPlaces(robot, (point for rule in floor for point in rule.points))
    places = arm_places.at(q)
    heights = [0.5 + 0.5 * np.cos(2.0) + reach * np.cos(2.3) - 0.05 - 0.1 for reach in (0.0, 0.3)]
    found = [rule.clearance(arm_places.of(rule, places))[0][0] for rule in floor]
    np.testing.assert_allclose(found, heights, atol=1e-12)


def test_an_obstacle_around_the_base_is_refused_with_its_name_and_by_how_much(tmp_path):
    text = '[[obstacle]]\nname = "barrel"\nkind = "sphere"\ncentre = [0, 0, 0.5]\nradius = 0.4'
    with pytest.raises(DesignError, match=r"rule 'barrel - fore' cannot be kept: it is broken by at least 0\.45 m"):
        limits_from(text, tmp_path)


def test_a_region_out_of_reach_is_refused_by_what_is_missing(tmp_path):
    text = '[[space]]\nname = "shelf"\nkind = "half_space"\nnormal = [0, 0, 1]\noffset = 1.25\npoint = [0, 0, 0.1]'
    with pytest.raises(DesignError, match=r"rule 'shelf' cannot be kept: it is broken by at least 0\.15 m"):
        limits_from(text, tmp_path)


def test_a_small_region_that_random_postures_miss_is_still_found(tmp_path):
    text = '[[space]]\nkind = "sphere"\nkeep = "in"\ncentre = [0.3, 0.2, 0.9]\nradius = 1e-4\npoint = [0, 0, 0.3]'
    assert "space 1" in [rule.name for rule in limits_from(text, tmp_path).rules]


BAD = {
    "not TOML": ("[joints", "not TOML"),
    "an unknown table": ("[joint]\nvelocity = 1", "unknown key 'joint'; allowed: .*did you mean 'joints'"),
    "an unknown side": (
        'torque_side = "motors"',
        "allowed: motor, joint; did you mean 'motor'",
    ),
    "a table that is none": ("joints = 3", "joints is 3; allowed: a table"),
    "an unknown key of joints": ("[joints]\nvelocty = 1", "unknown key 'velocty'.*did you mean 'velocity'"),
    "a velocity that is a word": (
        '[joints]\nvelocity = "fast"',
        "velocity of joint 'pan' is 'fast'; allowed: a number",
    ),
    "a velocity that is true": ("[joints]\nvelocity = true", "velocity of joint 'pan' is True; allowed: a number"),
    "a velocity that is nan": ("[joints]\nvelocity = nan", "is nan"),
    "a velocity of zero": ("[joints]\nvelocity = 0", "velocity of joint 'pan' is 0; allowed: a .*number above 0"),
    "an infinite velocity": ("[joints]\nvelocity = inf", "no velocity limit is known for any joint"),
    "a negative torque": ("[joints]\ntorque = [1, -2, 3]", "torque of joint 'lift' is -2"),
    "a negative scale": ("[joints]\njerk_scale = -1", "jerk_scale of joint 'pan' is -1"),
    "a list too short": ("[joints]\nvelocity = [1, 2]", "velocity has 2 entries; 3 are expected, for pan, lift, bend"),
    "an unknown joint": (
        "[joints]\nvelocity = {left = 1}",
        "joints: pan, lift, bend; did you mean 'lift'",
    ),
    "radians and degrees": ("[joints]\nvelocity = 1\nvelocity_deg = 1", "both velocity and velocity_deg"),
    "a range and an end": ("[joints]\nposition = [0, 1]\nlower = 0", "both position and lower"),
    "a range of three": ("[joints]\nposition = [0, 1, 2]", "allowed: a pair .lower, upper."),
    "a number for a range": ("[joints]\nposition = 1", "position of joint 'pan' is 1; allowed: a pair"),
    "ranges too few": ("[joints]\nposition = [[0, 1], [0, 1]]", "position has 2 entries"),
    "an infinite range": ("[joints]\nposition = [-inf, inf]", "is .-inf, inf.; allowed: .* a finite number"),
    "a range of no length": (
        "[joints]\nposition = {lift = [1, 1]}",
        "joint 'lift' may move from 1 to 1; allowed is",
    ),
    "a range upside down": ("[joints]\nlower = 3", "joint 'pan' may move from 3 to 2.4"),
    "more than the whole range": (
        "[joints]\nposition_scale = 1.05",
        "position_scale of joint 'pan' is 1.05; allowed: a finite number above 0 and at most 1",
    ),
    "nothing of the range": (
        "[joints]\nposition_scale = 0",
        "position_scale of joint 'pan' is 0; allowed: a .*number above 0",
    ),
    "a floor that is a word": ('floor = "low"', "floor is 'low'; allowed: a height .m., or 'none'"),
    "a floor without a number": ("floor = inf", "floor is inf; allowed: a height"),
    "two floors": (
        'floor = 0\n[[obstacle]]\nname = "floor"\nkind = "half_space"\nnormal = [0, 0, 1]',
        "both a floor and an .* named 'floor' are given; keep one",
    ),
    "a margin that leaves nothing": ("[joints]\nposition_margin = 2.4", "leaves nothing of the range -2.4 to 2.4"),
    "a negative position margin": ("[joints]\nposition_margin = -1", "allowed: a finite number of 0 or more"),
    "space as a single table": ('[space]\nkind = "box"', r"write \[\[space\]\]"),
    "a rule without a kind": ('[[space]]\nname = "x"', r"\[\[space\]\] 'x': 'kind' is missing"),
    "a rule of unknown kind": ('[[space]]\nkind = "halfspace"', "did you mean 'half_space'"),
    "a rule with a key of another": ('[[space]]\nkind = "sphere"\nnormal = [1, 0, 0]', "unknown key 'normal'"),
    "a rule that does not say in or out": (
        '[[space]]\nkind = "cylinder"\nradius = 1',
        "'keep' is missing",
    ),
    "a rule with a wrong side": (
        '[[space]]\nkind = "cylinder"\nkeep = "inn"\nradius = 1',
        "did you mean 'in'",
    ),
    "a rule without a radius": ('[[space]]\nkind = "sphere"\nkeep = "in"\ncentre = [0, 0, 0]', "'radius' is missing"),
    "a rule without a centre": ('[[space]]\nkind = "sphere"\nkeep = "in"\nradius = 1', "'centre' is missing"),
    "a rule with a flat centre": (
        '[[space]]\nkind = "sphere"\nkeep = "in"\nradius = 1\ncentre = [0, 0]',
        "three numbers",
    ),
    "a rule without a normal": ('[[space]]\nkind = "half_space"', "'normal' is missing"),
    "a normal of no length": ('[[space]]\nkind = "half_space"\nnormal = [0, 0, 0]', "no direction"),
    "a rule on an unknown link": (
        '[[space]]\nkind = "half_space"\nnormal = [0, 0, 1]\nlink = "hands"',
        "link is 'hands'; links: base, upper, fore, hand; did you mean 'hand'",
    ),
    "a point that is a number": (
        '[[space]]\nkind = "half_space"\nnormal = [0, 0, 1]\npoint = 1',
        "point is 1; allowed: three",
    ),
    "a name that is a number": ('[[space]]\nkind = "half_space"\nname = 1', "name is 1; allowed: a text"),
    "a negative margin": (
        '[[space]]\nkind = "half_space"\nnormal = [0, 0, 1]\nmargin = -1',
        "margin .m. is -1",
    ),
    "a capsule without a link": ("[[capsule]]\nradius = 1", "'link' is missing"),
    "a capsule without a start": ('[[capsule]]\nlink = "hand"\nradius = 1', "'start' is missing"),
    "a capsule without a radius": ('[[capsule]]\nlink = "hand"\nstart = [0, 0, 0]', "'radius' is missing"),
    "a negative capsule": ('[[capsule]]\nlink = "hand"\nstart = [0, 0, 0]\nradius = -1', "radius .m. is -1.0; allowed"),
    "a capsule on an unknown link": ('[[capsule]]\nlink = "hnd"\nstart = [0, 0, 0]\nradius = 1', "did you mean 'hand'"),
    "a capsule with an unknown key": (
        '[[capsule]]\nlink = "hand"\nstop = 1',
        "unknown key 'stop'",
    ),
    "an obstacle of unknown kind": ('[[obstacle]]\nkind = "bx"', "did you mean 'box'"),
    "an obstacle with an unknown key": ('[[obstacle]]\nkind = "sphere"\nlink = "a"', "unknown key 'link'"),
    "an infinite box": ('[[obstacle]]\nkind = "box"\nlower = [0, 0, -inf]\nupper = [1, 1, 1]', "box must be finite"),
    "links to ignore that are none": ('[[obstacle]]\nkind = "sphere"\nignore = "hand"', "a list of link names"),
    "unknown links to ignore": ('[[obstacle]]\nkind = "sphere"\nignore = ["hnd"]', "did you mean 'hand'"),
    "an obstacle that every link ignores": (
        '[[obstacle]]\nkind = "sphere"\nignore = ["upper", "fore", "hand"]',
        "every moving link is ignored",
    ),
    "self-collision with an unknown key": ("[self_collision]\noff = true", "unknown key 'off'; allowed: on"),
    "self-collision that is a number": ("[self_collision]\non = 1", "on is 1; allowed: true or false"),
    "a pair of three": ('[self_collision]\nignore = [["a", "b", "c"]]', "a list of pairs of links"),
    "an unknown pair": ('[self_collision]\nignore = [["a", "b"]]', "names link 'a', which carries no capsule"),
    "a negative self-collision margin": ("[self_collision]\nmargin = -1", "margin .m. is -1"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=list(BAD))
def test_a_wrong_file_is_refused_in_one_line_that_names_it(tmp_path, text, message):
    with pytest.raises(DesignError, match=message) as caught:
        limits_from(text, tmp_path, arm(base=BODY))
    assert str(caught.value).startswith(f"{tmp_path / 'limits.toml'}: ")
    assert "\n" not in str(caught.value)


def test_degrees_are_refused_for_a_joint_that_slides(tmp_path):
    robot = arm(kind="prismatic", bend='<limit lower="0" upper="0.2" velocity="0.3" effort="5"/>')
    with pytest.raises(DesignError, match="velocity_deg for joint 'bend', which slides"):
        limits_from("[joints]\nvelocity_deg = 10", tmp_path, robot)
    limits = limits_from("[joints]\nvelocity_deg = {pan = 90, lift = 90}", tmp_path, robot)
    np.testing.assert_allclose(limits.motion.velocity, [np.pi / 2, np.pi / 2, 0.3])


def test_files_that_cannot_be_read_are_refused(tmp_path):
    with pytest.raises(DesignError, match=r"gone.toml: no such file"):
        design_limits(arm(), tmp_path / "gone.toml")
    with pytest.raises(DesignError, match="is a folder or a device"):
        design_limits(arm(), tmp_path)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DesignError, match="not a text file in utf-8"):
        design_limits(arm(), tmp_path / "binary.toml")
    (tmp_path / "huge.toml").write_bytes(b"#" * 1_000_001)
    with pytest.raises(DesignError, match="larger than 1 MB"):
        design_limits(arm(), tmp_path / "huge.toml")
