"""Columns and joints: what a selector means, and that joint order comes from names."""

from __future__ import annotations

import numpy as np
import pytest

from recording.logs import write_csv
from steelyard.errors import RecordingError
from steelyard.recording import read_recording, setup_from_table
from steelyard.recording.columns import selected_columns

NAMES = ["t", "q1 [deg]", "q2 [deg]", "actual_q_0", "actual_q_1", "tau[shoulder]", "tau[elbow]", "2:3"]


@pytest.mark.parametrize(
    ("selector", "columns"),
    [
        ("t", [0]),
        (1, [0]),
        ("2:3", [7]),  # a name wins over a range
        ("4:5", [3, 4]),
        ("q{1..2}", [1, 2]),
        ("q{2..1}", [2, 1]),
        ("q1 [deg]", [1]),
        ("actual_q_*", [3, 4]),
        ("tau", [5, 6]),
        ("tau[{elbow,shoulder}]", [6, 5]),
        (("t", 4, "q2"), [0, 3, 2]),
    ],
)
def test_a_selector_means_columns(selector, columns):
    assert selected_columns(selector, NAMES, "q") == columns


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("q{1..3}", "no column 'q3'"),
        ("actual_p_*", "did you mean 'actual_q_"),
        ("5:9", "columns 5 to 9 requested, but the file has 8"),
        (-1, "counted from 1"),
        (("t", 1), "column 't' is selected twice"),
        ("q{1..999999999}", "more than 10000 columns"),
        ("q{01..03}", "no column 'q01'"),
    ],
)
def test_a_selector_that_means_nothing_is_refused(selector, message):
    with pytest.raises(RecordingError, match=message):
        selected_columns(selector, NAMES, "q")


def read_q(robot, motion, tmp_path, header, columns, q=None, **more):
    table = np.column_stack([motion.time, motion.q[::-1].T if q is None else q.T])
    path = write_csv(tmp_path / "log.csv", table, header)
    return read_recording(robot, setup_from_table({"time": 1, "q": columns, **more}), files=path)


@pytest.mark.parametrize(
    "header", ["t,q_elbow,q_shoulder", "t,elbow.pos,shoulder.pos", "t,ELBOW,Shoulder", "t,q[elbow],q[shoulder]"]
)
def test_names_tell_the_joint_order(robot, motion, tmp_path, header):
    recording = read_q(robot, motion, tmp_path, header, "2:3")
    np.testing.assert_array_equal(recording.q, motion.q)
    assert recording.notes == ()


def test_declared_joints_tell_the_order(robot, motion, tmp_path):
    recording = read_q(robot, motion, tmp_path, "t,a,b", "2:3", joints=["elbow", "shoulder"])
    np.testing.assert_array_equal(recording.q, motion.q)
    assert recording.notes == ()


@pytest.mark.parametrize(("header", "note"), [("t,a,b", "taken as the robot's"), ("t,q0,q1", "from the numbers")])
def test_an_order_that_was_assumed_is_noted(robot, motion, tmp_path, header, note):
    recording = read_q(robot, motion, tmp_path, header, "2:3", q=motion.q)
    np.testing.assert_array_equal(recording.q, motion.q)
    assert note in recording.notes[0]


@pytest.mark.parametrize(
    ("header", "columns", "more", "message"),
    [
        ("t,q2,q1", "2:3", {}, "numbered 2, 1 but no joint is named"),
        ("t,q_elbow,q_wrist", "2:3", {}, "column 'q_wrist' names no joint"),
        ("t,q[hip],q[knee]", "2:3", {}, "column 'q\\[hip\\]' names no joint of robot 'two'"),
        ("t,q_elbow,p_elbow", "2:3", {}, "joint 'elbow' has two columns"),
        ("t,a,b", 2, {}, "1 columns, but robot 'two' has 2 joints"),
        ("t,a,b", "2:3", {"joints": ["elbow", "sholder"]}, "no joint 'sholder'.*did you mean 'shoulder'"),
        ("t,a,b", "2:3", {"joints": ["elbow"]}, "2 columns for 1 declared joints"),
        ("t,a,b", 2, {"joints": ["elbow"]}, "no column for joint 'shoulder'"),
    ],
)
def test_columns_that_do_not_fit_the_robot_are_refused(robot, motion, tmp_path, header, columns, more, message):
    with pytest.raises(RecordingError, match=message):
        read_q(robot, motion, tmp_path, header, columns, **more)


def test_joints_that_are_called_like_units_are_joints():
    names = ["time", "q[h1]", "q[s]", "q[mm]", "tau [Nm]"]
    assert selected_columns("q", names, "log") == [1, 2, 3]
    assert selected_columns("q[s]", names, "log") == [2]
    assert selected_columns("tau", names, "log") == [4]
    assert selected_columns("q", ["time", "q[deg]"], "log") == [1]
