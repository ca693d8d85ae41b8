"""Generalised least squares: statsmodels given the noise model, t intervals that cover what they say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg, stats

from estimate.synthetic import SyntheticRows, autoregression, names_of, resolved_for, smooth_columns, sources_of
from steelyard.estimate import generalised, weighted
from steelyard.estimate.gls import corrected_covariance
from steelyard.estimate.lag_products import lag_products
from steelyard.estimate.noise import fit_noise
from steelyard.identification import fit_arm
from steelyard.model import base_parameters, build_model
from steelyard.observe import decimator_correlation, reduce_rows
from steelyard.robot import load_robot
from steelyard.signals.whitening import autoregressive_correlation
from steelyard.simulation import Experiment, recording_of, simulate
from steelyard.study import default_motion

sm = pytest.importorskip("statsmodels.api")


def fitted(*sources):
    given = sources_of(*sources)
    names = sources[0].equations.names
    return generalised(given, weighted(reduce_rows(given), names))


def one_equation(seed, coefficients, rows=200, columns=6, label="a", size=1.0, **choices):
    rng = np.random.default_rng(seed)
    W = smooth_columns(rng, rows, columns) * np.logspace(-2, 2, columns)
    y = W @ np.arange(1.0, columns + 1) + autoregression(rng, rows, coefficients, size)
    return W, y, SyntheticRows(label, [np.column_stack([W, y])], [names_of(columns)], **choices)


def noise_covariance(noise, rows, group=("a", "motor", "joint_1")):
    lags = autoregressive_correlation(noise.coefficients[group[1:]], rows - 1)
    return noise.deviations[group] ** 2 * linalg.toeplitz(lags)


@pytest.mark.parametrize("coefficients", [[], [0.7], [1.1, -0.4]], ids=str)
@pytest.mark.parametrize("cuts", [(), (3, 50, 51)])
def test_given_the_noise_it_is_that_of_statsmodels(coefficients, cuts):
    W, y, source = one_equation(0, coefficients, cuts=cuts)
    fit = fitted(source)
    assert len(fit.noise.coefficients["motor", "joint_1"]) == len(coefficients)
    theirs = sm.GLS(y, W, sigma=noise_covariance(fit.noise, len(y))).fit(cov_type="fixed scale")
    np.testing.assert_allclose(fit.estimate.values, theirs.params, rtol=1e-8)
    np.testing.assert_allclose(fit.estimate.system.inverse, theirs.normalized_cov_params, rtol=1e-8)
    assert (fit.estimate.sigma >= theirs.bse * (1 - 1e-8)).all()
    assert (fit.estimate.sigma <= 1.1 * theirs.bse).all()


def test_the_covariance_is_widened_by_what_estimating_the_noise_costs():
    _, _, source = one_equation(3, [0.7], rows=60)
    given = sources_of(source)
    plain = weighted(reduce_rows(given), source.equations.names)
    estimate = generalised(given, plain).estimate
    correlation = decimator_correlation(given[0])
    products = lag_products(given, plain.columns, correlation, plain.system.scale)
    noise = fit_noise(products, len(plain.columns))
    widened = corrected_covariance(noise)[0]
    np.testing.assert_allclose(widened, widened.T, rtol=1e-9)
    gain = np.diag(widened) / np.diag(noise.covariance)
    assert gain.max() > 1.02
    np.testing.assert_allclose(np.diag(estimate.covariance) / np.diag(estimate.system.inverse), gain, rtol=1e-9)
    np.testing.assert_allclose(
        estimate.covariance / np.outer(estimate.sigma, estimate.sigma),
        estimate.system.inverse / np.sqrt(np.outer(*[np.diag(estimate.system.inverse)] * 2)),
        atol=1e-9,
    )


@pytest.mark.parametrize("coefficients", [[0.7], [1.1, -0.4]], ids=str)
def test_the_correction_is_the_formula_written_out_with_whole_matrices(coefficients):
    """Two recordings, noise of 5 and 0.2: ``Phi + 2 Phi (sum_ij C_ij (Q_ij - P_i Phi P_j)) Phi`` and Satterthwaite."""
    parts = [
        one_equation(k, coefficients, 90, 3, label, size) for k, (label, size) in enumerate((("a", 5), ("b", 0.2)))
    ]
    given = sources_of(*(part[2] for part in parts))
    scale = weighted(reduce_rows(given), names_of(3)).system.scale
    fit = fit_noise(lag_products(given, names_of(3), np.eye(1, 5)[0], scale), 3)
    found, freedom = corrected_covariance(fit)
    equation, order = ("motor", "joint_1"), len(coefficients)
    assert fit.orders[equation] == order
    variances = [fit.variances[label, *equation] for label in "ab"]
    lagged = [
        np.stack([(W / scale)[4 - k : 90 - k] for k in range(order + 1)]) for W, _, _ in parts
    ]  # (order + 1, r, c)
    lagged_y = [np.stack([y[4 - k : 90 - k] for k in range(order + 1)]) for _, y, _ in parts]
    filter_ = fit.filters[equation][: order + 1]
    white = [np.tensordot(filter_, one, 1) for one in lagged]
    A = [U.T @ U / variance for U, variance in zip(white, variances, strict=True)]
    Phi = np.linalg.inv(sum(A))
    moment = sum(U.T @ (filter_ @ y) / s for U, y, s in zip(white, lagged_y, variances, strict=True))
    residuals = [y - one @ (Phi @ moment) for y, one in zip(lagged_y, lagged, strict=True)]
    P, Q, on_coefficients = np.zeros((order, 3, 3)), np.zeros((order, order, 3, 3)), np.zeros((order, order))
    for one, U, r, s in zip(lagged, white, residuals, variances, strict=True):
        for i in range(order):
            P[i] += (one[i + 1].T @ U + U.T @ one[i + 1]) / s
            for j in range(order):
                product = one[i + 1].T @ one[j + 1]
                Q[i, j] += 4 * product / s
                on_coefficients[i, j] += (r[i + 1] @ r[j + 1] + np.trace(Phi @ product)) / s
    C = np.linalg.inv(on_coefficients)
    own = [86 - np.trace(Phi @ part) for part in A]
    excess = sum(2 / nu * (part - part @ Phi @ part) for nu, part in zip(own, A, strict=True))
    excess = excess + sum(C[i, j] * (Q[i, j] - P[i] @ Phi @ P[j]) for i in range(order) for j in range(order))
    gain = 1 + np.diag(2 * Phi @ excess @ Phi) / np.diag(Phi)
    assert (gain > 1).all()
    np.testing.assert_allclose(found, Phi * np.sqrt(np.outer(gain, gain)), rtol=1e-6)
    logs = [np.diag(Phi @ part @ Phi) / np.diag(Phi) for part in (*A, *P)]
    spread = sum(2 / nu * log**2 for nu, log in zip(own, logs[:2], strict=True))
    spread = spread + np.einsum("ik,ij,jk->k", logs[2:], C, logs[2:])
    np.testing.assert_allclose(freedom, 2 / spread, rtol=1e-6)


def test_a_break_in_the_rows_is_a_break_in_the_noise():
    W, y, source = one_equation(1, [0.8], gaps=(70, 71))
    fit = fitted(source)
    selected = np.r_[0:70, 72:200]
    parts = [noise_covariance(fit.noise, length) for length in (70, 128)]
    theirs = sm.GLS(y[selected], W[selected], sigma=linalg.block_diag(*parts)).fit()
    np.testing.assert_allclose(fit.estimate.values, theirs.params, rtol=1e-8)
    np.testing.assert_allclose(fit.estimate.system.inverse, theirs.normalized_cov_params, rtol=1e-8)


def test_two_recordings_and_two_joints_stack_with_their_own_noise():
    rng = np.random.default_rng(2)
    names, sources, W_all, y_all = (("p0", "p1"), ("p1", "p2")), [], [], []
    for label, size in (("a", 0.5), ("b", 2.0)):
        rows = []
        for e, coefficients in enumerate(([0.7], [])):
            W = smooth_columns(rng, 150, 2)
            y = W @ [1.0, 2.0] + autoregression(rng, 150, coefficients, size)
            rows.append(np.column_stack([W, y]))
            W_all.append(np.insert(W, 2 if e == 0 else 0, 0.0, axis=1))
            y_all.append(y)
        sources.append(SyntheticRows(label, rows, names))
    fit = fitted(*sources)
    groups = [(label, "motor", joint) for label in "ab" for joint in ("joint_1", "joint_2")]
    sigma = linalg.block_diag(*(noise_covariance(fit.noise, 150, group) for group in groups))
    theirs = sm.GLS(np.concatenate(y_all), np.vstack(W_all), sigma=sigma).fit()
    np.testing.assert_allclose(fit.estimate.values, theirs.params, rtol=1e-8)
    np.testing.assert_allclose(fit.estimate.system.inverse, theirs.normalized_cov_params, rtol=1e-8)


def test_with_white_noise_of_one_size_the_intervals_are_those_of_a_textbook():
    """One noise group, order 0: no correction, ``r - c`` degrees of freedom (r without the first rows of the run)."""
    W, y, source = one_equation(3, [])
    given = sources_of(source)
    plain = weighted(reduce_rows(given), names_of(6))
    fit = fit_noise(lag_products(given, plain.columns, np.eye(1, 5)[0], plain.system.scale), 6)
    covariance, freedom = corrected_covariance(fit)
    theirs = sm.OLS(y[4:], W[4:]).fit()
    scale = plain.system.scale
    np.testing.assert_allclose(freedom, 196 - 6, rtol=1e-6)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)) / scale, theirs.bse, rtol=1e-5)


@pytest.mark.parametrize(("rows", "freedom"), [(8, 3), (10, 3), (11, 4), (12, 5)])
def test_a_few_rows_give_three_degrees_of_freedom_at_least(rows, freedom):
    """Three parameters, the first four rows left out."""
    *_, source = one_equation(3, [], rows=rows, columns=3)
    given = sources_of(source)
    scale = weighted(reduce_rows(given), names_of(3)).system.scale
    fit = fit_noise(lag_products(given, names_of(3), np.eye(1, 5)[0], scale), 3)
    assert set(fit.orders.values()) == {0}
    covariance, found = corrected_covariance(fit)
    np.testing.assert_allclose(found, freedom, rtol=1e-6)
    np.testing.assert_allclose(covariance, fit.covariance, rtol=1e-9)


def test_two_sizes_of_noise_give_satterthwaite_s_degrees_of_freedom():
    """A mean observed in two recordings: with shares w of the information, ``1 / nu = sum w_i^2 / nu_i``."""
    rng = np.random.default_rng(4)
    sources = [
        SyntheticRows(label, [np.column_stack([np.ones(count), size * rng.standard_normal(count)])], [("p",)])
        for label, count, size in (("a", 25, 1.0), ("b", 40, 1.2))
    ]
    given = sources_of(*sources)
    fit = fit_noise(lag_products(given, ("p",), np.eye(1, 5)[0], np.ones(1)), 1)
    assert set(fit.orders.values()) == {0}
    information = np.array([group.count / fit.variances[group.group] for group in fit.groups])
    shares = information / information.sum()
    own = np.array([21, 36]) - shares
    _, freedom = corrected_covariance(fit)
    np.testing.assert_allclose(freedom, 1 / np.sum(shares**2 / own), rtol=1e-9)


def test_the_correlation_is_that_of_the_source_s_decimator():
    source = one_equation(5, [], factor=10)[2]
    found = decimator_correlation(sources_of(source)[0])
    np.testing.assert_array_equal(found, resolved_for(10).decimation_filter.noise_correlation(len(found) - 1))


@pytest.mark.parametrize(
    "coefficients", [pytest.param([], marks=pytest.mark.large), [0.7]], ids=["white", "correlated"]
)
def test_95_per_cent_intervals_cover_the_truth_about_as_often(coefficients):
    """Two joints, 12 parameters, 100 rows each, 120 runs: the mean lies within what chance allows."""
    rng = np.random.default_rng(6)
    columns = (names_of(8), tuple(f"p{k}" for k in range(4, 12)))
    W = [smooth_columns(rng, 100, 8, pole=0.8) for _ in columns]
    hits, plain_hits = [], []
    for _ in range(120):
        noise = [autoregression(rng, 100, coefficients, size) for size in (1.0, 3.0)]
        given = sources_of(SyntheticRows("a", [np.column_stack(pair) for pair in zip(W, noise, strict=True)], columns))
        plain = weighted(reduce_rows(given), names_of(12))
        estimate = generalised(given, plain).estimate
        hits.append(np.abs(estimate.values) <= estimate.half_width())
        plain_hits.append(np.abs(plain.values) <= plain.half_width())
    # The parameters of a run are not independent: allowed is the spread of the runs' own means.
    means = np.mean(hits, axis=1)
    error = means.std(ddof=1) / np.sqrt(len(means))
    assert 0.95 - 3 * error - 0.01 < means.mean() < 0.95 + 3 * error + 0.01
    lowest = stats.binom.ppf(1e-5, 120, 0.93) / 120
    assert np.mean(hits, axis=0).min() > lowest
    if coefficients:
        assert np.mean(plain_hits) < 0.88


def test_whitened_factors_give_the_same_estimate_and_unit_noise():
    *_, source = one_equation(7, [0.7], rows=800)
    fit = fitted(source)
    again = weighted(fit.whitened, names_of(6), dict(fit.noise.deviations))
    np.testing.assert_allclose(again.values, fit.estimate.values, rtol=1e-10)
    assert abs(fit.estimate.system.squares / fit.estimate.system.freedom - 1) < 0.05


@pytest.mark.parametrize("arm", ["scara_2r", pytest.param("ur10e", marks=pytest.mark.large)])
def test_torques_without_any_noise_are_fitted_exactly(arm):
    robot = load_robot(arm)
    experiment = Experiment(plant="ideal", control_rate=200, record_rate=200)
    run = simulate(robot, default_motion(robot, 2), experiment, seeds=[1])
    estimate = fit_arm(robot, recording_of(run)).fit.estimate
    truth = base_parameters(build_model(robot))
    known = np.array([robot.parameters.get(one.name, 0.0) for one in build_model(robot).parameters])
    expected = dict(zip([one.column for one in truth.base], truth.regrouping @ known, strict=True))
    size = max(abs(value) for value in expected.values())
    assert np.isfinite(estimate.sigma).all()
    assert estimate.values == pytest.approx([expected[name] for name in estimate.columns], abs=1e-3 * size)
