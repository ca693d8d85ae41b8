"""Mistakes that users make, planted in simulated measurements: poor, exit code 2, and the cause is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from steelyard.calibration import (
    CalibrationSetup,
    FrameSetup,
    MarkerSetup,
    Measurements,
    random_configurations,
    simulated_measurements,
    write_measurements,
)
from steelyard.calibration.chain.unknowns import unknown_parameters
from steelyard.cli import main
from steelyard.robot import load_robot

ARMS = {"ur10e": "ee_link", "staubli_tx40": "link_6", "kuka_kr270": "flange"}
TWO_ARMS = ("ur10e", pytest.param("staubli_tx40", marks=pytest.mark.large))
NESTS = {"m1": (0.12, 0.02, 0.05), "m2": (-0.08, 0.11, 0.1), "m3": (0.03, -0.12, 0.18)}
BASE = FrameSetup((0.9, -0.4, 0.3), (0.1, -0.2, 2.0))
MOVED = FrameSetup((0.91, -0.38, 0.3), (0.1, -0.2, 2.01))
TOOL = FrameSetup((0.02, 0.03, 0.1), (0.3, 0.2, -0.4))
WRONG_JOINTS = (2, 3)
"""Joints whose placements are off by about a millimetre and a milliradian."""

Fault = Callable[[Measurements], Measurements]


def simulated(
    arm: str, seed: int, count: int, *, poses: bool = False, base: FrameSetup = BASE, nominal: bool = False
) -> Measurements:
    """Return what a tracker sees of an arm to 50 um; an arm's errors are those of its seed."""
    robot = load_robot(arm)
    markers = () if poses else tuple(MarkerSetup(name, place) for name, place in NESTS.items())
    setup = CalibrationSetup(ARMS[arm], base=base, tool=TOOL if poses else FrameSetup(), markers=markers)
    random = np.random.default_rng(seed)
    names = [each.name for each in unknown_parameters(robot, setup) if each.group == "joint"]
    truth = {name: 1e-3 * random.standard_normal() for name in names if int(name[-1]) in WRONG_JOINTS and not nominal}
    q = random_configurations(robot, count, np.random.default_rng((seed, count))) / 2
    kind = "pose" if poses else "position"
    return simulated_measurements(robot, setup, q, truth, kind=kind, sigma=5e-5, angle_sigma=2e-4, seed=seed + count)


@pytest.fixture
def calibrate(tmp_path, capsys):
    """Return exit code and answer of the command, by arm and measurements."""

    def called(arm: str, measured: Measurements, *options: str, others: Measurements | None = None, setup: str = ""):
        joints = [load_robot(arm).bodies[number - 1].joint.name for number in WRONG_JOINTS]
        text = f'[measurement]\nlink = "{ARMS[arm]}"\nsigma = 50e-6\n[geometry]\njoints = {json.dumps(joints)}\n{setup}'
        (tmp_path / "setup.toml").write_text(text)
        files = ["--config", str(tmp_path / "setup.toml")]
        for name, each in (("points", measured), ("others", others)):
            if each is not None:
                write(tmp_path / f"{name}.csv", each)
        if others is not None:
            files += ["--validate", str(tmp_path / "others.csv")]
        capsys.readouterr()
        code = main(["calibrate", arm, str(tmp_path / "points.csv"), *files, "--workspace", "0", "--json", *options])
        printed = capsys.readouterr()
        assert code in (0, 2), printed.err
        return code, json.loads(printed.out)

    return called


def write(path: Path, measured: Measurements) -> None:
    """Write positions as they are, poses with quaternions w, x, y, z."""
    if measured.markers:
        write_measurements(path, measured)
        return
    turns = Rotation.from_matrix(measured.rotation).as_quat(scalar_first=True)
    rows = np.column_stack([measured.pose, measured.q.T, measured.value, turns])
    titles = ["pose", *measured.joints, "x", "y", "z", "qw", "qx", "qy", "qz"]
    np.savetxt(path, rows, delimiter=",", header=",".join(titles), comments="", fmt="%.12g")


def poor_for(answer: dict, question: str, *parts: str) -> bool:
    """Return whether a question is poor and the first reason names the cause."""
    verdict = answer["verdict"]
    assert verdict["grade"] == "poor"
    assert verdict["questions"][question] == "poor"
    assert all(part in verdict["reasons"][0]["text"] for part in parts), verdict["reasons"]
    assert verdict["reasons"][0]["remedy"]
    return True


