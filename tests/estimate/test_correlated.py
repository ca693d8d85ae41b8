"""Weighted estimates with sigmas that know the noise is correlated: the full sandwich, written out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import linalg, stats

from estimate.synthetic import (
    SyntheticRows,
    autoregression,
    factor_of,
    names_of,
    observations_of,
    resolved_for,
    smooth_columns,
    sources_of,
)
from steelyard.estimate import TRUSTED, generalised, misfit, noise_explains, weighted, with_correlated_noise
from steelyard.estimate.gls import BLOCK_FACTOR, block_scores, block_sigma
from steelyard.observe import reduce_rows
from steelyard.signals.whitening import noise_autocovariance


def problem(seed, coefficients, rows=300, **choices):
    rng = np.random.default_rng(seed)
    W = [smooth_columns(rng, rows, 2) for _ in range(2)]
    y = [
        part @ [1.0, 2.0] + autoregression(rng, rows, coefficients, size) for part, size in zip(W, (1, 3), strict=True)
    ]
    pairs = [np.column_stack(pair) for pair in zip(W, y, strict=True)]
    given = sources_of(SyntheticRows("a", pairs, (("p0", "p1"), ("p1", "p2")), **choices))
    return W, given, weighted(reduce_rows(given), names_of(3))


def sandwich(W, plain, noise):
    """Return ``A^-1 (W^T S W) A^-1`` of the rows of :func:`problem`, S as a whole matrix."""
    meat, place = np.zeros((3, 3)), ([0, 1], [1, 2])
    for e, joint in enumerate(("joint_1", "joint_2")):
        group = ("a", "motor", joint)
        lags = noise_autocovariance(noise.correlation, noise.coefficients[group[1:]], 299)
        X = W[e] / plain.deviations[group] ** 2 * noise.deviations[group]
        meat[np.ix_(place[e], place[e])] += X.T @ linalg.toeplitz(lags) @ X
    return plain.system.inverse @ meat @ plain.system.inverse


@pytest.mark.parametrize("factor", [1, 10])
@pytest.mark.parametrize("cuts", [(), (17, 18, 200)])
def test_the_covariance_is_the_sandwich_of_the_noise_model(factor, cuts):
    W, given, plain = problem(0, [0.7], factor=factor, cuts=cuts)
    fit = with_correlated_noise(given, plain)
    np.testing.assert_array_equal(fit.estimate.values, plain.values)
    assert fit.estimate.covariance_kind == "model"
    expected = sandwich(W, plain, fit.noise)
    size = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    np.testing.assert_allclose(fit.estimate.covariance / size, expected / size, atol=1e-2)


@pytest.mark.parametrize("coefficient", [0.9, -0.5])
def test_freedom_counts_the_independent_rows_that_correlated_ones_are_worth(coefficient):
    """n rows with noise of an autoregression a are worth ``n (1 - a) / (1 + a)``, never more than n."""
    _, given, plain = problem(1, [coefficient])
    fit = with_correlated_noise(given, plain)
    found = np.array([fit.noise.coefficients["motor", joint] for joint in ("joint_1", "joint_2")])
    assert found.shape == (2, 1)
    worth = np.minimum(300 * (1 - found) / (1 + found), 300).sum()
    np.testing.assert_allclose(fit.estimate.freedom, np.full(3, worth - 3), rtol=2e-3)  # correlations die out


def test_the_decimator_s_correlation_is_convolved_with_the_autoregression():
    correlation = resolved_for(10).decimation_filter.noise_correlation(160)
    lags = noise_autocovariance(correlation, np.array([0.9]), 5)
    spread = np.arange(-160, 161)
    expected = [np.sum(correlation[np.abs(spread)] * 0.9 ** np.abs(k - spread)) for k in range(6)]
    np.testing.assert_allclose(lags, expected, rtol=1e-10)


def test_slow_noise_widens_the_intervals():
    _, given, plain = problem(1, [0.9])
    assert (with_correlated_noise(given, plain).estimate.sigma > 1.3 * plain.sigma).all()


def test_its_intervals_cover_about_as_often_as_they_say():
    rng = np.random.default_rng(2)
    hits = []
    for seed in rng.integers(0, 2**31, 120):
        _, given, plain = problem(int(seed), [0.8])
        fit = with_correlated_noise(given, plain).estimate
        hits.append(np.abs(fit.values - [1.0, np.nan, 2.0]) <= fit.half_width())
    covered = np.mean(np.array(hits)[:, [0, 2]])
    assert 0.90 < covered < 0.985


def test_generalised_least_squares_fits_hardly_worse_where_the_noise_is_noise():
    rng = np.random.default_rng(3)
    W = smooth_columns(rng, 400, 3)
    y = W @ [1.0, 2.0, 3.0] + autoregression(rng, 400, [0.7])
    given = sources_of(SyntheticRows("a", [np.column_stack([W, y])], [names_of(3)]))
    plain = weighted(reduce_rows(given), names_of(3))
    assert 1 <= misfit(plain, generalised(given, plain).estimate) < TRUSTED
    assert misfit(plain, plain) == pytest.approx(1)


def test_errors_in_the_columns_can_make_the_noise_model_take_the_signal_for_noise():
    """A smooth torque is better predicted by its own past than by a noisy column; the misfit shows it."""
    rng = np.random.default_rng(4)
    true = smooth_columns(rng, 400, 1, pole=0.97)
    W = true + 3.0 * rng.standard_normal(true.shape)
    given = sources_of(SyntheticRows("a", [np.column_stack([W, true[:, 0]])], [("p0",)]))
    plain = weighted(reduce_rows(given), ("p0",))
    strayed = generalised(given, plain).estimate
    assert strayed.values[0] < 0.5 * plain.values[0]
    assert misfit(plain, strayed) > TRUSTED


def test_slow_noise_explains_why_both_estimates_differ_and_a_missing_effect_does_not():
    """An offset next to noise of a correlation time of 50 rows: the misfit alone would call it a wrong model."""
    explained, misfits = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        W = np.column_stack([np.ones(600), smooth_columns(rng, 600, 3, pole=0.95)])
        y = W @ [1.0, 2.0, 3.0, 4.0] + autoregression(rng, 600, [0.98])
        given = sources_of(SyntheticRows("a", [np.column_stack([W, y])], [names_of(4)]))
        plain = weighted(reduce_rows(given), names_of(4))
        gls = generalised(given, plain)
        misfits.append(misfit(plain, gls.estimate))
        explained.append(misfits[-1] <= TRUSTED or noise_explains(given, plain, gls))
    assert sum(value > TRUSTED for value in misfits) >= 2
    assert np.mean(explained) > 0.9
    rng = np.random.default_rng(4)
    true = smooth_columns(rng, 400, 1, pole=0.97)
    W = true + 3.0 * rng.standard_normal(true.shape)
    given = sources_of(SyntheticRows("a", [np.column_stack([W, true[:, 0]])], [("p0",)]))
    plain = weighted(reduce_rows(given), ("p0",))
    assert not noise_explains(given, plain, generalised(given, plain))


@pytest.mark.parametrize("parameter", range(3))
def test_noise_explains_differences_up_to_one_in_a_thousand(parameter):
    """``d^T A d`` against a chi-square of mean ``tr L`` and variance ``2 tr L^2``, ``L = A (C_w - C_g)``."""
    W, given, plain = problem(1, [0.9])
    gls = generalised(given, plain)
    X = np.zeros((2, 300, 3))
    X[0, :, :2], X[1, :, 1:] = (W[e] / plain.deviations["a", "motor", f"joint_{e + 1}"] for e in range(2))
    A = np.einsum("eri,erj->ij", X, X)
    L = A @ (sandwich(W, plain, gls.noise) - gls.estimate.covariance)
    assert (np.linalg.eigvals(L) > 0).all()
    mean, variance = np.trace(L), 2 * np.trace(L @ L)
    limit = variance / (2 * mean) * stats.chi2.isf(0.001, 2 * mean**2 / variance)
    for part, explained in ((0.97, True), (1.03, False)):
        d = np.eye(3)[parameter] * np.sqrt(part * limit / A[parameter, parameter])
        moved = replace(gls, estimate=replace(gls.estimate, values=plain.values + d))
        assert noise_explains(given, plain, moved) is explained


@pytest.mark.parametrize("drift", [0.0, 400.0])
def test_sigmas_stay_within_a_factor_of_those_of_blocks(drift):
    """A ramp in the residuals makes an autoregression persistent; blocks of time bound what it may do to sigmas."""
    rng = np.random.default_rng(7)
    W = np.column_stack([np.ones(400), smooth_columns(rng, 400, 2)])
    y = W @ [1.0, 2.0, 3.0] + rng.standard_normal(400) + drift * np.sin(np.linspace(0, 3, 400) ** 3)
    given = sources_of(SyntheticRows("a", [np.column_stack([W, y])], [names_of(3)]))
    observations = reduce_rows(given)
    plain = weighted(observations, names_of(3))
    scores = block_scores(plain, observations)
    blocks = np.sqrt(np.sum((plain.system.inverse @ scores.T) ** 2, axis=1) * len(scores) / (len(scores) - 1))
    free, held = (with_correlated_noise(given, plain, part).estimate.sigma for part in (None, observations))
    assert (held <= BLOCK_FACTOR * blocks * (1 + 1e-9)).all()
    assert (held >= blocks / BLOCK_FACTOR * (1 - 1e-9)).all()
    inside = (free < BLOCK_FACTOR * blocks) & (free > blocks / BLOCK_FACTOR)
    np.testing.assert_allclose(held[inside], free[inside], rtol=1e-12)
    if not drift:
        assert inside.all()


def test_fewer_than_ten_blocks_leave_the_covariance_as_the_noise_gives_it():
    _, given, plain = problem(1, [0.9])
    few = with_correlated_noise(given, plain, reduce_rows(given, blocks=5)).estimate
    np.testing.assert_array_equal(few.covariance, with_correlated_noise(given, plain).estimate.covariance)


def test_noise_explains_nothing_where_both_covariances_are_the_same():
    _, given, plain = problem(1, [0.9])
    gls = generalised(given, plain)
    wide = replace(gls.estimate, covariance=1e6 * gls.estimate.covariance)
    assert noise_explains(given, plain, replace(gls, estimate=wide)) is False


def test_three_degrees_of_freedom_are_left_where_rows_are_worth_fewer_than_parameters():
    rng = np.random.default_rng(1)
    W, y = rng.standard_normal((100, 20)), autoregression(rng, 100, [0.99])
    given = sources_of(SyntheticRows("a", [np.column_stack([W, y])], [names_of(20)]))
    fit = with_correlated_noise(given, weighted(reduce_rows(given), names_of(20)))
    lags = noise_autocovariance(np.ones(1), fit.noise.coefficients["motor", "joint_1"], 1000)
    assert 100 * lags[0] / (lags[0] + 2 * lags[1:].sum()) < 20
    np.testing.assert_array_equal(fit.estimate.freedom, 3.0)


def test_the_misfit_is_that_of_the_weighted_residuals():
    W, given, plain = problem(2, [0.5])
    moved = replace(plain, values=plain.values + np.array([0.1, -0.2, 0.3]))
    y = [np.concatenate([run.rows[:, -1] for run in given[0].runs([e])]) for e in range(2)]

    def squares(values):
        weights = [1 / plain.deviations["a", "motor", f"joint_{e + 1}"] for e in range(2)]
        return sum(w**2 * np.sum((y[e] - W[e] @ values[e : e + 2]) ** 2) for e, w in enumerate(weights))

    expected = np.sqrt(squares(moved.values) / squares(plain.values))
    assert misfit(plain, moved) == pytest.approx(expected, rel=1e-9)


def test_blocks_of_time_have_scores_and_sigmas_of_their_own_rows():
    """``X_b^T e_b`` of weighted rows; nine blocks are too few for sigmas, ten are enough."""
    rng = np.random.default_rng(8)
    groups, names = [("a", "motor", "joint_1"), ("a", "motor", "joint_2")], (("p0", "p1"), ("p1", "p2"))
    drawn = rng.standard_normal((10, 2, 8, 3))
    drawn[:, 1, :, 2] *= 5
    factors = [factor_of(drawn[b, e], names[e], groups[e], b) for b in range(10) for e in range(2)]
    observations = observations_of(*factors)
    plain = weighted(observations, names_of(3))
    expected = np.zeros((10, 3))
    for b in range(10):
        for e in range(2):
            rows = drawn[b, e] / plain.deviations[groups[e]]
            expected[b, e : e + 2] += rows[:, :2].T @ (rows[:, 2] - rows[:, :2] @ plain.values[e : e + 2])
    np.testing.assert_allclose(block_scores(plain, observations), expected, atol=1e-9)
    np.testing.assert_allclose(expected.sum(axis=0), 0, atol=1e-9)
    influence = expected @ plain.system.inverse
    found = block_sigma(plain, observations)
    assert found is not None
    np.testing.assert_allclose(found, np.sqrt(10) * influence.std(axis=0, ddof=1), rtol=1e-9)
    nine = observations_of(*factors[:18])
    assert block_sigma(weighted(nine, names_of(3)), nine) is None
