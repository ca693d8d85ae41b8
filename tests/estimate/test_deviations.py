"""Per-joint deviations from the joint's own factor (P1.2), also where its columns are dependent."""

from __future__ import annotations

import numpy as np
import pytest

from estimate.synthetic import factor_of, names_of, observations_of
from steelyard.errors import EstimateError
from steelyard.estimate import group_factors, joint_deviations

GROUP = ("a", "motor", "joint_1")


def deviation(rows, columns):
    return joint_deviations(observations_of(factor_of(rows, names_of(columns), GROUP)))[GROUP]


def test_it_is_the_residual_of_the_joint_s_own_fit_over_its_freedom():
    rows = np.random.default_rng(0).standard_normal((60, 6))
    W, y = rows[:, :-1], rows[:, -1]
    residual = y - W @ np.linalg.lstsq(W, y, rcond=None)[0]
    np.testing.assert_allclose(deviation(rows, 5), np.sqrt(residual @ residual / 55), rtol=1e-12)


def test_a_column_of_zeros_costs_no_degree_of_freedom():
    rows = np.random.default_rng(1).standard_normal((60, 6))
    padded = np.insert(rows, 2, 0.0, axis=1)
    np.testing.assert_allclose(deviation(padded, 6), deviation(rows, 5), rtol=1e-12)


def test_with_dependent_columns_the_freedom_is_rows_less_columns_triangularised():
    """P1's trap: 8 of 24 columns are dependent up to rounding; dividing by r - rank would be about 6 % low.

    The last diagonal element of the triangle is what is left of y after all 24 columns, also those of rounding.
    """
    rng = np.random.default_rng(2)
    rows, columns, rank = 90, 24, 16
    squares = []
    for _ in range(1500):
        W = rng.standard_normal((rows, rank)) @ rng.standard_normal((rank, columns))
        squares.append(deviation(np.column_stack([W, rng.standard_normal(rows)]), columns) ** 2)
    error = np.sqrt(2 / (rows - columns) / 1500)
    assert abs(np.mean(squares) - 1) < 4 * error
    by_rank = np.sqrt(np.mean(squares) * (rows - columns) / (rows - rank))
    assert 0.92 < by_rank < 0.96


def test_blocks_of_time_do_not_change_it():
    rows = np.random.default_rng(3).standard_normal((70, 5))
    factors = [factor_of(part, names_of(4), GROUP, k) for k, part in enumerate(np.split(rows, [3, 20, 21, 50]))]
    np.testing.assert_allclose(joint_deviations(observations_of(*factors))[GROUP], deviation(rows, 4), rtol=1e-12)


def test_a_short_recording_is_pooled_with_the_others():
    rng = np.random.default_rng(4)
    long, short = rng.standard_normal((100, 4)), 5 * rng.standard_normal((12, 4))
    groups = GROUP, ("b", "motor", "joint_1")
    factors = [factor_of(rows, names_of(3), group) for rows, group in zip((long, short), groups, strict=True)]
    found = joint_deviations(observations_of(*factors))
    both = np.vstack([long, short])
    residual = both[:, -1] - both[:, :-1] @ np.linalg.lstsq(both[:, :-1], both[:, -1], rcond=None)[0]
    np.testing.assert_allclose(list(found.values()), np.sqrt(residual @ residual / 109), rtol=1e-12)


def test_a_joint_without_rows_to_spare_is_named():
    rows = np.random.default_rng(5).standard_normal((4, 5))
    with pytest.raises(EstimateError, match=r"joint 'joint_1' \(motor torque\) has no more rows than non-zero columns"):
        deviation(rows, 4)


def test_factors_are_grouped_by_recording_kind_and_joint():
    rows = np.random.default_rng(6).standard_normal((10, 2))
    groups = [("b", "motor", "j"), ("a", "motor", "j"), ("b", "motor", "j"), ("b", "joint", "j")]
    groups = group_factors(observations_of(*(factor_of(rows, ("p",), group, k) for k, group in enumerate(groups))))
    assert {group: [f.block for f in factors] for group, factors in groups.items()} == {
        ("a", "motor", "j"): [1], ("b", "joint", "j"): [3], ("b", "motor", "j"): [0, 2],
    }  # fmt: skip
