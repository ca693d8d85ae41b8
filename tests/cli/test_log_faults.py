"""Faults planted in logs reach whoever identifies from them: on the screen, in the JSON, by name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulated_experiments import scara, ur10e
from steelyard.cli import main
from steelyard.recording import Recording, write_recording
from steelyard.robot import load_robot
from steelyard.simulation import Experiment, Noise, recording_of, simulate
from steelyard.study import default_motion

ARMS: dict[str, Callable[[int], Recording]] = {"scara_2r": scara, "ur10e": ur10e}
# The second arm takes longer: in the default run it has the faults that once ended badly.
LARGE = ["scara_2r", pytest.param("ur10e", marks=pytest.mark.large)]
# What the checks of a log find does not depend on the model; tests of what the fit shows choose effects: --select.
FAST = "[identify]\nbias_repeats = 0\nselect = false\n"


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("fast.toml").write_text(FAST)
    return tmp_path


def identified(capsys, robot: str, *arguments: str) -> tuple[int, dict]:
    code = main(["identify", robot, *arguments, "--config", "fast.toml", "--json"])
    return code, json.loads(capsys.readouterr().out)


def with_torque(recording: Recording, change: Callable[[np.ndarray], object], channel: int = 0) -> Recording:
    """Return the recording with one torque channel changed in place."""
    torques = list(recording.torques)
    values = torques[channel].values.copy()
    change(values)
    torques[channel] = replace(torques[channel], values=values)
    return replace(recording, torques=tuple(torques))


def spiked(values: np.ndarray, seed: int = 0) -> None:
    """Put 20 spikes of ten standard deviations into every row."""
    rng = np.random.default_rng(seed)
    for row in values:
        places = rng.choice(row.size, 20, replace=False)
        row[places] += rng.choice([-10, 10], 20) * row.std()


def found(result: dict, kind: str) -> list[dict]:
    return [finding for finding in result["findings"] if finding["kind"] == kind]


@pytest.mark.parametrize("robot", LARGE)
def test_a_clean_log_has_no_findings(robot, capsys):
    write_recording(ARMS[robot](1), Path("log.npz"))
    write_recording(ARMS[robot](2), Path("unseen.npz"))
    _, result = identified(capsys, robot, "log.npz", "--validate", "unseen.npz")
    assert result["findings"] == []


@pytest.mark.parametrize("robot", LARGE)
def test_a_dead_torque_column_is_named_and_the_others_are_fitted(robot, capsys):
    recording = ARMS[robot](1)
    write_recording(with_torque(recording, lambda values: values[1].fill(0.0)), Path("log.npz"))
    write_recording(ARMS[robot](2), Path("unseen.npz"))
    code, result = identified(capsys, robot, "log.npz", "--validate", "unseen.npz")
    assert code in (0, 2)
    (dead,) = found(result, "dead_column")
    assert (dead["severity"], dead["joint"], dead["recording"]) == ("severe", recording.joints[1], "log")
    assert recording.torques[0].name in dead["text"]
    assert [joint["name"] for joint in result["fit"]["joints"]] == [
        joint for joint in recording.joints if joint != recording.joints[1]
    ]


@pytest.mark.parametrize("robot", LARGE)
def test_a_dead_position_column_is_named_with_the_flag_for_a_held_joint(robot, capsys):
    recording = ARMS[robot](1)
    q = recording.q.copy()
    q[1] = 0.25
    write_recording(replace(recording, q=q, qd=None), Path("log.npz"))
    write_recording(ARMS[robot](2), Path("unseen.npz"))
    _, result = identified(capsys, robot, "log.npz", "--validate", "unseen.npz")
    (dead,) = found(result, "dead_column")
    assert (dead["severity"], dead["joint"]) == ("severe", recording.joints[1])
    assert f"--lock {recording.joints[1]}=0.25" in dead["remedy"]


def test_a_log_too_large_for_memory_is_checked_too(capsys, monkeypatch):
    monkeypatch.setattr("steelyard.recording.cache.IN_MEMORY", 0)
    write_recording(with_torque(scara(1), lambda values: values[1].fill(0.0)), Path("log.npz"))
    write_recording(scara(2), Path("unseen.npz"))
    _, result = identified(capsys, "scara_2r", "log.npz", "--validate", "unseen.npz")
    assert [(one["recording"], one["joint"]) for one in found(result, "dead_column")] == [("log", "joint_2")]


def test_a_joint_that_stands_still_in_all_validation_is_told(capsys):
    unseen = scara(2)
    q = unseen.q.copy()
    q[1] = 0.3
    write_recording(scara(1), Path("log.npz"))
    write_recording(replace(unseen, q=q, qd=None), Path("unseen.npz"))
    _, result = identified(capsys, "scara_2r", "log.npz", "--validate", "unseen.npz")
    (reported,) = found(result, "stands_still")
    assert (reported["joint"], reported["severity"]) == ("joint_2", "note")


def test_a_fit_that_fails_names_what_the_checks_found(capsys):
    recording = scara(1)
    q = recording.q.copy()
    q[:, recording.samples // 2 :] += 200.0
    write_recording(replace(recording, q=q, qd=None), Path("log.npz"))
    write_recording(scara(2), Path("unseen.npz"))
    assert main(["identify", "scara_2r", "log.npz", "--validate", "unseen.npz", "--keep-bad"]) == 1
    error = capsys.readouterr().err
    assert "the checks found in 'log' that positions reach" in error
    assert error.count("\n") == 1


def test_torques_that_are_all_dead_are_one_line(capsys):
    write_recording(with_torque(scara(1), lambda values: values.fill(0.0)), Path("log.npz"))
    assert main(["identify", "scara_2r", "log.npz"]) == 1
    error = capsys.readouterr().err
    assert "no torque is left" in error
    assert "motor_torque of joint_1 is 0 throughout" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("robot", LARGE)
def test_spikes_in_torques_and_positions_are_severe(robot, capsys):
    recording = ARMS[robot](1)
    write_recording(with_torque(recording, spiked), Path("torque.npz"))
    q = recording.q.copy()
    q[0, np.random.default_rng(1).choice(recording.samples, 20, replace=False)] += 0.1
    write_recording(replace(recording, q=q, qd=None), Path("position.npz"))
    write_recording(ARMS[robot](2), Path("unseen.npz"))
    _, result = identified(capsys, robot, "torque.npz", "--validate", "unseen.npz")
    assert {one["joint"] for one in found(result, "spikes")} == set(recording.joints)
    assert {one["severity"] for one in found(result, "spikes")} == {"severe"}
    _, result = identified(capsys, robot, "position.npz", "--validate", "unseen.npz")
    kinds = {(one["kind"], one["joint"], one["severity"]) for one in result["findings"]}
    assert kinds & {("spikes", recording.joints[0], "severe"), ("jump", recording.joints[0], "severe")}


@pytest.mark.parametrize(("size", "in_check", "in_result"), [(300.0, "bad", "severe"), (25.0, "warning", "warning")])
def test_check_and_identify_give_a_spike_one_severity(size, in_check, in_result, capsys):
    spoilt = with_torque(scara(1), lambda values: values[0].__setitem__(1234, values[0, 1234] + size))
    write_recording(spoilt, Path("spike.npz"))
    write_recording(scara(2), Path("unseen.npz"))
    code = main(["check", "scara_2r", "spike.npz", "--json"])
    (checked,) = found(json.loads(capsys.readouterr().out)["recordings"][0], "spikes")
    identified_code, result = identified(capsys, "scara_2r", "spike.npz", "--validate", "unseen.npz")
    (reported,) = found(result, "spikes")
    assert (checked["severity"], reported["severity"]) == (in_check, in_result)
    assert code == (2 if in_check == "bad" else 0)
    assert identified_code == 2 or in_result != "severe"
    assert result["left_out"] == []


@pytest.mark.parametrize("robot", ["scara_2r", pytest.param("ur10e", marks=pytest.mark.large)])
def test_appended_logs_lose_no_row_and_are_told(robot, capsys):
    lines = []
    for seed in (1, 2):
        write_recording(ARMS[robot](seed), Path(f"{seed}.csv"))
        lines += [line for line in Path(f"{seed}.csv").read_text().splitlines() if seed == 1 or line[0].isdigit()]
    Path("both.csv").write_text("\n".join(lines) + "\n")
    code, result = identified(capsys, robot, "both.csv")
    assert code in (0, 2)
    (reported,) = found(result, "concatenated")
    assert reported["severity"] == "warning"
    assert "2 parts" in reported["text"]
    assert found(result, "gap") == []
    used = result["recordings"][0]["samples"]
    # A quarter is held out, and each part loses the ends of its filter.
    assert used > 0.65 * (ARMS[robot](1).samples + ARMS[robot](2).samples)


@pytest.mark.parametrize("robot", LARGE)
@pytest.mark.parametrize(("part", "severity"), [(0.005, "note"), (0.2, "warning"), (0.5, "severe")])
def test_rows_without_numbers_are_counted(robot, part, severity, capsys):
    recording = ARMS[robot](1)
    lost = slice(300, 300 + int(part * recording.samples))
    write_recording(with_torque(recording, lambda values: values[0].__setitem__(lost, np.nan)), Path("log.npz"))
    write_recording(ARMS[robot](2), Path("unseen.npz"))
    _, result = identified(capsys, robot, "log.npz", "--validate", "unseen.npz")
    (reported,) = found(result, "not_a_number")
    assert (reported["severity"], reported["joint"]) == (severity, recording.joints[0])
    assert reported["count"] == lost.stop - lost.start
    assert f"in {reported['count']} rows" in reported["text"]


@pytest.mark.parametrize("robot", LARGE)
def test_a_validation_log_that_stands_still_is_called_that(robot, capsys):
    moving = ARMS[robot](2)
    noise = 1e-6 * np.random.default_rng(0).standard_normal(moving.q.shape)
    still = replace(moving, q=moving.q[:, :1] + noise, qd=None)
    write_recording(ARMS[robot](1), Path("log.npz"))
    write_recording(moving, Path("unseen.npz"))
    write_recording(still, Path("still.npz"))
    assert main(["identify", robot, "log.npz", "--validate", "still.npz"]) == 1
    error = capsys.readouterr().err
    assert "validation recording 'still' stands still: nothing can be judged on it; give one that moves" in error
    assert error.count("\n") == 1
    _, result = identified(capsys, robot, "log.npz", "--validate", "still.npz", "--validate", "unseen.npz")
    (reported,) = found(result, "stands_still")
    assert (reported["recording"], reported["severity"]) == ("still", "note")
    _, alone = identified(capsys, robot, "log.npz", "--validate", "unseen.npz")
    assert result["validation"] == alone["validation"]


def test_the_screen_has_the_findings_at_eighty_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    write_recording(with_torque(scara(1), spiked), Path("log.npz"))
    write_recording(scara(2), Path("unseen.npz"))
    main(["identify", "scara_2r", "log.npz", "--validate", "unseen.npz", "--config", "fast.toml"])
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    block = text.split("log findings")[1].split("torque errors")[0]
    assert "severe" in block
    assert "(also joint_2)" in " ".join(block.split())


@pytest.mark.large
def test_motor_torques_before_the_gears_are_told_beside_joint_torques(capsys):
    from simulated_experiments import lwr4

    recording = lwr4(1)
    write_recording(recording, Path("right.npz"))
    assert main(["check", "kuka_lwr4", "right.npz", "--json"]) == 0
    assert "torque_ratio" not in capsys.readouterr().out
    motor = [channel.kind for channel in recording.torques].index("motor_torque")
    write_recording(with_torque(recording, lambda values: values.__itruediv__(100.0), motor), Path("log.npz"))
    write_recording(lwr4(2), Path("unseen.npz"))
    _, result = identified(capsys, "kuka_lwr4", "log.npz", "--torque", "both", "--validate", "unseen.npz", "--select")
    reported = found(result, "torque_ratio")
    assert {one["severity"] for one in reported} == {"severe"}
    assert {"joint_1", "joint_2", "joint_4"} <= {one["joint"] for one in reported}
    assert all("before the gears" in one["text"] and 'side = "motor"' in one["remedy"] for one in reported)


GRAVITY = {"scara_2r": (0.0, 9.81, 0.0), "ur10e": (9.81, 0.0, 0.0)}


def mounted(robot: str, seed: int, **choices: Any) -> Recording:
    """Return a recording of an arm on a wall."""
    if robot == "ur10e":
        return ur10e(seed, GRAVITY[robot])
    arm = load_robot(robot).with_gravity(GRAVITY[robot])
    from steelyard.motion import quintic

    points = np.zeros((2, 21))
    points[:, 1:-1] = np.random.default_rng(seed).uniform(-1, 1, (2, 19)) * [[0.45], [2.6]]
    choices = choices or {"control": "pd", "kp": (400, 12), "kd": (70, 1.6)}
    experiment = Experiment(record_rate=100, encoder_quantum=1e-5, **choices)
    return recording_of(simulate(arm, quintic(points, 1.0, ["joint_1", "joint_2"]), experiment, [seed]))


@pytest.mark.parametrize("robot", LARGE)
def test_a_wrong_mounting_is_named_and_its_flag_cures(robot, capsys):
    write_recording(mounted(robot, 1), Path("log.npz"))
    write_recording(mounted(robot, 2), Path("unseen.npz"))
    logs = ("log.npz", "--validate", "unseen.npz", "--select")
    code, wrong = identified(capsys, robot, *logs)
    assert code == 2
    (reason,) = [reason for reason in wrong["verdict"]["reasons"] if reason["about"] == "mounting"]
    flag = f"--gravity {','.join(f'{part:g}' for part in GRAVITY[robot])}"
    assert flag in reason["remedy"]
    code, right = identified(capsys, robot, *logs, *flag.split())
    assert right["gravity"] == list(GRAVITY[robot])
    # A tilt that is found may stand for any wall of the SCARA, whose joints are all along gravity.
    better = 1.0 if robot == "scara_2r" else 0.2
    assert right["validation"]["relative_error_percent"] < better * wrong["validation"]["relative_error_percent"]
    assert not [reason for reason in right["verdict"]["reasons"] if reason["about"] == "mounting"]


def test_a_tilt_that_was_chosen_does_not_hide_the_mounting(capsys):
    """A tilted base may stand for any direction of gravity: with it another wall fitted as well."""
    for seed, name in ((1, "log.npz"), (2, "unseen.npz")):
        write_recording(mounted("scara_2r", seed, plant="ideal", control_rate=100), Path(name))
    _, wrong = identified(capsys, "scara_2r", "log.npz", "--validate", "unseen.npz", "--select")
    assert "tilt" in wrong["effects"]
    (reason,) = [reason for reason in wrong["verdict"]["reasons"] if reason["about"] == "mounting"]
    assert "--gravity 0,9.81,0," in reason["remedy"]


@pytest.mark.large
def test_the_mounting_comes_from_the_tables_model_and_identify(capsys):
    write_recording(mounted("scara_2r", 1), Path("log.npz"))
    right = identified(capsys, "scara_2r", "log.npz", "--gravity", "0,9.81,0")[1]
    for text in ("[model]\ngravity = [0, 9.81, 0]\n", "gravity = [0, 9.81, 0]\n[model]\ngravity = [0, 0, 9.81]\n"):
        Path("fast.toml").write_text(FAST + text)
        _, reported = identified(capsys, "scara_2r", "log.npz")
        assert reported["parameters"] == right["parameters"]
    Path("fast.toml").write_text(FAST + "gravity = [0, 9.81]\n")
    assert main(["identify", "scara_2r", "log.npz", "--config", "fast.toml"]) == 1
    assert "three numbers x,y,z" in capsys.readouterr().err


def test_a_joint_that_was_held_is_locked(capsys):
    """Joint 2 of the SCARA held at 0.3 rad: the first joint alone is identified, from a log with both."""
    from steelyard.motion import quintic

    held = load_robot("scara_2r")
    points = np.zeros((2, 21))
    points[0, 1:-1] = np.random.default_rng(5).uniform(-0.45, 0.45, 19)
    points[1] = 0.3
    experiment = Experiment(control="pd", kp=(400, 12), kd=(70, 1.6), record_rate=100, encoder_quantum=1e-5)
    run = recording_of(simulate(held, quintic(points, 1.0, ["joint_1", "joint_2"]), experiment, [5]))
    run = replace(run, q=np.vstack([run.q[:1], np.full((1, run.samples), 0.3)]), qd=None)
    write_recording(run, Path("log.npz"))
    code, result = identified(capsys, "scara_2r", "log.npz", "--lock", "joint_2=0.3")
    assert code in (0, 2)
    assert [joint["name"] for joint in result["fit"]["joints"]] == ["joint_1"]
    assert found(result, "dead_column") == []
    Path("fast.toml").write_text(FAST + "lock = { joint_2 = 0.3 }\n")
    assert identified(capsys, "scara_2r", "log.npz")[1]["parameters"] == result["parameters"]
    Path("fast.toml").write_text(FAST)
    assert main(["identify", "scara_2r", "log.npz", "--lock", "joint_2=0.5"]) == 1
    assert "in recording 'log' it is between 0.3 and 0.3" in capsys.readouterr().err


@pytest.mark.large
def test_the_width_of_the_sign_is_a_flag_and_a_key(capsys):
    write_recording(scara(1), Path("log.npz"))
    sharp, smooth = (
        identified(capsys, "scara_2r", "log.npz", *flags)[1]["parameters"] for flags in ((), ("--sign-width", "0.1"))
    )
    assert sharp != smooth
    Path("fast.toml").write_text(FAST + "[model]\nsign_width = 0.1\n")
    assert identified(capsys, "scara_2r", "log.npz")[1]["parameters"] == smooth


def test_torques_of_all_joints_reversed_are_named_although_one_joint_is_noisy(capsys):
    rng = np.random.default_rng(6)

    def reversed_and_noisy(values: np.ndarray) -> None:
        values *= -1
        values[1] += rng.normal(0, 0.35 * values[1].std(), values[1].shape)

    for seed, name in ((1, "log.npz"), (2, "unseen.npz")):
        write_recording(with_torque(scara(seed), reversed_and_noisy), Path(name))
    code, result = identified(capsys, "scara_2r", "log.npz", "--validate", "unseen.npz", "--select")
    assert code == 2
    text = result["verdict"]["reasons"][0]["text"]
    assert "the torques of all joints seem reversed" in text
    assert re.search(r"the joints' residuals stay [\d.]+ % of their torques", text)  # signs of all change no residual


SPATIAL = """[robot]
name = "three"
convention = "standard"
[values]
Fvm = [20, 8, 3]
Fcm = [10, 4, 1]
Ia = [0.1, 0.05, 0.02]
""" + "".join(
    f"[[joint]]\na = {a}\nalpha_deg = {alpha}\nd = {d}\ntheta = 0\nmass = {mass}\ncentre = {centre}\n"
    f"inertia_at_centre = {inertia}\nlower = -2\nupper = 2\nvelocity = 3\neffort = 200\n"
    for a, alpha, d, mass, centre, inertia in (
        (0.4, 90, 0.3, 4, [-0.2, 0, 0.05], [0.01, 0.001, 0, 0.06, 0, 0.06]),
        (0.3, -60, 0.1, 2, [-0.1, 0.02, 0], [0.01, 0, 0.001, 0.03, 0, 0.03]),
        (0.1, 30, 0.1, 1, [-0.1, 0.02, 0.05], [0.01, 0, 0.001, 0.013, 0, 0.013]),
    )
)


@pytest.mark.large
def test_gravity_that_parameters_bend_round_is_named_although_unseen_motion_is_predicted(capsys):
    """On a wall, identified as on the floor: predicted to some per cent, and nothing impossible."""
    Path("three.toml").write_text(SPATIAL)
    arm = load_robot("three.toml").with_gravity((0.0, -9.81, 0.0))
    for seed, name in ((1, "log.npz"), (2, "unseen.npz")):
        motion = default_motion(arm, seed)
        noise = Noise("white", (0.5, 0.1, 0.05))
        run = simulate(arm, motion, Experiment(plant="ideal", record_rate=100, motor_noise=noise), [seed])
        write_recording(recording_of(run), Path(name))
    logs = ("log.npz", "--validate", "unseen.npz", "--no-prior", "--select")
    code, wrong = identified(capsys, "three.toml", *logs)
    assert wrong["validation"]["relative_error_percent"] < 15
    assert (code, wrong["verdict"]["reasons"][0]["about"]) == (2, "mounting")
    assert "--gravity 0,-9.81,0" in wrong["verdict"]["reasons"][0]["remedy"]
    code, right = identified(capsys, "three.toml", *logs, "--gravity", "0,-9.81,0")
    assert (code, right["verdict"]["grade"]) == (0, "good")
