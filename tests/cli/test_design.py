"""``steelyard design`` as a user meets it: the whole chain, its files, its errors."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from oracles import NO_PINOCCHIO, pinocchio_model
from steelyard.cli import main
from steelyard.cli.design_table import print_design
from steelyard.excitation import DesignSettings, design_limits
from steelyard.excitation import design as design_experiment
from steelyard.motion import limit_violations, read_trajectory
from steelyard.robot import Robot, load_robot, transform_from_placement

SMALL = {"--starts": "1", "--duration": "5", "--harmonics": "2", "--rate": "50"}
FILES = {"motion.toml", "motion_010.csv", "motion_050.csv", "motion_100.csv", "report.html", "result.json"}
BARE_ARM = """
joint = [
  {alpha_deg = 0, d = 0, theta_deg = 0, r = 0.4, lower_deg = -170, upper_deg = 170, velocity_deg = 180},
  {alpha_deg = -90, d = 0.05, theta_deg = 0, r = 0, lower_deg = -100, upper_deg = 130, velocity_deg = 180},
]
[robot]
name = "bare"
torque = "motor_current"
"""
BALL_AROUND_THE_BASE = """
[[capsule]]
link = "link_2"
end = [0.3, 0, 0]
start = [0, 0, 0]
radius = 0.05
[[obstacle]]
name = "ball"
kind = "sphere"
centre = [0, 0, 0]
radius = 3
"""


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def command(*arguments: str, robot: str = "scara_2r") -> list[str]:
    """Return a small design's command; what is given comes in place of the small settings."""
    small = [word for pair in SMALL.items() if pair[0] not in arguments for word in pair]
    return ["design", robot, *small, *arguments]


def design(*arguments: str, robot: str = "scara_2r") -> int:
    return main(command(*arguments, robot=robot))


@pytest.fixture(scope="module")
def designed(tmp_path_factory):
    """The folder of a small design and what the screen said; made once."""
    folder, screen = tmp_path_factory.mktemp("designed"), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(screen):
        patch.chdir(folder)
        patch.setenv("COLUMNS", "100")
        assert design("--out", "deep/d") == 0
    return folder / "deep/d", screen.getvalue()


@pytest.mark.large
def test_a_design_is_simulated_identified_and_followed_by_the_next_one(workplace, capsys):
    noise = "[simulate]\nmotor_noise = { kind = 'white', std = [1.0, 0.1] }\n"
    Path("settings.toml").write_text(noise)
    assert main(["design", "scara_2r", "--starts", "1", "--duration", "10", "--noise", "1,0.1", "--out", "d"]) == 0
    predicted = json.loads(Path("d/result.json").read_text())["predicted_sigma"]
    simulated = ["simulate", "scara_2r", "d/motion.toml", "--rate", "100", "--config", "settings.toml"]
    assert main([*simulated, "--out", "s"]) == 0
    assert main([*simulated, "--seed", "1", "--out", "again"]) == 0
    assert json.loads(Path("s/result.json").read_text())["violations"] == []
    logs = ["s/recording.npz", "--validate", "again/recording.npz"]
    assert main(["identify", "scara_2r", *logs, "--out", "run"]) == 0
    found = {row["name"]: row for row in json.loads(Path("run/result.json").read_text())["parameters"]}
    assert set(found) == set(predicted)
    truth = json.loads(Path("s/truth.json").read_text())["parameters"]
    for name in ("ZZ2", "MX2", "Fvm1", "Fcm1"):
        assert found[name]["value"] == pytest.approx(truth[name], abs=6 * predicted[name])
    assert design("--after", "run", "--out", "next") == 0
    after = json.loads(Path("next/result.json").read_text())
    assert list(after["provenance"]["inputs"]) == ["run/result.json"]
    for name, sigma in after["predicted_sigma"].items():
        assert sigma <= found[name]["sigma"] * (1 + 1e-9), name


