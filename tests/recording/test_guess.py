"""Guessed set-ups: right, or unsure; never sure of what is wrong."""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from data_folder import data_folder
from from_benchmarks import benchmark_module
from guessed_logs import ARMS, SHAPES, Shape, geared, headings, judged, simulated, written
from recording.logs import ARM, Motion, arm, known, write_csv
from steelyard.errors import RecordingError
from steelyard.recording import guess_setup, read_recording, read_setup, setup_from_table
from steelyard.recording.guess.names import role_in_words, words_in
from steelyard.robot import load_robot, read_urdf


def item(guess, channel):
    return next(one for one in guess.items if one.channel == channel)


def aspect(guess, channel, name):
    return next(one for one in item(guess, channel).aspects if one.aspect == name)


def guessed(tmp_path: Path, name: str, label: str) -> tuple[Counter, object]:
    shape = dict(SHAPES)[label]
    robot = geared(name) if shape.motor_side else load_robot(name)
    seed = [one for one, _ in SHAPES].index(label)
    path, truth = written(tmp_path, robot, simulated(name, 1), shape, seed)
    guess = guess_setup(robot, path, folder=tmp_path)
    return judged(guess, truth, headings(path)), guess


def check_shape(tmp_path, name, label):
    found, guess = guessed(tmp_path, name, label)
    wrong = {key for key in found if key[2].startswith("wrong")}
    assert not wrong
    assert sum(found[key] for key in found if key[2] == "right") >= 0.7 * sum(found.values())
    assert {"recording": guess.table} == tomllib.loads(guess.text)  # type: ignore[attr-defined]


@pytest.mark.parametrize("label", [label for label, _ in SHAPES])
def test_a_simulated_log_in_any_shape_is_right_or_unsure(tmp_path, label):
    check_shape(tmp_path, "scara_2r", label)


@pytest.mark.large
@pytest.mark.parametrize("label", [label for label, _ in SHAPES])
@pytest.mark.parametrize("name", [name for name in ARMS if name != "scara_2r"])
def test_logs_of_every_catalogue_arm_are_right_or_unsure(tmp_path, name, label):
    check_shape(tmp_path, name, label)


def test_a_log_without_header_is_read_by_physics_alone(tmp_path):
    found, guess = guessed(tmp_path, "kuka_lwr4", "no header, other order")
    assert {key[2] for key in found} == {"right"}
    assert item(guess, "q").confidence == item(guess, "qd").confidence == "sure"
    assert item(guess, "joints").confidence != "sure"


def test_torques_of_opposite_sign_are_told_by_the_robot_s_inertias(tmp_path):
    robot, log = load_robot("kuka_lwr4"), simulated("kuka_lwr4", 1)
    opposite = replace(log, torques=tuple(replace(one, values=-one.values) for one in log.torques))
    path, _ = written(tmp_path, robot, opposite, Shape(), 1)
    found = next(one for one in guess_setup(robot, path).items if "torque" in one.channel)
    assert found.sign == (-1,) * 7


def test_velocities_of_opposite_sign_are_told_by_positions(tmp_path):
    motion = Motion()
    table = np.column_stack([motion.time, motion.q.T, -motion.qd[0], motion.qd[1]])
    path = write_csv(tmp_path / "log.csv", table, "t,q1,q2,qd1,qd2")
    guess = guess_setup(arm(), path, folder=tmp_path)
    assert item(guess, "qd").sign == (-1, 1)
    assert guess.table["qd"]["sign"] == [-1, 1]


def test_a_motion_of_a_few_degrees_is_never_sure_to_be_radians(tmp_path):
    motion = Motion()
    for scale in (0.5, 1.0):
        table = np.column_stack([motion.time, scale * motion.q.T, scale * motion.qd.T])
        path = write_csv(tmp_path / f"log_{scale}.csv", table, None)
        guess = guess_setup(arm(), path)
        found = aspect(guess, "q", "unit")
        assert item(guess, "q").unit == "rad"
        # The same numbers may be degrees of an arm that hardly moves.
        assert found.confidence in ("likely", "unsure") or np.ptp(table[:, 1:3], axis=0).max() < 2.01


def test_motor_side_numbers_of_an_arm_without_gear_ratios_are_not_sure(tmp_path):
    motion = Motion()
    table = np.column_stack([motion.time, 60 * motion.q.T, 60 * motion.qd.T])
    guess = guess_setup(arm(), write_csv(tmp_path / "log.csv", table, None))
    assert aspect(guess, "q", "unit").confidence != "sure"
    assert aspect(guess, "q", "side").confidence != "sure"


