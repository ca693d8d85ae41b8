"""Gross errors: found among many, named, and none where there are none."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from calibration.small_problems import (
    laid_out,
    linear_problem,
    noise_like,
    spatial_points,
    spatial_problem,
    spatial_truth,
)
from steelyard.calibration.fit.fit import fitted, trimmed_variance
from steelyard.calibration.fit.identifiable import identifiability
from steelyard.calibration.fit.outliers import screened, tukey_factors

KEPT = np.arange(4)


def spoiled(seed: int):
    """20 configurations of a 6R arm: five with wrong joint angles, and two points read wrongly in others."""
    random = np.random.default_rng(seed)
    q = random.uniform(-1.5, 1.5, (6, 20))
    bad, truth = random.choice(20, 7, replace=False), spatial_truth(seed)
    moved = q.copy()
    moved[random.integers(0, 3, 5), bad[:5]] += random.choice([-1, 1], 5) * random.uniform(20e-3, 60e-3, 5)
    points = spatial_points(truth, moved) + 1e-4 * random.standard_normal((20, 3, 3))
    points[bad[5], 0, 0] += 0.090
    points[bad[6], 2, 1] -= 0.030
    named = {(f"pose_{pose + 1}", None) for pose in bad[:5]}
    return spatial_problem(points, q), named | {(f"pose_{bad[5] + 1}", "m1"), (f"pose_{bad[6] + 1}", "m3")}


@pytest.mark.parametrize("seed", [0, 3, 7])
def test_five_wrong_configurations_and_two_gross_points_of_twenty_are_named(seed):
    problem, expected = spoiled(seed)
    columns = identifiability(problem.parameters, problem.at(problem.start).jacobian).columns
    found = screened(problem, columns)
    assert {(item.pose, item.marker) for item in found.outliers} == expected
    sizes = {item.marker: item.size_mm for item in found.outliers}
    assert sizes["m1"] == pytest.approx(90, abs=1)
    assert sizes["m3"] == pytest.approx(30, abs=1)
    assert found.good.sum() == 180 - 5 * 9 - 2 * 3
    rest = fitted(problem.taken(found.good), columns, start=found.values)
    assert np.sqrt(np.sum(rest.residual**2) / (129 - len(columns))) == pytest.approx(1e-4, rel=0.3)


def test_least_squares_alone_would_blame_others():
    """Why a robust start is needed: the largest residuals of a plain fit are not those of the wrong configurations."""
    problem, expected = spoiled(0)
    columns = identifiability(problem.parameters, problem.at(problem.start).jacobian).columns
    fit = fitted(problem, columns)
    scale = np.median(np.abs(fit.residual)) / 0.6745
    suspects = {f"pose_{k + 1}" for k in np.unique(problem.equations.pose[np.abs(fit.residual) > 4.5 * scale])}
    assert not suspects >= {pose for pose, _ in expected}


def test_clean_measurements_have_no_outliers():
    named = 0
    for seed in range(40):
        problem, _ = linear_problem(noise_like("equal", 1e-4, 15, 3, 1, seed), 15, 3, 1)
        named += len(screened(problem, KEPT).outliers)
    assert named <= 2


def test_a_configuration_with_more_noise_is_no_gross_error():
    problem, _ = linear_problem(noise_like("unequal", 1e-4, 15, 3, 6, 0), 15, 3, 6)
    assert len(screened(problem, KEPT).outliers) <= 1


def test_a_gross_point_beside_a_wrong_configuration_is_named_by_itself():
    noise = noise_like("equal", 1e-4, 15, 3, 1, 0).reshape(15, 3, 3)
    noise[4] += [0.005, 0.0, 0.0]
    noise[4, 1] += [0.0, 0.4, 0.0]
    problem, _ = linear_problem(noise.ravel(), 15, 3, 1)
    named = {(item.pose, item.marker): item.size_mm for item in screened(problem, KEPT).outliers}
    assert set(named) == {("pose_5", "m2"), ("pose_5", None)}
    assert named["pose_5", "m2"] == pytest.approx(400, rel=0.01)
    assert named["pose_5", None] == pytest.approx(5, rel=0.1)


def test_an_outlier_says_what_it_is():
    noise = noise_like("equal", 1e-4, 15, 3, 1, 0)
    noise[9 * 7 + 4] += 0.0915
    problem, _ = linear_problem(noise, 15, 3, 1)
    (found,) = screened(problem, KEPT).outliers
    assert found.size_mm == pytest.approx(91.5, abs=0.3)
    assert found.text == f"pose_8, marker m2: {found.size_mm:.3g} mm off"


def test_the_same_seed_gives_the_same_answer():
    problem, _ = spoiled(1)
    columns = identifiability(problem.parameters, problem.at(problem.start).jacobian).columns
    first, second = screened(problem, columns, seed=4), screened(problem, columns, seed=4)
    np.testing.assert_array_equal(first.good, second.good)
    np.testing.assert_array_equal(first.values, second.values)


def test_with_hardly_more_equations_than_unknowns_nothing_is_judged():
    problem, _ = linear_problem(np.zeros(6), 2, 1, 1)
    found = screened(problem, KEPT)
    assert not found.judged
    assert found.good.all()


def test_tukey_factors_fall_to_zero_with_the_distance_of_a_point():
    equations = laid_out(np.zeros(9), 3, 1, 1, (0, 1, 2))
    factors = tukey_factors(equations, np.array([0, 0, 0, 3.0, 0, 4.0, 9, 0, 0]))
    np.testing.assert_allclose(factors, [1] * 3 + [1 - 25 / 5.490**2] * 3 + [0] * 3)


def test_the_variance_of_trimmed_points_is_that_of_the_integral():
    limit = stats.chi2.ppf(0.6, 3)
    inside = integrate.quad(lambda t: t * stats.chi2.pdf(t, 3), 0, limit)[0] / 0.6 / 3
    assert trimmed_variance(0.6, 3) == pytest.approx(inside, rel=1e-6)
    assert trimmed_variance(1.0, 3) == 1.0
