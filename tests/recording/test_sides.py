"""Units, signs, gears: what is measured at the motor in odd units is converted to SI at the joint."""

from __future__ import annotations

import numpy as np
import pytest

from arms import arm
from recording.logs import known, write_csv
from steelyard.errors import RecordingError
from steelyard.recording import read_recording, recording_from_arrays, setup_from_table
from steelyard.robot import load_robot

TX40_R = np.diag([32.0, 32, 45, -48, 45, 32])
TX40_R[5, 4] = 32.0


def tx40_arrays(samples=50):
    rng = np.random.default_rng(0)
    q, qd, tau = rng.normal(size=(3, 6, samples)) * 0.3
    return {"time": np.arange(samples) * 1e-3, "q": TX40_R @ q, "qd": TX40_R @ qd, "tau": tau}, q, qd, tau


def test_coupled_motors_are_told_at_the_joints():
    """q = R^-1 q_m and tau = R^T tau_m keep the power: tau^T qd is the same on both sides."""
    arrays, q, qd, tau = tx40_arrays()
    table = {"side": "motor", "q": {"columns": "q", "offset_deg": {"joint_2": -90}}, "qd": "qd"}
    setup = setup_from_table({**table, "torque": {"kind": "motor_torque", "columns": "tau"}})
    recording = recording_from_arrays(load_robot("staubli_tx40"), arrays, setup)
    np.testing.assert_allclose(recording.q, q - np.array([0, np.pi / 2, 0, 0, 0, 0])[:, None], atol=1e-12)
    np.testing.assert_allclose(known(recording.qd), qd, atol=1e-12)
    joint_torque = recording.torque().values
    np.testing.assert_allclose(joint_torque, TX40_R.T @ tau, rtol=1e-12)
    np.testing.assert_allclose((joint_torque * known(recording.qd)).sum(0), (tau * arrays["qd"]).sum(0), rtol=1e-9)


def test_gears_can_be_given(robot, motion):
    ratios, coupling = np.array([100.0, -50.0]), np.array([[1, 0], [0.5, 1]])
    gears = ratios[:, None] * coupling
    arrays = {**motion.arrays(), "q": gears @ motion.q}
    table = {"q": {"side": "motor"}, "gear_ratio": ratios.tolist(), "coupling": coupling.tolist()}
    recording = recording_from_arrays(robot, arrays, setup_from_table(table))
    np.testing.assert_allclose(recording.q, motion.q, atol=1e-12)
    current = {"kind": "motor_current", "columns": "joint_torque", "gain": 0.1, "side": "motor"}
    setup = setup_from_table({"q": "q", "torque": current, "gear_ratio": {"shoulder": 100, "elbow": -50}})
    channel = recording_from_arrays(robot, motion.arrays(), setup).torque()
    np.testing.assert_array_equal(channel.values, motion.tau)
    np.testing.assert_allclose(known(channel.gain), [10, -5])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"q": {"columns": "q", "side": "motor"}}, "robot 'two' states none for joint 'shoulder'; give gear_ratio"),
        ({"q": {"columns": "q", "side": "motor"}, "gear_ratio": [1, 2, 3]}, "gear_ratio has 3 numbers for 2 joints"),
        ({"q": {"columns": "q", "side": "motor"}, "gear_ratio": {"elbow": 3}}, "no number for joint 'shoulder'"),
        ({"q": {"columns": "q", "side": "motor"}, "gear_ratio": [1, 0]}, "cannot be inverted"),
        ({"q": {"columns": "q", "side": "motor"}, "gear_ratio": 1, "coupling": [[1]]}, "coupling is 1 x 1"),
        ({"q": {"columns": "q", "offset": {"wrist": 1}}}, "no joint 'wrist'"),
        ({"q": {"columns": "q", "unit": "A"}}, "unit 'A' is no unit of angle; allowed: rad"),
        ({"q": {"columns": "q", "unit": "count"}}, "needs the encoder's counts_per_turn"),
        ({"q": {"columns": "q", "unit": ["deg"] * 3}}, "3 units for 2 rows"),
        ({"q": "q", "torque": {"kind": "motor_torque", "columns": "joint_torque", "unit": "%"}}, "with rating"),
        ({"q": "q", "torque": {"kind": "wrench", "columns": "joint_torque"}}, "2 columns; 6 are expected, fx fy fz"),
        ({"q": "q", "pose": "qd"}, "3 or 7 are expected"),
    ],
)  # fmt: skip
def test_sides_and_units_that_cannot_be_are_refused(robot, motion, table, message):
    with pytest.raises(RecordingError, match=message):
        recording_from_arrays(robot, motion.arrays(), setup_from_table(table))


@pytest.mark.parametrize(
    ("unit", "factor", "more"),
    [
        ("deg", 180 / np.pi, {}),
        ("rev", 1 / (2 * np.pi), {}),
        ("count", 4096 / (2 * np.pi), {"counts_per_turn": 4096}),
        (["deg", "rad"], np.array([[180 / np.pi], [1]]), {}),
    ],
)
def test_units_are_brought_to_si(robot, motion, unit, factor, more):
    arrays = {**motion.arrays(), "q": motion.q * factor}
    recording = recording_from_arrays(robot, arrays, setup_from_table({"q": {"columns": "q", "unit": unit, **more}}))
    np.testing.assert_allclose(recording.q, motion.q, atol=1e-12)


