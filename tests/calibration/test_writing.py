"""Measurements as a file: what is written is read back to the last bit."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from calibration.small_problems import joined
from steelyard.calibration import Measurements, read_measurements, write_measurements
from steelyard.calibration.chain.simulated import planned_measurements, simulated_measurements
from steelyard.calibration.measurement.setup import CalibrationSetup, FrameSetup, Load, MarkerSetup
from steelyard.errors import CalibrationError
from steelyard.robot import load_robot

ROBOT = load_robot("kuka_kr270")
HEAVY, ASIDE = (Load(name, (0.0, 0.0, -2600.0), (0.0, 0.0, 0.0), (0.1, 0.0, 0.0)) for name in ("heavy", "aside"))
SETUP = CalibrationSetup(
    "tool", base=FrameSetup((1.0, 2.0, 3.0), (0.1, -0.2, 0.3)), loads=(HEAVY, ASIDE),
    markers=(MarkerSetup("nose", (0.1, 0.2, -0.2)), MarkerSetup("tail, left", (0.0, -0.2, 0.1))),
)  # fmt: skip
Q = np.random.default_rng(5).uniform(-1.5, 1.5, (6, 3))


def simulated(**what) -> Measurements:
    return simulated_measurements(ROBOT, SETUP, Q, {"offset2": 1e-3}, sigma=1e-4, angle_sigma=1e-4, **what)


def distances() -> Measurements:
    planned = planned_measurements(ROBOT, SETUP, Q)
    first = planned.taken(planned.marker == 0)
    value = np.column_stack([np.random.default_rng(6).uniform(0.3, 0.5, first.rows), np.full((first.rows, 2), np.nan)])
    return replace(first, kind=("distance",) * first.rows, other=np.ones(first.rows, dtype=int), value=value)


def partly_seen() -> Measurements:
    found = simulated(repeats=2)
    value = found.value.copy()
    value[1, 2], value[4, :2] = np.nan, np.nan
    return replace(found, value=value)


WRITTEN = {
    "positions": simulated,
    "repeats under several loads": partial(simulated, repeats=3, loads=("", "heavy", "aside")),
    "differences": partial(simulated, kind="difference", loads=("aside",), repeats=2),
    "poses": partial(simulated, kind="pose", repeats=2),
    "distances": distances,
    "coordinates that are missing": partly_seen,
}


@pytest.mark.parametrize("kind", WRITTEN)
def test_what_is_written_is_read_back_to_the_last_bit(kind, tmp_path):
    measured = WRITTEN[kind]()
    path = tmp_path / "new" / "points.csv"
    write_measurements(path, measured, [load.name for load in SETUP.loads])
    found = read_measurements(path, ROBOT, SETUP)
    assert (found.joints, found.kind, found.poses, found.markers) == (
        measured.joints, measured.kind, measured.poses, measured.markers,
    )  # fmt: skip
    for name in ("q", "pose", "marker", "other", "load", "value", "rotation", "repeat"):
        np.testing.assert_array_equal(getattr(found, name), getattr(measured, name), err_msg=name)
    assert [each.name for each in path.parent.iterdir()] == ["points.csv"]


def test_kinds_may_stand_in_one_file(tmp_path):
    both = joined(simulated(), simulated(kind="pose"))
    write_measurements(tmp_path / "both.csv", both)
    found = read_measurements(tmp_path / "both.csv", ROBOT, SETUP)
    assert found.kind == both.kind
    np.testing.assert_array_equal(found.rotation, both.rotation)
    np.testing.assert_array_equal(found.value, both.value)


def test_columns_that_nothing_fills_are_left_out(tmp_path):
    write_measurements(tmp_path / "points.csv", simulated())
    header = (tmp_path / "points.csv").read_text().splitlines()[0]
    assert header == "kind,pose,marker,repeat,joint_1,joint_2,joint_3,joint_4,joint_5,joint_6,x,y,z"


def test_a_load_without_a_name_is_refused(tmp_path):
    with pytest.raises(CalibrationError, match="loads up to number 1, but 1 names"):
        write_measurements(tmp_path / "points.csv", simulated(loads=("aside",)), ["heavy"])
    assert not (tmp_path / "points.csv").exists()


@pytest.mark.parametrize("name", ["", " nose", "no\nse"])
def test_a_name_that_would_not_be_read_back_is_refused(name, tmp_path):
    with pytest.raises(CalibrationError, match="cannot be read back"):
        write_measurements(tmp_path / "points.csv", replace(simulated(), markers=(name, "tail")))


def test_a_joint_with_the_name_of_another_column_is_refused(tmp_path):
    with pytest.raises(CalibrationError, match="joint 'x'"):
        write_measurements(tmp_path / "points.csv", replace(simulated(), joints=("x", "b", "c", "d", "e", "f")))
