"""Set-ups of calibrations: what a file says, defaults, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from steelyard.calibration.measurement.measurements import (
    instrument_sigma,
    position_measurements,
    tracker_sigma,
)
from steelyard.calibration.measurement.setup import (
    CalibrationSetup,
    FrameSetup,
    Load,
    MarkerSetup,
    TrackerNoise,
    completed_setup,
    default_setup,
    moving_chain,
)
from steelyard.calibration.measurement.setup_file import read_setup, setup_from_document
from steelyard.errors import CalibrationError
from steelyard.robot import load_robot

FILE = """
[measurement]
position = "mm"
angle = "deg"
link = "tool"
angles = "measured"
sigma = 10e-6
load = "heavy"
kind = "difference"
columns = {pose = "config"}

[joints]
joint_1 = "A1"
joint_3 = {J3 = 1, J2 = 1}
joint_4 = {J4 = -1, constant_deg = 90}
joint_5 = 0.25

[base]
xyz = [1, 2, 3]
rpy_deg = [0, 0, 90]
known = true

[markers.left]
position = "marker_1"
known = true

[markers.right]
columns = ["x2", "y2", ""]

[loads.heavy]
mass = 100
point = "load_point"

[loads.side]
force = [0, 50, 0]
torque = [1, 0, 0]
point = [0, 0, 0.1]

[elastic]
joints = "all"
lateral = ["joint_2"]
nodes_deg = {joint_2 = [-90, 0]}
between = "linear"
own_weight = "unknown"

