"""Units: how they are written, what one of them is in SI, and which of them a row of a channel may have."""

from __future__ import annotations

import numpy as np
import pytest

from arms import arm as arm_of
from steelyard.errors import RecordingError
from steelyard.recording.setup import ChannelSetup
from steelyard.recording.units import (
    allowed_units,
    channel_scale,
    gear_matrix,
    joint_values,
    normal_unit,
    row_quantities,
    si_scale,
    unit_in_name,
)
from steelyard.robot import load_robot, read_urdf

ONE_NAMED_LIKE_A_UNIT = """<robot name="odd"><link name="a"/><link name="b"/><joint name="deg" type="continuous">
<parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint></robot>"""


@pytest.mark.parametrize(
    ("name", "bare", "unit"),
    [
        ("q1 [deg]", "q1", "deg"),
        ("i (mA)", "i", "mA"),
        ("torque[%]", "torque", "percent"),
        ("encoder [ticks] ", "encoder", "count"),
        ("speed (counts/s)", "speed", "count/s"),
        ("share (permille)", "share", "permille"),
        ("q[2] [rad]", "q[2]", "rad"),
        ("[s]", "", "s"),
        ("q[1]", "q[1]", None),
        ("q (left)", "q (left)", None),
        ("q [deg] raw", "q [deg] raw", None),
        ("q", "q", None),
    ],
)
def test_a_unit_in_brackets_at_the_end_of_a_name_is_its_unit(name, bare, unit):
    assert unit_in_name(name) == (bare, unit)


def test_units_have_one_spelling():
    assert [normal_unit(unit) for unit in (" Degrees ", "N m", "µs", "%", "turns", "parsec")] == [
        "deg", "Nm", "us", "percent", "rev", "parsec",
    ]  # fmt: skip


def test_counts_are_units_of_angles_and_parts_of_a_rating_of_what_is_rated():
    assert allowed_units("angle") == ("rad", "mrad", "deg", "rev", "count")
    assert allowed_units("angular speed")[-1] == "count/s"
    assert allowed_units("length") == ("m", "mm", "cm", "um")
    assert allowed_units("force", rated=True) == ("N", "mN", "kN", "percent", "permille")


@pytest.mark.parametrize(
    ("unit", "quantity", "rating", "counts", "si"),
    [
        ("percent", "moment", 50.0, None, 0.5),
        ("permille", "force", 50.0, None, 0.05),
        ("%", "current", 20.0, None, 0.2),
        ("%", "duty", 20.0, None, 0.01),
        ("count", "angle", None, 4096.0, 2 * np.pi / 4096),
        ("ticks", "angle", None, 4096.0, 2 * np.pi / 4096),
        ("count/s", "angular speed", 7.0, 1000.0, 2 * np.pi / 1000),
    ],
)
def test_parts_of_a_rating_and_counts_of_an_encoder_are_brought_to_si(unit, quantity, rating, counts, si):
    assert si_scale(unit, quantity, "column", rating, counts) == pytest.approx(si, rel=1e-15)


@pytest.mark.parametrize(
    ("unit", "quantity", "message"),
    [
        ("percent", "moment", r"i: unit 'percent' is a part of a rating; state it with rating = \[...\]"),
        ("count", "angle", "i: unit 'count' needs the encoder's counts_per_turn"),
        ("count/s", "angle", "unit 'count/s' is no unit of angle; allowed: rad, mrad, deg, rev, count; did you mean"),
        ("percent", "angle", "unit 'percent' is no unit of angle; allowed: rad, mrad, deg, rev, count; did you mean"),
        ("kA", "current", "unit 'kA' is no unit of current; allowed: A, mA, percent, permille"),
        ("Ncm", "force", "unit 'Ncm' is no unit of force; allowed: N, mN, kN, percent, permille"),
    ],
)
def test_a_unit_of_something_else_is_refused_with_those_allowed(unit, quantity, message):
    with pytest.raises(RecordingError, match=message):
        si_scale(unit, quantity, "i")


