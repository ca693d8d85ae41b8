"""Payloads for controllers: every file read back by a parser of its own gives the body that went in."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from steelyard.errors import ExportError, RobotError
from steelyard.export import PAYLOAD_FORMATS, export_payload
from steelyard.export.payload_formats import kuka_angles, number_text, principal_axes
from steelyard.identification import PayloadBody
from steelyard.identification.payload_body import body_from_parameters
from steelyard.robot import Joint, Link, Robot, load_robot, origin_placement

UR10E, PANDA, LWR4 = (load_robot(name) for name in ("ur10e", "franka_panda", "kuka_lwr4"))

# Where the carrier's frame is in the controller's, from the makers' drawings: written out here, not computed.
EE_IN_TOOL0 = np.array([[0.0, -1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]])  # x of ee_link is out of the flange
FLANGE_OF_LWR4 = np.array([0.0, 0.0, 0.078])


def points_of(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a body as point masses: places (3, k) in the carrier's frame and masses (k,)."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(3, 12)) * rng.uniform(0.02, 0.15, (3, 1)) + rng.normal(size=(3, 1)) * 0.1, rng.uniform(
        0.05, 0.4, 12
    )


def moments(places: np.ndarray, masses: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Return mass, centre and inertia about the centre of point masses."""
    mass = masses.sum()
    centre = places @ masses / mass
    arms = places - centre[:, None]
    inertia = sum(m * (arm @ arm * np.eye(3) - np.outer(arm, arm)) for m, arm in zip(masses, arms.T, strict=True))
    return float(mass), centre, np.asarray(inertia)


def body_of(places: np.ndarray, masses: np.ndarray) -> PayloadBody:
    about_origin = sum(m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in zip(masses, places.T, strict=True))
    values = np.array([*np.asarray(about_origin)[np.triu_indices(3)], *(places @ masses), masses.sum()])
    return body_from_parameters(values, np.diag(1e-6 * np.ones(10)))


def numbers(text: str) -> list[float]:
    return [float(word) for word in re.findall(r"-?\d+\.\d+", text)]


def read_ur(text: str) -> tuple[float, np.ndarray, np.ndarray]:
    call = re.fullmatch(r"(?:#.*\n)*set_target_payload\((.*), \[(.*?)\], \[(.*?)\]\)\n", text)
    assert call
    xx, yy, zz, xy, xz, yz = numbers(call[3])
    return float(call[1]), np.array(numbers(call[2])), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def read_franka(text: str) -> tuple[float, np.ndarray, np.ndarray]:
    call = re.search(r"SetLoad '\{mass: (.*?), center_of_mass: \[(.*?)\], load_inertia: \[(.*?)\]\}'\n$", text)
    library = re.search(r"robot\.setLoad\((.*?), \{\{(.*?)\}\}, \{\{(.*?)\}\}\);", text)
    assert call
    assert library
    assert call.groups() == library.groups()
    return float(call[1]), np.array(numbers(call[2])), np.array(numbers(call[3])).reshape(3, 3).T


def read_desk(text: str) -> tuple[float, np.ndarray, np.ndarray]:
    content = json.loads(text)
    assert set(content) == {"mass", "centerOfMass", "inertia", "transformation"}
    assert np.array_equal(np.reshape(content["transformation"], (4, 4)).T, np.eye(4))
    return content["mass"], np.array(content["centerOfMass"]), np.reshape(content["inertia"], (3, 3)).T


def turned(a: float, b: float, c: float) -> np.ndarray:
    """Return the rotation about Z by a, the new Y by b and the new X by c [deg], from the three matrices."""
    (ca, sa), (cb, sb), (cc, sc) = ((np.cos(np.radians(v)), np.sin(np.radians(v))) for v in (a, b, c))
    about_z = np.array([[ca, -sa, 0], [sa, ca, 0], [0, 0, 1]])
    about_y = np.array([[cb, 0, sb], [0, 1, 0], [-sb, 0, cb]])
    return about_z @ about_y @ np.array([[1, 0, 0], [0, cc, -sc], [0, sc, cc]])


def read_kuka(text: str) -> tuple[float, np.ndarray, np.ndarray]:
    line = text.splitlines()[-1]
    place = r"X (.*?),Y (.*?),Z (.*?)"
    load = re.fullmatch(rf"LOAD_DATA\[1\]=\{{M (.*?),CM \{{{place},A (.*?),B (.*?),C (.*?)\}},J \{{{place}\}}\}}", line)
    assert load
    mass, x, y, z, a, b, c, jx, jy, jz = (float(word) for word in load.groups())
    rotation = turned(a, b, c)
    return mass, np.array([x, y, z]) / 1000, rotation @ np.diag([jx, jy, jz]) @ rotation.T


