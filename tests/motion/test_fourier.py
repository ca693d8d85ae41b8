"""Fourier series with a common period."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from steelyard.errors import MotionError
from steelyard.motion import fourier

JOINTS = ("a", "b")


def series(t, q0, sin, cos, period):
    """The papers' formula, written out; t may be complex."""
    w0 = 2 * np.pi / period
    return q0 + sum(
        a * np.sin(k * w0 * t) + b * np.cos(k * w0 * t) for k, (a, b) in enumerate(zip(sin, cos, strict=True), 1)
    )


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_it_is_the_formula_and_its_complex_step_derivative(seed):
    rng = np.random.default_rng(seed)
    q0, sin, cos = rng.normal(), rng.normal(size=5), rng.normal(size=5)
    period = rng.uniform(1, 30)
    motion = fourier([q0], [sin], [cos], period, ["a"], periods=2)
    t = rng.uniform(0, 2 * period, 40)
    samples = motion.at(t)
    np.testing.assert_allclose(samples.q[0], series(t, q0, sin, cos, period), rtol=0, atol=1e-12)
    step = 1e-30
    slope = np.imag(series(t + 1j * step, q0, sin, cos, period)) / step
    np.testing.assert_allclose(samples.qd[0], slope, rtol=0, atol=1e-12 * (1 + np.abs(slope).max()))


