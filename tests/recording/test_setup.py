"""Setups: every key means something or is refused with the nearest match."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

from recording.logs import write_csv
from steelyard.cli.logs import with_declared_source
from steelyard.errors import ConfigError, RecordingError
from steelyard.recording import (
    Recording,
    read_recording,
    read_recordings,
    read_setup,
    setup,
    setup_from_table,
)
from steelyard.recording.units import COUNTED, QUANTITIES, RELATIVE
from steelyard.robot import load_robot

PAGE = (Path(__file__).parents[2] / "docs" / "recordings.md").read_text(encoding="utf-8")

TOML = """
[recording]
time = "t"
time_unit = "ms"
q = { columns = "q{1..2}", unit = "deg", sign = [1, -1], offset_deg = { elbow = 90 } }
qd = "dq*"
[[recording.torque]]
kind = "motor_current"
columns = "i{1..2}"
unit = "mA"
gain = [10, 20]
[[recording.torque]]
kind = "motor_torque"
name = "desired"
columns = ["d1", "d2"]
unit = "percent"
rating = { shoulder = 50, elbow = 20 }
"""


def test_a_setup_file_says_it_all(robot, motion, tmp_path):
    (tmp_path / "steelyard.toml").write_text(TOML)
    table = np.column_stack(
        [
            motion.time * 1e3,
            np.degrees(motion.q[0]),
            np.degrees(np.pi / 2 - motion.q[1]),
            motion.qd.T,
            motion.tau.T * 1e3,
            motion.tau.T,
        ]
    )
    write_csv(tmp_path / "log.csv", table, "t,q1,q2,dq1,dq2,i1,i2,d1,d2")
    recording = read_recording(robot, tmp_path / "steelyard.toml", files=tmp_path / "log.csv")
    np.testing.assert_allclose(recording.time, motion.time, atol=1e-12)
    np.testing.assert_allclose(recording.q, motion.q, atol=1e-12)
    np.testing.assert_array_equal(recording.qd, motion.qd)
    current = recording.torque("motor_current")
    np.testing.assert_allclose(current.values, motion.tau, rtol=1e-12)
    np.testing.assert_array_equal(current.gain, [10, 20])
    np.testing.assert_allclose(recording.torque("desired").values, motion.tau * [[0.5], [0.2]], rtol=1e-12)


def test_commanded_positions_are_read_like_measured_ones(robot, motion, tmp_path):
    (tmp_path / "steelyard.toml").write_text(
        """
