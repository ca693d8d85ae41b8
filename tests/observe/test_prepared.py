"""Samples at the full rate, as they enter the regressor."""

from __future__ import annotations

import numpy as np

from observe.cases import RATE, equations_for, model_of, recording_for
from steelyard.observe import Preparation, resolve_preparation, row_source
from steelyard.observe.samples import CREEPING, REST, prepared_blocks
from steelyard.recording import Recording
from steelyard.signals import differentiate


def recording_of(source):
    assert isinstance(source.recording, Recording)
    return source.recording


def source_of(preparation=None, **fields):
    model = model_of("scara_2r")
    recording = recording_for(model, **fields)
    resolved = resolve_preparation(preparation or Preparation(cutoff=10.0, decimation=10), [recording])
    return row_source(recording, equations_for(model), resolved, "log")


def joined(blocks, name):
    return np.concatenate([getattr(block, name) for block in blocks], axis=-1)


def test_samples_are_those_of_the_whole_array_differentiated_at_once():
    source = source_of(samples=40_000)
    blocks = list(prepared_blocks(source))
    recording = recording_of(source)
    motion = differentiate(recording.q, source.resolved.low_pass, "second")
    assert len(blocks) > 2
    assert [block.starts for block in blocks] == [True] + [False] * (len(blocks) - 1)
    for name in ("q", "qd", "qdd"):
        whole = getattr(motion, name)
        np.testing.assert_allclose(joined(blocks, name), whole, atol=1e-10 * np.abs(whole).max())
    samples = slice(motion.first, motion.first + motion.q.shape[1])
    torque = next(channel for channel in recording.torques if channel.kind == "motor_torque")
    np.testing.assert_array_equal(joined(blocks, "y"), torque.values[:, samples])
    np.testing.assert_array_equal(joined(blocks, "time"), recording.time[samples])


def test_as_many_samples_come_as_the_rows_are_made_of():
    source = source_of()
    for _ in source:
        pass
    assert sum(len(block.time) for block in prepared_blocks(source)) == source.samples


def test_a_joint_moves_where_its_speed_reaches_that_of_standstill():
    source = source_of(Preparation(cutoff=10.0, decimation=10, standstill=(0.5, 2.0)))
    blocks = list(prepared_blocks(source))
    moving, qd = joined(blocks, "moving"), joined(blocks, "qd")
    np.testing.assert_array_equal(moving, np.abs(qd) >= np.array([[0.5], [2.0]]))
    assert 0 < moving.mean() < 1


def test_a_joint_at_rest_has_no_direction_but_one_that_reverses_has():
    """Counted sample by sample, over the ends of blocks; a new segment begins to count again."""
    time = np.arange(40_000) / RATE
    q = 0.3 * np.array([np.sin(2 * time), np.sin(3 * time)])
    q[0, 20_000:] = q[0, 20_000]
    time[30_000:] += 1.0
    speed = 0.02
    source = source_of(Preparation(cutoff=10.0, decimation=10, standstill=speed), samples=40_000, time=time, q=q)
    as_moved, at_rest = (list(prepared_blocks(source, rests=rests)) for rests in (False, True))
    qd, rested = joined(as_moved, "qd"), joined(at_rest, "qd")
    expected, number, count, way = qd.copy(), 0, np.zeros(2), np.zeros(2)
    for block in as_moved:
        count, way = (np.zeros(2), np.zeros(2)) if block.starts else (count, way)
        for own in np.abs(block.qd.T):
            count, way = np.where(own < speed, count + 1, 0), np.where(own < speed, way + own, 0.0)
            expected[(count > REST * RATE) & (way < CREEPING * count * speed), number] = 0.0
            number += 1
    np.testing.assert_array_equal(rested, expected)
    np.testing.assert_array_equal(rested[1], qd[1])
    assert len(as_moved) > 2
    assert 0.4 < np.mean(rested[0] == 0) < 0.5
    np.testing.assert_array_equal(joined(at_rest, "moving"), joined(as_moved, "moving"))


def test_a_joint_that_creeps_is_not_at_rest():
    time = np.arange(10_000) / RATE
    q = np.array([0.012 * time, 0.3 * np.sin(3 * time)])
    source = source_of(Preparation(cutoff=10.0, decimation=10, standstill=0.02), samples=10_000, q=q)
    assert (joined(list(prepared_blocks(source, rests=True)), "qd") != 0).all()


def test_a_gap_begins_a_new_segment_with_the_number_of_its_rows():
    time = np.arange(6000) / RATE
    time[3000:] += 1.0
    source = source_of(time=time)
    blocks = list(prepared_blocks(source))
    assert [block.segment for block in blocks if block.starts] == [0, 1]
    assert {block.segment for block in source} == {0, 1}
    assert all(not block.q.flags.writeable for block in blocks)


def test_a_segment_too_short_for_the_filter_is_counted_but_gives_no_samples():
    time = np.arange(6000) / RATE
    time[3000:] += 1.0
    time[3040:] += 1.0
    blocks = list(prepared_blocks(source_of(time=time)))
    assert [block.segment for block in blocks if block.starts] == [0, 2]
