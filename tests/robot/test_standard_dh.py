"""Standard (distal) DH tables: textbook matrices for poses, Pinocchio for torques of the equivalent URDF."""

from __future__ import annotations

import math

import numpy as np
import pytest

from oracles import NO_PINOCCHIO
from steelyard.errors import RobotError
from steelyard.physics import inverse_dynamics_function, pose_function, symbolic_geometry
from steelyard.robot import Robot, parameters_from_centre, read_table

# Puma 560 of Corke and Armstrong-Helouvry, "A search for consensus among model parameters reported for the Puma 560
# robot" (1994), as in the Robotics Toolbox: standard DH, centres and inertias about them in the frame of each link.
PUMA = [
    # a, alpha [deg], d, mass, centre, Ixx Iyy Izz Ixy Iyz Ixz at the centre
    (0.0, 90, 0.0, 0.0, (0, 0, 0), (0, 0.35, 0, 0, 0, 0)),
    (0.4318, 0, 0.0, 17.4, (-0.3638, 0.006, 0.2275), (0.13, 0.524, 0.539, 0, 0, 0)),
    (0.0203, -90, 0.15005, 4.8, (-0.0203, -0.0141, 0.070), (0.066, 0.086, 0.0125, 0, 0, 0)),
    (0.0, 90, 0.4318, 0.82, (0, 0.019, 0), (1.8e-3, 1.3e-3, 1.8e-3, 0, 0, 0)),
    (0.0, -90, 0.0, 0.34, (0, 0, 0), (0.3e-3, 0.4e-3, 0.3e-3, 0, 0, 0)),
    (0.0, 0, 0.0, 0.09, (0, 0, 0.032), (0.15e-3, 0.15e-3, 0.04e-3, 0, 0, 0)),
]


def puma_table(head: str = 'convention = "standard"') -> bytes:
    rows = []
    for a, alpha, d, mass, centre, (xx, yy, zz, xy, yz, xz) in PUMA:
        six = [xx, xy, xz, yy, yz, zz]
        rows.append(
            f"{{a = {a}, alpha_deg = {alpha}, d = {d}, theta = 0, mass = {mass}, centre = {list(centre)}, "
            f"inertia_at_centre = {six}}}"
        )
    return f'joint = [\n  {",".join(rows)}\n]\n[robot]\nname = "puma560"\n{head}\n'.encode()


def link_matrix(a: float, alpha: float, d: float, theta: float) -> np.ndarray:
    """Return the matrix of Spong, Hutchinson & Vidyasagar, Robot Modeling and Control, eq. 3.10."""
    ct, st, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
    return np.array([[ct, -st * ca, st * sa, a * ct], [st, ct * ca, -ct * sa, a * st], [0, sa, ca, d], [0, 0, 0, 1]])


@pytest.fixture(scope="module")
def puma() -> Robot:
    return read_table(puma_table())


def test_frames_of_all_links_are_those_of_the_textbook(puma):
    q = np.random.default_rng(1).uniform(-3, 3, (5, 6))
    for place in range(6):
        pose = pose_function(puma, f"link_{place + 1}")
        for sample in q:
            wanted = np.eye(4)
            for (a, alpha, d, *_), theta in zip(PUMA[: place + 1], sample, strict=False):
                wanted = wanted @ link_matrix(a, np.radians(alpha), d, theta)
            np.testing.assert_allclose(np.array(pose(sample, [])), wanted[:3], atol=1e-14)


def test_the_moving_link_is_at_the_joint_and_the_user_s_frame_is_a_fixed_link(puma):
    assert [body.link for body in puma.bodies] == [*(f"link_{k}_joint" for k in range(1, 6)), "link_6"]
    assert puma.frame("link_2").body == 2
    assert puma.joint_names == tuple(f"joint_{k}" for k in range(1, 7))
    assert puma.payload_link is None


def test_payloads_are_in_the_frame_at_the_far_end_of_the_last_link():
    turned = puma_table().replace(
        b"alpha_deg = 0, d = 0.0, theta = 0, mass = 0.09", b"alpha = 1, d = 0, theta = 0, mass = 1"
    )
    assert read_table(turned).payload_link == "link_6"


def test_calibration_finds_every_column_of_the_table_once(puma):
    names = symbolic_geometry(puma).names
    assert len(set(names)) == len(names)


