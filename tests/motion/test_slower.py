"""The same path at a slower pace."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.errors import MotionError
from steelyard.motion import (
    MotionExtrema,
    Trajectory,
    at_speed,
    fourier,
    quintic,
    read_trajectory,
    trapezoidal,
    with_approach,
    write_trajectory,
)

ORDERS = ("q", "qd", "qdd", "qddd")
RATES = ("velocity", "acceleration", "jerk")

motions = {"seed": st.integers(0, 2**32 - 1), "speed": st.floats(0.05, 1.0)}


def largest(extrema: MotionExtrema, order: int) -> np.ndarray:
    """Return for each joint the largest magnitude of a derivative."""
    if order:
        return getattr(extrema, RATES[order - 1]).value
    return np.maximum(np.abs(extrema.lower.value), np.abs(extrema.upper.value))


@given(**motions)
@settings(max_examples=8, deadline=None)
def test_the_slower_motion_is_the_first_at_stretched_times(make_motion, seed, speed):
    motion = make_motion(seed)
    slower = at_speed(motion, speed)
    assert type(slower) is type(motion)
    assert slower.joints == motion.joints
    assert slower.duration == pytest.approx(motion.duration / speed, rel=1e-14)
    assert slower.core_interval == pytest.approx(np.array(motion.core_interval) / speed, rel=1e-13)
    # Random times: none falls on a jump of the jerk, where rounding of time may choose the other side.
    time = np.random.default_rng(seed).uniform(0, motion.duration, 50)
    first, second = motion.at(time), slower.at(time / speed)
    for order, name in enumerate(ORDERS):
        scale = largest(motion.extrema(), order)[:, None] + 1e-12
        difference = getattr(second, name) / speed**order - getattr(first, name)
        assert np.abs(difference / scale).max() < 1e-9, name


@given(**motions)
@settings(max_examples=8, deadline=None)
def test_extremes_shrink_with_the_powers_of_the_speed(make_motion, seed, speed):
    motion = make_motion(seed)
    before, after = motion.extrema(), at_speed(motion, speed).extrema()
    for name in ("lower", "upper"):
        np.testing.assert_allclose(getattr(after, name).value, getattr(before, name).value, rtol=1e-10, atol=1e-10)
    for order, name in enumerate(RATES, start=1):
        expected = getattr(before, name).value * speed**order
        np.testing.assert_allclose(getattr(after, name).value, expected, rtol=1e-9, atol=1e-12 * speed**order)


@given(**motions)
@settings(max_examples=5, deadline=None)
def test_a_slower_motion_read_again_is_the_same_to_the_last_bit(make_motion, tmp_path_factory, seed, speed):
    path = tmp_path_factory.mktemp("slower") / "motion.toml"
    slower = at_speed(make_motion(seed), speed)
    write_trajectory(slower, path)
    again = read_trajectory(path)
    assert again.duration == slower.duration
    time = np.linspace(0, slower.duration, 40)
    for name in ORDERS:
        np.testing.assert_array_equal(getattr(again.at(time), name), getattr(slower.at(time), name))


def test_full_speed_is_the_motion_itself():
    motion = quintic([[0, 1]], 1.0, ["a"])
    assert at_speed(motion, 1) is motion


def slowed(motion: Trajectory, speed: float) -> Any:
    """Return the slower motion, with the attributes of its kind."""
    return at_speed(motion, speed)


def test_what_a_motion_was_made_from_is_kept():
    smooth = slowed(quintic([[0, 1, 0]], [1.0, 2.0], ["a"], via="smooth"), 0.5)
    assert (smooth.moves.via, smooth.moves.durations.tolist()) == ("smooth", [2.0, 4.0])
    trapezes = slowed(trapezoidal([[0, 1]], 3.0, ["a"], ramp=0.1, cruise=0.3), 0.1)
    assert (trapezes.moves.ramp, trapezes.moves.cruise, trapezes.duration) == (0.1, 0.3, 30.0)
    series = slowed(fourier([0], [[1.0]], [[0.0]], 10.0, ["a"], periods=3), 0.25)
    assert (series.period, series.periods) == (40.0, 3)


def test_a_way_into_a_way_into_a_motion_is_slowed_throughout():
    core = with_approach(fourier([0], [[1.0]], [[0.2]], 10.0, ["a"]), [0.3], 2.0, 2.0)
    slower = slowed(with_approach(core, [0.5], 1.0, 1.5), 0.5)
    assert (slower.duration, slower.core_interval) == (33.0, (2.0, 30.0))
    assert slower.core.core_interval == (4.0, 24.0)


@pytest.mark.parametrize(
    ("speed", "message"),
    [
        (0, "speed is 0.*; allowed: a finite number above 0"),
        (-0.5, "speed is -0.5; allowed: a finite number above 0"),
        (1.1, "speed is 1.1; allowed: a finite number above 0 and at most 1"),
        (float("nan"), "speed is nan; allowed: a finite number"),
        ("half", "speed is 'half'; allowed: a finite number"),
        (True, "speed is True; allowed: a finite number"),
        (1e-300, r"the duration \[s\] at speed 1e-300 is .*; allowed: a finite number up to 1e\+09"),
    ],
)
def test_a_speed_out_of_range_is_refused(speed, message):
    with pytest.raises(MotionError, match=message):
        at_speed(quintic([[0, 1]], 1.0, ["a"]), speed)


class Unknown(Trajectory):
    """A kind of motion that no file can hold."""

    @property
    def duration(self) -> float:
        return 1.0

    def derivatives(self, time: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        raise AssertionError

    def extrema(self) -> MotionExtrema:
        raise AssertionError

    def _with_rows(self, joints: tuple[str, ...], rows: list[int]) -> Self:
        raise AssertionError


def test_a_motion_of_a_kind_unknown_here_is_refused():
    with pytest.raises(MotionError, match="a Unknown cannot be slowed"):
        at_speed(Unknown(("a",)), 0.5)


def test_the_slower_quintic_is_the_closed_form():
    slower = at_speed(quintic([[0.0, 2.0]], 3.0, ["a"]), 0.3)
    x = np.linspace(0, 1, 11)
    np.testing.assert_allclose(slower.at(10 * x).q[0], 2 * (10 * x**3 - 15 * x**4 + 6 * x**5), atol=1e-14)
    assert slower.extrema().velocity.value[0] == pytest.approx(15 / 8 * 2 / 10, rel=1e-12)
