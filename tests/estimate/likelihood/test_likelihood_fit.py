"""The most likely motion and parameters: scipy's optimum, the Hessian of a likelihood written out by hand, coverage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize

from arms import arm
from estimate.likelihood.periodic_arms import (
    SCARA,
    p4,
    p4_problem,
    scara_equations,
    scara_motion,
    scara_problem,
    scara_torques,
)
from independent import central_difference
from steelyard.errors import EstimateError
from steelyard.estimate.likelihood import (
    LikelihoodProblem,
    LikelihoodRun,
    LikelihoodSettings,
    likelihood_fit,
    torque_functions,
)
from steelyard.estimate.likelihood.estimator import fit_with_unknown_noise, torque_deviations
from steelyard.estimate.likelihood.fit import Likelihood
from steelyard.model import build_model
from steelyard.observe import equations_of

TIGHT = LikelihoodSettings(tolerance=1e-9)


def residuals_of(problem):
    """Return the weighted residuals of P1's arm as a function of (theta, delta), written out by hand."""
    run = problem.runs[0]

    def residuals(unknowns):
        delta = unknowns[len(SCARA) :].reshape(2, -1)
        q = (run.q - delta @ run.basis[0]) / run.position_deviation[:, None]
        torques = scara_torques(delta @ run.basis, unknowns[: len(SCARA)])
        return np.concatenate([q.ravel(), ((run.y - torques) / run.torque_deviation[:, None]).ravel()])

    return residuals


def unknowns_of(fit):
    return np.concatenate([fit.values, fit.coefficients[0].ravel()])


def test_the_optimum_is_that_of_scipy_on_a_likelihood_written_out_by_hand():
    problem = scara_problem(0)
    fit = likelihood_fit(problem, TIGHT)
    start = np.concatenate([0.8 * SCARA + 0.01, scara_motion()[0].ravel() + 0.01])
    reference = optimize.least_squares(residuals_of(problem), start, xtol=1e-15, ftol=1e-15, gtol=1e-12)
    assert fit.converged
    assert fit.costs[-1] == pytest.approx(2 * reference.cost, rel=1e-10)
    np.testing.assert_allclose((fit.values - reference.x[:8]) / fit.sigma, 0, atol=1e-4)
    assert np.abs(fit.values - SCARA).max() > 0  # noise moved it


def test_the_gradient_of_the_cost_is_zero_at_the_result():
    problem = scara_problem(1)
    fit = likelihood_fit(problem, TIGHT)
    residuals = residuals_of(problem)
    at = unknowns_of(fit)
    scale = np.concatenate([fit.sigma, np.full(len(at) - 8, 1e-3)])
    gradient = central_difference(lambda x: [np.sum(residuals(scale * x) ** 2)], at / scale, 1e-4)
    away = central_difference(lambda x: [np.sum(residuals(scale * x) ** 2)], at / scale + 0.1, 1e-4)
    np.testing.assert_allclose(gradient, 0, atol=1e-5)
    assert np.abs(away).max() > 0.1
    assert fit.gradient < 1e-9


def test_the_covariance_is_the_inverse_hessian_of_the_likelihood():
    """Without noise in the data the Hessian at the truth is the Fisher information."""
    problem = scara_problem(2, noise=0.0)
    fit = likelihood_fit(problem, TIGHT)
    np.testing.assert_allclose(fit.values, SCARA, rtol=1e-7)
    residuals = residuals_of(problem)
    scale = np.concatenate([fit.sigma, np.full(10, 3e-3)])
    at = unknowns_of(fit) / scale

    def gradient(x):
        return 0.5 * central_difference(lambda z: [np.sum(residuals(scale * z) ** 2)], x, 1e-3)[0]

    hessian = central_difference(gradient, at, 1e-3)
    expected = np.linalg.inv((hessian + hessian.T) / 2)[:8, :8]
    np.testing.assert_allclose(fit.covariance / np.outer(fit.sigma, fit.sigma), expected, rtol=1e-4, atol=1e-5)
    exact = likelihood_fit(replace(problem, runs=(replace(problem.runs[0], position_deviation=np.zeros(2)),)))
    assert (fit.sigma > 1.02 * exact.sigma).any()  # noise on positions costs something


@pytest.mark.parametrize("algorithm", ["gauss_newton", "levenberg_marquardt"])
def test_the_cost_falls_with_every_step_whatever_the_algorithm(algorithm):
    problem = scara_problem(3, position=0.05)
    fit = likelihood_fit(problem, LikelihoodSettings(algorithm=algorithm, tolerance=1e-8))
    costs = np.array(fit.costs)
    assert fit.converged
    assert len(costs) >= 4
    assert (np.diff(costs) <= 1e-12 * costs[:-1]).all()
    assert costs[0] > costs[-1] + 1
    np.testing.assert_allclose(fit.values, likelihood_fit(problem, TIGHT).values, rtol=1e-6)


