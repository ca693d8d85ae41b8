"""MJCF files: each feature against what MuJoCo itself computes, and one clear line for what is refused."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from mjcf_arms import ARMS, FOLDER, assert_same_poses, assert_same_torques, compiled
from oracles import NO_MUJOCO
from steelyard.errors import RobotError
from steelyard.robot import (
    BoxShape,
    CapsuleShape,
    MeshShape,
    Mimic,
    Robot,
    load_robot,
    read_mjcf,
    read_urdf,
    robot_files,
)

pytest.importorskip("mujoco", reason=NO_MUJOCO)

ROD = '<geom type="capsule" size="0.02" fromto="0 0 0 0.3 0 0" mass="1"/>'


def mjcf(bodies: str, rest: str = "") -> bytes:
    return f'<mujoco model="arm">{rest}<worldbody>{bodies}</worldbody></mujoco>'.encode()


def two_joints(first: str = "", second: str = "", rest: str = "") -> bytes:
    inner = f'<body name="fore" pos="0.3 0 0"><joint name="elbow" axis="0 1 0" {second}/>{ROD}</body>'
    return mjcf(f'<body name="upper"><joint name="shoulder" axis="0 0 1" {first}/>{ROD}{inner}</body>', rest)


@pytest.fixture(params=ARMS)
def case(request):
    path = FOLDER / request.param
    robot = read_mjcf(path, right_angle_tolerance=0)
    return robot, compiled(path, robot)


def test_torques_with_armature_and_damping_equal_mujoco_s(case):
    assert_same_torques(*case)


@pytest.mark.large
def test_torques_equal_mujoco_s_at_many_states(case):
    assert_same_torques(*case, count=1000)


def test_poses_of_all_bodies_equal_mujoco_s(case):
    robot, model = case
    links = {link.name for link in robot.links}
    bodies = [model.body(number).name for number in range(1, model.nbody)]
    assert_same_poses(robot, model, {f"{b}_frame" if f"{b}_frame" in links else b: b for b in bodies})


def test_angles_near_right_ones_are_taken_as_exact_and_said():
    exact, literal = (read_mjcf(FOLDER / "six_axis.xml", right_angle_tolerance=t) for t in (1e-5, 0.0))
    assert exact.joint("wrist_1").placement[4].value == np.pi / 2
    assert literal.joint("wrist_1").placement[4].value == np.pi / 2  # both components are equal
    turned = two_joints().replace(b'name="fore"', b'name="fore" quat="0.707105 0.707108 0 0"')
    robot = read_mjcf(turned)
    assert robot.joint("elbow").placement[5].value == np.pi / 2
    assert "angles taken as exact right angles" in robot.notes[0]
    assert read_mjcf(turned, right_angle_tolerance=0).joint("elbow").placement[5].value != np.pi / 2


def test_limits_drives_and_gears():
    robot = read_mjcf(FOLDER / "heavy_arm.xml")
    assert robot.name == "heavy"
    assert robot.gravity == (1.2, 0.0, -9.7)
    first, second, third, fourth = (body.joint for body in robot.bodies)
    assert first.limits.upper == pytest.approx(np.radians(185))
    assert (first.gear_ratio, second.gear_ratio, third.gear_ratio) == (120, -140, None)
    # Efforts hold in both directions: the smaller side of -14 to 12, times the gear.
    assert (first.limits.effort, second.limits.effort, third.limits.effort) == (14 * 120, 12 * 140, 900)
    assert fourth.kind == "prismatic"
    # Of joint and actuator: 2 + 0.0004 * 120^2.
    assert robot.values["Ia1"] == pytest.approx(2 + 0.0004 * 120**2)
    assert robot.values["Fvm2"] == pytest.approx(0.0002 * 140**2)
    assert robot.values["Fcm2"] == 60
    scara = read_mjcf(FOLDER / "scara.xml")
    # A gear on a motor with commands from -1 to 1 is the scale of its torque.
    assert [body.joint.gear_ratio for body in scara.bodies] == [80, None, None, None]
    assert [body.joint.limits.effort for body in scara.bodies] == [pytest.approx(88), 30, 150, np.inf]


def test_a_joint_s_own_force_range_bounds_the_effort_too():
    motors = '<actuator><motor joint="shoulder"/><motor joint="elbow" ctrlrange="-2 2"/></actuator>'
    robot = read_mjcf(two_joints('actuatorfrcrange="-9 7"', 'actuatorfrcrange="-9 9"', motors))
    assert [body.joint.limits.effort for body in robot.bodies] == [7, 2]


def test_friction_of_a_following_joint_counts_for_the_one_it_follows():
    rest = '<equality><joint joint1="elbow" joint2="shoulder" polycoef="0.1 -2 0 0 0"/></equality>'
    robot = read_mjcf(two_joints('ref="20" damping="1"', 'ref="-10" armature="0.1" damping="3" frictionloss="4"', rest))
    shift = np.radians(-10) + 0.1 + 2 * np.radians(20)
    mimic = robot.joint("elbow").mimic
    assert mimic is not None
    assert mimic == Mimic("shoulder", -2.0, mimic.offset)
    assert mimic.offset == pytest.approx(shift)
    assert robot.values == {"Ia1": pytest.approx(0.4), "Fvm1": pytest.approx(13.0), "Fcm1": pytest.approx(8.0)}


@pytest.mark.parametrize("leader", ["", 'joint2="shoulder"'])
def test_an_equality_with_a_constant_holds_the_joint(leader):
    rest = f'<equality><joint joint1="elbow" {leader} polycoef="0.4 0 0 0 0"/></equality>'
    robot = read_mjcf(two_joints('damping="2"', 'ref="30" damping="5"', rest))
    assert robot.joint("elbow").locked_at == pytest.approx(np.radians(30) + 0.4)
    assert robot.joint_names == ("shoulder",)
    assert robot.values == {"Fvm1": 2.0}


def test_an_equality_that_is_not_active_means_nothing():
    loop = '<connect body1="fore" anchor="0 0 0" active="false"/>'
    rest = f'<equality><joint joint1="elbow" joint2="shoulder" active="false"/>{loop}</equality>'
    assert read_mjcf(two_joints(rest=rest)).joint_names == ("shoulder", "elbow")


def test_shapes_floor_sites_and_meshes_that_are_not_here():
    robot = read_mjcf(FOLDER / "scara.xml")
    assert robot.floor == -0.4
    upper = {link.name: link for link in robot.links}["upper"].shapes
    assert isinstance(upper[0], CapsuleShape)
    assert upper[0].length == pytest.approx(0.3)
    assert isinstance(upper[1], BoxShape)
    np.testing.assert_allclose(upper[1].size, (0.08, 0.1, 0.06))
    assert robot.frame("tool").body == 4
    assert any("flange" in note and "ellipsoid" in note for note in robot.notes)
    arm = {link.name: link for link in read_mjcf(FOLDER / "six_axis.xml").links}["upper_arm_link"]
    # The visual mesh touches nothing; the third geometry is a mesh that does.
    mesh = arm.shapes[2]
    assert isinstance(mesh, MeshShape)
    assert (mesh.name, mesh.path, mesh.scale) == ("arms/upper_arm.stl", None, (0.001, 0.001, 0.001))


def test_meshes_are_opened_only_for_inertias(tmp_path):
    (tmp_path / "tetra.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    geom = '<geom type="mesh" mesh="tetra" pos="0.1 0.2 0.3" euler="10 20 30"/>'
    asset = '<asset><mesh file="tetra.obj" scale="0.1 0.1 0.1"/></asset>'
    inertial = '<inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>'
    shapes = []
    for content in ("", inertial):
        path = tmp_path / "arm.xml"
        path.write_bytes(mjcf(f'<body name="b"><joint name="j"/>{content}{geom}</body>', asset))
        robot = read_mjcf(path)
        (shape,) = {link.name: link for link in robot.links}["b"].shapes
        assert isinstance(shape, MeshShape)
        assert shape.path == tmp_path / "tetra.obj"
        shapes.append(shape)
    assert robot.parameters["M1"] == 2
    for ours, theirs in zip(*(shape.placement for shape in shapes), strict=True):
        assert ours.value == pytest.approx(theirs.value, abs=1e-12)
    (tmp_path / "tetra.obj").unlink()
    assert read_mjcf(path).parameters["M1"] == 2
    path.write_bytes(path.read_bytes().replace(inertial.encode(), b""))
    with pytest.raises(RobotError, match=r"MuJoCo does not compile it: .*tetra\.obj"):
        read_mjcf(path)


def test_meshes_of_the_base_need_not_be_here():
    base = f'<body name="base"><geom type="mesh" mesh="stand"/><body name="rod"><joint name="j"/>{ROD}</body></body>'
    robot = read_mjcf(mjcf(base, '<asset><mesh name="stand" file="stand.stl"/></asset>'))
    assert [len(link.shapes) for link in robot.links] == [0, 1, 1]


def test_the_files_of_a_robot_are_its_own_and_those_it_includes():
    robot = load_robot(FOLDER / "seven_axis.xml")
    assert robot_files(robot) == (FOLDER / "seven_axis.xml", FOLDER / "parts" / "hand.xml")
    assert robot_files(read_mjcf(FOLDER / "seven_axis.xml")) == ()


def test_forces_that_no_effect_stands_for_are_said():
    rest = '<option density="1.2"/>'
    content = two_joints('stiffness="3"', rest=rest).replace(b'<body name="fore"', b'<body name="fore" gravcomp="1"')
    notes = " ".join(read_mjcf(content).notes)
    assert "springs of shoulder (stiffness) are not read" in notes
    assert "gravity compensation of fore (gravcomp) is not read" in notes
    assert "drag of the medium" in notes


def test_gravity_may_be_off():
    robot = read_mjcf(two_joints(rest='<option><flag gravity="disable"/></option>'))
    assert robot.gravity == (0, 0, 0)
    assert robot.floor is None


REFUSED = {
    "a free joint": (mjcf(f'<body name="base"><freejoint/>{ROD}</body>'), ["body 'base' has a free joint", "delete"]),
    "a ball joint": (mjcf(f'<body name="hip"><joint type="ball"/>{ROD}</body>'), ["body 'hip' has a ball joint"]),
    "a loop": (
        two_joints(rest='<equality><connect body1="fore" anchor="0.3 0 0"/></equality>'),
        ["equality of kind 'connect'", "active='false'"],
    ),
    "a curved mimic": (
        two_joints(rest='<equality><joint joint1="elbow" joint2="shoulder" polycoef="0 1 0.5 0 0"/></equality>'),
        ["joint 'elbow' follows polycoef", "'a b 0 0 0'"],
    ),
    "two constraints": (
        two_joints(rest='<equality><joint joint1="elbow" joint2="shoulder"/><joint joint1="elbow"/></equality>'),
        ["joint 'elbow' is constrained twice"],
    ),
    "copies": (mjcf(f'<replicate count="2" euler="0 0 9"><body>{ROD}</body></replicate>'), ["<replicate>", "MjSpec"]),
    "a wrong attribute": (two_joints('axes="0 0 1"'), ["MuJoCo does not compile it", "axes"]),
    "nothing that moves": (mjcf(f'<body name="table">{ROD}</body>'), ["no joint moves"]),
    "a part alone": (b"<mujocoinclude><body/></mujocoinclude>", ["<mujocoinclude>", "the file that includes it"]),
    "an include of bytes": (mjcf('<include file="arm.xml"/>'), ["<include file='arm.xml'/>", "give the path"]),
    "latin letters": (
        b'<?xml version="1.0" encoding="iso-8859-1"?>' + two_joints().replace(b"arm", b"\xe9", 1),
        ["save it as utf-8"],
    ),
    "entities": (b"<!DOCTYPE mujoco [<!ENTITY a 'b'>]>" + two_joints(), ["DOCTYPE"]),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_out_of_scope_is_refused_in_one_line(what):
    content, parts = REFUSED[what]
    with pytest.raises(RobotError) as caught:
        read_mjcf(content)
    for part in parts:
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("seed", range(3))
def test_odd_numbers_give_a_finite_robot_or_one_line(seed):
    text, rng = (FOLDER / "heavy_arm.xml").read_text(), np.random.default_rng(seed)
    places = [found.span() for found in re.finditer(r'(?<=[ "])-?[0-9.]+(?=[ "])', text)]
    refused = 0
    for _ in range(40):
        start, end = places[rng.integers(len(places))]
        odd = text[:start] + rng.choice(["nan", "inf", "-1", "0", "1e300", "-1e-300", "x", "1e15"]) + text[end:]
        try:
            robot = read_mjcf(odd.encode())
        except RobotError:
            refused += 1
        else:
            assert np.isfinite([*robot.gravity, *robot.parameters.values()]).all()
    assert refused > 10


def test_includes_are_followed_once(tmp_path):
    path = tmp_path / "arm.xml"
    path.write_bytes(mjcf('<include file="part.xml"/>'))
    with pytest.raises(RobotError, match=r"included file 'part\.xml': no such file"):
        load_robot(path)
    (tmp_path / "part.xml").write_text('<mujocoinclude><include file="part.xml"/></mujocoinclude>')
    with pytest.raises(RobotError, match="cannot be followed again"):
        load_robot(path)


@pytest.mark.parametrize("name", ["arm.xml", "arm.mjcf", "arm.urdf"])
def test_load_robot_looks_inside(name, tmp_path, two_joint):
    path = tmp_path / name
    path.write_bytes(two_joints())
    assert load_robot(path).joint_names == ("shoulder", "elbow")
    assert load_robot(path).file == str(path)
    path.write_bytes(two_joint)
    assert load_robot(path).name == "two_joint"


def test_a_urdf_reader_says_who_reads_mjcf():
    with pytest.raises(RobotError, match=r"is an MJCF file .* read_mjcf"):
        read_urdf(two_joints())


def test_without_mujoco_one_line_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(RobotError, match=r"reading MJCF needs MuJoCo; .* pip install 'steelyard\[mujoco\]'"):
        read_mjcf(two_joints())


class Descriptions:
    """A stand-in for the package robot_descriptions."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        package = ModuleType("robot_descriptions")
        package.__path__ = []
        monkeypatch.setitem(sys.modules, "robot_descriptions", package)

    def add(self, name: str, **paths: str) -> None:
        module = ModuleType(f"robot_descriptions.{name}")
        vars(module).update(paths)
        self._patch.setitem(sys.modules, module.__name__, module)


