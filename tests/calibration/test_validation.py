"""Validation of measurements: every kind of bad input is refused with its reason, good input passes."""

from __future__ import annotations

import math
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from steelyard.calibration.measurement.measurements import Measurements, position_measurements
from steelyard.calibration.measurement.nominal import check_units, nominal_poses, reach
from steelyard.calibration.measurement.setup import CalibrationSetup, Columns, Load, default_setup
from steelyard.calibration.measurement.validation import (
    Suspicion,
    check_configurations,
    check_markers,
    check_measurements,
)
from steelyard.errors import CalibrationError
from steelyard.physics import frame_pose
from steelyard.robot import load_robot

MARKERS = np.array([[0.1, 0.2, -0.2], [0.12, -0.2, -0.2], [0.25, 0.0, -0.35], [-0.1, 0.05, 0.1]])
NAMES = ("a", "b", "c", "d")
ARMS = ("kuka_kr270", "ur10e", "franka_panda", "staubli_tx40", "kuka_lwr4")


def configurations(robot, count: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    rows = [
        random.uniform(max(body.joint.limits.lower, -1.5), min(body.joint.limits.upper, 1.5), count)
        for body in robot.actuated
    ]
    return np.array(rows)


def measured_markers(robot, link: str, count: int = 20, markers: np.ndarray = MARKERS, seed: int = 0) -> Measurements:
    """Markers of a nominal arm, measured two metres away with 0.1 mm of noise."""
    random = np.random.default_rng(seed)
    q = configurations(robot, count, seed)
    rotation, position = nominal_poses(robot, link, q)
    points = position[:, np.newaxis] + np.einsum("nij,mj->nmi", rotation, markers)
    value = points @ Rotation.from_euler("xyz", random.uniform(-3, 3, 3)).as_matrix().T + random.uniform(-2, 2, 3)
    value += 1e-4 * random.standard_normal(value.shape)
    return position_measurements([b.joint.name for b in robot.actuated], q, value, NAMES[: len(markers)])


def changed(measurements: Measurements, pose: int, marker: int, value: np.ndarray) -> Measurements:
    values = np.array(measurements.value)
    values[(measurements.pose == pose) & (measurements.marker == marker)] = value
    return replace(measurements, value=values)


def value_of(measurements: Measurements, pose: int, marker: int) -> np.ndarray:
    return measurements.value[(measurements.pose == pose) & (measurements.marker == marker)][0]


@pytest.fixture(scope="module")
def robot():
    return load_robot("kuka_kr270")


@pytest.fixture(scope="module")
def setup():
    return CalibrationSetup("tool")


@pytest.fixture(scope="module")
def good(robot):
    return measured_markers(robot, "tool")


@pytest.mark.parametrize("name", ARMS)
def test_nominal_poses_are_those_of_the_symbolic_chain(name):
    robot = load_robot(name)
    link = default_setup(robot).link
    q = configurations(robot, 5, 1)
    symbol = ca.SX.sym("q", len(robot.actuated))
    pose = frame_pose(robot, link, symbol)
    function = ca.Function("pose", [symbol], [pose.rotation, pose.translation])
    rotation, position = nominal_poses(robot, link, q)
    for sample in range(5):
        expected = [np.array(part) for part in function(q[:, sample])]
        np.testing.assert_allclose(rotation[sample], expected[0], atol=1e-12)
        np.testing.assert_allclose(position[sample], expected[1].ravel(), atol=1e-12)


def test_the_reach_of_an_arm_is_that_of_its_lengths_stretched_out(robot):
    # 0.35 + 1.25 + sqrt(1.1^2 + 0.055^2) + 0.23 from the first joint.
    expected = 0.35 + 1.25 + math.hypot(1.1, 0.055) + 0.23
    assert reach(robot, "tool", np.zeros((6, 1))) == pytest.approx(expected)


@pytest.mark.parametrize("name", [ARMS[0], *(pytest.param(name, marks=pytest.mark.large) for name in ARMS[1:])])
def test_good_measurements_pass_and_mirrored_frames_do_not(name):
    robot = load_robot(name)
    setup = default_setup(robot)
    for seed in range(4):
        for markers in (MARKERS[:1], MARKERS[:3]):
            measured = measured_markers(robot, setup.link, markers=markers, seed=seed)
            assert check_measurements(robot, setup, measured) == ()
            mirrored = replace(measured, value=measured.value * [1, -1, 1])
            with pytest.raises(CalibrationError, match=r"in a left-handed frame .* reverse one axis"):
                check_measurements(robot, setup, mirrored)


def test_one_configuration_and_none_are_refused(good):
    same = replace(good, q=np.tile(good.q[:, :1], (1, good.rows)))
    with pytest.raises(CalibrationError, match="80 rows are at one configuration"):
        check_configurations(same)
    with pytest.raises(CalibrationError, match="no measured numbers"):
        check_configurations(good.taken(np.zeros(good.rows, dtype=bool)))
    with pytest.raises(CalibrationError, match="no measured numbers"):
        check_configurations(replace(good, value=np.full_like(good.value, np.nan)))


@pytest.mark.parametrize(
    ("unit", "meant"), [("m", "mm"), ("mm", "m"), ("m", "in"), ("in", "m"), ("um", "mm"), ("mm", "in"), ("in", "mm")]
)
def test_positions_in_another_unit_are_found_by_their_size(robot, setup, good, unit, meant):
    scale = {"m": 1.0, "mm": 1e-3, "um": 1e-6, "in": 0.0254}
    wrong = replace(good, value=good.value / scale[meant] * scale[unit])
    declared = replace(setup, columns=Columns(position=unit))
    with pytest.raises(CalibrationError, match=f'declared in "{unit}", "{meant}" would fit'):
        check_units(robot, declared, wrong)


def test_one_wild_number_is_not_taken_for_another_unit(robot, setup, good):
    check_units(robot, setup, changed(good, 3, 1, np.array([1e6, 0, 0])))


def test_a_link_that_turns_about_one_point_is_no_error_of_units(robot, setup, good):
    noise = 1e-5 * np.random.default_rng(0).standard_normal(good.value.shape)
    check_units(robot, setup, replace(good, value=0.5 + noise))


def test_degrees_declared_as_radians_are_found(robot, setup, good):
    with pytest.raises(CalibrationError, match=r"joint 'joint_1' goes from .* if these are degrees, declare angle"):
        check_units(robot, setup, replace(good, q=np.degrees(good.q)))


def test_degrees_declared_as_radians_are_found_by_the_limits_of_the_joints():
    robot = load_robot("franka_panda")
    setup = default_setup(robot)
    measured = measured_markers(robot, setup.link)
    small = replace(measured, q=np.degrees(measured.q / measured.q.max() * 0.2))
    assert np.abs(small.q).max() < 4 * math.pi
    with pytest.raises(CalibrationError, match="if these are degrees"):
        check_units(robot, setup, small)


def test_radians_declared_as_degrees_are_found(robot, setup, good):
    declared = replace(setup, columns=Columns(angle="deg"))
    check_units(robot, declared, good)
    with pytest.raises(CalibrationError, match=r"no joint turns by more than 6.3 degrees, .* if angles are in radians"):
        check_units(robot, declared, replace(good, q=np.radians(good.q)))


def test_deflections_in_another_unit_are_found(robot, setup, good):
    small = 5e-3 * np.random.default_rng(0).standard_normal(good.value.shape)
    bent = replace(good, value=small, kind=("difference",) * good.rows, load=np.zeros(good.rows, dtype=int))
    loaded = replace(setup, loads=(Load("w", (0, 0, -1000), (0, 0, 0), (0, 0, 0)),))
    assert check_measurements(robot, loaded, bent) == ()
    with pytest.raises(CalibrationError, match=r'differences .* declared in "m", "mm" would fit'):
        check_units(robot, loaded, replace(bent, value=1e3 * small))


def test_differences_need_a_load_and_loads_must_be_in_the_set_up(robot, setup, good):
    bent = replace(good, kind=("difference",) * good.rows)
    with pytest.raises(CalibrationError, match=r"pose '1' measures a difference .* names no load"):
        check_measurements(robot, setup, bent)
    with pytest.raises(CalibrationError, match=r"load numbers go from 0 to 0; the set-up has 0 loads"):
        check_measurements(robot, setup, replace(good, load=np.zeros(good.rows, dtype=int)))


def test_left_handed_orientations_are_refused(robot, setup, good):
    rotation = np.tile(np.eye(3), (good.rows, 1, 1))
    rotation[9] = np.diag([1, -1, 1])
    with pytest.raises(CalibrationError, match=r"orientation of pose '3' is a left-handed frame"):
        check_measurements(robot, setup, replace(good, rotation=rotation))


@pytest.mark.parametrize("pair", [(0, 1), (0, 2), (2, 3)])
def test_swapped_markers_are_named_with_their_pose(robot, setup, good, pair):
    one, two = pair
    swapped = changed(changed(good, 6, one, value_of(good, 6, two)), 6, two, value_of(good, 6, one))
    with pytest.raises(CalibrationError, match=f"pose '7': markers {NAMES[one]} and {NAMES[two]} are swapped"):
        check_measurements(robot, setup, swapped)


def test_three_markers_in_turn_are_found_too(good):
    turned = good
    for target, source in ((0, 1), (1, 2), (2, 0)):
        turned = changed(turned, 4, target, value_of(good, 4, source))
    with pytest.raises(CalibrationError, match="pose '5': markers a and b and c are swapped"):
        check_markers(turned)


def test_a_mirrored_set_of_one_pose_is_found_by_its_volume(good):
    values = np.array(good.value)
    values[good.pose == 11] *= [-1, 1, 1]
    with pytest.raises(CalibrationError, match=r"pose '12': markers a, b, c, d are mirrored"):
        check_markers(replace(good, value=values))


def test_a_single_wrong_point_is_a_suspicion_and_not_refused(robot, setup, good):
    wrong = changed(good, 2, 1, value_of(good, 2, 1) + np.array([0.05, 0, 0]))
    wrong = changed(wrong, 8, 3, value_of(good, 8, 3) + np.array([0, 0.3, 0]))
    found = check_measurements(robot, setup, wrong)
    assert [(one.pose, one.marker) for one in found] == [("3", "b"), ("9", "d")]
    distances = np.linalg.norm(good.value[8:12] - value_of(good, 2, 1), axis=1)
    moved = np.linalg.norm(good.value[8:12] - value_of(wrong, 2, 1), axis=1)
    # Against the median over poses, which differs from this pose's by the noise of a distance.
    assert found[0].size_mm == pytest.approx(1e3 * np.abs(moved - distances)[[0, 2, 3]].max(), abs=1)


def test_of_two_markers_the_wrong_one_is_not_identifiable(robot):
    pair = measured_markers(robot, "tool", markers=MARKERS[:2])
    found = check_markers(changed(pair, 4, 0, value_of(pair, 4, 0) + 0.1))
    assert [(one.pose, one.marker) for one in found] in ([("5", "a or b")], [("5", "b or a")])
    assert isinstance(found[0], Suspicion)


def test_missing_markers_and_coordinates_do_no_harm(good):
    values = np.array(good.value)
    values[good.marker == 1, 2] = np.nan
    values[(good.marker == 0) & (good.pose < 15)] = np.nan
    assert check_markers(replace(good, value=values)) == ()


def test_noise_alone_raises_no_suspicion(robot):
    assert [check_markers(measured_markers(robot, "tool", 60, seed=seed)) for seed in range(10)] == [()] * 10


def test_the_same_column_twice_is_refused_with_both_names(good):
    values = np.array(good.value)
    values[good.marker == 3] = values[good.marker == 2]
    with pytest.raises(CalibrationError, match=r"markers 'c' and 'd' have the same positions .* leave one"):
        check_markers(replace(good, value=values))


def test_a_turntable_has_no_reach_but_may_carry_a_tool(tmp_path):
    path = tmp_path / "table.toml"
    path.write_text('[robot]\nname = "table"\n\n[[joint]]\naxis = [0, 0, 1]\n', encoding="utf-8")
    robot = load_robot(path)
    setup = default_setup(robot)
    measured = measured_markers(robot, setup.link, markers=MARKERS[:3])
    check_units(robot, setup, measured)
    with pytest.raises(CalibrationError, match='declared in "m", "mm" would fit'):
        check_units(robot, setup, replace(measured, value=1e3 * measured.value))
