"""Motions written for robot controllers."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arms import SKEWED_CHAIN
from steelyard.errors import FileError, MotionError
from steelyard.motion import (
    EXPORT_FORMATS,
    Trajectory,
    at_speed,
    export_set,
    export_trajectory,
    fourier,
    quintic,
    trapezoidal,
    with_approach,
)
from steelyard.motion.export_formats import UR_JOINTS
from steelyard.robot import load_robot, read_urdf

# The only forms in which a reader of YAML 1.1, as ROS uses it, sees a float, an integer.
YAML_FLOAT = re.compile(r"[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?")
YAML_INTEGER = re.compile(r"0|[1-9][0-9]*")


def motion_of(joints: int, seed: int = 3) -> Trajectory:
    """Return a motion from rest to rest of some seconds that no rate divides, with numbers of every size."""
    rng = np.random.default_rng(seed)
    names = [f"joint_{k}" for k in range(1, joints + 1)]
    sin, cos = rng.normal(size=(2, joints, 4)) * [1, 1e-3, 1e-7, 0.1]
    core = fourier(rng.normal(size=joints), sin, cos, 2.71828, names)
    return with_approach(core, rng.normal(size=joints), 0.7, 1.1)


def expected_times(motion: Trajectory, rate: float) -> np.ndarray:
    grid = np.arange(int(motion.duration * rate) + 1) / rate
    return np.append(grid, motion.duration)


def read_csv(path: Path) -> dict[str, np.ndarray]:
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return dict(zip(header, np.array(rows, dtype=float).T, strict=True))


def read_message(path: Path) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the joints and points of a message, read line by line as YAML 1.1 reads it."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert lines[:3] == ["header:", "  stamp: {sec: 0, nanosec: 0}", '  frame_id: ""']
    assert lines[4] == "points:"
    points = []
    for first in range(5, len(lines), 4):
        keys, texts = zip(*(line.split(": ", 1) for line in lines[first : first + 4]), strict=True)
        assert keys == ("- positions", "  velocities", "  accelerations", "  time_from_start")
        numbers = [text.removeprefix("[").removesuffix("]").split(", ") for text in texts[:3]]
        assert all(YAML_FLOAT.fullmatch(number) for row in numbers for number in row)
        stamp = re.fullmatch(r"\{sec: (\S+), nanosec: (\S+)\}", texts[3])
        assert stamp
        assert all(YAML_INTEGER.fullmatch(number) for number in stamp.groups())
        points.append({"state": np.array(numbers, dtype=float), "stamp": tuple(map(int, stamp.groups()))})
    return json.loads(lines[3].removeprefix("joint_names: ")), points


def read_program(path: Path) -> tuple[list[str], np.ndarray]:
    """Return the statements of a program without comments, and the postures of its servoj in turn (N, 6)."""
    lines = path.read_text(encoding="ascii").splitlines()
    statements = [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
    calls = [re.fullmatch(r"servoj\(\[(.*)\], 0, 0, step, lookahead, gain\)", line) for line in statements]
    return statements, np.array([json.loads(f"[{call[1]}]") for call in calls if call])


@pytest.mark.parametrize("rate", [1.0, 97.3, 1000.0])
def test_a_csv_holds_the_motion_to_the_last_bit(tmp_path, rate):
    motion = motion_of(3)
    path = export_trajectory(motion, tmp_path / "new" / "motion.csv", rate=rate)
    table = read_csv(path)
    joints = motion.joints
    assert list(table) == ["time", *(f"{kind}_{joint}" for kind in ("q", "qd", "qdd") for joint in joints)]
    np.testing.assert_array_equal(table["time"], expected_times(motion, rate))
    samples = motion.at(table["time"])
    for kind in ("q", "qd", "qdd"):
        rows = np.array([table[f"{kind}_{joint}"] for joint in joints])
        np.testing.assert_array_equal(rows, getattr(samples, kind))


def test_a_csv_names_its_joints_whatever_they_are_called(tmp_path):
    names = ['elbow, "left"', "é\nb"]
    path = export_trajectory(quintic([[0, 1], [0, 2]], 1.0, names), tmp_path / "motion.csv", rate=10)
    assert list(read_csv(path))[1:3] == [f"q_{name}" for name in names]


def test_an_npz_holds_the_motion_with_its_joints_and_needs_no_pickle(tmp_path):
    motion = motion_of(3)
    path = export_trajectory(motion, tmp_path / "motion.npz", rate=250)
    with np.load(path, allow_pickle=False) as arrays:
        assert set(arrays) == {"time", "q", "qd", "qdd", "joints", "units"}
        samples = motion.at(arrays["time"])
        np.testing.assert_array_equal(arrays["time"], expected_times(motion, 250))
        for kind in ("q", "qd", "qdd"):
            np.testing.assert_array_equal(arrays[kind], getattr(samples, kind), strict=True)
        assert tuple(arrays["joints"]) == motion.joints
        assert tuple(arrays["units"]) == ("rad or m",) * 3


def test_a_robot_gives_units_and_the_order_of_rows(tmp_path):
    text = SKEWED_CHAIN.replace('type="revolute"', 'type="prismatic"', 1)
    (tmp_path / "arm.urdf").write_text(text)
    robot = read_urdf(tmp_path / "arm.urdf")
    joints = [body.joint.name for body in robot.actuated]
    kinds = ["m" if body.joint.kind == "prismatic" else "rad" for body in robot.actuated]
    assert set(kinds) == {"m", "rad"}
    motion = quintic([[0, k + 1] for k in range(len(joints))], 1.0, joints[::-1])
    path = export_trajectory(motion, tmp_path / "motion.npz", robot=robot)
    with np.load(path) as arrays:
        assert (arrays["joints"].tolist(), arrays["units"].tolist()) == (joints, kinds)
        assert arrays["q"][:, -1].tolist() == list(range(len(joints), 0, -1))
    with pytest.raises(MotionError, match="the motion moves joint 'a', which is not among"):
        export_trajectory(quintic([[0, 1]], 1.0, ["a"]), tmp_path / "other.npz", robot=robot)


@pytest.mark.parametrize("rate", [1.0, 333.3, 1000.0])
def test_a_ros_message_holds_the_motion_to_the_last_bit_with_growing_stamps(tmp_path, rate):
    motion = motion_of(3)
    joints, points = read_message(export_trajectory(motion, tmp_path / "motion.yaml", rate=rate))
    assert joints == list(motion.joints)
    assert points[0]["stamp"] == (0, 0)
    assert all(0 <= nanosec <= 999_999_999 for _, nanosec in (point["stamp"] for point in points))
    stamps = np.array([sec * 10**9 + nanosec for sec, nanosec in (point["stamp"] for point in points)])
    assert (np.diff(stamps) > 0).all()
    times = expected_times(motion, rate)
    assert np.abs(stamps - times * 1e9).max() <= 0.5 + 1e-6
    samples = motion.at(times)
    states = np.array([point["state"] for point in points])
    np.testing.assert_array_equal(states.transpose(1, 2, 0), [samples.q, samples.qd, samples.qdd])


def test_a_second_full_but_for_rounding_is_the_next_second(tmp_path):
    motion = quintic([[0, 1]], 3.0, ["a"])
    # The end, 2.9999999999 s, rounds to 3 s: never to 1,000,000,000 ns.
    nearly = quintic([[0, 1]], 3.0 - 1e-10, ["a"])
    for one in (motion, nearly):
        _, points = read_message(export_trajectory(one, tmp_path / "motion.yaml", rate=1))
        assert [point["stamp"] for point in points] == [(0, 0), (1, 0), (2, 0), (3, 0)]


def test_a_sample_just_before_the_end_gives_way_to_the_end(tmp_path):
    motion = quintic([[0, 1]], 1.0 + 1e-6, ["a"])
    time = read_csv(export_trajectory(motion, tmp_path / "motion.csv", rate=10))["time"]
    np.testing.assert_array_equal(time, [*np.arange(10) / 10, 1.0 + 1e-6])


def test_a_motion_shorter_than_a_step_keeps_both_ends(tmp_path):
    path = export_trajectory(quintic([[0, 1]], 1e-5, ["a"]), tmp_path / "motion.csv", rate=1)
    assert read_csv(path)["time"].tolist() == [0.0, 1e-5]


def test_joint_names_of_a_ros_message_are_quoted(tmp_path):
    names = ["on", 'a "b": {c}', "é", "x\x85y\n#"]
    path = export_trajectory(quintic(np.eye(4)[:, :2], 1.0, names), tmp_path / "motion.yaml", rate=1)
    line = next(line for line in path.read_bytes().decode().split("\n") if line.startswith("joint_names"))
    assert line == 'joint_names: ["on", "a \\"b\\": {c}", "é", "x\\U00000085y\\n#"]'


def test_a_program_goes_slowly_to_the_first_posture_and_then_follows_the_motion(tmp_path):
    motion = motion_of(6)
    statements, postures = read_program(export_trajectory(motion, tmp_path / "motion.script", rate=250))
    first = ", ".join(f"{value:.10f}" for value in motion.at(0.0).q[:, 0])
    assert statements[:10] == [
        "def steelyard_motion():",
        "step = 0.004",
        "lookahead = 0.1",
        "gain = 300",
        "first_acceleration = 0.2",
        "first_velocity = 0.1",
        "settle = 0.5",
        "deceleration = 1.0",
        f"movej([{first}], first_acceleration, first_velocity)",
        "sleep(settle)",
    ]
    assert statements[-3].endswith("0, 0, settle, lookahead, gain)")
    assert statements[-2:] == ["stopj(deceleration)", "end"]
    assert len(statements) == 10 + len(postures) + 3
    # One servoj brings the arm to each sample after the first; the last one is the end of the motion.
    expected = motion.at(expected_times(motion, 250)[1:]).q.T
    np.testing.assert_allclose(postures, expected, rtol=0, atol=0.51e-10)


def test_numbers_of_a_program_have_no_exponent_and_no_negative_zero(tmp_path):
    points = np.array([[-1e-12, 1e-7]] * 6)
    names = [f"j{k}\nend" for k in range(6)]
    path = export_trajectory(quintic(points, 0.1, names), tmp_path / "motion.script")
    statements, postures = read_program(path)
    assert len(statements) == 10 + len(postures) + 3  # no joint name has got out of its comment
    code = "\n".join(statements)
    assert not re.search(r"\de|-0\.0+\b", code)
    assert "0.0000001000" in code


def test_a_program_has_the_joints_of_a_ur_from_base_to_tool(tmp_path):
    names = [f"left_{name}" for name in sorted(UR_JOINTS)]
    motion = quintic([[0.0, UR_JOINTS.index(name.removeprefix("left_")) + 1.0] for name in names], 1.0, names)
    _, postures = read_program(export_trajectory(motion, tmp_path / "motion.script"))
    assert postures[-1].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    robot = load_robot("ur10e")
    assert tuple(body.joint.name for body in robot.actuated) == UR_JOINTS


def test_a_program_for_another_arm_is_refused(tmp_path):
    path = tmp_path / "motion.script"
    with pytest.raises(MotionError, match="6 joints that turn; the motion has 7 joints, 0 of them sliding: choose"):
        export_trajectory(motion_of(7), path)
    sliding = SKEWED_CHAIN.replace('type="revolute"', 'type="prismatic"', 1)
    (tmp_path / "arm.urdf").write_text(sliding)
    robot = read_urdf(tmp_path / "arm.urdf")
    joints = [body.joint.name for body in robot.actuated]
    with pytest.raises(MotionError, match=r"has \d joints, 1 of them sliding"):
        export_trajectory(quintic([[0, 1]] * len(joints), 1.0, joints), path, robot=robot)
    assert not path.exists()


@pytest.mark.parametrize("ending", ["yaml", "script"])
def test_a_motion_that_does_not_begin_or_end_at_rest_is_not_given_to_a_controller(tmp_path, ending):
    names = [f"joint_{k}" for k in range(1, 7)]
    series = fourier([0.0] * 6, [[0.5]] * 6, [[0.0]] * 6, 2 * np.pi, names)
    with pytest.raises(MotionError, match=r"does not begin at rest: joint 'joint_1' moves with 0\.5 there; add a way"):
        export_trajectory(series, tmp_path / f"motion.{ending}")
    points = np.array([[0.0, 1.0]] * 6)
    velocities = np.array([[0.0, 0.0]] * 5 + [[0.0, -0.1]])
    moving = quintic(points, 1.0, names, velocities=velocities)
    with pytest.raises(MotionError, match=r"does not end at rest: joint 'joint_6' moves with -0\.1 there"):
        export_trajectory(moving, tmp_path / f"motion.{ending}")
    assert not list(tmp_path.iterdir())
    export_trajectory(series, tmp_path / "motion.csv")  # a table holds every motion
    export_trajectory(with_approach(series, [0.0] * 6, 2.0, 2.0), tmp_path / f"motion.{ending}")


BAD = {
    "an unknown ending": ("a.txt", {}, r"a.txt: its ending is '.txt'; allowed: .csv, .npz, .yaml, .script"),
    "an ending nearly right": ("a.yml", {}, "did you mean '.yaml'"),
    "no ending": ("a", {}, "its ending is ''; allowed"),
    "an unknown format": ("a.csv", {"format": "ros"}, "format is 'ros'; allowed: csv, .*did you mean 'ros2'"),
    "a format that is no word": ("a.csv", {"format": ["csv"]}, r"format is \['csv'\]; allowed"),
    "no rate at all": ("a.csv", {"rate": 0}, r"rate \[Hz\] is 0; allowed: a finite number of 1 or more"),
    "a rate that is nan": ("a.csv", {"rate": float("nan")}, r"rate \[Hz\] is nan; allowed: a finite number"),
    "a rate as text": ("a.csv", {"rate": "fast"}, r"rate \[Hz\] is 'fast'; allowed: a finite number"),
    "a rate too low": ("a.csv", {"rate": 0.5}, r"rate \[Hz\] is 0.5; allowed: .* 1 or more and at most 10000"),
    "a rate too high": ("a.npz", {"rate": 1e6}, r"rate \[Hz\] is 1000000.0; allowed: .* at most 10000"),
    "too many samples": ("a.csv", {"rate": 1000}, "makes 3000001 samples; a .csv file holds at most 2000000: take"),
    "too many points": ("a.yaml", {"rate": 100}, "makes 300001 samples; a .yaml file holds at most 200000"),
    "too many lines": ("a.script", {}, "makes 375001 samples; a .script file holds at most 200000"),
    "a rate that no controller keeps": ("a.script", {"rate": 60}, "is 60; allowed for URScript is 500 divided by a"),
    "a rate above the controller's": ("b.script", {"rate": 1000}, "is 1000; allowed for URScript is 500 divided"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_written_is_refused_in_one_line(case, tmp_path):
    name, options, message = BAD[case]
    duration = 1.0 if name.startswith("b") else 3000.0
    motion = quintic([[0, 1]] * 6, duration, [f"joint_{k}" for k in range(1, 7)])
    with pytest.raises(MotionError, match=message) as caught:
        export_trajectory(motion, tmp_path / name, **options)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_format_can_be_named_for_any_path(tmp_path):
    path = export_trajectory(motion_of(2), tmp_path / "motion.dat", "csv", 10)
    assert read_csv(path)["time"][1] == 0.1
    assert {name: form.suffix for name, form in EXPORT_FORMATS.items()} == {
        "csv": ".csv",
        "npz": ".npz",
        "ros2": ".yaml",
        "urscript": ".script",
    }


def test_the_same_motion_gives_the_same_bytes(tmp_path):
    motion = motion_of(6)
    first, second = (export_set(motion, tmp_path / name, EXPORT_FORMATS, speeds=[1.0]) for name in "ab")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_a_set_holds_each_pace_in_each_format(tmp_path):
    motion = motion_of(6)
    paths = export_set(motion, tmp_path / "set", ["csv", "urscript"], 50)
    names = [f"motion_{pace}.{ending}" for pace in ("010", "050", "100") for ending in ("csv", "script")]
    assert [path.name for path in paths] == names
    assert sorted(path.name for path in (tmp_path / "set").iterdir()) == sorted(names)
    for path, speed in zip(paths[::2], (0.1, 0.5, 1.0), strict=True):
        table = read_csv(path)
        slower = at_speed(motion, speed)
        assert table["time"][-1] == slower.duration
        np.testing.assert_array_equal(table["qd_joint_2"], slower.at(table["time"]).qd[1])


def test_every_pace_is_checked_before_anything_is_written(tmp_path):
    motion = trapezoidal([[0, 1, 0]], [1.0, 2.0], ["a"])
    durations = []

    def check(slower: Trajectory) -> None:
        durations.append(slower.duration)
        assert not list(tmp_path.iterdir())
        if slower.extrema().velocity.value[0] > 1.0:
            raise MotionError("joint 'a': too fast")

    with pytest.raises(MotionError, match="joint 'a': too fast"):
        export_set(motion, tmp_path, ["csv"], speeds=[0.1, 0.5, 1.0], check=check)
    assert durations == [30.0, 6.0, 3.0]
    assert not list(tmp_path.iterdir())
    assert len(export_set(motion, tmp_path, ["csv"], speeds=[0.1, 0.5])) == 2


def test_a_set_of_which_one_format_is_refused_is_not_begun(tmp_path):
    with pytest.raises(MotionError, match="URScript moves arms of 6 joints"):
        export_set(motion_of(3), tmp_path, ["csv", "npz", "ros2", "urscript"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("formats", "speeds", "message"),
    [
        ([], [1.0], "formats is empty; name at least one"),
        (["csv"], [], "speeds is empty; name at least one"),
        ("csv", [1.0], "formats is the text 'csv'; allowed is a list"),
        (["csv", "csv"], [1.0], "formats holds 'csv' more than once"),
        (["cvs"], [1.0], "format is 'cvs'; .*did you mean 'csv'"),
        (["csv"], [0.1, 0.1], "speeds holds 0.1 more than once"),
        (["csv"], [0.333], "speed is 0.333; allowed are whole percents"),
        (["csv"], [0.001], "speed is 0.001; allowed are whole percents"),
        (["csv"], [1.5], "speed is 1.5; allowed: a finite number above 0 and at most 1"),
        (["csv"], [0.0], "speed is 0.*; allowed: a finite number above 0"),
    ],
)
def test_a_set_that_makes_no_sense_is_refused(formats, speeds, message, tmp_path):
    with pytest.raises(MotionError, match=message):
        export_set(motion_of(2), tmp_path, formats, speeds=speeds)
    assert not list(tmp_path.iterdir())


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = export_trajectory(motion_of(2), tmp_path / "motion.csv", rate=10)
    before = path.read_bytes()

    def refuse(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(FileError, match=r"cannot write .*motion.csv': No space left on device"):
        export_trajectory(motion_of(2, seed=4), path, rate=10)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["motion.csv"]
