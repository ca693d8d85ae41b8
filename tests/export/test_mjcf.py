"""MJCF of identified arms: bytes that stay, values that arrive, torques of MuJoCo after reloading."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from arms import with_possible_inertia
from mjcf_arms import ARMS, FOLDER, assert_same_torques
from oracles import NO_MUJOCO
from perturbed_arms import deformed, identified, other_values
from steelyard.errors import ExportError
from steelyard.export import EXPORTS, IdentifiedArm, write_files
from steelyard.export.mjcf import edited_mjcf, mjcf_files, verify_mjcf
from steelyard.model import build_model
from steelyard.motion import quintic
from steelyard.robot import Robot, XmlDocument, XmlElement, load_robot, read_mjcf, read_table, read_urdf
from steelyard.robot.mjcf_files import mjcf_source
from steelyard.simulation import Experiment, simulate

mujoco = pytest.importorskip("mujoco", reason=NO_MUJOCO)

ODD = b"""\xef\xbb\xbf<?xml version='1.0' encoding="utf-8"?>
<!-- made by hand - - -->
<mujoco model='odd &amp; arm'>
  <default><default class="drive"><joint armature="0.2" damping='2'/></default></default>
  <custom><text name="note" data="a &lt;body&gt; in text"/></custom>
  <worldbody>
    <!-- <body name="ghost"/> -->
    <body name='base'>
      <frame pos="0 0 1">
        <body name="upper">
          <body name="late" pos="0 0 0.5">
            <inertial mass='1' pos="0 0 0.1" euler="0 0 10" diaginertia="0.02 0.03 0.04" />
            <joint name="second" axis="0 1 0" class='drive'/>
          </body>
          <joint name="first" type="hinge" axis="0 0 1" pos="0.1 0 0"
                 damping="0.5"/>
          <inertial pos="0.1 0 0" mass="3" fullinertia="0.2 0.25 0.3 0.01 0.02 0.03"></inertial>
        </body>
      </frame>
    </body>
  </worldbody>
  <sensor><jointpos joint="first"/></sensor>
</mujoco>
<!-- the end -->
"""


MASSLESS = b"""<robot name="massless"><link name="base"/>
  <link name="hub"><inertial><mass value="0"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial>
  </link>
  <link name="arm"><inertial><origin xyz="0.2 0 0.1"/><mass value="2"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial></link>
  <joint name="pan" type="continuous"><parent link="base"/><child link="hub"/><axis xyz="0 0 1"/></joint>
  <joint name="tilt" type="continuous"><parent link="hub"/><child link="arm"/><axis xyz="0 1 0"/></joint>
