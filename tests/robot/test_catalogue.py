import tomllib
from importlib.resources import files

import numpy as np
import pytest

from steelyard.papers.p3_runs import CONFIGURATIONS_DEG
from steelyard.robot import catalogue_names, is_consistent, load_robot, read_catalogue

NAMES = ("franka_panda", "kuka_ir361", "kuka_kr270", "kuka_lwr4", "scara_2r", "staubli_tx40", "ur10e")
SIMULABLE = tuple(name for name in NAMES if name != "kuka_kr270")


def test_the_catalogue_has_these_arms() -> None:
    assert catalogue_names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_loads_under_its_own_name_with_a_source_and_no_notes(name: str) -> None:
    robot = load_robot(name)
    assert robot.name == name
    assert robot.source
    assert robot.notes == ()
    assert robot == read_catalogue(name)


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_states_its_sources_in_comments_and_no_path_of_a_machine(name: str) -> None:
    text = files("steelyard.robot").joinpath("catalogue", f"{name}.toml").read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert "shared" not in text
    assert tomllib.loads(text)["robot"]["source"]


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_says_where_its_inertias_come_from(name: str) -> None:
    text = files("steelyard.robot").joinpath("catalogue", f"{name}.toml").read_text(encoding="utf-8")
    assert tomllib.loads(text)["robot"]["inertia_source"] == load_robot(name).inertia_source
    identified = {"franka_panda", "kuka_lwr4", "ur10e"}  # from recordings like a user's own
    assert (load_robot(name).inertia_source == "identified") == (name in identified)


@pytest.mark.parametrize("name", SIMULABLE)
def test_every_simulable_arm_has_inertias_a_real_body_can_have(name: str) -> None:
    robot = load_robot(name)
    assert {"geometry", "limits", "inertias", "friction"} <= set(robot.carries)
    assert all(body.inertia is not None and is_consistent(np.array(body.inertia)) for body in robot.bodies)
    assert all(is_consistent(np.array(payload)) for payload in robot.payloads.values())


@pytest.mark.parametrize("name", NAMES)
def test_right_angles_of_the_catalogue_are_exact(name: str, poses) -> None:
    robot = load_robot(name)
    for link in robot.frames:
        rotation = poses.of_link(robot, link, np.zeros(len(robot.bodies)))[:3, :3]
        assert set(np.unique(np.abs(rotation))) == {0.0, 1.0}


def test_the_kr270_is_known_by_geometry_and_compliances_only() -> None:
    robot = load_robot("kuka_kr270")
    assert robot.carries == ("geometry", "compliances")
    assert robot.values["k25"] == 0.246e-6


@pytest.mark.parametrize("degrees", CONFIGURATIONS_DEG)
def test_the_kr270_chain_equals_the_product_of_its_elementary_motions(degrees: np.ndarray, poses) -> None:
    q = np.radians(degrees)
    chain = [
        *[("translate", "z", 0.75), ("rotate", "z", q[0]), ("translate", "x", 0.35), ("rotate", "y", q[1])],
        *[("translate", "x", 1.25), ("rotate", "y", q[2]), ("translate", "x", 1.10), ("translate", "z", 0.055)],
        *[("rotate", "x", q[3]), ("rotate", "y", q[4]), ("rotate", "x", q[5]), ("translate", "x", 0.23)],
    ]
    flange = np.eye(4)
    for kind, axis, value in chain:
        flange = flange @ poses.elementary(kind, axis, value)
    robot = load_robot("kuka_kr270")
    np.testing.assert_allclose(poses.of_link(robot, "tool", q), flange, atol=1e-14)
    marker = flange @ np.array([0.10, -0.20, -0.20, 1.0])
    np.testing.assert_allclose(poses.of_link(robot, "marker_2", q)[:, 3], marker, atol=1e-14)


def test_the_lwr4_stretched_out_has_its_flange_above_the_shoulder(poses) -> None:
    robot = load_robot("kuka_lwr4")
    np.testing.assert_allclose(poses.of_link(robot, "flange", np.zeros(7))[:3, 3], [0, 0, 0.400 + 0.390 + 0.078])
    assert robot.defaults.measured == "both"
    assert robot.values["Fcl5"] == 0.935
    assert robot.payloads["P5"][9] == 4.6136


