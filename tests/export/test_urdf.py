"""URDF of identified arms: only what was identified changes, and every program loads the arm that was meant."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from lxml import etree  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]

from arms import URDFS
from perturbed_arms import deformed, identified, other_values
from steelyard.errors import ExportError, RobotError
from steelyard.export import EXPORTS, IdentifiedArm, write_files
from steelyard.export import verify as verify_module
from steelyard.export.identified import HEADLINE
from steelyard.export.new_urdf import new_urdf
from steelyard.export.urdf import edited_urdf, urdf_file, verify_urdf
from steelyard.export.verify import file_torques, random_states
from steelyard.model import build_model
from steelyard.robot import (
    INERTIAL_NAMES,
    BoxShape,
    CapsuleShape,
    CylinderShape,
    GearCoupling,
    MeshShape,
    Robot,
    SphereShape,
    catalogue_names,
    centre_from_parameters,
    load_robot,
    origin_placement,
    parameters_from_centre,
    read_table,
    read_urdf,
    transform_from_placement,
)
from steelyard.robot.drives import joint_values

ODD = """<?xml version="1.0" encoding="utf-8"?>
<!-- arm of the lab, see <link name="upper"> -->
<robot name="odd--arm" xmlns:xi="http://www.w3.org/2001/XInclude" xmlns:u="urn:lab">
  <material name="grey"><color rgba="0.5 0.5 0.5 1"/></material>
  <link name="base"><visual><geometry><mesh filename="package://nowhere/base.stl"/></geometry></visual></link>
  <link name='upper'>
    <inertial>   <!-- from CAD -->
      <mass value='4'/>
      <origin rpy="0.3 -0.2 0.5" xyz="0.1 0.02 -0.03" />
      <inertia ixx="5e-2" ixy="0.002"
               ixz="-0.001" iyy="0.06" iyz="0.003" izz=".04"></inertia>
    </inertial>
    <collision><geometry><box size="0.1 0.1 0.4"/></geometry></collision>
  </link>
  <link name="camera">
    <inertial><origin xyz="0.01 0 0"/><mass value="0.3"/>
      <inertia ixx="0.0004" ixy="0" ixz="0" iyy="0.0003" iyz="0" izz="0.0005"/></inertial>
  </link>
  <link name="fore"/>
  <link name="tube"><![CDATA[ <inertial> is missing ]]></link>
  <link name="finger_a">
    <inertial><mass value="0.5"/><inertia ixx="0.002" ixy="0" ixz="0" iyy="0.002" iyz="0" izz="0.001"/></inertial>
  </link>
  <link name="finger_b">
    <inertial><origin xyz="0.02 0 0.01" rpy="1.5708 0 0"/><mass value="0.5"/>
      <inertia ixx="0.002" ixy="1e-4" ixz="0" iyy="0.002" iyz="0" izz="0.001"/></inertial>
  </link>
  <joint name="shoulder" type="revolute">
    <origin xyz="0 0 0.3" rpy="0 0.2 0"/>
    <parent link="base"/><child link="upper"/><axis xyz="0 0 1"/>
    <limit lower="-2" upper="2.5" velocity="3" effort="50"/>
    <dynamics damping='1.50' friction="0"/> <!-- guessed -->
    <safety_controller k_velocity="10"/>
  </joint>
  <joint name="camera_mount" type="fixed"><origin xyz="0.1 0 0.2" rpy="0.4 0 0"/>
    <parent link="upper"/><child link="camera"/></joint>
  <joint name="elbow" type="revolute">
    <origin xyz="0.4 0 0" rpy="-1.2 0 0"/>
    <parent link="upper"/>
    <child link="fore"/>
    <axis xyz="0 0 2"/>
    <limit lower="-1" upper="1" velocity="2" effort="20"/>
  </joint>
  <joint name="sleeve" type="fixed"><origin xyz="0 0.1 0"/><parent link="fore"/><child link="tube"/></joint>
  <joint name="grip" type="prismatic">
    <origin xyz="0.2 0 0.1" rpy="0 0.3 0"/><parent link="tube"/><child link="finger_a"/><axis xyz="0.6 0.8 0"/>
    <limit lower="0" upper="0.1" velocity="0.2" effort="9"/><dynamics damping="2"/>
  </joint>
  <joint name="follow" type="revolute">
    <origin xyz="0.2 0 -0.1"/><parent link="tube"/><child link="finger_b"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" velocity="1" effort="9"/><dynamics damping="0.1" friction="0.01"/>
    <mimic joint="grip" multiplier="-5" offset="0.2"/>
  </joint>
  <transmission name="t1"><type>transmission_interface/SimpleTransmission</type>
    <joint name="shoulder"><hardwareInterface>effort</hardwareInterface></joint>
    <actuator name="m1"><mechanicalReduction>100</mechanicalReduction></actuator></transmission>
  <ros2_control name="lab" type="system"><joint name="elbow"><param name="p">1 &lt; 2</param></joint></ros2_control>
  <gazebo reference="upper"><inertial><mass value="99"/></inertial></gazebo>
  <u:extra a = 'b'/>
