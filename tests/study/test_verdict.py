"""Verdicts and sentences on runs made up so that the right answer is known."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from scipy import stats

from steelyard.model import BaseParameter
from steelyard.study import Case, CaseRuns, judged_cases, sentences
from steelyard.study.statistics import pooled_coverage

NAMES = ("ZZ1", "MX1", "Fvm1")
PARAMETERS = [BaseParameter(f"{name}R", name, "kg", MappingProxyType({name: 1.0})) for name in NAMES]
TRUE = np.array([2.0, -1.0, 0.0])
SIGMA = np.array([0.1, 0.02, 3.0])
RUNS = 400


def runs_of(method, *, seed=0, shift=(0.0, 0.0, 0.0), reported=1.0, failed=0, level=1.0, count=RUNS):
    """Return runs of an unbiased, efficient method with honest sigmas, but for the options."""
    rng = np.random.default_rng(seed)
    sigma = level * SIGMA[:, None] * np.ones((3, count))
    values = TRUE[:, None] + sigma * (np.array(shift)[:, None] + rng.standard_normal((3, count)))
    values[:, :failed] = np.nan
    half_width = reported * sigma * stats.norm.ppf(0.975)
    failures = tuple("diverged" if k < failed else "" for k in range(count))
    seconds = np.linspace(0.1, 0.3, count)
    return CaseRuns(
        Case(method, level), NAMES, np.arange(count), values, reported * sigma, half_width, seconds, failures
    )


def judged(*runs, bound: np.ndarray | None = SIGMA):
    return judged_cases(runs, PARAMETERS, TRUE, bound)


def test_an_honest_method_is_told_so():
    (verdict,) = judged(runs_of("gls"))
    assert not any(one.is_biased or one.is_overconfident for one in verdict.parameters)
    assert verdict.rms_over_bound == pytest.approx(1.0, abs=0.06)
    assert verdict.mean_coverage == pytest.approx(0.95, abs=0.02)
    assert verdict.seconds == pytest.approx(0.2)
    for one, sigma in zip(verdict.parameters, SIGMA, strict=True):
        assert one.efficiency_interval is not None
        assert one.efficiency_interval[0] < 1.0 < one.efficiency_interval[1]
        assert one.bound_sigma == sigma
        assert one.spread == pytest.approx(sigma, rel=0.12)
    assert verdict.checks_by_bound == verdict.checks_as_reported
    assert sentences([verdict])[0].startswith("no method failed, none is biased")


def test_the_figures_of_a_parameter_are_those_of_scipy():
    runs = runs_of("wls", shift=(0.2, 0, 0))
    one = judged(runs)[0].parameters[0]
    errors = runs.values[0] - 2.0
    t_test: Any = stats.ttest_1samp(errors, 0)
    assert one.mean == pytest.approx(runs.values[0].mean())
    assert one.bias == pytest.approx(errors.mean())
    assert one.bias_p == pytest.approx(t_test.pvalue)
    np.testing.assert_allclose(one.bias_interval, t_test.confidence_interval(0.95))
    assert one.efficiency == pytest.approx(0.1**2 / np.mean(errors**2))
    assert one.coverage == np.mean(np.abs(errors) <= runs.half_width[0])


def test_a_biased_method_is_found_biased_and_named():
    honest, biased = judged(runs_of("gls"), runs_of("wls", seed=1, shift=(0.0, 0.5, 0.0)))
    assert [one.is_biased for one in biased.parameters] == [False, True, False]
    assert not any(one.is_biased for one in honest.parameters)
    assert biased.worst_bias is not None
    assert biased.worst_bias.name == "MX1R"
    assert biased.worst_bias.bias_in_sigmas == pytest.approx(0.5, abs=0.15)
    lines = sentences([honest, biased])
    assert len([line for line in lines if "biased" in line]) == 1
    assert lines[0].startswith("wls: biased in 1 of 3 parameters: MX1R by +0.")


def test_an_over_confident_method_is_found_so_and_is_not_called_biased():
    bold, honest = judged(runs_of("wls", reported=0.5), runs_of("gls", seed=2))
    assert all(one.is_overconfident for one in bold.parameters)
    assert not any(one.is_biased for one in bold.parameters)
    assert not any(one.is_overconfident for one in honest.parameters)
    assert bold.checks_as_reported is not None
    assert bold.checks_as_reported.variances == 0.0
    (line,) = sentences([bold, honest])
    assert line.startswith("wls: reports sigmas too small in 3 of 3 parameters")
    assert "times its sigma (coverage 6" in line or "times its sigma (coverage 7" in line


def test_one_method_in_twenty_studies_is_called_biased_by_chance_and_no_more():
    called = [
        any(one.is_biased for one in verdict.parameters)
        for seed in range(200)
        for verdict in judged(runs_of("wls", seed=seed, count=20))
    ]
    assert np.mean(called) == pytest.approx(0.05, abs=3.5 * np.sqrt(0.05 * 0.95 / 200))


def test_failed_runs_are_counted_and_left_out_of_the_figures():
    (verdict,) = judged(runs_of("ekf", failed=40))
    assert verdict.failures == 40
    assert verdict.failure_interval[0] < 0.1 < verdict.failure_interval[1]
    assert all(one.runs == RUNS - 40 for one in verdict.parameters)
    assert sentences([verdict]) == ("ekf: 40 of 400 runs failed; most often: diverged",)


def test_a_method_that_always_fails_has_no_figures():
    (verdict,) = judged(runs_of("ekf", failed=RUNS))
    assert verdict.parameters == ()
    assert verdict.not_estimated == ("ZZ1R", "MX1R", "Fvm1R")
    assert verdict.worst_bias is None
    assert verdict.smallest_coverage is None
    assert verdict.mean_coverage is None
    assert verdict.rms_over_bound is None
    assert verdict.checks_by_bound is None
    assert sentences([verdict]) == ("ekf: 400 of 400 runs failed; most often: diverged",)


def test_the_bound_grows_with_the_noise():
    (verdict,) = judged(runs_of("wls", level=4.0))
    assert verdict.rms_over_bound == pytest.approx(1.0, abs=0.06)
    assert verdict.parameters[0].bound_sigma == pytest.approx(0.4)


def test_without_a_bound_there_is_no_efficiency():
    (verdict,) = judged(runs_of("wls"), bound=None)
    assert verdict.rms_over_bound is None
    assert all(one.efficiency is None and one.bound_sigma is None for one in verdict.parameters)
    assert verdict.checks_by_bound is not None
    assert verdict.checks_by_bound.variances is None


def test_cases_that_differ_in_noise_say_so():
    shift = (1.0, 0.0, 0.0)
    lines = sentences(judged(runs_of("wls", shift=shift), runs_of("wls", level=2.0, shift=shift)))
    assert lines[0].startswith("wls, noise x 1: biased")
    assert lines[-1].startswith("wls, noise x 2: biased")


def test_few_runs_are_told_to_be_too_few_and_not_called_right():
    few, bad = judged(runs_of("wls", count=6)), judged(runs_of("wls", seed=3, count=6, reported=0.6))
    for (verdict,) in (few, bad):
        assert not verdict.judges_coverage
        assert verdict.pooled is not None
        first, second = sentences([verdict])
        assert first == "no method failed, none is biased beyond chance"
        assert second == (
            f"6 runs are too few to judge coverage: right 95 % intervals would hold the truth in "
            f"{100 * verdict.pooled.least:.0f} to 100 % by chance; found {100 * verdict.pooled.share:.0f} % (wls)"
        )
    assert bad[0].pooled is not None
    assert bad[0].pooled.share < 0.85
    (verdict,) = judged(runs_of("wls", count=100))
    assert sentences([verdict])[0].endswith("over all parameters 95 % intervals hold the truth as often as they should")


def test_intervals_that_are_too_narrow_by_a_little_show_over_all_parameters_together():
    bold, honest = judged(runs_of("wls", seed=2, reported=0.8, count=40), runs_of("gls", seed=1, count=40))
    assert not any(one.is_overconfident for one in bold.parameters)
    assert bold.pooled is not None
    assert honest.pooled is not None
    assert bold.pooled.is_too_low
    assert not honest.pooled.is_too_low
    assert sentences([bold, honest])[0].startswith("wls: over all parameters 95 % intervals hold the truth in 8")


def test_parameters_that_err_together_are_no_further_evidence():
    rng = np.random.default_rng(0)
    together = np.repeat(rng.random((1, 20)) < 0.8, 8, axis=0).astype(float)
    apart = (rng.random((8, 20)) < 0.8).astype(float)
    assert pooled_coverage(together, 1).shown < 0.75
    assert pooled_coverage(apart, 1).shown > 0.8
    assert pooled_coverage(apart, 1).least > pooled_coverage(apart, 9).least > pooled_coverage(together, 1).least
    assert pooled_coverage(np.ones((8, 6)), 1).shown < 0.9  # that six runs agree says nothing about their spread


def test_one_study_in_twenty_finds_coverage_too_low_by_chance_at_most():
    rng = np.random.default_rng(1)
    for shared in (0.0, 0.7):
        hits = [
            np.abs(np.sqrt(shared) * rng.standard_normal(20) + np.sqrt(1 - shared) * rng.standard_normal((8, 20)))
            <= stats.norm.ppf(0.975)
            for _ in range(400)
        ]
        found = [pooled_coverage(one.astype(float), 1).is_too_low for one in hits]
        assert np.mean(found) < 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / 400)
