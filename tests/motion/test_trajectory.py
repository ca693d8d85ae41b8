"""Properties of every kind of motion: exact derivatives, smooth joins, exact extremes, sampling."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import fminbound

from steelyard.errors import MotionError
from steelyard.motion import (
    ApproachedTrajectory,
    FourierSeries,
    PiecewisePolynomial,
    Trajectory,
    fourier,
    quintic,
)

seeds = st.integers(0, 2**32 - 1)
ORDERS = ("q", "qd", "qdd", "qddd")


def section_ends(motion: Trajectory) -> np.ndarray:
    """Return the times at which the jerk may jump, the two ends included."""
    if isinstance(motion, PiecewisePolynomial):
        return motion.breaks
    if isinstance(motion, ApproachedTrajectory):
        start, stop = motion.core_interval
        return np.unique([0.0, *(start + section_ends(motion.core)), stop, motion.duration])
    return np.array([0.0, motion.duration])


def inner_times(motion: Trajectory, rng: np.random.Generator) -> np.ndarray:
    """Return a time in the middle part of each section."""
    ends = section_ends(motion)
    return ends[:-1] + np.diff(ends) * rng.uniform(0.2, 0.8, len(ends) - 1)


@given(seed=seeds)
@settings(max_examples=25, deadline=None)
def test_derivatives_agree_with_central_differences(make_motion, seed):
    motion = make_motion(seed)
    times = inner_times(motion, np.random.default_rng(seed))
    for order in range(3):
        step = 1e-5 * np.diff(section_ends(motion)).min()
        below, above = (getattr(motion.at(times + side * step), ORDERS[order]) for side in (-1, 1))
        exact = getattr(motion.at(times), ORDERS[order + 1])
        scale = np.abs(exact).max() + np.abs(above).max() * 1e-10 / step
        np.testing.assert_allclose((above - below) / (2 * step), exact, rtol=0, atol=1e-5 * scale)


@given(seed=seeds)
@settings(max_examples=25, deadline=None)
def test_position_velocity_and_acceleration_are_continuous(make_motion, seed):
    motion = make_motion(seed)
    joins = section_ends(motion)[1:-1]
    before, after = motion.at(np.nextafter(joins, 0)), motion.at(np.nextafter(joins, np.inf))
    extrema = motion.extrema()
    for name, scale in (("q", 1 + extrema.upper.value), ("qd", extrema.velocity.value), ("qdd", extrema.jerk.value)):
        gap = np.abs(getattr(before, name) - getattr(after, name))
        assert (gap <= 1e-11 * (1 + np.abs(scale[:, None]))).all()


def peaks_of(motion: Trajectory):
    """Return (name of the samples, sign or absolute value, peak) of each extreme."""
    extrema = motion.extrema()
    return (
        ("q", np.negative, extrema.lower, -1.0),
        ("q", np.positive, extrema.upper, 1.0),
        ("qd", np.abs, extrema.velocity, 1.0),
        ("qdd", np.abs, extrema.acceleration, 1.0),
        ("qddd", np.abs, extrema.jerk, 1.0),
    )


def dense_times(motion: Trajectory) -> np.ndarray:
    ends = section_ends(motion)
    both_sides = np.concatenate([ends, np.nextafter(ends[1:], 0), np.nextafter(ends[:-1], np.inf)])
    return np.sort(np.concatenate([np.linspace(0, motion.duration, 4001), both_sides]))


@given(seed=seeds)
@settings(max_examples=40, deadline=None)
def test_no_sample_exceeds_an_extreme_and_every_extreme_is_attained(make_motion, seed):
    motion = make_motion(seed)
    times = dense_times(motion)
    samples = motion.at(times)
    for name, measure, peak, sign in peaks_of(motion):
        value = sign * peak.value
        rounding = 1e-12 * (1 + np.abs(value))
        assert (measure(getattr(samples, name)) <= (value + rounding)[:, None]).all(), name
        # A jerk that jumps reaches its extreme from one side.
        side = 8 * np.finfo(float).eps * motion.duration
        near = np.clip([peak.time - side, peak.time, peak.time + side], 0, motion.duration)
        reached = [measure(getattr(motion.at(row), name)).diagonal() for row in near]
        np.testing.assert_allclose(np.max(reached, axis=0), value, rtol=1e-9, atol=1e-9, err_msg=name)


@given(seed=seeds)
@settings(max_examples=15, deadline=None)
def test_a_search_started_from_the_best_sample_finds_nothing_beyond_an_extreme(make_motion, seed):
    motion = make_motion(seed)
    times = dense_times(motion)
    samples = motion.at(times)
    for name, measure, peak, sign in peaks_of(motion):
        rows = measure(getattr(samples, name))
        for joint, row in enumerate(rows):
            best = int(np.argmax(row))
            around = times[max(best - 1, 0)], times[min(best + 1, len(times) - 1)]
            least = fminbound(lambda t: -measure(getattr(motion.at(t), name))[joint, 0], *around, xtol=1e-12)  # noqa: B023
            value = sign * peak.value[joint]
            assert measure(getattr(motion.at(least), name))[joint, 0] <= value + 1e-12 * (1 + abs(value)), name


def test_samples_lie_at_multiples_of_the_period_up_to_the_end():
    motion = quintic([[0, 1, 0]], [0.3, 0.4], ["a"])
    samples = motion.sample(10)
    np.testing.assert_array_equal(samples.time, np.arange(8) / 10)
    assert samples.q.shape == samples.qd.shape == samples.qdd.shape == samples.qddd.shape == (1, 8)
    assert motion.sample(1000).time[-1] == 0.7
    np.testing.assert_array_equal(motion.sample(4).time, [0, 0.25, 0.5])
    assert motion.sample(1e-3).time.tolist() == [0.0]
    assert quintic([[0, 1]], 0.29, ["a"]).sample(100).time[-1] == 0.29  # 0.29 * 100 is below 29 in floats


def test_samples_are_exact_at_every_rate_and_in_any_order():
    motion = fourier([0.1], [[0.3, 0.2]], [[0.1, -0.4]], 7.0, ["a"], periods=2)
    samples = motion.sample(100)
    shuffled = np.random.default_rng(0).permutation(len(samples.time))
    again = motion.at(samples.time[shuffled])
    np.testing.assert_allclose(again.q, samples.q[:, shuffled], rtol=0, atol=1e-15)


def test_one_time_and_no_time_are_times_too():
    motion = quintic([[0, 1], [0, 2]], 1.0, ["a", "b"])
    assert motion.at(1.0).q == pytest.approx(np.array([[1.0], [2.0]]))
    assert motion.at([]).q.shape == (2, 0)


@pytest.mark.parametrize("time", [-1e-3, 1.001, [0.5, 2.0]])
def test_times_outside_the_motion_are_refused(time):
    with pytest.raises(MotionError, match=r"outside the motion; allowed is 0 to 1 s"):
        quintic([[0, 1]], 1.0, ["a"]).at(time)


def test_the_rounding_of_a_time_at_the_end_is_no_error():
    motion = quintic([[0, 1]], 0.3, ["a"])
    assert motion.at(0.1 * 3).q[0, 0] == motion.at(0.3).q[0, 0]


@pytest.mark.parametrize("time", [np.nan, [0.1, np.inf], [[0.1, 0.2]], ["now"], [[0.1], [0.2, 0.3]]])
def test_times_that_are_none_are_refused(time):
    with pytest.raises(MotionError, match="time "):
        quintic([[0, 1]], 1.0, ["a"]).at(time)


@pytest.mark.parametrize("rate", [0, -1.0, np.nan, np.inf, "fast", True])
def test_rates_that_are_none_are_refused(rate):
    with pytest.raises(MotionError, match=r"rate \[Hz\]"):
        quintic([[0, 1]], 1.0, ["a"]).sample(rate)


def test_a_rate_that_would_fill_the_memory_is_refused():
    with pytest.raises(MotionError, match=r"makes 1e\+09 samples.*check the unit"):
        quintic([[0, 1]], 1.0, ["a"]).sample(1e9)


@given(seed=seeds)
@settings(max_examples=10, deadline=None)
def test_rows_are_reordered_by_name(make_motion, seed):
    motion = make_motion(seed)
    other = motion.in_order(["elbow", "base", "shoulder"])
    assert other.joints == ("elbow", "base", "shoulder")
    times = np.linspace(0, motion.duration, 50)
    for name in ORDERS:
        there, here = (getattr(m.at(times), name) for m in (other, motion))
        np.testing.assert_allclose(there, here[[2, 0, 1]], rtol=1e-13, atol=1e-12 * (1 + np.abs(here).max()))
    np.testing.assert_allclose(other.extrema().upper.value, motion.extrema().upper.value[[2, 0, 1]], rtol=1e-12)
    assert motion.in_order(motion.joints) is motion


@pytest.mark.parametrize(
    ("joints", "message"),
    [
        (["base", "shoulder"], "moves joint 'elbow', which is not among the requested joints: base, shoulder"),
        (["base", "shoulder", "elbo"], "did you mean 'elbo'"),
        (["base", "shoulder", "elbow", "wrist"], "has no joint 'wrist'; its joints: base, shoulder, elbow"),
        (["base", "base", "elbow"], "'base' is named more than once"),
    ],
)
def test_other_joints_are_refused(joints, message):
    motion = quintic(np.zeros((3, 2)), 1.0, ["base", "shoulder", "elbow"])
    with pytest.raises(MotionError, match=message):
        motion.in_order(joints)


@given(seed=seeds)
@settings(max_examples=5, deadline=None)
def test_nothing_can_be_written_to(make_motion, seed):
    motion = make_motion(seed)
    samples, extrema = motion.sample(20), motion.extrema()
    arrays = [samples.time, *(getattr(samples, name) for name in ORDERS)]
    arrays += [array for _, _, peak, _ in peaks_of(motion) for array in (peak.value, peak.time)]
    arrays += [value for value in vars(motion).values() if isinstance(value, np.ndarray)]
    assert not any(array.flags.writeable for array in arrays)
    assert samples.joints == extrema.joints == motion.joints
    with pytest.raises(AttributeError):
        motion.joints = ()


def test_the_caller_s_arrays_are_neither_kept_nor_frozen():
    points = np.array([[0.0, 1.0]])
    motion = quintic(points, 1.0, ["a"])
    points[0, 1] = 5.0
    assert motion.at(1.0).q[0, 0] == 1.0
    assert isinstance(fourier([0], [[1]], [[0]], 1.0, ["a"]), FourierSeries)


def test_a_motion_proper_is_its_own_core():
    assert quintic([[0, 1]], 2.0, ["a"]).core_interval == (0.0, 2.0)
