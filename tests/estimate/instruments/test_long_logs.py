"""Streams of any length: the numbers of the recording in memory, in memory that does not grow."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from estimate.instruments.disturbed_scara import evidence_of, moves
from steelyard.estimate.instruments import (
    InstrumentSettings,
    direct_and_inverse,
    instrumental_variables,
    pairs,
)
from steelyard.observe import Preparation
from steelyard.recording import RecordingStream, stream_recording, write_recording
from steelyard.recording import cache as recording_cache
from steelyard.robot import load_robot
from steelyard.simulation import Experiment, Noise, recording_of, simulate
from steelyard.tables import npz

METHODS = (instrumental_variables, direct_and_inverse)
CHOSEN = Preparation(15.0, 4, decimation=4, trim=20, standstill=(0.02, 0.1))
QUICK = InstrumentSettings(control_rate=100, plant_rate=100, most_rounds=2)


@cache
def recorded(seconds: int):
    experiment = Experiment(record_rate=100, control_rate=100, plant="ideal", motor_noise=Noise("white", (2.0, 0.1)))
    return recording_of(simulate(load_robot("scara_2r"), moves(seconds), experiment))


def stream_of(recording, path) -> RecordingStream:
    return stream_recording(load_robot("scara_2r"), write_recording(recording, path))


@pytest.mark.parametrize("commanded", [True, pytest.param(False, marks=pytest.mark.large)])
@pytest.mark.parametrize("method", METHODS)
def test_a_stream_gives_the_numbers_of_the_recording_in_memory(tmp_path, monkeypatch, method, commanded):
    monkeypatch.setattr(recording_cache, "IN_MEMORY", 50_000)
    recording = recorded(100)
    recording = recording if commanded else replace(recording, reference=None)
    stream = stream_of(recording, tmp_path / "log.csv")
    whole, parts = (method(evidence_of(each, CHOSEN), QUICK, {}) for each in (recording, stream))
    np.testing.assert_array_equal(parts.estimate.values, whole.estimate.values)
    np.testing.assert_array_equal(parts.estimate.covariance, whole.estimate.covariance)
    assert parts.notes == whole.notes
    assert parts.endogeneity == whole.endogeneity


@pytest.mark.large
@pytest.mark.parametrize("method", METHODS)
def test_memory_does_not_grow_with_the_stream(tmp_path, monkeypatch, method):
    monkeypatch.setattr(recording_cache, "IN_MEMORY", 50_000)
    monkeypatch.setattr(pairs, "_CACHED_BYTES", 0)
    monkeypatch.setattr(npz, "BLOCK_ROWS", 4096)
    peaks = []
    for seconds in (20, 250, 600):  # the first one compiles
        evidence = evidence_of(stream_of(recorded(seconds), tmp_path / "log.npz"), replace(CHOSEN, decimation=10))
        tracemalloc.start()
        method(evidence, QUICK, {})
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # Three numbers a sample would be too much; the reference alone has six.
    assert peaks[2] < peaks[1] + 350 * 100 * 3 * 8