def test_the_folder_holds_the_motion_its_exports_and_the_result(designed):
    folder, _ = designed
    assert {path.name for path in folder.iterdir()} == FILES
    robot = load_robot("scara_2r")
    motion = read_trajectory(folder / "motion.toml", ["joint_1", "joint_2"])
    assert motion.duration == 5.0
    assert limit_violations(motion, robot) == ()
    np.testing.assert_allclose(motion.at([0.0, 5.0]).qd, 0, atol=1e-12)
    np.testing.assert_allclose(motion.at([0.0]).qdd, 0, atol=1e-10)
    for percent in (10, 50, 100):
        table = pl.read_csv(folder / f"motion_{percent:03d}.csv")
        assert table["time"][-1] == pytest.approx(500 / percent)
        fastest = np.abs(table.select("qd_joint_1", "qd_joint_2").to_numpy()).max()
        assert fastest <= percent / 100 * motion.extrema().velocity.value.max() * (1 + 1e-12)
    content = json.loads((folder / "result.json").read_text())
    assert set(content["files"]) == FILES - {"result.json", "report.html"}
    assert content["command"] == "design"
    assert content["provenance"]["settings"] == {
        "robot": "scara_2r", "starts": 1, "duration": 5.0, "harmonics": 2, "rate": 50.0,
    }  # fmt: skip
    assert all(finding["violation"] == 0 for finding in content["constraints"])
    assert [start["origin"] for start in content["starts"]] == [None]


def test_json_is_one_object_on_stdout_and_nothing_else(workplace, capsys):
    assert design("--json") == 0
    captured = capsys.readouterr()
    content = json.loads(captured.out)
    assert content["schema"] == 2
    assert content["criterion"] == "d"
    assert content["criterion_value"] == content["log10_det_covariance"]
    assert content["log10_det_covariance"] < content["random_baseline"]["log10_det_covariance"]
    assert captured.err.strip() == ""
    assert not list(workplace.iterdir())


@pytest.mark.large
def test_one_thread_or_two_give_the_same_bytes(workplace):
    results = set()
    for threads in ("1", "2"):
        assert design("--starts", "3", "--threads", threads, "--out", f"threads_{threads}") == 0
        results.add(Path(f"threads_{threads}", "result.json").read_bytes())
    assert len(results) == 1
    assert design("--starts", "3", "--seed", "1", "--out", "seed_1") == 0
    assert Path("seed_1/result.json").read_bytes() not in results