def with_joints(change: Callable[[np.ndarray], None]) -> Fault:
    def planted(measured: Measurements) -> Measurements:
        q = np.array(measured.q)
        change(q)
        return replace(measured, q=q)

    return planted


def flipped(q: np.ndarray) -> None:
    q[3] *= -1


def off_zero(q: np.ndarray) -> None:
    q[2] += np.radians(40)


def swapped(q: np.ndarray) -> None:
    q[[1, 2]] = q[[2, 1]]


def uncoupled(q: np.ndarray) -> None:
    """The file has motor angles: joint 3 is the third motor plus the second."""
    q[2] -= q[1]


def shuffled(measured: Measurements) -> Measurements:
    order = np.random.default_rng(1).permutation(len(measured.poses))
    first = np.unique(measured.pose, return_index=True)[1]
    return replace(measured, q=measured.q[:, first[order][measured.pose]])


def one_row_late(measured: Measurements) -> Measurements:
    first = np.unique(measured.pose, return_index=True)[1]
    return replace(measured, q=measured.q[:, np.roll(first, 1)[measured.pose]])


def of_another_arm(measured: Measurements) -> Measurements:
    """Marker m3 is on another arm, which moves by itself."""
    value, third = np.array(measured.value), measured.marker == 2
    value[third] = value[third][np.random.default_rng(2).permutation(third.sum())] + [0.5, 0.0, 0.0]
    return replace(measured, value=value)


def other_quaternions(measured: Measurements) -> Measurements:
    turns = Rotation.from_matrix(measured.rotation).as_quat(scalar_first=True)
    return replace(measured, rotation=Rotation.from_quat(turns[:, [1, 2, 3, 0]], scalar_first=True).as_matrix())


def yaw_pitch_roll(measured: Measurements) -> Measurements:
    angles = Rotation.from_matrix(measured.rotation).as_euler("xyz")
    return replace(measured, rotation=Rotation.from_euler("xyz", angles[:, ::-1]).as_matrix())


FAULTS: dict[str, tuple[Fault, bool, tuple[str, ...]]] = {
    "sign": (with_joints(flipped), False, ("sign", "JOINT4", "reversed")),
    "zero": (with_joints(off_zero), False, ("zero", "JOINT3", "deg")),
    "swapped joints": (with_joints(swapped), False, ("JOINT2", "JOINT3", "swapped")),
    "coupling": (with_joints(uncoupled), False, ("coupling", "JOINT3", "plus", "JOINT2")),
    "shuffled rows": (shuffled, False, ("rows are shuffled",)),
    "rows one late": (one_row_late, False, ("rows are shuffled", "1 row further down")),
    "marker of another arm": (of_another_arm, False, ("m3", "does not move with link")),
    "quaternion order": (other_quaternions, True, ("quaternions are in the order x, y, z, w",)),
    "angles in another order": (yaw_pitch_roll, True, ("yaw, pitch, roll",)),
}


OF_JOINTS = ("sign", "zero", "swapped joints")
RARE = ("rows one late", "angles in another order")
"""Among many seeds only."""
LONG = ("shuffled rows", "quaternion order", "coupling", "zero")


def named(arm: str, parts: tuple[str, ...]) -> list[str]:
    joints = [body.joint.name for body in load_robot(arm).actuated]
    return [f"'{joints[int(part[-1]) - 1]}'" if part.startswith("JOINT") else part for part in parts]


@pytest.mark.parametrize("arm", TWO_ARMS)
@pytest.mark.parametrize(
    "fault",
    [pytest.param(fault, marks=pytest.mark.large if fault in LONG else ()) for fault in FAULTS if fault not in RARE],
)
def test_a_mistake_is_poor_and_named(calibrate, arm, fault):
    plant, poses, parts = FAULTS[fault]
    code, answer = calibrate(arm, plant(simulated(arm, 0, 20, poses=poses)), "--folds", "4")
    assert code == 2
    assert poor_for(answer, "plausible", "likely cause", *named(arm, parts))


@pytest.mark.large
@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_mistake_is_named_whatever_the_arm_and_the_noise(calibrate, arm, fault):
    plant, poses, parts = FAULTS[fault]
    right = 0
    for seed in range(10):
        code, answer = calibrate(arm, plant(simulated(arm, seed, 25, poses=poses)), "--folds", "4")
        assert code == 2
        assert answer["verdict"]["questions"]["plausible"] == "poor"
        right += all(part in answer["verdict"]["reasons"][0]["text"] for part in named(arm, parts))
    assert right >= 9


