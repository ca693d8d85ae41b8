"""Python as a newcomer writes it: names and paths in place of objects, wrong types, records that print in a line."""

# pyright: reportArgumentType=false
# Wrong types are what is tried here.

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import steelyard
from measured_arms import ur10e
from simulated_experiments import scara
from steelyard import DesignSettings, SteelyardError, build_model, identify, identify_payload
from steelyard import design as design_experiment
from steelyard.calibration import (
    calibrated,
    choose_poses,
    default_setup,
    measured_problem,
    random_configurations,
    read_measurements,
    write_measurements,
)
from steelyard.identification import fit_arm
from steelyard.motion import quintic, write_trajectory
from steelyard.recording import check_recording, read_recording, write_recording
from steelyard.robot import load_robot
from steelyard.simulation import simulate
from steelyard.study import StudySettings, default_motion, montecarlo, study_configuration
from steelyard.text import html_table, short_repr

JOINTS = ["joint_1", "joint_2"]
NOISY = {"record_rate": 100.0, "motor_noise": {"kind": "white", "std": [0.5, 0.05]}}


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, seed in (("calm.csv", 1), ("unseen.npz", 3)):
        write_recording(scara(seed), name)
    write_trajectory(quintic(np.array([[0, 0.4], [0, 0.9]]), 1.0, JOINTS), "motion.toml")
    write_measurements(Path("points.csv"), ur10e(1, 40))


def short(record: object) -> bool:
    return len(repr(record)) <= 260 and "\n" not in repr(record)


def test_an_arm_is_identified_by_names_and_paths(workplace):
    by_names = identify("scara_2r", ["calm.csv"], Path("unseen.npz"))
    robot = load_robot("scara_2r")
    logs = [read_recording(robot, name) for name in ("calm.csv", "unseen.npz")]
    assert by_names.values() == identify(robot, logs[:1], logs[1:]).values()
    assert fit_arm("scara_2r", "calm.csv").equations.names == by_names.equations.names
    assert repr(by_names).startswith(f"Identification(verdict=Verdict('{by_names.verdict.grade}'), ")
    for part in (
        by_names, by_names.verdict, by_names.settings, by_names.equations, by_names.equations.model,
        by_names.equations.base, by_names.resolved, by_names.fit, by_names.estimate, by_names.estimate.system,
        by_names.fit.noise,
        by_names.fit.observations, by_names.fit.observations.factors[0], by_names.reduction, by_names.unseen_error,
        by_names.bias, robot, logs[0], logs[0].torques[0],
    ):  # fmt: skip
        assert short(part), repr(part)


def test_other_functions_take_names_and_paths_too(workplace):
    run = simulate("scara_2r", "motion.toml")
    assert short(run)
    assert run.truth == simulate(load_robot("scara_2r"), quintic(np.array([[0, 0.4], [0, 0.9]]), 1.0, JOINTS)).truth
    assert build_model("scara_2r").robot.name == "scara_2r"
    assert read_recording("scara_2r", "calm.csv").joints == tuple(JOINTS)
    assert check_recording("scara_2r", scara(1)) == check_recording(load_robot("scara_2r"), scara(1))
    assert short(default_motion("scara_2r"))
    study = montecarlo(
        study_configuration(
            Path("scara_2r"),
            "motion.toml",
            {"record_rate": 50.0, "motor_noise": {"kind": "white", "std": [0.1, 0.01]}},
            {},
        ),
        StudySettings(methods=("wls",), seeds=2),
    )
    assert short(study)


def test_a_design_by_name_prints_in_a_line():
    design = design_experiment("scara_2r", DesignSettings(starts=1, duration=5.0))
    for part in (design, design.trajectory, design.figures, design.limits, design.certificate):
        assert short(part), repr(part)


def test_a_calibration_by_name_and_path_prints_in_a_line(workplace):
    setup = default_setup("ur10e")
    problem = measured_problem("ur10e", setup, "points.csv")
    assert problem.measurements.rows == read_measurements("points.csv", "ur10e", setup).rows
    assert random_configurations("ur10e", 3, np.random.default_rng(1)).shape == (6, 3)
    found = calibrated(problem)
    for part in (found, problem, problem.measurements, problem.equations):
        assert short(part), repr(part)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: identify(5, ["calm.csv"]), "robot: got 5 of type int; allowed: a Robot, a catalogue name"),
        (lambda: identify("scara_2r", 5), "recordings: got 5 of type int; allowed"),
        (lambda: identify("scara_2r", [None]), "recordings: got None of type NoneType"),
        (lambda: identify("scara_2r", ["calm.csv"], [1.5]), "validation: got 1.5"),
        (lambda: identify("scara_2r", ["calm.csv"], settings={"method": "wls"}), "settings: got .* of type dict"),
        (lambda: identify("scara_2r", ["calm.csv"], earlier=[3]), "run: got 3 of type int"),
        (lambda: identify("scara_2r", ["no.csv", "none.npz"]), "2 files or folders are missing"),
        (lambda: fit_arm("scara_2r", np.zeros(3)), "recordings: got .*0.0.* of type float64"),
        (lambda: identify_payload("scara_2r", 7, ["calm.csv"]), "run: got 7 of type int"),
        (lambda: simulate("scara_2r", 3), "motion: got 3 of type int"),
        (lambda: simulate("scara_2r", "motion.toml", {"rate": 5}), "experiment: got .* of type dict"),
        (lambda: design_experiment("scara_2r", {"starts": 2}), "settings: got .* of type dict"),
        (lambda: measured_problem("ur10e", default_setup("ur10e"), 4), "measurements: got 4 of type int"),
        (lambda: calibrated("points.csv"), "problem: got a str; allowed: what measured_problem"),
        (
            lambda: study_configuration(load_robot("scara_2r"), "motion.toml", {}, {}),
            "robot: got Robot.* of type Robot",
        ),
        (lambda: montecarlo("scara_2r", StudySettings()), "given: got 'scara_2r' of type str"),
    ],
)
def test_wrong_types_get_one_line(call, expected, workplace):
    with pytest.raises(SteelyardError, match=expected) as caught:
        call()
    assert len(str(caught.value)) < 300


