"""The command line: exit codes, one clear line for every mistake, JSON alone on stdout."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from arms import SKEWED_CHAIN
from steelyard.cli import main

ENTITY_BOMB = (
    '<?xml version="1.0"?><!DOCTYPE robot [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    '<robot name="bomb"><link name="&b;"/></robot>'
)
TWO_LINKS = '<link name="a"/><link name="b"/>'


def joint(name: str = "j", kind: str = "revolute", parent: str = "a", child: str = "b", inside: str = "") -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<axis xyz="0 0 1"/>{inside}</joint>'
    )


def robot(*content: str) -> str:
    return f'<robot name="r">{"".join(content)}</robot>'


def heavy(mass: str) -> str:
    inertia = '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
    return f'<link name="a"/><link name="b"><inertial><mass value="{mass}"/>{inertia}</inertial></link>'


DH_ROW = "alpha_deg = 0\nd = 0\ntheta_deg = 0\n"

# File, its content, and texts that the one line must hold: what is wrong, what was got or is allowed.
BAD_FILES = {
    "not XML": ("arm.urdf", "this is no XML", ["not XML", "URDF"]),
    "empty": ("arm.urdf", "", ["empty"]),
    "a loop": ("arm.urdf", robot(TWO_LINKS, joint(), joint("k", parent="b", child="a")), ["loop"]),
    "two roots": ("arm.urdf", robot(TWO_LINKS, '<link name="c"/>', joint()), ["root", "'a'", "'c'"]),
    "no such link": ("arm.urdf", robot(TWO_LINKS, joint(child="c")), ["'c'", "'j'"]),
    "negative mass": ("arm.urdf", robot(heavy("-1"), joint()), ["mass", "-1"]),
    "mass not finite": ("arm.urdf", robot(heavy("nan"), joint()), ["mass", "nan"]),
    "limit not finite": (
        "arm.urdf", robot(TWO_LINKS, joint(inside='<limit lower="-1" upper="nan" effort="1" velocity="1"/>')),
        ["'j'", "nan"],
    ),
    "negative limit": (
        "arm.urdf", robot(TWO_LINKS, joint(inside='<limit lower="0" upper="1" effort="1" velocity="-2"/>')),
        ["velocity", "-2"],
    ),
    "lower above upper": (
        "arm.urdf", robot(TWO_LINKS, joint(inside='<limit lower="2" upper="1" effort="1" velocity="2"/>')),
        ["lower limit 2", "upper limit 1"],
    ),
    "unknown joint type": ("arm.urdf", robot(TWO_LINKS, joint(kind="revolut")), ["'revolut'", "mean 'revolute'"]),
    "entity bomb": ("arm.urdf", ENTITY_BOMB, ["DOCTYPE", "delete"]),
    "xacro": ("arm.urdf.xacro", robot(), ["xacro", "expand it first"]),
    "missing column": ("arm.toml", f'[robot]\nname = "r"\n[[joint]]\n{DH_ROW}', ["column 'r'", "joint_1"]),
    "unknown key": ("arm.toml", f'[robot]\nname = "r"\n[[joint]]\n{DH_ROW}r = 0\nlowr = 1', ["'lowr'", "did you mean"]),
    "not TOML": ("arm.toml", "[robot\n", ["not TOML"]),
    "unknown ending": ("arm.step", "solid", ["'.step'", "allowed"]),
}  # fmt: skip


def error_line(capsys, arguments: list[str]) -> str:
    """Return the one line a failing command prints."""
    assert main(arguments) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("steelyard: ")
    assert captured.err.count("\n") == 1
    return captured.err


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_robot_file_gets_one_clear_line_and_exit_1(case, tmp_path, monkeypatch, capsys):
    name, content, expected = BAD_FILES[case]
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(content)
    line = error_line(capsys, ["model", name, "--out", "run"])
    assert name in line
    for text in expected:
        assert text in line, line
    assert not Path("run").exists()


def test_a_missing_file_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert "gone.urdf" in error_line(capsys, ["model", "gone.urdf"])


def test_a_200_mb_urdf_is_refused_at_once(tmp_path, capsys):
    path = tmp_path / "huge.urdf"
    with path.open("wb") as file:
        file.truncate(200_000_000)
    assert "MB" in error_line(capsys, ["model", str(path)])


def test_an_impossible_inertia_is_a_note_that_names_the_link(tmp_path, capsys):
    path = tmp_path / "arm.urdf"
    impossible = '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="5"/>'
    link = f'<link name="b"><inertial><mass value="1"/>{impossible}</inertial></link>'
    path.write_text(robot('<link name="a"/>', link, joint(kind="continuous")))
    assert main(["model", str(path), "--json"]) == 0
    (note,) = json.loads(capsys.readouterr().out)["notes"]
    assert "link 'b': inertia is not physically possible" in note


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["model", "kuka_lwr"], ["unknown robot 'kuka_lwr'", "did you mean 'kuka_lwr4'"]),
        (["model"], ["ROBOT"]),
        (["modle", "kuka_lwr4"], ["modle", "Did you mean"]),
        (["model", "kuka_lwr4", "--torqe", "motor"], ["--torqe", "--torque"]),
        (["model", "kuka_lwr4", "--torque", "axle"], ["axle", "motor"]),
        (["model", "kuka_lwr4", "--effects", "inertia,Fvn"], ["unknown effect 'Fvn'", "did you mean"]),
        (["model", "kuka_lwr4", "--gravity", "0,0"], ["gravity '0,0'", "three numbers"]),
        (["model", "kuka_lwr4", "--gravity", "0,0,down"], ["'down' is not a number"]),
        (["model", "kuka_lwr4", "--gravity", "0,0,nan"], ["finite"]),
        (["model", "kuka_lwr4", "--gravity", "0,0,-1"], ["gravity 0,0,-1 has size 1 m/s^2", "is 0,0,-9.81"]),
        (["model", "kuka_lwr4", "--lock", "joint_9=1"], ["no joint 'joint_9'", "joint_1"]),
        (["model", "kuka_lwr4", "--lock", "joint_1"], ["JOINT=POSITION"]),
        (["model", "kuka_lwr4", "--config", "none.toml"], ["none.toml", "no such file"]),
    ],
)
def test_a_wrong_call_gets_one_clear_line_and_exit_1(arguments, expected, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    line = error_line(capsys, arguments)
    for text in expected:
        assert text in line, line


def test_an_error_with_json_is_one_object(capsys):
    assert main(["model", "kuka_lwr", "--json"]) == 1
    captured = capsys.readouterr()
    reported = json.loads(captured.out)["error"]
    assert reported["kind"] == "RobotError"
    assert captured.err == f"steelyard: {reported['message']}\n"


def counts(capsys, *arguments: str) -> dict[str, int]:
    assert main(["model", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)["counts"]


def test_the_command_counts_as_published(capsys):
    paired = ("kuka_lwr4", "--payload", "paired")
    assert counts(capsys, *paired, "--torque", "both") == {
        "standard": 129, "without_effect": 11, "regrouped": 16, "base": 102,
    }  # fmt: skip
    assert counts(capsys, *paired, "--torque", "motor", "--gravity", "-4.905,0,-8.4957")["base"] == 81
    assert counts(capsys, "scara_2r")["base"] == 8


def test_a_config_file_is_read_and_flags_win(tmp_path, capsys):
    config = tmp_path / "steelyard.toml"
    config.write_text('[model]\ntorque = "joint"\npayload = "paired"\n[identify]\nanything = 1\n')
    assert counts(capsys, "kuka_lwr4", "--config", str(config))["base"] == 74
    assert counts(capsys, "kuka_lwr4", "--config", str(config), "--torque", "motor")["base"] == 79


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('[model]\ntorqe = "joint"', ["unknown key 'torqe'", "did you mean 'torque'"]),
        ("[model]\ntorque = 3", ["[model]: torque is 3; allowed: a text"]),
        ("[model]\nsign_width = true", ["[model]: sign_width is True; allowed: a number"]),
        ("model = 3", ["model is 3; allowed: a table"]),
        ("[model", ["not TOML"]),
    ],
)
def test_a_bad_config_file_gets_one_clear_line(content, expected, tmp_path, capsys):
    config = tmp_path / "steelyard.toml"
    config.write_text(content)
    line = error_line(capsys, ["model", "kuka_lwr4", "--config", str(config)])
    for text in expected:
        assert text in line, line


def test_a_locked_joint_disappears_from_the_tree(tmp_path, capsys):
    path = tmp_path / "arm.urdf"
    path.write_text(SKEWED_CHAIN)
    assert main(["model", str(path), "--lock", "elbow=0.4", "--json"]) == 0
    names = json.loads(capsys.readouterr().out)["names"]
    assert [entry["joint"] for entry in names.values()] == ["shoulder", "wrist"]


def test_the_printed_model_tells_tree_base_and_reasons(capsys):
    assert main(["model", "kuka_lwr4", "--payload", "paired"]) == 0
    out = capsys.readouterr().out
    assert "129 standard parameters = 102 base + 16 regrouped + 11 without effect" in out
    assert re.search(r"joint_7 +7 +6 .* revolute +link_7", out)
    assert "MY4R = MY4 - MZ5 - 0.39 M5 - 0.39 M6 - 0.39 M7" in out
    assert "link 1 turns only about its z axis" in out


def test_help_does_not_wait_for_heavy_imports():
    script = (
        "import sys\nfrom steelyard.cli import main\nmain(['--help'])\n"
        "heavy = {'numpy', 'scipy', 'casadi', 'llvmlite', 'lxml', 'plotly', 'polars'} & set(sys.modules)\n"
        "sys.exit(f'imported for --help: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "model" in done.stdout


def test_a_closed_pipe_is_no_error():
    process = subprocess.Popen(
        [sys.executable, "-m", "steelyard", "model", "scara_2r", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout
    assert process.stderr
    process.stdout.close()
    assert process.wait() == 0
    assert process.stderr.read() == b""
    process.stderr.close()