@pytest.mark.parametrize("fault", ["coupling", *(pytest.param(fault, marks=pytest.mark.large) for fault in OF_JOINTS)])
def test_the_remedy_that_is_named_makes_it_good(calibrate, fault):
    measured = FAULTS[fault][0](simulated("staubli_tx40", 0, 20))
    _, answer = calibrate("staubli_tx40", measured, "--folds", "4")
    before, _, lines = answer["verdict"]["reasons"][0]["remedy"].partition("write under [joints] in the set-up: ")
    assert not before
    setup = "[joints]\n" + "\n".join(lines.split("; "))
    code, answer = calibrate("staubli_tx40", measured, "--folds", "4", setup=setup)
    assert (code, answer["verdict"]["grade"]) == (0, "good")


@pytest.mark.parametrize("arm", TWO_ARMS)
def test_swapped_markers_of_known_places_are_named(calibrate, arm):
    setup = "".join(f"[markers.{name}]\nposition = {list(place)}\nknown = true\n" for name, place in NESTS.items())
    measured = simulated(arm, 0, 20)
    assert calibrate(arm, measured, "--folds", "4", setup=setup)[1]["verdict"]["grade"] == "good"
    swap = np.array([1, 0, 2])[measured.marker]
    code, answer = calibrate(arm, replace(measured, marker=swap), "--folds", "4", setup=setup)
    assert code == 2
    assert poor_for(answer, "plausible", "markers 'm1' and 'm2' are swapped")


@pytest.mark.parametrize("arm", TWO_ARMS)
@pytest.mark.parametrize("poses", [False, True], ids=["markers", "poses"])
def test_clean_measurements_are_good_and_nothing_is_named(calibrate, arm, poses):
    for seed in range(2):
        measured, others = (simulated(arm, seed, count, poses=poses) for count in (20, 12))
        code, answer = calibrate(arm, measured, others=others)
        assert code == 0
        assert answer["verdict"]["grade"] == "good"
        assert not any("cause" in each["text"] or "moved" in each["text"] for each in answer["verdict"]["reasons"])
        assert not answer["validation"]["moved"]
        assert answer["validation"]["gross"] == []
        assert answer["validation"]["after"]["points"] == answer["validation"]["before"]["points"]


@pytest.mark.large
@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("poses", [False, True], ids=["markers", "poses"])
def test_clean_measurements_raise_no_alarm_in_many_seeds(calibrate, arm, poses):
    grades = []
    for seed in range(20):
        measured, others = (simulated(arm, seed, count, poses=poses) for count in (25, 12))
        _, answer = calibrate(arm, measured, others=others)
        texts = [each["text"] for each in answer["verdict"]["reasons"]]
        assert not any("cause" in text or "moved" in text for text in texts)
        grades.append(answer["verdict"]["grade"])
    assert "poor" not in grades
    # Twelve poses of one target are few: by chance their error is now and then 1.5 times what is expected: fair.
    assert grades.count("good") >= (16 if poses else 19)


@pytest.mark.parametrize("arm", TWO_ARMS)
def test_a_tracker_that_was_moved_is_said_and_may_be_declared(calibrate, arm):
    measured, others = simulated(arm, 0, 20), simulated(arm, 0, 12, base=MOVED)
    code, answer = calibrate(arm, measured, others=others)
    assert code == 2
    assert poor_for(answer, "predicts", "the tracker or the base seems to have moved by", "0.57 deg")
    assert answer["held_out"] == answer["validation"]["after"]
    assert answer["validation"]["moved"]
    assert answer["validation"]["after"]["points"] == 36
    assert answer["validation"]["after"]["rms_mm"] > 20 > 0.1 > answer["validation"]["own_registration"]["rms_mm"]
    assert "--validate-base own" in answer["verdict"]["reasons"][0]["remedy"]
    code, answer = calibrate(arm, measured, "--validate-base", "own", others=others)
    assert (code, answer["verdict"]["grade"]) == (0, "good")
    assert answer["validation"]["before"]["rms_mm"] > answer["validation"]["after"]["rms_mm"]


@pytest.mark.parametrize("arm", TWO_ARMS)
def test_a_validation_file_on_which_the_nominal_arm_is_better_is_poor(calibrate, arm):
    code, answer = calibrate(arm, simulated(arm, 0, 20), others=simulated(arm, 0, 12, nominal=True))
    assert code == 2
    assert poor_for(answer, "predicts", "on the validation file", "the nominal arm does better")
    assert answer["cross_validated"]["rms_mm"] < 0.2


