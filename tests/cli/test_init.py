"""``steelyard init``: what it writes, prints and refuses."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from guessed_logs import simulated
from recording.logs import ARM, Motion, write_csv
from ros_bags import Joints, write_bag
from steelyard.cli import main
from steelyard.recording import read_recording
from steelyard.robot import load_robot

NAMES = "t,q1,q2,qd1,qd2,tau1,tau2"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("arm.urdf").write_text(ARM)
    write_csv(Path("log.csv"), Motion().table(), NAMES)
    return tmp_path


def test_the_set_up_is_written_and_the_next_command_runs(folder, capsys):
    assert main(["init", "arm.urdf", "log.csv"]) == 0
    shown = capsys.readouterr().out
    command = next(line for line in shown.splitlines() if line.startswith("next: ")).removeprefix("next: steelyard ")
    assert main(shlex.split(command)) == 0
    recording = read_recording(load_robot("arm.urdf"), "steelyard.toml")
    np.testing.assert_allclose(recording.q, Motion().q)


def test_a_file_that_exists_is_never_overwritten(folder, capsys):
    Path("steelyard.toml").write_text("mine")
    assert main(["init", "arm.urdf", "log.csv"]) == 1
    assert "not overwritten" in capsys.readouterr().err
    assert Path("steelyard.toml").read_text() == "mine"
    assert main(["init", "arm.urdf", "log.csv", "--out", "elsewhere/setup.toml"]) == 0
    assert '"../log.csv"' in Path("elsewhere/setup.toml").read_text()


def test_what_is_missing_is_listed_and_no_error(folder, capsys):
    write_csv(Path("bare.csv"), Motion().q.T, "q1,q2")
    assert main(["init", "arm.urdf", "bare.csv", "--quiet"]) == 0
    assert "to fill in: rate" in capsys.readouterr().out


def test_json_has_every_item_and_the_findings(folder, capsys):
    table = Motion().table()
    table[500:510, 1] += 1.0
    write_csv(Path("jump.csv"), table, NAMES)
    assert main(["init", "arm.urdf", "jump.csv", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["command"] == "init"
    assert {item["channel"] for item in found["items"]} == {"time", "q", "qd", "motor_torque", "joints"}
    assert found["findings"][0]["kind"] == "jump"
    assert found["file"] == "steelyard.toml"


def test_hostile_names_are_safe_on_the_terminal(folder, capsys):
    names = 't,"q\x1b[31m[bold]1","q\x1b[31m[bold]2","x\x1b]0;y"'
    write_csv(Path("evil.csv"), np.column_stack([Motion().time, Motion().q.T, Motion().time]), names)
    assert main(["init", "arm.urdf", "evil.csv"]) == 0
    assert "\x1b" not in capsys.readouterr().out
    assert "\x1b" not in Path("steelyard.toml").read_text()


def test_a_missing_log_is_one_line(folder, capsys):
    assert main(["init", "arm.urdf", "nowhere.csv"]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["init", "arm.urdf"]) == 1
    assert not Path("steelyard.toml").exists()


@pytest.mark.parametrize("folder_name", ["log_db3", "log_mcap"])
def test_a_bag_of_a_simulation_is_guessed_right(folder_name, tmp_path, monkeypatch, capsys):
    pytest.importorskip("rosbags", reason="rosbags writes the bags of this test")
    monkeypatch.chdir(tmp_path)
    robot, log = load_robot("ur10e"), simulated("ur10e", 3)
    velocity = np.gradient(log.q, log.time, axis=1)
    order = [2, 1, 0, 3, 4, 5]
    names = [robot.joint_names[joint] for joint in order]
    # As the driver of this arm does it: its own order of joints, stamps of the clock.
    rows = zip(log.time, log.q.T, velocity.T, log.torques[0].values.T, strict=True)
    messages = [
        Joints(1_700_000_000_000_000_000 + round(1e9 * float(time)), names, q[order], qd[order], effort[order])
        for time, q, qd, effort in rows
    ]
    write_bag(Path(folder_name), messages)
    assert main(["init", "ur10e", folder_name, "--json"]) == 0
    items = {item["channel"]: item for item in json.loads(capsys.readouterr().out)["items"]}
    assert {name: items[name]["unit"] for name in ("time", "q", "qd", "motor_torque")} == {
        "time": "s", "q": "rad", "qd": "rad/s", "motor_torque": "Nm",
    }  # fmt: skip
    read = read_recording(robot, "steelyard.toml")
    assert read.qd is not None
    for got, true in ((read.q, log.q), (read.qd, velocity), (read.torques[0].values, log.torques[0].values)):
        np.testing.assert_allclose(got, true, atol=1e-12)
    # Nothing in a bag says whether efforts are of motors or of sensors behind the gears.
    kind = next(one for one in items["motor_torque"]["aspects"] if one["aspect"] == "kind")
    assert kind["confidence"] == "unsure"


def test_one_of_several_recordings_of_a_file_is_chosen(folder, capsys):
    h5py = pytest.importorskip("h5py", reason="h5py writes the file of this test")
    table = Motion().table()
    with h5py.File("log.h5", "w") as file:
        for run, rows in (("run1", table), ("run2", table[:-50])):
            for name, column in zip(NAMES.split(","), rows.T, strict=True):
                file[f"{run}/{name}"] = column
    assert main(["init", "arm.urdf", "log.h5"]) == 1
    assert "init: --group" in capsys.readouterr().err
    assert main(["init", "arm.urdf", "log.h5", "--group", "run2"]) == 0
    assert 'group = "run2"' in Path("steelyard.toml").read_text()
    read = read_recording(load_robot("arm.urdf"), "steelyard.toml")
    np.testing.assert_allclose(read.q, Motion().q[:, :-50])


@pytest.mark.parametrize(("order", "sure"), [([0, 1, 2, 3, 4, 5], True), ([0, 2, 1, 3, 4, 5], False)])
def test_exchanged_torques_are_not_called_sure(order, sure, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    log = simulated("ur10e", 3)
    names = ",".join(["t", *(f"q{k}" for k in range(1, 7)), *(f"tau{k}" for k in range(1, 7))])
    write_csv(Path("log.csv"), np.column_stack([log.time, log.q.T, log.torques[0].values[order].T]), names)
    assert main(["init", "ur10e", "log.csv", "--json"]) == 0
    (joints,) = [one for one in json.loads(capsys.readouterr().out)["items"] if one["channel"] == "joints"]
    assert (joints["confidence"] == "sure") == sure, joints
    assert ("shoulder_lift_joint and elbow_joint better exchanged" in joints["reason"]) != sure
