"""Covariances: closed forms, an independent package, and above all coverage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import linalg, stats

from calibration.small_problems import LinearProblem, linear_problem, noise_like
from steelyard.calibration.fit.covariances import (
    COVARIANCES,
    Covariance,
    _corrected,
    _cost_of_sigmas,
    _freedom,
    covariance_of,
    intervals,
    overlap,
)
from steelyard.calibration.fit.fit import fitted
from steelyard.calibration.fit.settings import CalibrationSettings
from steelyard.calibration.fit.stages import weighted_fit
from steelyard.calibration.fit.weights import Sigmas, declared_sigmas, estimated_sigmas
from steelyard.errors import CalibrationError

COLUMNS = np.arange(4)
UNEQUAL = np.exp(np.random.default_rng(5).uniform(np.log(2e-5), np.log(2e-4), 270))


def problem_of(kind: str, repeats: int = 2, seed: int = 0) -> tuple[LinearProblem, np.ndarray]:
    return linear_problem(noise_like(kind, 1e-4, 15, 3, repeats, seed), 15, 3, repeats)


def known(problem: LinearProblem, sigma: np.ndarray) -> Sigmas:
    return declared_sigmas(problem.equations, sigma)


def test_equal_weights_and_unequal_noise_give_eq_8():
    problem, _ = problem_of("equal")
    B, S = problem.matrix, np.diag(UNEQUAL**2)
    M = np.linalg.inv(B.T @ B)
    found = covariance_of(fitted(problem, COLUMNS), problem.equations, known(problem, UNEQUAL), "groups")
    np.testing.assert_allclose(found.matrix, M @ B.T @ S @ B @ M, rtol=1e-9)


def test_any_weights_give_eq_11():
    problem, _ = problem_of("equal")
    weight = np.random.default_rng(1).uniform(0.2, 3, 270)
    B, S, W2 = problem.matrix, np.diag(UNEQUAL**2), np.diag(weight**2)
    M = np.linalg.inv(B.T @ W2 @ B)
    found = covariance_of(fitted(problem, COLUMNS, weight), problem.equations, known(problem, UNEQUAL), "groups")
    np.testing.assert_allclose(found.matrix, M @ B.T @ W2 @ S @ W2 @ B @ M, rtol=1e-9)


def test_one_over_sigma_gives_eq_13():
    problem, _ = problem_of("equal")
    fit = fitted(problem, COLUMNS, 1 / UNEQUAL)
    expected = np.linalg.inv(problem.matrix.T @ np.diag(UNEQUAL**-2.0) @ problem.matrix)
    for kind in ("model", "groups", "shared"):
        found = covariance_of(fit, problem.equations, known(problem, UNEQUAL), kind)
        np.testing.assert_allclose(found.matrix, expected, rtol=1e-9)


def test_a_shared_error_gives_the_sandwich_of_the_full_noise_matrix():
    problem, _ = problem_of("equal")
    equations, r = problem.equations, 0.6
    same = (equations.pose[:, None] == equations.pose) & (equations.coordinate[:, None] == equations.coordinate)
    S = np.outer(UNEQUAL, UNEQUAL) * (r * same + (1 - r) * np.eye(270))
    declared = known(problem, UNEQUAL)
    sigmas = Sigmas(declared.sigma, declared.group, declared.groups, r)
    M = np.linalg.inv(problem.matrix.T @ problem.matrix)
    found = covariance_of(fitted(problem, COLUMNS), equations, sigmas, "shared")
    np.testing.assert_allclose(found.matrix, M @ problem.matrix.T @ S @ problem.matrix @ M, rtol=1e-9)


def test_classical_is_that_of_statsmodels():
    problem, _ = problem_of("equal")
    weight = np.random.default_rng(1).uniform(0.2, 3, 270)
    fit = fitted(problem, COLUMNS, weight)
    found = covariance_of(fit, problem.equations, estimated_sigmas(fit, problem.equations), "classical")
    other = sm.WLS(problem.equations.measured, problem.matrix, weights=weight**2).fit()  # pyright: ignore[reportArgumentType]
    np.testing.assert_allclose(found.matrix, other.cov_params(), rtol=1e-9)
    np.testing.assert_allclose(intervals(fit.values, found), other.conf_int(), rtol=1e-9)


def test_cluster_is_that_of_statsmodels_where_the_fit_takes_little():
    problem, _ = linear_problem(noise_like("shared", 1e-4, 400, 2, 1, 0), 400, 2, 1)
    fit = fitted(problem, COLUMNS)
    found = covariance_of(fit, problem.equations, estimated_sigmas(fit, problem.equations), "cluster")
    other = sm.OLS(problem.equations.measured, problem.matrix).fit(
        cov_type="cluster", cov_kwds={"groups": problem.equations.pose}
    )
    np.testing.assert_allclose(found.sigma, other.bse, rtol=0.01)
    assert found.freedom.min() > 100


def test_cluster_is_unbiased_where_the_fit_takes_much():
    """With equal noise the expectation of Bell and McCaffrey's matrix is the classical one, exactly."""
    ratios = []
    for seed in range(200):
        problem, _ = linear_problem(noise_like("equal", 1e-4, 6, 2, 1, seed), 6, 2, 1)
        fit = fitted(problem, COLUMNS)
        found = covariance_of(fit, problem.equations, known(problem, np.full(36, 1e-4)), "cluster")
        ratios.append(np.diag(found.matrix) / (1e-8 * np.diag(fit.inverse)))
    np.testing.assert_allclose(np.mean(ratios, axis=0), 1.0, atol=0.2)
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.1)