</robot>"""


def odd(tmp_path: Path, content: bytes = ODD) -> Robot:
    path = tmp_path / "odd.xml"
    path.write_bytes(content)
    return load_robot(path)


def with_other_links(robot: Robot, seed: int = 0) -> Robot:
    """Return the arm with other inertias of its moving bodies; what is fixed to them stays."""
    rng, moving = np.random.default_rng(seed), {body.link for body in robot.bodies}
    links = []
    for link in robot.links:
        if link.name in moving and any(link.inertia or ()):
            known = with_possible_inertia(link, rng).inertia
            link = replace(link, inertia=tuple(deformed(np.array(known), rng, 0.05).tolist()))
        links.append(link)
    return replace(robot, links=tuple(links))


def with_other_drives(robot: Robot) -> Robot:
    """Return the arm with other drive inertias and friction, above what actuators and followers add."""
    values = dict(robot.values)
    for body in robot.actuated:
        for symbol, extra in (("Ia", 0.5), ("Fvm", 1.5), ("Fcm", 0.25)):
            values[f"{symbol}{body.number}"] = values.get(f"{symbol}{body.number}", 0.0) + extra * body.number
    return replace(robot, values=values)


def arm_of(new: Robot, old: Robot) -> IdentifiedArm:
    return IdentifiedArm(new, build_model(old), run="r1")


@pytest.mark.parametrize("name", ARMS)
def test_unchanged_parameters_leave_every_byte(name):
    robot = load_robot(FOLDER / name)
    files = mjcf_files(identified(robot, robot.parameters))
    assert files[0].content == (FOLDER / name).read_bytes()
    for file in files[1:]:
        assert file.content == (FOLDER / file.name).read_bytes()


def other_elements(content: bytes) -> list[tuple[str, dict[str, str]]]:
    """Return tags and attributes of all elements that an export must not touch."""

    def every(element: XmlElement) -> Iterator[XmlElement]:
        yield element
        for child in element.children:
            yield from every(child)

    elements = every(XmlDocument(content).root)
    return [(element.tag, element.attributes) for element in elements if element.tag not in ("inertial", "joint")]


@pytest.mark.parametrize("name", ARMS)
def test_other_parameters_arrive_in_mujoco_and_nothing_else_changes(name, tmp_path):
    robot = load_robot(FOLDER / name)
    new = with_other_drives(with_other_links(robot))
    files = mjcf_files(arm_of(new, robot))
    assert all(comparison.largest < 1e-12 for comparison in files[0].comparisons)
    assert [comparison.states for comparison in files[0].comparisons] == [1000, 1000]
    main, *_ = write_files(files, tmp_path / "out")
    read = read_mjcf(main)
    assert read.joint_names == robot.joint_names
    for got, wanted in zip(read.bodies, new.bodies, strict=True):
        ten = np.array(wanted.inertia)
        np.testing.assert_allclose(np.array(got.inertia), ten, atol=1e-12 * np.abs(ten).max())
    assert read.values == pytest.approx(new.values)
    for file, original in zip(files, [name, *(file.name for file in files[1:])], strict=True):
        assert other_elements(file.content) == other_elements((FOLDER / original).read_bytes())


def test_odd_files_are_edited_where_things_stand(tmp_path):
    robot = odd(tmp_path)
    new = replace(with_other_drives(robot), links=with_other_links(robot).links)
    (file,) = mjcf_files(arm_of(new, robot))
    text = file.content
    assert text.startswith(b"\xef\xbb\xbf<?xml version='1.0' encoding=\"utf-8\"?>\n<!-- Written by Steelyard")
    assert b"run r1\n" in text
    default = b'<default class="drive"><joint armature="0.2" damping=\'2\'/></default>'
    comments = (b"<!-- made by hand - - -->", b'<!-- <body name="ghost"/> -->', b"<!-- the end -->")
    for kept in (*comments, default, b"a &lt;body&gt; in text"):
        assert kept in text
    # The joint of the outer body stands behind the inner one: bodies are not confused.
    assert (
        b'name="first" type="hinge" axis="0 0 1" pos="0.1 0 0"\n                 damping="2.0" armature="0.5"' in text
    )
    assert b'class=\'drive\' armature="1.2" damping="5.0" frictionloss="0.5"/>' in text
    assert b"euler" not in text  # principal axes turned
    assert b"diaginertia" in text
    assert file.name == "odd_arm.xml"


def test_an_inertia_on_the_same_axes_keeps_its_orientation(tmp_path):
    robot = odd(tmp_path)
    ten = {
        f"{s}2": robot.parameters[f"{s}2"] * 1.1 for s in ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")
    }
    (file,) = mjcf_files(identified(robot, ten))
    assert b'<inertial mass=\'1.1\' pos="0 0 0.1" euler="0 0 10" diaginertia="0.02' in file.content
    assert file.content.count(b'fullinertia="0.2 0.25 0.3 0.01 0.02 0.03"></inertial>') == 1


def test_one_value_changes_one_attribute(tmp_path):
    robot = odd(tmp_path)
    (file,) = mjcf_files(identified(robot, {"Fvm1": 0.75}))
    body = file.content.partition(b"-->\n<!-- made")[2]
    assert body == ODD.partition(b"\n<!-- made")[2].replace(b'damping="0.5"', b'damping="0.75"')


def test_bodies_whose_inertia_came_from_geometry_get_one(tmp_path):
    robot = load_robot(FOLDER / "scara.xml")
    (file,) = mjcf_files(arm_of(with_other_links(robot), robot))
    added = file.content.count(b"<inertial")
    assert added == 4
    assert (FOLDER / "scara.xml").read_bytes().count(b"<inertial") == 0


def test_what_actuators_and_followers_add_stays_with_them():
    robot = load_robot(FOLDER / "heavy_arm.xml")
    (file,) = mjcf_files(identified(robot, {"Ia1": 10.0}))
    assert b'armature="4.24"' in file.content or b'armature="4.239999999999999"' in file.content
    with pytest.raises(ExportError, match=r"joint 'A1': armature is 1, but actuators .* add 5.76"):
        mjcf_files(identified(robot, {"Ia1": 1.0}))
    seven = load_robot(FOLDER / "seven_axis.xml")
    main, hand = mjcf_files(identified(seven, {"Fcm8": 1.5}))
    assert hand.name == "parts/hand.xml"
    assert hand.content == (FOLDER / "parts" / "hand.xml").read_bytes().replace(b'"0.4"', b'"0.9"')
    assert main.comparisons[1].largest < 1e-12


def test_locked_joints_stay_in_the_file(tmp_path):
    robot = load_robot(FOLDER / "six_axis.xml").with_locked({"elbow": 0.7})
    new = with_other_links(robot)
    (file,) = mjcf_files(arm_of(new, robot))
    assert all(comparison.largest < 1e-12 for comparison in file.comparisons)
    assert any("identified with locked joints" in note and "elbow at 0.7" in note for note in file.notes)
    assert b'<joint name="elbow" class="size3"/>' in file.content


def test_what_mjcf_cannot_say_is_in_notes_and_comment(tmp_path):
    robot = odd(tmp_path)
    values = {"offm1": 0.3, "Fcpm2": 2.0, "Fcnm2": 1.0}
    (file,) = mjcf_files(identified(robot, values, ["inertia", "Ia", "Fvm", "Fcam", "offm"]))
    notes = "\n".join(file.notes)
    assert "torque offset, motor side (offm): first 0.3 N m" in notes
    assert "second 2.0 N m" in notes
    assert b"not in the file: torque offset, motor side (offm): first 0.3 N m" in file.content
    assert b'frictionloss="1.5"' in file.content  # the mean of both directions


@pytest.mark.parametrize(
    ("options", "written"),
    [
        (b"", b'<option gravity="0.0 -4.0 9.81"/>'),
        (b'<option timestep="0.001"/>', b'<option timestep="0.001" gravity="0.0 -4.0 9.81"/>'),
        (b"<option gravity='0 0 -9.8'/>", b"<option gravity='0.0 -4.0 9.81'/>"),
        (b'<option><flag gravity="disable"/></option>', b'<flag gravity="enable"/>'),
    ],
)
def test_gravity_of_the_run_is_written_and_seen_by_the_check(tmp_path, options, written):
    content = ODD.replace(b"<custom>", options + b"<custom>")
    robot = odd(tmp_path, content).with_gravity((0.0, -4.0, 9.81))
    (file,) = mjcf_files(identified(robot, {"Fvm1": 1.0}))
    assert written in file.content
    assert any("gravity is that of the run, 0.0 -4.0 9.81 m/s^2; the robot's file had" in note for note in file.notes)
    assert read_mjcf(file.content).gravity == (0.0, -4.0, 9.81)
    assert_same_torques(read_mjcf(file.content), mujoco.MjModel.from_xml_string(file.content.decode("utf-8-sig")))
    # The check takes the gravity of the file: an edit that forgets it is found out.
    edit = edited_mjcf(mjcf_source(content), robot)
    comparisons, problems = verify_mjcf(replace(edit, source=mjcf_source(content)))
    assert comparisons[0].largest > 0.1
    assert problems


def test_a_file_with_the_gravity_of_the_run_keeps_its_option(tmp_path):
    robot = odd(tmp_path, ODD.replace(b"<custom>", b"<option gravity='0 0 -9.8'/><custom>"))
    (file,) = mjcf_files(identified(robot, {"Fvm1": 1.0}))
    assert b"<option gravity='0 0 -9.8'/>" in file.content
    assert not any("gravity" in note for note in file.notes)


REFUSED = {
    "another file": (lambda content: content.replace(b'pos="0 0 1"', b'pos="0 0 2"'), "is not the file that robot"),
    "masses from geometry": (
        lambda content: content.replace(b"<custom>", b'<compiler settotalmass="4"/><custom>'),
        "settotalmass",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_files_that_cannot_hold_the_arm_are_refused(what, tmp_path):
    change, message = REFUSED[what]
    robot = odd(tmp_path)
    if what == "masses from geometry":
        robot = odd(tmp_path, change(ODD))
    path = tmp_path / "other.xml"
    path.write_bytes(change(ODD))
    with pytest.raises(ExportError, match=message):
        mjcf_files(arm_of(with_other_links(robot), robot), path=path)


def test_impossible_links_and_negative_values_are_refused(tmp_path):
    robot = odd(tmp_path)
    with pytest.raises(ExportError, match=r"link 'upper': its inertia is not physically possible .* -"):
        mjcf_files(identified(robot, {"XX1": -1.0}))
    with pytest.raises(ExportError, match=r"joint 'first': armature is -0.1, and simulators need 0 or more"):
        mjcf_files(identified(robot, {"Ia1": -0.1}))
    forced = mjcf_files(identified(robot, {"Ia1": -0.1}), force=True)[0]
    assert b'armature="-0.1"' in forced.content
    assert any(note.startswith("forced although joint 'first'") for note in forced.notes)


@pytest.mark.parametrize("new_file", [False, True])
def test_a_forced_file_that_does_not_load_says_so(new_file, tmp_path):
    negative = identified(odd(tmp_path), {"M1": -1.0})
    forced = mjcf_files(negative, force=True, new_file=new_file)[0]
    assert "forced although steelyard does not load the file: " in forced.notes[-1]
    assert "line" not in forced.notes[-1].partition("does not load")[2]
    comment = forced.content.decode().partition("-->")[0]
    assert all(note in comment for note in forced.notes if note.startswith("forced although"))
    assert forced.content.count(b"Written by Steelyard") == 1


def test_a_moving_link_without_mass_gets_what_mujoco_needs():
    robot = read_urdf(MASSLESS)
    arm = identified(robot, {})
    (file,) = mjcf_files(arm)
    assert [one.program.split()[0] for one in file.comparisons] == ["steelyard", "mujoco"]
    assert all(one.largest < 1e-12 for one in file.comparisons)
    assert b'mass="1e-14"' in file.content
    (note,) = [note for note in file.notes if note.startswith("MuJoCo refuses moving bodies without mass")]
    assert note.endswith("those of hub")
    assert note in file.content.decode()
    gimbal = load_robot(FOLDER / "gimbal.xml")
    (new,) = mjcf_files(arm_of(with_other_drives(gimbal), gimbal), new_file=True)
    assert all(one.largest < 1e-12 for one in new.comparisons)


def test_a_link_between_two_joints_of_a_body_has_no_place():
    robot = load_robot(FOLDER / "gimbal.xml")
    arm = identified(robot, {"XX1": 0.1, "YY1": 0.1, "ZZ1": 0.1, "M1": 0.1})
    with pytest.raises(
        ExportError,
        match=r"link 'body_1_joint_1' stands between two joints of one body.* 0.1 kg there: .* --new-file or .* --urdf",
    ):
        mjcf_files(arm)
    (new,) = mjcf_files(arm, new_file=True)
    assert all(one.largest < 1e-9 for one in new.comparisons)
    # Where the arm has nothing between the joints, its own file is edited.
    (own,) = mjcf_files(identified(robot, {"Fvm1": 0.5}))
    assert b'damping="0.5"' in own.content


def test_an_included_file_outside_the_folder_is_refused(tmp_path):
    inside = tmp_path / "models"
    inside.mkdir()
    (tmp_path / "part.xml").write_text(
        '<mujocoinclude><body name="b"><joint name="j"/><geom size="1"/></body></mujocoinclude>'
    )
    (inside / "arm.xml").write_text('<mujoco><worldbody><include file="../part.xml"/></worldbody></mujoco>')
    robot = load_robot(inside / "arm.xml")
    with pytest.raises(ExportError, match=r"'\.\./part\.xml' stands outside"):
        mjcf_files(identified(robot, {"Fvm1": 1.0}))


FRESH = ("scara_2r", "staubli_tx40", "franka_panda")
MORE = (pytest.param(name, marks=pytest.mark.large) for name in ("ur10e", "kuka_lwr4", "kuka_ir361"))


@pytest.mark.parametrize("name", [*FRESH, *MORE])
def test_catalogue_arms_get_a_fresh_file(name):
    robot = load_robot(name)
    arm = IdentifiedArm(robot.with_parameters(other_values(robot)), build_model(robot))
    (file,) = EXPORTS["mjcf"].build(arm)
    assert file.name == f"{name}.xml"
    assert all(comparison.largest < 1e-11 for comparison in file.comparisons)
    read = read_mjcf(file.content)
    assert read.joint_names == robot.joint_names
    for joint in read.joints:
        if joint.kind != "fixed":
            assert joint.limits.effort == robot.joint(joint.name).limits.effort
            assert joint.limits.lower == robot.joint(joint.name).limits.lower


def test_fresh_files_say_what_they_leave_out():
    robot = load_robot("staubli_tx40")
    (file,) = mjcf_files(identified(robot, {}))
    notes = "\n".join(file.notes)
    for part in ("gear coupling: motor of joint_6 turns with joint_5 by 1.0", "(Fcc): joint_6 1.95 N m", "(offm)"):
        assert part in notes
        assert part.encode() in file.content


BRANCHED = b"""<robot name="world tree">
  <link name="world"/>
  <link name="left"><inertial><origin xyz="0.2 0 0" rpy="1.1 0.2 0.3"/><mass value="2"/>
    <inertia ixx="0.01" ixy="0.001" ixz="0.002" iyy="0.03" iyz="-0.001" izz="0.03"/></inertial>
    <collision><origin rpy="0 1 0"/><geometry><cylinder radius="0.05" length="0.2"/></geometry></collision>
    <collision><geometry><box size="0.1 0.2 0.3"/></geometry></collision>
    <collision><geometry><mesh filename="left.stl"/></geometry></collision></link>
  <link name="tool"><inertial><mass value="0.3"/>
    <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>
    <collision><geometry><sphere radius="0.1"/></geometry></collision></link>
  <link name="right"><inertial><mass value="1"/>
    <inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial></link>
  <joint name="turn" type="revolute"><origin xyz="0 0 1" rpy="0.2 0.4 0"/><parent link="world"/><child link="left"/>
    <axis xyz="1 2 3"/><limit lower="-1" upper="2" velocity="1" effort="5"/>
    <dynamics damping="1.5" friction="0.5"/></joint>
  <joint name="fix" type="fixed"><origin xyz="0 0.3 0" rpy="0 0 1"/><parent link="left"/><child link="tool"/></joint>
  <joint name="slide" type="prismatic"><origin xyz="0 -0.2 0"/><parent link="tool"/><child link="right"/>
    <axis xyz="0 -1 0"/><limit lower="0" upper="1" velocity="1" effort="5"/>
    <mimic joint="turn" multiplier="-2" offset="0.2"/></joint>
