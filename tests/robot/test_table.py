import math

import numpy as np

from steelyard.robot import GearCoupling, read_table, transform_from_placement
from steelyard.robot import table as table_module

FULL = b"""
[robot]
name = "full"
gravity = [0, -9.8, 0]
source = "our own"
payload_link = "tool"
springs = ["lift"]
torque = "motor_current"
measured = "motor"
effects = ["inertia", "Fvm"]

[[joint]]
name = "lift"
type = "prismatic"
parent = "ground"
link = "mast"
xyz = [0, 0, 1]
rpy_deg = [90, 0, 0]
axis = [0, 0, -3]
lower = 0.0
upper = 0.5
velocity = 0.4
inertia = [1, 0, 0, 1, 0, 1, 0, 0, 0, 10]

[[joint]]
name = "turn"
type = "continuous"
alpha = 0.5
d = 0.1
theta = 0.25
r = 0
gamma_deg = 90
b = 0.2
velocity_deg = 180
acceleration_deg = 360
jerk_deg = 900
gear_ratio = -48
rotor_inertia = 1e-5

[[joint]]
parent = "mast"
alpha_deg = 0
d = 0
theta_deg = 0
r = 0
lower_deg = -90
upper_deg = 90
mimic = { leader = "turn", multiplier = 2, offset = 0.1 }

[[joint]]
name = "tool_joint"
type = "fixed"
link = "tool"
xyz = [0, 0, 0.1]

[values]
Ia2 = 0.3
Fvm = [1, 2, 3]
k21 = 1e-6

[payloads]
ball = [0.1, 0, 0, 0.1, 0, 0.1, 0, 0, 0.2, 1]

[[gear_coupling]]
motor = "lift"
also_turns_with = "turn"
"""


def test_every_key_of_a_table_lands_in_the_robot() -> None:
    robot = read_table(FULL)
    assert (robot.root, robot.gravity, robot.source) == ("ground", (0, -9.8, 0), "our own")
    assert (robot.payload_link, robot.springs) == ("tool", ("lift",))
    assert (robot.defaults.torque, robot.defaults.measured) == ("motor_current", "motor")
    assert robot.defaults.effects == ("inertia", "Fvm")
    assert dict(robot.values) == {"Ia2": 0.3, "Fvm1": 1, "Fvm2": 2 + 2**2 * 3, "k21": 1e-6}
    assert robot.gear_couplings == (GearCoupling("lift", "turn", 1.0),)
    assert robot.payloads["ball"][9] == 1
    assert [(body.joint.name, body.parent) for body in robot.bodies] == [("lift", 0), ("turn", 1), ("joint_3", 1)]
    assert robot.frame("tool").body == 3


def test_limits_and_drives_of_a_table_are_in_si() -> None:
    robot = read_table(FULL)
    turn, third = robot.joint("turn"), robot.joint("joint_3")
    assert (turn.gear_ratio, turn.rotor_inertia) == (-48, 1e-5)
    assert turn.limits.velocity == math.pi
    assert turn.limits.acceleration == 2 * math.pi
    assert turn.limits.jerk == 5 * math.pi
    assert (third.limits.lower, third.limits.upper) == (-math.pi / 2, math.pi / 2)
    assert robot.joint("lift").axis == (0.0, 0.0, -1.0)
    np.testing.assert_array_equal(robot.coupling()[0], [[1, 0], [0, 1], [0, 2]])


def test_rows_on_one_line_each_are_the_same_table(two_joint_table: bytes) -> None:
    compact = b"""
joint = [
  {name = "shoulder", link = "upper", alpha_deg = 0, d = 0, theta_deg = 0, r = 0.3},
  {name="elbow", link="fore", alpha_deg = -90, d = 0.4, theta_deg = 0, r=0, inertia = [0.02,0,0,0.02,0,0.01,0,0,0,2]},
]
[robot]
name = "two_joint"
"""
    assert read_table(compact) == read_table(two_joint_table)


def test_the_example_of_the_documentation_is_read() -> None:
    text = (table_module.__doc__ or "").split("Example::")[1].split("The same rows")[0]
    robot = read_table("\n".join(line[4:] for line in text.splitlines()).encode())
    assert [body.joint.name for body in robot.bodies] == ["joint_1", "joint_2"]
    assert dict(robot.values) == {"Ia2": 0.3, "Fvm1": 1.5, "Fvm2": 0.8}


def test_a_dh_row_and_its_xyz_form_give_the_same_transform() -> None:
    dh = b'joint = [{alpha_deg = -90, d = 0.4, theta_deg = 0, r = 0.2}]\n[robot]\nname = "a"'
    xyz = b'joint = [{xyz = [0.4, 0.2, 0], rpy_deg = [-90, 0, 0], axis = [0, 0, 1]}]\n[robot]\nname = "a"'
    first, second = (transform_from_placement(read_table(text).bodies[0].placement) for text in (dh, xyz))
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])
