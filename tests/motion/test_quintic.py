"""Fifth-order polynomials through via points."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import BPoly, make_interp_spline

from steelyard.errors import MotionError
from steelyard.motion import quintic

JOINTS = ("a", "b")


def test_a_move_is_the_textbook_polynomial():
    motion = quintic([[1.0, 3.0]], 2.0, ["a"])
    t = np.linspace(0, 2, 101)
    x = t / 2
    samples = motion.at(t)
    np.testing.assert_allclose(samples.q[0], 1 + 2 * (10 * x**3 - 15 * x**4 + 6 * x**5), rtol=0, atol=1e-14)
    np.testing.assert_allclose(samples.qd[0], 30 * x**2 - 60 * x**3 + 30 * x**4, rtol=0, atol=1e-14)
    np.testing.assert_allclose(samples.qdd[0], (60 * x - 180 * x**2 + 120 * x**3) / 2, rtol=0, atol=1e-13)
    np.testing.assert_allclose(samples.qddd[0], (60 - 360 * x + 360 * x**2) / 4, rtol=0, atol=1e-13)


def test_the_peaks_of_a_move_are_the_textbook_s():
    extrema = quintic([[1.0, 3.0]], 2.0, ["a"]).extrema()
    assert extrema.velocity.value[0] == pytest.approx(15 / 8 * 2 / 2, rel=1e-14)
    assert extrema.velocity.time[0] == pytest.approx(1.0, abs=1e-9)
    assert extrema.acceleration.value[0] == pytest.approx(10 / np.sqrt(3) * 2 / 4, rel=1e-14)
    assert extrema.acceleration.time[0] == pytest.approx(2 * (0.5 - 1 / np.sqrt(12)), abs=1e-9)
    assert extrema.jerk.value[0] == pytest.approx(60 * 2 / 8, rel=1e-14)
    assert (extrema.lower.value[0], extrema.upper.value[0]) == (1.0, 3.0)
    assert (extrema.lower.time[0], extrema.upper.time[0]) == (0.0, pytest.approx(2.0))


def test_the_motion_rests_in_every_via_point():
    rng = np.random.default_rng(3)
    points, durations = rng.normal(size=(2, 6)), rng.uniform(0.1, 2, 5)
    motion = quintic(points, durations, JOINTS)
    at_points = motion.at(np.concatenate([[0], np.cumsum(durations)]))
    np.testing.assert_allclose(at_points.q, points, rtol=0, atol=1e-14)
    np.testing.assert_allclose(at_points.qd, 0, atol=1e-12)
    np.testing.assert_allclose(at_points.qdd, 0, atol=1e-10)


def test_given_states_are_met_as_scipy_meets_them():
    rng = np.random.default_rng(4)
    q, qd, qdd = rng.normal(size=(3, 2, 5))
    durations = rng.uniform(0.2, 2, 4)
    motion = quintic(q, durations, JOINTS, velocities=qd, accelerations=qdd)
    times = np.linspace(0, motion.duration, 333)
    reference = BPoly.from_derivatives(motion.breaks, np.stack([q, qd, qdd], axis=-1).transpose(1, 2, 0))
    samples = motion.at(times)
    for order, rows in enumerate((samples.q, samples.qd, samples.qdd, samples.qddd)):
        expected = reference(times, order).T
        np.testing.assert_allclose(rows, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


def test_velocities_alone_leave_accelerations_zero():
    motion = quintic([[0, 1, 0]], 1.0, ["a"], velocities=[[0, 0.5, 0]])
    middle = motion.at(1.0)
    assert (middle.qd[0, 0], middle.qdd[0, 0]) == (0.5, 0.0)


def test_a_smooth_motion_is_the_fifth_order_spline_at_rest_at_its_ends():
    rng = np.random.default_rng(5)
    points, durations = rng.normal(size=(2, 7)), rng.uniform(0.5, 1.5, 6)
    motion = quintic(points, durations, JOINTS, via="smooth")
    rest = [(1, np.zeros(2)), (2, np.zeros(2))]
    spline = make_interp_spline(motion.breaks, points.T, k=5, bc_type=(rest, rest))
    times = np.linspace(0, motion.duration, 500)
    samples = motion.at(times)
    for order, rows in enumerate((samples.q, samples.qd, samples.qdd, samples.qddd)):
        expected = spline(times, order).T
        np.testing.assert_allclose(rows, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
    ends = motion.at([0.0, motion.duration])
    np.testing.assert_allclose(ends.qd, 0, atol=1e-12)
    np.testing.assert_allclose(ends.qdd, 0, atol=1e-11)


def test_a_smooth_motion_has_a_continuous_jerk_and_snap():
    motion = quintic([[0, 1, -1, 0.5]], [1.0, 0.7, 1.3], ["a"], via="smooth")
    step = 1e-6
    for join in motion.breaks[1:-1]:
        before, after = motion.at([join - 2 * step, join - step]).qddd[0], motion.at([join, join + step]).qddd[0]
        assert after[0] == pytest.approx(before[1], abs=1e-3)
        assert np.diff(after)[0] / step == pytest.approx(np.diff(before)[0] / step, abs=1e-1)


def test_a_joint_that_stays_has_extremes_too():
    extrema = quintic([[0.5, 0.5, 0.5], [0, 1, 0]], 1.0, JOINTS).extrema()
    assert extrema.lower.value[0] == extrema.upper.value[0] == 0.5
    assert extrema.velocity.value[0] == extrema.acceleration.value[0] == extrema.jerk.value[0] == 0


GOOD = {"points": [[0, 1, 0], [0, 2, 0]], "durations": [1.0, 2.0], "joints": JOINTS}
BAD = {
    "a NaN": ({"points": [[0, np.nan, 0], [0, 2, 0]]}, r"points is nan at \[0, 1\]; allowed are finite numbers"),
    "an infinite number": ({"points": [[0, 1, 0], [np.inf, 2, 0]]}, r"points is inf at \[1, 0\]"),
    "a number beyond all measure": ({"points": [[0, 1e10, 0], [0, 2, 0]]}, "up to 1e\\+09"),
    "one point": ({"points": [[0], [1]], "durations": []}, r"points has 1 via point\(s\).*at least 2"),
    "no point": ({"points": np.zeros((2, 0)), "durations": []}, "points has 0 via"),
    "a row too many": (
        {"points": np.zeros((3, 3))},
        r"shape \(3, 3\); allowed is \(2, N\), one row for each joint: a, b",
    ),
    "one row": ({"points": [0, 1, 2]}, r"shape \(3,\)"),
    "rows of unequal length": ({"points": [[0, 1, 0], [0, 2]]}, "rows of unequal length"),
    "texts": ({"points": [["here", "there", "here"]] * 2}, "points holds str.* real numbers are expected"),
    "complex numbers": ({"points": np.zeros((2, 3), complex)}, "complex128 entries"),
    "a duration too few": ({"durations": [1.0]}, r"durations has shape \(1,\); allowed is one number or \(2,\)"),
    "a negative duration": ({"durations": [1.0, -2.0]}, "durations is -2 s for move 2; allowed is from 1e-06 s"),
    "a duration of zero": ({"durations": 0.0}, "durations is 0 s for move 1"),
    "a NaN duration": ({"durations": [1.0, np.nan]}, "durations is nan"),
    "a duration lost beside the others": ({"durations": [1e6, 1e-5]}, "durations is 1e-05 s for move 2"),
    "no joint": ({"joints": []}, "joints is empty"),
    "one name for two joints": ({"joints": ["a", "a"]}, "joint 'a' is named more than once"),
    "a joint without a name": ({"joints": ["a", ""]}, "joint name '' is not a text"),
    "a text for the joints": ({"joints": "ab"}, "joints is the text 'ab'"),
    "an unknown way through": ({"via": "smoth"}, "via is 'smoth'; allowed: rest, smooth; did you mean 'smooth'"),
    "two ways through": ({"via": "smooth", "velocities": np.zeros((2, 3))}, "keep one of the two"),
    "velocities of another shape": (
        {"velocities": np.zeros((2, 2))},
        r"velocities has shape \(2, 2\); allowed is \(2, 3\)",
    ),
    "a NaN acceleration": ({"accelerations": [[0, 0, 0], [0, 0, np.nan]]}, "accelerations is nan"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_in_one_line(case):
    changes, message = BAD[case]
    quintic(**GOOD)
    with pytest.raises(MotionError, match=message) as caught:
        quintic(**{**GOOD, **changes})
    assert "\n" not in str(caught.value)
