"""``steelyard montecarlo`` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steelyard.cli import main
from steelyard.motion import quintic, write_trajectory

CONFIG = """
[montecarlo]
methods = ["wls", "ols"]
seeds = 4
processes = 1

[simulate]
plant = "ideal"
record_rate = 100.0
motor_noise = { kind = "white", std = [0.5, 0.02] }

[identify]
cutoff = 20.0
decimation = 5
"""


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    points = [[0, 0.4, -0.3, 0.2, -0.4, 0], [0, 1.0, -1.5, 2.0, -0.5, 0]]
    write_trajectory(quintic(points, 1.0, ["joint_1", "joint_2"]), "motion.toml")
    Path("settings.toml").write_text(CONFIG)
    return tmp_path


def study(*arguments: str) -> int:
    return main(["montecarlo", "scara_2r", "motion.toml", "--config", "settings.toml", *arguments])


def test_the_table_has_a_row_a_case_and_the_folder_holds_all(workplace, capsys):
    assert study("--noise-levels", "0.5,1", "--out", "run", "--parameters") == 0
    shown = capsys.readouterr().out
    assert shown.count("\nwls") == 4  # two rows, and two tables of parameters
    assert "worst bias" in shown
    assert "ZZ1R" in shown
    assert "saved:" in shown
    folder = Path("run")
    assert {path.name for path in folder.iterdir()} == {"result.json", "report.html", "timing.json", "runs"}
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert [(case["method"], case["noise_level"]) for case in result["cases"]] == [
        ("wls", 0.5), ("wls", 1.0), ("ols", 0.5), ("ols", 1.0),
    ]  # fmt: skip
    assert result["provenance"]["settings"]["montecarlo"]["seeds"] == 4
    assert {Path(name).name for name in result["provenance"]["inputs"]} == {"motion.toml", "settings.toml"}
    assert len(json.loads((folder / "timing.json").read_text(encoding="utf-8"))) == 4


def test_json_is_one_object_with_every_figure_and_the_times(workplace, capsys):
    assert study("--json") == 0
    content = json.loads(capsys.readouterr().out)
    assert content["command"] == "montecarlo"
    assert content["seeds"] == {"first": 0, "count": 4}
    assert content["bound"] == {"is_known": True, "reason": None}
    assert len(content["seconds"]) == 2
    (first, _) = content["cases"]
    assert first["runs"] == 4
    assert first["failure_rate"] == 0
    assert set(first["checks_by_bound"]) == {"means_within_68", "variances_within_90"}
    one = first["parameters"][0]
    assert one["name"] == "ZZ1R"
    assert one["true"] == pytest.approx(3.42)
    assert one["bias_interval"][0] <= one["bias"] <= one["bias_interval"][1]
    assert one["coverage_interval"][0] <= one["coverage"] <= one["coverage_interval"][1]


def test_the_same_study_gives_the_same_bytes_made_at_once_or_in_two_goes(workplace):
    assert study("--out", "once") == 0
    assert study("--seeds", "2", "--out", "twice") == 0
    assert study("--out", "twice") == 0
    assert Path("once/result.json").read_bytes() == Path("twice/result.json").read_bytes()


def test_without_trajectory_and_noise_the_arm_gets_its_own(workplace, capsys):
    Path("few.toml").write_text('[montecarlo]\nseeds = 2\nprocesses = 1\n[simulate]\nplant = "ideal"\n')
    arguments = ["--methods", "wls", "--rate", "50", "--config", "few.toml", "--out", "run"]
    assert main(["montecarlo", "scara_2r", *arguments]) == 0
    assert "2 % of each joint's largest torque" in " ".join(capsys.readouterr().out.split())
    first = Path("run/result.json").read_bytes()
    assert main(["montecarlo", "scara_2r", "run/motion.toml", *arguments[:-1], "again"]) == 0
    known = json.loads(first)["cases"]
    assert json.loads(Path("again/result.json").read_text(encoding="utf-8"))["cases"] == known


def test_a_method_that_fails_in_every_run_ends_with_2(workplace, capsys):
    Path("settings.toml").write_text(CONFIG.replace("decimation = 5", "decimation = 100"))
    assert study("--methods", "wls", "--json") == 2
    (case,) = json.loads(capsys.readouterr().out)["cases"]
    assert case["failure_rate"] == 1
    assert [failure["seed"] for failure in case["failures"]] == [0, 1, 2, 3]
    assert case["parameters"] == []
    assert case["worst_bias"] is None


def test_an_interrupt_says_what_is_kept(workplace, capsys, monkeypatch):
    def interrupted(given, study, folder, processes, progress, scheduler):
        progress(3, 8)
        raise KeyboardInterrupt

    monkeypatch.setattr("steelyard.study.montecarlo", interrupted)
    assert study("--out", "run") == 1
    assert "3 runs are saved in" in capsys.readouterr().err
    assert study() == 1
    assert "no run is saved; with --out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--methods", "wsl"], ["method is 'wsl'", "did you mean 'wls'"]),
        (["--seeds", "0"], ["seeds: got 0", "at least 2"]),
        (["--seeds", "1"], ["one run has no spread"]),
        (["--noise-levels", "0"], ["noise_levels is 0.0", "above 0"]),
        (["--noise-levels", "loud"], ["--noise-levels is 'loud'", "numbers separated by commas"]),
        (["--processes", "0"], ["processes: got 0"]),
        (["--torque", "joint"], ["torque 'joint'", "measures motor torques only"]),
        (["--effects", "inertia,magic"], ["unknown effect 'magic'"]),
    ],
)
def test_a_bad_study_gets_one_clear_line(arguments, expected, workplace, capsys):
    assert study(*arguments, "--out", "run") == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    for text in expected:
        assert text in error, error
    assert not Path("run/result.json").exists()


def test_an_arm_without_inertias_and_a_folder_of_another_study_are_refused(workplace, capsys):
    assert main(["montecarlo", "kuka_kr270"]) == 1
    assert "cannot be simulated: no inertia of link" in capsys.readouterr().err
    assert study("--seeds", "2", "--methods", "wls", "--out", "run") == 0
    assert study("--seeds", "2", "--methods", "wls", "--out", "run", "--rate", "50") == 1
    error = capsys.readouterr().err
    assert "holds runs of another study (other settings of the experiment)" in error
    assert error.count("\n") == 1
