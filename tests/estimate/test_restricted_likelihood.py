"""The noise model: at the maximum of the restricted likelihood, unbiased however many parameters there are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg, optimize

from estimate.synthetic import autoregression, smooth_columns
from steelyard.errors import EstimateError
from steelyard.estimate.lag_products import HIGHEST_ORDER, LagProducts, group_products
from steelyard.estimate.noise import fit_noise, fit_noise_around, noise_model, predictor

EQUATION = ("motor", "joint_1")


def group_of(W, y, label="a", equation=EQUATION, index=None, order=HIGHEST_ORDER):
    sums = LagProducts(order, W.shape[1] + 1)
    sums.push(np.column_stack([W, y]))
    index = np.arange(W.shape[1]) if index is None else index
    return group_products((label, *equation), index, sums.products(), sums.count)


def minus_restricted_likelihood(parameters, W, y):
    """Of the rows from the fifth on, given those before: ``n log s^2 + log det A + rho^2 / s^2``, in plain words."""
    a, log_variance = parameters
    filtered = [x[HIGHEST_ORDER:] - a * x[HIGHEST_ORDER - 1 : -1] for x in (W, y)]
    values = np.linalg.lstsq(filtered[0], filtered[1], rcond=None)[0]
    rho = filtered[1] - filtered[0] @ values
    gram = filtered[0].T @ filtered[0] / np.exp(log_variance)
    return len(rho) * log_variance + np.linalg.slogdet(gram)[1] + rho @ rho / np.exp(log_variance)


def minus_stationary_likelihood(parameters, W, y):
    """Of all rows, the first ones from the stationary distribution."""
    a, log_variance = parameters
    if abs(a) >= 1:
        return np.inf
    covariance = np.exp(log_variance) / (1 - a**2) * linalg.toeplitz(a ** np.arange(len(y)))
    root = np.linalg.cholesky(covariance)
    X, z = (linalg.solve_triangular(root, x, lower=True) for x in (W, y))
    rho = z - X @ np.linalg.lstsq(X, z, rcond=None)[0]
    return 2 * np.log(np.diag(root)).sum() + np.linalg.slogdet(X.T @ X)[1] + rho @ rho


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(1)
    W = smooth_columns(rng, 150, 20)
    return W, W @ rng.standard_normal(20) + autoregression(rng, 150, [0.7], 0.5)


def test_it_lies_at_the_maximum_of_the_restricted_likelihood(problem):
    W, y = problem
    fit = fit_noise([group_of(W, y)], 20)
    assert fit.orders == {EQUATION: 1}
    found = [-fit.filters[EQUATION][1], np.log(fit.variances["a", *EQUATION])]
    best = optimize.minimize(
        minus_restricted_likelihood, [0.3, 0.0], args=(W, y), method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-12},
    ).x  # fmt: skip
    np.testing.assert_allclose(found, best, atol=3e-5)


def test_the_first_rows_that_it_leaves_out_hardly_matter(problem):
    W, y = problem
    fit = fit_noise([group_of(W, y)], 20)
    best = optimize.minimize(minus_stationary_likelihood, [0.3, 0.0], args=(W, y), method="Nelder-Mead").x
    np.testing.assert_allclose(-fit.filters[EQUATION][1], best[0], atol=0.06)
    np.testing.assert_allclose(fit.variances["a", *EQUATION], np.exp(best[1]), rtol=0.1)


def test_its_parameters_are_generalised_least_squares_given_the_noise(problem):
    W, y = problem
    fit = fit_noise([group_of(W, y)], 20)
    a = -fit.filters[EQUATION][1]
    X, z = (x[HIGHEST_ORDER:] - a * x[HIGHEST_ORDER - 1 : -1] for x in (W, y))
    np.testing.assert_allclose(fit.mean, np.linalg.lstsq(X, z, rcond=None)[0], rtol=1e-7)
    variance = fit.variances["a", *EQUATION]
    np.testing.assert_allclose(fit.covariance, variance * np.linalg.inv(X.T @ X), rtol=1e-7)


@pytest.mark.large
def test_many_parameters_do_not_make_the_noise_look_small():
    """28 parameters from 76 rows, 100 runs: the mean is the truth; plain maximum likelihood would be 40 % low."""
    rng = np.random.default_rng(2)
    W = smooth_columns(rng, 76, 28)
    runs = [fit_noise([group_of(W, rng.standard_normal(76))], 28) for _ in range(100)]
    white = [fit.variances["a", *EQUATION] for fit in runs if fit.orders[EQUATION] == 0]
    assert len(white) > 60
    assert abs(np.mean(white) - 1) < 4 * np.sqrt(2 / 44 / len(white))


@pytest.mark.large
def test_correlation_is_not_eaten_up_by_the_parameters():
    """30 slow columns in 120 rows explain much of slow noise; 0.6 is found about right, on the mean of 60 runs."""
    rng = np.random.default_rng(3)
    W = smooth_columns(rng, 120, 30, pole=0.9)
    found, raw = [], []
    for _ in range(60):
        y = autoregression(rng, 120, [0.6])
        fit = fit_noise([group_of(W, y)], 30)
        found.append(noise_model(fit, np.ones(1)).lag_one(EQUATION))
        rho = y - W @ np.linalg.lstsq(W, y, rcond=None)[0]
        raw.append(rho[1:] @ rho[:-1] / (rho @ rho))
    assert abs(np.mean(found) - 0.6) < 0.08
    assert np.mean(raw) < 0.45


def test_every_recording_has_its_own_size_and_every_equation_its_own_correlation():
    rng = np.random.default_rng(4)
    sizes, poles = {"a": 0.5, "b": 2.0}, {"joint_1": [0.8], "joint_2": []}
    groups = []
    for label, size in sizes.items():
        for joint, coefficients in poles.items():
            W = rng.standard_normal((1500, 2))
            y = W @ [1.0, 2.0] + autoregression(rng, 1500, coefficients, size)
            groups.append(group_of(W, y, label, ("motor", joint)))
    model = noise_model(fit_noise(groups, 2), np.ones(1))
    assert {equation[1]: len(found) for equation, found in model.coefficients.items()} == {"joint_1": 1, "joint_2": 0}
    assert abs(model.lag_one(("motor", "joint_1")) - 0.8) < 0.05
    for label, size in sizes.items():
        np.testing.assert_allclose(model.innovations[label, "motor", "joint_1"], size, rtol=0.08)
        np.testing.assert_allclose(model.deviations[label, "motor", "joint_1"], size / 0.6, rtol=0.15)
        np.testing.assert_allclose(model.deviations[label, "motor", "joint_2"], size, rtol=0.08)


@pytest.mark.parametrize(("coefficients", "order"), [([], 0), ([0.6], 1), ([1.2, -0.6], 2), ([0.3, 0.0, 0.5], 3)])
def test_the_order_is_that_of_the_noise(coefficients, order):
    rng = np.random.default_rng(5)
    W = rng.standard_normal((2000, 3))
    fit = fit_noise([group_of(W, autoregression(rng, 2000, coefficients))], 3)
    assert fit.orders[EQUATION] == order


def test_few_rows_try_low_orders_only():
    rng = np.random.default_rng(6)
    W = rng.standard_normal((24, 2))
    y = autoregression(rng, 24, [0.0, 0.0, 0.0, 0.95])
    assert fit_noise([group_of(W, y)], 2).orders[EQUATION] <= 1


def test_a_drift_is_held_at_the_bound_of_what_is_stationary():
    rng = np.random.default_rng(7)
    W = rng.standard_normal((300, 2))
    model = noise_model(fit_noise([group_of(W, np.cumsum(rng.standard_normal(300)))], 2), np.ones(1))
    assert 0.9 < model.lag_one(EQUATION) < 1
    assert np.isfinite(model.deviations["a", *EQUATION])


def test_runs_too_short_to_estimate_the_noise_are_refused():
    W = np.ones((4, 1))
    with pytest.raises(
        EstimateError, match="0 rows with enough rows before them to estimate the noise, for 1 parameters"
    ):
        fit_noise([group_of(W, W[:, 0])], 1)


def test_unknowns_without_rows_are_refused():
    rng = np.random.default_rng(8)
    with pytest.raises(EstimateError, match="singular: these recordings do not excite all parameters"):
        fit_noise([group_of(rng.standard_normal((50, 2)), rng.standard_normal(50))], 3)


def test_around_an_estimate_that_stays_the_noise_is_that_of_its_residuals():
    """With many rows it is the solution of the Yule-Walker equations of the residuals."""
    rng = np.random.default_rng(9)
    W = rng.standard_normal((4000, 2))
    y = W @ [1.0, 2.0] + autoregression(rng, 4000, [0.9, -0.3], 0.5)
    values = np.array([1.1, 1.9])
    fit = fit_noise_around([group_of(W, y)], values, np.zeros((2, 2)))
    rho = y - W @ values
    lags = np.array([rho[k:] @ rho[: len(rho) - k] for k in range(3)]) / len(rho)
    expected = linalg.solve_toeplitz(lags[:2], lags[1:])
    size = np.sqrt(lags[0] - expected @ lags[1:])
    assert fit.orders[EQUATION] == 2
    np.testing.assert_allclose(-fit.filters[EQUATION][1:3], expected, atol=2e-3)
    np.testing.assert_allclose(np.sqrt(fit.variances["a", *EQUATION]), size, rtol=2e-3)
    np.testing.assert_array_equal(fit.mean, values)


def test_orders_are_tried_up_to_the_largest_lag_at_hand():
    rng = np.random.default_rng(11)
    W = rng.standard_normal((5000, 2))
    y = W @ [1.0, 2.0] + autoregression(rng, 5000, [0.0, 0.0, 0.0, 0.0, 0.0, 0.6], 0.5)
    few, many = (
        fit_noise_around([group_of(W, y, order=order)], np.array([1.0, 2.0]), np.zeros((2, 2))) for order in (4, 8)
    )
    assert few.orders[EQUATION] <= 4 < many.orders[EQUATION] == 6
    np.testing.assert_allclose(-many.filters[EQUATION][1:], [0, 0, 0, 0, 0, 0.6, 0, 0], atol=0.04)


def test_an_uncertain_estimate_makes_the_noise_around_it_no_smaller():
    rng = np.random.default_rng(10)
    W = smooth_columns(rng, 300, 5)
    group = group_of(W, rng.standard_normal(300))
    sure, unsure = (fit_noise_around([group], np.zeros(5), size * np.eye(5)) for size in (0.0, 0.01))
    assert unsure.variances["a", *EQUATION] > sure.variances["a", *EQUATION]


def test_residuals_that_are_nothing_at_all_have_no_correlation():
    np.testing.assert_array_equal(predictor(np.zeros((5, 5)), 4), np.zeros(4))
    W = smooth_columns(np.random.default_rng(0), 150, 5)
    fit = fit_noise_around([group_of(W, np.zeros(150))], np.zeros(5), np.zeros((5, 5)))
    assert fit.orders == {EQUATION: 0}


def test_a_row_is_predicted_best_by_the_rows_before_it():
    moments = linalg.toeplitz(0.7 ** np.arange(5))
    np.testing.assert_allclose(predictor(moments, 3), [0.7, 0, 0], atol=1e-12)
    assert len(predictor(moments, 0)) == 0
