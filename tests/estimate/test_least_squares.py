"""Ordinary, weighted and iterated least squares and ridge, against statsmodels and closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from estimate.synthetic import factor_of, names_of, observations_of
from steelyard.errors import EstimateError
from steelyard.estimate import iterated, joint_deviations, ordinary, towards_prior, weighted

sm = pytest.importorskip("statsmodels.api")

GROUPS = (("a", "motor", "joint_1"), ("a", "motor", "joint_2"), ("b", "motor", "joint_1"), ("b", "motor", "joint_2"))
SIZES = (0.5, 3.0, 1.5, 0.2)
TRUE = np.array([2.0, -1.0, 0.5, 3.0])


@pytest.fixture(scope="module")
def parts():
    rng = np.random.default_rng(0)
    made = []
    for size in SIZES:
        W = rng.standard_normal((80, 4)) * [1.0, 10.0, 0.1, 1.0]
        made.append(np.column_stack([W, W @ TRUE + size * rng.standard_normal(80)]))
    return made


@pytest.fixture(scope="module")
def observations(parts):
    # Two blocks a noise group, as a recording has them.
    factors = [
        factor_of(half, names_of(4), group, block)
        for part, group in zip(parts, GROUPS, strict=True)
        for block, half in enumerate((part[:33], part[33:]))
    ]
    return observations_of(*factors)


def stacked(parts):
    rows = np.vstack(parts)
    return rows[:, :-1], rows[:, -1]


def test_ordinary_least_squares_is_that_of_statsmodels(parts, observations):
    W, y = stacked(parts)
    theirs = sm.OLS(y, W).fit()
    ours = ordinary(observations, names_of(4))
    np.testing.assert_allclose(ours.values, theirs.params, rtol=1e-8)
    np.testing.assert_allclose(ours.covariance, theirs.cov_params(), rtol=1e-8)
    np.testing.assert_allclose(ours.sigma, theirs.bse, rtol=1e-8)
    np.testing.assert_allclose(ours.values - ours.half_width(), theirs.conf_int()[:, 0], rtol=1e-8)
    np.testing.assert_allclose(ours.relative_sigma, 100 * theirs.bse / np.abs(theirs.params), rtol=1e-8)
    assert (ours.method, ours.covariance_kind, ours.after_selection) == ("ols", "classical", False)


def test_weighted_least_squares_with_given_deviations_is_that_of_statsmodels(parts, observations):
    W, y = stacked(parts)
    weights = np.repeat(np.array(SIZES) ** -2.0, 80)
    theirs = sm.WLS(y, W, weights=weights).fit(cov_type="fixed scale", cov_kwds={"scale": 1.0})
    ours = weighted(observations, names_of(4), dict(zip(GROUPS, SIZES, strict=True)))
    np.testing.assert_allclose(ours.values, theirs.params, rtol=1e-8)
    np.testing.assert_allclose(ours.covariance, theirs.cov_params(), rtol=1e-8)
    np.testing.assert_allclose(ours.sigma, theirs.bse, rtol=1e-8)


def test_weights_are_by_default_those_of_each_joint_alone_in_each_recording(parts, observations):
    theirs = [np.sqrt(sm.OLS(part[:, -1], part[:, :-1]).fit().scale) for part in parts]
    ours = weighted(observations, names_of(4))
    np.testing.assert_allclose([ours.deviations[group] for group in GROUPS], theirs, rtol=1e-10)
    W, y = stacked(parts)
    expected = sm.WLS(y, W, weights=np.repeat(np.array(theirs) ** -2, 80)).fit().params
    np.testing.assert_allclose(ours.values, expected, rtol=1e-8)


def test_iterated_weights_agree_with_their_own_residuals(parts, observations):
    """At the end ``sigma_e^2 = rho_e^2 / (r_e - tr H_e)``; the hat matrix is computed in full here."""
    ours = iterated(observations, names_of(4))
    W, y = stacked(parts)
    found = np.array([ours.deviations[group] for group in GROUPS])
    weight = np.repeat(1 / found, 80)
    basis = np.linalg.qr(W * weight[:, None])[0]
    leverage = np.sum(basis**2, axis=1)
    residual = y - W @ ours.values
    for k, group in enumerate(GROUPS):
        mine = slice(80 * k, 80 * (k + 1))
        expected = np.sqrt(np.sum(residual[mine] ** 2) / (80 - leverage[mine].sum()))
        np.testing.assert_allclose(ours.deviations[group], expected, rtol=1e-5)
    np.testing.assert_allclose(found, SIZES, rtol=0.25)


def test_weighting_beats_ordinary_least_squares(observations):
    assert (weighted(observations, names_of(4)).sigma < 0.5 * ordinary(observations, names_of(4)).sigma).all()


@pytest.mark.parametrize("method", [weighted, ordinary])
def test_ridge_is_its_closed_form(method, parts, observations):
    plain = method(observations, names_of(4))
    prior = {"p1": (-1.3, 0.05), "p3": (2.0, 0.4)}
    ours = towards_prior(plain, prior)
    information = np.linalg.inv(plain.covariance)
    added = np.diag([0, 0.05**-2, 0, 0.4**-2])
    covariance = np.linalg.inv(information + added)
    values = covariance @ (information @ plain.values + added @ [0, -1.3, 0, 2.0])
    np.testing.assert_allclose(ours.values, values, rtol=1e-9)
    np.testing.assert_allclose(ours.covariance, covariance, rtol=1e-8)
    np.testing.assert_array_equal(ours.freedom, plain.freedom)


def test_a_tight_prior_holds_and_a_loose_one_lets_go(observations):
    plain = weighted(observations, names_of(4))
    held = towards_prior(plain, {"p0": (7.0, 1e-9)})
    np.testing.assert_allclose(held.values[0], 7.0, atol=1e-9)
    np.testing.assert_allclose(towards_prior(plain, {"p0": (7.0, 1e6)}).values, plain.values, rtol=1e-9)


def test_bad_priors_are_refused(observations):
    plain = weighted(observations, names_of(4))
    with pytest.raises(
        EstimateError, match=r"prior for 'p8', which is not estimated; estimated are p0, .*did you mean"
    ):
        towards_prior(plain, {"p8": (1.0, 1.0)})
    for value, deviation in ((1.0, 0.0), (1.0, -1.0), (np.nan, 1.0), (1.0, np.inf)):
        with pytest.raises(EstimateError, match=r"prior for 'p0': got .* needed is a deviation above 0"):
            towards_prior(plain, {"p0": (value, deviation)})


def test_values_for_other_columns_are_given_by_name(observations):
    plain = weighted(observations, names_of(4))
    np.testing.assert_array_equal(plain.full_values(("p3", "x", "p0")), [plain.values[3], 0.0, plain.values[0]])


def test_data_without_noise_give_the_truth_and_finite_weights():
    rng = np.random.default_rng(3)
    W = rng.standard_normal((2, 50, 4))
    factors = [
        factor_of(np.column_stack([part, part @ TRUE]), names_of(4), group)
        for part, group in zip(W, GROUPS, strict=False)
    ]
    estimate = weighted(observations_of(*factors), names_of(4))
    np.testing.assert_allclose(estimate.values, TRUE, rtol=1e-10)
    assert np.isfinite(estimate.sigma).all()
    exact = [factor_of(np.column_stack([np.eye(50)[:, :4], np.zeros(50)]), names_of(4), GROUPS[0])]
    assert min(joint_deviations(observations_of(*exact)).values()) > 0