def test_steps_that_are_too_long_are_damped():
    problem = scara_problem(5, position=0.6, torque=(0.1, 0.01), count=30)
    likelihood = Likelihood(problem)
    start = likelihood.start()
    triangles, _ = likelihood.linearised(start)
    assert likelihood.step(start, triangles, 0.0).cost > start.cost
    assert likelihood.step(start, triangles, 0.01).cost < start.cost
    fit = likelihood_fit(problem, LikelihoodSettings(tolerance=1e-7))
    assert fit.converged
    assert (np.diff(fit.costs) <= 1e-12 * np.array(fit.costs[:-1])).all()
    reference = optimize.least_squares(residuals_of(problem), unknowns_of(fit), xtol=1e-14, ftol=1e-14)
    assert fit.costs[-1] <= 2 * reference.cost * (1 + 1e-6)


def test_a_fit_may_start_from_another():
    problem = scara_problem(3, position=0.05)
    cold = likelihood_fit(problem, TIGHT)
    warm = likelihood_fit(problem, TIGHT, likelihood_fit(problem, LikelihoodSettings(tolerance=1e-5)))
    assert warm.iterations < cold.iterations
    np.testing.assert_allclose((warm.values - cold.values) / cold.sigma, 0, atol=1e-8)


def test_few_steps_allowed_are_said_to_be_too_few():
    fit = likelihood_fit(scara_problem(3, position=0.05), LikelihoodSettings(most_iterations=1))
    assert not fit.converged
    assert fit.iterations == 1
    assert fit.gradient > 1e-6


def test_with_exact_positions_it_is_weighted_least_squares():
    problem = p4_problem(0, 1e-3, known=0.0)
    fit = likelihood_fit(problem, TIGHT)
    arm4, run = p4(), problem.runs[0]
    fitted = np.linalg.lstsq(arm4.basis[0].T, run.q.T, rcond=None)[0].T @ arm4.basis
    rows, _ = torque_functions(arm4.equations, arm4.equations.names).rows_and_slopes(fitted, fitted[1], arm4.theta)
    W = (rows / arm4.deviation[:, None, None]).transpose(0, 2, 1).reshape(-1, len(arm4.theta))
    y = (run.y / arm4.deviation[:, None]).ravel()
    np.testing.assert_allclose(fit.values, np.linalg.lstsq(W, y, rcond=None)[0], rtol=1e-8)
    np.testing.assert_allclose(fit.covariance, np.linalg.inv(W.T @ W), rtol=1e-8, atol=1e-12)
    assert fit.iterations == 0
    np.testing.assert_allclose(fit.coefficients[0] @ arm4.basis[0], fitted[0], atol=1e-12)


@pytest.mark.parametrize(("position", "largest"), [(1e-5, 1e-6), (1e-4, 1e-4), (1e-3, 0.005)])
def test_little_noise_on_positions_moves_p4_s_estimates_by_little(position, largest):
    moved = []
    for seed in range(5):
        both = likelihood_fit(p4_problem(seed, position))
        torques_alone = likelihood_fit(p4_problem(seed, position, known=0.0))
        moved.append(np.max(np.abs(both.values - torques_alone.values) / both.sigma))
    # The median: next to a reversal least squares may take one sample's friction with the wrong sign.
    assert 0.001 * largest < np.median(moved) < largest


@pytest.mark.large
def test_much_noise_on_positions_leaves_likelihood_efficient_where_least_squares_is_not():
    bound = likelihood_fit(p4_problem(0, 1e-2, noise=0.0)).sigma
    errors, covered = {"ml": [], "wls": []}, []
    for seed in range(50):
        fit = likelihood_fit(p4_problem(seed, 1e-2))
        errors["ml"].append((fit.values - p4().theta) / bound)
        errors["wls"].append((likelihood_fit(p4_problem(seed, 1e-2, known=0.0)).values - p4().theta) / bound)
        covered.append(np.abs(fit.values - p4().theta) <= 1.96 * fit.sigma)
    ml, wls = (float(np.sqrt(np.mean(np.square(errors[which])))) for which in ("ml", "wls"))
    assert 0.94 < ml < 1.06
    assert wls > ml + 0.03
    assert 0.93 < np.mean(covered) < 0.975


def test_a_sample_on_the_wrong_side_of_a_reversal_is_shown_by_its_torque():
    arm4, problem = p4(), p4_problem(0, 1e-2)
    fit = likelihood_fit(problem)
    true = np.sign(arm4.motion[1])
    fitted = np.linalg.lstsq(arm4.basis[0].T, problem.runs[0].q.T, rcond=None)[0].T @ arm4.basis[1]
    assert (np.sign(fitted) != true).sum() >= 1
    assert (np.sign(fit.directions[0]) != true).sum() == 0