def test_a_record_tells_names_and_figures_before_shapes_and_kinds():
    @dataclass
    class Record:
        __repr__ = short_repr

        values: np.ndarray
        parts: tuple[int, ...]
        name: str
        size: float
        nothing: None = None
        robot: object = None

    text = repr(Record(np.zeros((2, 3)), (1, 2), "x" * 100, 1 / 3, robot=load_robot("scara_2r")))
    assert (
        text == f"Record(name='{'x' * 40}...', size=0.333333, robot=Robot('scara_2r'), values=array(2, 3), parts=<2>)"
    )


def test_results_are_plain_data_and_frames(workplace):
    """``to_json`` is what a run folder keeps, ``to_frame`` its parameters: from the four verbs of the top level."""
    settings = DesignSettings(duration=5.0, harmonics=2, noise=(1.0, 0.2), starts=1)
    motion = steelyard.fourier([0.0, 0.0], [[0.3, 0.1], [0.5, 0.2]], [[0.1, 0.2], [0.2, 0.3]], 5.0, JOINTS)
    study = steelyard.study_configuration("scara_2r", motion, NOISY, {})
    results = {
        "identify": steelyard.identify("scara_2r", "calm.csv", "unseen.npz"),
        "calibrate": steelyard.calibrate("ur10e", "points.csv", workspace=0),
        "design": steelyard.design("scara_2r", settings),
        "montecarlo": steelyard.montecarlo(study, steelyard.StudySettings(("wls",), 2)),
    }
    for result in results.values():
        json.dumps(result.to_json(), allow_nan=False)
    frames = {name: result.to_frame() for name, result in results.items()}
    assert {"name", "value", "sigma", "unit"} <= set(frames["identify"].columns) & set(frames["calibrate"].columns)
    assert frames["identify"]["name"].to_list() == [row["name"] for row in results["identify"].to_json()["parameters"]]
    assert frames["design"].columns == ["name", "sigma", "relative_sigma"]
    assert frames["montecarlo"]["method"].unique().to_list() == ["wls"]
    assert {"name", "bias", "coverage"} <= set(frames["montecarlo"].columns)
    shown = {name: cells(result) for name, result in results.items()}
    essential = results["identify"].values()
    assert set(essential) <= shown["identify"]
    assert f"{essential['ZZ2']:.4g}" in shown["identify"]
    assert {"unseen relative error"} <= shown["identify"]
    assert set(frames["calibrate"]["name"][:30]) <= shown["calibrate"]
    assert set(frames["design"]["name"]) <= shown["design"]
    assert {"wls", "2"} <= shown["montecarlo"]


def cells(record: object) -> set[str]:
    """Return the cells of all tables that a notebook shows of a record."""
    page = ElementTree.fromstring(f"<div>{record._repr_html_()}</div>")  # type: ignore[attr-defined]
    return {cell.text or "" for cell in page.iter() if cell.tag in ("td", "th")}


def test_notebooks_show_recordings_motions_and_poses_and_markup_of_strangers_as_text():
    log = scara(1)
    torque = log.torques[0].values[1]
    assert {*JOINTS, "q", f"{torque.min():.4g} to {torque.max():.4g}"} <= cells(log)
    hostile = replace(log, joints=("<script>a</script>", "\x1b[2J"), payload="<b>", torques=())
    assert {"<script>a</script>", "\\x1b[2J"} <= cells(hostile)
    assert "payload &lt;b&gt;" in hostile._repr_html_()
    assert {*JOINTS, "0.9"} <= cells(quintic(np.array([[0, 0.4], [0, 0.9]]), 1.0, JOINTS))
    poses = choose_poses("ur10e", 12, candidates=60, keep=True)
    assert {"12", f"{poses.design.q[0, 0]:.4g}"} <= cells(poses)
    assert html_table(["a"], [[k] for k in range(43)]).endswith("<p>and 3 more rows</p>")