</robot>
<!-- end -->
"""
FORMS = {
    "plain": ODD.encode(),
    "windows": ODD.replace("\n", "\r\n").encode(),
    "marked": b"\xef\xbb\xbf" + ODD.encode(),
    "no declaration": ODD.partition("\n")[2].encode(),
    "namespace": ODD.replace("<robot ", '<robot xmlns="urn:robots" ').encode(),
    "one line": re.sub(r"\n *", " ", ODD).encode(),
}


def all_known(content: bytes = ODD.encode()) -> Robot:
    """Return the odd arm; the link without an inertial element has known parameters."""
    return read_urdf(content)


def odd_values(robot: Robot) -> dict[str, float]:
    return other_values(robot) | {"Fvm1": 2.25, "Fcm1": 0.75, "Fvm2": 0.5, "Fvm3": 1.5, "Fcm3": 0.25, "Ia1": 0.125}


def without_what_may_change(content: bytes) -> bytes:
    """Return a file without its inertial and dynamics elements, the comment at its top, and blanks."""
    root = etree.fromstring(content)
    for parent, tag in (("link", "inertial"), ("joint", "dynamics")):
        for element in root.iterchildren("{*}" + parent):
            for removed in list(element.iterchildren("{*}" + tag)):
                element.remove(removed)
    text = etree.tostring(root.getroottree(), method="c14n")
    return b"".join(re.sub(rf"<!-- {HEADLINE}.*?-->".encode(), b"", text, flags=re.DOTALL).split())


def torques_of(content: bytes, robot: Robot, locked: dict[str, float] | None = None) -> np.ndarray:
    read = read_urdf(content).with_locked(locked or {})
    return file_torques(read, random_states(robot, 50))


def assert_near(got: np.ndarray, wanted: np.ndarray, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance * np.abs(wanted).max())


@pytest.mark.parametrize("form", FORMS)
def test_unchanged_parameters_leave_the_file_as_it_is(form):
    content = FORMS[form]
    robot = read_urdf(content)
    edit = edited_urdf(content, robot.with_parameters(robot.parameters), comment="changed")
    assert edit.content == content
    assert edit.links == edit.joints == ()


@pytest.mark.parametrize("form", FORMS)
def test_new_parameters_change_nothing_else_and_load_everywhere(form):
    content = FORMS[form]
    robot = read_urdf(content)
    done = urdf_file(identified(robot, odd_values(robot)), content=content)
    assert without_what_may_change(done.content) == without_what_may_change(content)
    assert done.content.count(b"\r\n") == (done.content.count(b"\n") if form == "windows" else 0)
    assert done.content.startswith(content[:5])
    assert done.comparisons[0].program == "steelyard"
    for comparison in done.comparisons:
        assert comparison.states == 1000, comparison.reason
        assert comparison.largest < 1e-12
    assert done.name == "odd_arm.urdf"
    again = read_urdf(done.content)
    for name, value in odd_values(robot).items():
        if name[:-1] in INERTIAL_NAMES:
            assert again.parameters[name] == pytest.approx(value, rel=1e-12, abs=1e-14)
    assert joint_values(again)["shoulder"][:2] == (2.25, 0.75)


def test_only_the_attributes_whose_values_changed_are_touched():
    robot = all_known()
    changed = replace(robot, values={**robot.values, "Fcm1": 0.7})
    edit = edited_urdf(ODD.encode(), changed)
    assert edit.content.decode() == ODD.replace("damping='1.50' friction=\"0\"", "damping='1.50' friction=\"0.7\"")
    assert (edit.links, edit.joints) == ((), ("shoulder",))
    content = re.sub('(?s)<link name="camera">.*?</link>', '<link name="camera"/>', ODD).encode()
    alone = read_urdf(content)
    heavier = {name: 2 * value for name, value in alone.parameters.items() if name[-1] == "1" and name != "Fvm1"}
    edit = edited_urdf(content, alone.with_parameters(heavier))
    text = edit.content.decode()
    assert "<mass value='8.0'/>" in text
    assert '<origin rpy="0.3 -0.2 0.5" xyz="0.1 0.02 -0.03" />' in text
    found = re.search(
        r'<inertia ixx="(\S+)" ixy="\S+"\n               ixz="\S+" iyy="\S+" iyz="\S+" izz="(\S+)">', text
    )
    assert found is not None
    assert [float(value) for value in found.groups()] == pytest.approx([0.1, 0.08], rel=1e-14)
    assert (edit.links, edit.joints) == (("upper",), ())


def test_the_orientation_of_an_inertial_stays_and_near_right_angles_become_exact():
    robot = all_known()
    text = edited_urdf(ODD.encode(), robot.with_parameters(other_values(robot))).content.decode()
    assert '<origin rpy="0.3 -0.2 0.5" xyz=' in text
    assert 'rpy="1.5708 0 0"' not in text
    assert 'rpy="1.5707963267948966 0.0 0.0"/><mass value=' in text
    literal = read_urdf(ODD.encode(), right_angle_tolerance=0)
    moved = {name: value for name, value in other_values(literal).items() if name.endswith("1")}
    edit = edited_urdf(ODD.encode(), literal.with_parameters(moved))
    assert (edit.links, edit.tolerance) == (("upper",), 0.0)
    assert b'rpy="1.5708 0 0"/><mass value="0.5"/>' in edit.content
    assert edited_urdf(ODD.encode(), literal.with_parameters(literal.parameters)).content == ODD.encode()


def test_missing_elements_are_added():
    robot = all_known()
    text = edited_urdf(ODD.encode(), robot.with_parameters(odd_values(robot))).content.decode()
    assert re.search(
        r'  <link name="fore">\n    <inertial>\n      <origin xyz="\S+ \S+ \S+"/>\n      <mass value="\S+"/>\n'
        r'      <inertia ixx="\S+" ixy="\S+" ixz="\S+" iyy="\S+" iyz="\S+" izz="\S+"/>\n    </inertial>\n  </link>\n',
        text,
    )
    assert re.search(r'<link name="finger_a">\n    <inertial><origin xyz="\S+ \S+ \S+"/><mass value="', text)
    assert '<joint name="elbow" type="revolute">\n    <dynamics damping="0.5"/>\n    <origin' in text
    assert '<dynamics damping="1.5" friction="0.2"/>' in text
    assert '<link name="tube"><![CDATA[ <inertial> is missing ]]></link>' in text


def test_friction_of_both_sides_adds_up_and_that_by_direction_becomes_its_mean():
    robot = all_known()
    known = {"Fvm1": 1.0, "Fvl1": 0.5, "Fcpm1": 2.0, "Fcnm1": 1.0, "Fcl1": 0.25}
    arm = identified(robot, other_values(robot) | known, ["inertia", "Fvm", "Fvl", "Fcam", "Fcl"], measured="both")
    done = urdf_file(arm, content=ODD.encode())
    assert b"<dynamics damping='1.5' friction=\"1.75\"/>" in done.content.replace(b"'1.50'", b"'1.5'")
    text = "\n".join(done.notes)
    assert "forward; friction holds the mean of both directions): shoulder 2.0 N m" in text
    assert "(Fcnm, backward): shoulder 1.0 N m" in text


def test_a_priori_friction_is_not_added_to_identified_friction_of_the_other_side():
    robot = all_known()
    values = other_values(robot) | {"Fvl1": 0.5, "Fvl2": 0.1, "Fvl3": 0.1}
    done = urdf_file(identified(robot, values, ["inertia", "Fvl"], measured="joint"), content=ODD.encode())
    assert joint_values(read_urdf(done.content))["shoulder"].damping == 0.5
    assert "identified from joint torques: friction and inertia of the drives are not in the file" in done.notes
    kept = urdf_file(identified(robot, other_values(robot), ["inertia"]), content=ODD.encode())
    assert b"<dynamics damping='1.50' friction=\"0\"/>" in kept.content


def test_friction_of_a_follower_counts_on_its_leader_and_stays_in_the_file():
    """A follower moves -5 times as fast: its damping counts 25 times on the leader, its Coulomb friction 5 times."""
    robot = all_known()
    assert {name: robot.values[name] for name in ("Fvm3", "Fcm3")} == pytest.approx({"Fvm3": 2 + 2.5, "Fcm3": 0.05})
    new = robot.with_parameters({"Fvm3": 3.0})
    edit = edited_urdf(ODD.encode(), new)
    assert '<dynamics damping="0.5"/>' in edit.content.decode()
    assert '<dynamics damping="0.1" friction="0.01"/>' in edit.content.decode()
    assert edit.notes == ()
    assert_near(torques_of(edit.content, robot), file_torques(new, random_states(robot, 50)))
    assert verify_urdf(edit)[1] == ()


def test_friction_of_followers_beyond_that_of_their_leader_is_listed():
    robot = all_known()
    new = robot.with_parameters({"Fvm3": 1.0})
    edit = edited_urdf(ODD.encode(), new, comment="arm")
    note = "damping of joints that follow 'grip' is contained in its own and set to 0 (was: follow 0.1)"
    assert edit.notes == (note,)
    assert note in edit.content.decode().split("-->")[0]
    assert '<dynamics damping="1.0"/>' in edit.content.decode()
    assert '<dynamics damping="0.0" friction="0.01"/>' in edit.content.decode()
    assert verify_urdf(edit)[1] == ()


def test_what_a_urdf_cannot_say_stands_at_its_top_and_in_the_notes():
    robot = all_known().with_gravity((0.0, 9.81, 0.0))
    robot = replace(robot, springs=("elbow",), gear_couplings=(GearCoupling("elbow", "shoulder", 0.5),))
    said = {"offm1": 0.5, "Ia1": 0.125, "Ia3": 2.0, "Ss2": 3.0, "Iac2": 0.0625}
    done = urdf_file(identified(robot, odd_values(robot) | said, run="20261116--x"), content=ODD.encode())
    top = done.content.decode().split("-->")[0]
    assert top.startswith(f'<?xml version="1.0" encoding="utf-8"?>\n<!-- {HEADLINE}\nrun 20261116- -x\n')
    for line in (
        "rotor and gear inertia on the joint side (Ia, 'armature' of simulators): shoulder 0.125 kg m^2, grip 2.0 kg",
        "torque offset, motor side (offm): shoulder 0.5 N m",
        "gravity compensation springs (Ss, torque Ss sin(q)): elbow 3.0 N m",
        "motors that turn with two joints (Iac): elbow 0.0625 kg m^2",
        "gear coupling: motor of elbow turns with shoulder by 0.5",
        "gravity in the base frame: 0.0 9.81 0.0 m/s^2, set it where the file is loaded (programs take 0.0 0.0 -9.81)",
    ):
        assert f"not in the file: {line}" in top
        assert f"not in the file: {line}" in done.notes


def test_a_second_export_replaces_the_comment_of_the_first():
    robot = all_known()
    once = urdf_file(identified(robot, odd_values(robot)), content=ODD.encode()).content
    again = read_urdf(once)
    assert urdf_file(identified(again, again.parameters), content=once).content == once
    values = other_values(again, seed=5) | {"offm1": 7.5}
    twice = urdf_file(identified(again, values), content=once).content
    assert twice.count(HEADLINE.encode()) == 1
    assert b"shoulder 7.5 N m" in twice


def test_names_with_hyphens_make_a_well_formed_comment():
    text = ODD.replace("shoulder", "a--b-")
    robot = read_urdf(text.encode())
    done = urdf_file(identified(robot, odd_values(robot) | {"offm1": 1.0}), content=text.encode())
    assert b"a- -b- 1.0 N m" in done.content
    assert read_urdf(done.content).joints[0].name == "a--b-"


def test_noise_of_the_solver_keeps_the_digits_of_the_file():
    """The mass changes, centre and inertia by noise: only the mass is written anew."""
    text = """<robot name="one"><link name="base"/>
  <link name="arm"><inertial><origin xyz="0.1 0 0.05" rpy="0.3 -0.5 1.1"/><mass value="20"/>
    <inertia ixx="0.5" ixy="0.02" ixz="0.01" iyy="0.6" iyz="-0.03" izz="0.4"/></inertial></link>
  <joint name="turn" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/></joint></robot>"""
    robot, rng = read_urdf(text.encode()), np.random.default_rng(3)
    mass, centre, inertia = centre_from_parameters(np.array(robot.bodies[0].inertia))
    noise = 1e-9 * rng.standard_normal((3, 3))
    moved = parameters_from_centre(0.95 * mass, centre + 3e-10 * rng.standard_normal(3), inertia + noise + noise.T)
    links = (robot.links[0], replace(robot.links[1], inertia=tuple(moved.tolist())))
    written = urdf_file(IdentifiedArm(replace(robot, links=links), build_model(robot)), content=text.encode())
    assert written.content.decode().endswith(text.replace('value="20"', 'value="19.0"'))
    assert all(one.largest < 1e-12 for one in written.comparisons)


def test_drive_inertia_that_is_noise_is_not_listed():
    robot = load_robot("scara_2r")
    arm = identified(robot, {"Ia1": 0.5, "Ia2": 3.8e-9})
    (note,) = [note for note in urdf_file(arm).notes if "drive" in note or "(Ia" in note]
    assert "joint_1 0.5 kg m^2" in note
    assert "joint_2" not in note


def test_a_change_goes_onto_the_moving_link_and_is_refused_where_no_body_can_have_it():
    text = ODD.replace('<mass value="0.3"/>', '<mass value="6"/>')
    robot = read_urdf(text.encode())
    names = [f"{symbol}1" for symbol in INERTIAL_NAMES]
    others = {name: value for name, value in other_values(robot).items() if name not in names}

    def scaled(by: float) -> IdentifiedArm:
        whole = dict(zip(names, by * np.array(robot.bodies[0].inertia), strict=True))
        return identified(robot, others | whole)

    assert b'<mass value="6"/>' in urdf_file(scaled(1.1), content=text.encode()).content
    arm = scaled(0.65)
    with pytest.raises(
        ExportError,
        match=r"link 'upper': its inertia is not physically possible \(smallest eigenvalue of the .* -.*\); "
        r"identified are 6.5 kg with links fixed to it, of which the robot's file puts 6 kg on 'camera'; correct "
        r"the inertia of 'camera' in that file and identify again, .*--mjcf --new-file.*--force",
    ):
        urdf_file(arm, content=text.encode())
    forced = urdf_file(arm, content=text.encode(), force=True)
    (note,) = [note for note in forced.notes if note.startswith("forced although link 'upper'")]
    assert note.endswith("puts 6 kg on 'camera'")  # without the remedy
    assert note in forced.content.decode()
    negative = urdf_file(scaled(0.5), content=text.encode(), force=True)
    assert negative.comparisons[0].reason.endswith("a mass must be zero or positive")
    assert "steelyard does not load the file" in negative.notes[-1]
    comment = negative.content.decode().partition("-->")[0]
    assert all(note in comment for note in negative.notes if note.startswith("forced although"))
    assert negative.content.count(b"Written by Steelyard") == 1


def test_a_locked_joint_rides_on_the_link_that_carries_it():
    held = {"elbow": 0.4}
    robot = all_known().with_parameters(other_values(all_known())).with_locked(held)
    content = new_urdf(all_known().with_parameters(other_values(all_known())))
    arm = identified(robot, other_values(robot, seed=3, size=0.02) | {"Fvm1": 3.0, "Fvm2": 4.0})
    done = urdf_file(arm, content=content)
    wanted = file_torques(replace(arm.robot, values={**arm.robot.values, "Fvm3": 0.0}), random_states(robot, 50))
    assert_near(torques_of(done.content, robot, held), wanted)
    before, after = read_urdf(content), read_urdf(done.content)
    assert [link.name for link in after.links if link not in before.links] == ["upper", "finger_a", "finger_b"]
    assert joint_values(after)["grip"].damping == 4.0
    assert "identified with locked joints, and valid with them there only: elbow at 0.4" in done.notes
    assert all(comparison.largest < 1e-12 for comparison in done.comparisons)


def test_negative_friction_and_masses_that_vanish_are_refused():
    robot = all_known()
    arm = identified(robot, other_values(robot) | {"Fvm2": -0.5})
    with pytest.raises(ExportError, match=r"joint 'elbow': damping is -0\.5, and simulators need 0 or more"):
        urdf_file(arm, content=ODD.encode())
    assert b'<dynamics damping="-0.5"/>' in urdf_file(arm, content=ODD.encode(), force=True).content
    with pytest.raises(RobotError, match="link 'finger_a': a mass of 0 with a first moment has no centre"):
        urdf_file(identified(robot, other_values(robot) | {"M3": 0.0}), content=ODD.encode(), force=True)
    unknown = IdentifiedArm(robot, build_model(robot))
    with pytest.raises(ExportError, match="no inertia of link 'fore'"):
        urdf_file(unknown, content=ODD.encode())


def test_the_file_of_another_robot_and_utf_16_are_refused():
    robot = all_known()
    arm = identified(robot, other_values(robot))
    for other, reason in (
        (ODD.replace("elbow", "knee"), "joint 'elbow' is in one of them only"),
        (ODD.replace('name="tube"', 'name="pipe"').replace('link="tube"', 'link="pipe"'), "link 'pipe' is in one"),
        (ODD.replace('xyz="0.4 0 0"', 'xyz="0.5 0 0"'), "joint 'elbow' differs"),
    ):
        with pytest.raises(ExportError, match=f"not the file that robot 'odd--arm' was read from .{reason}.*give that"):
            urdf_file(arm, content=other.encode())
    wide = ODD.replace("utf-8", "utf-16").encode("utf-16")
    with pytest.raises(RobotError, match="UTF-16"):
        urdf_file(arm, content=wide)


def test_calibrated_origins_are_written_too():
    text = ODD.replace('rpy="-1.2 0 0"', 'rpy="-1.5708 0 0"')
    robot = read_urdf(text.encode())
    origins = {"shoulder": ((0.001, 0.0, 0.3), (2e-6, 0.2, 0.0))}
    done = urdf_file(identified(robot, other_values(robot)), content=text.encode(), origins=origins)
    assert b'<origin xyz="0.001 0.0 0.3" rpy="2e-06 0.2 0.0"/>' in done.content
    assert b'rpy="-1.5707963267948966 0.0 0.0"/>' in done.content
    assert done.comparisons[0].largest < 1e-12
    assert len([note for note in done.notes if "right_angle_tolerance" in note]) == 1


def test_angles_that_programs_read_differently_are_noted():
    text = ODD.replace('rpy="-1.2 0 0"', 'rpy="-1.5708 0 0"')
    robot = read_urdf(text.encode())
    done = urdf_file(identified(robot, other_values(robot)), content=text.encode())
    (note,) = [note for note in done.notes if "within 1e-05 rad of a right angle" in note]
    assert re.search(r"torques of joint '\w+' differ by \d\S*e-0[56] of its largest", note)
    assert b'rpy="-1.5708 0 0"' in done.content
    assert all(comparison.largest < 1e-12 for comparison in done.comparisons)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (rb"<mass value='4.\d*'/>", b"<mass value='4.4'/>"),
        (b'<dynamics damping="0.5"/>', b'<dynamics damping="0.5000001"/>'),
        (b'xyz="0.6 0.8 0"', b'xyz="0.8 0.6 0"'),
    ],
)
def test_a_file_with_other_torques_is_found_out(before, after):
    robot = all_known()
    edit = edited_urdf(ODD.encode(), robot.with_parameters(odd_values(robot) | {"M1": 4.8}))
    assert verify_urdf(edit)[1] == ()
    wrong, count = re.subn(before, after, edit.content)
    assert count == 1
    comparisons, problems, _ = verify_urdf(replace(edit, content=wrong))
    assert len(problems) == 1  # other programs agree with the file
    assert re.match(
        r"steelyard loads the file with torques of joint '\w+' that differ by .* \(allowed 1e-09\)$", problems[0].text
    )
    assert comparisons[0].largest > 1e-9


@pytest.mark.parametrize("program", ["pinocchio", "mujoco"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'<mass value="0.3"/>', b'<mass value="0.30001"/>'),
        (b'<dynamics damping="0.5"/>', b'<dynamics damping="0.5" friction="1e-6"/>'),
        (b'<dynamics damping="0.5"/>', b'<dynamics damping="0.500001"/>'),
        (b'multiplier="-5"', b'multiplier="-5"'),
    ],
)
def test_other_programs_really_read_the_file(program, before, after):
    pytest.importorskip(program, reason=f"{program} has no wheel for this platform")
    robot = all_known()
    edit = edited_urdf(ODD.encode(), robot.with_parameters(odd_values(robot)))
    states = random_states(robot, 20)
    assert edit.content.count(before) == 1
    found = verify_module.PROGRAMS[program](edit.content.replace(before, after), edit.robot, states)
    comparison = verify_module.compare(program, edit.robot, file_torques(edit.robot, states), found)
    assert (comparison.largest < 1e-12) == (before == after)
    assert bool(verify_module.mismatches(comparison)) == (before != after)


def test_a_program_that_reads_other_torques_or_nothing_speaks_against_the_file(monkeypatch):
    def off(content, robot, states):
        return file_torques(read_urdf(content), states) + np.array([[0.0], [1e-6], [0.0]])

    def lost(content, robot, states):
        if content != ODD.encode():
            raise ValueError("no such\nthing")
        return np.zeros((3, 1))

    robot = all_known()
    arm = identified(robot, odd_values(robot))
    monkeypatch.setattr(verify_module, "PROGRAMS", {"numpy": off, "not_there": off})
    with pytest.raises(ExportError, match=r"numpy \S+ loads the file with torques of joint 'elbow' that differ by"):
        urdf_file(arm, content=ODD.encode())
    monkeypatch.setattr(verify_module, "PROGRAMS", {"numpy": lost})
    with pytest.raises(
        ExportError,
        match=r"numpy \S+ loads the original file but not the edited one .no such.; take another format, .*--force",
    ):
        urdf_file(arm, content=ODD.encode())
    forced = urdf_file(arm, content=ODD.encode(), force=True)
    assert forced.comparisons[1].reason == "does not load the file: no such"
    assert "forced although numpy" in forced.notes[-1]
    assert forced.notes[-1] in forced.content.decode()
    text = ODD.replace('name="t1"', 'name="t2"').encode()  # neither the original nor the edited file
    assert urdf_file(arm, content=text).comparisons[1].states == 0


def test_the_file_that_a_robot_was_loaded_from_is_edited(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_bytes(FORMS["windows"])
    robot = load_robot(path)
    (done,) = EXPORTS["urdf"].build(identified(robot, odd_values(robot)))
    assert done.content == urdf_file(identified(robot, odd_values(robot)), content=FORMS["windows"]).content
    (written,) = write_files([done], tmp_path / "out")
    assert written.read_bytes() == done.content
    assert load_robot(written).name == "odd--arm"
    path.unlink()
    with pytest.raises(RobotError, match=r"arm\.urdf: no such file"):
        urdf_file(identified(robot, odd_values(robot)))


TABLE = b"""
[robot]
name = "home made <&>"
payload_link = "tool"
[[joint]]
name = "turn"
alpha = 0.1
d = 0.2
theta_deg = 90
r = 0.3
lower = -1
upper = 1
inertia = [0.1, 0.001, 0, 0.1, 0, 0.02, 0.2, 0.1, 0.3, 4]
[[joint]]
name = "slide"
type = "prismatic"
alpha_deg = -90
d = 0.1
theta = 0.3
r = 0.2
upper = 0.5
velocity = 2
effort = 30
inertia = [0.1, 0, 0.002, 0.1, 0, 0.1, 0, 0.1, 0.2, 2]
[[joint]]
name = "spin"
type = "continuous"
xyz = [0.1, 0, 0.2]
rpy = [0.1, 0.2, 0.3]
axis = [1, 2, 2]
effort = 5
inertia = [0.01, 0, 0, 0.01, 0, 0.01, 0, 0, 0.01, 0.5]
[[joint]]
name = "flange"
type = "fixed"
link = "tool"
xyz = [0, 0, 0.1]
inertia = [0.001, 0, 0, 0.001, 0, 0.001, 0, 0, 0, 0.1]
[[joint]]
name = "follower"
parent = "link_2"
xyz = [0, 0.1, 0]
axis = [0, 0, 1]
mimic = {leader = "spin", multiplier = -2.0, offset = 0.1}
inertia = [0.01, 0, 0, 0.01, 0, 0.01, 0, 0, 0.01, 0.5]
[values]
Fvm = [1, 2, 0.5, 0]
Fcl = [0.5, 0, 0.25, 0]
Ia1 = 0.3
"""


def test_a_robot_of_a_table_gets_a_fresh_file():
    robot = read_table(TABLE)
    done = urdf_file(identified(robot, other_values(robot), ["inertia", "Ia", "Fvm", "Fcl"], measured="both"))
    assert done.name == "home_made.urdf"
    assert done.content.startswith(b'<?xml version="1.0"?>\n<!-- Written by Steelyard from an identified arm.\n')
    assert (
        b'-->\n<robot name="home made &lt;&amp;&gt;">\n  <link name="base"/>\n  <link name="link_1">\n' in done.content
    )
    assert any("limits that are not known are written as 1e+16" in note for note in done.notes)
    again = read_urdf(done.content, right_angle_tolerance=0)
    assert [joint.name for joint in again.joints] == [joint.name for joint in robot.joints]
    for joint, old in zip(again.joints, robot.joints, strict=True):
        assert (joint.limits, joint.mimic, joint.kind, joint.parent, joint.child) == (
            old.limits, old.mimic, old.kind, old.parent, old.child
        )  # fmt: skip
        np.testing.assert_allclose(joint.axis, old.axis, atol=1e-15)
    assert [comparison.largest < 1e-12 for comparison in done.comparisons] == [True] * len(done.comparisons)
    assert any("(Ia, 'armature' of simulators): turn 0.3 kg m^2" in note for note in done.notes)
    rubbing = read_table(TABLE.replace(b"0.5, 0]", b"0.5, 0.7]", 1))
    assert rubbing.values["Fvm3"] == pytest.approx(robot.values.get("Fvm3", 0.0) + 0.7 * 2**2)
    (new,) = EXPORTS["urdf"].build(identified(rubbing, other_values(robot) | {"Fvm3": 1.0}))
    assert joint_values(read_urdf(new.content))["follower"].damping == 0.0


@pytest.mark.parametrize("name", catalogue_names())
def test_arms_of_the_catalogue_get_a_fresh_file(name):
    robot = load_robot(name)
    values = other_values(robot)
    done = urdf_file(identified(robot, values))
    assert done.comparisons[0].largest < 1e-12
    again = read_urdf(done.content, right_angle_tolerance=0)
    assert again.joint_names == robot.joint_names
    assert {link.name for link in again.links} == {link.name for link in robot.links}
    for comparison in done.comparisons:
        assert comparison.reason or comparison.largest < 1e-9


def test_shapes_are_written_and_a_capsule_as_what_every_reader_knows():
    place = origin_placement((0.1, 0.2, 0.3), (0.1, 0.2, 0.3))
    shapes = (
        SphereShape(place, 0.1),
        CylinderShape(place, 0.1, 0.4),
        BoxShape(place, (0.1, 0.2, 0.3)),
        MeshShape(place, "package://a/b.stl", None, (1.0, -1.0, 2.0)),
        CapsuleShape(place, 0.1, 0.4),
    )
    robot = read_table(TABLE)
    robot = replace(robot, links=(*robot.links[:-1], replace(robot.links[-1], shapes=shapes)))
    read = read_urdf(new_urdf(robot)).links[-1].shapes
    assert [type(shape) for shape in read] == [
        SphereShape, CylinderShape, BoxShape, MeshShape, CylinderShape, SphereShape, SphereShape
    ]  # fmt: skip
    rotation, translation = transform_from_placement(place)
    ends = [transform_from_placement(shape.placement)[1] for shape in read[-2:]]
    np.testing.assert_allclose(
        ends, [translation - rotation[:, 2] * 0.2, translation + rotation[:, 2] * 0.2], atol=1e-15
    )
    assert [shape for shape in read[:4] if not isinstance(shape, type(None))] == [
        replace(shape, placement=found.placement) for shape, found in zip(shapes[:4], read[:4], strict=True)
    ]


def test_names_that_xml_cannot_hold_are_refused():
    robot = read_table(TABLE)
    with pytest.raises(ExportError, match="letters that XML cannot hold"):
        new_urdf(replace(robot, name="a\x01b"))


@pytest.mark.parametrize("name", URDFS)
def test_small_trees_go_out_and_in_again(name):
    content = URDFS[name].encode()
    robot = read_urdf(content)
    assert edited_urdf(content, robot.with_parameters(robot.parameters)).content == content
    done = urdf_file(identified(robot, other_values(robot, size=0.01)), content=content)
    assert all(comparison.largest < 1e-12 for comparison in done.comparisons)


def test_deformed_bodies_are_bodies():
    inertia = np.array([0.1, 0, 0, 0.1, 0, 0.1, 0, 0.1, 0.2, 2])
    same = deformed(inertia, np.random.default_rng(0), 0.0)
    np.testing.assert_allclose(same, inertia, atol=1e-16)


def with_fixed_link(mass: float, far: float) -> bytes:
    """Return an arm with a light last link that carries a fixed one."""
    inertia = '<inertia ixx="{0}" ixy="1e-10" ixz="0" iyy="{0}" iyz="0" izz="{0}"/>'
    return (
        '<robot name="light"><link name="base"/><link name="upper"><inertial><mass value="0.5"/>'
        + inertia.format(1e-3)
        + '</inertial></link><link name="tip"><inertial><origin xyz="0.003 0 0.001"/><mass value="0.01"/>'
        + inertia.format(1e-8)
        + f'</inertial></link><link name="tool"><inertial><origin xyz="{far} 0.1 0.3"/><mass value="{mass}"/>'
        + inertia.format(0.1 * mass)
        + '</inertial></link><joint name="a" type="continuous"><parent link="base"/><child link="upper"/></joint>'
        '<joint name="b" type="continuous"><parent link="upper"/><child link="tip"/></joint>'
        '<joint name="c" type="fixed"><origin xyz="0.1 0.2 0.3" rpy="1 2 3"/><parent link="tip"/><child link="tool"/>'
        "</joint></robot>"
    ).encode()


@pytest.mark.parametrize(("mass", "far"), [(1e-3, 0.01), (30.0, 0.7), (3e3, 5.0)])
def test_rounding_of_heavy_fixed_links_is_no_change(mass, far):
    content = with_fixed_link(mass, far)
    robot = read_urdf(content)
    assert robot.with_parameters(robot.parameters).links != robot.links or mass < 1
    assert edited_urdf(content, robot.with_parameters(robot.parameters)).content == content


def test_small_changes_of_light_links_are_written():
    content = with_fixed_link(1e-4, 0.001)
    robot = read_urdf(content)
    link = robot.links[2]
    new = replace(link, inertia=tuple(value * (1 + 1e-7) for value in link.inertia or ()))
    edit = edited_urdf(content, replace(robot, links=(*robot.links[:2], new, robot.links[3])))
    assert edit.links == ("tip",)
    np.testing.assert_allclose(
        read_urdf(edit.content).links[2].inertia or (), new.inertia or (), rtol=1e-12, atol=1e-24
    )


def test_a_locked_joint_of_a_table_has_no_friction_in_the_fresh_file():
    robot = read_table(TABLE).with_locked({"slide": 0.1})
    arm = identified(robot, other_values(robot, size=0.01), ["inertia", "Fvm", "Fcl"], measured="both")
    done = urdf_file(arm)
    again = read_urdf(done.content, right_angle_tolerance=0)
    assert "slide" in again.joint_names
    assert joint_values(again)["slide"][:2] == (0.0, 0.0)
    assert joint_values(again)["turn"][:2] == (1.0, 0.5)
    states = random_states(robot, 20)
    assert_near(file_torques(again.with_locked({"slide": 0.1}), states), file_torques(arm.robot, states))


def test_differences_are_relative_to_the_largest_torque_of_their_joint():
    robot = all_known()
    wanted = np.array([[100.0, -200.0], [1.0, 0.5], [1e-9, 0.0]])
    compare = verify_module.compare
    found = compare("x", robot, wanted, wanted + np.array([[0.0, 0.0], [0.0, 2e-9], [0.0, 0.0]]))
    assert (found.joint, found.states) == ("elbow", 2)
    assert found.largest == pytest.approx(2e-9, rel=1e-6)
    assert verify_module.mismatches(found)
    # Rounding of a joint that needs no torque counts beside the torques of the others.
    assert compare("x", robot, wanted, wanted + np.array([[0.0], [0.0], [1e-12]])).largest < 1e-14
    lost = compare("x", robot, wanted, wanted + np.array([[0.0], [np.nan], [0.0]]))
    assert lost.joint == "elbow"
    assert verify_module.mismatches(lost)


def test_warnings_of_mujoco_leave_nothing_behind(tmp_path, monkeypatch, capfd):
    pytest.importorskip("mujoco", reason="MuJoCo has no wheel for this platform")
    monkeypatch.chdir(tmp_path)
    content = ODD.replace('lower="-2" upper="2.5"', 'lower="1" upper="1"').encode()  # MuJoCo warns of equal limits
    edit = edited_urdf(content, read_urdf(content).with_parameters(other_values(read_urdf(content))))
    verify_module.mujoco_urdf_torques(edit.content, edit.robot, random_states(edit.robot, 2))
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")