def test_every_point_of_the_validation_file_counts_and_gross_ones_are_named(calibrate):
    others = simulated("ur10e", 0, 12)
    value = np.array(others.value)
    value[7] += [0.0, 0.05, 0.0]
    code, answer = calibrate("ur10e", simulated("ur10e", 0, 20), others=replace(others, value=value))
    assert code == 2
    assert answer["validation"]["after"]["points"] == answer["validation"]["before"]["points"] == 36
    assert answer["validation"]["after"]["max_mm"] == pytest.approx(50, abs=1)
    assert [(each["pose"], each["marker"]) for each in answer["validation"]["gross"]] == [("3", "m2")]
    assert any("far off, and count: 3, marker m2" in each["text"] for each in answer["verdict"]["reasons"])


def test_a_mistake_in_the_validation_file_alone_is_named(calibrate):
    others = with_joints(flipped)(simulated("ur10e", 0, 12))
    code, answer = calibrate("ur10e", simulated("ur10e", 0, 20), others=others)
    assert code == 2
    assert poor_for(answer, "predicts", "in the validation file, likely cause: the sign of joint 'wrist_1_joint'")


def test_before_and_after_count_the_same_points(calibrate):
    """A gross error is left out of both, and what is held out is compared at its own points."""
    measured = simulated("ur10e", 0, 20)
    value = np.array(measured.value)
    value[10] += [0.0, 0.0, 0.1]
    _, answer = calibrate("ur10e", replace(measured, value=value))
    assert len(answer["outliers"]) == 1
    for first, second in (("before", "after"), ("held_out_before", "held_out")):
        assert answer[first]["points"] == answer[second]["points"] == 59


def test_orientations_are_reported_before_and_after(calibrate):
    measured, others = (simulated("staubli_tx40", 0, count, poses=True) for count in (20, 12))
    _, answer = calibrate("staubli_tx40", measured, others=others)
    # 0.2 mrad about each of three axes are 0.020 deg.
    for table in (answer["after"], answer["cross_validated"], answer["validation"]["after"]):
        assert 0.014 < table["rotation_rms_deg"] < 0.028
        assert table["rotations"] == table["points"]
    assert answer["before"]["rotation_rms_deg"] > 2 * answer["after"]["rotation_rms_deg"]


@pytest.mark.large
def test_what_one_target_cannot_show_of_shared_errors_is_not_claimed(calibrate, tmp_path, capsys):
    measured = simulated("ur10e", 0, 20, poses=True)
    assert calibrate("ur10e", measured)[1]["shared_part_of_noise"] is None
    assert calibrate("ur10e", simulated("ur10e", 0, 20))[1]["shared_part_of_noise"] is not None
    files = [str(tmp_path / "points.csv"), "--config", str(tmp_path / "setup.toml"), "--workspace", "0"]
    write(tmp_path / "points.csv", measured)
    main(["calibrate", "ur10e", *files])
    screen = capsys.readouterr().out
    assert "cannot be estimated" in screen
    assert "orientation errors, deg" in screen
    assert "0 % of its variance" not in screen


def test_a_declared_length_is_no_sigma_of_rotations(calibrate):
    measured = simulated("ur10e", 0, 20, poses=True)
    _, answer = calibrate("ur10e", measured, "--method", "declared")
    sigmas = {each["group"]: each["sigma"] for each in answer["weights"]}
    assert sigmas["x"] == pytest.approx(5e-5)
    assert sigmas["rx"] == pytest.approx(2e-4, rel=0.25)
    assert any("no sigma of orientations is declared" in each["text"] for each in answer["verdict"]["reasons"])


def test_a_declared_sigma_of_rotations_is_taken(tmp_path, capsys):
    write(tmp_path / "points.csv", simulated("ur10e", 0, 20, poses=True))
    (tmp_path / "setup.toml").write_text('[measurement]\nlink = "ee_link"\nsigma = 50e-6\nsigma_rotation = 3e-4\n')
    options = [str(tmp_path / "points.csv"), "--config", str(tmp_path / "setup.toml"), "--workspace", "0", "--json"]
    assert main(["calibrate", "ur10e", *options, "--method", "declared"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {each["sigma"] for each in answer["weights"] if each["group"] in ("rx", "ry", "rz")} == {3e-4}
    assert not any("is declared" in each["text"] for each in answer["verdict"]["reasons"])