[geometry]
joints = ["joint_2", "joint_3"]
"""


@pytest.fixture(scope="module")
def robot():
    return load_robot("kuka_kr270")


@pytest.fixture
def setup(tmp_path, robot):
    path = tmp_path / "setup.toml"
    path.write_text(FILE, encoding="utf-8")
    return read_setup(path, robot)


def test_a_file_says_link_units_and_columns(setup):
    assert (setup.link, setup.angles, setup.sigma) == ("tool", "measured", (1e-5, 1e-5, 1e-5))
    assert (setup.columns.position, setup.columns.angle, setup.columns.slide) == ("mm", "deg", "mm")
    assert setup.columns.markers == {"right": ("x2", "y2", "")}
    assert setup.columns.renamed == {"pose": "config"}
    assert (setup.columns.load, setup.columns.kind) == ("heavy", "difference")


def test_joints_are_linear_functions_of_columns(setup):
    assert setup.joint_map["joint_1"] == {"A1": 1.0}
    assert setup.joint_map["joint_3"] == {"J3": 1.0, "J2": 1.0, "": 0.0}
    assert setup.joint_map["joint_4"] == {"J4": -1.0, "": pytest.approx(math.pi / 2)}
    assert setup.joint_map["joint_5"] == {"": 0.25}


def test_frames_markers_and_loads_are_in_metres_and_newtons(setup):
    assert (setup.base.xyz, setup.base.known) == ((1, 2, 3), True)
    assert setup.base.rpy == pytest.approx((0, 0, math.pi / 2))
    assert setup.tool == FrameSetup()
    # marker_1 and load_point of the catalogue's arm are 0.1, 0.2, -0.2 and 0.15, 0, -0.4 from the tool.
    assert setup.markers[0].position == pytest.approx((0.1, 0.2, -0.2), abs=1e-15)
    assert setup.markers[1] == MarkerSetup("right")
    assert setup.loads[0].force == pytest.approx((0, 0, -981))
    assert setup.loads[0].point == pytest.approx((0.15, 0, -0.4), abs=1e-15)
    assert setup.loads[1] == Load("side", (0, 50, 0), (1, 0, 0), (0, 0, 0.1))


def test_springs_and_geometry_name_joints(setup):
    assert setup.elastic.joints == tuple(f"joint_{k}" for k in range(1, 7))
    assert setup.elastic.lateral == ("joint_2",)
    assert setup.elastic.nodes["joint_2"] == pytest.approx((-math.pi / 2, 0))
    assert (setup.elastic.between, setup.elastic.own_weight) == ("linear", "unknown")
    assert setup.geometry == ("joint_2", "joint_3")


def test_without_a_file_everything_but_springs_is_unknown(robot):
    setup = default_setup(robot)
    assert setup == setup_from_document({}, robot)
    assert (setup.geometry, setup.elastic.joints, setup.base.known) == ("all", (), False)
    assert moving_chain(robot, setup.link) == robot.bodies[:6]
    assert default_setup(load_robot("ur10e")).link == "ee_link"


def test_markers_take_the_order_of_the_measurements():
    setup = CalibrationSetup("tool", markers=(MarkerSetup("a", (1, 0, 0)), MarkerSetup("b")))
    assert [marker.name for marker in completed_setup(setup, ["b", "a"]).markers] == ["b", "a"]
    assert completed_setup(CalibrationSetup("tool"), ["m"]).markers == (MarkerSetup("m"),)
    with pytest.raises(CalibrationError, match=r"marker 'aa'; markers of the set-up: a, b; did you mean 'a'"):
        completed_setup(setup, ["aa"])


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"measurment": {}}, r"unknown key 'measurment'.*did you mean 'measurement'"),
        ({"measurement": {"unit": "mm"}}, r"\[measurement\]: unknown key 'unit'; allowed: position"),
        ({"measurement": {"position": "cm"}}, r"position is 'cm'; allowed: m, mm, um, in"),
        ({"measurement": {"link": "tol"}}, r"link is 'tol'; allowed: base, .*did you mean 'tool'"),
        ({"measurement": {"link": "base"}}, r"link 'base' does not move with any joint"),
        ({"measurement": {"sigma": 0}}, r"sigma is 0; allowed: a finite number above 0"),
        ({"measurement": {"sigma": [1, 2]}}, r"sigma is \[1, 2\]; allowed: three numbers"),
        ({"measurement": {"sigma": 1.0, "tracker": {}}}, r"both sigma and tracker"),
        ({"measurement": {"tracker": {"distance": 1e-5}}}, r"tracker: 'angle' is missing"),
        ({"measurement": {"tracker": {"distance": 1e-5, "angle": 0}}}, r"angle is 0; allowed: a finite number above 0"),
        ({"measurement": {"load": "heavy"}}, r"load is 'heavy'; loads of the set-up: none, add"),
        ({"measurement": {"load": {"heavy": 1}}}, r"\[measurement\]: load is {'heavy': 1}; allowed: a text"),
        ({"measurement": {"columns": {"posse": "p"}}}, r"unknown key 'posse'.*did you mean 'pose'"),
        ({"measurement": {"kind": "points"}}, r"kind is 'points'; allowed: position, pose"),
        ({"base": {"known": True}}, r"\[base\]: known = true, but xyz is missing"),
        ({"base": {"xyz": [0, 0, math.inf], "rpy": [0, 0, 0]}}, r"xyz is \[0, 0, inf\].* entry 3 must be a finite"),
        ({"base": {"rpy": [0, 0, 0], "rpy_deg": [0, 0, 0]}}, r"both rpy and rpy_deg"),
        ({"markers": {"a": {"known": True}}}, r"no position is given"),
        ({"markers": {"a": {"position": "link_1"}}}, r"link 'link_1'; allowed: three numbers, or a link fixed to"),
        ({"markers": {"a": {"columns": ["x"]}}}, r"columns has 1 names; allowed: 3"),
        ({"markers": {"a": 3}}, r"write \[markers.a\]"),
        ({"loads": {"w": {"mass": 3}}}, r"\[loads.w\]: the load has no point of application; add point"),
        ({"loads": {"w": {"point": [0, 0, 0]}}}, r"nothing pulls"),
        ({"loads": {"w": {"mass": -3, "point": [0, 0, 0]}}}, r"mass is -3; allowed: a finite number above 0"),
        ({"loads": {"w": {"mass": 1, "force": [0, 0, 1], "point": [0, 0, 0]}}}, r"both mass and force"),
        ({"elastic": {"joints": ["joint_7"]}}, r"allowed: a list of joint_1, .*'joint_7' is none; did you mean"),
        ({"elastic": {"joints": ["joint_2"], "nodes": {"joint_3": [0, 1]}}}, r"unknown key 'joint_3'"),
        ({"elastic": {"joints": ["joint_2"], "nodes": {"joint_2": [1, 1]}}}, r"two or more different positions"),
        ({"elastic": {"own_weight": "yes"}}, r"own_weight is 'yes'; allowed: none, model, unknown"),
        ({"geometry": {"joints": "some"}}, r"allowed: all, none, or a list of joint names"),
        ({"joints": {"joint_9": "A9"}}, r"unknown key 'joint_9'.*did you mean"),
        ({"joints": {"joint_1": {"A1": math.nan}}}, r"A1 is nan"),
        ({"joints": {"joint_1": {"A1": 1, "constant": 1, "constant_deg": 1}}}, r"keep one"),
    ],
)  # fmt: skip
def test_what_a_set_up_may_not_say_is_refused_in_one_line(robot, document, said):
    with pytest.raises(CalibrationError, match=said) as caught:
        setup_from_document(document, robot)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("text", "said"), [("a = [", "not TOML"), (None, "no such file")])
def test_files_that_are_no_set_up_are_refused(tmp_path, robot, text, said):
    path = tmp_path / "setup.toml"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(CalibrationError, match=f"setup.toml: .*{said}"):
        read_setup(path, robot)


def test_tracker_noise_is_that_of_distance_and_angles_drawn_at_random():
    noise = TrackerNoise(20e-6, 15e-6, 5e-6, (1.0, -2.0, 0.5))
    point = np.array([3.0, 2.0, 1.5])
    random = np.random.default_rng(4)
    sight = point - noise.station
    reach = np.linalg.norm(sight)
    azimuth, elevation = np.arctan2(sight[1], sight[0]), np.arcsin(sight[2] / reach)
    r = reach + random.standard_normal(200_000) * (noise.distance + noise.distance_per_metre * reach)
    # Angles of the same size across the line of sight: that of the azimuth grows towards the pole.
    a = azimuth + random.standard_normal(200_000) * noise.angle / np.cos(elevation)
    e = elevation + random.standard_normal(200_000) * noise.angle
    scattered = np.stack([r * np.cos(e) * np.cos(a), r * np.cos(e) * np.sin(a), r * np.sin(e)])
    np.testing.assert_allclose(tracker_sigma(noise, point[np.newaxis])[0], scattered.std(axis=1), rtol=0.01)


def test_the_instrument_counts_twice_in_differences(robot):
    q = np.zeros((6, 2))
    joints = [f"joint_{k}" for k in range(1, 7)]
    positions = position_measurements(joints, q, np.ones((2, 1, 3)))
    differences = position_measurements(joints, q, np.ones((2, 1, 3)), load=0, kind="difference")
    setup = CalibrationSetup("tool", sigma=(1e-5, 1e-5, 2e-5))
    assert instrument_sigma(CalibrationSetup("tool"), positions) is None
    once, twice = instrument_sigma(setup, positions), instrument_sigma(setup, differences)
    assert once is not None
    assert twice is not None
    np.testing.assert_allclose(once, [[1e-5, 1e-5, 2e-5]] * 2)
    np.testing.assert_allclose(twice, math.sqrt(2) * once)
    tracked = CalibrationSetup("tool", tracker=TrackerNoise(1e-5, 1e-5))
    np.testing.assert_allclose(np.asarray(instrument_sigma(tracked, positions)), 1e-5 * np.sqrt(7 / 3))
    with pytest.raises(CalibrationError, match="declare sigma instead of tracker"):
        instrument_sigma(tracked, differences)
