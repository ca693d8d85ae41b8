"""From rest into a motion and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.errors import MotionError
from steelyard.motion import fourier, with_approach


def core(seed: int = 0, periods: int = 2):
    rng = np.random.default_rng(seed)
    sin, cos = rng.normal(size=(2, 2, 5))
    return fourier(rng.normal(size=2), sin, cos, 10.0, ["a", "b"], periods=periods)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_it_joins_the_motion_with_its_position_velocity_and_acceleration(seed):
    motion = with_approach(core(seed), [0.1, 0.2], 2.0, 3.0)
    start, stop = motion.core_interval
    assert (start, stop, motion.duration) == (2.0, 22.0, 25.0)
    before, after = motion.at(np.nextafter([start, stop], 0)), motion.at([start, stop])
    for name in ("q", "qd", "qdd"):
        np.testing.assert_allclose(getattr(before, name), getattr(after, name), rtol=0, atol=1e-11)


def test_it_begins_and_ends_at_rest():
    motion = with_approach(core(), [0.1, 0.2], 2.0, 3.0, end_posture=[-0.5, 0.7])
    ends = motion.at([0.0, motion.duration])
    np.testing.assert_allclose(ends.q, [[0.1, -0.5], [0.2, 0.7]], rtol=0, atol=1e-13)
    np.testing.assert_allclose(ends.qd, 0, atol=1e-12)
    np.testing.assert_allclose(ends.qdd, 0, atol=1e-11)


def test_it_returns_to_the_start_posture_unless_told_otherwise():
    motion = with_approach(core(), [0.1, 0.2], 2.0, 3.0)
    np.testing.assert_allclose(motion.at(motion.duration).q[:, 0], [0.1, 0.2], rtol=0, atol=1e-13)


def test_in_between_it_is_the_motion_proper():
    inner = core()
    motion = with_approach(inner, [0.1, 0.2], 2.0, 3.0)
    t = np.linspace(0, 19.999, 500)
    for name in ("q", "qd", "qdd", "qddd"):
        np.testing.assert_allclose(
            getattr(motion.at(2.0 + t), name), getattr(inner.at(t), name), rtol=0, atol=1e-10, err_msg=name
        )


def test_its_extremes_tell_the_time_in_the_whole_motion():
    inner = core()
    motion = with_approach(inner, inner.at(0.0).q[:, 0], 50.0, 50.0)  # slow ways: the core has the peaks
    peak = motion.extrema().acceleration
    np.testing.assert_allclose(peak.value, inner.extrema().acceleration.value, rtol=1e-12)
    np.testing.assert_allclose(peak.time, 50.0 + inner.extrema().acceleration.time, rtol=1e-12)


def test_a_way_into_an_approached_motion_is_a_motion_too():
    motion = with_approach(with_approach(core(), [0, 0], 2.0, 2.0), [1, 1], 1.0, 1.0)
    assert motion.duration == 26.0
    assert motion.core_interval == (1.0, 25.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.1], 2.0, 3.0), r"start_posture has shape \(1,\); allowed is \(2,\), one number for each joint: a, b"),
        (([0.1, np.nan], 2.0, 3.0), r"start_posture is nan at \[1\]"),
        (([0.1, 0.2], 0.0, 3.0), r"duration_in \[s\] is 0.0; allowed: a finite number of 1e-06"),
        (([0.1, 0.2], 2.0, -3.0), r"duration_out \[s\] is -3"),
        (([0.1, 0.2], 2.0, 1e-9), r"duration_out \[s\] is 1e-09; allowed: a finite number of 1e-06"),
        (([0.1, 0.2], 2.0, 3.0, [0.0]), "end_posture has shape"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(MotionError, match=message):
        with_approach(core(), *arguments)
