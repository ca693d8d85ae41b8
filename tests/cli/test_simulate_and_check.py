"""From a trajectory file to a recording that is read and checked again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from steelyard.cli import main
from steelyard.motion import quintic, write_trajectory
from steelyard.recording import Recording, TorqueChannel, read_recording, write_recording
from steelyard.robot import load_robot

JOINTS = ["joint_1", "joint_2"]


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_trajectory(quintic([[0, 0.4, -0.3, 0], [0, 1.0, -1.5, 0]], 0.5, JOINTS), "motion.toml")
    return tmp_path


@pytest.mark.parametrize("kind", ["npz", "csv"])
def test_a_simulation_leaves_a_recording_and_the_truth(kind, workplace, capsys):
    assert main(["simulate", "scara_2r", "motion.toml", "--rate", "100", "--format", kind, "--out", "run"]) == 0
    assert "tracking rms" in capsys.readouterr().out
    assert {path.name for path in Path("run").iterdir()} == {f"recording.{kind}", "truth.json", "result.json"}
    recording = read_recording(load_robot("scara_2r"), f"run/recording.{kind}")
    assert recording.q.shape == (2, 150)
    assert recording.torque().kind == "motor_torque"
    truth = json.loads(Path("run/truth.json").read_text(encoding="utf-8"))
    assert truth["parameters"]["ZZ2"] == 0.064
    assert truth["effects"] == ["inertia", "Fvm", "Fcm"]


def test_the_same_seed_gives_the_same_bytes_and_runs_differ(workplace):
    for folder in ("one", "two"):
        arguments = ["--rate", "100", "--runs", "2", "--seed", "3", "--config", "settings.toml", "--out", folder]
        noise = 'motor_noise = { kind = "white", std = [0.1, 0.1] }'
        Path("settings.toml").write_text(f"[simulate]\n{noise}\n")
        assert main(["simulate", "scara_2r", "motion.toml", *arguments]) == 0
    names = {path.name for path in Path("one").iterdir()}
    assert names == {"recording_0003.npz", "recording_0004.npz", "truth.json", "result.json"}
    for name in names - {"result.json"}:
        assert Path("one", name).read_bytes() == Path("two", name).read_bytes()
    robot = load_robot("scara_2r")
    first, second = (read_recording(robot, f"one/recording_000{k}.npz").torque().values for k in (3, 4))
    assert 0.05 < np.std(first - second) < 0.3


def test_runs_are_alike_without_noise_which_is_said_and_two_per_cent_apart_with_it(workplace, capsys):
    arguments = ["scara_2r", "motion.toml", "--rate", "100", "--runs", "2"]
    assert main(["simulate", *arguments, "--out", "alike"]) == 0
    assert "all runs are alike; --noise adds some" in " ".join(capsys.readouterr().out.split())
    assert main(["simulate", *arguments, "--noise", "--out", "noisy"]) == 0
    assert "alike" not in capsys.readouterr().out
    read = [
        [read_recording("scara_2r", f"{folder}/recording_000{k}.npz").torque().values for k in (0, 1)]
        for folder in ("alike", "noisy")
    ]
    assert (read[0][0] == read[0][1]).all()
    largest = np.abs(read[0][0]).max(axis=1)
    assert (read[1][0] - read[0][0]).std(axis=1) == pytest.approx(0.02 * largest, rel=0.2)
    assert (read[1][1] != read[1][0]).any()


def test_a_trajectory_beyond_the_limits_is_simulated_but_told(workplace, capsys):
    write_trajectory(quintic([[0, 2.0], [0, 2.0]], 0.2, JOINTS), "fast.toml")
    assert main(["simulate", "scara_2r", "fast.toml", "--rate", "100", "--json"]) == 0
    violations = json.loads(capsys.readouterr().out)["violations"]
    assert any("joint_1: velocity" in line for line in violations)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["scara_2r", "none.toml"], ["none.toml"]),
        (["kuka_lwr4", "motion.toml"], ["joint_3"]),
        (["scara_2r", "motion.toml", "--runs", "0"], ["runs is 0; allowed is 1 or more"]),
        (["scara_2r", "motion.toml", "--rate", "300"], ["whole multiple"]),
        (["scara_2r", "motion.toml", "--payload", "brick"], ["knows no payload 'brick'"]),
        (["scara_2r", "motion.toml", "--config", "settings.toml"], ["unknown key 'motor_noize'", "motor_noise"]),
    ],
)
def test_a_bad_simulation_gets_one_clear_line_and_writes_nothing(arguments, expected, workplace, capsys):
    Path("settings.toml").write_text("[simulate]\nmotor_noize = 3\n")
    assert main(["simulate", *arguments, "--out", "run"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    for text in expected:
        assert text in error, error
    assert not Path("run").exists()


def written_log(path: str, q: np.ndarray, time: np.ndarray) -> None:
    channel = TorqueChannel("motor_torque", np.cos(3 * q))
    write_recording(Recording(tuple(JOINTS), time, q, torques=(channel,)), Path(path))


def recorded_log(path: str) -> None:
    """5 s of the SCARA, simulated with noise: joints that move apart, torques that belong to the motion."""
    corners = np.random.default_rng(4).uniform(-1.2, 1.2, (2, 11))
    write_trajectory(quintic(corners.tolist(), 0.5, JOINTS), "many_corners.toml")
    noise = (
        'position_noise = { kind = "white", std = [1e-5, 1e-5] }\nmotor_noise = { kind = "white", std = [0.1, 0.1] }'
    )
    Path("settings.toml").write_text(f"[simulate]\n{noise}\n")
    arguments = ["--rate", "100", "--format", "csv", "--config", "settings.toml", "--out", "simulated"]
    assert main(["simulate", "scara_2r", "many_corners.toml", *arguments]) == 0
    Path("simulated/recording.csv").rename(path)


def test_a_good_log_is_told_to_be_good(workplace, capsys):
    recorded_log("log.csv")
    assert main(["check", "scara_2r", "log.csv"]) == 0
    assert "500 samples, 4.99 s, about 100 Hz; 2 joints, motor_torque" in capsys.readouterr().out


def test_degrees_taken_for_radians_are_a_poor_verdict(workplace, capsys):
    time = np.arange(0, 5, 0.01)
    written_log("log.csv", np.array([[40.0], [90.0]]) * np.sin(2 * time), time)
    assert main(["check", "scara_2r", "log.csv", "--json"]) == 2
    (reported,) = json.loads(capsys.readouterr().out)["recordings"]
    assert any("degrees" in finding["text"] for finding in reported["findings"] if finding["severity"] == "bad")


def test_garbage_gaps_and_nan_are_counted_and_told(workplace, capsys):
    recorded_log("log.csv")
    capsys.readouterr()
    lines = Path("log.csv").read_text().splitlines()
    del lines[100:110]
    samples = sum(line[0].isdigit() for line in lines)
    lines[50] = "crash dump 0x3f"
    lines[60] = lines[60].replace(lines[60].split(",")[1], "nan")
    lines[70] = ",".join(lines[70].split(",")[:2])
    Path("log.csv").write_text("\n".join(lines) + "\n")
    assert main(["check", "scara_2r", "log.csv", "--json", "--out", "run"]) == 0
    provenance = json.loads(Path("run/result.json").read_text(encoding="utf-8"))["provenance"]
    assert provenance["inputs"] == {"log.csv": hashlib.sha256(Path("log.csv").read_bytes()).hexdigest()}
    (reported,) = json.loads(capsys.readouterr().out)["recordings"]
    kinds = {finding["kind"]: finding for finding in reported["findings"]}
    assert reported["samples"] == samples - 3
    assert any("gap" in kind for kind in kinds)
    assert sum(finding["count"] for kind, finding in kinds.items() if "line" in finding["text"]) == 2
    assert main(["check", "scara_2r", "log.csv"]) == 0
    assert "gap" in capsys.readouterr().out


def test_a_log_of_another_robot_is_refused(workplace, capsys):
    time = np.arange(0, 1, 0.01)
    written_log("log.csv", np.array([[0.4], [1.0]]) * np.sin(2 * time), time)
    assert main(["check", "kuka_lwr4", "log.csv"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "log.csv" in error


def test_a_wrong_key_of_a_configuration_is_refused_before_the_log_is_read(workplace, capsys):
    time = np.arange(0, 1, 0.01)
    written_log("log.csv", np.array([[0.4], [1.0]]) * np.sin(2 * time), time)
    Path("arm.toml").write_text("[identify]\ncutof = 10.0\n", encoding="utf-8")
    assert main(["check", "scara_2r", "log.csv", "--config", "arm.toml"]) == 1
    printed = capsys.readouterr()
    assert not printed.out
    assert "unknown key 'cutof'" in printed.err
    assert "cutoff" in printed.err
    assert printed.err.count("\n") == 1


def test_no_log_at_all_is_told(capsys):
    assert main(["check", "scara_2r"]) == 1
    assert "no log given; name one" in capsys.readouterr().err
