"""Statistics of a study: against statsmodels, scipy and Monte Carlo of their own."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from steelyard.errors import EstimateError
from steelyard.study import interval_checks
from steelyard.study.statistics import bias_test, efficiency, holm, rarely_covered, share_interval

proportion = pytest.importorskip("statsmodels.stats.proportion")
multitest = pytest.importorskip("statsmodels.stats.multitest")
weightstats = pytest.importorskip("statsmodels.stats.weightstats")


@pytest.mark.parametrize(("hits", "count"), [(0, 10), (10, 10), (95, 100), (7, 9), (1900, 2000)])
def test_a_share_s_interval_is_wilson_s(hits, count):
    expected = proportion.proportion_confint(hits, count, alpha=0.05, method="wilson")
    np.testing.assert_allclose(share_interval(hits, count), expected, rtol=1e-10, atol=1e-12)


def test_too_low_a_coverage_has_the_binomial_s_probability():
    expected = stats.binomtest(85, 100, 0.95, alternative="less").pvalue
    assert rarely_covered(85, 100) == pytest.approx(expected, rel=1e-10)


def test_the_bias_and_its_interval_are_student_s():
    errors = np.random.default_rng(0).standard_normal(30) + 0.4
    described = weightstats.DescrStatsW(errors)
    interval, p = bias_test(errors)
    np.testing.assert_allclose(interval, described.tconfint_mean(0.05), rtol=1e-10)
    assert p == pytest.approx(described.ttest_mean(0)[1], rel=1e-10)


def test_errors_that_never_change_are_biased_for_sure_or_not_at_all():
    assert bias_test(np.full(5, 0.5)) == ((0.5, 0.5), 0.0)
    assert bias_test(np.zeros(5)) == ((0.0, 0.0), 1.0)


@pytest.mark.parametrize("seed", range(5))
def test_which_tests_are_significant_together_is_holm_s(seed):
    probabilities = np.random.default_rng(seed).uniform(0, 1, 12) ** 4
    expected = multitest.multipletests(probabilities, 0.05, method="holm")[0]
    np.testing.assert_array_equal(holm(probabilities), expected)


def test_holm_of_no_test_is_empty():
    assert holm(np.zeros(0)).shape == (0,)


def test_the_efficiency_is_the_bound_over_the_mean_square():
    value, (low, high) = efficiency(np.array([1.0, -1.0, 3.0]), 2.0)
    assert value == pytest.approx(4 / (11 / 3))
    assert low < value < high
    assert efficiency(np.zeros(4), 1.0)[0] == np.inf


def test_the_efficiency_s_interval_holds_the_true_one_in_95_of_100_studies():
    rng = np.random.default_rng(1)
    true_efficiency = 0.5**2 / 0.8**2
    found = [efficiency(0.8 * rng.standard_normal(20), 0.5)[1] for _ in range(4000)]
    held = np.mean([low <= true_efficiency <= high for low, high in found])
    assert abs(held - 0.95) < 3.5 * np.sqrt(0.95 * 0.05 / 4000)


def test_right_estimators_pass_p4_s_checks_as_often_as_the_intervals_say():
    rng = np.random.default_rng(2)
    true, sigma = np.linspace(-3, 3, 4000), np.geomspace(1e-3, 1e3, 4000)
    estimates = true[:, None] + sigma[:, None] * rng.standard_normal((4000, 15))
    checks = interval_checks(estimates, true, sigma)
    assert checks.variances is not None
    assert abs(checks.means - 0.68) < 3.5 * np.sqrt(0.68 * 0.32 / 4000)
    assert abs(checks.variances - 0.90) < 3.5 * np.sqrt(0.90 * 0.10 / 4000)


def test_a_biased_estimator_fails_the_first_check_and_a_bold_one_the_second():
    rng = np.random.default_rng(3)
    noise = rng.standard_normal((200, 50))
    biased = interval_checks(noise + 0.5, np.zeros(200), np.ones(200))
    bold = interval_checks(noise, np.zeros(200), np.full(200, 0.5))
    assert biased.means < 0.05
    assert biased.variances is not None
    assert biased.variances > 0.8
    assert bold.means > 0.5
    assert bold.variances == 0.0
    assert interval_checks(noise, np.zeros(200), None).variances is None


@pytest.mark.parametrize(
    ("estimates", "true", "message"),
    [
        (np.zeros((3, 1)), np.zeros(3), "at least 2"),
        (np.zeros((3, 5)), np.zeros(4), "needed are"),
        (np.zeros(3), np.zeros(3), "needed are"),
        (np.full((3, 5), np.nan), np.zeros(3), "not finite"),
    ],
)
def test_runs_that_say_nothing_are_refused(estimates, true, message):
    with pytest.raises(EstimateError, match=message):
        interval_checks(estimates, true, None)
