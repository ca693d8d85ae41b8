"""The commanded motion, between the samples and across gaps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from estimate.instruments.disturbed_scara import JOINTS, moves
from steelyard.errors import EstimateError
from steelyard.estimate.instruments.references import References, at_stamps, references_of
from steelyard.observe import Preparation, resolve_preparation
from steelyard.recording import Recording
from steelyard.signals import apply_low_pass

PATH = moves(6)
EVEN = np.arange(600) / 100.0


def recording_at(time: np.ndarray, *, commanded: bool = True, noise: float = 0.0) -> Recording:
    q = PATH.at(time).q
    measured = q + noise * np.random.default_rng(0).normal(size=q.shape)
    return Recording(JOINTS, time, measured, reference=q if commanded else None)


def references(recording: Recording, every: int = 10, **settings) -> References:
    resolved = resolve_preparation(Preparation(**{"cutoff": 20.0, "decimation": 1, **settings}), [recording])
    return references_of(recording, resolved, every, "run")


def reference_of(found: References, number: int = 0) -> np.ndarray:
    columns = found.every[number].columns
    return found.reference.read(columns.start, columns.stop)


def test_an_even_reference_is_the_trajectory_at_the_control_rate():
    found = references(recording_at(EVEN))
    exact = PATH.at(np.arange(5990) / 1000.0)
    reference = reference_of(found)
    assert reference.shape == (6, 6000)
    q, qd, qdd = np.split(reference[:, :5990], 3)
    np.testing.assert_allclose(q, exact.q, atol=2e-6)
    np.testing.assert_allclose(qd, exact.qd, atol=3e-3)
    # Jerk jumps at the points: the spline's second derivative is within a tenth of its range there.
    assert np.abs(qdd - exact.qdd).max() < 0.1 * np.abs(exact.qdd).max()
    (segment_reference,) = found.every
    (same,) = at_stamps(segment_reference, found.stamps, iter([exact.q[:, ::10]]))
    np.testing.assert_array_equal(same, exact.q[:, ::10])


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("commanded", [True, False])
def test_a_reference_of_many_blocks_is_that_of_the_whole(even, commanded):
    """Against scipy on the whole array: spline, low-pass, spline."""
    time = np.arange(20_000) / 100.0
    if not even:
        time = time + np.random.default_rng(1).uniform(-0.003, 0.003, time.size)
    q = np.vstack([np.sin(time), np.cos(2.3 * time)])
    recording = Recording(JOINTS, time, q, reference=q if commanded else None)
    resolved = resolve_preparation(Preparation(20.0, decimation=1, rate=100.0), [recording])
    found = references_of(recording, resolved, 3, "run")
    positions, grid = q, np.arange(20_000.0)
    if not even:
        grid = np.arange(np.ceil((time[-1] - time[0]) * 100) + 1)
        positions = CubicSpline(time - time[0], q, axis=1)(np.minimum(grid / 100, time[-1] - time[0]))
    if not commanded:
        positions = apply_low_pass(resolved.low_pass, positions)
    curve = CubicSpline(grid / 100, positions, axis=1)
    instants = np.minimum(np.arange(3 * len(grid)) / 300, grid[-1] / 100)
    for order, part in enumerate(np.split(reference_of(found), 3)):
        np.testing.assert_allclose(part, curve(instants, order), atol=1e-9 * 30**order)
    (segment_reference,) = found.every
    assert segment_reference.outline is not None
    np.testing.assert_allclose(segment_reference.outline.middle, curve(instants).mean(axis=1), atol=1e-9)
    blocks = np.split(positions, [300, 9000, 9001], axis=1)
    moved = np.concatenate(list(at_stamps(segment_reference, found.stamps, iter(blocks))), axis=1)
    expected = positions if even else CubicSpline(grid / 100, positions, axis=1)(time - time[0])
    np.testing.assert_allclose(moved, expected, atol=1e-9)


def test_uneven_stamps_get_their_own_values_back():
    time = EVEN + np.random.default_rng(1).uniform(-0.003, 0.003, EVEN.size)
    found = references(recording_at(time), rate=100.0)
    (segment_reference,) = found.every
    on_grid = reference_of(found)[:2, ::10]
    moved = np.concatenate(list(at_stamps(segment_reference, found.stamps, iter([on_grid]))), axis=1)
    np.testing.assert_allclose(moved, PATH.at(time).q, atol=1e-4)


def test_a_gap_makes_two_references_and_a_short_segment_is_not_simulated():
    time = np.delete(EVEN, np.r_[200:300, 303:400])
    found = references(recording_at(time))
    samples = [segment_reference.segment.samples for segment_reference in found.every]
    assert [(part.start, part.stop) for part in samples] == [(0, 200), (200, 203), (203, 403)]
    assert [segment_reference.outline is not None for segment_reference in found.every] == [True, False, True]
    np.testing.assert_array_equal(found.followed(198, 205), [True] * 2 + [False] * 3 + [True] * 2)
    np.testing.assert_allclose(reference_of(found, 1)[:2], PATH.at(time[200:203]).q, atol=1e-12)
    np.testing.assert_allclose(reference_of(found, 2)[:2, 0], PATH.at([4.0]).q[:, 0], atol=1e-9)


def test_without_a_reference_the_measured_positions_are_low_passed():
    noise = 1e-3
    smooth = reference_of(references(recording_at(EVEN, commanded=False, noise=noise)))
    error = smooth[:2, ::10] - PATH.at(EVEN).q
    assert error[:, 50:-50].std() < 0.75 * noise
    unfiltered = reference_of(references(recording_at(EVEN, commanded=False, noise=noise), cutoff=None, mode="none"))
    assert (unfiltered[:2, ::10] - PATH.at(EVEN).q)[:, 50:-50].std() < 0.75 * noise


def test_a_reference_that_is_no_number_is_refused_with_its_joint():
    recording = recording_at(EVEN)
    broken = np.array(recording.reference)
    broken[1, 7] = np.nan
    with pytest.raises(EstimateError, match="recording 'run': the reference of joint 'joint_2'"):
        references(Recording(JOINTS, recording.time, recording.q, reference=broken))
