"""Motions written and read as TOML."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.errors import FileError, MotionError
from steelyard.motion import Trajectory, files, fourier, quintic, read_trajectory, trapezoidal, write_trajectory


def arrays_of(motion: Trajectory) -> list[np.ndarray]:
    """Return every array a motion holds, those of its parts included."""
    found = []
    for value in vars(motion).values():
        if isinstance(value, np.ndarray):
            found.append(value)
        elif hasattr(value, "__dataclass_fields__"):
            found += arrays_of(value)
    return found


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_a_motion_read_again_is_the_same_to_the_last_bit(make_motion, tmp_path_factory, seed):
    path = tmp_path_factory.mktemp("motion") / "motion.toml"
    motion = make_motion(seed).in_order(["shoulder", "elbow", "base"])
    write_trajectory(motion, path)
    again = read_trajectory(path)
    assert type(again) is type(motion)
    assert (again.joints, again.duration) == (motion.joints, motion.duration)
    for first, second in zip(arrays_of(motion), arrays_of(again), strict=True):
        np.testing.assert_array_equal(first, second, strict=True)
    before = path.read_bytes()
    write_trajectory(again, path)
    assert path.read_bytes() == before


def test_rows_come_in_the_order_asked_for(tmp_path):
    path = tmp_path / "motion.toml"
    write_trajectory(quintic([[0, 1, 0], [0, 2, 0]], [1.0, 2.0], ["shoulder", "elbow"]), path)
    assert read_trajectory(path).joints == ("shoulder", "elbow")
    motion = read_trajectory(path, ["elbow", "shoulder"])
    assert motion.at(1.0).q[:, 0].tolist() == [2.0, 1.0]
    with pytest.raises(MotionError, match=rf"{path}: the motion moves joint 'elbow', .*did you mean 'elbo'"):
        read_trajectory(path, ["elbo", "shoulder"])
    with pytest.raises(MotionError, match="has no joint 'wrist'"):
        read_trajectory(path, ["elbow", "shoulder", "wrist"])


def test_the_file_is_for_people(tmp_path):
    path = tmp_path / "motion.toml"
    write_trajectory(trapezoidal([[0, 1, 0], [0, 2, 0.1]], 2.0, ["a", "b"]), path)
    assert path.read_text() == (
        'kind = "trapezoidal"\n'
        'joints = ["a", "b"]\n'
        "durations = 2.0\n"
        "ramp = 0.125\n"
        "cruise = 0.0\n"
        "points = [\n  [0.0, 0.0],\n  [1.0, 2.0],\n  [0.0, 0.1],\n]\n"
    )


@pytest.mark.parametrize(
    "name", ['quo"te', "back\\slash", "new\nline", "tab\t", "\x7f", "\x01", "Gelenk-ä", "関節", "𝒒"]
)
def test_any_joint_name_survives(tmp_path, name):
    path = tmp_path / "motion.toml"
    write_trajectory(quintic([[0, 1]], 1.0, [name]), path)
    assert read_trajectory(path).joints == (name,)


def test_a_smooth_motion_stays_smooth_when_its_points_are_edited(tmp_path):
    path = tmp_path / "motion.toml"
    write_trajectory(quintic([[0, 1, 0]], 1.0, ["a"], via="smooth"), path)
    path.write_text(path.read_text().replace("[1.0]", "[2.0]"))
    expected = quintic([[0, 2, 0]], 1.0, ["a"], via="smooth")
    np.testing.assert_array_equal(read_trajectory(path).at([0.3, 1.7]).q, expected.at([0.3, 1.7]).q)


QUINTIC = """
kind = "quintic"
joints = ["a", "b"]
durations = [1.0, 1]
points = [[0, 0], [0.5, -1], [0, 0]]
"""
FOURIER = """
kind = "fourier"
joints = ["a", "b"]
period = 10
q0 = [0, 0.5]
sin = [[0.3, 0.1], [0.2, 0.0]]
cos = [[0.0, 0.1], [0.1, 0.0]]
"""
APPROACH = """
kind = "approach"
joints = ["a"]
start_posture = [0.2]
duration_in = 2
duration_out = 3.0
[core]
kind = "fourier"
period = 10.0
q0 = [0.0]
sin = [[0.3]]
cos = [[0.0]]
"""


def read(tmp_path: Path, text: str) -> Trajectory:
    path = tmp_path / "motion.toml"
    path.write_text(text, encoding="utf-8")
    return read_trajectory(path)


def test_hand_written_files_are_read(tmp_path):
    assert read(tmp_path, QUINTIC).at(1.0).q[:, 0].tolist() == [0.5, -1.0]
    assert read(tmp_path, FOURIER).duration == 10.0
    motion = read(tmp_path, APPROACH)
    assert (motion.duration, motion.core_interval) == (15.0, (2.0, 12.0))
    assert motion.at(0.0).q[0, 0] == 0.2


def test_degrees_are_read_where_a_key_says_so(tmp_path):
    in_degrees = read(tmp_path, QUINTIC.replace("points = [[0, 0], [0.5, -1]", "points_deg = [[0, 0], [90, -180]"))
    np.testing.assert_allclose(in_degrees.at(1.0).q[:, 0], [np.pi / 2, -np.pi], rtol=1e-15)
    series = read(tmp_path, FOURIER.replace("q0 = [0, 0.5]", "q0_deg = [0, 45]").replace("sin =", "sin_deg ="))
    expected = fourier([0, np.pi / 4], np.deg2rad([[0.3, 0.1], [0.2, 0.0]]), [[0.0, 0.1], [0.1, 0.0]], 10.0, ["a", "b"])
    np.testing.assert_allclose(series.at([1.0, 4.0]).q, expected.at([1.0, 4.0]).q, rtol=1e-14)
    approach = read(tmp_path, APPROACH.replace("start_posture = [0.2]", "start_posture_deg = [30]"))
    assert approach.at(0.0).q[0, 0] == pytest.approx(np.pi / 6)


BAD = {
    "no kind": (
        QUINTIC,
        'kind = "quintic"',
        "",
        "'kind' is missing; .*quintic, trapezoidal, fourier, approach",
    ),
    "an unknown kind": (QUINTIC, '"quintic"', '"quintik"', "kind is 'quintik'; allowed: .*did you mean 'quintic'"),
    "a kind that is no word": (QUINTIC, '"quintic"', "5", "kind is 5; allowed"),
    "an unknown key": (QUINTIC, "durations", "duration", "unknown key 'duration'; allowed: .*mean 'durations'"),
    "a key of another kind": (
        QUINTIC,
        "durations",
        "ramp = 0.1\ndurations",
        "unknown key 'ramp'; allowed: kind",
    ),
    "a missing key": (FOURIER, "period = 10", "", "'period' is missing; a fourier motion needs q0, sin, cos, period"),
    "no joints": (QUINTIC, 'joints = ["a", "b"]', "", "'joints' is missing"),
    "joints in a text": (QUINTIC, '["a", "b"]', '"a b"', "joints is 'a b'; allowed is a list"),
    "a joint that is a number": (QUINTIC, '["a", "b"]', '["a", 2]', "joint name 2 is not a text"),
    "a joint twice": (QUINTIC, '["a", "b"]', '["a", "a"]', "joint 'a' is named more than once"),
    "a joint too many": (
        QUINTIC,
        '["a", "b"]',
        '["a", "b", "c"]',
        "entry 1 must be 3 numbers, .*: a, b, c",
    ),
    "a row too short": (QUINTIC, "[0.5, -1]", "[0.5]", "entry 2 must be 2 numbers"),
    "points in one row": (
        QUINTIC,
        "[[0, 0], [0.5, -1], [0, 0]]",
        "[0, 1]",
        "points is .0, 1.; .*list of rows",
    ),
    "a point that is a word": (QUINTIC, "0.5", '"half"', "entry 2 must be .* entry 1 must be a finite number"),
    "a point that is true": (QUINTIC, "0.5", "true", "entry 2 must be .* entry 1 must be a finite number"),
    "a point that is nan": (QUINTIC, "0.5", "nan", "entry 2 must be .* entry 1 must be a finite number"),
    "a point beyond all floats": (QUINTIC, "0.5", "1" + 400 * "0", "points. holds a very large whole number"),
    "one point": (QUINTIC, "[[0, 0], [0.5, -1], [0, 0]]", "[[0, 0]]", "points has 1 via point"),
    "a negative duration": (QUINTIC, "[1.0, 1]", "[1.0, -1]", "durations is -1 s for move 2"),
    "a duration too many": (QUINTIC, "[1.0, 1]", "[1.0, 1, 1]", r"durations has shape \(3,\)"),
    "durations as text": (QUINTIC, "[1.0, 1]", '"long"', "durations holds str"),
    "degrees and radians": (QUINTIC, "points", "points_deg = [[1, 2]]\npoints", "both points and points_deg are given"),
    "an unknown way through": (QUINTIC, "durations", 'via = "slow"\ndurations', "via is 'slow'; allowed: rest, smooth"),
    "harmonics of unequal number": (FOURIER, "[0.2, 0.0]", "[0.2]", "sin has rows of unequal length"),
    "a fractional number of periods": (FOURIER, "period = 10", "period = 10\nperiods = 1.5", "periods is 1.5"),
    "a period as text": (
        FOURIER,
        "period = 10",
        'period = "10 s"',
        r"period \[s\] is '10 s'; allowed: a finite",
    ),
    "no core": (APPROACH.split("[core]")[0], "", "", "'core' is missing"),
    "a core that is no table": (APPROACH.split("[core]")[0] + "core = 3", "", "", r"core is 3; allowed: a table"),
    "an error in the core": (APPROACH, "period = 10.0", "perod = 10.0", r"\[core\]: unknown key 'perod'.*'period'"),
    "joints in the core": (APPROACH, "period", 'joints = ["a"]\nperiod', r"\[core\]: unknown key 'joints'"),
    "a name of many lines": (QUINTIC, '["a", "b"]', '["a\\nb", "a\\nb"]', "joint 'a b' is named more than once"),
    "no TOML": ("points: [1, 2]", "", "", "not TOML .*line 1"),
    "an empty file": ("", "", "", "'joints' is missing"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_refused_in_one_line_with_its_name(case, tmp_path):
    text, old, new, message = BAD[case]
    assert old in text
    with pytest.raises(MotionError, match=message) as caught:
        read(tmp_path, text.replace(old, new, 1))
    assert str(caught.value).startswith(str(tmp_path / "motion.toml"))
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(MotionError, match=r"none.toml: no such file"):
        read_trajectory(tmp_path / "none.toml")
    with pytest.raises(MotionError, match="is a folder or a device"):
        read_trajectory(tmp_path)
    binary = tmp_path / "binary.toml"
    binary.write_bytes(bytes(range(256)))
    with pytest.raises(MotionError, match="not a text file in utf-8"):
        read_trajectory(binary)


def test_a_file_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LARGEST_FILE", 10)
    with pytest.raises(MotionError, match="larger than"):
        read(tmp_path, QUINTIC)


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "motion.toml"
    write_trajectory(quintic([[0, 1]], 1.0, ["a"]), path)
    before = path.read_bytes()

    def refuse(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(FileError, match=r"cannot write .*motion.toml': No space left on device"):
        write_trajectory(quintic([[0, 5]], 1.0, ["a"]), path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["motion.toml"]


def test_a_place_that_cannot_be_written_to_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match="choose another place"):
        write_trajectory(quintic([[0, 1]], 1.0, ["a"]), tmp_path / "file" / "motion.toml")


def test_the_examples_of_the_module_s_text_are_valid(tmp_path):
    text = (files.__doc__ or "").split("::")[1].split("Further keys")[0]
    via_points, series, approach = textwrap.dedent(text).strip().split("\n\n")
    assert read(tmp_path, via_points).joints == ("shoulder", "elbow")
    assert read(tmp_path, series).duration == 30.0
    whole = approach + "\n" + "\n".join(line for line in series.splitlines() if not line.startswith(("kind", "joints")))
    assert read(tmp_path, whole).core_interval == (2.0, 32.0)


def test_the_files_shown_in_the_documentation_are_valid(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "methods" / "motions.md").read_text(encoding="utf-8")
    shown = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert [read(tmp_path, text).duration for text in shown] == [2.5, 34.0]