def urdf_of(rows) -> str:
    """Return the same arm as a URDF written row by row: a link at each joint, another at its far end."""
    text = '<robot name="puma"><link name="end_0"/>'
    for place, (a, alpha, d, mass, centre, (xx, yy, zz, xy, yz, xz)) in enumerate(rows, start=1):
        text += (
            f'<link name="turning_{place}"/>'
            f'<joint name="j{place}" type="continuous"><parent link="end_{place - 1}"/><child link="turning_{place}"/>'
            '<axis xyz="0 0 1"/></joint>'
            f'<link name="end_{place}"><inertial><origin xyz="{centre[0]} {centre[1]} {centre[2]}"/>'
            f'<mass value="{mass}"/><inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="{xy}" iyz="{yz}" ixz="{xz}"/>'
            "</inertial></link>"
            f'<joint name="f{place}" type="fixed"><parent link="turning_{place}"/><child link="end_{place}"/>'
            f'<origin xyz="{a} 0 {d}" rpy="{math.radians(alpha)!r} 0 0"/></joint>'
        )
    return text + "</robot>"


def test_torques_equal_pinocchio_s_of_the_equivalent_urdf(puma):
    pin = pytest.importorskip("pinocchio", reason=NO_PINOCCHIO)
    model = pin.buildModelFromXML(urdf_of(PUMA))
    data, inverse = model.createData(), inverse_dynamics_function(puma)
    chi = np.concatenate([body.inertia for body in puma.bodies])
    rng = np.random.default_rng(2)
    for _ in range(5):
        q, qd, qdd = rng.uniform(-3, 3, (3, 6))
        full = np.column_stack([np.cos(q), np.sin(q)]).ravel()
        wanted = pin.rnea(model, data, full, qd, qdd)
        np.testing.assert_allclose(
            np.array(inverse(q, qd, qdd, chi)).ravel(), wanted, atol=1e-12 * np.abs(wanted).max()
        )


def test_a_prismatic_joint_slides_along_d():
    robot = read_table(
        b'joint = [{a = 0.2, alpha_deg = 90, d = 0.1, theta_deg = 30, type = "prismatic", '
        b'inertia = [1, 0, 0, 1, 0, 1, 0, 0, 0, 2]}]\nrobot = {name = "slide", convention = "standard"}'
    )
    found = np.array(pose_function(robot, "link_1")([0.4], []))
    np.testing.assert_allclose(found, link_matrix(0.2, np.pi / 2, 0.5, np.radians(30))[:3], atol=1e-15)
    # Two kilogrammes at the user's origin: 0.2 m along x of the joint's frame.
    wanted = parameters_from_centre(2.0, np.array([0.2, 0, 0]), np.eye(3))
    np.testing.assert_allclose(np.array(robot.bodies[0].inertia), wanted, atol=1e-15)


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ((b"a = 0.0, alpha_deg = 90, d = 0.0", b"r = 0.0, alpha_deg = 90, d = 0.0"), ["'r' belongs to modified DH"]),
        ((b'"standard"', b'"modified"'), ["'a' belongs to standard DH", 'convention = "standard"']),
        ((b'"standard"', b'"distal"'), ["convention", "'distal'", "modified, standard"]),
        ((b"a = 0.0, alpha_deg = 90, ", b"a = 0.0, "), ["no column 'alpha'", "a, alpha, d, theta"]),
        ((b"a = 0.0, alpha_deg = 90, ", b"a = 0.0, gamma = 1, alpha_deg = 90, "), ["'gamma' belongs to modified"]),
        ((b"a = 0.0, alpha_deg = 90, ", b"xyz = [0, 0, 1], alpha_deg = 90, "), ["mixes DH columns"]),
    ],
)
def test_mixtures_that_make_no_sense_are_refused(change, parts):
    with pytest.raises(RobotError) as caught:
        read_table(puma_table().replace(change[0], change[1], 1))
    for part in parts:
        assert part in str(caught.value)


def test_a_fixed_row_and_one_placed_by_xyz_follow_the_far_end():
    robot = read_table(
        b"joint = [{a = 0.3, alpha_deg = 0, d = 0, theta = 0}, {xyz = [0.1, 0, 0], axis = [0, 0, 1]}, "
        b'{a = 0.05, alpha_deg = 90, d = 0, theta = 0, type = "fixed", link = "tool"}]\n'
        b'robot = {name = "mixed", convention = "standard"}'
    )
    np.testing.assert_allclose(np.array(pose_function(robot, "tool")([0, 0], []))[:, 3], [0.45, 0, 0], atol=1e-15)
    assert robot.frame("tool").body == 2