def load(name: str) -> Robot:
    return load_robot(f"robot_descriptions:{name}")


def test_names_of_robot_descriptions(monkeypatch, tmp_path, two_joint):
    package = Descriptions(monkeypatch)
    urdf, model = tmp_path / "a.urdf", tmp_path / "b.xml"
    urdf.write_bytes(two_joint)
    model.write_bytes(two_joints())
    package.add("a_description", URDF_PATH=str(urdf))
    package.add("b_mj_description", MJCF_PATH=str(model))
    package.add("c_description", XACRO_PATH="c.xacro")
    assert load("a_description").name == "two_joint"
    assert load("b_mj_description").name == "arm"
    assert load("b_mj_description").file == str(model)
    with pytest.raises(RobotError, match="c_description names no URDF or MJCF file"):
        load("c_description")
    with pytest.raises(RobotError, match=r"has no 'd_description'; .* such as panda_description"):
        load("d_description")
    with pytest.raises(RobotError, match="not the name of a description"):
        load("../a_description")


def test_a_download_is_announced_and_its_failure_is_one_line(monkeypatch, tmp_path, capsys):
    folder = tmp_path / "robot_descriptions"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "far_description.py").write_text("raise OSError('no route to host')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.partition(".")[0] == "robot_descriptions"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(RobotError, match=r"far_description cannot be loaded \(no route to host\)"):
        load("far_description")
    assert "its repository is downloaded into" in capsys.readouterr().err
    sys.modules.pop("robot_descriptions", None)


def test_without_the_package_one_line_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "robot_descriptions", raising=False)
    with pytest.raises(RobotError, match="install it with: pip install robot_descriptions"):
        load("panda_description")


def test_test_files_are_here():
    assert len(ARMS) == 5
    assert Path(FOLDER / "parts" / "hand.xml").is_file()
