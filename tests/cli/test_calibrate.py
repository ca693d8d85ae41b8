"""The commands about where an arm is: from measured positions to corrected targets, on the screen and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from steelyard.calibration import CalibrationSetup, FrameSetup, MarkerSetup, simulated_measurements
from steelyard.calibration.application.calibrated_arm import random_configurations
from steelyard.calibration.chain.problem import measured_problem
from steelyard.calibration.chain.simulated import planned_measurements
from steelyard.cli import main
from steelyard.robot import load_robot

ROBOT = load_robot("ur10e")
JOINTS = [body.joint.name for body in ROBOT.actuated]
TRUTH = {"offset2": 2e-3, "z3": 0.8e-3, "offset4": -1.5e-3, "rx3": 0.7e-3}
SETUP = """
[measurement]
position = "mm"
link = "ee_link"
"""
MARKERS = {"a": (0.1, 0.0, 0.05), "b": (0.0, 0.1, 0.05), "c": (-0.1, -0.05, 0.1)}


def write_measurements(path: Path, count: int, seed: int, sigma: float = 3e-5) -> None:
    markers = tuple(MarkerSetup(name, place) for name, place in MARKERS.items())
    setup = CalibrationSetup(link="ee_link", base=FrameSetup((0.3, -0.2, 0.5), (0.1, 0.0, 1.0)), markers=markers)
    q = random_configurations(ROBOT, count, np.random.default_rng(seed)) / 3
    measured = simulated_measurements(ROBOT, setup, q, TRUTH, sigma=sigma, seed=seed)
    rows = [",".join(["pose", "marker", "x", "y", "z", *JOINTS])]
    for k in range(measured.rows):
        numbers = [*(1e3 * measured.value[k]), *measured.q[:, k]]
        rows.append(
            ",".join([str(measured.pose[k]), measured.markers[measured.marker[k]], *map(repr, map(float, numbers))])
        )
    path.write_text("\n".join(rows) + "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("calibrate")
    (place / "setup.toml").write_text(SETUP)
    write_measurements(place / "points.csv", 30, 1)
    write_measurements(place / "others.csv", 12, 2)
    return place


@pytest.fixture(scope="module")
def run(folder) -> Path:
    command = ["calibrate", "ur10e", str(folder / "points.csv"), "--config", str(folder / "setup.toml")]
    assert main(
        [*command, "--validate", str(folder / "others.csv"), "--out", str(folder / "run"), "--workspace", "100"]
    ) in (0, 2)
    return folder / "run"


def test_the_arm_is_told_with_its_accuracy(run):
    content = json.loads((run / "result.json").read_text())
    assert content["command"] == "calibrate"
    assert content["verdict"]["grade"] in ("good", "fair")
    found = {row["name"]: row for row in content["parameters"]}
    for name in ("z3", "offset4", "rx3"):
        assert found[name]["low"] - found[name]["sigma"] < TRUTH[name] < found[name]["high"] + found[name]["sigma"]
        assert set(found[name]) >= {"name", "value", "sigma", "unit", "nominal"}
    assert content["before"]["mean_mm"] > 0.5
    assert content["held_out_is"] == "own files"
    for what in ("after", "held_out"):
        assert set(content[what]) >= {"mean_mm", "rms_mm", "p95_mm", "max_mm"}
        assert content[what]["mean_mm"] < 0.1
    assert {row["name"] for row in content["invisible"]} >= {"offset1"}
    assert all(row["why"] for row in content["invisible"])
    assert content["outliers"] == []
    assert content["weights"]
    assert content["workspace"]["configurations"] == 100
    assert (run / "workspace.csv").read_text().count("\n") == 101
    assert (run / "calibration.yaml").read_text().startswith("#")


def test_targets_are_corrected_so_that_the_true_arm_reaches_them(run, folder, capsys):
    q = random_configurations(ROBOT, 5, np.random.default_rng(7)) / 4
    (folder / "targets.csv").write_text(
        ",".join(JOINTS) + "\n" + "\n".join(",".join(repr(float(x)) for x in column) for column in q.T) + "\n"
    )
    assert main(["apply", str(run), str(folder / "targets.csv"), "--out", str(folder / "applied"), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["reached"] == content["of"] == 5
    assert all(row["residual_mm"] < 1e-6 < row["sigma_mm"] for row in content["targets"])
    assert (folder / "applied" / "targets.csv").read_text().count("\n") == 6
    setup = CalibrationSetup(
        link="ee_link", base=FrameSetup((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), known=True),
        markers=(MarkerSetup("a", MARKERS["a"], known=True),),
    )  # fmt: skip
    problem = measured_problem(ROBOT, setup, planned_measurements(ROBOT, setup, q))
    truth = np.array([TRUTH.get(each.name, 0.0) for each in problem.parameters])
    corrected = np.array([[row["joints"][name] for name in JOINTS] for row in content["targets"]]).T
    wanted, reached = problem.frame_pose(0 * truth, q), problem.frame_pose(truth, corrected)
    moved = problem.frame_pose(truth, q)
    # Errors that are indistinguishable from the base stay with it: the arm is corrected up to one common motion.
    assert np.ptp(reached[1] - wanted[1], axis=0).max() < 0.5 * np.ptp(moved[1] - wanted[1], axis=0).max()


def test_the_screen_says_the_verdict_first(folder, capsys):
    command = [
        "calibrate",
        "ur10e",
        str(folder / "points.csv"),
        "--config",
        str(folder / "setup.toml"),
        "--workspace",
        "0",
    ]
    assert main([*command, "--method", "ols"]) in (0, 2)
    out = capsys.readouterr().out
    assert (
        out.index("verdict:")
        < out.index("position errors, mm")
        < out.index("offset4")
        < out.index("not identified, nominal value used")
    )


@pytest.mark.large
def test_configurations_are_chosen_with_the_sigmas_they_promise(folder, capsys):
    command = ["poses", "ur10e", "--config", str(folder / "setup.toml"), "--count", "15", "--candidates", "60"]
    assert main([*command, "--out", str(folder / "chosen"), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert len(content["configurations"]) == 15
    assert content["value"] < content["value_of_random_choice"]
    assert content["predicted_sigma"]["z3"] > 0
    assert (folder / "chosen" / "poses.csv").read_text().splitlines()[0] == ",".join(["pose", *JOINTS])


def test_configurations_may_be_chosen_from_a_file_and_kept_as_they_are(folder, capsys):
    q = random_configurations(ROBOT, 40, np.random.default_rng(11)).T
    rows = [",".join(JOINTS), *(",".join(repr(float(x)) for x in row) for row in q)]
    (folder / "reachable.csv").write_text("\n".join(rows) + "\n")
    command = ["poses", "ur10e", "--config", str(folder / "setup.toml"), "--count", "12", "--keep", "--json"]
    assert main([*command, "--from", str(folder / "reachable.csv")]) == 0
    chosen = [tuple(row.values()) for row in json.loads(capsys.readouterr().out)["configurations"]]
    assert len(set(chosen)) == 12
    assert {tuple(row) for row in q.tolist()} >= set(chosen)


REFUSED = [
    (["calibrate", "ur10e", "missing.csv"], "missing.csv"),
    (["calibrate", "ur10e", "points.csv", "--prior", "m"], "NAME=SIGMA"),
    (["calibrate", "ur10e", "points.csv", "--export", "urdf", "--out", "x"], "no URDF file"),
    (["calibrate", "ur10e", "points.csv", "--export", "yaml"], "--out"),
    (["calibrate", "ur10e", "points.csv", "--method", "declared"], "declares no sigma"),
    (["calibrate", "ur10e", "points.csv", "--validate", "points.csv"], "is the file that is fitted"),
    (["calibrate", "ur10e", "points.csv", "--load", "heavy"], "load: got 'heavy'"),
    (["calibrate", "ur10e", "points.csv", "--validate-base", "own"], "name one with --validate"),
    (["apply", "nowhere", "points.csv"], "no such file or folder"),
    (["poses", "ur10e", "--count", "0"], "count is 0; allowed"),
    (["poses", "ur10e", "--count", "5", "--candidates", "3"], "cannot be chosen"),
    (["poses", "ur10e", "--fixed", "elbow", "--candidates", "30"], "no joint 'elbow'"),
]


@pytest.mark.parametrize(("command", "said"), REFUSED, ids=[" ".join(command) for command, _ in REFUSED])
def test_bad_input_gets_one_line(command, said, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    config = ["--config", "setup.toml"] if command[0] == "calibrate" else []
    assert main([*command, *config]) == 1
    error = capsys.readouterr().err.strip()
    assert "\n" not in error
    assert said in error
