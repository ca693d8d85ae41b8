"""Periods averaged while a recording passes by: the numbers of the whole, in memory that does not grow."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from estimate.likelihood.periodic_arms import p4
from estimate.likelihood.test_maximum_likelihood import PERIOD, RATE, evidence_of, recording
from steelyard.errors import EstimateError
from steelyard.estimate.likelihood import (
    LikelihoodSettings,
    maximum_likelihood,
    motion_basis,
    periodic,
    torque_functions,
)
from steelyard.estimate.likelihood.periodic import averaged_periods, longest_segment
from steelyard.observe import Preparation, resolve_preparation, row_source
from steelyard.recording import Recording, RecordingStream, TorqueChannel, stream_recording, write_recording
from steelyard.signals import average_periods
from steelyard.tables import npz


def stream_of(log: Recording, path) -> RecordingStream:
    return stream_recording(p4().equations.model.robot, write_recording(log, path))


def source_of(log: Recording):
    resolved = resolve_preparation(Preparation(cutoff=5.0, decimation=10), [log])
    return row_source(log, p4().equations, resolved, "run")


def without(log: Recording, lost) -> Recording:
    selected = np.delete(np.arange(log.samples), lost)
    torques = tuple(TorqueChannel(c.kind, c.values[:, selected]) for c in log.torques)
    return replace(log, time=log.time[selected], q=log.q[:, selected], torques=torques)


@pytest.mark.parametrize("most", [None, 5000, 100_000])
def test_means_and_spread_are_those_of_all_periods_in_the_longest_segment_of_a_log(most):
    log = without(recording(0, 12.3), np.r_[700:760, 17_000:17_010])
    source = source_of(log)
    segment = longest_segment(source, most)
    assert (segment.first, segment.count, segment.samples) == (700, 16_240, log.samples)
    np.testing.assert_array_equal(segment.head, log.q[:, 700 : 700 + (most or 16_240)][:, :16_240])
    signals = np.concatenate([log.q, log.torques[0].values])[:, 700 : 700 + 16_240]
    expected = average_periods(signals, RATE, PERIOD)
    found = averaged_periods(source, segment, 1500, expected.periods, most)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(found.pooled_variance, expected.pooled_variance, rtol=1e-12)
    if most != 5000:
        np.testing.assert_array_equal(found.repeated, signals[:3])


def test_too_many_periods_become_mean_periods_of_neighbours(monkeypatch):
    monkeypatch.setattr(periodic, "_LEAST_GROUPS", 2)
    log = recording(0, 11)
    source = source_of(log)
    found = averaged_periods(source, longest_segment(source, 100), 1500, 11, 100)
    # Four at most: 1, 1, 1, 1 become 2, 2; then 2, 2, 2, 2 become 4, 4; what is left does not fill another.
    expected = log.q[:, :12_000].reshape(3, 2, 4, 1500).mean(axis=2).reshape(3, -1)
    np.testing.assert_allclose(found.repeated, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("most", [pytest.param(200_000, marks=pytest.mark.large), 20_000])
def test_a_stream_gives_the_numbers_of_the_recording_in_memory(tmp_path, monkeypatch, most):
    monkeypatch.setattr(periodic, "LOOKED_AT", most)
    log = recording(0, 40.5)
    settings = LikelihoodSettings()
    stream = stream_of(log, tmp_path / "log.csv")
    whole, parts = (maximum_likelihood(evidence_of(each), settings, {}) for each in (log, stream))
    assert "40 periods averaged" in whole.notes[0]
    np.testing.assert_allclose(parts.estimate.values, whole.estimate.values, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(parts.estimate.sigma, whole.estimate.sigma, rtol=1e-9)
    assert parts.notes == whole.notes


@pytest.mark.large
def test_a_stream_whose_period_is_no_whole_number_of_samples_finds_it_in_all_of_them(tmp_path, monkeypatch):
    monkeypatch.setattr(periodic, "LOOKED_AT", 5000)
    time, log = np.arange(9000) / RATE, recording(0, 6)
    motion = p4().coefficients @ motion_basis(time, PERIOD + 1 / 300, range(1, 6))
    noise = np.random.default_rng(0).normal(scale=1e-3, size=log.q.shape)
    torques = torque_functions(p4().equations, p4().equations.names).torques(motion, motion[1], p4().theta)
    log = replace(log, q=motion[0] + noise, torques=(TorqueChannel("motor_torque", torques + 300 * noise),))
    stream = stream_of(log, tmp_path / "log.csv")
    whole, parts = (maximum_likelihood(evidence_of(each), LikelihoodSettings(), {}) for each in (log, stream))
    assert "60 s of samples as they are" in whole.notes[0]
    np.testing.assert_array_equal(parts.estimate.values, whole.estimate.values)


def test_a_stream_that_drifts_after_its_beginning_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(periodic, "LOOKED_AT", 20_000)
    log = recording(0, 40)
    late = replace(log, q=log.q + 0.5 * np.maximum(0, np.arange(log.samples) / 30_000 - 1))
    with pytest.raises(EstimateError, match="does not repeat after 10 s"):
        maximum_likelihood(evidence_of(stream_of(late, tmp_path / "log.csv")), LikelihoodSettings(), {})


@pytest.mark.large
def test_memory_does_not_grow_with_the_stream(tmp_path, monkeypatch):
    monkeypatch.setattr(periodic, "LOOKED_AT", 20_000)
    monkeypatch.setattr(npz, "BLOCK_ROWS", 4096)
    peaks = []
    for periods in (4, 30, 120):  # the first one compiles
        evidence = evidence_of(stream_of(recording(0, periods), tmp_path / "log.npz"))
        tracemalloc.start()
        maximum_likelihood(evidence, LikelihoodSettings(), {})
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < peaks[1] + 90 * 1500 * 8  # a single number a sample would be too much


def test_too_many_samples_as_they_are_is_an_error_with_what_to_do(monkeypatch):
    monkeypatch.setattr(periodic, "LARGEST", 24 * 11 * 4500 - 1)
    log = recording(0, 3)
    settings = LikelihoodSettings(period=PERIOD + 1 / 300, harmonics=5)
    with pytest.raises(EstimateError, match=r"no whole number of samples, and 4500 samples .* need 0.0012 GB, allowed"):
        maximum_likelihood(evidence_of(log), settings, {})
    with pytest.raises(EstimateError, match="fewer than two periods"):
        maximum_likelihood(evidence_of(log), LikelihoodSettings(period=3 * PERIOD, harmonics=15), {})
    monkeypatch.setattr(periodic, "LARGEST", 24 * 11 * 4500)
    assert "30 s of samples as they are" in maximum_likelihood(evidence_of(log), settings, {}).notes[0]