def read_ros(text: str) -> tuple[float, np.ndarray, np.ndarray]:
    found = dict(re.findall(r"^ +(\w+): (.+)$", text.split("inertia_sigma:")[0], re.MULTILINE))
    ixx, ixy, ixz, iyy, iyz, izz = (float(found[f"i{axes}"]) for axes in ("xx", "xy", "xz", "yy", "yz", "zz"))
    centre = np.array(numbers(found["center_of_mass"]))
    return float(found["mass"]), centre, np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])


READERS = {"ur": read_ur, "franka": read_franka, "franka_desk": read_desk, "kuka": read_kuka, "ros2": read_ros}


def test_every_format_has_a_reader():
    assert set(READERS) == set(PAYLOAD_FORMATS)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("form", "robot", "turn", "shift"),
    [
        ("ur", UR10E, EE_IN_TOOL0, np.zeros(3)),
        ("franka", PANDA, np.eye(3), np.zeros(3)),
        ("franka_desk", PANDA, np.eye(3), np.zeros(3)),
        ("kuka", LWR4, np.eye(3), -FLANGE_OF_LWR4),
        ("kuka", UR10E, EE_IN_TOOL0, np.zeros(3)),
        ("ros2", LWR4, np.eye(3), np.zeros(3)),
    ],
)
def test_a_file_read_back_is_the_body_in_the_controller_s_frame(form, robot, turn, shift, seed):
    places, masses = points_of(seed)
    mass, centre, inertia = moments(turn @ places + shift[:, None], masses)
    found = export_payload(body_of(places, masses), robot, form)
    read_mass, read_centre, read_inertia = READERS[form](found.content.decode())
    digits = 5e-7 if form == "kuka" else 1e-8  # KRL has 32 bits
    assert read_mass == pytest.approx(mass, rel=digits)
    assert read_centre == pytest.approx(centre, rel=digits, abs=1e-9)
    assert read_inertia == pytest.approx(inertia, abs=digits * np.abs(inertia).max())
    assert not any("No link" in note for note in found.notes)


def test_the_order_of_universal_robots_is_diagonal_first():
    inertia = np.array([[0.011, 0.001, 0.002], [0.001, 0.012, 0.003], [0.002, 0.003, 0.013]])
    values = np.array([*inertia[np.triu_indices(3)], 0, 0, 0, 1.5])
    text = export_payload(body_from_parameters(values, np.eye(10)), UR10E, "ur", frame="ee_link").content.decode()
    shown = "set_target_payload(1.5, [0.0, 0.0, 0.0], [0.011, 0.012, 0.013, 0.001, 0.002, 0.003])"
    assert text.splitlines()[-1] == shown


def test_yaml_is_a_ros_parameter_file_in_which_all_numbers_are_doubles():
    yaml = pytest.importorskip("yaml")
    content = yaml.safe_load(export_payload(body_of(*points_of(1)), LWR4, "ros2").content)
    payload = content["/**"]["ros__parameters"]["payload"]
    assert payload["frame_id"] == "link_7"
    every = [
        payload["mass"],
        *payload["center_of_mass"],
        *payload["inertia"].values(),
        *payload["inertia_sigma"].values(),
    ]
    assert all(isinstance(value, float) for value in every)


SHELL = shutil.which("sh")


@pytest.mark.skipif(SHELL is None, reason="no shell")
def test_the_service_call_is_a_shell_script_with_one_request(tmp_path):
    script = tmp_path / "load.sh"
    script.write_bytes(export_payload(body_of(*points_of(1)), PANDA, "franka").content)
    (tmp_path / "ros2").write_text('#!/bin/sh\nfor word in "$@"; do echo "<$word>"; done\n')
    (tmp_path / "ros2").chmod(0o755)
    done = subprocess.run(
        [str(SHELL), str(script), "/arm/set_load"],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": str(tmp_path)},
    )
    words = done.stdout.splitlines()
    assert words[:4] == ["<service>", "<call>", "</arm/set_load>", "<franka_msgs/srv/SetLoad>"]
    assert words[4].startswith("<{mass: ")
    assert len(words) == 5