INTERRUPT = """
import os, signal, sys
from steelyard.cli import design, main
updates = []
def show(bar, news):
    updates.append(news)
    if len(updates) == {after}:
        os.kill(os.getpid(), signal.SIGINT)
design._show = show
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(os.name == "nt", reason="no process can interrupt itself by a signal there")
@pytest.mark.parametrize(
    "after", [pytest.param(1, marks=pytest.mark.large), 4, pytest.param(12, marks=pytest.mark.large)]
)
def test_an_interrupt_leaves_a_whole_result_that_says_so_or_nothing(after, workplace):
    arguments = command("--starts", "8", "--threads", "2", "--out", "d")
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPT.format(after=after), *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode == 1:
        assert not Path("d").exists()
        assert done.stderr.strip().count("\n") == 0
        assert after < 12, "a start was whole, and it was lost"
    else:
        assert done.returncode == 0, done.stderr
        assert "interrupted" in done.stdout
        assert {path.name for path in Path("d").iterdir()} == FILES
        content = json.loads(Path("d/result.json").read_text())
        assert content["interrupted"]
        assert all(finding["violation"] == 0 for finding in content["constraints"])


def test_every_format_is_written_at_every_pace(workplace, capsys):
    assert design("--format", "npz,ros2", "--file-rate", "100", "--out", "d") == 0
    names = {path.name for path in Path("d").iterdir()}
    assert names == {
        "motion.toml",
        "report.html",
        "result.json",
        *(f"motion_{p}.{k}" for p in ("010", "050", "100") for k in ("npz", "yaml")),
    }
    with np.load("d/motion_100.npz") as arrays:
        assert arrays["time"].shape == (501,)
    assert design("--format", "none", "--out", "d") == 0
    assert {path.name for path in Path("d").iterdir()} == {"motion.toml", "report.html", "result.json"}, (
        "files of another motion"
    )


def test_limits_of_a_file_are_kept_and_told(workplace, capsys):
    Path("cell.toml").write_text(
        "[joints]\nvelocity_scale = 0.5\nposition_margin = 0.5\n"
        '[[space]]\nname = "wall [east]"\nlink = "link_2"\nkind = "half_space"\nnormal = [-1, 0, 0]\noffset = -0.4\n'
    )
    assert design("--limits", "cell.toml", "--out", "d") == 0
    assert "clearance wall [east]" in capsys.readouterr().out
    content = json.loads(Path("d/result.json").read_text())
    found = {finding["name"]: finding for finding in content["constraints"]}
    assert found["velocity of joint_1"]["limit"] == 3.0
    assert found["upper of joint_2"]["limit"] == pytest.approx(np.deg2rad(150) - 0.5)
    assert found["wall [east]"]["limit"] == 0
    assert found["wall [east]"]["worst"] <= 0
    assert list(content["provenance"]["inputs"]) == ["cell.toml"]
    motion = read_trajectory("d/motion.toml", ["joint_1", "joint_2"])
    assert (0.5 * np.cos(motion.sample(1000).q[0])).max() <= 0.4 + 1e-9


def test_goals_are_told_with_what_was_reached(workplace, capsys):
    goals = ["--goal", "condition=12", "--goal", "mean_torque of joint_2=18"]
    assert design(*goals, "--json") == 0
    content = json.loads(capsys.readouterr().out)
    assert content["criterion"] == "goals"
    assert [(goal["name"], goal["wanted"]) for goal in content["goals"]] == [
        ("condition", 12.0), ("mean_torque of joint_2", 18.0),
    ]  # fmt: skip
    gamma = max((goal["reached"] - goal["wanted"]) / goal["wanted"] for goal in content["goals"])
    assert content["criterion_value"] == pytest.approx(gamma)
    assert content["goals"][0]["reached"] == pytest.approx(content["condition_number"]["raw"])


def test_a_motion_starts_from_a_posture_and_returns_to_it(workplace, capsys):
    assert design("--start", "-0.3,0.4", "--format", "ros2", "--out", "d") == 0
    motion = read_trajectory("d/motion.toml", ["joint_1", "joint_2"])
    for end in (0.0, motion.duration):
        np.testing.assert_allclose(motion.at([end]).q[:, 0], [-0.3, 0.4], atol=1e-12)
    assert limit_violations(motion, load_robot("scara_2r")) == ()


def test_settings_come_from_the_file_and_flags_win(workplace, capsys):
    Path("setup.toml").write_text(
        '[design]\nmotion = "quintic"\nmoves = 4\nduration = 6\nstarts = 1\ncriterion = "a"\nnoise = [0.2, 0.02]\n'
        "goals = {}\nformat = ['none']\n"
    )
    assert main(["design", "scara_2r", "--config", "setup.toml", "--criterion", "mean_sigma", "--out", "d"]) == 0
    content = json.loads(Path("d/result.json").read_text())
    assert (content["motion"], content["duration"], content["criterion"]) == ("quintic", 6.0, "mean_sigma")
    known = [part for part in content["predicted_relative_sigma"].values() if part is not None]
    assert 0.5 * np.mean(known) < content["criterion_value"] <= np.mean(known)  # what is zero counts as known there
    assert not any("noise" in note for note in content["notes"])
    assert list(content["provenance"]["inputs"]) == ["setup.toml"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--start", "9,0"], ["joint_1 at 9 is outside its limits"]),
        (["--start", "0"], ["1 numbers", "2 finite"]),
        (["--start", "0,2.55"], ["joint_2 at 2.55 is outside its limits -2.487 to 2.487", "--position-scale"]),
        (["--floor", "low"], ["floor is 'low'", "a height [m], or 'none'"]),
        (["--floor", "1"], ["rule 'floor - link_1 (start)' cannot be kept", "--floor none"]),
        (["--floor", "nan"], ["floor is nan"]),
        (["--position-scale", "1.2"], ["position_scale is 1.2", "at most 1"]),
        (["--gravity", "0,9.81"], ["gravity is [0.0, 9.81]", "three numbers"]),
        (["--gravity", "0,0,981"], ["gravity 0,0,981 has size 981 m/s^2", "is 0,0,9.81"]),
        (["--config", "floor.toml"], ["floor is 'deep'"]),
        (["--start", "a,b"], ["--start is 'a,b'", "numbers"]),
        (["--start", "nan,0"], ["finite"]),
        (["--duration", "0.1"], ["duration 0.1 s is too short", "longer duration, fewer harmonics"]),
        (["--duration", "long"], ["--duration is 'long'"]),
        (["--duration", "1,2,3"], ["smallest and the largest"]),
        (["--duration", "nan"], ["duration nan"]),
        (["--duration", "-1"], ["duration -1"]),
        (["--harmonics", "0"], ["0 harmonics; at least 2"]),
        (["--harmonics", "2.5"], ["harmonics is 2.5", "a whole number, or the smallest"]),
        (["--harmonics", "nan"], ["harmonics is nan"]),
        (["--harmonics", "5,3"], ["smallest first"]),
        (["--motion", "quintic", "--moves", "1"], ["at least 2"]),
        (["--noise", "x"], ["--noise is 'x'"]),
        (["--noise", "-1"], ["positive standard deviation"]),
        (["--noise", "1,2,3"], ["noise has 3 numbers"]),
        (["--rate", "0"], ["rate 0"]),
        (["--position-noise", "-1"], ["position_noise is -1"]),
        (["--position-noise", "1e-4", "--criterion", "condition"], ["choose d, a, e or condition_weighted"]),
        (["--resonance", "0.2"], ["lowest resonance is 0.2 Hz"]),
        (["--criterion", "worst_sigm"], ["criterion is 'worst_sigm'", "did you mean 'worst_sigma'"]),
        (["--goal", "condtion=3"], ["'condtion'", "did you mean 'condition'"]),
        (["--goal", "condition"], ["NAME=VALUE"]),
        (["--goal", "condition=-3"], ["above 0"]),
        (["--goal", "mean_torque of joint_9=3"], ["unknown goal", "mean_torque of joint_2"]),
        (["--parameters", "XX9"], ["'XX9' is no base parameter"]),
        (["--effects", "inertia,Fwm"], ["unknown effect 'Fwm'"]),
        (["--format", "pdf"], ["format is 'pdf'", "csv, npz, ros2, urscript"]),
        (["--format", "urscript"], ["6 joints", "choose another format"]),
        (["--file-rate", "1e9"], ["rate [Hz] is 1000000000.0", "at most 10000"]),
        (["--carries", "brick"], ["carries 'brick'", "--payload is none"]),
        (["--payload", "paired", "--carries", "brick"], ["knows no payload 'brick'"]),
        (["--starts", "0"], ["starts is 0"]),
        (["--seed", "-1"], ["seed is -1"]),
        (["--threads", "0"], ["threads is 0"]),
        (["--limits", "nowhere.toml"], ["nowhere.toml"]),
        (["--limits", "swapped.toml"], ["swapped.toml", "may move from 1 to -1"]),
        (["--limits", "around.toml"], ["rule 'ball - link_2' cannot be kept"]),
        (["--after", "nowhere"], ["no such file or folder: 'nowhere'"]),
        (["--config", "texts.toml"], ["start is ['a', 0]", "a list"]),
        (["--config", "typo.toml"], ["unknown key 'harmonic'", "did you mean 'harmonics'"]),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_before_any_search_and_leaves_nothing(
    arguments, expected, workplace, capsys, monkeypatch
):
    Path("swapped.toml").write_text("[joints]\nposition = [[1, -1], [0, 1]]\n")
    Path("around.toml").write_text(BALL_AROUND_THE_BASE)
    Path("texts.toml").write_text('[design]\nstart = ["a", 0]\n')
    Path("typo.toml").write_text("[design]\nharmonic = 3\n")
    Path("floor.toml").write_text('[design]\nfloor = "deep"\n')
    monkeypatch.setattr("steelyard.excitation.motion_design.search", None)
    assert design(*arguments, "--out", "d") == 1
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    for text in expected:
        assert text in captured.err
    assert not Path("d").exists()


def test_an_arm_without_limits_or_values_is_told_what_is_missing(workplace, capsys):
    Path("bare.toml").write_text(BARE_ARM)
    assert design("--out", "d", robot="kuka_kr270") == 1
    assert "no velocity limit is known for any joint; write velocity" in capsys.readouterr().err
    assert design("--criterion", "worst_sigma", "--out", "d", robot="bare.toml") == 1
    error = capsys.readouterr().err
    assert "criterion 'worst_sigma' compares sigmas with the parameters' sizes, and none are known" in error
    assert error.count("\n") == 1
    assert not Path("d").exists()
    assert design(robot="bare.toml") == 0
    assert "weak parameters cannot be listed because nominal values are missing" in capsys.readouterr().out


@pytest.mark.parametrize("out", ["file", "file/below"])
def test_a_folder_that_is_a_file_is_refused_before_any_search(out, workplace, capsys, monkeypatch):
    Path("file").write_text("mine")
    monkeypatch.setattr("steelyard.excitation.motion_design.search", None)
    assert design("--out", out) == 1
    assert "'file' is a file" in capsys.readouterr().err
    assert Path("file").read_text() == "mine"


def test_a_torque_that_friction_uses_up_is_named(workplace, capsys):
    Path("weak.toml").write_text("[joints]\ntorque = [0.2, 0.05]\n")
    assert design("--limits", "weak.toml", "--out", "d") == 1
    error = capsys.readouterr().err.strip()
    assert error.startswith("steelyard: torque of joint_1: its Coulomb friction 0.58 alone reaches the limit 0.2")
    assert error.count("\n") == 0
    assert not Path("d").exists()


FLANGES = {"ur10e": "ee_link", "kuka_lwr4": "flange"}
PARTS = np.linspace(0, 1, 11)


def segments_by_pinocchio(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Return both ends of every moving link and of the base (n + 1, 2, N, 3) at postures (n, N), the base last."""
    pin = pytest.importorskip("pinocchio", reason=NO_PINOCCHIO)
    model = pinocchio_model(robot)
    data, count = model.createData(), len(robot.bodies)
    flange = transform_from_placement(robot.frame(FLANGES[robot.name]).placement)[1]
    ends = np.empty((count + 1, q.shape[1], 3))
    for instant, posture in enumerate(q.T):
        pin.forwardKinematics(model, data, posture)
        ends[:count, instant] = [data.oMi[number].translation for number in range(1, count + 1)]
        ends[count, instant] = data.oMi[count].act(flange)
    foot = np.broadcast_to([0.0, 0.0, robot.floor or 0.0], ends[0].shape)
    moving = np.stack([ends[:-1], ends[1:]], axis=1)
    return np.concatenate([moving, np.stack([foot, ends[0]])[None]])


