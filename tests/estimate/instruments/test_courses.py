"""What the arm was told to do, between the samples and across gaps."""

from __future__ import annotations

import numpy as np
import pytest

from estimate.instruments.disturbed_scara import JOINTS, moves
from steelyard.errors import EstimateError
from steelyard.estimate.instruments.courses import courses_of
from steelyard.observe import Preparation, settle
from steelyard.recording import Recording

PATH = moves(6)
EVEN = np.arange(600) / 100.0


def recording_at(time: np.ndarray, *, commanded: bool = True, noise: float = 0.0) -> Recording:
    q = PATH.at(time).q
    seen = q + noise * np.random.default_rng(0).normal(size=q.shape)
    return Recording(JOINTS, time, seen, reference=q if commanded else None)


def courses(recording: Recording, every: int = 10, **settings):
    settled = settle(Preparation(**{"cutoff": 20.0, "decimation": 1, **settings}), [recording])
    return courses_of(recording, settled, every, "run")


def test_an_even_reference_is_the_trajectory_at_the_control_rate():
    (course,) = courses(recording_at(EVEN))
    exact = PATH.at(np.arange(5990) / 1000.0)
    assert course.reference.shape == (6, 6000)
    q, qd, qdd = np.split(course.reference[:, :5990], 3)
    np.testing.assert_allclose(q, exact.q, atol=2e-6)
    np.testing.assert_allclose(qd, exact.qd, atol=3e-3)
    # Jerk jumps at the points: the spline's second derivative is within a tenth of its range there.
    assert np.abs(qdd - exact.qdd).max() < 0.1 * np.abs(exact.qdd).max()
    np.testing.assert_array_equal(course.at_stamps(exact.q[:, ::10]), exact.q[:, :5990:10][:, :600])


def test_uneven_stamps_get_their_own_values_back():
    time = EVEN + np.random.default_rng(1).uniform(-0.003, 0.003, EVEN.size)
    (course,) = courses(recording_at(time), rate=100.0)
    on_grid = course.reference[:2, ::10]
    np.testing.assert_allclose(course.at_stamps(on_grid), PATH.at(time).q, atol=1e-4)


def test_a_gap_makes_two_courses_and_a_short_stretch_is_not_simulated():
    time = np.delete(EVEN, np.r_[200:300, 303:400])
    found = courses(recording_at(time))
    assert [(course.samples.start, course.samples.stop) for course in found] == [(0, 200), (200, 203), (203, 403)]
    assert [course.followed for course in found] == [True, False, True]
    np.testing.assert_allclose(found[2].reference[:2, 0], PATH.at([4.0]).q[:, 0], atol=1e-9)


def test_without_a_reference_the_measured_positions_are_low_passed():
    noise = 1e-3
    (smooth,) = courses(recording_at(EVEN, commanded=False, noise=noise))
    error = smooth.reference[:2, ::10] - PATH.at(EVEN).q
    assert error[:, 50:-50].std() < 0.75 * noise
    (unfiltered,) = courses(recording_at(EVEN, commanded=False, noise=noise), cutoff=None, mode="none")
    assert (unfiltered.reference[:2, ::10] - PATH.at(EVEN).q)[:, 50:-50].std() < 0.75 * noise


def test_a_reference_that_is_no_number_is_refused_with_its_joint():
    recording = recording_at(EVEN)
    broken = np.array(recording.reference)
    broken[1, 7] = np.nan
    with pytest.raises(EstimateError, match="recording 'run': the reference of joint 'joint_2'"):
        courses(Recording(JOINTS, recording.time, recording.q, reference=broken))