</robot>"""


def test_a_urdf_s_mimics_shapes_and_fixed_links_get_a_fresh_file():
    robot = read_urdf(BRANCHED)
    new = with_other_drives(robot)
    (file,) = mjcf_files(arm_of(new, robot))
    assert all(comparison.largest < 1e-12 for comparison in file.comparisons)
    read = read_mjcf(file.content)
    assert read.joint("slide").mimic == robot.joint("slide").mimic
    assert [len(link.shapes) for link in read.links if link.name in ("left", "tool")] == [2, 1]
    assert any("meshes are left out" in note for note in file.notes)
    assert any("equality constraints" in note for note in file.notes)
    model = mujoco.MjModel.from_xml_string(file.content.decode())
    assert model.nbody == 4  # the world and three links
    assert_same_torques(new, model)


def test_a_moving_link_that_is_impossible_without_its_tool_is_merged_with_it():
    robot = read_urdf(BRANCHED)
    new = robot.with_parameters(other_values(robot))
    light = new.with_parameters({"M1": 2.2, "XX1": new.parameters["XX1"] - 0.01})
    (file,) = mjcf_files(arm_of(light, robot), force=True)
    read = read_mjcf(file.content)
    np.testing.assert_allclose(np.array(read.bodies[0].inertia), np.array(light.bodies[0].inertia), atol=1e-12)
    (note,) = [note for note in file.notes if "holds the inertia of the links fixed to it" in note]
    assert note.startswith(f"link '{robot.bodies[0].link}'")
    assert note in file.content.decode()


def test_a_new_file_says_that_actuators_are_replaced(tmp_path):
    actuators = b'<actuator><position joint="second" kp="5"/><motor joint="first" gear="50"/></actuator>\n</mujoco>'
    robot = odd(tmp_path, ODD.replace(b"</mujoco>", actuators))
    (new,) = mjcf_files(arm_of(robot, robot), new_file=True)
    note = "actuators of the robot's own file (motor, position) are replaced by plain motors, one a joint"
    assert note in new.notes
    assert note in new.content.decode()
    (own,) = mjcf_files(arm_of(robot, robot))
    assert not any("replaced" in note for note in own.notes)


def test_a_range_with_one_end_and_a_name_of_the_world():
    one_end = read_table(
        b"joint = [{xyz = [0, 0, 1], axis = [0, 0, 1], lower = -1, inertia = [1, 0, 0, 1, 0, 1, 0, 0, 0, 1]}]\n"
        b'robot = {name = "one"}'
    )
    (file,) = mjcf_files(identified(one_end, {}))
    assert read_mjcf(file.content).joint("joint_1").limits.lower == -1
    links = (one_end.links[0], replace(one_end.links[1], name="world"))
    world = replace(one_end, links=links, joints=(replace(one_end.joints[0], child="world"),))
    with pytest.raises(ExportError, match="a link is named 'world'"):
        mjcf_files(identified(world, {}))


def test_names_are_escaped_and_comments_stay_comments():
    robot = read_table(
        b'joint = [{name = "a--<&b", xyz = [0, 0, 1], axis = [0, 0, 1], inertia = [1, 0, 0, 1, 0, 1, 0, 0, 0, 1]}]\n'
        b'robot = {name = "odd --> name"}\nvalues = {offm1 = 2.0}'
    )
    (file,) = mjcf_files(identified(robot, {}))
    assert read_mjcf(file.content).joint_names == ("a--<&b",)
    assert read_mjcf(file.content).name == "odd --> name"


def test_edited_mjcf_takes_a_source_and_a_robot(tmp_path):
    robot = odd(tmp_path)
    edit = edited_mjcf(mjcf_source(tmp_path / "odd.xml"), robot.with_parameters({"Fcm1": 0.5}))
    assert edit.joints == ("first",)
    assert edit.links == ()
    assert edit.source.content == ODD.replace(b'damping="0.5"', b'damping="0.5" frictionloss="0.5"')


@pytest.mark.large
@pytest.mark.parametrize("name", ARMS)
def test_many_arms_round_trip(name):
    robot = load_robot(FOLDER / name)
    for seed in range(20):
        files = mjcf_files(arm_of(with_other_drives(with_other_links(robot, seed)), robot))
        assert all(comparison.largest < 1e-9 for comparison in files[0].comparisons)


def moves(robot: Robot):
    limits = [body.joint.limits for body in robot.actuated]
    middle = np.array([(limit.lower + limit.upper) / 2 for limit in limits])
    points = middle[:, None] + 0.5 * np.random.default_rng(1).uniform(-1, 1, (len(limits), 5))
    return quintic(points, 0.6, robot.joint_names)


def followed(model, q: np.ndarray, qd: np.ndarray, torque: np.ndarray, stiffness: float) -> tuple[np.ndarray, float]:
    """Drive MuJoCo with recorded torques and a PD of this natural frequency [rad/s] around the recorded motion.

    Returns the distance from the recorded motion (joints, samples), and the PD's torque relative to the recorded one.
    """
    model.opt.timestep = 0.00025  # four steps between two samples
    data, inertia = mujoco.MjData(model), np.zeros((model.nv, model.nv))
    data.qpos[:], data.qvel[:] = q[:, 0], qd[:, 0]
    mujoco.mj_forward(model, data)
    mujoco.mj_fullM(model, data, inertia)
    kp, kd = np.diag(inertia) * stiffness**2, 2 * np.diag(inertia) * stiffness
    away, corrections = [np.zeros(len(q))], []
    for k in range(q.shape[1] - 1):
        correction = kp * (q[:, k] - data.qpos) + kd * (qd[:, k] - data.qvel)
        data.ctrl[:] = (torque[:, k] + torque[:, k + 1]) / 2 + correction
        for _ in range(4):
            mujoco.mj_step(model, data)
        away.append(np.abs(data.qpos - q[:, k + 1]))
        corrections.append(correction)
    share = np.sqrt(np.mean(np.square(corrections), axis=0) / np.mean(np.square(torque), axis=1))
    return np.array(away).T, float(share.max())


@pytest.mark.large
@pytest.mark.parametrize("name", ["ur10e", "kuka_lwr4"])
def test_mujoco_follows_a_recorded_motion_with_the_recorded_torques(name):
    """Torques alone for one second, then for all of 2.4 s with a PD of 1 Hz; joints move by up to 0.8 rad.

    Measured: open loop 0.6 mrad (UR10e) and 1.4 mrad (LWR4+) after one second; with the PD 0.3 and 0.6 mrad, its torque
    0.2 % of the recorded one. The rest is dry friction, which MuJoCo has as a soft constraint and the simulated arm as
    a steep sign, and torques recorded once a millisecond. Bounds are about twice that. Without armature and friction
    the same torques lead more than ten times as far away.
    """
    robot = load_robot(name)
    robot = replace(robot, values={key: v for key, v in robot.values.items() if not key.startswith("off")})
    run = simulate(robot, moves(robot), Experiment(record_rate=1000))
    q, qd, torque = run.q[0], run.qd[0], run.motor_torque[0]
    (file,) = mjcf_files(identified(robot, {}))
    model = mujoco.MjModel.from_xml_string(file.content.decode())
    second = slice(0, 1000)
    alone, _ = followed(model, q[:, second], qd[:, second], torque[:, second], 0.0)
    assert alone.max() < 0.003
    held, share = followed(model, q, qd, torque, 2 * np.pi)
    assert held.max() < 0.0012
    assert share < 0.005
    bare = mujoco.MjModel.from_xml_string(file.content.decode())
    bare.dof_armature[:] = bare.dof_damping[:] = bare.dof_frictionloss[:] = 0
    wrong, _ = followed(bare, q[:, second], qd[:, second], torque[:, second], 0.0)
    assert wrong.max() > 10 * alone.max()