def test_a_pose_has_three_lengths_and_then_pure_numbers_and_a_wrench_three_forces_and_moments():
    robot = load_robot("scara_2r")
    assert row_quantities(robot, ChannelSetup("pose"), 3) == ["length"] * 3
    assert row_quantities(robot, ChannelSetup("pose"), 7) == ["length"] * 3 + ["duty"] * 4
    assert row_quantities(robot, ChannelSetup("torque", kind="wrench"), 6) == ["force"] * 3 + ["moment"] * 3


@pytest.mark.parametrize(
    ("channel", "turning", "sliding"),
    [
        (ChannelSetup("q"), "angle", "length"),
        (ChannelSetup("qd"), "angular speed", "linear speed"),
        (ChannelSetup("torque", kind="motor_torque"), "moment", "force"),
        (ChannelSetup("torque", kind="motor_current"), "current", "current"),
        (ChannelSetup("temperature"), "temperature", "temperature"),
    ],
)
def test_a_row_of_a_sliding_joint_has_lengths_and_forces(channel, turning, sliding):
    robot = arm_of("sliding_tree")
    sliding_joints = [body.joint.kind == "prismatic" for body in robot.actuated]
    assert True in sliding_joints
    assert False in sliding_joints
    expected = [sliding if slides else turning for slides in sliding_joints]
    assert row_quantities(robot, channel, len(expected)) == expected


@pytest.mark.parametrize(
    ("channel", "names", "scale", "shift"),
    [
        (ChannelSetup("q"), None, [1, 1], [0, 0]),
        (ChannelSetup("q"), ["a [deg]", "b [deg]"], [np.pi / 180] * 2, [0, 0]),
        (ChannelSetup("q", unit=("deg", "rad"), sign=(1, -1)), ["a", "b [rad]"], [np.pi / 180, -1], [0, 0]),
        (ChannelSetup("q", unit="count", counts_per_turn=(100, 200)), None, [np.pi / 50, np.pi / 100], [0, 0]),
        (ChannelSetup("qd", sign={"joint_2": -1}), None, [1, -1], [0, 0]),
        (ChannelSetup("torque", kind="motor_current", unit="%", rating=(5, 10)), None, [0.05, 0.1], [0, 0]),
        (ChannelSetup("temperature", unit="K"), None, [1, 1], [-273.15] * 2),
        (ChannelSetup("temperature", unit=("K", "degC")), None, [1, 1], [-273.15, 0]),
    ],
)
def test_factor_and_shift_of_each_row_follow_from_units_signs_and_ratings(channel, names, scale, shift):
    found = channel_scale(load_robot("scara_2r"), channel, names, 2, "log")
    np.testing.assert_allclose(found[0], scale, rtol=1e-15)
    np.testing.assert_allclose(found[1], shift, rtol=1e-15)


def test_the_units_of_a_wrench_are_one_of_forces_and_one_of_moments_or_six():
    robot = load_robot("scara_2r")
    for unit in (("kN", "mNm"), ("kN", "kN", "kN", "mNm", "mNm", "mNm")):
        scale, _ = channel_scale(robot, ChannelSetup("torque", kind="wrench", unit=unit), None, 6, "log")
        np.testing.assert_allclose(scale, [1e3] * 3 + [1e-3] * 3)
    scale, _ = channel_scale(robot, ChannelSetup("torque", kind="wrench", unit="kN"), None, 6, "log")
    np.testing.assert_allclose(scale, [1e3] * 3 + [1] * 3)
    with pytest.raises(RecordingError, match="log: 3 units for 6 rows; give one, or one for each"):
        channel_scale(robot, ChannelSetup("torque", kind="wrench", unit=("N", "N", "Nm")), None, 6, "log")


@pytest.mark.parametrize(("rows", "scale"), [(3, [1e-3] * 3), (7, [1e-3] * 3 + [1] * 4)])
def test_a_unit_of_a_pose_is_that_of_its_position(rows, scale):
    """Also of an arm with as many joints as the pose has rows."""
    found, shift = channel_scale(load_robot("kuka_lwr4"), ChannelSetup("pose", unit="mm"), None, rows, "log")
    np.testing.assert_allclose(found, scale)
    assert shift.tolist() == [0] * rows


