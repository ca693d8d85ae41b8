"""Names from strangers, of robots, joints, markers, payloads and files, through every command that prints them."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from simulated_experiments import scara
from steelyard.calibration import CalibrationSetup, MarkerSetup, random_configurations, simulated_measurements
from steelyard.calibration import write_measurements as write_measured
from steelyard.cli import main
from steelyard.motion import quintic, write_trajectory
from steelyard.recording import write_recording
from steelyard.robot import load_robot

FIRST = "arm[/left]\x1b[31m\x9b\u202e"
SECOND = "=HYPERLINK(1)[bold]\x07"
ROBOT = "scara[red]\x1b]0;title\x07"
PAYLOAD = "load[/]\u2066"
MARKER, PLAIN_MARKER = "@m[/x]\x1b[2J", "placeholder"
LOGS = ["run[a]\x9b.npz", "=run[/b].npz"]
TABLE = "arm[x].toml"


def table(*joints: str) -> str:
    """Return the table of the two-joint arm with a hostile name and these joints."""
    text = files("steelyard.robot").joinpath("catalogue/scara_2r.toml").read_text(encoding="utf-8")
    text = text.replace('name = "scara_2r"', f'name = {json.dumps(ROBOT)}\npayload_link = "link_2"')
    for name in joints:
        text = text.replace("[[joint]]\nalpha", f"[[joint]]\nname = {json.dumps(name)}\nalpha", 1)
    return f"{text}\n[payloads]\n{json.dumps(PAYLOAD)} = [0.01, 0, 0, 0.01, 0, 0.01, 0.1, 0, 0, 1.0]\n"


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path(TABLE).write_text(table(FIRST, SECOND))
    for seed, name in enumerate(LOGS, start=1):
        write_recording(replace(scara(seed), joints=(FIRST, SECOND), notes=("note [/]\x1b[1m",)), Path(name))
    return tmp_path


@pytest.fixture
def printed(capsys):
    """Run a command; return what it printed, which must not hold one unprintable character."""

    def run(*arguments: str, code: tuple[int, ...] = (0, 2)) -> str:
        assert main([*arguments]) in code
        done = capsys.readouterr()
        for text in (done.out, done.err):
            assert all(letter.isprintable() or letter == "\n" for letter in text), repr(text)
        return " ".join((done.err if code == (1,) else done.out).split())

    return run


def test_model_check_and_identify_print_hostile_names(workplace, printed):
    assert r"arm[/left]\x1b[31m\x9b\u202e" in printed("model", TABLE)
    assert r"run[a]\x9b.npz" in printed("check", TABLE, *LOGS)
    screen = printed("identify", TABLE, *LOGS, "--out", "=my[run]\x1b")
    assert r"scara[red]\x1b]0;title\x07" in screen
    assert r"saved: =my[run]\x1b/result.json" in screen
    content = json.loads(printed("identify", TABLE, *LOGS, "--plain", "--json"))
    assert content["robot"] == ROBOT
    assert content["fit"]["joints"][0]["name"] == FIRST
    assert json.loads(Path("=my[run]\x1b/result.json").read_text(encoding="utf-8"))["robot"] == ROBOT


def test_a_comparison_exports_no_formula_and_no_command(workplace, printed):
    run, other = "=HYPERLINK(1)[/b]\x1b", "@my_run"
    printed("identify", TABLE, *LOGS, "--plain", "--out", run)
    printed("identify", TABLE, LOGS[0], "--plain", "--out", other)
    screen = printed("compare", run, other, "--csv", "table.csv", "--latex", "table.tex")
    assert r"@my_run against =HYPERLINK(1)[/b]\x1b:" in screen
    with Path("table.csv").open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert f"'{run} value" in cells
    assert f"'{other} value" in cells
    assert not any(cell.startswith(("=", "@")) for cell in cells)
    assert r"@my\_run" in Path("table.tex").read_text()


@pytest.mark.large
def test_simulate_design_and_montecarlo_print_hostile_names(workplace, printed):
    write_trajectory(quintic(np.array([[0, 0.4], [0, 0.9]]), 1.0, [FIRST, SECOND]), "motion.toml")
    simulated = ("simulate", TABLE, "motion.toml", "--rate", "100")
    screen = printed(*simulated, "--payload", PAYLOAD, "--format", "csv")
    assert r"=HYPERLINK(1)[bold]\x07" in screen
    assert r"payload: load[/]\u2066" in printed("check", TABLE, "simulation/recording.csv")
    assert r"=HYPERLINK(1)[bold]\x07" in printed("design", TABLE, "--starts", "1", "--duration", "5")
    assert r"scara[red]\x1b" in printed("montecarlo", TABLE, "motion.toml", "--seeds", "2", "--processes", "1")


def test_poses_calibrate_and_apply_print_and_read_back_hostile_names(workplace, printed):
    Path("plain.toml").write_text(table("j1", "j2"))
    named = load_robot("plain.toml")
    markers = tuple(MarkerSetup(f"{PLAIN_MARKER}{k}", (0.1 * k, 0.2, 0.1 * k * k)) for k in range(3))
    q = random_configurations(named, 20, np.random.default_rng(1))
    setup = CalibrationSetup("link_2", markers=markers)
    write_measured(Path("plain.csv"), simulated_measurements(named, setup, q, {}, sigma=1e-4, seed=1))
    lines = Path("plain.csv").read_text().replace(PLAIN_MARKER, f"'{MARKER}").splitlines()
    lines[0] = lines[0].replace("j1", FIRST).replace("j2", f"'{SECOND}")
    Path("points[1].csv").write_text("\n".join(lines))
    screen = printed("calibrate", TABLE, "points[1].csv", "--out", "cal[1]", "--workspace", "5")
    assert r"position of @m[/x]\x1b[2J0 along x" in screen
    content = json.loads(Path("cal[1]/result.json").read_text(encoding="utf-8"))
    assert any(MARKER in row["name"] for row in content["parameters"])
    assert not Path("cal[1]/workspace.csv").read_text().splitlines()[0].split(",")[1].startswith("=")
    assert r"=HYPERL~d]\x07" in printed("poses", TABLE, "--count", "6", "--keep", "--out", "chosen")
    assert r"=HYPERLINK" not in Path("chosen/poses.csv").read_text().replace("'=", "")
    assert "of 6 targets reached" in printed("apply", "cal[1]", "chosen/poses.csv", "--out", "corrected")


def test_errors_are_one_printable_line_with_the_name_in_it(workplace, printed):
    error = printed("identify", TABLE, "no[/such]\x1b.npz", code=(1,))
    assert r"no[/such]\x1b.npz" in error
    assert r"a[/]\x9b" in printed("compare", "a[/]\x9b", "b", "--json", code=(1,))
