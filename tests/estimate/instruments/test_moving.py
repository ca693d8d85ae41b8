"""Rows that count where the simulated arm moves, whatever the noise of the recorded velocity says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from estimate.instruments.disturbed_scara import JOINTS, equations, evidence_of, moves, quiet_run
from steelyard.errors import EstimateError
from steelyard.estimate.instruments import InstrumentSettings
from steelyard.estimate.instruments.pairs import MovingRows, velocities_of
from steelyard.observe import Preparation, RowSource, prepared_blocks, row_source
from steelyard.recording import Recording
from steelyard.simulation import recording_of

RAW = Preparation(mode="none", decimation=1, trim=20, standstill=0)
DECIMATED = Preparation(20.0, 4, decimation=4, trim=20, standstill=(0.1, 0.5))
NOISE = (0.02, 0.1)


def noisy(recording: Recording) -> Recording:
    """Return the recording with errors of the positions that make errors of the velocity of about ``NOISE`` rms."""
    error = np.random.default_rng(0).normal(size=recording.q.shape) * np.array(NOISE)[:, None] * np.sqrt(2) / 100
    return replace(recording, q=recording.q + error)


def speeds(source: RowSource) -> np.ndarray:
    found = velocities_of(source).columns
    return found.read(0, found.count)


@pytest.mark.parametrize("preparation", [DECIMATED, replace(DECIMATED, decimation=1)])
def test_gates_of_the_recording_s_own_speed_are_the_preparation_s_own_mask(preparation):
    evidence = evidence_of(recording_of(quiet_run(12)), preparation)
    twins = MovingRows(evidence, (0.1, 0.5)).twins(evidence.sources)
    for gated in (*twins.real, *twins.simulated):
        for expected, found in zip(evidence.sources[0], gated, strict=True):
            np.testing.assert_array_equal(found.share, expected.share)
            for e in range(2):
                np.testing.assert_array_equal(found.rows[e], expected.rows[e])


def test_the_simulated_speed_alone_decides_which_rows_count():
    recording = recording_of(quiet_run(12))
    evidence = evidence_of(noisy(recording), RAW)
    simulated = row_source(recording, equations(), evidence.sources[0].resolved, "run")
    twins = MovingRows(evidence, (0.1, 0.5)).twins([simulated])
    exact = np.concatenate([block.qd for block in prepared_blocks(simulated)], axis=1)
    for rows in (twins.real[0], twins.simulated[0]):
        share = np.concatenate([block.share for block in rows], axis=1)
        np.testing.assert_array_equal(share, np.abs(exact) >= [[0.1], [0.5]])
    counted = np.abs(speeds(evidence.sources[0])[1][np.abs(exact[1]) >= 0.5])
    assert counted.min() < 0.4  # a mask by the recorded velocity would have left these out


def test_without_a_choice_the_threshold_is_three_times_the_velocities_difference():
    recording = recording_of(quiet_run(12))
    evidence = evidence_of(noisy(recording), RAW)
    simulated = row_source(recording, equations(), evidence.sources[0].resolved, "run")
    found = MovingRows(evidence, None).twins([simulated]).standstill
    np.testing.assert_allclose(found, 3 * np.array(NOISE), rtol=0.1)
    slow = replace(recording, q=0.05 * recording.q)
    lost = MovingRows(evidence, None).twins([row_source(slow, equations(), evidence.sources[0].resolved, "run")])
    speed = speeds(row_source(slow, equations(), evidence.sources[0].resolved, "run"))
    np.testing.assert_allclose(lost.standstill, 0.5 * np.sqrt(np.mean(speed**2, axis=1)))
    quiet = evidence_of(recording, DECIMATED)
    np.testing.assert_array_equal(MovingRows(quiet, None).twins(quiet.sources).standstill, [0.1, 0.5])


def test_a_gap_makes_two_gated_segments():
    time = np.delete(np.arange(800) / 100.0, np.r_[300:400])
    q = moves(8).at(time).q
    torque = recording_of(quiet_run(12)).torques[0]
    channel = replace(torque, values=np.zeros_like(q))
    evidence = evidence_of_exact(Recording(JOINTS, time, q, torques=(channel,)))
    twins = MovingRows(evidence, (0.1, 0.5)).twins(evidence.sources)
    assert [block.segment for block in twins.real[0]] == [0, 1]
    assert sum(len(block.time) for block in twins.real[0]) == sum(len(block.time) for block in evidence.sources[0])


def test_a_segment_too_short_for_the_filter_has_no_gate_and_does_no_harm():
    recording = recording_of(quiet_run(12))
    island = np.delete(np.arange(recording.samples), np.r_[300:400, 405:450])
    torques = tuple(replace(c, values=c.values[:, island]) for c in recording.torques)
    broken = Recording(JOINTS, recording.time[island], recording.q[:, island], torques=torques)
    evidence = evidence_of(broken, DECIMATED)
    twins = MovingRows(evidence, (0.1, 0.5)).twins(evidence.sources)
    assert {block.segment for block in twins.real[0]} == {0, 2}
    for expected, found in zip(evidence.sources[0], twins.real[0], strict=True):
        np.testing.assert_array_equal(found.share, expected.share)


def evidence_of_exact(recording: Recording):
    noisy_torque = tuple(
        replace(c, values=np.random.default_rng(1).normal(size=c.values.shape)) for c in recording.torques
    )
    return evidence_of(replace(recording, torques=noisy_torque), RAW)


def test_speeds_that_are_none_are_refused():
    with pytest.raises(EstimateError, match="standstill is "):
        InstrumentSettings(standstill=(-0.1,))
    with pytest.raises(EstimateError, match="standstill: got 3 speeds for 2 joints"):
        MovingRows(evidence_of(recording_of(quiet_run(12)), DECIMATED), (0.1, 0.1, 0.1))