def distance_of_segments(first: np.ndarray, second: np.ndarray) -> float:
    """Return the least distance over N instants of points along the first (2, N, 3) from the second."""
    points = first[0] + PARTS[:, None, None] * (first[1] - first[0])
    along = second[1] - second[0]
    part = np.clip(((points - second[0]) * along).sum(-1) / np.maximum((along**2).sum(-1), 1e-12), 0, 1)
    return float(np.linalg.norm(points - second[0] - part[..., None] * along, axis=-1).min())


@pytest.mark.parametrize("name", ["ur10e", "kuka_lwr4"])
@pytest.mark.large
def test_pinocchio_finds_the_whole_motion_above_the_floor_and_clear_of_the_arm_itself(name, workplace, capsys):
    form = "urscript" if name == "ur10e" else "none"
    assert design("--out", "d", "--format", form, "--json", robot=name) in (0, 2)
    assert form == "none" or "def steelyard_motion():" in Path("d/motion_010.script").read_text()
    content = json.loads(Path("d/result.json").read_text())
    robot = load_robot(name)
    motion = read_trajectory("d/motion.toml", [body.joint.name for body in robot.actuated])
    times = np.linspace(0, motion.duration, 20_000)
    links = segments_by_pinocchio(robot, motion.at(times).q)
    radius = float(re.findall(r"radius (\d\.\d+) m", content["capsules"])[0])  # rounded to 1 mm
    assert robot.floor is not None
    assert links[:-1, ..., 2].min() >= robot.floor + radius
    names = [*(body.link for body in robot.bodies), robot.root]
    checked = {rule["name"] for rule in content["constraints"]}
    pairs = 0
    for a, b in itertools.combinations(range(len(names)), 2):
        if {f"{names[a]} - {names[b]}", f"{names[b]} - {names[a]}"} & checked:
            assert distance_of_segments(links[a], links[b]) >= 2 * radius
            pairs += 1
        elif abs(a - b) > 1 and {a, b} != {0, len(names) - 1}:
            assert any(f"{names[a]} - {names[b]}" in text for text in content["not_checked"])
    assert pairs >= 15
    assert f"self-collision ({pairs} pairs of links)" in content["checked"]
    for body, positions in zip(robot.actuated, motion.at(times).q, strict=True):
        assert np.abs(positions).max() <= 0.95 * body.joint.limits.upper + 1e-9


