"""Raw columns become samples: what is left out is counted and placed, whatever the blocks of the reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from recording.logs import kinds, one
from steelyard.errors import RecordingError
from steelyard.recording import setup_from_table
from steelyard.recording.assembly import Assembly, Unwrapper, side_by_side
from steelyard.recording.plan import make_plan
from steelyard.recording.record import Samples, joined
from steelyard.robot import Robot
from steelyard.tables import Block, table_from_arrays
from steelyard.tables.table import ReadLog

SIZES = pytest.mark.parametrize("size", [1, 7, 1000])


def arrays_of(time: Sequence[float] | np.ndarray) -> dict[str, np.ndarray]:
    """Stamps, and positions that say which row they are of."""
    count = len(time)
    return {
        "time": np.array(time, dtype=float),
        "q": np.stack([np.arange(count), np.arange(count) / 100]).astype(float),
    }


def assembled(robot: Robot, arrays: Mapping[str, np.ndarray], size: int = 1000, **declared) -> tuple[Assembly, Samples]:
    """Return an assembly that has taken arrays in blocks of some size, and its samples."""
    plan = make_plan(robot, setup_from_table(declared), [table_from_arrays(arrays)])
    assembly, found = Assembly(plan), []
    (whole,) = plan.tables[0].read(plan.wanted[0], ReadLog())
    for first in range(0, whole.rows, size):
        samples = assembly.take([whole.part(first, min(first + size, whole.rows))])
        found += [] if samples is None else [samples]
    return assembly, joined(found)


@SIZES
@pytest.mark.parametrize(
    ("step", "back", "pause"),
    [(0.005, 0.49, None), (0.005, 0.51, 1.0), (0.1, 1.95, None), (0.1, 2.05, 10.0)],
    ids=["late by less than 0.5 s", "by more", "late by less than 20 steps", "by more"],
)
def test_stamps_that_go_back_by_half_a_second_and_by_twenty_steps_start_again(robot, size, step, back, pause):
    first = 50.0 + step * np.arange(40)
    second = first[-1] - back + step * np.arange(100)
    assembly, samples = assembled(robot, arrays_of([*first, *second]), size)
    if pause is None:
        later = second > first[-1]
        np.testing.assert_array_equal(samples.time, [*first, *second[later]])
        assert assembly.restarts == []
    else:
        np.testing.assert_allclose(samples.time, [*first, *(second - second[0] + first[-1] + pause)], rtol=1e-12)
        assert assembly.restarts == [samples.time[40]]


@SIZES
def test_logs_that_start_again_are_told_with_the_farthest_way_back(robot, size):
    """The second part ends with a stamp that is late: the pause is counted from the latest."""
    time = [*np.arange(0, 4, 0.1), *np.arange(0.5, 2.5, 0.1), 2.3, *np.arange(0.2, 1.2, 0.1)]
    assembly, samples = assembled(robot, arrays_of(time), size)
    second = 3.9 + 10 + np.arange(20) * 0.1
    third = second[-1] + 10 + np.arange(10) * 0.1
    np.testing.assert_allclose(samples.time, [*np.arange(0, 4, 0.1), *second, *third], rtol=1e-12)
    found = one(assembly.findings(), "concatenated")
    assert found.text == (
        "the stamps start again 2 times, by up to 3.4 s: logs appended to each other, or a clock set back; "
        "split into 3 parts, no row is lost"
    )
    assert (found.severity, found.count, found.where_unit) == ("warning", 2, "s")
    assert found.where == pytest.approx([second[0], third[0]])
    late = one(assembly.findings(), "backward_stamp")
    assert late.text == "a stamp before an earlier one in 1 row, left out"
    assert late.where == pytest.approx([second[0] + 1.8])


def test_of_many_restarts_the_first_five_are_placed(robot):
    assembly, samples = assembled(robot, arrays_of(np.tile(np.arange(30) * 0.1, 8)), 7)
    found = one(assembly.findings(), "concatenated")
    assert found.count == 7
    assert found.where == tuple(samples.time[30:180:30])


@SIZES
def test_rows_without_a_number_are_counted_and_the_first_five_placed(robot, size):
    arrays = arrays_of(0.01 * np.arange(40))
    arrays["q"][1, [0, 8, 9, 10, 20, 21, 30]] = np.nan
    arrays["q"][0, [8, 14]] = 1e30, -1e31
    assembly, samples = assembled(robot, arrays, size)
    left = [row for row in range(40) if row not in (0, 8, 9, 10, 14, 20, 21, 30)]
    np.testing.assert_array_equal(samples.time, arrays["time"][left])
    np.testing.assert_array_equal(samples.channels[0], arrays["q"][:, left])
    missing, absurd = one(assembly.findings(), "not_a_number"), one(assembly.findings(), "infinite")
    assert missing.text == "q of elbow: no number in 7 rows, left out"
    assert (missing.count, missing.where, missing.where_unit) == (7, (1, 9, 10, 11, 21), "row")
    assert missing.values == {}  # no sample is before the first row
    assert absurd.text == "q of shoulder: an infinite or absurd number in 2 rows, left out"
    assert (absurd.count, absurd.where) == (2, (9, 15))
    assert absurd.values == {"sample_before": arrays["time"][7]}


@SIZES
def test_a_number_below_the_largest_is_kept_however_large(robot, size):
    arrays = arrays_of(0.01 * np.arange(10))
    arrays["q"][0, 4:6] = 0.9e30, -0.9e30
    assembly, samples = assembled(robot, arrays, size)
    np.testing.assert_array_equal(samples.channels[0], arrays["q"])
    assert assembly.findings() == []


def test_a_stamp_that_is_no_number_is_told_as_one_of_time(robot):
    arrays = arrays_of([0.0, 0.1, np.nan, 0.3])
    assembly, _ = assembled(robot, arrays)
    found = one(assembly.findings(), "not_a_number")
    assert (found.text, found.joint, found.where) == ("time: no number in 1 row, left out", "", (3,))
    assert found.values == {"sample_before": 0.1}


def test_rows_that_the_reader_marks_are_left_out_and_not_counted_again(robot):
    arrays = arrays_of(0.1 * np.arange(6))
    arrays["q"][0, [2, 4]] = np.nan
    plan = make_plan(robot, setup_from_table({}), [table_from_arrays(arrays)])
    (whole,) = plan.tables[0].read(plan.wanted[0], ReadLog())
    assembly = Assembly(plan)
    samples = assembly.take([Block(whole.columns, np.arange(6) == 2)])
    assert samples is not None
    np.testing.assert_array_equal(samples.time, arrays["time"][[0, 1, 3, 5]])
    found = one(assembly.findings(), "not_a_number")
    assert (found.count, found.where) == (1, (5,))


@SIZES
def test_repeated_stamps_are_counted_and_the_first_five_placed(robot, size):
    time = 0.1 * np.arange(30)
    repeated = [6, 7, 8, 14, 15, 20, 21]
    time[repeated] = time[[5, 5, 5, 13, 13, 19, 19]]
    assembly, samples = assembled(robot, arrays_of(time), size)
    assert samples.channels[0][0].tolist() == [row for row in range(30) if row not in repeated]
    found = one(assembly.findings(), "duplicate_stamp")
    assert found.text == "a repeated stamp in 7 rows, left out"
    assert (found.severity, found.channel, found.count, found.where_unit) == ("warning", "time", 7, "s")
    assert found.where == tuple(time[repeated[:5]])
    assert kinds(assembly.findings()) == {"duplicate_stamp"}


@SIZES
def test_rows_are_taken_from_the_first_to_the_last_and_then_no_more(robot, size):
    arrays = arrays_of(0.1 * np.arange(40))
    arrays["q"][0, [2, 15, 35]] = np.nan
    assembly, samples = assembled(robot, arrays, size, rows="11:20")
    np.testing.assert_array_equal(samples.time, np.delete(arrays["time"][10:20], 5))
    assert (assembly.used, assembly.rows) == (9, 40)
    assert one(assembly.findings(), "not_a_number").where == (16,)


def test_reading_ends_with_the_last_row_wanted(robot):
    plan = make_plan(robot, setup_from_table({"rows": "3:6"}), [table_from_arrays(arrays_of(0.1 * np.arange(9)))])
    (whole,) = plan.tables[0].read(plan.wanted[0], ReadLog())
    assembly, ends = Assembly(plan), []
    for first in range(0, 8, 2):
        samples = assembly.take([whole.part(first, first + 2)])
        ends.append((samples is None, assembly.finished))
    assert ends == [(True, False), (False, False), (False, True), (True, True)]


def test_without_stamps_the_rows_are_even_from_the_first_of_the_file(robot):
    arrays = arrays_of(np.arange(12))
    declared = {"rate": 50.0, "q": "q", "rows": "3:12"}
    for size in (1, 5, 12):
        _, samples = assembled(robot, {"q": arrays["q"]}, size, **declared)
        np.testing.assert_allclose(samples.time, np.arange(2, 12) / 50, rtol=1e-15)


@SIZES
def test_seconds_are_counted_from_the_first_sample_with_both_ends(robot, size):
    time = 7.0 + 0.25 * np.arange(40)
    assembly, samples = assembled(robot, arrays_of(time), size, seconds=[1.0, 2.0])
    np.testing.assert_array_equal(samples.time, [8.0, 8.25, 8.5, 8.75, 9.0])
    assert assembly.finished
    assert assembly.used == 5
    assembly, _ = assembled(robot, arrays_of(time[:9]), size, seconds=[1.0, 2.0])
    assert not assembly.finished  # the last stamp may be wanted, and what is later is not there yet


def test_angles_that_wrap_are_told_by_joint_and_only_where_they_do(robot):
    arrays = arrays_of(0.01 * np.arange(400))
    turning = np.linspace(0.0, 14.0, 400)
    arrays["q"] = np.stack([(turning + np.pi) % (2 * np.pi) - np.pi, np.cos(turning)])
    assembly, samples = assembled(robot, arrays, 7, q={"columns": "q", "unwrap": True})
    np.testing.assert_allclose(samples.channels[0], [turning, np.cos(turning)], atol=1e-12)
    (found,) = assembly.findings()
    assert found.text == "q of shoulder wrapped round 2 times; undone, because unwrap = true"
    assert (found.kind, found.severity, found.joint, found.count) == ("unwrapped", "info", "shoulder", 2)


def test_a_step_of_half_a_turn_is_motion_and_more_is_a_wrap():
    unwrapper = Unwrapper()
    assert unwrapper.take(np.zeros((1, 0)), np.ones(1)).shape == (1, 0)
    steps = np.array([[0.0, 0.49, 0.0, 0.51, 2.4, 2.0]]) * 2 * np.pi
    np.testing.assert_allclose(
        unwrapper.take(steps, np.ones(1)) / (2 * np.pi), [[0, 0.49, 0, -0.49, -0.6, -1]], atol=1e-12
    )
    assert unwrapper.turns.tolist() == [2]


@pytest.mark.parametrize("repeated", [4, 5, 6])
def test_more_stamps_that_are_not_later_than_samples_left_are_refused(robot, repeated):
    arrays = arrays_of([*(0.1 * np.arange(5)), *[0.4] * repeated])
    assembly, _ = assembled(robot, arrays)
    if repeated <= 5:
        assert one(assembly.findings(), "duplicate_stamp").count == repeated
    else:
        with pytest.raises(RecordingError, match=r"5 samples are left of 11 rows \(6 stamps are not later than those"):
            assembly.findings()


def test_a_restart_counts_as_a_stamp_that_is_not_later(robot):
    """Three stamps, each of a log of its own: no more samples than restarts and repeated stamps are left."""
    assembly, _ = assembled(robot, arrays_of([9.0, 9.0, 9.0, 0.0]))
    assert (assembly.used, len(assembly.restarts)) == (2, 1)
    with pytest.raises(RecordingError, match=r"2 samples are left of 4 rows \(3 stamps are not later"):
        assembly.findings()


def test_two_samples_are_enough_and_one_is_not(robot):
    assert assembled(robot, arrays_of([0.0, 0.1]))[0].findings() == []
    with pytest.raises(RecordingError, match=r"1 samples are left of 2 rows \(no more are usable\)"):
        assembled(robot, arrays_of([0.0, 0.1]), rows="1:1")[0].findings()


def test_the_channel_that_spoils_most_rows_is_named(robot):
    arrays = arrays_of(0.1 * np.arange(6))
    arrays["q"][0, :2], arrays["q"][1, 1:] = np.nan, np.nan
    plan = make_plan(robot, setup_from_table({}), [table_from_arrays(arrays)])
    assembly = Assembly(plan)
    assert assembly.take(list(plan.tables[0].read(plan.wanted[0], ReadLog()))) is None
    with pytest.raises(
        RecordingError, match="q of elbow has no finite number in 5 of 6 rows, too few samples are left"
    ):
        assembly.findings()


def test_a_known_torque_of_some_joints_is_zero_at_the_others(robot):
    arrays = {**arrays_of(0.1 * np.arange(4)), "spring": np.array([3.0, 4.0, 5.0, 6.0])}
    declared = {"q": "q", "known_torque": {"columns": "spring", "joints": ["elbow"], "sign": -1}}
    _, samples = assembled(robot, arrays, **declared)
    np.testing.assert_array_equal(samples.channels[1], [[0, 0, 0, 0], [-3, -4, -5, -6]])


def test_files_side_by_side_are_cut_to_equal_rows_and_end_with_the_shortest():
    first = [Block((np.arange(3),)), Block((np.arange(3, 5),))]
    second = [Block((10 + np.arange(1),)), Block((10 + np.arange(1, 4),))]
    pairs = list(side_by_side([iter(first), iter(second)]))
    assert [[block.columns[0].tolist() for block in pair] for pair in pairs] == [
        [[0], [10]],
        [[1, 2], [11, 12]],
        [[3], [13]],
    ]