def test_velocity_differentiates_to_acceleration_and_jerk():
    rng = np.random.default_rng(1)
    sin, cos = rng.normal(size=(2, 1, 4))
    motion = fourier([0.2], sin, cos, 5.0, ["a"])
    k = 2 * np.pi / 5.0 * np.arange(1, 5)
    velocity = fourier([0.0], -cos * k, sin * k, 5.0, ["a"]).sample(100)
    samples = motion.sample(100)
    np.testing.assert_allclose(samples.qd, velocity.q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(samples.qdd, velocity.qd, rtol=0, atol=1e-11)
    np.testing.assert_allclose(samples.qddd, velocity.qdd, rtol=0, atol=1e-10)


def test_every_period_repeats_the_first():
    rng = np.random.default_rng(2)
    sin, cos = rng.normal(size=(2, 2, 5))
    motion = fourier(rng.normal(size=2), sin, cos, 10.0, JOINTS, periods=100)
    assert motion.duration == 1000.0
    t = np.arange(100) / 10
    first, last = motion.at(t), motion.at(990 + t)
    np.testing.assert_allclose(last.qdd, first.qdd, rtol=0, atol=1e-11)
    assert motion.extrema().velocity.time.max() <= 10.0


def test_a_single_harmonic_has_the_amplitude_for_its_extreme():
    motion = fourier([0.5, -0.5], [[0, 0, 0.3], [0.2, 0, 0]], [[0, 0, 0.4], [0, 0, 0]], 6.0, JOINTS)
    extrema = motion.extrema()
    w = 2 * np.pi / 6 * np.array([3, 1])
    amplitude = np.array([0.5, 0.2])
    np.testing.assert_allclose(extrema.upper.value, [1.0, -0.3], rtol=1e-15)
    np.testing.assert_allclose(extrema.lower.value, [0.0, -0.7], rtol=0, atol=1e-15)
    np.testing.assert_allclose(extrema.velocity.value, amplitude * w, rtol=1e-14)
    np.testing.assert_allclose(extrema.acceleration.value, amplitude * w**2, rtol=1e-14)
    np.testing.assert_allclose(extrema.jerk.value, amplitude * w**3, rtol=1e-14)
    assert extrema.upper.time[1] == pytest.approx(1.5, abs=1e-12)
    assert extrema.lower.time[1] == pytest.approx(4.5, abs=1e-12)


def test_a_joint_that_stays_has_extremes_too():
    extrema = fourier([0.5, 0.1], [[0, 0], [1, 0]], [[0, 0], [0, 1]], 6.0, JOINTS).extrema()
    assert extrema.lower.value[0] == extrema.upper.value[0] == 0.5
    assert extrema.velocity.value[0] == extrema.acceleration.value[0] == extrema.jerk.value[0] == 0


def test_a_flat_extreme_where_four_derivatives_vanish_is_found():
    # cos x - cos(2x)/4 = 3/4 - sin^4-like top: at x = 0 slope, curvature and third derivative are all zero.
    extrema = fourier([0.0], [[0, 0]], [[1.0, -0.25]], 2 * np.pi, ["a"]).extrema()
    assert extrema.upper.value[0] == pytest.approx(0.75, abs=1e-15)
    assert extrema.lower.value[0] == pytest.approx(-1.25, abs=1e-15)


@pytest.mark.parametrize("tiny", [1e-8, 1e-13, 1e-16, 1e-200, 5e-324])
def test_a_tiny_highest_harmonic_does_not_spoil_the_others(tiny):
    extrema = fourier([0.0], [[1.0, 0.5, 0.0, tiny]], [[0.0, 0.3, 0.0, -tiny]], 1.0, ["a"]).extrema()
    without = fourier([0.0], [[1.0, 0.5]], [[0.0, 0.3]], 1.0, ["a"]).extrema()
    for name in ("lower", "upper", "velocity", "acceleration"):
        full, short = getattr(extrema, name).value[0], getattr(without, name).value[0]
        assert full == pytest.approx(short, rel=1e-14 + 500 * tiny)


@pytest.mark.parametrize("seed", range(5))
def test_many_harmonics_keep_exact_extremes(seed):
    rng = np.random.default_rng(seed)
    sin, cos = rng.normal(size=(2, 1, 60)) / np.arange(1, 61)
    motion = fourier([0.0], sin, cos, 1.0, ["a"])
    t = np.linspace(0, 1, 20001)
    samples, extrema = motion.at(t), motion.extrema()
    best = int(np.argmax(samples.q[0][1:-1])) + 1
    root = np.asarray(brentq(lambda x: motion.at(x).qd[0, 0], t[best - 1], t[best + 1], xtol=1e-15))
    assert extrema.upper.value[0] == pytest.approx(motion.at(root).q[0, 0], rel=1e-12)
    assert (np.abs(samples.qdd).max() - 1e-9) <= extrema.acceleration.value[0]


GOOD = {"q0": [0, 0], "sin": [[1, 0], [0, 1]], "cos": [[0, 0], [0, 0]], "period": 5.0, "joints": JOINTS}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"q0": [0]}, r"q0 has shape \(1,\); allowed is \(2,\), one number for each joint: a, b"),
        ({"q0": [0, np.nan]}, "q0 is nan"),
        ({"sin": [1, 0]}, r"sin has shape \(2,\)"),
        ({"cos": [[0], [0]]}, r"cos has shape \(2, 1\); allowed is \(2, 2\)"),
        ({"cos": [[0, np.inf], [0, 0]]}, r"cos is inf at \[0, 1\]"),
        ({"sin": np.zeros((2, 0)), "cos": np.zeros((2, 0))}, "no harmonic"),
        ({"period": 0}, r"period \[s\] is 0; allowed: a finite number of 1e-06"),
        ({"period": -3.0}, r"period \[s\] is -3"),
        ({"period": 1e-9}, "allowed: a finite number of 1e-06 or more"),
        ({"period": np.nan}, "is nan; allowed: a finite number"),
        ({"period": "long"}, "period .* is 'long'"),
        ({"periods": 0}, "periods is 0; allowed: a whole number from 1"),
        ({"periods": 1.5}, "periods is 1.5"),
        ({"periods": True}, "periods is True"),
        ({"joints": ["a"]}, "allowed is \\(1, N\\)"),
    ],
)
def test_bad_input_is_refused(changes, message):
    fourier(**GOOD)
    with pytest.raises(MotionError, match=message):
        fourier(**{**GOOD, **changes})