def test_what_is_proven_and_what_is_not_checked_stand_in_the_first_lines(designed):
    _, screen = designed
    head, _, rest = screen.partition("log10 det of the covariance =")
    printed = " ".join(head.split())
    assert len(head.splitlines()) < 12
    assert "proven at every instant: positions (95 % of their ranges); velocities; accelerations; motor" in printed
    assert "floor at -0.5 m (by the robot's description); self-collision (1 pair of links)" in printed
    assert "capsules for links: assumed along all links, radius 0.075 m from 15 % of" in printed
    assert "not checked: neighbouring links; obstacles (none are given); shape of tool and payload; cables" in printed
    assert "proven" not in rest


def test_a_limit_that_nobody_checks_is_not_called_proven(workplace, capsys):
    Path("bare.toml").write_text(BARE_ARM)
    assert design("--json", robot="bare.toml") == 0
    content = json.loads(capsys.readouterr().out)
    assert not any("torque" in text or "floor" in text for text in content["checked"])
    assert "torques (their limits or the inertias are unknown)" in content["not_checked"]
    assert "floor (its height is unknown; give it by --floor HEIGHT)" in content["not_checked"]


@pytest.mark.large
def test_flags_set_the_floor_the_mounting_and_the_part_of_the_ranges(workplace, capsys):
    assert design("--json", "--floor", "none", "--position-scale", "1") == 0
    content = json.loads(capsys.readouterr().out)
    assert "floor (switched off)" in content["not_checked"]
    assert content["checked"][0] == "positions"
    found = {finding["name"]: finding["limit"] for finding in content["constraints"]}
    assert found["upper of joint_2"] == pytest.approx(np.deg2rad(150))
    Path("wall.toml").write_text("[design]\ngravity = [9.81, 0, 0]\nfloor = -1.5\nposition_scale = 0.5\n")
    assert design("--json", "--config", "wall.toml") == 0
    content = json.loads(capsys.readouterr().out)
    assert "floor at -1.5 m (as given)" in content["checked"]
    assert content["checked"][0] == "positions (50 % of their ranges)"
    assert design("--json", "--config", "wall.toml", "--floor", "none", "--gravity", "0,0,9.81") == 0
    assert "floor (switched off)" in json.loads(capsys.readouterr().out)["not_checked"]


