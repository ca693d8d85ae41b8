"""Normality: equal to scipy and statsmodels where definitions agree; honest p values by Monte Carlo."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats import diagnostic, stattools

from steelyard.errors import EstimateError
from steelyard.judge import jarque_bera, kolmogorov_smirnov


def skewed(samples: int, part: float, seed: int = 0) -> np.ndarray:
    x, y = np.random.default_rng(seed).standard_normal((2, samples))
    return 3.0 + 0.2 * (x + part * y**2)


@pytest.mark.parametrize("samples", [20, 150, 3000])
def test_jarque_bera_is_that_of_scipy_and_statsmodels(samples):
    x = skewed(samples, 0.4)
    found = jarque_bera(x)
    assert (found.statistic, found.p) == pytest.approx(tuple(stats.jarque_bera(x)), rel=1e-10)
    assert (found.skewness, found.kurtosis) == pytest.approx(stattools.jarque_bera(x)[2:], rel=1e-10)


@pytest.mark.parametrize("samples", [20, 150, 3000])
def test_the_distance_is_that_of_statsmodels(samples):
    x = skewed(samples, 0.4)
    assert kolmogorov_smirnov(x).statistic == pytest.approx(diagnostic.lilliefors(x)[0], abs=1e-12)


@pytest.mark.parametrize("samples", [60, 200, 800])
def test_p_values_are_near_those_of_statsmodels(samples):
    for seed in range(20):
        x = skewed(samples, 0.2, seed)
        found, theirs = kolmogorov_smirnov(x).p, float(diagnostic.lilliefors(x, pvalmethod="table")[1])
        # Their table stops at 0.001 and is rounded.
        assert found == pytest.approx(theirs, abs=0.06)
        if 0.005 < theirs < 0.1:
            assert found == pytest.approx(theirs, rel=0.5)


@pytest.mark.parametrize("samples", [15, 100, 1500])
def test_normal_residuals_are_rejected_as_often_as_the_level_says(samples):
    rng = np.random.default_rng(11)
    p = np.array([kolmogorov_smirnov(rng.standard_normal(samples)).p for _ in range(400)])
    assert np.mean(p < 0.05) == pytest.approx(0.05, abs=0.035)
    assert np.mean(p < 0.5) == pytest.approx(0.5, abs=0.08)
    # Kolmogorov's own table, made for a known mean and deviation, hardly ever objects.
    x = rng.standard_normal((200, samples))
    plain = [stats.kstest((row - row.mean()) / row.std(ddof=1), "norm").pvalue for row in x]
    assert np.mean(np.array(plain) < 0.05) < 0.01


def test_p_falls_steadily_with_the_distance():
    tests = [kolmogorov_smirnov(skewed(400, part)) for part in np.linspace(0.05, 1.5, 30)]
    by_distance = sorted(tests, key=lambda test: test.statistic)
    assert all(later.p < before.p for before, later in pairwise(by_distance))
    assert by_distance[0].p > 0.3
    assert 0 < by_distance[-1].p < 1e-8


def test_fewer_effective_samples_make_both_tests_more_cautious():
    x = skewed(500, 0.3)
    assert kolmogorov_smirnov(x).p < kolmogorov_smirnov(x, effective_samples=100).p
    assert jarque_bera(x, 250).statistic == pytest.approx(jarque_bera(x).statistic / 2)


def test_what_cannot_be_judged_is_refused():
    for test in (kolmogorov_smirnov, jarque_bera):
        with pytest.raises(EstimateError, match="got 4 samples, needed are at least 5"):
            test(np.arange(4.0))
        with pytest.raises(EstimateError, match="got 9 times 2, allowed are values that differ"):
            test(np.full(9, 2.0))
        with pytest.raises(EstimateError, match="got inf in run 0, sample 3"):
            test(np.array([0.0, 1.0, 2.0, np.inf, 1.0]))
        with pytest.raises(EstimateError, match="effective samples: got 0"):
            test(np.arange(9.0), 0)
