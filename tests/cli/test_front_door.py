"""What a newcomer tries first: help, version, completion, quiet runs, and files that are not there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from measured_arms import ur10e
from simulated_experiments import scara
from steelyard import __version__
from steelyard.calibration import write_measurements
from steelyard.cli import main
from steelyard.cli.app import app
from steelyard.recording import write_recording

COMMANDS = sorted(name for name in app if not name.startswith("-"))


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_recording(scara(1), "calm.npz")
    write_measurements(Path("points.csv"), ur10e(1, 40))


@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_the_version_is_printed(flag, capsys):
    assert main([flag]) == 0
    assert capsys.readouterr().out.strip() == __version__


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_no_empty_defaults_and_no_codes_of_papers(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main([command, "--help"]) == 0
    text = capsys.readouterr().out
    assert "[default: " not in text
    if command != "papers":
        assert not re.search(r"\bP[1-5]\b", text)


def test_help_of_identify_groups_its_options(capsys):
    assert main(["identify", "--help"]) == 0
    text = capsys.readouterr().out
    groups = ("Arguments", "Data", "Model", "Estimator", "Preparation", "Output")
    places = [text.index(f"─ {group} ─") for group in groups]
    assert places == sorted(places)
    assert "─ Parameters ─" not in text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_completion_knows_commands_and_options(shell, capsys):
    assert main(["--completion", shell]) == 0
    script = capsys.readouterr().out
    assert "montecarlo" in script
    assert "evaluation-cutoff" in script


def test_bash_can_read_its_completion(capsys):
    assert main(["--completion", "bash"]) == 0
    script = capsys.readouterr().out + "\ncomplete -p steelyard"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "steelyard" in done.stdout


def test_completion_is_installed_where_the_shell_looks(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["--install-completion", "bash"]) == 0
    place = tmp_path / ".local" / "share" / "bash-completion" / "completions" / "steelyard"
    assert place.is_file()
    assert str(place) in capsys.readouterr().out
    (tmp_path / ".local").rename(tmp_path / "moved")
    (tmp_path / ".local").write_text("a file in the way")
    assert main(["--install-completion", "bash"]) == 1
    assert "print it with --completion instead" in capsys.readouterr().err


QUIET = {
    "identify": (
        ["identify", "scara_2r", "calm.npz", "--out", "run"],
        r"verdict: \w+\nsaved: run/result.json\nreport: run/report.html\n",
    ),
    "calibrate": (["calibrate", "ur10e", "points.csv", "--workspace", "0"], r"verdict: \w+\n"),
    "model": (["model", "scara_2r"], r".* standard parameters = .*\n"),
    "check": (["check", "scara_2r", "calm.npz"], r"calm.npz: .*\n"),
    "design": (["design", "scara_2r", "--starts", "1", "--duration", "5"], r"made small: .* = \S+\n"),
    "montecarlo": (
        ["montecarlo", "scara_2r", "--seeds", "2", "--methods", "wls", "--rate", "50", "--processes", "1"],
        r"(- .*\n(  .*\n)*)+",
    ),
}  # fmt: skip


@pytest.mark.parametrize("command", QUIET)
def test_a_quiet_command_prints_its_verdict_and_where_it_was_saved(command, workplace, capsys):
    arguments, expected = QUIET[command]
    assert main([*arguments, "--quiet"]) in (0, 2)
    done = capsys.readouterr()
    assert re.fullmatch(expected, done.out), done.out
    assert done.err == ""


MISSING = {
    "identify": ["identify", "a.urdf", "b.csv", "--validate", "c.csv", "--config", "d.toml", "--add", "e"],
    "check": ["check", "a.urdf", "b.csv", "c.csv", "--config", "d.toml"],
    "payload": ["payload", "a", "b.csv", "c.csv", "--config", "d.toml"],
    "calibrate": ["calibrate", "a.urdf", "b.csv", "--validate", "c.csv", "--config", "d.toml"],
    "apply": ["apply", "a", "b.csv"],
    "predict": ["predict", "a", "b.csv", "c.csv", "--config", "d.toml"],
    "compare": ["compare", "a", "b", "c", "d.urdf"],
    "design": ["design", "a.urdf", "--limits", "b.toml", "--after", "c", "--config", "d.toml"],
    "montecarlo": ["montecarlo", "a.urdf", "b.toml", "--config", "c.toml"],
    "simulate": ["simulate", "a.urdf", "b.toml", "--config", "c.toml"],
    "poses": ["poses", "a.urdf", "--config", "b.toml", "--from", "c.csv", "--test", "d.csv"],
    "model": ["model", "a.urdf", "--config", "b.toml"],
}


@pytest.mark.parametrize("command", MISSING)
def test_all_missing_files_are_named_at_once(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(MISSING[command]) == 1
    error = capsys.readouterr().err
    paths = [word for word in MISSING[command][1:] if not word.startswith("-")]
    assert all(f"'{path}'" in error for path in paths)
    assert error.startswith(f"steelyard: {len(paths)} files or folders are missing: ")


def test_logs_below_a_root_are_looked_for_there(workplace, tmp_path, monkeypatch, capsys):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert main(["check", "scara_2r", "calm.npz", "--root", ".."]) == 0
    assert main(["check", "scara_2r", "calm.npz"]) == 1