def test_cluster_has_bell_and_mccaffrey_s_matrix_and_degrees_of_freedom():
    """``(tr M)^2 / tr M^2``, ``M = G^T G``; column g of G: ``(I - H)_g^T A_g B_g (B^T B)^-1``, ``A_g^-2 = (I - H)_gg``.

    A prior adds its part to the matrix.
    """
    problem, _ = linear_problem(noise_like("equal", 1e-4, 6, 2, 1, 0), 6, 2, 1)
    fit = fitted(problem, COLUMNS)
    found = covariance_of(fit, problem.equations, known(problem, np.full(36, 1e-4)), "cluster")
    B, pose = problem.matrix, problem.equations.pose
    inverse = np.linalg.inv(B.T @ B)
    left = np.eye(36) - B @ inverse @ B.T
    G, scores = np.zeros((4, 36, 6)), np.zeros((6, 4))
    for g in range(6):
        own = pose == g
        A = np.linalg.inv(np.real(np.asarray(linalg.sqrtm(left[np.ix_(own, own)]))))
        G[:, :, g] = (left[:, own] @ A @ B[own] @ inverse).T
        scores[g] = B[own].T @ A @ fit.residual[own]
    M = np.einsum("jeg,jeh->jgh", G, G)
    np.testing.assert_allclose(found.matrix, inverse @ scores.T @ scores @ inverse, rtol=1e-8)
    expected = np.einsum("jgg->j", M) ** 2 / np.einsum("jgh,jgh->j", M, M)
    assert expected.max() < 5
    np.testing.assert_allclose(found.freedom, expected, rtol=1e-8)
    sure = fitted(problem, COLUMNS, prior=np.array([1e-4, np.inf, np.inf, np.inf]))
    held = covariance_of(sure, problem.equations, known(problem, np.full(36, 1e-4)), "cluster")
    alone = covariance_of(
        replace(sure, precision=np.zeros(4)), problem.equations, known(problem, UNEQUAL[:36]), "cluster"
    )
    np.testing.assert_allclose(held.matrix - alone.matrix, 1e8 * np.outer(sure.inverse[0], sure.inverse[0]), rtol=1e-6)


def test_what_a_fit_takes_whole_counts_for_nothing():
    """The correction is the root of the pseudo-inverse of ``I - H``, where a configuration alone decides an unknown."""
    rows = np.random.default_rng(0).normal(size=(12, 4))
    rows[:, 3] = 0.0
    rows[1, 3] = 1.0
    inverse = np.linalg.inv(rows.T @ rows)
    for block in rows.reshape(4, 3, 4):
        left = np.eye(3) - block @ inverse @ block.T
        corrected = _corrected(block[None], inverse)[0]
        np.testing.assert_allclose(corrected @ corrected, np.linalg.pinv(left, hermitian=True, rcond=1e-9), atol=1e-9)


def coverage(kind: str, method: str, covariance: str, repeats: int, seeds: int = 200) -> float:
    held = []
    settings = CalibrationSettings(method=method)  # pyright: ignore[reportArgumentType]
    for seed in range(seeds):
        problem, truth = problem_of(kind, repeats, seed)
        found = weighted_fit(problem, COLUMNS, settings)
        matrix = covariance_of(found.fit, problem.equations, found.sigmas, covariance)  # pyright: ignore[reportArgumentType]
        low, high = intervals(found.fit.values, matrix).T
        held.append((low <= truth) & (truth <= high))
    return float(np.mean(held))


@pytest.mark.parametrize("method", ["ols", "wls"])
@pytest.mark.parametrize("kind", ["equal", "unequal", "shared"])
@pytest.mark.large
def test_the_default_holds_the_truth_93_to_97_times_in_a_hundred(kind, method):
    assert 0.93 <= coverage(kind, method, "shared", repeats=2) <= 0.97


@pytest.mark.large
def test_the_default_holds_the_truth_with_sigmas_by_configuration():
    assert 0.93 <= coverage("unequal", "wls", "shared", repeats=6, seeds=150) <= 0.97


@pytest.mark.large
def test_the_cluster_covariance_holds_the_truth_too():
    assert 0.93 <= coverage("shared", "ols", "cluster", repeats=2) <= 0.97


def test_independent_equations_claim_too_much_where_repeats_share_an_error():
    assert coverage("shared", "ols", "groups", repeats=6, seeds=60) < 0.6


