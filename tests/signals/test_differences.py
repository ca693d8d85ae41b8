"""Central differences have the stated responses; derivatives and positions behind elastic joints are right."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.errors import SignalError
from steelyard.signals import (
    MARGIN,
    central_difference,
    difference_response,
    differentiate,
    joint_positions,
    low_pass,
)

KINDS = ("first", "second", "twice_first")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("frequency", [0.5, 7.0, 33.0])
def test_a_complex_exponential_is_multiplied_by_the_response(kind, frequency):
    angle = 2 * np.pi * frequency * np.arange(200) / 100.0
    rows = np.stack([np.cos(angle), np.sin(angle)])
    derivative = central_difference(rows, 100.0, kind)
    margin = MARGIN[kind]
    got = derivative[0] + 1j * derivative[1]
    expected = difference_response(np.array(frequency), 100.0, kind) * np.exp(1j * angle)[margin:-margin]
    np.testing.assert_allclose(got, expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("kind", KINDS)
def test_parabolas_are_differentiated_exactly(kind):
    time = np.arange(50) / 8.0
    parabola = (1.5 * time**2 - 2 * time + 3)[None]
    margin = MARGIN[kind]
    expected = 3 * time - 2 if kind == "first" else np.full(50, 3.0)
    np.testing.assert_allclose(central_difference(parabola, 8.0, kind)[0], expected[margin:-margin], atol=1e-10)


def test_the_first_difference_twice_is_the_kind_of_that_name():
    values = np.random.default_rng(0).standard_normal((2, 60))
    twice = central_difference(central_difference(values, 10.0), 10.0)
    np.testing.assert_allclose(central_difference(values, 10.0, "twice_first"), twice, atol=1e-12)


@pytest.mark.parametrize("second", ["second", "twice_first"])
def test_derivatives_of_a_motion_belong_to_the_samples_stated(second):
    rate = 1000.0
    time = np.arange(4000) / rate
    speed = 2 * np.pi * 0.8
    q, qd, qdd = np.sin(speed * time), speed * np.cos(speed * time), -(speed**2) * np.sin(speed * time)
    result = differentiate(np.stack([q, 2 * q]), low_pass(rate, 20.0), second, tolerance=1e-8)
    inner = slice(result.first, result.first + result.q.shape[1])
    for got, expected in ((result.q, q), (result.qd, qd), (result.qdd, qdd)):
        # 20 Hz leaves 0.8 Hz at 2e-12 of its amplitude; the differences cost up to (w T)^2 / 3.
        np.testing.assert_allclose(got[0], expected[inner], atol=2e-5 * np.abs(expected).max())
        np.testing.assert_allclose(got[1], 2 * got[0], atol=1e-9)
    assert not result.qdd.flags.writeable


def test_without_a_filter_the_derivatives_are_the_plain_differences():
    values = np.random.default_rng(0).standard_normal((1, 30))
    result = differentiate(values, low_pass(10.0, None, mode="none"))
    assert result.first == 1
    np.testing.assert_array_equal(result.qdd, central_difference(values, 10.0, "second"))
    np.testing.assert_array_equal(result.qd, central_difference(values, 10.0, "first"))


def test_bad_input_is_refused():
    with pytest.raises(SignalError, match="got 2 samples, needed are at least 3"):
        central_difference(np.zeros((1, 2)), 10.0)
    with pytest.raises(SignalError, match="difference: got 'third', allowed are first, second, twice_first"):
        central_difference(np.zeros((1, 9)), 10.0, "third")  # pyright: ignore[reportArgumentType]
    with pytest.raises(SignalError, match="second derivative: got 'first'"):
        differentiate(np.zeros((1, 90)), low_pass(10.0, None, mode="none"), "first")
    with pytest.raises(SignalError, match="row 0, sample 4"):
        central_difference(np.array([[0, 0, 0, 0, np.inf]]), 10.0)


def test_the_joint_lags_the_motor_by_torque_over_stiffness():
    q = np.array([[0.1, 0.2], [1.0, 1.0], [0.0, 0.5]])
    torque = np.array([[100.0, -50.0], [7.5, 0.0], [3.0, 3.0]])
    expected = [[0.09, 0.205], [0.999, 1.0], [0.0, 0.5]]
    np.testing.assert_allclose(joint_positions(q, torque, np.array([1e4, 7500.0, np.inf])), expected)


@pytest.mark.parametrize("stiffness", [[0.0, 1.0], [-1.0, 1.0], [np.nan, 1.0], [1.0]])
def test_impossible_stiffness_is_refused(stiffness):
    with pytest.raises(SignalError, match="stiffness"):
        joint_positions(np.zeros((2, 3)), np.zeros((2, 3)), np.array(stiffness))


def test_torques_must_fit_the_positions():
    with pytest.raises(SignalError, match=r"got shape \(2, 4\), allowed is that of positions \(2, 3\)"):
        joint_positions(np.zeros((2, 3)), np.zeros((2, 4)), np.ones(2))
