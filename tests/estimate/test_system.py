"""Stacked systems: equal to numpy's least squares; rank is decided on the stack, in the order of the columns."""

from __future__ import annotations

import numpy as np
import pytest

from estimate.synthetic import factor_of, names_of, observations_of
from steelyard.errors import EstimateError
from steelyard.estimate import condition_number, independent, stacked_system

GROUP = ("a", "motor", "joint_1")
OTHER = ("a", "motor", "joint_2")


def rows_of(rng, count=60, columns=5):
    return rng.standard_normal((count, columns + 1))


def system_of(W, y=None, names=None):
    y = np.ones(len(W)) if y is None else y
    names = names_of(W.shape[1]) if names is None else names
    return stacked_system(observations_of(factor_of(np.column_stack([W, y]), names, GROUP)), names)


def test_values_inverse_and_squares_are_those_of_numpy():
    rng = np.random.default_rng(0)
    rows = rows_of(rng)
    W, y = rows[:, :-1], rows[:, -1]
    system = system_of(W, y)
    values, squares, *_ = np.linalg.lstsq(W, y, rcond=None)
    np.testing.assert_allclose(system.values, values, rtol=1e-12)
    np.testing.assert_allclose(system.squares, squares[0], rtol=1e-12)
    np.testing.assert_allclose(system.inverse, np.linalg.inv(W.T @ W), rtol=1e-10)
    np.testing.assert_allclose(system.scale, np.linalg.norm(W, axis=0), rtol=1e-13)
    assert system.freedom == 55
    other = rng.standard_normal(5)
    np.testing.assert_allclose(system.squares_at(other), np.sum((y - W @ other) ** 2), rtol=1e-12)


def test_joints_and_recordings_stack_by_name_with_their_weights():
    rng = np.random.default_rng(1)
    first, second = rows_of(rng, 30, 3), rows_of(rng, 40, 2)
    observations = observations_of(factor_of(first, ("p0", "p1", "p2"), GROUP), factor_of(second, ("p2", "p3"), OTHER))
    system = stacked_system(observations, names_of(4), {GROUP: 2.0, OTHER: 0.5})
    W = np.zeros((70, 4))
    W[:30, :3], W[30:, 2:] = 2 * first[:, :-1], 0.5 * second[:, :-1]
    y = np.concatenate([2 * first[:, -1], 0.5 * second[:, -1]])
    np.testing.assert_allclose(system.values, np.linalg.lstsq(W, y, rcond=None)[0], rtol=1e-11)
    assert system.rows == 70


def test_factors_may_be_chosen():
    rng = np.random.default_rng(2)
    first, second = rows_of(rng, 30, 2), rows_of(rng, 40, 2)
    observations = observations_of(
        factor_of(first, names_of(2), GROUP), factor_of(second, names_of(2), ("b", "motor", "joint_1"))
    )
    system = stacked_system(observations, names_of(2), chosen=lambda factor: factor.recording == "b")
    np.testing.assert_allclose(system.values, np.linalg.lstsq(second[:, :-1], second[:, -1], rcond=None)[0], rtol=1e-11)
    assert system.rows == 40


def test_conditions_are_those_of_the_columns_as_they_are_and_normalised():
    W = rows_of(np.random.default_rng(3))[:, :-1] * [1, 1e3, 1, 1e-4, 1]
    system = system_of(W)
    np.testing.assert_allclose(system.condition, np.linalg.cond(W), rtol=1e-9)
    np.testing.assert_allclose(system.normalised_condition, np.linalg.cond(W / np.linalg.norm(W, axis=0)), rtol=1e-9)
    assert condition_number(np.diag([1.0, 0.0])) == np.inf


@pytest.mark.parametrize("power", [-12, -6, 6, 12])
def test_the_units_of_a_column_do_not_decide_its_rank_nor_its_value(power):
    rng = np.random.default_rng(4)
    rows = rows_of(rng)
    W, y = rows[:, :-1], rows[:, -1]
    expected = np.linalg.lstsq(W, y, rcond=None)[0]
    scaled = W * [1, 1, 10.0**power, 1, 1]
    system = system_of(scaled, y)
    assert system.dropped == ()
    np.testing.assert_allclose(system.values * [1, 1, 10.0**power, 1, 1], expected, rtol=1e-10)


def test_a_column_of_zeros_or_of_rounding_is_left_out():
    W = rows_of(np.random.default_rng(5))[:, :-1]
    W[:, 1] = 0.0
    W[:, 3] *= 1e-15
    assert system_of(W).dropped == ("p1", "p3")


def test_of_dependent_columns_the_later_one_goes():
    W = rows_of(np.random.default_rng(6), columns=4)[:, :-1]
    W[:, 3] = 2 * W[:, 0] - 3 * W[:, 1]
    assert system_of(W).dropped == ("p3",)
    moved = system_of(W[:, [3, 2, 1, 0]], names=("p3", "p2", "p1", "p0"))
    assert moved.dropped == ("p0",)
    assert moved.columns == ("p3", "p2", "p1")


def test_two_dependent_groups_lose_one_column_each_and_the_fit_stays_the_best():
    rng = np.random.default_rng(7)
    W = rng.standard_normal((50, 6))
    W[:, 2], W[:, 5] = W[:, 0] + W[:, 1], W[:, 3] - W[:, 4]
    y = rng.standard_normal(50)
    system = system_of(W, y)
    assert system.dropped == ("p2", "p5")
    residual = y - W @ np.linalg.lstsq(W, y, rcond=None)[0]
    np.testing.assert_allclose(system.squares, residual @ residual, rtol=1e-12)


def test_columns_dependent_in_each_joint_are_kept_where_the_stack_distinguishes_them():
    rng = np.random.default_rng(8)
    a, b = rng.standard_normal((2, 40, 3))
    a[:, 1], b[:, 1] = 2 * a[:, 0], -b[:, 0]
    observations = observations_of(factor_of(a, names_of(2), GROUP), factor_of(b, names_of(2), OTHER))
    assert stacked_system(observations, names_of(2)).dropped == ()
    assert stacked_system(observations, names_of(2), chosen=lambda f: f.joint == "joint_1").dropped == ("p1",)


def test_nearly_dependent_columns_are_kept():
    W = rows_of(np.random.default_rng(9), columns=3)[:, :-1]
    W[:, 2] = W[:, 0] + 1e-6 * W[:, 2]
    assert system_of(W).dropped == ()


def test_fewer_rows_than_parameters_are_refused_with_both_numbers():
    with pytest.raises(EstimateError, match=r"5 rows of equations for 5 parameters.*record longer"):
        system_of(rows_of(np.random.default_rng(10), 5)[:, :-1])


def test_recordings_without_any_effect_are_refused():
    with pytest.raises(EstimateError, match=r"no parameter has any effect.*is the arm moving"):
        system_of(np.zeros((20, 2)))


def test_a_restricted_system_is_least_squares_with_fewer_columns():
    rng = np.random.default_rng(11)
    rows = rows_of(rng)
    W, y = rows[:, :-1], rows[:, -1]
    small = system_of(W, y).restricted(["p3", "p1"])
    np.testing.assert_allclose(small.values, np.linalg.lstsq(W[:, [3, 1]], y, rcond=None)[0], rtol=1e-12)
    assert small.columns == ("p3", "p1")
    assert small.freedom == 58


def test_an_independent_system_stays_as_it_is():
    system = system_of(rows_of(np.random.default_rng(12))[:, :-1])
    np.testing.assert_array_equal(independent(system).triangle, system.triangle)
    assert not system.triangle.flags.writeable