def test_the_panda_flange_is_where_franka_puts_it(poses) -> None:
    robot = load_robot("franka_panda")
    straight = poses.of_link(robot, "flange", np.zeros(7))
    np.testing.assert_allclose(straight[:3, 3], [0.088, 0, 0.333 + 0.316 + 0.384 - 0.107], atol=1e-15)
    ready = poses.of_link(robot, "flange", np.array([0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4]))
    np.testing.assert_allclose(ready[:3, 3], [0.306891, 0, 0.590282], atol=1e-6)
    np.testing.assert_allclose(ready[:3, 2], [0, 0, -1], atol=1e-12)


def test_the_panda_inertias_about_the_centres_give_the_authors_base_parameters() -> None:
    inertia = {body.number: dict(zip(NAMES_OF_TEN, body.inertia or (), strict=True)) for body in PANDA.bodies}
    rest = sum(inertia[number]["M"] for number in (4, 5, 6, 7))
    lengths = 2 * 0.316 * inertia[3]["MZ"] + 0.316**2 * (inertia[3]["M"] + rest) + 0.0825**2 * rest
    assert inertia[2]["YY"] + inertia[1]["ZZ"] == pytest.approx(0.0373, abs=6e-5)
    assert inertia[3]["YY"] + inertia[2]["ZZ"] + lengths == pytest.approx(1.0358, abs=4e-4)
    assert inertia[3]["XZ"] == pytest.approx(-0.0055, abs=6e-5)
    assert inertia[7]["ZZ"] == pytest.approx(0.0049, abs=6e-5)
    assert inertia[7]["MX"] == pytest.approx(0.0077, abs=6e-5)


NAMES_OF_TEN = ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")
PANDA = load_robot("franka_panda")


def test_the_scara_has_the_papers_base_parameters() -> None:
    robot = load_robot("scara_2r")
    first, second = (dict(zip(NAMES_OF_TEN, body.inertia or (), strict=True)) for body in robot.bodies)
    assert first["ZZ"] + 0.5**2 * second["M"] == pytest.approx(3.42)
    assert second["ZZ"] == 0.064
    assert 0.5 * second["MX"] == pytest.approx(0.131)


def test_the_ir361_at_home_is_inside_its_workspace(poses) -> None:
    robot = load_robot("kuka_ir361")
    home = np.radians([0, -45, 45])
    x, y, z = poses.of_link(robot, "tool", home)[:3, 3]
    assert (x, y, z) == pytest.approx((0.984411, 0, 1.359411), abs=1e-6)
    lower = [body.joint.limits.lower for body in robot.bodies]
    upper = [body.joint.limits.upper for body in robot.bodies]
    np.testing.assert_allclose(np.array(upper) - home, [1.2, 1.2, 1.45], atol=1e-12)
    np.testing.assert_allclose(home - np.array(lower), [1.2, 1.2, 1.45], atol=1e-12)


def test_the_tx40_wrist_is_coupled() -> None:
    robot = load_robot("staubli_tx40")
    coupling = robot.gear_couplings[0]
    assert (coupling.motor, coupling.also_turns_with, coupling.ratio) == ("joint_6", "joint_5", 1.0)
    assert [body.joint.gear_ratio for body in robot.bodies] == [32, 32, 45, -48, 45, 32]
    assert (robot.values["Iac6"], robot.values["Fvc6"], robot.values["Fcc6"]) == (0.00964, 0.616, 1.95)


def test_the_ur10e_stretched_out_reaches_its_published_length(poses) -> None:
    robot = load_robot("ur10e")
    x, y, z = poses.of_link(robot, "ee_link", np.zeros(6))[:3, 3]
    assert (x, y, z) == pytest.approx((0.613 + 0.571, 0.176 - 0.137 + 0.135 + 0.117, 0.181 - 0.12))
    assert robot.values["drive_gain2"] == 10.6956
    assert robot.defaults.torque == "motor_current"
