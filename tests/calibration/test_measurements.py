"""The record of measurements: shapes, rows, numbers."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.calibration.measurement.measurements import Measurements, position_measurements
from steelyard.errors import CalibrationError

JOINTS = ("shoulder", "elbow")


def measured(**changes) -> Measurements:
    given = {
        "joints": JOINTS, "q": np.zeros((2, 3)), "kind": ("position", "pose", "distance"), "pose": [0, 1, 1],
        "marker": [0, -1, 0], "other": [-1, -1, 1], "load": [-1, -1, -1],
        "value": [[1, 2, np.nan], [1, 2, 3], [0.5, np.nan, np.nan]],
        "rotation": np.stack([np.full((3, 3), np.nan), np.eye(3), np.full((3, 3), np.nan)]), "repeat": [0, 0, 0],
        "poses": ("1", "2"), "markers": ("a", "b"),
    }  # fmt: skip
    return Measurements(**{**given, **changes})


def test_arrays_cannot_be_written_and_are_copies():
    q = np.zeros((2, 3))
    record = measured(q=q)
    q[:] = 1
    assert not record.q.any()
    with pytest.raises(ValueError, match="read-only"):
        record.value[0, 0] = 1


def test_rows_are_taken_by_mask_and_by_number():
    record = measured()
    by_mask, by_number = record.taken(record.pose == 1), record.taken([1, 2])
    for part in (by_mask, by_number):
        assert part.kind == ("pose", "distance")
        assert part.poses == record.poses
        np.testing.assert_array_equal(part.other, [-1, 1])
    np.testing.assert_array_equal(record.of_kind("pose"), [False, True, False])


def test_arrays_become_a_row_for_each_marker_and_repeat():
    q = np.arange(8.0).reshape(2, 4)
    value = np.random.default_rng(0).normal(size=(4, 3, 2, 3))
    record = position_measurements(JOINTS, q, value, ("a", "b", "c"), load=0, kind="difference")
    assert record.rows == 24
    assert record.kind == ("difference",) * 24
    for row in range(24):
        pose, marker, repeat = record.pose[row], record.marker[row], record.repeat[row]
        np.testing.assert_array_equal(record.value[row], value[pose, marker, repeat])
        np.testing.assert_array_equal(record.q[:, row], q[:, pose])
    assert position_measurements(JOINTS, q, value[:, :, 0], ("a", "b", "c")).rows == 12


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"q": np.zeros((3, 2))}, r"q has shape \(3, 2\); \(2, 3\) is expected"),
        ({"value": np.zeros((3, 2))}, r"value has shape"),
        ({"q": np.full((2, 3), np.nan)}, r"q of row 1 holds .*finite"),
        ({"kind": ("position", "pose", "angle")}, r"measures 'angle'; allowed: position, pose, distance, difference"),
        ({"pose": [0, 1, 2]}, r"pose holds numbers from 0 to 2; allowed are 0 to 1"),
        ({"pose": [-1, 1, 1]}, r"pose holds numbers from -1"),
        ({"marker": [0, -1, 2]}, r"marker holds numbers from -1 to 2; allowed are -1 to 1"),
    ],
)
def test_records_that_make_no_sense_are_refused(changes, said):
    with pytest.raises(CalibrationError, match=said):
        measured(**changes)


def test_values_of_another_shape_are_refused():
    with pytest.raises(CalibrationError, match=r"\(4, 1, repeats, 3\) is expected"):
        position_measurements(JOINTS, np.zeros((2, 4)), np.zeros((4, 3)))