def test_revolutions_per_minute_and_kelvin(robot, motion):
    arrays = {**motion.arrays(), "qd": motion.qd * 30 / np.pi, "heat": np.full((2, motion.time.size), 300.0)}
    table = {"q": "q", "qd": {"columns": "qd", "unit": "rpm"}, "temperature": {"columns": "heat", "unit": "K"}}
    recording = recording_from_arrays(robot, arrays, setup_from_table(table))
    np.testing.assert_allclose(known(recording.qd), motion.qd, atol=1e-12)
    np.testing.assert_allclose(known(recording.temperature), 26.85)


def test_units_in_the_header_are_used_and_must_not_contradict(robot, motion, tmp_path):
    table = np.column_stack([motion.time * 1e6, np.degrees(motion.q.T)])
    path = write_csv(tmp_path / "log.csv", table, "t [us],q_shoulder [deg],q_elbow (deg)")
    recording = read_recording(robot, setup_from_table({"q": "q_*"}), files=path)
    np.testing.assert_allclose(recording.time, motion.time, atol=1e-12)
    np.testing.assert_allclose(recording.q, motion.q, atol=1e-12)
    with pytest.raises(
        RecordingError, match=r"mixed units, declared in 'rad' but column 'q_shoulder .deg.' says 'deg'"
    ):
        read_recording(robot, setup_from_table({"q": {"columns": "q_*", "unit": "rad"}}), files=path)
    with pytest.raises(RecordingError, match="mixed units, declared in 's' but its header says 'us'"):
        read_recording(robot, setup_from_table({"q": "q_*", "time_unit": "s"}), files=path)
    write_csv(path, table, "t [us],q_shoulder [deg],q_elbow [rad]")
    with pytest.raises(RecordingError, match="mixed units deg and rad in the header"):
        read_recording(robot, setup_from_table({"q": "q_*"}), files=path)


def test_sliding_joints_have_lengths():
    robot = arm("sliding_tree")
    rows = [body.joint.kind for body in robot.actuated]
    q = np.random.default_rng(0).normal(size=(len(rows), 20)) * 0.1
    factor = np.array([[1000.0] if kind == "prismatic" else [180 / np.pi] for kind in rows])
    units = ["mm" if kind == "prismatic" else "deg" for kind in rows]
    arrays = {"time": np.arange(20) * 0.01, "q": q * factor}
    recording = recording_from_arrays(robot, arrays, setup_from_table({"q": {"columns": "q", "unit": units}}))
    np.testing.assert_allclose(recording.q, q, atol=1e-12)
    only_degrees = setup_from_table({"q": {"columns": "q", "unit": "deg"}})
    recording = recording_from_arrays(robot, {**arrays, "q": q * np.where(factor == 1000, 1, factor)}, only_degrees)
    np.testing.assert_allclose(recording.q, q, atol=1e-12)


def test_a_wrench_and_a_pose_are_kept(robot, motion, tmp_path):
    wrench = np.random.default_rng(0).normal(size=(6, motion.time.size))
    arrays = {**motion.arrays(), "wrench": wrench, "pose": wrench[:3] * 1e3}
    table = {"q": "q", "torque": {"kind": "wrench", "columns": "wrench", "unit": ["kN", "Nm"]}}
    setup = setup_from_table({**table, "pose": {"columns": "pose", "unit": "mm"}})
    recording = recording_from_arrays(robot, arrays, setup)
    np.testing.assert_allclose(recording.torque("wrench").values, wrench * np.array([[1e3]] * 3 + [[1]] * 3))
    np.testing.assert_allclose(known(recording.pose), wrench[:3])


@pytest.mark.parametrize(
    ("sign", "factors"),
    [
        (-1, [-1] * 6),
        ([1, 1, 1, -1, -1, -1], [1, 1, 1, -1, -1, -1]),
        ({"fz": -1, "tx": -1}, [1, 1, -1, -1, 1, 1]),
    ],
)
def test_signs_of_a_wrench_are_those_of_its_columns(sign, factors, robot, motion):
    wrench = np.random.default_rng(0).normal(size=(6, motion.time.size))
    table = {"q": "q", "torque": {"kind": "wrench", "columns": "wrench", "sign": sign}}
    recording = recording_from_arrays(robot, {**motion.arrays(), "wrench": wrench}, setup_from_table(table))
    np.testing.assert_allclose(recording.torque("wrench").values, wrench * np.array(factors)[:, None])


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("sign", [-1, 1], "sign has 2 numbers for 6 components"),
        ("sign", {"elbow": -1}, "no component 'elbow'; components: fx, fy, fz, tx, ty, tz"),
        ("rating", [100, 100], "rating has 2 numbers for 6 components"),
    ],
)
def test_numbers_of_a_wrench_that_are_not_six_are_refused(key, value, message, robot, motion):
    arrays = {**motion.arrays(), "wrench": np.ones((6, motion.time.size))}
    table = {"q": "q", "torque": {"kind": "wrench", "columns": "wrench", key: value}}
    with pytest.raises(RecordingError, match=message):
        recording_from_arrays(robot, arrays, setup_from_table(table))
