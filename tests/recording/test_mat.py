"""MAT-files of version 5, written by SciPy: the same recording as from NPZ."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.io import loadmat, savemat

from recording.logs import one
from steelyard.errors import TableError
from steelyard.recording import read_recording, setup_from_table
from steelyard.tables import ReadLog, TextOptions, open_table, read_columns
from steelyard.tables import mat as mat_module


def assert_same(recording, motion):
    np.testing.assert_array_equal(recording.time, motion.time)
    np.testing.assert_array_equal(recording.q, motion.q)
    np.testing.assert_array_equal(recording.torque("joint_torque").values, motion.tau)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
def test_arrays_are_columns(robot, motion, tmp_path, monkeypatch, packed, transposed):
    monkeypatch.setattr(mat_module, "BLOCK_ROWS", 300)
    arrays = {name: np.atleast_2d(values).T if transposed else values for name, values in motion.arrays().items()}
    more = {"label": "warm", "gains": np.ones(6), "rate": 200.0, "z": 1j * np.ones(2000)}
    more["cells"] = np.array([1, "a"], object)
    savemat(tmp_path / "log.mat", {**arrays, **more}, do_compression=packed)
    recording = read_recording(robot, tmp_path / "log.mat")
    assert_same(recording, motion)
    text = one(recording.findings, "text").text
    assert "1 of other lengths than 2000 (gains)" in text
    assert "1 of complex numbers" in text


@pytest.mark.parametrize("packed", [False, True])
def test_structures_of_simulink_are_read(robot, motion, tmp_path, packed):
    """'Structure with time': time (N, 1), signals.values (N, n) or (n, 1, N)."""
    signals = np.array([(motion.q.T, "q"), (motion.tau[:, None, :], "tau")], dtype=[("values", "O"), ("label", "O")])
    savemat(tmp_path / "log.mat", {"out": {"time": motion.time[:, None], "signals": signals}}, do_compression=packed)
    torque = {"kind": "joint_torque", "columns": "out.signals(2).values"}
    setup = setup_from_table({"time": "out.time", "q": "out.signals(1).values", "torque": torque})
    assert_same(read_recording(robot, setup, files=tmp_path / "log.mat"), motion)
    relative = setup_from_table({"group": "out", "q": "signals(1).values"})
    np.testing.assert_array_equal(read_recording(robot, relative, files=tmp_path / "log.mat").time, motion.time)


def test_one_of_several_structures_is_chosen(robot, motion, tmp_path):
    runs = {"first": motion.arrays(), "second": {name: values[..., 500:] for name, values in motion.arrays().items()}}
    savemat(tmp_path / "log.mat", {"runs": runs})
    with pytest.raises(TableError, match=r'runs\.first \(2000 samples\), runs\.second \(1500.*group = "runs\.first"'):
        read_recording(robot, tmp_path / "log.mat")
    assert_same(read_recording(robot, setup_from_table({"group": "runs.first"}), files=tmp_path / "log.mat"), motion)


KINDS = st.sampled_from(["f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?"])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(1, 4), KINDS, st.integers(0, 3)), min_size=1, max_size=6),
    st.integers(2, 60),
    st.booleans(),
)
def test_any_structure_comes_back(tmp_path, shapes, samples, packed):
    rng = np.random.default_rng(samples)
    content, expected = {}, {}
    for number, (width, kind, depth) in enumerate(shapes):
        values = rng.integers(0, 100, (samples, width)).astype(kind)
        inner, path = {f"a{number}": values}, f"a{number}"
        for level in range(depth):
            inner, path = {f"s{number}_{level}": inner}, f"s{number}_{level}.{path}"
        content |= inner
        if width < samples or width == samples:
            columns = [f"{path}[{k}]" for k in range(1, width + 1)] if width > 1 else [path]
            expected |= dict(zip(columns, values.T.astype(float), strict=True))
    longest = max(samples, *(width for width, _, _ in shapes))
    savemat(tmp_path / "log.mat", content, do_compression=packed)
    table = open_table(tmp_path / "log.mat", TextOptions(group="/"))
    if longest == samples:
        assert set(table.names) == set(expected)
        (block,) = table.read(range(len(table.names)), ReadLog())
        for name, values in zip(table.names, block.columns, strict=True):
            np.testing.assert_array_equal(values, expected[name])


def test_numbers_are_those_of_scipy(tmp_path):
    values = np.random.default_rng(1).standard_normal((50, 3))
    savemat(tmp_path / "log.mat", {"whole": np.arange(50.0), "values": values})  # MATLAB packs whole numbers as bytes
    own = read_columns(tmp_path / "log.mat")
    other = loadmat(tmp_path / "log.mat")
    np.testing.assert_array_equal(own.numbers("values[2]"), other["values"][:, 1])
    np.testing.assert_array_equal(own.numbers("whole"), other["whole"].ravel())


def test_measurements_have_texts(tmp_path):
    markers, rows = np.array(["nose", "ear", "nöse"], dtype=object), np.array(["p1", "p2", "p30"])
    savemat(tmp_path / "points.mat", {"marker": markers, "pose": rows, "x": np.arange(3.0)[:, None]})
    columns = read_columns(tmp_path / "points.mat")
    assert columns.texts("marker") == ["nose", "ear", "nöse"]
    assert columns.texts("pose") == ["p1", "p2", "p30"]
    assert columns.numbers("x").tolist() == [0.0, 1.0, 2.0]


def test_damage_bombs_and_version_4_are_refused(robot, motion, tmp_path):
    path = tmp_path / "log.mat"
    savemat(path, motion.arrays())
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    with pytest.raises(TableError, match="longer than what holds it; is the file cut"):
        read_recording(robot, path)
    savemat(path, {"q": np.zeros(20_000_000)}, do_compression=True)
    with pytest.raises(TableError, match="unpacks to more than 100 times its size"):
        read_recording(robot, path)
    savemat(path, motion.arrays(), format="4")
    with pytest.raises(TableError, match="version 4 is not read"):
        read_recording(robot, path)