@pytest.mark.parametrize("shape", [Shape(motor_side=True), Shape(None, motor_side=True, velocity="rpm")])
def test_nor_does_the_model_make_them_sure(tmp_path, shape):
    path, truth = written(tmp_path, geared("scara_2r"), simulated("scara_2r", 1), shape, 1)
    found = judged(guess_setup("scara_2r", path), truth, headings(path))
    assert not [key for key in found if key[2] == "wrong but sure"]


@pytest.mark.parametrize(
    ("name", "quantity", "commanded"),
    [
        ("actual_q_", "position", False), ("target_q_", "position", True), ("dq_d", "velocity", True),
        ("tau_J", "torque", False), ("motorCurrent", "current", False), ("/joint_states/effort", "torque", False),
        ("jointVelocity", "velocity", False), ("Timestamp", "time", False), ("temp", "temperature", False),
    ],
)  # fmt: skip
def test_names_say_what_columns_are(name, quantity, commanded):
    role = role_in_words(words_in(name))
    assert role is not None
    assert (role.quantity, role.commanded) == (quantity, commanded)


def test_names_that_say_nothing_say_nothing():
    assert role_in_words(words_in("column_3")) is None


def test_units_in_names_count(tmp_path):
    motion = Motion()
    table = np.column_stack([1e3 * motion.time, np.degrees(motion.q.T), np.degrees(motion.qd.T)])
    header = "time [ms],shoulder_pos_deg,elbow_pos_deg,shoulder_vel [deg/s],elbow_vel [deg/s]"
    guess = guess_setup(arm(), write_csv(tmp_path / "log.csv", table, header), folder=tmp_path)
    (tmp_path / "steelyard.toml").write_text(guess.text)
    recording = read_recording(arm(), tmp_path / "steelyard.toml")
    np.testing.assert_allclose(recording.q, motion.q, atol=1e-9)
    assert {one.confidence for one in guess.items} == {"sure"}


def test_without_stamps_velocities_say_the_rate(tmp_path):
    motion = Motion()
    path = write_csv(tmp_path / "log.csv", np.column_stack([motion.q.T, motion.qd.T]), "q1,q2,qd1,qd2")
    guess = guess_setup(arm(), path)
    assert guess.table["rate"] == 200
    assert item(guess, "rate").confidence == "likely"


def test_without_stamps_and_velocities_the_rate_is_to_be_filled_in(tmp_path):
    path = write_csv(tmp_path / "log.csv", Motion().q.T, "q1,q2")
    guess = guess_setup(arm(), path)
    assert "rate" not in guess.table
    assert "rate" in guess.to_fill[0]
    assert "# rate = " in guess.text
    setup_from_table(guess.table)


def test_seconds_and_nanoseconds_in_two_columns_give_the_rate(tmp_path):
    motion = Motion()
    whole, rest = np.divmod(motion.time + 1e-6, 1.0)
    table = np.column_stack([whole, np.round(1e9 * rest), motion.q.T])
    guess = guess_setup(arm(), write_csv(tmp_path / "log.csv", table, "secs,nsecs,q1,q2"))
    assert guess.table["rate"] == 200


def test_efforts_are_torques_of_unknown_kind(tmp_path):
    motion = Motion()
    header = "time,q[shoulder],q[elbow],qd[shoulder],qd[elbow],effort[shoulder],effort[elbow]"
    guess = guess_setup(arm(), write_csv(tmp_path / "log.csv", motion.table(), header))
    assert aspect(guess, "motor_torque", "kind").confidence == "unsure"
    assert guess.table["torque"]["columns"] == "effort"


def test_commanded_positions_are_a_reference_and_accelerations_are_not_used(tmp_path):
    motion = Motion()
    table = np.column_stack([motion.time, motion.q.T, motion.q.T + 1e-3, motion.qd.T, 0 * motion.q.T])
    header = "t,q1,q2,q_cmd_1,q_cmd_2,qd1,qd2,acc1,acc2"
    guess = guess_setup(arm(), write_csv(tmp_path / "log.csv", table, header))
    assert guess.table["reference"]["columns"] == "q_cmd_{1..2}"
    assert guess.unused == (("acc1, acc2", "named as acceleration: not needed"),)


