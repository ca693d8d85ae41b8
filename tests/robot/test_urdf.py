import math
from pathlib import Path

import numpy as np
import pytest
from lxml import etree  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]

from steelyard.robot import parse_urdf_document, read_table, read_urdf, transform_from_placement

# Pinocchio's order of the ten parameters: m, first moments, then the columns of the upper triangle.
OURS_FROM_PINOCCHIO = [4, 5, 7, 6, 8, 9, 1, 2, 3, 0]


def test_a_urdf_and_its_dh_table_give_the_same_bodies(two_joint: bytes, two_joint_table: bytes) -> None:
    urdf, table = read_urdf(two_joint), read_table(two_joint_table)
    for ours, theirs in zip(urdf.bodies, table.bodies, strict=True):
        for a, b in zip(
            transform_from_placement(ours.placement), transform_from_placement(theirs.placement), strict=True
        ):
            np.testing.assert_array_equal(a, b)
        assert ours.joint.axis == theirs.joint.axis
    assert urdf.bodies[1].inertia == table.bodies[1].inertia


@pytest.mark.parametrize("name", ["two_joint", "branched"])
def test_bodies_with_their_fixed_links_equal_pinocchios(name: str, request: pytest.FixtureRequest) -> None:
    pin = pytest.importorskip("pinocchio", reason="pin has no wheel here")
    text = request.getfixturevalue(name)
    robot, model = read_urdf(text, right_angle_tolerance=0), pin.buildModelFromXML(text.decode())
    for body in robot.bodies:
        index = model.getJointId(body.joint.name)
        parameters = model.inertias[index].toDynamicParameters()[OURS_FROM_PINOCCHIO]
        rotation, translation = transform_from_placement(body.placement)
        np.testing.assert_allclose(np.array(body.inertia), parameters, atol=1e-12)
        np.testing.assert_allclose(rotation, model.jointPlacements[index].rotation, atol=1e-12)
        np.testing.assert_allclose(translation, model.jointPlacements[index].translation, atol=1e-12)


def test_link_poses_equal_pinocchios_at_random_positions(branched: bytes, poses) -> None:
    pin = pytest.importorskip("pinocchio", reason="pin has no wheel here")
    limited = b'<axis xyz="1 2 3"/><limit lower="-3" upper="3" velocity="1" effort="1"/>'
    text = branched.replace(b"continuous", b"revolute").replace(b'<axis xyz="1 2 3"/>', limited)
    robot, model = read_urdf(text), pin.buildModelFromXML(text.decode())
    data, rng = model.createData(), np.random.default_rng(5)
    for _ in range(5):
        q = rng.uniform(-1, 1, 3)
        q_pin = np.zeros(3)
        for body in robot.bodies:
            q_pin[model.joints[model.getJointId(body.joint.name)].idx_q] = q[body.number - 1]
        pin.framesForwardKinematics(model, data, q_pin)
        for link in ("sensor", "left_tip", "right"):
            expected = data.oMf[model.getFrameId(link)].homogeneous
            np.testing.assert_allclose(poses.of_link(robot, link, q), expected, atol=1e-12)


def test_a_rounded_right_angle_becomes_exact_and_a_note_names_the_joint(two_joint: bytes) -> None:
    robot = read_urdf(two_joint)
    rotation, _ = transform_from_placement(robot.bodies[1].placement)
    assert set(np.unique(np.abs(rotation))) == {0.0, 1.0}
    assert any("right angle" in note and "'elbow'" in note and "'shoulder'" not in note for note in robot.notes)


def test_zero_tolerance_reads_angles_literally(two_joint: bytes) -> None:
    robot = read_urdf(two_joint, right_angle_tolerance=0)
    rotation, _ = transform_from_placement(robot.bodies[1].placement)
    assert rotation[1, 1] == pytest.approx(math.cos(1.5708), abs=1e-15)
    assert rotation[1, 1] != 0
    assert not any("right angle" in note for note in robot.notes)