def test_intervals_overlap_if_they_have_a_point_in_common():
    first = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    second = np.array([[0.5, 2.0], [1.1, 2.0], [-1.0, 3.0], [1.0, 2.0]])
    np.testing.assert_array_equal(overlap(first, second), [True, False, True, True])
    np.testing.assert_array_equal(overlap(second, first), [True, False, True, True])


def test_weights_pay_as_much_as_theory_says():
    problem, _ = problem_of("equal")
    sigmas = known(problem, UNEQUAL)
    plain = covariance_of(fitted(problem, COLUMNS), problem.equations, sigmas, "groups")
    weighted = covariance_of(fitted(problem, COLUMNS, 1 / UNEQUAL), problem.equations, sigmas, "groups")
    assert (plain.sigma / weighted.sigma > 1.3).all()


def test_intervals_are_those_of_the_t_distribution():
    matrix = Covariance("classical", np.diag([4.0, 9.0]), np.array([5.0, np.inf]))
    found = intervals(np.array([1.0, 2.0]), matrix, 0.9)
    np.testing.assert_allclose(found[0], 1 + 2 * np.array([-1, 1]) * stats.t.ppf(0.95, 5))
    np.testing.assert_allclose(found[1], 2 + 3 * np.array([-1, 1]) * stats.norm.ppf(0.95))
    with pytest.raises(CalibrationError, match="level of an interval: got 95"):
        intervals(np.zeros(2), matrix, 95)


def test_what_cannot_be_found_is_refused():
    problem, _ = problem_of("equal")
    sigmas = known(problem, UNEQUAL)
    two = problem.taken(problem.equations.pose < 2)
    with pytest.raises(CalibrationError, match="got 2 configurations, needed are 3 and more"):
        covariance_of(fitted(two, COLUMNS), two.equations, sigmas, "cluster")
    four = problem.taken(np.array([0, 20, 40, 60]))
    with pytest.raises(CalibrationError, match="leave no degree of freedom beside 4 unknowns"):
        covariance_of(fitted(four, COLUMNS), four.equations, known(four, UNEQUAL[:4]), "classical")
    assert set(COVARIANCES) == {"shared", "groups", "model", "classical", "cluster"}


def test_estimated_weights_cost_what_kenward_and_roger_say():
    """With Phi the inverse information and I_g a group's part of it: ``2 Phi sum 2 / n (I_g - I_g Phi I_g) Phi``."""
    problem, _ = problem_of("equal")
    fit = fitted(problem, COLUMNS, 1 / UNEQUAL)
    sigmas = estimated_sigmas(fit, problem.equations)
    B, phi = problem.matrix / UNEQUAL[:, None], fit.inverse
    excess = np.zeros_like(phi)
    for group, worth in enumerate(sigmas.worth):
        own = B[sigmas.group == group]
        information = own.T @ own
        excess += 2 / worth * (information - information @ phi @ information)
    expected = np.sqrt(1 + 2 * np.diag(phi @ excess @ phi) / np.diag(phi))
    assert expected.min() > 1.005
    np.testing.assert_allclose(_cost_of_sigmas(fit, problem.equations, sigmas), expected, rtol=1e-9)
    equal = fitted(problem, COLUMNS)
    assert (_cost_of_sigmas(equal, problem.equations, estimated_sigmas(equal, problem.equations)) == 1).all()


def test_one_weight_for_positions_and_one_for_rotations_cost_nothing():
    problem, _ = problem_of("equal")
    turned = problem.equations.marker == 0  # as if these points were rotations
    equations = replace(problem.equations, coordinate=problem.equations.coordinate + 3 * turned)
    fit = fitted(problem, COLUMNS, np.where(turned, 5.0, 1.0))
    sigmas = estimated_sigmas(fit, equations)
    assert (_cost_of_sigmas(fit, equations, sigmas) == 1).all()
    assert (_cost_of_sigmas(fit, problem.equations, sigmas) > 1).all()


def test_degrees_of_freedom_are_satterthwaite_s_for_any_weights():
    """Of ``V = sum V_g``, V_g a group's part ``sum (row of the estimator)^2 sigma^2``: ``V^2 / sum V_g^2 / n_g``."""
    problem, _ = problem_of("equal")
    weight = np.random.default_rng(1).uniform(0.2, 3, 270)
    fit = fitted(problem, COLUMNS, weight)
    sigmas = estimated_sigmas(fit, problem.equations)
    B, W2 = problem.matrix, np.diag(weight**2)
    variances = (np.linalg.solve(B.T @ W2 @ B, B.T @ W2) * sigmas.sigma) ** 2
    parts = np.array([variances[:, sigmas.group == group].sum(axis=1) for group in range(len(sigmas.worth))])
    expected = parts.sum(axis=0) ** 2 / (parts**2 / sigmas.worth[:, None]).sum(axis=0)
    np.testing.assert_allclose(_freedom(fit, sigmas), expected, rtol=1e-9)