def test_logs_with_the_same_columns_are_files_and_others_have_tables_of_their_own(tmp_path):
    motion = Motion()
    same = [write_csv(tmp_path / f"run_{k}.csv", motion.table(), "t,q1,q2,qd1,qd2,tau1,tau2") for k in (1, 2)]
    guess = guess_setup(arm(), same, folder=tmp_path)
    assert guess.table["files"] == ["run_1.csv", "run_2.csv"]
    other = write_csv(tmp_path / "other.csv", motion.table(), "stamp,pos1,pos2,vel1,vel2,trq1,trq2")
    guess = guess_setup(arm(), [*same, other], folder=tmp_path)
    assert [one["path"] for one in guess.table["file"]] == ["run_1.csv", "run_2.csv", "other.csv"]
    (tmp_path / "steelyard.toml").write_text(guess.text)
    setup = read_setup(tmp_path / "steelyard.toml")
    for path in (*same, other):
        np.testing.assert_allclose(read_recording(arm(), setup, path, root=".").q, motion.q)


def test_files_side_by_side_are_parts(tmp_path):
    motion = Motion()
    paths = [
        write_csv(tmp_path / f"{name}.csv", values, None)
        for name, values in (
            ("positions", motion.q.T.reshape(-1, 1)), ("velocity", motion.qd.T.reshape(-1, 1)),
            ("times", motion.time[:, None]),
        )
    ]  # fmt: skip
    guess = guess_setup(arm(), paths, folder=tmp_path)
    assert [part.get("reshape") for part in guess.table["part"]] == [2, 2, None]
    (tmp_path / "steelyard.toml").write_text(guess.text)
    recording = read_recording(arm(), tmp_path / "steelyard.toml")
    np.testing.assert_allclose(recording.q, motion.q)
    np.testing.assert_allclose(known(recording.qd), motion.qd)


def test_parts_of_several_recordings_are_refused(tmp_path):
    motion = Motion()
    paths = [
        write_csv(tmp_path / f"{run}_{name}.csv", values.T, f"{name}1,{name}2")
        for run in ("a", "b")
        for name, values in (("q", motion.q), ("tau", motion.tau))
    ]
    with pytest.raises(RecordingError, match="parts of several recordings"):
        guess_setup(arm(), paths)


def test_too_few_rows_say_nothing(tmp_path):
    with pytest.raises(RecordingError, match="at least 20"):
        guess_setup(arm(), write_csv(tmp_path / "log.csv", Motion(10).table()))


HOSTILE = ('pos "x" \\ [red]{}[/red] \x1b[31m', "pos\u202e'#={}", "pos{},", "{}:{} pos")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_quoted(tmp_path, name):
    motion = Motion()
    names = [f'"{name.format(k, k).replace(chr(34), "")}"' for k in (1, 2)]
    path = write_csv(tmp_path / "log.csv", np.column_stack([motion.time, motion.q.T]), ",".join(["t", *names]))
    guess = guess_setup(arm(), path, folder=tmp_path)
    assert tomllib.loads(guess.text)["recording"] == guess.table
    assert all(letter.isprintable() or letter == "\n" for letter in guess.text)
    (tmp_path / "steelyard.toml").write_text(guess.text, encoding="utf-8")
    np.testing.assert_allclose(read_recording(arm(), tmp_path / "steelyard.toml").q, motion.q)


def test_sliding_joints_may_be_in_millimetres(tmp_path):
    robot = read_urdf(ARM.replace('name="elbow" type="revolute"', 'name="elbow" type="prismatic"').encode())
    motion = Motion()
    scale = np.array([180 / np.pi, 1000.0])
    table = np.column_stack([motion.time, motion.q.T * scale, motion.qd.T])
    guess = guess_setup(robot, write_csv(tmp_path / "log.csv", table, "t,q1,q2,qd1,qd2"))
    assert guess.table["q"]["unit"] == ["deg", "mm"]


@pytest.mark.large
@pytest.mark.data
def test_on_every_real_set_what_is_wrong_is_called_unsure(tmp_path):
    data_folder()
    benchmark = benchmark_module("init_real")
    for case in (*benchmark.SETS, *benchmark.icub_logs(tmp_path)):
        rows = benchmark.verdicts(case, benchmark.guess_of(case))
        assert [row for row in rows if row[3] != "right" and row[2] != "unsure"] == [], case.name
        if not case.name.startswith(("icub", "staubli")):
            assert {row[:2] for row in rows if row[3] != "right"} <= {("torque", "kind")}, case.name