def test_limits_are_read_and_zero_means_not_given(two_joint: bytes) -> None:
    robot = read_urdf(two_joint)
    limits = robot.joint("shoulder").limits
    assert (limits.lower, limits.upper, limits.velocity, limits.effort) == (-2, 2.5, 3, 50)
    assert robot.joint("elbow").limits.velocity == math.inf
    assert any("'elbow'" in note and "velocity limit 0" in note for note in robot.notes)


def test_a_continuous_joint_has_no_range(two_joint: bytes) -> None:
    limits = read_urdf(two_joint.replace(b'type="revolute"', b'type="continuous"')).joint("shoulder").limits
    assert (limits.lower, limits.upper, limits.velocity) == (-math.inf, math.inf, 3)


def test_a_range_from_zero_to_zero_counts_as_not_given(two_joint: bytes) -> None:
    robot = read_urdf(two_joint.replace(b'lower="-1" upper="1"', b'lower="0" upper="0"'))
    assert robot.joint("elbow").limits.upper == math.inf
    assert any("'elbow'" in note and "range 0 to 0" in note for note in robot.notes)


def test_dynamics_become_motor_side_friction_where_not_zero(two_joint: bytes) -> None:
    assert dict(read_urdf(two_joint).values) == {"Fvm1": 1.5, "Fvm2": 0.4, "Fcm2": 0.7}


def test_the_axis_is_normalised_and_defaults_to_x(two_joint: bytes) -> None:
    assert read_urdf(two_joint).joint("elbow").axis == (0.0, 0.0, 1.0)
    without = two_joint.replace(b'<axis xyz="0 0 2"/>', b"")
    assert read_urdf(without).joint("elbow").axis == (1.0, 0.0, 0.0)


def test_a_link_without_inertial_has_no_inertia(two_joint: bytes) -> None:
    start, end = two_joint.index(b'<link name="fore">'), two_joint.index(b'<joint name="shoulder"')
    robot = read_urdf(two_joint[:start] + b'<link name="fore"/>' + two_joint[end:])
    assert robot.bodies[1].inertia is None
    assert "inertias" not in robot.carries


TRANSMISSION = b"""<transmission name="t"><type>transmission_interface/SimpleTransmission</type><joint name="elbow"/>
<actuator name="m"><mechanicalReduction>%s</mechanicalReduction></actuator></transmission></robot>"""


@pytest.mark.parametrize(
    ("text", "ratio"), [(b"-48", -48.0), (b"1", None), (b"soft", None), (b"0", None), (b"nan", None)]
)
def test_a_transmission_gives_the_gear_ratio_where_it_says_one(
    two_joint: bytes, text: bytes, ratio: float | None
) -> None:
    robot = read_urdf(two_joint.replace(b"</robot>", TRANSMISSION % text))
    assert robot.joint("elbow").gear_ratio == ratio


def test_two_transmissions_of_one_joint_say_nothing(two_joint: bytes) -> None:
    twice = two_joint.replace(b"</robot>", TRANSMISSION % b"48").replace(b"</robot>", TRANSMISSION % b"50")
    assert read_urdf(twice).joint("elbow").gear_ratio is None


def test_the_document_keeps_comments_and_unknown_tags(two_joint: bytes) -> None:
    text = etree.tostring(parse_urdf_document(two_joint))
    assert b"a comment that must survive" in text
    assert b"Gazebo/Blue" in text


def test_a_leftover_xacro_namespace_is_harmless(two_joint: bytes) -> None:
    text = two_joint.replace(b"<robot ", b'<robot xmlns:xacro="http://www.ros.org/wiki/xacro" ')
    assert len(read_urdf(text).bodies) == 2


@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-1", "utf-8-sig"])
def test_other_encodings_of_the_same_file_are_read(two_joint: bytes, encoding: str) -> None:
    text = two_joint.decode()
    if encoding != "utf-8-sig":
        text = text.replace('version="1.0"', f'version="1.0" encoding="{encoding}"')
    assert read_urdf(text.encode(encoding)).name == "two_joint"


def test_a_file_without_a_name_is_called_after_its_path(two_joint: bytes, tmp_path: Path) -> None:
    path = tmp_path / "my_arm.urdf"
    path.write_bytes(two_joint.replace(b' name="two_joint"', b""))
    robot = read_urdf(path)
    assert robot.name == "my_arm"
    assert robot.source == str(path)