@pytest.mark.parametrize("seed", range(20))
def test_principal_axes_are_a_rotation_and_the_one_that_turns_least(seed):
    rng = np.random.default_rng(seed)
    rotation = turned(*rng.uniform(-180, 180, 3))
    given = np.diag(rng.uniform(1, 2, 3)) if seed % 2 else np.diag([1.0, 1.0, 1.5])
    inertia = rotation @ given @ rotation.T
    found, axes = principal_axes(inertia)
    assert axes @ np.diag(found) @ axes.T == pytest.approx(inertia, abs=1e-12)
    assert np.linalg.det(axes) == pytest.approx(1.0)
    assert turned(*kuka_angles(axes)) == pytest.approx(axes, abs=1e-12)
    # No other order or sign of the axes turns less: 24 right-handed ones.
    for order in ((0, 1, 2), (1, 2, 0), (2, 0, 1), (0, 2, 1), (2, 1, 0), (1, 0, 2)):
        for signs in np.ndindex(2, 2, 2):
            other = axes[:, order] * (1 - 2 * np.array(signs))
            if np.linalg.det(other) > 0:
                assert np.trace(other) <= np.trace(axes) + 1e-9


@pytest.mark.parametrize(
    "diagonal", [(1, 2, 3), (3, 1, 2), (2, 2, 1), (1, 2, 2), (2, 1, 2), (1, 1, 1), (0.4, 0.4, 0.0)]
)
def test_a_body_along_the_flange_axes_is_not_turned(diagonal):
    found, axes = principal_axes(np.diag(np.array(diagonal, dtype=float)))
    assert found == pytest.approx(diagonal)
    assert kuka_angles(axes) == pytest.approx((0, 0, 0))


def test_angles_at_a_right_angle_are_a_rotation_too():
    for b in (90, -90):
        rotation = turned(30, b, 20)
        angles = kuka_angles(rotation)
        assert angles[2] == 0.0
        assert turned(*angles) == pytest.approx(rotation, abs=1e-12)


def test_numbers_have_a_point_and_no_exponent():
    assert [number_text(value) for value in (0.0, -0.0, 1e-7, 2, 1 / 3, -1e-12)] == [
        "0.0", "0.0", "0.0000001", "2.0", "0.333333333", "-0.000000000001",
    ]  # fmt: skip
    assert number_text(0.1, np.float32) == "0.1"


def with_flange(rpy: tuple[float, float, float], name: str = "flange") -> Robot:
    """Return the UR10e without its tool0, with a link on its last joint (along y) instead."""
    kept = tuple(joint for joint in UR10E.joints if joint.child != "tool0")
    flange = Joint(f"{name}_joint", "fixed", "wrist_3_link", name, origin_placement((0, 0.117, 0), rpy))
    links = (*(link for link in UR10E.links if link.name != "tool0"), Link(name))
    return replace(UR10E, links=links, joints=(*kept, flange))


def frame_in(robot: Robot, form: str = "ur", **options) -> str:
    text = export_payload(body_of(*points_of(1)), robot, form, **options).content.decode()
    found = re.search(r"In the frame of link '(.*?)'", text)
    assert found
    return found[1]


def test_the_controller_s_frame_is_found_by_name():
    assert frame_in(UR10E) == "tool0"
    assert frame_in(with_flange((-np.pi / 2, 0, 0), "left_tool0")) == "left_tool0"
    assert frame_in(with_flange((-np.pi / 2, 0, 0))) == "flange"
    by_name = export_payload(body_of(*points_of(1)), with_flange((-np.pi / 2, 0, 0)), "ur")
    assert "Link 'flange' is taken for the controller's flange by its name: check its x axis." in by_name.notes
    assert frame_in(with_flange((0, 0, 0), "panda_link8"), "franka") == "panda_link8"
    assert frame_in(UR10E, frame="wrist_3_link") == "wrist_3_link"


def test_a_flange_whose_x_points_out_is_not_the_controller_s():
    robot = with_flange((0, 0, np.pi / 2))  # ROS-Industrial's flange: x out
    found = export_payload(body_of(*points_of(1)), robot, "ur")
    assert any("z of link 'flange' does not point along the last axis" in note for note in found.notes)
    assert "the numbers are in the frame of link 'ee_link'" in found.content.decode()
    assert frame_in(robot, frame="flange") == "flange"


def test_why_the_numbers_are_not_in_the_controller_s_frame_is_said():
    links = tuple(replace(link, name="end") if link.name == "tool0" else link for link in UR10E.links)
    joints = tuple(replace(one, child="end") if one.child == "tool0" else one for one in UR10E.joints)
    without = replace(UR10E, links=links, joints=joints)
    found = export_payload(body_of(*points_of(1)), without, "ur")
    assert found.notes[0].startswith("No link of the robot is called tool0 or flange: the numbers are in the frame of")
    found = export_payload(body_of(*points_of(1)), replace(UR10E, payload_link="forearm_link"), "ur")
    assert found.notes[0].startswith("Link 'tool0' is not fixed to link 'forearm_link', which carries the payload: the")


