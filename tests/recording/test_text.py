"""Text files: separators, headers, comments, garbage; the same numbers whatever the layout."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

from recording.logs import HEADER, kinds, one, write_csv
from steelyard.errors import RecordingError
from steelyard.recording import read_recording, setup_from_table
from steelyard.tables import text as text_module

SETUP = {"time": 1, "q": "2:3", "qd": "4:5", "torque": {"kind": "joint_torque", "columns": "6:7"}}


def read_text(robot, path, **more):
    return read_recording(robot, setup_from_table({**SETUP, **more}), files=path)


def assert_same(recording, motion, rtol=0.0):
    np.testing.assert_allclose(recording.time, motion.time, rtol=rtol, atol=0)
    np.testing.assert_allclose(recording.q, motion.q, rtol=rtol, atol=0)
    np.testing.assert_allclose(recording.qd, motion.qd, rtol=rtol, atol=0)
    np.testing.assert_allclose(recording.torque().values, motion.tau, rtol=rtol, atol=0)


@pytest.mark.parametrize("separator", [",", ";", "\t", " ", ", ", "   ", " \t", " ; "])
@pytest.mark.parametrize("header", [True, False])
def test_every_separator_gives_the_same_numbers(robot, motion, tmp_path, separator, header):
    names = separator.join(["t", "q1", "q2", "v1", "v2", "tau1", "tau2"]) if header else None
    path = write_csv(tmp_path / "log.txt", motion.table(), names, separator)
    recording = read_text(robot, path)
    assert_same(recording, motion)
    assert "garbage_lines" not in kinds(recording.findings)


def test_a_quoted_cell_may_hold_the_separator(robot, motion, tmp_path):
    rows = [",".join(map(repr, row)).split(",", 1) for row in motion.table().tolist()]
    lines = [f'{time},"1, 2, 3",{rest}' for time, rest in rows]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["t,note,q1,q2,v1,v2,tau1,tau2", *lines]) + "\n")
    torque = {"kind": "joint_torque", "columns": "7:8"}
    recording = read_text(robot, path, q="3:4", qd="5:6", torque=torque)
    assert_same(recording, motion)
    assert "garbage_lines" not in kinds(recording.findings)


def test_numpy_savetxt_is_read_with_its_commented_header(robot, motion, tmp_path):
    path = tmp_path / "log.txt"
    np.savetxt(path, motion.table(), header=HEADER.replace(",", " "), fmt="%25.17e")
    assert_same(read_recording(robot, path), motion)


@pytest.mark.parametrize("index", [True, False])
def test_columns_that_are_only_counted_are_no_row(robot, motion, tmp_path, index):
    pd.DataFrame(motion.table()).to_csv(tmp_path / "log.csv", index=index)
    shift = int(index)
    torque = {"kind": "joint_torque", "columns": f"{6 + shift}:{7 + shift}"}
    table = {"time": 1 + shift, "q": f"{2 + shift}:{3 + shift}", "qd": f"{4 + shift}:{5 + shift}", "torque": torque}
    assert_same(read_recording(robot, setup_from_table(table), files=tmp_path / "log.csv"), motion)


def test_decimal_commas_are_read(robot, motion, tmp_path):
    path = write_csv(tmp_path / "log.csv", motion.table(), None, ";")
    path.write_text(path.read_text().replace(".", ","))
    assert_same(read_text(robot, path), motion)


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_other_line_ends_and_a_byte_order_mark_are_read(robot, motion, tmp_path, end):
    path = write_csv(tmp_path / "log.csv", motion.table())
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", end.encode()))
    assert_same(read_recording(robot, path), motion)


def test_quoted_names_and_numbers_are_read(robot, motion, tmp_path):
    rows = [",".join(f'"{value!r}"' for value in row) for row in motion.table().tolist()]
    header = ",".join(f'"{name}"' for name in HEADER.split(","))
    (tmp_path / "log.csv").write_text("\n".join([header, *rows]) + "\n")
    assert_same(read_recording(robot, tmp_path / "log.csv"), motion)


def test_columns_of_words_are_left_alone(robot, motion, tmp_path):
    lines = write_csv(tmp_path / "log.csv", motion.table()).read_text().splitlines()
    extended = [lines[0] + ",state", *(line + ",moving" for line in lines[1:])]
    (tmp_path / "log.csv").write_text("\n".join(extended) + "\n")
    assert_same(read_recording(robot, tmp_path / "log.csv"), motion)


def test_comments_and_empty_lines_between_the_data_are_no_rows(robot, motion, tmp_path):
    lines = write_csv(tmp_path / "log.csv", motion.table()).read_text().splitlines()
    lines[100:100] = ["", "# paused", "   "]
    (tmp_path / "log.csv").write_text("\n".join([*lines, "", ""]))
    recording = read_recording(robot, tmp_path / "log.csv")
    assert_same(recording, motion)
    assert not kinds(recording.findings) & {"garbage_lines", "truncated_lines"}


def test_garbage_and_cut_lines_are_left_out_and_counted_with_their_line_numbers(robot, motion, tmp_path):
    lines = write_csv(tmp_path / "log.csv", motion.table()).read_text().splitlines()
    lines[10] = "#@!garbage,,%%"  # a comment
    lines[20] = lines[20].replace("e", "x") + "x"
    lines[30] = lines[30][:25]
    lines[40] = lines[40] + ",1.0"
    lines[50] = "\x00\xff,1,2,3,4,5,6"
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n", encoding="latin-1")
    recording = read_recording(robot, tmp_path / "log.csv")
    assert recording.samples == motion.time.size - 5
    garbage = one(recording.findings, "garbage_lines")
    assert (garbage.count, garbage.where, garbage.where_unit) == (3, (21.0, 41.0, 51.0), "line")
    cut = one(recording.findings, "truncated_lines")
    assert (cut.count, cut.where) == (1, (31.0,))
    rest = np.delete(np.arange(motion.time.size), [9, 19, 29, 39, 49])
    np.testing.assert_array_equal(recording.q, motion.q[:, rest])


def test_a_line_cut_in_a_wanted_column_is_not_taken_for_whole(robot, motion, tmp_path):
    """The last wanted column stands before others: a line cut inside it has a number there, but a wrong one."""
    table = np.column_stack([motion.table(), np.ones(motion.time.size)])
    lines = write_csv(tmp_path / "log.csv", table, None).read_text().splitlines()
    cut = lines[7].rsplit(",", 1)[0]
    lines[7] = cut[:-3]
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    recording = read_text(robot, tmp_path / "log.csv")
    assert recording.samples == motion.time.size - 1
    assert one(recording.findings, "truncated_lines").where == (8.0,)


def test_a_last_line_without_an_end_is_told(robot, motion, tmp_path):
    path = write_csv(tmp_path / "log.csv", motion.table())
    path.write_text(path.read_text()[:-1])
    recording = read_recording(robot, path)
    assert_same(recording, motion)
    assert "no line end" in one(recording.findings, "text").text


def test_lines_above_the_header_can_be_left_out_and_are_counted_if_not(robot, motion, tmp_path):
    path = write_csv(tmp_path / "log.csv", motion.table())
    path.write_text("Arm of room 3\nrun 12\n" + path.read_text())
    recording = read_recording(robot, path)
    assert one(recording.findings, "garbage_lines").where == (1.0, 2.0)
    assert_same(recording, motion)
    declared = read_recording(robot, setup_from_table({"skip_lines": 2}), files=path)
    assert "garbage_lines" not in kinds(declared.findings)
    assert_same(declared, motion)


def test_pieces_of_any_size_give_the_same_numbers(robot, motion, tmp_path, monkeypatch):
    lines = write_csv(tmp_path / "log.csv", motion.table()).read_text().splitlines()
    lines[777] = "oops"
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    whole = read_recording(robot, tmp_path / "log.csv")
    monkeypatch.setattr(text_module, "PIECE_BYTES", 1000)
    pieces = read_recording(robot, tmp_path / "log.csv")
    np.testing.assert_array_equal(pieces.q, whole.q)
    np.testing.assert_array_equal(pieces.torque().values, whole.torque().values)
    assert pieces.findings == whole.findings
    assert one(pieces.findings, "truncated_lines").where == (778.0,)


def test_one_value_a_line_is_put_into_rows(robot, motion, tmp_path):
    for name, values in (("q", motion.q), ("tau", motion.tau)):
        np.savetxt(tmp_path / f"{name}.txt", values.T.reshape(-1), fmt="%.17g")
    np.savetxt(tmp_path / "time.txt", motion.time, fmt="%.17g")
    setup = setup_from_table(
        {
            "part": [
                {"path": "time.txt", "time": 1},
                {"path": "q.txt", "reshape": 2, "q": "1:2"},
                {"path": "tau.txt", "reshape": 2, "torque": {"kind": "joint_torque", "columns": "1:2"}},
            ]
        },
        tmp_path,
    )
    recording = read_recording(robot, setup)
    np.testing.assert_array_equal(recording.q, motion.q)
    np.testing.assert_array_equal(recording.torque().values, motion.tau)
    assert [len(source.sha256) for source in recording.sources] == [64, 64, 64]
    (tmp_path / "q.txt").write_text("0.1\n0.2\nabc\n0.3\n")
    with pytest.raises(RecordingError, match=r"line 3 is no number; .* would shift every joint"):
        read_recording(robot, setup)


def test_files_side_by_side_stay_in_step_when_one_has_a_bad_line(robot, motion, tmp_path):
    q_lines = write_csv(tmp_path / "q.csv", motion.q.T, "q1,q2").read_text().splitlines()
    q_lines[300] = "1.0"
    (tmp_path / "q.csv").write_text("\n".join(q_lines) + "\n")
    write_csv(tmp_path / "tau.csv", motion.tau.T, "tau1,tau2")
    setup = setup_from_table(
        {
            "rate": 200,
            "part": [
                {"path": "q.csv", "q": "q{1..2}"},
                {"path": "tau.csv", "torque": {"kind": "motor_torque", "columns": "tau*"}},
            ],
        },
        tmp_path,
    )
    recording = read_recording(robot, setup)
    rest = np.delete(np.arange(motion.time.size), 299)
    np.testing.assert_array_equal(recording.torque().values, motion.tau[:, rest])
    np.testing.assert_allclose(recording.time, motion.time[rest], rtol=1e-15)
    assert one(recording.findings, "gap").count == 1


def test_files_side_by_side_of_different_length_are_told_or_refused(robot, motion, tmp_path):
    write_csv(tmp_path / "q.csv", motion.q.T, "q1,q2")
    parts = [
        {"path": "q.csv", "q": "q{1..2}"},
        {"path": "tau.csv", "torque": {"kind": "motor_torque", "columns": "tau*"}},
    ]
    setup = setup_from_table({"rate": 200, "part": parts}, tmp_path)
    write_csv(tmp_path / "tau.csv", motion.tau.T[:-3], "tau1,tau2")
    recording = read_recording(robot, setup)
    assert recording.samples == motion.time.size - 3
    assert one(recording.findings, "rows_differ").count == 3
    write_csv(tmp_path / "tau.csv", motion.tau.T[::2], "tau1,tau2")
    with pytest.raises(RecordingError, match=r"different numbers of rows \(q.csv 2000, tau.csv 1000\)"):
        read_recording(robot, setup)


def test_the_numbers_are_those_of_numpy(robot, tmp_path):
    """Odd but legal ways to write numbers, against Python's own parser."""
    numbers = ["1", "+1.5", "-.5", "1.", "1e-3", "2.5E+2", "  3", "0.1000000000000000055511151231257827"]
    lines = [f"{k},{number},{number}" for k, number in enumerate(numbers)]
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    recording = read_recording(robot, setup_from_table({"time": 1, "q": "2:3"}), files=tmp_path / "log.csv")
    expected = np.loadtxt(io.StringIO("\n".join(lines)), delimiter=",")
    np.testing.assert_array_equal(recording.q, expected[:, 1:].T)