def test_one_unit_of_an_arm_with_sliding_joints_is_that_of_the_joints_it_fits():
    robot = arm_of("sliding_tree")
    slides = np.array([body.joint.kind == "prismatic" for body in robot.actuated])
    for unit, factor in (("mm", np.where(slides, 1e-3, 1.0)), ("deg", np.where(slides, 1.0, np.pi / 180))):
        scale, _ = channel_scale(robot, ChannelSetup("q", unit=unit), None, len(slides), "log")
        np.testing.assert_allclose(scale, factor)
    with pytest.raises(RecordingError, match="unit 'A' is no unit of"):
        channel_scale(robot, ChannelSetup("q", unit="A"), None, len(slides), "log")


def test_two_units_of_a_quantity_in_the_header_are_refused_unless_each_is_declared():
    robot, names = load_robot("scara_2r"), ["a [deg]", "b [rad]"]
    with pytest.raises(RecordingError, match=r"log: mixed units deg and rad in the header; declare unit = \[...\]"):
        channel_scale(robot, ChannelSetup("q"), names, 2, "log")
    scale, _ = channel_scale(robot, ChannelSetup("q", unit=("deg", "rad")), names, 2, "log")
    np.testing.assert_allclose(scale, [np.pi / 180, 1])
    with pytest.raises(RecordingError, match=r"declared in 'rad' but column 'a .deg.' says 'deg'; mend one of them"):
        channel_scale(robot, ChannelSetup("q", unit="rad"), names, 2, "log")


def test_what_looks_like_a_unit_may_be_the_name_of_a_joint():
    robot = read_urdf(ONE_NAMED_LIKE_A_UNIT.encode())
    assert channel_scale(robot, ChannelSetup("q"), ["q[deg]"], 1, "log")[0].tolist() == [1.0]
    assert channel_scale(robot, ChannelSetup("q"), ["q (deg)"], 1, "log")[0].tolist() == [np.pi / 180]


def test_numbers_by_joint_are_one_for_all_one_each_or_by_name():
    robot = load_robot("scara_2r")
    assert joint_values(3, robot, "gain").tolist() == [3, 3]
    assert joint_values((3, 4), robot, "gain").tolist() == [3, 4]
    assert joint_values({"joint_2": 4}, robot, "gain", default=1.0).tolist() == [1, 4]
    assert joint_values({"joint_2": 4, "joint_1": 3}, robot, "gain").tolist() == [3, 4]
    with pytest.raises(RecordingError, match="gain: no number for joint 'joint_1'; give one for each joint"):
        joint_values({"joint_2": 4}, robot, "gain")
    with pytest.raises(RecordingError, match="gain has 3 numbers for 2 joints; one each is expected"):
        joint_values((1, 2, 3), robot, "gain")
    with pytest.raises(RecordingError, match="no joint 'joint_3'; joints: joint_1, joint_2; did you mean 'joint_"):
        joint_values({"joint_3": 4}, robot, "gain")


def test_gears_are_ratios_times_the_coupling_of_the_motors():
    robot, coupling = load_robot("scara_2r"), ((1.0, 0.0), (0.5, 2.0))
    np.testing.assert_array_equal(gear_matrix(robot, (10, -4), coupling), [[10, 0], [-2, -8]])
    np.testing.assert_array_equal(gear_matrix(robot, (0.1, 1e-3), None), [[0.1, 0], [0, 1e-3]])
    tx40 = load_robot("staubli_tx40")
    np.testing.assert_array_equal(np.diag(gear_matrix(tx40, None, None)), [32, 32, 45, -48, 45, 32])
    assert gear_matrix(tx40, None, None)[5, 4] == 32
    for ratios in ((10, 0), (1e-7, 1e-6)):
        with pytest.raises(RecordingError, match="gear ratios and coupling cannot be inverted"):
            gear_matrix(robot, ratios, None)
    with pytest.raises(RecordingError, match="coupling is 3 x 3; the robot has 2 joints"):
        gear_matrix(robot, 1.0, ((1.0, 0.0, 0.0),) * 3)