def test_a_link_that_does_not_carry_the_payload_is_refused():
    with pytest.raises(ExportError, match="'forearm_link' moves against link 'ee_link'"):
        export_payload(body_of(*points_of(1)), UR10E, "ur", frame="forearm_link")
    with pytest.raises(RobotError, match="no link 'tool1'"):
        export_payload(body_of(*points_of(1)), UR10E, "ur", frame="tool1")


def changed(**values: float) -> PayloadBody:
    body = body_of(*points_of(1))
    names = ["XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M"]
    parameters, covariance = body.parameters, body.covariance.copy()
    for name, value in values.items():
        place = names.index(name)
        parameters[place] = value
        if np.isnan(value):
            covariance[place] = covariance[:, place] = np.nan
    return body_from_parameters(parameters, covariance)


def test_what_no_body_can_have_is_refused():
    with pytest.raises(ExportError, match=r"no body can have the payload's inertia .* -"):
        export_payload(changed(XX=1e-4), UR10E, "ur")
    with pytest.raises(ExportError, match="mass is -1 "):
        export_payload(changed(M=-1.0), UR10E, "ur")
    with pytest.raises(ExportError, match="centre of mass is not known in all directions"):
        export_payload(changed(MZ=np.nan), UR10E, "ros2")
    with pytest.raises(ExportError, match=r"payload format 'kuk'; allowed: ur, .*did you mean 'kuka'"):
        export_payload(changed(), UR10E, "kuk")
    with pytest.raises(ExportError, match="tool number 0"):
        export_payload(changed(), UR10E, "kuka", tool=0)


@pytest.mark.parametrize(("body", "options"), [(changed(XY=np.nan), {}), (changed(XX=1e-4), {"inertia": False})])
@pytest.mark.parametrize("form", PAYLOAD_FORMATS)
def test_an_inertia_that_is_not_known_is_left_out_where_the_controller_allows_it(form, body, options):
    if PAYLOAD_FORMATS[form].needs_inertia:
        with pytest.raises(ExportError, match=f"format '{form}' needs it; .*formats ur, ros2"):
            export_payload(body, UR10E, form, **options)
        return
    found = export_payload(body, UR10E, form, **options)
    assert any(note.startswith("The inertia is") for note in found.notes)
    text = found.content.decode()
    assert "ixx" not in text
    if form == "ur":
        assert re.search(r"^set_target_payload\(\S+, \[\S+, \S+, \S+\]\)$", text, re.MULTILINE)


def test_a_payload_too_heavy_for_the_controller_is_noted():
    places, masses = points_of(1)
    found = export_payload(body_of(400 * places, masses), UR10E, "ur")
    assert any("takes no inertia above 133" in note for note in found.notes)


def test_a_name_with_a_line_end_stays_in_its_comment():
    robot = replace(UR10E, name="arm\nset_target_payload(99, [0,0,0])/../x")
    found = export_payload(body_of(*points_of(1)), robot, "ur")
    assert "/" not in found.name
    assert [line[0] for line in found.content.decode().splitlines()][:-1] == ["#"] * 3


def test_another_frame_and_back_is_the_same_body_with_the_same_sigmas():
    rng = np.random.default_rng(2)
    root = rng.normal(size=(10, 10))
    body = body_from_parameters(body_of(*points_of(3)).parameters, root @ root.T * 1e-6)
    rotation, shift = turned(20, -30, 50), np.array([0.1, -0.2, 0.3])
    moved = body.in_frame(rotation, shift)
    back = moved.in_frame(rotation.T, -rotation.T @ shift)
    assert back.parameters == pytest.approx(body.parameters, rel=1e-9, abs=1e-12)
    assert back.covariance == pytest.approx(body.covariance, rel=1e-8, abs=1e-15)
    assert moved.mass == pytest.approx(body.mass)
    # The centre's covariance only turns.
    assert moved.centre_sigma is not None
    assert body.centre_sigma is not None
    assert np.sum(moved.centre_sigma**2) == pytest.approx(np.sum(body.centre_sigma**2))


def test_what_depends_on_the_unknown_is_unknown_in_another_frame():
    body = changed(ZZ=np.nan)
    along_z = body.in_frame(turned(30, 0, 0), np.array([0, 0, 0.1]))
    assert np.isnan(along_z.inertia).tolist() == [False, False, False, False, False, True]
    assert np.isnan(body.in_frame(turned(0, 30, 0), np.zeros(3)).inertia).tolist() == [
        True,
        False,
        True,
        False,
        False,
        True,
    ]
    assert along_z.centre == pytest.approx(turned(30, 0, 0) @ body.centre + [0, 0, 0.1])