def test_two_recordings_are_worth_twice_one_and_each_has_its_own_motion():
    problem = scara_problem(6)
    one = likelihood_fit(problem, TIGHT)
    twice = likelihood_fit(replace(problem, runs=problem.runs * 2), TIGHT)
    np.testing.assert_allclose(twice.values, one.values, rtol=1e-8)
    np.testing.assert_allclose(twice.covariance, one.covariance / 2, rtol=1e-6)
    other = scara_problem(7)
    both = likelihood_fit(replace(problem, runs=problem.runs + other.runs), TIGHT)
    assert np.abs(both.coefficients[0] - both.coefficients[1]).max() > 1e-4
    assert ((both.sigma > 0.6 * one.sigma) & (both.sigma < 0.8 * one.sigma)).all()


def test_only_motions_with_noise_are_moved():
    problem = scara_problem(8)
    half = replace(problem.runs[0], position_deviation=np.array([0.0, 1e-2]))
    fit = likelihood_fit(replace(problem, runs=(half,)), TIGHT)
    fitted = np.linalg.lstsq(half.basis[0].T, half.q.T, rcond=None)[0].T
    np.testing.assert_allclose(fit.coefficients[0][0], fitted[0], rtol=1e-12)
    assert np.abs(fit.coefficients[0][1] - fitted[1]).max() > 1e-5


def test_rows_without_payload_say_nothing_of_it():
    equations = equations_of(build_model(arm("scara_2r"), payload="paired", sign_width=0.05))
    rng, (coefficients, basis) = np.random.default_rng(9), scara_motion()
    motion = coefficients @ basis
    theta = np.append(SCARA, [0.02, 0.1, 0.05, 0.4])
    runs, W = [], []
    for loaded in (False, True):
        functions = torque_functions(equations, equations.names, loaded=loaded)
        y = functions.torques(motion, motion[1], theta) + 0.01 * rng.standard_normal((2, 80))
        runs.append(LikelihoodRun(motion[0], y, basis, np.zeros(2), np.full(2, 0.01), loaded))
        W.append(functions.rows_and_slopes(motion, motion[1], theta)[0].transpose(0, 2, 1).reshape(-1, 12))
    assert not W[0][:, 8:].any()
    fit = likelihood_fit(LikelihoodProblem(equations, equations.names, tuple(runs)))
    y = np.concatenate([run.y.ravel() for run in runs])
    np.testing.assert_allclose(fit.values, np.linalg.lstsq(np.vstack(W), y, rcond=None)[0], rtol=1e-8)


def test_unknown_noise_of_torques_comes_from_the_residuals():
    found = []
    for seed in range(12):
        problem = scara_problem(100 + seed, torque=(0.5, 0.05), count=200)
        blind = replace(problem, runs=(replace(problem.runs[0], torque_deviation=np.ones(2)),))
        resolved, fit = fit_with_unknown_noise(blind, (True,), LikelihoodSettings())
        assert fit.converged
        found.append(resolved.runs[0].torque_deviation / [0.5, 0.05])
        np.testing.assert_allclose(torque_deviations(resolved, fit)[0], resolved.runs[0].torque_deviation, rtol=2e-3)
    # Each is known to 1/sqrt(2 * 200) = 5 %; the mean of twelve to 1.5 %.
    np.testing.assert_allclose(np.mean(np.square(found), axis=0), 1.0, atol=0.1)


def test_problems_that_cannot_be_solved_are_refused():
    problem = scara_problem(0)
    run = problem.runs[0]
    with pytest.raises(EstimateError, match=r"basis has shape \(3, 5, 79\)"):
        replace(run, basis=run.basis[:, :, 1:])
    with pytest.raises(EstimateError, match="y has values that are not finite"):
        replace(run, y=np.full_like(run.y, np.nan))
    with pytest.raises(EstimateError, match="above 0 for torques"):
        replace(run, torque_deviation=np.zeros(2))
    with pytest.raises(EstimateError, match="no recording"):
        replace(problem, runs=())
    with pytest.raises(EstimateError, match="3 joints"):
        replace(problem, equations=p4().equations)
    with pytest.raises(EstimateError, match="no parameter 'ZZ9' in the model"):
        likelihood_fit(replace(problem, columns=("ZZ9",)))
    short = LikelihoodRun(run.q[:, :4], run.y[:, :4], run.basis[:, :, :4], run.position_deviation, run.torque_deviation)
    with pytest.raises(
        EstimateError, match="the 5 coefficients of a joint's motion are not identifiable from 4 instants"
    ):
        likelihood_fit(replace(problem, runs=(short,)))
    still = replace(run, q=np.zeros_like(run.q), position_deviation=np.zeros(2))
    with pytest.raises(EstimateError, match="is indistinguishable from the parameters before it"):
        likelihood_fit(replace(problem, runs=(still,)))


def test_a_sign_width_of_one_s_own_replaces_the_model_s():
    problem = scara_problem(5, equations=scara_equations(0.0))
    smooth = likelihood_fit(replace(problem, sign_width=0.05), TIGHT)
    reference = likelihood_fit(scara_problem(5), TIGHT)
    np.testing.assert_allclose(smooth.values, reference.values, rtol=1e-10)
    assert np.abs(likelihood_fit(problem).values - reference.values).max() > 1e-4
