"""The fit: equal to scipy's, from far away, and never silent about not converging."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import least_squares

from calibration.small_problems import (
    camera_problem,
    linear_problem,
    noise_like,
    planar_problem,
    spatial_points,
    spatial_problem,
    spatial_truth,
)
from steelyard.calibration.fit.fit import fitted, inverse_of, triangle_of
from steelyard.calibration.fit.identifiable import identifiability
from steelyard.errors import CalibrationError

COLUMNS = np.array([0, 1, 2, 3, 4, 7])
TRUTH = np.array([0.3, -0.2, 0.4, 0.13, 0.02, 0.0, 0.0, 0.01, 0.0])


def test_a_linear_problem_is_solved_as_by_numpy():
    problem, _ = linear_problem(noise_like("equal", 1e-4, 15, 3, 2, 0))
    fit = fitted(problem, np.arange(4))
    expected = np.linalg.lstsq(problem.matrix, problem.equations.measured, rcond=None)[0]
    np.testing.assert_allclose(fit.values, expected, rtol=1e-12)
    np.testing.assert_allclose(fit.inverse, np.linalg.inv(problem.matrix.T @ problem.matrix), rtol=1e-10)
    assert fit.converged
    assert len(fit.iterations) == 1
    assert fit.leverage.sum() == pytest.approx(4)


def test_weights_multiply_residuals():
    problem, _ = linear_problem(noise_like("equal", 1e-4, 15, 3, 2, 0))
    weight = np.random.default_rng(0).uniform(0.1, 2, problem.equations.size)
    expected = np.linalg.lstsq(weight[:, None] * problem.matrix, weight * problem.equations.measured, rcond=None)[0]
    np.testing.assert_allclose(fitted(problem, np.arange(4), weight).values, expected, rtol=1e-10)


def test_a_planar_arm_is_found_exactly_from_half_a_radian_away():
    problem = planar_problem(TRUTH)
    fit = fitted(problem, COLUMNS)
    np.testing.assert_allclose(fit.values, TRUTH, atol=1e-12)
    assert fit.converged
    objectives = [iteration.objective for iteration in fit.iterations]
    assert objectives == sorted(objectives, reverse=True)


def test_a_camera_ends_where_scipy_ends():
    truth = np.array([0.4, -0.3, 0.5, 0.6, 0.035])
    problem = camera_problem(truth, sigma=1e-5)
    fit = fitted(problem, np.arange(5))
    scale = np.array([1, 1, 1, 1, 0.03])
    other = least_squares(problem.residual, problem.start, x_scale=scale, xtol=1e-14, ftol=1e-14, gtol=1e-14)
    np.testing.assert_allclose(fit.values, other.x, atol=1e-7)


@pytest.mark.parametrize("seed", [0, 1])
def test_errors_of_centimetres_and_a_base_far_away_are_walked_through(seed):
    random = np.random.default_rng(seed)
    q = random.uniform(-1.5, 1.5, (6, 25))
    truth = spatial_truth(seed)
    truth[15:] *= 20
    truth[3:6] = random.uniform(-2, 2, 3)
    problem = spatial_problem(spatial_points(truth, q), q)
    columns = identifiability(problem.parameters, problem.at(problem.start).jacobian).columns
    fit = fitted(problem, columns)
    assert np.sqrt(np.mean(fit.residual**2)) < 1e-12
    assert fit.converged, fit.reason


def test_rounding_of_the_objective_near_its_end_is_no_failure():
    truth = TRUTH.copy()
    truth[0] = 1e5
    for seed in range(30):
        fit = fitted(planar_problem(truth, 0.05, seed=seed), COLUMNS)
        assert fit.converged, fit.reason


def test_a_prior_is_a_measurement_of_the_unknown():
    problem, _ = linear_problem(noise_like("equal", 1e-4, 15, 3, 2, 0))
    weight = np.full(problem.equations.size, 1e4)
    prior = np.array([1e-5, np.inf, 2e-5, np.inf])
    fit = fitted(problem, np.arange(4), weight, prior=prior)
    rows = np.vstack([1e4 * problem.matrix, np.diag(1 / prior)])
    expected = np.linalg.lstsq(rows, np.concatenate([1e4 * problem.equations.measured, np.zeros(4)]), rcond=None)[0]
    np.testing.assert_allclose(fit.values, expected, rtol=1e-10)
    np.testing.assert_allclose(fit.inverse, np.linalg.inv(rows.T @ rows), rtol=1e-10)


def test_not_converging_is_said():
    fit = fitted(camera_problem(np.array([0.4, -0.3, 0.5, 0.6, 0.035])), np.arange(5), most_iterations=2)
    assert not fit.converged
    assert fit.reason == "2 iterations were not enough"


def test_wrong_derivatives_are_said():
    problem, _ = linear_problem(noise_like("equal", 1e-4, 15, 3, 2, 0))

    class Wrong(type(problem)):
        def at(self, values):
            here = super().at(values)
            return replace(here, jacobian=-here.jacobian)

    fit = fitted(Wrong(problem.parameters, problem.equations, problem.start, problem.matrix), np.arange(4))
    assert not fit.converged
    assert "check the derivatives" in fit.reason


def test_no_unknowns_give_the_residuals_at_the_start():
    problem = planar_problem(TRUTH)
    fit = fitted(problem, np.array([], dtype=int))
    np.testing.assert_array_equal(fit.residual, problem.residual(problem.start))
    assert fit.converged


def test_bad_input_is_refused():
    problem, _ = linear_problem(noise_like("equal", 1e-4, 15, 3, 2, 0))
    with pytest.raises(CalibrationError, match="got 3 equations for 4 unknowns"):
        fitted(problem.taken(np.arange(3)), np.arange(4))
    with pytest.raises(CalibrationError, match="are not finite"):
        fitted(problem, np.arange(4), start=np.full(4, np.nan))
    with pytest.raises(CalibrationError, match="has no effect on a measured number"):
        fitted(planar_problem(TRUTH), np.arange(9))
    with pytest.raises(CalibrationError, match="offset2 is not identifiable beside the other unknowns"):
        fitted(planar_problem(TRUTH), np.arange(8))


@pytest.mark.parametrize("nearness", [1.0, 1e-2, 1e-6])
def test_the_triangle_is_that_of_qr_however_near_columns_are(nearness):
    random = np.random.default_rng(0)
    rows = random.standard_normal((40, 3)) * [1.0, 1e3, 1e-6]
    rows[:, 1] = 1e3 * rows[:, 0] + nearness * rows[:, 1]
    wanted = random.standard_normal(40)
    triangle, projected = triangle_of(rows, wanted)
    solution = np.linalg.solve(triangle, projected)
    scale = np.linalg.norm(rows, axis=0)
    expected = np.linalg.lstsq(rows / scale, wanted, rcond=None)[0] / scale
    np.testing.assert_allclose(solution, expected, rtol=1e-7)
    sigma = np.sqrt(np.diag(inverse_of(triangle, "abc"))) * scale
    unit = np.linalg.svd(rows / scale, full_matrices=False)
    np.testing.assert_allclose(sigma, np.sqrt(((unit[2].T / unit[1]) ** 2).sum(axis=1)), rtol=1e-7)
