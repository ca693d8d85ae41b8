"""The unknowns of a calibration: which there are, how they are called and what they mean."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from arms import arm
from steelyard.calibration.chain.unknowns import directions, error_motions, unknown_parameters
from steelyard.calibration.measurement.setup import CalibrationSetup, ElasticSetup, FrameSetup, MarkerSetup
from steelyard.errors import CalibrationError
from steelyard.robot import load_robot

KNOWN = FrameSetup(xyz=(0.0, 0.0, 0.0), rpy=(0.0, 0.0, 0.0), known=True)


def by_name(robot, setup, **more):
    return {parameter.name: parameter for parameter in unknown_parameters(robot, setup, **more)}


def test_unknowns_come_group_by_group_and_have_names_of_their_own():
    robot = arm("kuka_kr270")
    elastic = ElasticSetup(joints=("joint_2", "joint_3"), lateral=("joint_3",), own_weight="unknown")
    markers = (MarkerSetup("left"), MarkerSetup("right", (0.1, 0.2, 0.3)), MarkerSetup("fixed", (0.0, 0.0, 0.1), True))
    setup = CalibrationSetup(link="tool", markers=markers, elastic=elastic)
    parameters = unknown_parameters(robot, setup, orientation=True)
    groups = [parameter.group for parameter in parameters]
    assert list(dict.fromkeys(groups)) == ["base", "joint", "tool", "marker", "compliance", "weight"]
    counts = [groups.count(group) for group in dict.fromkeys(groups)]
    assert counts == [6, 36, 6, 6, 4, 20]
    names = [parameter.name for parameter in parameters]
    assert len(set(names)) == len(names)
    assert names[:6] == ["base_x", "base_y", "base_z", "base_rx", "base_ry", "base_rz"]
    assert names[48:54] == ["x[left]", "y[left]", "z[left]", "x[right]", "y[right]", "z[right]"]
    assert names[54:62] == ["k2", "k3", "k3x", "k3z", "MX2", "MY2", "MZ2", "M2"]


def test_nominal_values_are_those_of_file_and_set_up():
    robot = arm("kuka_kr270")
    elastic = ElasticSetup(joints=("joint_2", "joint_3"), nodes={"joint_2": (0.0, -0.4)}, own_weight="unknown")
    setup = CalibrationSetup(link="tool", markers=(MarkerSetup("m", (0.1, 0.2, 0.3)),), elastic=elastic)
    found = by_name(robot, setup)
    assert [found[f"{letter}[m]"].nominal for letter in "xyz"] == [0.1, 0.2, 0.3]
    assert [found[name].nominal for name in ("k21", "k22", "k3")] == [0.287e-6, 0.277e-6, 0.416e-6]
    inertia = robot.bodies[3].inertia
    assert inertia is not None
    assert [found[name].nominal for name in ("MX4", "MY4", "MZ4", "M4")] == list(inertia[6:10])
    assert all(each.nominal == 0 for each in found.values() if each.group in ("base", "joint"))
    moved = by_name(robot, setup, markers=np.array([[1.0, 2.0, 3.0]]))
    assert [moved[f"{letter}[m]"].nominal for letter in "xyz"] == [1.0, 2.0, 3.0]


def test_what_is_known_is_no_unknown():
    robot = load_robot("ur10e")
    setup = CalibrationSetup(
        link="wrist_3_link", base=KNOWN, geometry="none", markers=(MarkerSetup("a", (0, 0, 0), True),)
    )
    assert unknown_parameters(robot, replace(setup, tool=KNOWN), orientation=True) == ()
    assert [each.group for each in unknown_parameters(robot, setup, orientation=True)] == ["tool"] * 6
    assert unknown_parameters(robot, setup) == ()
    elbow = replace(setup, geometry=("elbow_joint",))
    assert [each.name for each in unknown_parameters(robot, elbow)] == ["x3", "y3", "z3", "rx3", "offset3", "rz3"]


@pytest.mark.parametrize("name", ["kuka_kr270", "skewed_chain", "sliding_tree", "gripper", "staubli_tx40"])
def test_the_six_errors_of_a_joint_are_three_shifts_and_three_turns_about_perpendicular_directions(name):
    for body in arm(name).bodies:
        motions = error_motions(body)
        assert [motion.kind for motion in motions] == ["translate"] * 3 + ["rotate"] * 3
        for half in (motions[:3], motions[3:]):
            axes = np.array([motion.axis for motion in half])
            np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-15)
        own = [motion for motion in motions if motion.name == f"offset{body.number}"]
        assert len(own) == 1
        assert own[0].axis == body.joint.axis
        assert own[0].kind == ("translate" if body.joint.kind == "prismatic" else "rotate")


def test_an_odd_axis_has_directions_of_its_own():
    shoulder, elbow, _ = arm("skewed_chain").bodies
    assert list(directions(shoulder)) == ["u", "v", "w"]
    assert [motion.name for motion in error_motions(shoulder)] == ["u1", "v1", "w1", "ru1", "rv1", "offset1"]
    assert [motion.name for motion in error_motions(elbow)] == ["x2", "y2", "z2", "rx2", "offset2", "rz2"]
    hand = arm("sliding_tree").bodies[3]
    assert [motion.name for motion in error_motions(hand)] == ["u4", "v4", "offset4", "ru4", "rv4", "rw4"]


def test_meanings_are_words_of_robot_engineers():
    found = by_name(load_robot("kuka_kr270"), CalibrationSetup(link="tool", elastic=ElasticSetup(lateral=("joint_4",))))
    assert found["offset2"].meaning == "offset of joint_2 about its own axis"
    assert found["x3"].meaning == "length of the link before joint_3 along x (nominally 1.25 m)"
    assert found["x4"].meaning == "length of the link before joint_4 along its own axis (nominally 1.1 m)"
    assert found["rx3"].meaning == "twist of the axis of joint_3 about x"
    assert found["rz3"].meaning == "parallelism of the axes of joint_2 and joint_3, about z"
    assert found["rz2"].meaning == "tilt of the axis of joint_2 about z"
    assert found["z2"].meaning == "shift of joint_2 along z"
    assert found["k4y"].meaning == "lateral compliance of joint_4 about y of its frame"
    assert found["base_rx"].meaning == "turn about x of the robot base in the measurement frame"
    slide = by_name(arm("sliding_tree"), CalibrationSetup(link="right_hand"))
    assert slide["offset1"].meaning == "offset of lift along its own axis"
    assert slide["rz1"].meaning == "turn of the slide of lift about its own axis"


def test_units_follow_the_joint():
    elastic = ElasticSetup(joints=("lift", "right_shoulder"), lateral=("lift",), nodes={"lift": (0.0, 0.5)})
    found = by_name(arm("sliding_tree"), CalibrationSetup(link="right_hand", elastic=elastic))
    names = ("offset1", "x1", "offset3", "k11", "k1x", "k3")
    assert [found[name].unit for name in names] == ["m", "m", "rad", "m/N", "rad/(N m)", "rad/(N m)"]
    assert found["k12"].meaning == "compliance of lift along its own axis at 0.5 m"


def test_only_the_chain_has_errors_and_only_links_behind_a_spring_have_weights():
    elastic = ElasticSetup(joints=("left_shoulder",), own_weight="unknown")
    names = list(by_name(arm("sliding_tree"), CalibrationSetup(link="left_tool", elastic=elastic)))
    assert names[6:18] == [motion.name for body in arm("sliding_tree").bodies[:2] for motion in error_motions(body)]
    assert names[18:] == ["k2", "MX2", "MY2", "MZ2", "M2"]


@pytest.mark.parametrize(
    "setup",
    [
        CalibrationSetup(link="left_tool", geometry=("right_shoulder",)),
        CalibrationSetup(link="left_tool", elastic=ElasticSetup(joints=("right_shoulder",))),
        CalibrationSetup(link="left_tool", elastic=ElasticSetup(lateral=("right_shoulder",))),
    ],
)
def test_a_joint_that_does_not_move_the_link_is_refused(setup):
    with pytest.raises(
        CalibrationError, match=r"joint 'right_shoulder' does not move .*lift, left_shoulder; did you mean"
    ):
        unknown_parameters(arm("sliding_tree"), setup)