[recording]
time = "t"
q = { columns = "q{1..2}", unit = "deg", sign = [1, -1], offset_deg = { elbow = 90 } }
reference = { columns = "r{1..2}", unit = "deg", sign = [1, -1], offset_deg = { elbow = 90 }, unwrap = true }
"""
    )
    measured = np.stack([np.degrees(motion.q[0]), np.degrees(np.pi / 2 - motion.q[1])])
    wrapped = (measured + 180.0) % 360.0 - 180.0
    table = np.column_stack([motion.time, measured.T, wrapped.T])
    table[5, 3] = np.nan
    write_csv(tmp_path / "log.csv", table, "t,q1,q2,r1,r2")
    recording = read_recording(robot, tmp_path / "steelyard.toml", files=tmp_path / "log.csv")
    assert recording.samples == motion.time.size - 1
    assert recording.reference is not None
    turns = (recording.reference - recording.q) / (2 * np.pi)
    np.testing.assert_allclose(turns, np.round(turns[:, :1]) + np.zeros_like(turns), atol=1e-9)


def test_a_reference_of_other_shape_is_refused(motion):
    with pytest.raises(RecordingError, match=r"reference has shape \(1, "):
        Recording(("shoulder", "elbow"), motion.time, motion.q, reference=motion.q[:1])


def test_files_of_a_setup_have_keys_of_their_own(robot, motion, tmp_path):
    (tmp_path / "steelyard.toml").write_text(
        '[recording]\ntime = 1\nq = "2:3"\n'
        '[[recording.file]]\npath = "a.csv"\nrows = "11:20"\n'
        '[[recording.file]]\npath = "b.csv"\npayload = "plate"\nseconds = [1.0, 2.0]\n'
    )
    for name in "ab":
        write_csv(tmp_path / f"{name}.csv", motion.table(), None)
    first, second = read_recordings(robot, tmp_path / "steelyard.toml")
    np.testing.assert_array_equal(first.time, motion.time[10:20])
    assert first.payload is None
    np.testing.assert_allclose(second.time, motion.time[200:401], rtol=1e-15)
    assert second.payload == "plate"
    with pytest.raises(RecordingError, match=r"names 2 recordings; name one with files: a\.csv, b\.csv"):
        read_recording(robot, tmp_path / "steelyard.toml")
    again = read_recording(robot, tmp_path / "steelyard.toml", files="b.csv", root=tmp_path)
    np.testing.assert_array_equal(again.time, second.time)
    assert again.payload == "plate"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"colums": 1}, "unknown key 'colums'"),
        ({"side": "motors"}, "side is 'motors'; allowed: motor, joint; did you mean 'motor'?"),
        ({"q": {"unitt": "deg"}}, "recording q: unknown key 'unitt'; .*; did you mean 'unit'?"),
        ({"torque": {"columns": "1:2"}}, "'kind' is missing"),
        ({"torque": {"kind": "motor_curent", "columns": 1}}, "did you mean 'motor_current'?"),
        ({"torque": {"kind": "joint_torque", "gain": 3}}, "only a motor_current takes a gain"),
        ({"torque": {"kind": "joint_torque", "side": "motor"}}, "has no motor side"),
        ({"rate": -1}, "rate is -1; allowed: a number above 0"),
        ({"rate": True}, "rate is True; allowed: a finite number"),
        ({"rate": 100, "period": 0.02}, "rate 100 Hz and period 0.02 s disagree"),
        ({"rate": 100, "time": "t"}, "both a time column and a rate"),
        ({"time": {"column": "t", "unit": "ms"}, "time_unit": "s"}, "time is declared in 'ms' and in 's'"),
        ({"rows": "5:2"}, "the last not before the first"),
        ({"rows": 5}, "rows is 5; allowed: first and last row"),
        ({"seconds": [3, 1]}, "seconds is [3, 1]; allowed: two numbers"),
        ({"q": {"sign": [1, 2]}}, "sign is [1, 2]; allowed: 1 or -1"),
        ({"q": {"offset": 1, "offset_deg": 1}}, "both offset and offset_deg are given; keep one"),
        ({"q": 0}, "counted from 1"),
        ({"coupling": [[1, 0]]}, "square matrix"),
        ({"part": [{"q": 1}]}, "'path' is missing"),
        ({"part": {"path": "a.csv"}}, "part is no list of tables"),
        ({"part": [{"path": "a", "q": 1}, {"path": "b", "q": 1}]}, "'q' is declared in two parts"),
        ({"part": [{"path": "a", "q": 1}], "q": 1}, "stand in its"),
        ({"reshape": 0}, "reshape is 0; allowed: a whole number from 1"),
        ({"file": [{"rows": "1:2"}]}, "recording file 1: 'path' is missing"),
    ],
)
def test_a_setup_that_makes_no_sense_is_refused_in_one_line(table, message):
    with pytest.raises(ConfigError, match=message.replace("?", r"\?").replace("[", r"\[")) as caught:
        setup_from_table(table)
    assert "\n" not in str(caught.value)


def test_a_setup_file_that_cannot_be_used_is_refused(tmp_path):
    path = tmp_path / "steelyard.toml"
    with pytest.raises(ConfigError, match="no such file"):
        read_setup(path)
    path.write_text("[recording\n")
    with pytest.raises(ConfigError, match="not TOML"):
        read_setup(path)
    path.write_text("[recordings]\n")
    with pytest.raises(ConfigError, match=re.escape("no table [recording]; tables: recordings; did you mean")):
        read_setup(path)


def test_relative_paths_start_at_the_setup_or_at_the_root_given(robot, motion, tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    (tmp_path / "here" / "steelyard.toml").write_text('[recording]\nfiles = ["log.csv"]\n')
    write_csv(tmp_path / "here" / "log.csv", motion.table())
    assert read_recording(robot, tmp_path / "here" / "steelyard.toml").samples == motion.time.size
    write_csv(tmp_path / "there" / "log.csv", motion.table()[:50])
    assert read_recording(robot, tmp_path / "here" / "steelyard.toml", root=tmp_path / "there").samples == 50


@pytest.mark.parametrize("shown", re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL))
def test_setups_shown_in_the_documentation_can_be_read(shown):
    setup = setup_from_table(tomllib.loads(shown)["recording"])
    assert setup.files or setup.parts[0].path


def test_every_key_and_unit_is_documented():
    keys = {*setup._RECORDING, *(key for keys in setup._CHANNEL_KEYS.values() for key in keys)}
    units = {unit for units in QUANTITIES.values() for unit in units}
    for word in (*keys, *units, *RELATIVE, *COUNTED.values()):
        assert f"`{word}`" in PAGE, word


def test_every_finding_is_documented():
    source = Path(setup.__file__).parent
    text = "".join(path.read_text(encoding="utf-8") for path in source.rglob("*.py"))
    found = set(re.findall(r'Finding\(\s*"(\w+)"', text))
    assert {"jitter", "gap", "velocity"} <= found
    for kind in found:
        assert f"`{kind}`" in PAGE, kind


def test_all_files_of_a_setup_that_are_missing_are_named_at_once(tmp_path):
    (tmp_path / "steelyard.toml").write_text('[recording]\nfiles = ["a.csv", "b.csv"]\n')
    with pytest.raises(RecordingError, match=r"2 files or folders are missing: '.*a\.csv', '.*b\.csv'"):
        read_recordings("scara_2r", tmp_path / "steelyard.toml")


def test_a_setup_may_say_where_inertias_come_from(tmp_path):
    assert setup_from_table({"inertia_source": "cad"}).inertia_source == "cad"
    assert setup_from_table({}).inertia_source is None
    with pytest.raises(ConfigError, match="inertia_source is 'CAD'; allowed: cad, vendor, identified, unknown"):
        setup_from_table({"inertia_source": "CAD"})


def test_the_declared_source_is_that_of_the_robot(tmp_path):
    robot, config = load_robot("scara_2r"), tmp_path / "log.toml"
    config.write_text('[recording]\ninertia_source = "vendor"\n[other]\ninertia_source = "cad"\n[plain]\n')
    assert with_declared_source(robot, None, ["recording"]).inertia_source == "unknown"
    assert with_declared_source(robot, config, ["recording"]).inertia_source == "vendor"
    assert with_declared_source(robot, config, ["plain"]).inertia_source == "unknown"
    with pytest.raises(ConfigError, match="inertia_source is both cad and vendor; keep one"):
        with_declared_source(robot, config, ["recording", "other"])
