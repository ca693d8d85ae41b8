"""Samples as they were measured, even and in blocks."""

from __future__ import annotations

import numpy as np
import pytest

from observe.cases import RATE, equations_for, model_of, recording_for
from steelyard.errors import ObservationError
from steelyard.observe import Preparation, raw_samples, resolve_preparation, row_source


def source_of(**fields):
    model = model_of("scara_2r")
    recording = recording_for(model, **fields)
    resolved = resolve_preparation(Preparation(cutoff=10.0, decimation=10), [recording])
    return row_source(recording, equations_for(model), resolved, "log"), recording


def joined(blocks, name):
    return np.concatenate([getattr(block, name) for block in blocks], axis=-1)


def test_even_samples_come_as_they_are():
    source, recording = source_of(samples=20_000)
    blocks = list(raw_samples(source))
    assert len(blocks) > 2
    assert [block.starts for block in blocks] == [True] + [False] * (len(blocks) - 1)
    np.testing.assert_array_equal(joined(blocks, "time"), recording.time)
    np.testing.assert_array_equal(joined(blocks, "q"), recording.q)
    torque = next(channel for channel in recording.torques if channel.kind == "motor_torque")
    np.testing.assert_array_equal(joined(blocks, "y"), torque.values)
    assert all(block.qd is None and not block.q.flags.writeable for block in blocks)


def test_a_gap_begins_a_new_segment():
    time = np.arange(6000) / RATE
    time[3000:] += 1.0
    blocks = list(raw_samples(source_of(time=time)[0]))
    assert [len(block.time) for block in blocks] == [3000, 3000]
    assert [block.starts for block in blocks] == [True, True]


def test_uneven_stamps_are_resampled():
    rng = np.random.default_rng(0)
    time = (np.arange(6000) + rng.uniform(-0.2, 0.2, 6000)) / RATE
    source, _ = source_of(time=time)
    stamps = joined(list(raw_samples(source)), "time")
    np.testing.assert_allclose(np.diff(stamps), 1 / source.resolved.rate, rtol=1e-6)


def test_velocities_come_when_they_are_wanted_and_recorded():
    qd = np.random.default_rng(1).standard_normal((2, 6000))
    source, recording = source_of(qd=qd)
    blocks = list(raw_samples(source, velocity=True))
    np.testing.assert_array_equal(joined(blocks, "qd"), qd)
    np.testing.assert_array_equal(joined(blocks, "q"), recording.q)
    with pytest.raises(ObservationError, match="no recorded velocity"):
        next(raw_samples(source_of()[0], velocity=True))