def test_a_start_posture_below_the_floor_is_one_line_with_what_to_do(workplace, capsys, monkeypatch):
    monkeypatch.setattr("steelyard.excitation.motion_design.search", None)
    assert design("--start", "0,2.5,0,0,0,0", "--out", "d", robot="ur10e") == 1
    error = capsys.readouterr().err
    assert error.startswith("steelyard: start posture: clearance 'floor - ")
    assert "start elsewhere, or change that rule (--floor, --limits)" in error
    assert error.count("\n") == 1
    assert not Path("d").exists()


def test_a_scale_on_torque_limits_promises_no_smaller_sigmas(workplace, capsys):
    Path("less.toml").write_text("[joints]\ntorque_scale = 0.8\n")
    sigmas = []
    for limits in ((), ("--limits", "less.toml")):
        assert design("--json", "--seed", "1", *limits) == 0
        sigmas.append(json.loads(capsys.readouterr().out)["predicted_sigma"])
    for name, sigma in sigmas[0].items():
        assert sigmas[1][name] >= 0.95 * sigma, name


@cache
def designed_near_zero():
    """Return a design, made from a file in the working folder."""
    Path("near_zero.toml").write_text("[joints]\nlower = [0.0, 0.5]\nupper = [1.0, 2.0]\nacceleration = inf\n")
    robot = load_robot("scara_2r")
    settings = DesignSettings(duration=5.0, harmonics=2, starts=1)
    return design_experiment(robot, settings, limits=design_limits(robot, Path("near_zero.toml")))


@pytest.mark.parametrize("columns", [80, 120])
def test_the_screen_fits_keeps_brackets_and_has_units(columns, workplace):
    found = designed_near_zero()
    console = Console(width=columns, record=True, file=open(os.devnull, "w"), highlight=False)  # noqa: SIM115
    print_design(found, Path("[here]"), ["motion.toml", "motion_010.csv"], console)
    console.file.close()
    text = console.export_text()
    assert max(len(line.rstrip()) for line in text.splitlines()) <= columns
    assert "saved in [here]: motion.toml" in text
    rows = {line.split("  ")[0].strip(): line.split() for line in text.splitlines() if " of joint_" in line}
    used = {name: float(cells[cells.index("%") - 1]) for name, cells in rows.items()}
    assert used["lower of joint_1"] > 50
    assert all(part <= 100 for part in used.values())
    assert ">= 0.5" in text
    assert "rad/s^2" in text
    assert "N m" in text
