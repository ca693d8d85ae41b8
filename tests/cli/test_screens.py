"""Screens of an arm with long joint names: on narrow and wide terminals and through a pipe no figure is ever cut."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from measured_arms import write_measured_arms
from simulated_experiments import ur10e
from steelyard.cli import main
from steelyard.cli.output import Column, Screen, print_reasons, short_names
from steelyard.motion import limits_of, quintic, quintic_profile, random_points, write_trajectory
from steelyard.recording import write_recording
from steelyard.robot import load_robot
from steelyard.verdict import Reason

SHORT_DESIGN = ["--starts", "1", "--duration", "4", "--harmonics", "2", "--floor", "none", "--rate", "30"]
SHORT_STUDY = ["--seeds", "2", "--rate", "50", "--methods", "wls,ols", "--processes", "1", "--parameters"]
FIT = ["identify", "ur10e", "log1.npz", "--method", "wls", "--reduction", "none"]
COMMANDS = {
    "identify": ("print_identification", [*FIT, "--out", "a_run_with_a_rather_long_name"]),
    "compare": ("_print", ["compare", "a_run_with_a_rather_long_name", "other", "third", "ur10e"]),
    "predict": ("print_prediction", ["predict", "other", "log1.npz", "--out", "torques_of_a_rather_long_name.csv"]),
    "export": (
        "_print",
        ["export", "other", "--urdf", "--casadi", "--samples", "2", "--force", "--out", "exported_files"],
    ),
    "model": ("print_model", ["model", "ur10e", "--payload", "paired"]),
    "calibrate": ("print_calibration", ["calibrate", "ur10e", "spoilt_points.csv", "--workspace", "5"]),
    "design": ("print_design", ["design", "ur10e", *SHORT_DESIGN, "--out", "designed"]),
    "montecarlo": ("print_study", ["montecarlo", "ur10e", "motion.toml", *SHORT_STUDY]),
}
NUMBER = re.compile(r"(?<![\w~.\[(])[-+]?\d+(?:\.\d+)?(?:e[-+]\d+)?(?![\w.\])])")
DESTINATIONS = {
    "terminal of 80": {"COLUMNS": "80", "FORCE_COLOR": "1"},
    "terminal of 120": {"COLUMNS": "120", "FORCE_COLOR": "1"},
    "pipe": {"COLUMNS": ""},
}


@pytest.fixture(scope="module")
def printers(tmp_path_factory):
    """Run every command once; return functions that print again what it printed."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("screens"))
        write_measured_arms(Path())
        write_recording(ur10e(1), "log1.npz")
        robot = load_robot("ur10e")
        points = random_points(limits_of(robot), 9, 1.5, quintic_profile(), np.random.default_rng(1))
        write_trajectory(quintic(points, 1.5, [body.joint.name for body in robot.actuated]), "motion.toml")
        for name, (printer, arguments) in COMMANDS.items():
            module = import_module(f"steelyard.cli.{'design_table' if name == 'design' else name}")
            real = getattr(module, printer)

            def keep(*given, name=name, real=real):
                found[name] = partial(real, *given)

            patch.setattr(module, printer, keep)
            assert main(arguments) in (0, 2)
            if name == "identify":
                for other in ("other", "third"):
                    shutil.copytree("a_run_with_a_rather_long_name", other)
    return found


def screen_of(printer, capsys, monkeypatch, environment: dict[str, str]) -> str:
    for key in ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "LINES"):
        monkeypatch.delenv(key, raising=False)
    for key, value in environment.items():
        if value:
            monkeypatch.setenv(key, value)
    printer()
    return re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)


@pytest.mark.parametrize("destination", DESTINATIONS)
@pytest.mark.parametrize("command", COMMANDS)
def test_no_figure_is_cut_and_no_line_is_too_long(printers, capsys, monkeypatch, command, destination):
    environment = DESTINATIONS[destination]
    screen = screen_of(printers[command], capsys, monkeypatch, environment)
    unlimited = screen_of(printers[command], capsys, monkeypatch, {"COLUMNS": "4000"})
    assert max(map(cell_len, screen.splitlines())) <= int(environment["COLUMNS"] or 80)
    assert set(NUMBER.findall(screen)) >= set(NUMBER.findall(unlimited))
    assert "…" not in screen
    assert not any(line != line.rstrip() for line in screen.splitlines())


@pytest.mark.parametrize("command", ["identify", "calibrate"])
def test_the_verdict_takes_one_line_a_row(printers, capsys, monkeypatch, command):
    lines = screen_of(printers[command], capsys, monkeypatch, DESTINATIONS["terminal of 80"]).splitlines()
    first = next(k for k, line in enumerate(lines) if line.startswith("is it plausible?"))
    rows = [line for line in lines[first:] if line.startswith(("  ", "is it", "does it", "are the"))]
    table = rows[: next((k for k, line in enumerate(rows) if not line.endswith(("good", "fair", "poor", "-"))), None)]
    assert len(table) >= 10


def test_a_real_pipe_gets_lines_of_80_columns():
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "FORCE_COLOR")}
    done = subprocess.run(
        [sys.executable, "-m", "steelyard", "model", "ur10e"], capture_output=True, text=True, check=True,
        env=environment, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.stdout


def rendered(width: int, columns: list[Column], rows: list[list[str]]) -> list[str]:
    console = Console(width=width, file=io.StringIO(), highlight=False)
    Screen(console).table(columns, rows)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_a_table_shortens_names_then_splits_and_repeats_them():
    columns = [Column("joint", "key"), Column("first"), Column("second")]
    rows = [["a_shoulder_with_a_long_name_joint", "1.2345e-05", "2.3456e-05"]]
    assert rendered(50, columns, rows)[1] == "a_shoulder_wi~_a_long_name  1.2345e-05  2.3456e-05"
    narrow = rendered(32, columns, rows)
    assert [line.split()[-1] for line in narrow if line] == ["first", "1.2345e-05", "second", "2.3456e-05"]
    assert max(map(len, narrow)) <= 32


def test_text_wraps_and_the_next_column_keeps_its_place():
    columns = [Column("unit", "word"), Column("meaning", "text")]
    lines = rendered(30, columns, [["mm", "length of the link before the elbow"], ["rad", "turn"]])
    assert lines == [
        "unit  meaning", "mm    length of the link", "      before the elbow", "rad   turn",
    ]  # fmt: skip


def test_short_names_stay_different():
    names = [f"a_very_long_name_of_joint_{k}_of_the_left_arm" for k in range(3)]
    short = short_names(names, 12)
    assert len(set(short.values())) == 3
    assert all(len(name) <= 12 for name in short.values())
    assert short_names(["elbow_joint", "shoulder_lift_joint"], 13) == {
        "elbow_joint": "elbow",
        "shoulder_lift_joint": "shoulder_lift",
    }


def test_a_reason_without_a_remedy_ends_without_a_semicolon():
    console = Console(width=80, file=io.StringIO(), highlight=False)
    print_reasons(Screen(console), [Reason("a gap in 'log'", ""), Reason("a gap", "record again")])
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == "- a gap in 'log'\n- a gap; record again\n"
